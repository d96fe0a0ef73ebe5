"""An earlier run whose kept programs are interleaved with today's: reading the run, and copying its programs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from jaxmeter.harness.metrics.reread import read_cases, renew
from jaxmeter.harness.parent.prepare_run import UsageError
from jaxmeter.harness.plan.replays import add_lock_step, add_replays, limit_to
from jaxmeter.harness.record import (
    CaseRecord,
    Manifest,
    PlannedCase,
    RecordError,
    Replay,
    RunFolder,
    UnreadableError,
    read_json,
    read_manifest,
    read_run,
    write_bytes,
)
from jaxmeter.harness.record.files import read_kept
from jaxmeter.harness.record.layout import LARGEST_PROGRAM, name_file
from jaxmeter.harness.record.suspects import Suspects

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
        found = [(case, planned.get((case.name, case.platform))) for case in cases]
        added = tuple(
            add(case, before, None if before is None else self.records.get(before.id), self.run_id)
            for case, before in found
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
    for one in suspects.suspects:
        wanted.setdefault(one.case, set()).add(one.variant)
    found = (limit_to(case, wanted[case.name]) for case in cases if case.name in wanted)
    chosen = tuple(case for case in found if case is not None)
    if not chosen:
        names = ", ".join(sorted(wanted)) or "none named"
        raise UsageError(f"--suspects: the suites contain none of these suspects ({names})")
    return chosen
