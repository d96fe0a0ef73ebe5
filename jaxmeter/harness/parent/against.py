"""An earlier run next to which a run is measured: its programs, its checkout, and what of its record is followed."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from msgspec.structs import replace

from jaxmeter.harness.declare.catalogue import DEFAULT_SUITES
from jaxmeter.harness.machine.environment import make_paths_private
from jaxmeter.harness.metrics.reading import read_cases, renew
from jaxmeter.harness.parent.prepare_run import UsageError
from jaxmeter.harness.plan.cases import add_lock_step, add_replays, limit_to
from jaxmeter.harness.plan.messages import Seen
from jaxmeter.harness.record import (
    CaseRecord,
    Manifest,
    OtherEnvironment,
    PlannedCase,
    RecordError,
    Replay,
    RunFolder,
    Settings,
    UnreadableError,
    read_json,
    read_manifest,
    read_run,
    write_bytes,
)
from jaxmeter.harness.record.environment import find_changed_packages
from jaxmeter.harness.record.files import LARGEST_PROGRAM, name_file, read_kept
from jaxmeter.harness.record.runs import Suspects

_OWN_SUITE = re.compile(rf"{re.escape(DEFAULT_SUITES)}(\.[A-Za-z_][A-Za-z0-9_]*)*")


def choose_suites(given: Sequence[str], recorded: Sequence[str], run: Path, option: str) -> tuple[str, ...]:
    """Return the suites to import: those that were given, else the recorded ones where they are jaxmeter's own.

    Args:
      run: Whose record it is.
      option: By which the run was named.
    Raises:
      UsageError: The record names a path or another package, or a path was given that lies inside the run.
    """
    if given:
        for name in given:
            _refuse_inside(name, run)
        return tuple(given)
    foreign = next((name for name in recorded if not is_own_suite(name)), None)
    if foreign is not None:
        raise UsageError(
            f"{option} {run}: its suites are '{foreign}', and no code is imported from where a record says; "
            "name the suites yourself: --suites PATH"
        )
    return tuple(recorded)


def is_own_suite(name: str) -> bool:
    """Return whether a suite is a module of jaxmeter's own."""
    return _OWN_SUITE.fullmatch(name) is not None


def _refuse_inside(name: str, run: Path) -> None:
    path = Path(name).expanduser()
    if path.exists() and path.resolve().is_relative_to(run.resolve()):
        raise UsageError(
            f"--suites {name}: lies inside the run {run}, which may come from another person; read the file, then copy "
            "it to a folder of your own"
        )


def choose_data(given: Path | None, recorded: str | None, run: Path, option: str) -> Path | None:
    """Return the folder of data sets that was given.

    Raises:
      UsageError: None was, and the run had one.
    """
    if given is None and recorded is not None:
        raise UsageError(
            f"{option} {run}: it read data sets from '{recorded}', and no folder is read that a record names; "
            "name it yourself: --data DIR"
        )
    return given


def choose_lock_step(
    given: str | None, manifest: Manifest, run: Path, checkout: Path | None = None
) -> OtherEnvironment | None:
    """Return the other environment of a run that goes on, by the interpreter and the checkout that were given.

    Raises:
      UsageError: One of the two has an environment or a checkout, and the other has none.
    """
    recorded = manifest.settings.lock_step
    if checkout is not None and (recorded is None or recorded.checkout is None):
        raise UsageError(f"--baseline-checkout {checkout}: {run} measures one checkout; leave it out")
    if recorded is None and given is None:
        return None
    if recorded is None:
        raise UsageError(f"--lock-step {given}: {run} measures in one environment; leave it out")
    if recorded.checkout is not None:
        if checkout is None:
            raise UsageError(
                f"--resume {run}: it runs in lock-step with the code of run {manifest.against}, and jaxmeter loads no "
                "code from a recorded path; name the checkout of that code: --baseline-checkout DIR"
            )
        return replace(recorded, python=given or sys.executable, checkout=str(checkout))
    if given is None:
        raise UsageError(
            f"--resume {run}: it measures in turns with the environment of run {manifest.against}, and no program is "
            "started that a record names; name its python yourself: --lock-step PYTHON"
        )
    return replace(recorded, python=given)


def check_same_baseline(manifest: Manifest, given: Path | None) -> None:
    """Check that a run that goes on was begun next to the earlier run that is given, if one is.

    Raises:
      UsageError: It was begun next to another or to none, or the earlier run cannot be read.
    """
    if given is None:
        return
    try:
        earlier = read_manifest(RunFolder(given)).run_id
    except RecordError as error:
        raise UsageError(f"--against: {error}; give the folder of a run, such as results/RUN") from error
    if earlier != manifest.against:
        begun = "no other run" if manifest.against is None else f"run {manifest.against}"
        raise UsageError(f"--against {given}: run {manifest.run_id} was begun next to {begun}; leave it out")


def replace_paths(
    settings: Settings, suites: tuple[str, ...], data: Path | None, lock_step: OtherEnvironment | None
) -> Settings:
    """Return the settings of a run that goes on with the paths that were given, as a record may hold them."""
    return replace(
        settings,
        suites=tuple(map(make_paths_private, suites)),
        data=None if data is None else make_paths_private(str(data.absolute())),
        lock_step=None if lock_step is None else make_environment_private(lock_step),
    )


