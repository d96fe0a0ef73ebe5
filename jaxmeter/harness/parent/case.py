"""One case while it is measured: what its processes say so far, and which variants the next one still looks at."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import msgspec

from jaxmeter.document import numbers
from jaxmeter.harness.machine.interference import describe_settings
from jaxmeter.harness.metrics.reading import Variant, read_case
from jaxmeter.harness.metrics.statistics import Interval
from jaxmeter.harness.metrics.summary import TIMING, find_outcomes, summarise_case
from jaxmeter.harness.plan.messages import Result
from jaxmeter.harness.plan.probes import CHECK, PROBES
from jaxmeter.harness.plan.processes import SHAPES, PlannedProcess
from jaxmeter.harness.record import (
    SCHEMA_VERSION,
    CaseRecord,
    Manifest,
    Outcome,
    PlannedCase,
    ProcessRecord,
    Settings,
    Status,
    now,
)
from jaxmeter.harness.record.processes import LEFT_OUT


def describe_estimate(manifest: Manifest, record: CaseRecord) -> str:
    """Return `scan:jit 3.1× ± 8 %`: the speedup of a variant that the suite's answer names, or else the first speedup.

    For a case without a speedup, return the time of a variant, such as `step:jit 12.3 ms ± 4 %`; empty without a time.
    The half-width is that of the shown interval, from the processes of this case alone.
    """
    planned = next(case for case in manifest.cases if case.id == record.id)
    case = read_case(planned, record, manifest.environments[planned.platform], manifest.settings)
    answering = () if case.planned.answer is None else case.planned.answer.variants
    variants = sorted(case.shown, key=lambda variant: variant.planned.name not in answering)
    return next(_list_estimates(variants), "")


def _list_estimates(variants: list[Variant]) -> Iterator[str]:
    """Yield each speedup, then each time."""
    for variant in variants:
        if not variant.is_baseline and (speedup := variant.read("speedup").interval) is not None:
            yield f"{variant.planned.name} {numbers.speedup(speedup.estimate)}{_write_half(speedup)}"
    for variant in variants:
        if (time := variant.read("execution_s").interval) is not None:
            yield f"{variant.planned.name} {numbers.time(time.estimate)}{_write_half(time)}"


def describe_seconds(seconds: float) -> str:
    """Return an approximate duration as text, such as `40 s` or `12 min`."""
    return f"{seconds:.0f} s" if seconds < 100 else f"{seconds / 60:.0f} min"


def _write_half(interval: Interval) -> str:
    """Return the half-width above the estimate as text; empty without bounds."""
    if interval.high is None or not math.isfinite(interval.high) or interval.estimate <= 0:
        return ""
    return f" ± {numbers.percent(interval.high / interval.estimate - 1)}"


BUDGET_ENDED = "the budget ended before"


@dataclass
class CaseProgress:
    """What is known of a case.

    Args:
      processes: All that are planned of it.
      records: What its processes say, in their order; of a run that goes on with what it has left.
      tried_again: Rounds in which a fresh process was given a try.
      replaced_in_vain: Variants of processes that were contended again.
      looks: How often its intervals were looked at to decide on more processes, and at the end.
      is_cut: Whether the budget's end left a process of it undone.
    """

    case: PlannedCase
    settings: Settings
    processes: Sequence[PlannedProcess]
    records: list[ProcessRecord] = field(default_factory=list)
    tried_again: set[int] = field(default_factory=set)
    replaced_in_vain: set[tuple[str, ...]] = field(default_factory=set)
    is_cut: bool = False

    def __post_init__(self) -> None:
        self._begun = now()
        self.plan: dict[str, tuple[str, ...]] = {}
        for process in self.processes:
            if process.kind != SHAPES:  # other processes report what it leaves out
                for probe, names in process.assignments.items():
                    self.plan[probe] = tuple(dict.fromkeys((*self.plan.get(probe, ()), *names)))
        self.looks = max((record.looks for record in self.records), default=1)
        self._sum_up()

    def add(self, record: ProcessRecord) -> None:
        """Add what a process has left."""
        self.records.append(record)
        self._sum_up()

    def _sum_up(self) -> None:
        self.outcomes = find_outcomes(self.case, self.settings, self.records)
        self._done: set[tuple[str, int, str, str, str]] = set()  # kind, round and cache state; probe and variant
        self._broken: set[tuple[str, str, str]] = set()  # process, variant and cache state that ended badly
        for record in self.records:
            if record.refills:
                continue
            lost, how = set(), (record.kind, record.index, record.cache_state)
            for name, by_probe in record.outcomes.items():
                for probe, outcome in by_probe.items():
                    if outcome.status is Status.LOST:
                        lost.add((probe, name))
                    elif outcome.status is not Status.OK and probe in PROBES:
                        self._broken.add((PROBES[probe].process, name, record.cache_state))
            looked_at = {(probe, name) for probe, names in record.assignments.items() for name in names}
            self._done |= {(*how, probe, name) for probe, name in looked_at - lost}
        for name in self.outcomes:
            if self._status(TIMING, name) not in (Status.OK, Status.LOST):
                self._broken.add((PROBES[TIMING].process, name, ""))

    def choose_variants(self, process: PlannedProcess) -> tuple[str, ...]:
        """Return the variants that a process still has to look at."""
        if process.refills:
            return tuple(name for name in process.variants if self._status("numerics", name) is Status.OK)
        return tuple(name for name in self._list_left(process) if self._list_before(process, name) <= {Status.OK})

    def lacks(self, process: PlannedProcess) -> bool:
        """Return whether a process has something to look at, or may have once others have ended well."""
        return any(self._list_before(process, name) <= {Status.OK, Status.LOST} for name in self._list_left(process))

    @property
    def is_checked(self) -> bool:
        """Whether a check has ended, so that a run that goes on fills its compilation cache by another."""
        return any(record.kind == CHECK for record in self.records)

    def make_record_of(
        self,
        process: PlannedProcess,
        variants: Iterable[str],
        result: Result,
        *,
        started: str,
        elapsed_s: float,
        seed: int,
    ) -> ProcessRecord:
        """Return the record of a process.

        Args:
          variants: The variants whose outcomes the process reports.
        """
        samples = result.process or ProcessRecord(
            schema_version=SCHEMA_VERSION, case=self.case.id, index=process.round, seed=seed, started=started
        )
        return msgspec.structs.replace(
            samples,
            case=self.case.id,
            kind=process.kind,
            assignments=process.limit_to(tuple(variants)).assignments,
            cache_state=process.cache_state,
            refills=process.refills,
            looks=self.looks,
            plan=self.plan,
            outcomes=result.outcomes,
            artifacts=() if process.refills else result.artifacts,
            notes=describe_settings(self.case.config, {}),
            elapsed_s=round(elapsed_s, 3),
        )

    def leave_out(self, assignments: dict[str, tuple[str, ...]], index: int, reason: str) -> ProcessRecord:
        """Return that something is not looked at in this execution.

        Args:
          index: The round that it would have belonged to.
        """
        return ProcessRecord(
            schema_version=SCHEMA_VERSION,
            case=self.case.id,
            index=index,
            seed=self.settings.seed,
            started=now(),
            kind=LEFT_OUT,
            assignments=assignments,
            left_out=reason,
            looks=self.looks,
            plan=self.plan,
        )

    def share_blocks(self, process: PlannedProcess) -> dict[str, float]:
        """What part each variant had of the blocks of a timing process: about what it took of the whole process."""
        walls_s = {
            item.variant: sum(block.wall_s for block in item.blocks)
            for record in self.records
            for item in record.variants
            if record.index == process.round and item.variant in process.variants
        }
        whole_s = sum(walls_s.values())
        return {variant: wall_s / whole_s for variant, wall_s in walls_s.items()} if whole_s > 0 else {}

    @property
    def next_round(self) -> int:
        """The round of one more timing process."""
        return max((record.index for record in self.records if record.variants), default=-1) + 1

    @property
    def timings(self) -> list[Outcome]:
        """How the timing of each variant ended so far."""
        return [by_probe[TIMING] for by_probe in self.outcomes.values() if TIMING in by_probe]

    def make_record(self) -> CaseRecord:
        """The case's record, as far as it is measured."""
        return summarise_case(self.case, self.settings, self.records, plan=self.plan, begun=self._begun)

    def _list_left(self, process: PlannedProcess) -> list[str]:
        """The variants of a process that it has not looked at, and of which nothing of its kind went wrong."""
        how = (process.kind, process.round, process.cache_state)
        return [
            name
            for name in process.variants
            if (process.kind, name, process.cache_state) not in self._broken
            and any((*how, probe, name) not in self._done for probe, of in process.assignments.items() if name in of)
        ]

    def _list_before(self, process: PlannedProcess, variant: str) -> set[Status]:
        """How what must have ended well before has ended, where it is planned."""
        before = {name for probe in process.probes for name in PROBES[probe].after}
        return {self._status(probe, variant) for probe in before if variant in self.plan.get(probe, ())}

    def _status(self, probe: str, variant: str) -> Status:
        outcome = self.outcomes[variant].get(probe)
        return Status.LOST if outcome is None else outcome.status


def lose(process: PlannedProcess, variants: Iterable[str], at: str | None, reason: str) -> Result:
    """Return that the budget has ended a process.

    Args:
      at: The variant that it was at, which has the reason; all have it where that is none.
    """
    return Result(
        outcomes={
            name: {
                probe: Outcome(status=Status.LOST, reason=reason if at in (name, None) else BUDGET_ENDED)
                for probe, names in process.assignments.items()
                if name in names
            }
            for name in variants
        }
    )
