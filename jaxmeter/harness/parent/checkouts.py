"""The checkout of an earlier run's code, next to today's: which folder takes the place of which. No jax."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from jaxmeter.harness.parent.prepare_run import UsageError
from jaxmeter.harness.parent.recorded import is_own_suite
from jaxmeter.harness.plan.turns import Seen
from jaxmeter.harness.record import Manifest, PlannedCase
from jaxmeter.harness.record.own_packages import find_changed_packages

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
        found = seen.cases.get(case.id)
        if not replays or found is None:
            continue
        if found.definition != case.definition:
            what = f"inputs, reference or cost of {case.name} differ"
            raise UsageError(f"{place}: not what run {before.run_id} measured: {what}; check out {commit}")
        for item in replays:
            if item.replays is not None and found.sources.get(item.replays.variant) != item.source:
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