def make_environment_private(environment: OtherEnvironment) -> OtherEnvironment:
    """Return an environment with its paths as a record may hold them."""
    checkout = None if environment.checkout is None else make_paths_private(environment.checkout)
    return replace(environment, python=make_paths_private(environment.python), checkout=checkout)


Add = Callable[[PlannedCase, PlannedCase | None, CaseRecord | None, str], PlannedCase]
"""Function that adds the variants of an earlier run to a case."""


@dataclass(frozen=True)
class Against:
    """An earlier run.

    Args:
      records: The records of its cases, by id.
    """

    folder: RunFolder
    manifest: Manifest
    records: dict[str, CaseRecord]

    @property
    def run_id(self) -> str:
        """Its id."""
        return self.manifest.run_id

    def add_programs(self, cases: Sequence[PlannedCase]) -> tuple[PlannedCase, ...]:
        """Return the cases with the programs that the earlier run kept of them.

        Raises:
          UsageError: The earlier run kept no program of these cases.
        """
        return self._add(
            add_replays,
            cases,
            "it keeps no program of these cases: they are not in it, their inputs, reference or cost have changed, or "
            "it is older than programs are kept",
        )

    def add_lock_step(self, cases: Sequence[PlannedCase], *, from_checkout: bool) -> tuple[PlannedCase, ...]:
        """Return the cases with the variants that the earlier run measured of them, to be run in its environment.

        Args:
          from_checkout: Whether that run's own code runs, too.

        Raises:
          UsageError: The earlier run measured none of these cases.
        """
        return self._add(
            partial(add_lock_step, from_checkout=from_checkout),
            cases,
            "it has no variant of JAX's of these cases that was found right: they are not in it, or their inputs, "
            "reference or cost have changed",
        )

    def _add(self, add: Add, cases: Sequence[PlannedCase], why_none: str) -> tuple[PlannedCase, ...]:
        planned = {(case.name, case.platform): case for case in self.manifest.cases}
        pairs = [(case, planned.get((case.name, case.platform))) for case in cases]
        added = tuple(
            add(case, before, None if before is None else self.records.get(before.id), self.run_id)
            for case, before in pairs
        )
        if not any(_list_replays(case) for case in added):
            raise UsageError(f"--against {self.folder.path}: {why_none}; measure a new baseline run")
        return added

    def copy_programs(self, cases: Sequence[PlannedCase], folder: RunFolder) -> None:
        """Copy the programs, so that the new run is complete without the earlier one.

        A missing program is left out, and the check reports it. Paths are made from names: a record may hold any path.
        """
        for case in cases:
            for name, replay in _list_replays(case):
                if replay.in_lock_step:
                    continue
                source = self.folder.case(name_file(case.name)).exported(replay.variant)
                try:
                    data = read_kept(source, LARGEST_PROGRAM)
                except (OSError, UnreadableError):
                    continue
                write_bytes(folder.case(case.id).exported(name), data, lasting=False)


def _list_replays(case: PlannedCase) -> list[tuple[str, Replay]]:
    return [(item.name, item.replays) for item in case.variants if item.replays is not None]


def read_against(path: Path) -> Against:
    """Read the run in a folder, as far as it was measured.

    Raises:
      UsageError: There is no run, or it cannot be read.
    """
    folder = RunFolder(path)
    try:
        if folder.mark.exists():
            run, _ = renew(read_run(folder), folder)
            return Against(folder, run.manifest, {record.id: record for record in run.cases})
        manifest = read_manifest(folder)
    except RecordError as error:
        raise UsageError(f"--against: {error}; give the folder of a run, such as results/RUN") from error
    records, _ = read_cases(folder, manifest)
    return Against(folder, manifest, {record.id: record for record in records})


def read_suspects(path: Path) -> Suspects:
    """Read the suspects that a comparison has written.

    Raises:
      UsageError: There is no such file, or it is a file of another kind.
    """
    try:
        return read_json(path, Suspects)
    except RecordError as error:
        raise UsageError(f"--suspects: {error}; `jaxmeter compare … --suspects FILE` writes one") from error


def choose_suspects(cases: Sequence[PlannedCase], suspects: Suspects) -> tuple[PlannedCase, ...]:
    """Return the suspects' cases, each with only its suspects and their kept programs.

    Raises:
      UsageError: No suspect is in the suites.
    """
    wanted: dict[str, set[str]] = {}
    for suspect in suspects.suspects:
        wanted.setdefault(suspect.case, set()).add(suspect.variant)
    limited = (limit_to(case, wanted[case.name]) for case in cases if case.name in wanted)
    chosen = tuple(case for case in limited if case is not None)
    if not chosen:
        names = ", ".join(sorted(wanted)) or "none named"
        raise UsageError(f"--suspects: the suites contain none of these suspects ({names})")
    return chosen


OPTION = "--baseline-checkout"


