"""Executes the list of processes, round after round: one process after the other, case records, commit mark."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path

from jaxmeter.harness.machine.platforms import PLATFORMS, Platform
from jaxmeter.harness.metrics.reading import read_process
from jaxmeter.harness.metrics.summary import TIMING
from jaxmeter.harness.parent.case import CaseProgress
from jaxmeter.harness.parent.process_runner import Starter
from jaxmeter.harness.parent.progress import Watcher
from jaxmeter.harness.parent.rounds import (
    Coming,
    Holders,
    Pace,
    ProcessAllowance,
    count_rounds,
    leave_out,
    matters,
    measure_width,
    share_out,
)
from jaxmeter.harness.parent.servers import Servers
from jaxmeter.harness.plan.cases import shuffle
from jaxmeter.harness.plan.processes import PlannedProcess, plan_more, plan_processes, plan_refill
from jaxmeter.harness.plan.settings import MOST_PROCESSES, estimate, find_longest_s
from jaxmeter.harness.record import (
    CaseRecord,
    Manifest,
    PlannedCase,
    ProcessRecord,
    RecordError,
    RunFolder,
    RunRecord,
    Settings,
    Stop,
    StopReason,
    now,
    write_json,
)
from jaxmeter.harness.record.processes import describe_used_up
from jaxmeter.harness.record.runs import write_mark
from jaxmeter.harness.record.wording import counted

NO_TIME = "the budget had no time for more"
"""Why a cold process is left out."""


def execute(
    manifest: Manifest,
    folder: RunFolder,
    servers: Servers,
    watcher: Watcher,
    budget_s: float | None = None,
    platforms: Mapping[str, Platform] = PLATFORMS,
) -> RunRecord:
    """Measures what the manifest's cases lack, and writes the commit mark.

    Each process leaves a file, and a summary of a case's files is on disk after each round. Interrupted or out of time,
    the run leaves what was measured and why it stopped; it goes on with the planned processes that have no file.

    Args:
      budget_s: For what is left of a resumed run; the manifest's own where it is None.
    """
    is_own = budget_s is None
    budget_s = _find_budget_s(manifest.settings) if budget_s is None else budget_s
    execution = _Execution(manifest, folder, servers, watcher, budget_s, platforms, is_own)
    folder.stop.unlink(missing_ok=True)
    watcher.run_started(manifest, folder.path, len(execution.processes), budget_s)
    try:
        execution.run()
    except KeyboardInterrupt:
        with suppress(OSError):  # a full disk must not hide the interruption
            write_json(folder.stop, Stop(at=now(), reason=StopReason.INTERRUPTED))
        raise
    finally:
        watcher.run_ended()
    cases = tuple(execution.done[case.id] for case in manifest.cases if case.id in execution.done)
    run = RunRecord(manifest=manifest, cases=cases, ended=now(), warnings=servers.list_warnings())
    if run.lost():
        had_s, held = None if math.isinf(budget_s) else budget_s, execution.holders.find_longest()
        write_json(folder.stop, Stop(at=now(), reason=StopReason.BUDGET_USED, budget_s=had_s, held=held))
    else:
        write_mark(run, folder)
    return run


def _find_budget_s(settings: Settings) -> float:
    """Infinite where a number of processes takes what it takes."""
    longest_s = find_longest_s(settings)
    return longest_s if math.isinf(longest_s) else settings.budget_s


@dataclass
class _Execution:
    """A run while it goes on.

    Args:
      is_own: Whether the budget is the settings' own.
      done: Summaries of cases by id, as they are on disk.
      processes: What is left to do, in order.
    """

    manifest: Manifest
    folder: RunFolder
    servers: Servers
    watcher: Watcher
    budget_s: float
    platforms: Mapping[str, Platform]
    is_own: bool = True
    pace: Pace = field(default_factory=Pace)

    def __post_init__(self) -> None:
        self._start = time.monotonic()
        self._settings = self.manifest.settings
        self.done: dict[str, CaseRecord] = {}
        self._cases = {case.id: case for case in self.manifest.cases}
        planned = plan_processes(self.manifest.cases, self._settings, platforms=self.platforms)
        self._progress: dict[str, CaseProgress] = {}
        for case in self.manifest.cases:
            own = [process for process in planned if process.case == case.id]
            self._progress[case.id] = CaseProgress(case, self._settings, own, self._read_left(case))
        # Cases with nothing in the compilation cache, although they were checked.
        self._cold = {name for name, progress in self._progress.items() if progress.is_checked}
        self.processes = self._plan_left(planned)
        self.holders = Holders(clock=time.monotonic)
        self._starter = Starter(
            self._settings, self.folder, self.servers, self.watcher, self.platforms, self.holders, time.monotonic
        )
        is_limited = self.is_own and math.isfinite(self.budget_s)
        self._overtime_s = find_longest_s(self._settings) - self.budget_s if is_limited else 0.0
        self._is_overtime = False
        self._left_out: set[tuple[str, ...]] = set()

    def run(self) -> None:
        """Run as many rounds as the time allows; then add processes where intervals narrow most per second."""
        for progress in self._progress.values():
            if progress.records or not progress.processes:  # what an earlier execution has left, or nothing is planned
                self._write(progress)
        if self._run_rounds():
            self._add_processes()
        is_lost = any(case.id not in self.done or self.done[case.id].is_lost for case in self.manifest.cases)
        if is_lost and math.isfinite(self.budget_s):
            self.watcher.said(describe_used_up(self.budget_s, self.holders.find_longest()))
        for case in self.manifest.cases:
            if case.id not in self.done or self.done[case.id].is_lost:
                self.watcher.case_lost(case, f"the budget of {self.budget_s:g} s is used up; continue with --resume")
            else:
                self.watcher.case_ended(self.done[case.id], self._elapsed_s())

    def _run_rounds(self) -> bool:
        """As many whole rounds as there is time for, but at least the fewest; whether there was time for those."""
        coming = [tuple(processes) for _, processes in groupby(self.processes, key=lambda process: process.round)]
        first, last = (coming[0][0].round, coming[-1][0].round) if coming else (0, -1)
        while coming and coming[0][0].round <= last:
            processes = coming.pop(0)
            left = [process for later in (processes, *coming) for process in later if process.round <= last]
            left = self._without_left_out(left)
            end_s = self._predict_end_s(left, is_first=processes[0].round == first)
            self.watcher.round_started(processes[0].round + 1, last + 1, len(left), end_s)
            if not self._run_round(processes):
                return False
            last = self._plan_rest(processes[0].round, [process for later in coming for process in later])
            if processes[0].round == first and coming:
                of = f" of {self.budget_s:.0f} s" if math.isfinite(self.budget_s) else ""
                self.watcher.said(
                    f"round {first + 1} took {self._elapsed_s():.0f} s{of}: there will be {last + 1} rounds"
                )
        return True

    def _predict_end_s(self, left: Sequence[PlannedProcess], *, is_first: bool) -> float | None:
        """Return the predicted end in seconds after the start; None in the first round of a run without a budget.

        In the first round, all durations are those of the plan. Later rounds use the durations of similar processes.
        """
        if is_first:
            planned_s = self._elapsed_s() + estimate(left, self._settings).most_s
            return min(self.budget_s, planned_s) if math.isfinite(self.budget_s) else None
        end_s = self._elapsed_s() + self.pace.predict_s(self._list_coming(left))
        return min(end_s + self._predict_most_s(left), max(self.budget_s, end_s))

    def _predict_most_s(self, left: Sequence[PlannedProcess]) -> float:
        """Return the predicted seconds of the largest number of extra processes; 0 if the run adds none."""
        if self._settings.processes is not None or self._settings.level not in MOST_PROCESSES:
            return 0.0
        beyond = MOST_PROCESSES[self._settings.level] - max((process.round + 1 for process in left), default=0)
        cases = [progress.case for progress in self._progress.values() if matters(progress.case)]
        return max(0, beyond) * math.fsum(self._predict_more_s(case) or 0.0 for case in cases)

    def _read_left(self, case: PlannedCase) -> list[ProcessRecord]:
        """What an interrupted run has left of a case; a file that is damaged is named, and its process run again."""
        left = []
        for path in self.folder.case(case.id).processes():
            try:
                record = read_process(path, case)
            except RecordError as error:
                self.watcher.said(f"{error}; measured again")
                path.unlink()
                continue
            if record.left_out is None:
                left.append(record)
            else:  # this execution has a budget of its own
                path.unlink()
        return left

    def _plan_left(self, planned: Sequence[PlannedProcess]) -> list[PlannedProcess]:
        """The planned processes without those that have left a file, and what fills the compilation cache for them."""
        left, cold = [], set(self._cold)
        for process in planned:
            progress = self._progress[process.case]
            if progress.lacks(process):
                if process.case in cold:
                    cold.remove(process.case)
                    left += plan_refill(progress.case, progress.processes, process.round)
                left.append(process)
        return left

    def _run_round(self, processes: Sequence[PlannedProcess]) -> bool:
        """Runs the processes of a round, case after case; whether there was time for all of them."""
        for case_id, own in groupby(processes, key=lambda planned: planned.case):
            progress = self._progress[case_id]
            before = len(progress.records)
            for process in own:
                if not self._may_begin(process):
                    progress.is_cut = True
                elif process.identity not in self._left_out and (variants := progress.choose_variants(process)):
                    self._clock(Coming(process, variants), progress)
                    self._cold -= {case_id} if process.refills else set()
                if progress.is_cut:
                    if len(progress.records) > before:  # else the record on disk is all that is known
                        self._write(progress)
                    return False
            self._write(progress)
        return True

    def _may_begin(self, process: PlannedProcess) -> bool:
        """Whether there is time for a process; of the fewest rounds, also beyond a budget that nobody gave."""
        left_s = self._left_s()
        if left_s > 0 or process.extra or left_s <= -self._overtime_s:
            return left_s > 0
        if not self._is_overtime:
            self._is_overtime = True
            most = f" for up to {self._overtime_s:g} s" if math.isfinite(self._overtime_s) else " until they are done"
            self.watcher.said(
                f"the budget of {self.budget_s:g} s is used up; the minimum rounds continue{most}, since without them "
                "all times would be lost; --budget sets a limit"
            )
        return True

    def _plan_rest(self, done: int, rest: Sequence[PlannedProcess]) -> int:
        """The last round that there is time for; what has no place in the fewest is left out.

        Args:
          done: The round that is whole now.
        """
        coming = self._list_coming(rest)
        fewest = [upcoming for upcoming in coming if not upcoming.process.extra]
        if self._settings.processes is None and self.pace.predict_s(fewest) > self._left_s():
            self._leave_out(fewest, done)
            coming = self._list_coming(rest)
        return count_rounds(coming, self.pace, self._left_s(), done=done + 1) - 1

    def _list_coming(self, rest: Sequence[PlannedProcess]) -> list[Coming]:
        """What is left of the processes to come, as far as they still look at something."""
        kept = self._without_left_out(rest)
        limited = [Coming(process, self._progress[process.case].choose_variants(process)) for process in kept]
        return [upcoming for upcoming in limited if upcoming.variants]

    def _without_left_out(self, processes: Sequence[PlannedProcess]) -> list[PlannedProcess]:
        return [process for process in processes if process.identity not in self._left_out]

    def _leave_out(self, fewest: Sequence[Coming], done: int) -> None:
        """Makes room for the fewest rounds after one that is whole, and says at whose cost."""
        left_out = leave_out(fewest, self.manifest.cases, self.pace, self._left_s())
        for case, variant, seconds in left_out.slow:
            reason = (
                f"left out: a process spends {seconds:.1f} s on it, too much for a budget of {self.budget_s:g} s; "
                "a run with a larger --budget times it"
            )
            self._starter.leave_out({TIMING: (variant,)}, done, reason, self._progress[case.id])
            self.watcher.said(f"{case.name}: {variant}: {reason}")
        for upcoming in left_out.cold:
            self._left_out.add(upcoming.process.identity)
            process, progress = upcoming.process.limit_to(upcoming.variants), self._progress[upcoming.process.case]
            self._starter.leave_out(process.assignments, process.round, NO_TIME, progress)
        if left_out.cold:
            cold = counted(len(left_out.cold), "cold process", "cold processes")
            self.watcher.said(f"{cold} left out, since the budget has no time for more; notes say which")
        for case_id in {case.id for case, *_ in left_out.slow} | {upcoming.process.case for upcoming in left_out.cold}:
            self._write(self._progress[case_id])

    def _add_processes(self) -> None:
        """Spend the remaining time on wide intervals of cases behind an answer or a published claim."""
        if self._settings.processes is not None or self._settings.level not in MOST_PROCESSES:
            return
        widths = [
            width
            for progress in self._progress.values()
            if matters(progress.case)
            and (width := measure_width(progress.case, progress.timings, self._settings)) is not None
        ]
        seconds = {width.case.id: self._predict_more_s(width.case) for width in widths}
        widths = [width for width in widths if seconds[width.case.id] is not None]
        known = {case_id: more_s for case_id, more_s in seconds.items() if more_s is not None}
        given = share_out(widths, known, self._left_s(), self._settings)
        for case_id in given:
            self._progress[case_id].looks += 1
        if given:
            more = counted(sum(given.values()), "more process", "more processes")
            self.watcher.said(f"{more} for wide intervals of {counted(len(given), 'case')}")
        for step in range(max(given.values(), default=0)):
            wanted = [self._cases[case_id] for case_id, count in given.items() if count > step]
            for case in shuffle(wanted, self._settings.seed + step):
                if not self._run_round(self._plan_more(case)):
                    return

    def _predict_more_s(self, case: PlannedCase) -> float | None:
        """What one more process of a case will take; None where it would time nothing."""
        coming = self._list_coming(self._plan_more(case))
        return self.pace.predict_s(coming) if any(not upcoming.process.refills for upcoming in coming) else None

    def _plan_more(self, case: PlannedCase) -> list[PlannedProcess]:
        """The processes of one more process, beyond those that the case has; what they load is compiled before."""
        progress = self._progress[case.id]
        index = progress.next_round
        refill = plan_refill(case, progress.processes, index) if case.id in self._cold else []
        return [*refill, *plan_more(case, self._settings, self.platforms[case.platform], index)]

    def _write(self, progress: CaseProgress) -> None:
        """Writes the case's record, as far as it is."""
        record = progress.make_record()
        write_json(self.folder.case(record.id).record, record)
        self.done[record.id] = record
        self.watcher.case_written(record)

    def _clock(self, upcoming: Coming, progress: CaseProgress) -> None:
        start = time.monotonic()
        self.watcher.process_started(upcoming.process)
        overtime_s = 0.0 if upcoming.process.extra else self._overtime_s
        allowance = ProcessAllowance(
            self.budget_s, lambda: self._left_s() + overtime_s, others_wait=self._is_waited_for(upcoming.process)
        )
        self._starter.start(upcoming.process, upcoming.variants, progress, allowance)
        seconds = time.monotonic() - start
        self.pace.add(upcoming, seconds)
        for variant, share in progress.share_blocks(upcoming.process).items():
            self.pace.add_variant(progress.case.id, variant, share * seconds)
        self.watcher.process_ended(upcoming.process, self._elapsed_s())

    def _is_waited_for(self, process: PlannedProcess) -> bool:
        """Whether a process is of a first round, and cases are in the run that need its time too."""
        others = (progress for case_id, progress in self._progress.items() if case_id != process.case)
        return process.round == 0 and not process.refills and any(progress.processes for progress in others)

    def _elapsed_s(self) -> float:
        return time.monotonic() - self._start

    def _left_s(self) -> float:
        return self.budget_s - self._elapsed_s()


