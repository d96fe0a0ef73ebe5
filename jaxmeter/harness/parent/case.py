"""One case while it is measured: what its processes gave so far, and which variants the next one still looks at."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import pairwise
from typing import Self

import msgspec

from jaxmeter.harness.machine.process_settings import describe_settings
from jaxmeter.harness.metrics.statistics import VERSION
from jaxmeter.harness.metrics.within import summarise
from jaxmeter.harness.parent.pace import Coming
from jaxmeter.harness.plan.messages import Result
from jaxmeter.harness.plan.probes import PROBES
from jaxmeter.harness.plan.processes import PlannedProcess
from jaxmeter.harness.record import (
    Artifact,
    CaseRecord,
    NumericsDetails,
    Outcome,
    PlannedCase,
    ProcessRecord,
    Settings,
    Status,
    TimingDetails,
    VariantRecord,
    now,
)
from jaxmeter.harness.record.outcomes import join
from jaxmeter.harness.record.wording import counted

NOTHING_TO_COMPILE = "a target runs nothing, and without a run there is nothing to tell of a variant without a program"

SAME_PROGRAM = "not timed: it is the program that today's code compiles to"
"""Of a replay."""

BUDGET_ENDED = "the budget ended before"

ANOTHER_PROGRAM = (
    "compiled again when the run was resumed, the program is another: its processes cannot be joined; start a new run"
)


@dataclass
class CaseProgress:
    """What is known of a case.

    Args:
      processes: All that are planned of it.
      timed: Raw samples by round, a record for each process.
      rounds: How many rounds are whole.
      replaced: How many contended processes a fresh one has replaced.
      tried_again: Rounds in which a fresh process was given a try.
      replaced_in_vain: Variants of processes that were contended again.
      looks: How often its intervals were looked at to decide on more processes, and at the end.
      is_cut: Whether the budget's end left a process of it undone.
    """

    case: PlannedCase
    settings: Settings
    processes: Sequence[PlannedProcess]
    outcomes: dict[str, dict[str, Outcome]] = field(default_factory=dict)
    artifacts: list[Artifact] = field(default_factory=list)
    timed: dict[int, list[ProcessRecord]] = field(default_factory=dict)
    rounds: int = 0
    replaced: int = 0
    tried_again: set[int] = field(default_factory=set)
    replaced_in_vain: set[tuple[str, ...]] = field(default_factory=set)
    looks: int = 1
    used_s: float = 0.0
    is_cut: bool = False

    def __post_init__(self) -> None:
        self._started = now()
        self.outcomes = {item.name: {} for item in self.case.variants}
        for item in self.case.variants:
            if item.skip is not None:
                self.outcomes[item.name]["numerics"] = Outcome(status=Status.SKIPPED, reason=item.skip)
        self._planned = {
            (probe, name) for one in self.processes for probe in one.probes for name in one.assignments[probe]
        }
        for name in self.outcomes.keys() - {name for _, name in self._planned}:
            self.outcomes[name].setdefault("numerics", Outcome(status=Status.UNSUPPORTED, reason=NOTHING_TO_COMPILE))
        self._broken: set[tuple[str, str, str]] = set()  # process, variant and cache state that ended badly
        self._cold_left_out: dict[tuple[str, str], int] = {}  # by probe and variant
        self._lost: dict[tuple[str, str], str] = {}  # why, by probe and variant

    @classmethod
    def go_on(
        cls,
        case: PlannedCase,
        settings: Settings,
        processes: Sequence[PlannedProcess],
        record: CaseRecord,
        kept: Iterable[ProcessRecord],
        replaced: int,
    ) -> Self:
        """What an interrupted run has left of a case. Of what it left out, the timing goes on.

        Args:
          kept: Raw samples of the rounds that are whole.
          replaced: How many processes others have replaced.
        """
        progress = cls(case, settings, processes)
        progress._started, progress.used_s = record.started, record.elapsed_s
        progress.rounds = max(0, record.rounds or 0)
        progress.artifacts, progress.replaced = list(record.artifacts), replaced
        cache_states = {process.cache_state for process in processes}
        for variant in record.variants:
            for probe, outcome in variant.outcomes.items():
                if isinstance(outcome.details, TimingDetails):
                    progress.looks = max(progress.looks, outcome.details.looks or 1)
                    continue  # summed up anew from the samples
                if outcome.status is Status.LOST:
                    continue  # looked at again
                progress.outcomes[variant.name][probe] = outcome
                if outcome.status is not Status.OK:
                    progress._broken |= {
                        (PROBES[probe].process, variant.name, cache_state) for cache_state in cache_states
                    }
        for samples in kept:
            progress._keep_samples(tuple(name for name, one in PROBES.items() if one.keeps_samples), samples)
        return progress

    def choose_variants(self, process: PlannedProcess) -> tuple[str, ...]:
        """The variants that a process still has to look at."""
        if process.refills:
            return tuple(name for name in process.variants if self._status("numerics", name) is Status.OK)
        return tuple(name for name in process.variants if self._goes_on(name, process))

    def has_samples(self, process: PlannedProcess) -> bool:
        """Whether raw samples of a timing process are there."""
        found = {item.variant for record in self.timed.get(process.round, ()) for item in record.variants}
        return not found.isdisjoint(process.variants)

    def keep(self, process: PlannedProcess, result: Result) -> None:
        """Adds what a process found."""
        if process.refills:
            self._compare_programs(result)
            return
        self.artifacts += result.artifacts
        for variant, outcomes in result.outcomes.items():
            for probe, outcome in outcomes.items():
                # Of timing the samples are summed up anew after every process; a failure ends that.
                before = None if PROBES[probe].keeps_samples else self.outcomes[variant].get(probe)
                self.outcomes[variant][probe] = join(before, outcome)
                if outcome.status is not Status.OK:
                    self._broken.add((PROBES[probe].process, variant, process.cache_state))
        self._leave_out_equal_replays(result)
        if result.process is not None:
            self._keep_samples(process.probes, result.process)

    def _leave_out_equal_replays(self, result: Result) -> None:
        """Times no kept program that is today's: they would differ by chance alone."""
        for item in self.case.variants:
            if item.replays is None or item.same_as is None or "numerics" not in result.outcomes.get(item.name, {}):
                continue
            sides = [find_fingerprint(self.outcomes[name]) for name in (item.name, item.same_as)]
            if None not in sides and sides[0] == sides[1]:
                self.stop_timing(item.name, Outcome(status=Status.SKIPPED, reason=SAME_PROGRAM))

    def stop_timing(self, variant: str, outcome: Outcome) -> None:
        """Times a variant no more, nor tells what its few processes say."""
        for probe, row in PROBES.items():
            if row.keeps_samples and probe in self.settings.probes:
                self.outcomes[variant][probe] = outcome
                self._broken |= {(row.process, variant, process.cache_state) for process in self.processes}

    def leave_out(self, variant: str, reason: str) -> None:
        """Times a variant no more in this execution."""
        names = [{item.variant for one in records for item in one.variants} for records in self.timed.values()]
        details = TimingDetails(processes=sum(variant in found for found in names))
        self.stop_timing(variant, Outcome(status=Status.SKIPPED, reason=reason, details=details))

    def cut(
        self, process: PlannedProcess, variants: Iterable[str], at: str | None = None, reason: str = BUDGET_ENDED
    ) -> None:
        """Notes what a process leaves undone since the budget ended.

        Args:
          at: The variant that the process was at, which has the reason; all have it where that is none.
        """
        self.is_cut = True
        for probe, names in process.assignments.items():
            for name in set(names).intersection(variants):
                self._lost[probe, name] = reason if at in (name, None) else BUDGET_ENDED

    def mark_lost(self) -> None:
        """Gives what the budget did not reach in a first round that is not whole an outcome that says so."""
        lost = {
            (probe, name): self._lost.get((probe, name), BUDGET_ENDED)
            for process in self.processes
            if not process.refills
            for name in self.choose_variants(process)
            for probe in process.probes
            if name in process.assignments[probe] and probe not in self.outcomes[name]
        }
        for (probe, name), reason in lost.items():
            self.outcomes[name][probe] = Outcome(status=Status.LOST, reason=reason)

    def keep_state(self) -> Callable[[], None]:
        """Return what takes back all that a round adds from here on: a resumed run repeats the whole round."""
        outcomes = {name: dict(found) for name, found in self.outcomes.items()}
        timed = {index: list(records) for index, records in self.timed.items()}
        artifacts, replaced = list(self.artifacts), self.replaced

        def restore() -> None:
            self.outcomes, self.timed, self.artifacts, self.replaced = outcomes, timed, artifacts, replaced

        return restore

    def leave_out_cold(self, one: Coming) -> None:
        """Counts a cold process that is not run."""
        for probe, names in one.process.assignments.items():
            for name in set(names).intersection(one.variants):
                self._cold_left_out[probe, name] = self._cold_left_out.get((probe, name), 0) + 1

    def share_blocks(self, process: PlannedProcess) -> dict[str, float]:
        """What part each variant had of the blocks of a timing process: about what it took of the whole process."""
        found = {
            item.variant: sum(block.wall_s for block in item.blocks)
            for record in self.timed.get(process.round, ())
            for item in record.variants
            if item.variant in process.variants
        }
        whole_s = sum(found.values())
        return {variant: wall_s / whole_s for variant, wall_s in found.items()} if whole_s > 0 else {}

    @property
    def timings(self) -> list[Outcome]:
        """How the timing of each variant ended so far."""
        return [
            outcome
            for outcomes in self.outcomes.values()
            for probe, outcome in outcomes.items()
            if PROBES[probe].keeps_samples
        ]

    def make_record(self) -> CaseRecord:
        """The case's record, as far as it is measured."""
        return CaseRecord(
            id=self.case.id,
            name=self.case.name,
            started=self._started,
            elapsed_s=round(self.used_s, 3),
            processes=len(self.timed),
            variants=tuple(
                VariantRecord(name=name, outcomes={probe: self._conclude(probe, name) for probe in outcomes})
                for name, outcomes in self.outcomes.items()
            ),
            artifacts=tuple(self.artifacts),
            notes=describe_settings(self.case.config, {}),
            statistics_version=VERSION,
            rounds=self.rounds,
            process_gap_s=self._find_gap_s(),
        )

    def _find_gap_s(self) -> float | None:
        """Seconds from the start of one timing process to that of the next, their median; None of a single one."""
        started = [min(one.started for one in self.timed[index]) for index in sorted(self.timed)]
        moments = sorted(map(datetime.fromisoformat, started))
        gaps = [(after - before).total_seconds() for before, after in pairwise(moments)]
        return statistics.median(gaps) if gaps else None

    def _conclude(self, probe: str, variant: str) -> Outcome:
        """The outcome as it is recorded: lost where it was timed too seldom, with a note on processes left out."""
        outcome, fewest = self.outcomes[variant][probe], self.settings.fewest_rounds or 0
        details = outcome.details
        if isinstance(details, TimingDetails) and outcome.status is Status.OK and details.processes < fewest:
            why = f"; {lost}" if (lost := self._lost.get((probe, variant))) else ""
            reason = f"timed by {details.processes} of at least {fewest} processes{why}"
            return msgspec.structs.replace(outcome, status=Status.LOST, reason=reason)
        if count := self._cold_left_out.get((probe, variant)):
            note = f"{counted(count, 'cold process', 'cold processes')} left out: the budget had no time for more"
            return msgspec.structs.replace(outcome, notes=(*outcome.notes, note))
        return outcome

    def _goes_on(self, variant: str, process: PlannedProcess) -> bool:
        """Whether what must have ended well before has, and nothing of this kind went wrong: it would again."""
        after = {name for probe in process.probes for name in PROBES[probe].after}
        return (process.kind, variant, process.cache_state) not in self._broken and all(
            self._status(probe, variant) is Status.OK for probe in after if (probe, variant) in self._planned
        )

    def _status(self, probe: str, variant: str) -> Status:
        outcome = self.outcomes[variant].get(probe)
        return Status.LOST if outcome is None else outcome.status

    def _keep_samples(self, probes: Sequence[str], samples: ProcessRecord) -> None:
        """Adds raw samples, and sums up each variant's timing anew."""
        self.timed.setdefault(samples.index, []).append(samples)
        rounds = [self.timed[index] for index in sorted(self.timed)]
        seen = {item.variant for records in rounds for one in records for item in one.variants}
        for probe in probes:
            for name in seen:
                if self._status(probe, name) in (Status.OK, Status.LOST):  # not broken since
                    outcome = summarise(rounds, name, self.case.baseline)
                    assert isinstance(outcome.details, TimingDetails)
                    details = msgspec.structs.replace(outcome.details, replaced=self.replaced, looks=self.looks)
                    self.outcomes[name][probe] = msgspec.structs.replace(outcome, details=details)

    def _compare_programs(self, result: Result) -> None:
        """Gives up the timing of a variant that has another program since the run was resumed, or none any more."""
        for variant, outcomes in result.outcomes.items():
            failed = next((one for one in outcomes.values() if one.status is not Status.OK), None)
            sides = [find_fingerprint(one) for one in (self.outcomes[variant], outcomes)]
            if failed is not None:
                self.stop_timing(variant, failed)
            elif None not in sides and sides[0] != sides[1]:
                self.stop_timing(variant, Outcome(status=Status.FAILED, reason=ANOTHER_PROGRAM))


def find_fingerprint(outcomes: dict[str, Outcome]) -> str | None:
    """Of the program that was checked, and that timing processes load."""
    found = (one.details.fingerprint for one in outcomes.values() if isinstance(one.details, NumericsDetails))
    return next(found, None)
