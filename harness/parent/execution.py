"""Executes the list of launches: one process after the other, a record for each case, and the commit mark."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from harness.machine.places import PLACES, Place
from harness.parent.case import CaseProgress
from harness.parent.ended import describe_end
from harness.parent.fork_client import Ended
from harness.parent.progress import Watcher
from harness.parent.servers import Servers
from harness.plan.launches import SHAPES, Launch, plan_launches
from harness.plan.messages import Measure, Result
from harness.plan.probes import PROBES
from harness.record import (
    NATIVE,
    CaseRecord,
    LaunchRecord,
    Manifest,
    PlannedCase,
    RecordError,
    Run,
    RunFolder,
    Stop,
    StopReason,
    now,
    read_json,
    write_json,
)

EVEN_SHARE = 0.5
"""A case may take this part of an even share of the time that is left, unless it is the last. Slow cases need more for
the fewest processes that tell anything: the other half is for them. What a case leaves comes to the cases after it."""


def execute(
    manifest: Manifest,
    folder: RunFolder,
    servers: Servers,
    watcher: Watcher,
    budget_s: float | None = None,
    places: Mapping[str, Place] = PLACES,
) -> Run:
    """Measures the manifest's cases that have no record yet, and writes the commit mark.

    A case's record is on disk when its last launch has ended. Interrupted or out of time, the run leaves what was
    measured and why it stopped.

    Args:
      budget_s: For what is left of a resumed run; the manifest's own where it is None.
    """
    settings = manifest.settings
    budget_s = settings.budget_s if budget_s is None else budget_s
    done = find_finished_cases(folder, manifest)
    launches = plan_launches(manifest.cases, settings, done=done, places=places)
    execution = _Execution(manifest, folder, servers, watcher, budget_s, places, launches, done)
    folder.stop.unlink(missing_ok=True)
    watcher.run_started(manifest, folder.path, len(launches), budget_s)
    try:
        execution.run()
    except KeyboardInterrupt:
        with suppress(OSError):  # a full disk must not hide the interruption
            write_json(folder.stop, Stop(at=now(), reason=StopReason.INTERRUPTED))
        raise
    finally:
        watcher.run_ended()
    run = Run(manifest=manifest, cases=tuple(done[case.id] for case in manifest.cases if case.id in done), ended=now())
    if run.lost():
        write_json(folder.stop, Stop(at=now(), reason=StopReason.BUDGET_USED, budget_s=budget_s))
    else:
        write_json(folder.mark, run)
    return run


def find_finished_cases(folder: RunFolder, manifest: Manifest) -> dict[str, CaseRecord]:
    """Case records that a run already holds; a damaged one counts as not measured."""
    found = {}
    for case in manifest.cases:
        with suppress(RecordError):
            found[case.id] = read_json(folder.case(case.id).record, CaseRecord)
    return found


@dataclass
class _Execution:
    """A run while it goes on.

    Args:
      launches: What is left to do, in order.
      done: Case records by id; those of this execution are added.
    """

    manifest: Manifest
    folder: RunFolder
    servers: Servers
    watcher: Watcher
    budget_s: float
    places: Mapping[str, Place]
    launches: Sequence[Launch]
    done: dict[str, CaseRecord]
    begun: dict[str, CaseProgress] = field(default_factory=dict)
    lost: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        """Cases without a record, and the place of each one's last launch in the list."""
        self._start = time.monotonic()
        self._last = {launch.case: index for index, launch in enumerate(self.launches)}
        self.todo = {case.id: case for case in self.manifest.cases if case.id not in self.done}

    def run(self) -> None:
        """Launches in the order of the list; a case that nothing is planned of has its record at once."""
        for case in self.todo.values():
            if case.id not in self._last and self._begin(case):
                self._end(case.id)
        for index, launch in enumerate(self.launches):
            if launch.case in self.lost:
                continue
            case = self.todo[launch.case]
            if launch.case not in self.begun and not self._begin(case):
                continue
            progress = self.begun[launch.case]
            if variants := progress.choose_variants(launch):
                with self._clocked(progress, launch):
                    self._launch(launch, variants, progress)
            if self._last[launch.case] == index:
                self._end(launch.case)

    def _begin(self, case: PlannedCase) -> bool:
        """Gives the case its share of the time that is left; without any, it is lost."""
        left_s = self.budget_s - self._elapsed_s()
        if left_s <= 0:
            self.lost.add(case.id)
            self.watcher.case_lost(case, f"the budget of {self.budget_s:g} s is used up; go on with --resume")
            return False
        left = len(self.todo) - len(self.begun)
        share_s = (EVEN_SHARE if left > 1 else 1) * left_s / left
        own = [launch for launch in self.launches if launch.case == case.id]
        self.begun[case.id] = CaseProgress(case, self.manifest.settings, own, share_s)
        return True

    def _end(self, case_id: str) -> None:
        """Writes the case's record."""
        record = self.begun[case_id].make_record()
        write_json(self.folder.case(case_id).record, record)
        self.done[case_id] = record
        self.watcher.case_ended(record, self._elapsed_s())

    @contextmanager
    def _clocked(self, progress: CaseProgress, launch: Launch) -> Iterator[None]:
        self.watcher.launch_started(launch)
        start = time.monotonic()
        yield
        progress.spend(launch, time.monotonic() - start)
        self.watcher.launch_ended(launch, self._elapsed_s())

    def _elapsed_s(self) -> float:
        return time.monotonic() - self._start

    def _launch(self, launch: Launch, variants: tuple[str, ...], progress: CaseProgress) -> None:
        """Runs one process; one that dies costs the variant that it was at, and is repeated without it."""
        kept = self._read_kept(launch, variants, progress)
        if kept is not None:
            progress.keep(launch, Result(launch=kept))
            return
        side_by_side = any(PROBES[probe].side_by_side for probe in launch.probes)
        while variants:
            ended = self._start_process(launch, variants, progress)
            if isinstance(ended.answer, Result):
                self._keep(launch, ended.answer, progress)
                broken = tuple(ended.answer.outcomes) if side_by_side else variants
            elif launch.process == SHAPES:  # one that fails knows nothing; the check will tell
                return
            else:
                broken = variants if ended.last.variant is None else (ended.last.variant,)
                outcome = describe_end(ended, self._stage_limit_s(progress.case))
                looks = launch.looks.items()
                outcomes = {name: {probe: outcome for probe, names in looks if name in names} for name in broken}
                progress.keep(launch, Result(outcomes=outcomes))
            variants = tuple(name for name in variants if name not in broken) if broken else ()

    def _keep(self, launch: Launch, result: Result, progress: CaseProgress) -> None:
        """Adds what a process found; raw samples are on disk first."""
        if result.launch is not None:
            write_json(self._samples_path(launch, progress.case), result.launch)
        progress.keep(launch, result)

    def _read_kept(self, launch: Launch, variants: tuple[str, ...], progress: CaseProgress) -> LaunchRecord | None:
        """Raw samples that an interrupted run has left of the same variants."""
        if not any(PROBES[probe].keeps_samples for probe in launch.probes):
            return None
        try:
            kept = read_json(self._samples_path(launch, progress.case), LaunchRecord)
        except RecordError:  # not there, or damaged: measured again
            return None
        return kept if {item.variant for item in kept.variants} == set(variants) else None

    def _samples_path(self, launch: Launch, case: PlannedCase) -> Path:
        native = {item.name for item in case.variants if item.mode == NATIVE}
        peer = launch.variants[0] if launch.variants[0] in native else None
        return self.folder.case(case.id).launch(launch.round, peer)

    def _start_process(self, launch: Launch, variants: tuple[str, ...], progress: CaseProgress) -> Ended:
        case, settings, place = progress.case, self.manifest.settings, self.places[progress.case.where]
        return self.servers.of(place).run(
            lambda result: Measure(
                launch=launch.limit_to(variants),
                case=case,
                place=place,
                settings=settings,
                seed=settings.seed + launch.round,
                cache=str(self.folder.cache),
                folder=str(self.folder.case(case.id).path),
                result=result,
            ),
            stage_limit_s=self._stage_limit_s(case),
            on_beat=self.watcher.beat,
        )

    def _stage_limit_s(self, case: PlannedCase) -> float:
        return case.time_limit_s or self.manifest.settings.stage_limit_s