FEWEST_RUNS = 2
"""Fewer cannot be compared with each other."""

MOST_RUNS = 12
"""Of 13 cases, what a quick run has, they give 156 speedups: none that differs falsely bounds the rate at 2.3 %."""

SLACK = 1.1
"""Of the longest run so far, that a further one is given: it may meet a slower minute."""


def repeat(
    make_manifest: Callable[[int], Manifest],
    folder: Path,
    servers: Servers,
    watcher: Watcher,
    budget_s: float,
    clock: Callable[[], float] = time.monotonic,
) -> list[RunRecord]:
    """At least two runs within the time, and none more after one that has lost cases to it.

    Args:
      make_manifest: Of a run by its number, from 1.
      folder: Of which each run gets a folder.
    """
    start, runs, longest_s = clock(), list[RunRecord](), 0.0
    while len(runs) < MOST_RUNS and not any(run.lost() for run in runs):
        begun = clock()
        left_s = budget_s - (begun - start)
        if len(runs) >= FEWEST_RUNS and SLACK * longest_s > left_s:
            break
        share_s = left_s / max(1, FEWEST_RUNS - len(runs))
        manifest = make_manifest(len(runs) + 1)
        runs.append(execute(manifest, RunFolder(folder / manifest.run_id), servers, watcher, share_s))
        longest_s = max(longest_s, clock() - begun)
    return runs