@dataclass(frozen=True)
class Checkout:
    """The folder that an earlier run's code is loaded from.

    Args:
      given: As the user named it.
      today: The folder whose place it takes, absolute.
      then: The folder itself, absolute.
      suites: The suites, as a process that starts in `then` finds them.
    """

    given: Path
    today: Path
    then: Path
    suites: tuple[str, ...]


def find_checkout(given: Path, suites: Sequence[str]) -> Checkout:
    """Return a checkout that has the suites at the same place as the current one.

    The current one is the working folder, or the repository that the suites lie in if that is elsewhere.

    Raises:
      UsageError: There is no such folder, it is the current one, or the suites are not in both.
    """
    here, then = Path.cwd(), given.expanduser().resolve()
    if not then.exists():
        raise UsageError(f"{OPTION} {given}: no such folder; make it: git worktree add {given} COMMIT")
    if not then.is_dir():
        raise UsageError(
            f"{OPTION} {given}: not a folder; name the checkout of the commit that the earlier run measured"
        )
    same = UsageError(
        f"{OPTION} {given}: this folder holds the current code; name another checkout: git worktree add ../base COMMIT"
    )
    if then == here:
        raise same
    places = [_find_place(name, here, then, given) for name in suites]
    todays = dict.fromkeys(today for today, _ in places)
    if then in todays:
        raise same
    if len(todays) > 1:
        raise UsageError(
            f"{OPTION} {given}: the suites belong to several checkouts ({', '.join(map(str, todays))}); "
            "name the suites of one checkout"
        )
    return Checkout(given, next(iter(todays), here), then, tuple(name for _, name in places))


def check_code(checkout: Checkout, cases: Iterable[PlannedCase], seen: Seen, before: Manifest) -> None:
    """Check that a checkout holds what an earlier run measured, and that its process has loaded this.

    Args:
      cases: With the variants that run there.
      seen: What a process of the checkout has loaded.
      before: Of the earlier run.
    Raises:
      UsageError: Something else was loaded.
    """
    place = f"{OPTION} {checkout.given}"
    for name, file in sorted(seen.strangers.items()):
        raise UsageError(
            f"{place}: {name} is loaded from {file} and not from this checkout, so both arms would run the same code. "
            "jaxmeter finds modules in the checkout and in its src. For modules in another folder of the checkout, set "
            "PYTHONPATH to the relative path of that folder, or uninstall the package"
        )
    revision = before.environment.git_revision
    commit = "the commit that it measured" if revision is None else f"the commit {revision}"
    for case in cases:
        replays = [item for item in case.variants if item.replays is not None]
        loaded = seen.cases.get(case.id)
        if not replays or loaded is None:
            continue
        if loaded.definition != case.definition:
            what = f"inputs, reference or cost of {case.name} differ"
            raise UsageError(f"{place}: not what run {before.run_id} measured: {what}; check out {commit}")
        for item in replays:
            if item.replays is not None and loaded.sources.get(item.replays.variant) != item.source:
                raise UsageError(
                    f"{place}: not what run {before.run_id} measured: the code of {item.implementation} in {case.name} "
                    f"differs; check out {commit}"
                )

    for package in find_changed_packages(before.own_packages, seen.own_packages):
        if package.before is not None and package.is_known:
            raise UsageError(
                f"{place}: not what run {before.run_id} measured: {package.describe()}; check out {commit}, in the "
                "repository that holds the package"
            )


def _find_place(name: str, here: Path, then: Path, given: Path) -> tuple[Path, str]:
    """Return the checkout that a suite is of today, and the suite's name in the other one."""
    path = Path(name).expanduser()
    if path.suffix != ".py" and all(part.isidentifier() for part in name.split(".")):  # a module, or a folder like one
        if is_own_suite(name):
            raise UsageError(
                f"{OPTION} {given}: both arms would run jaxmeter's own suites ({name}) from the "
                "current jaxmeter; name suites of the checkout: --suites PATH"
            )
        if path.is_dir() and not (then / name).exists():
            raise _describe_missing(name, given, name)
        return here, name
    full = Path(os.path.abspath(here / path))  # noqa: PTH100  resolve() would follow a link out of the checkout
    if not full.is_relative_to(here):
        full = full.parent.resolve() / full.name
    today = here if full.is_relative_to(here) else _find_repository(full)
    if full.is_relative_to(then) and (today is None or today == then or not today.is_relative_to(then)):
        raise UsageError(f"--suites {name}: lies in {OPTION} {given}; name the suite of the current checkout")
    if today is None:
        raise UsageError(
            f"--suites {name}: lies outside the current folder and in no repository, so {given} has no counterpart; "
            f"start in the folder that {given} replaces, and give a path below it"
        )
    relative = full.relative_to(today)
    if not (then / relative).exists():
        raise _describe_missing(name, given, relative)
    return today, str(then / relative)


def _describe_missing(name: str, given: Path, relative: str | Path) -> UsageError:
    return UsageError(
        f"--suites {name}: {OPTION} {given} has no {relative}; the checkout needs the suites of the earlier "
        "run, at the same paths as in the current checkout"
    )


def _find_repository(path: Path) -> Path | None:
    return next((folder for folder in path.parents if (folder / ".git").exists()), None)
