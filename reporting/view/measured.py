"""From records to intervals: every planned variant of every run, with its status and what was measured of it."""

from __future__ import annotations

import hashlib
import math
import statistics as summaries
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import zip_longest

from harness.record import (
    DOES_NOT_FIT,
    INCOMPLETE,
    Buffer,
    CaseRecord,
    Outcome,
    PlannedCase,
    PlannedVariant,
    Run,
    Status,
    statistics,
)
from harness.record.statistics import Interval

from ..compare.statistics import compare_unpaired
from ..load import name_runs
from ..numbers import usable

STAGES = ("trace_s", "lower_s", "compile_s", "first_call_s")
"""The way from a Python function to its first result; together they are the cold time."""

SHORTEST_S, LONGEST_S = 1e-12, 1e9
LARGEST_LOG_RATIO = 50.0
LARGEST_COUNT = 2.0**62
"""Beyond these a value is a damaged file, not a measurement: a picosecond, thirty years, 10^21 times, an exbibyte."""

DECISIVE_PROBES = frozenset({"", "numerics", "timing"})
"""Where one of these was skipped or is unsupported, so is the variant; the empty name stands for the variant itself."""

WITH_NOTES_OF_THEIR_OWN = frozenset({"compilation", "caching", "memory"})
"""Probes with a section that shows their notes."""

LOST_VARIANT = "no record of this variant in its case"

_SYMBOLS = {"cpu": "●", "gpu": "■", "tpu": "▲"}
_OTHER_SYMBOL = "◆"


@dataclass(frozen=True)
class Place:
    """A run as a reader names it: by backend, then by device, then by run id, as far as needed to tell it apart."""

    run: Run
    run_id: str
    label: str

    @property
    def level(self) -> float:
        """Confidence of this run's intervals."""
        return self.run.manifest.settings.confidence

    @property
    def looks(self) -> int:
        """How often timing launches were looked at to decide whether to go on."""
        return max(1, len(self.run.manifest.settings.looks))


@dataclass(frozen=True, eq=False)
class Variant:
    """A planned variant and its outcomes by probe."""

    case: Case
    planned: PlannedVariant
    outcomes: dict[str, Outcome]

    @property
    def status(self) -> Status:
        """How the variant ended as a whole."""
        return self.worst[1].status

    @cached_property
    def worst(self) -> tuple[str, Outcome]:
        """The probe that ended worst, and how. That another library has no compiler to probe says nothing bad of it."""
        order = list(Status)
        weighed = {
            probe: outcome
            for probe, outcome in self.outcomes.items()
            if outcome.status in INCOMPLETE or probe in DECISIVE_PROBES
        }
        return max((weighed or self.outcomes).items(), key=lambda item: order.index(item[1].status))

    @property
    def alike(self) -> tuple[tuple[tuple[str, ...], Outcome], ...]:
        """Probes that ended for the same reason, with one outcome to stand for them."""
        groups: dict[tuple[object, ...], tuple[tuple[str, ...], Outcome]] = {}
        for probe, outcome in self.outcomes.items():
            key = (outcome.status, outcome.reason, outcome.stderr)
            probes, first = groups.get(key, ((), outcome))
            groups[key] = ((*probes, probe), first)
        return tuple(groups.values())

    @property
    def is_baseline(self) -> bool:
        """Whether the case's speed-ups refer to this variant."""
        return self.planned.name == self.case.planned.baseline

    @cached_property
    def is_wrong(self) -> bool:
        """Whether any probe found a wrong result; such a variant has no speed."""
        return any(outcome.status is Status.WRONG for outcome in self.outcomes.values())

    @property
    def notes(self) -> tuple[str, ...]:
        """What was noted beside the time and the result, each once."""
        probes = [probe for probe in self.outcomes if probe not in WITH_NOTES_OF_THEIR_OWN]
        return tuple(dict.fromkeys(note for probe in probes for note in self.notes_of(probe)))

    def notes_of(self, probe: str) -> tuple[str, ...]:
        """What one probe noted beside its numbers."""
        outcome = self.outcomes.get(probe)
        return () if outcome is None else outcome.notes

    @cached_property
    def does_not_fit(self) -> bool:
        """Whether it was not run since it needs more memory than its device has."""
        return any(map(does_not_fit, self.outcomes.values()))

    @property
    def is_contended(self) -> bool:
        """Whether the timing had too few undisturbed blocks."""
        timing = self.outcomes.get("timing")
        return timing is not None and timing.contended

    @property
    def has_contended_gain(self) -> bool:
        """Whether the gain rests on a contended time: a peer's does, since it is not timed beside its baseline."""
        baseline = self.case.baseline
        rests = self.is_peer and not self.is_baseline
        return rests and (self.is_contended or (baseline is not None and baseline.is_contended))

    @property
    def is_peer(self) -> bool:
        """Whether it is of another library, and not timed beside the others: a busy moment does not hit both."""
        return self.planned.mode == "native"

    @cached_property
    def time(self) -> Interval | None:
        """Seconds per call; None where there is none to show."""
        return self._interval("execution_s")

    @cached_property
    def dispatch(self) -> Interval | None:
        """Seconds until a call returns."""
        return self._interval("dispatch_s")

    @cached_property
    def log_ratios(self) -> tuple[float | None, ...]:
        """By launch, against the baseline variant; the baseline itself is 0 where it was timed."""
        if self.time is None:
            return ()
        if self.is_baseline:
            return tuple(None if value is None else 0.0 for value in self._values("execution_s"))
        return tuple(_between(value, -LARGEST_LOG_RATIO, LARGEST_LOG_RATIO) for value in self._values("log_ratio"))

    @cached_property
    def speedup(self) -> Interval | None:
        """Over the baseline variant; None for the baseline itself, and where the baseline is wrong or has no time."""
        baseline = self.case.baseline
        if self.is_baseline or baseline is None or baseline.time is None:
            return None
        return self._ratio(_present(self.log_ratios))

    def speedup_over(self, other: Variant) -> Interval | None:
        """Over another variant of the case: the launches' ratios against the baseline, subtracted pair by pair."""
        pairs = zip(self.log_ratios, other.log_ratios, strict=False)
        return self._ratio([mine - theirs for mine, theirs in pairs if mine is not None and theirs is not None])

    def sizes(self, metric: str, probe: str) -> list[float]:
        """A time, size, count or error in each of a probe's processes that has one."""
        outcome = self.outcomes.get(probe)
        values = () if outcome is None else outcome.values.get(metric, ())
        return _present(map(size_of, values))

    def typical(self, metric: str, probe: str) -> float | None:
        """The median over a probe's processes of a time, size, count or error."""
        known = self.sizes(metric, probe)
        return summaries.median(known) if known else None

    def change(self, metric: str, probe: str) -> float | None:
        """The first of a probe's values that may be below 0, such as a saving."""
        outcome = self.outcomes.get(probe)
        values = () if outcome is None else outcome.values.get(metric, ())
        return _between(values[0], -LARGEST_COUNT, LARGEST_COUNT) if values else None

    def most(self, metric: str, probe: str) -> float | None:
        """The largest over a probe's processes: of what should be the same in all, or should not be at all."""
        return max(self.sizes(metric, probe), default=None)

    def cold_times(self, metric: str, probe: str) -> list[float]:
        """Seconds in each cold process that has some."""
        return _present(self._by_process(metric, probe))

    def cold_time(self, metric: str, probe: str) -> Interval | None:
        """Seconds over cold processes; nobody looked at them to decide whether to go on."""
        return self._over_processes(self.cold_times(metric, probe))

    def cold_ratio(self, metric: str, other: str, probe: str) -> Interval | None:
        """How many times as long the one takes as the other, which was measured in other processes."""
        level = self.case.place.level
        return unpaired_ratio(self.cold_times(metric, probe), self.cold_times(other, probe), level)

    @cached_property
    def stages(self) -> tuple[Interval | None, ...]:
        """Seconds of each of STAGES over cold processes."""
        return tuple(self.cold_time(stage, "compilation") for stage in STAGES)

    @cached_property
    def compile_total(self) -> Interval | None:
        """The stages before the first call; None where one is missing."""
        return None if None in self.stages[:-1] else self._together(STAGES[:-1])

    @cached_property
    def cold(self) -> Interval | None:
        """Seconds until the first result in a cold process: the stages that this mode has."""
        return self._over_processes(self.first_results)

    @cached_property
    def first_results(self) -> list[float]:
        """The same for each process; empty without a first call."""
        if self.stages[-1] is None:
            return []
        return self._sums([name for name, stage in zip(STAGES, self.stages, strict=True) if stage is not None])

    @property
    def processes(self) -> int:
        """How many cold processes its times are of."""
        return max((stage.count for stage in self.stages if stage is not None), default=0)

    @property
    def fingerprints(self) -> tuple[str, ...]:
        """Of the optimised programs that its cold processes compiled."""
        outcome = self.outcomes.get("compilation")
        return () if outcome is None else outcome.fingerprints

    @property
    def buffers(self) -> tuple[Buffer, ...]:
        """The largest of its program."""
        outcome = self.outcomes.get("memory")
        return () if outcome is None else outcome.buffers

    @property
    def key(self) -> str:
        """An id for links, from what names the variant."""
        return _key("v", self.case.place.run_id, self.case.planned.id, self.planned.name)

    def _values(self, metric: str) -> tuple[int | float | None, ...]:
        timing = self.outcomes.get("timing")
        return () if timing is None or timing.status is not Status.OK else timing.values.get(metric, ())

    def _by_process(self, metric: str, probe: str) -> list[float | None]:
        outcome = self.outcomes.get(probe)
        values = () if outcome is None else outcome.values.get(metric, ())
        return [_between(value, SHORTEST_S, LONGEST_S) for value in values]

    def _together(self, stages: Iterable[str]) -> Interval | None:
        """The sum of some stages over cold processes."""
        return self._over_processes(self._sums(stages))

    def _sums(self, stages: Iterable[str]) -> list[float]:
        """The sum of some stages in each cold process; one that lacks a stage has no sum."""
        processes = zip_longest(*(self._by_process(stage, "compilation") for stage in stages))
        return _present(map(_total, processes))

    def _over_processes(self, times: Sequence[float]) -> Interval | None:
        return _interval(statistics.geometric_interval, times, self.case.place.level, looks=1)

    def _interval(self, metric: str) -> Interval | None:
        if self.is_wrong:
            return None
        times = _present(_between(value, SHORTEST_S, LONGEST_S) for value in self._values(metric))
        return _interval(statistics.geometric_interval, times, self.case.place.level, looks=self.case.place.looks)

    def _ratio(self, log_ratios: Sequence[float]) -> Interval | None:
        return _interval(statistics.speedup, log_ratios, self.case.place.level, looks=self.case.place.looks)


@dataclass(frozen=True, eq=False)
class Case:
    """A planned case of one run. A case without a record is lost."""

    place: Place
    planned: PlannedCase
    record: CaseRecord | None

    @cached_property
    def variants(self) -> tuple[Variant, ...]:
        """Every planned variant: the baseline first, then in the order of the plan."""
        ordered = sorted(self.planned.variants, key=lambda variant: variant.name != self.planned.baseline)
        return tuple(Variant(self, variant, self._outcomes(variant)) for variant in ordered)

    @cached_property
    def baseline(self) -> Variant | None:
        """The variant that speed-ups refer to."""
        return next((variant for variant in self.variants if variant.is_baseline), None)

    @cached_property
    def is_complete(self) -> bool:
        """Whether nothing failed, is wrong or is missing."""
        return self.record is not None and not any(variant.status in INCOMPLETE for variant in self.variants)

    @property
    def is_lost(self) -> bool:
        """Whether the run left no record of it."""
        return self.record is None

    @property
    def key(self) -> str:
        """An id for links."""
        return _key("c", self.place.run_id, self.planned.id)

    @property
    def label(self) -> str:
        """The case and where it ran."""
        return f"{self.planned.name} · {self.place.label}"

    @property
    def why_lost(self) -> str:
        """Why a case has no record."""
        if (stopped := self.place.run.stopped) is not None:
            return f"no record: the run stopped before it, since {stopped}; --resume goes on with the run"
        return "no record: the run ended before the case did, or its case.json cannot be read"

    def _outcomes(self, variant: PlannedVariant) -> dict[str, Outcome]:
        recorded = (
            next((one for one in self.record.variants if one.name == variant.name), None) if self.record else None
        )
        outcomes = recorded.outcomes if recorded is not None else {}
        if variant.skip is not None and all(one.status is Status.SKIPPED for one in outcomes.values()):
            # Said once: the same reason for every probe would be repetition.
            return {"": Outcome(status=Status.SKIPPED, reason=variant.skip)}
        if outcomes:
            return outcomes
        return {"": Outcome(status=Status.LOST, reason=self.why_lost if self.record is None else LOST_VARIANT)}


def places(runs: Sequence[Run]) -> tuple[Place, ...]:
    """A place for each run, with labels that tell them apart."""
    ids = name_runs(runs)
    short = [f"{_SYMBOLS.get(run.manifest.backend, _OTHER_SYMBOL)} {run.manifest.backend}" for run in runs]
    devices = [f"{label} · {device(run)}" for label, run in zip(short, runs, strict=True)]
    labels = []
    for index, run_id in enumerate(ids):
        if Counter(short)[short[index]] == 1:
            labels.append(short[index])
        elif Counter(devices)[devices[index]] == 1:
            labels.append(devices[index])
        else:
            labels.append(f"{short[index]} · {run_id}")
    return tuple(Place(*parts) for parts in zip(runs, ids, labels, strict=True))


def device(run: Run) -> str:
    """What the run was made on: the processor where that is the device."""
    environment = run.manifest.environment
    if run.manifest.backend == "cpu":
        return environment.processor
    many = f"{environment.device_count} × " if environment.device_count != 1 else ""
    return f"{many}{environment.device_kind}"


def measured(all_places: Sequence[Place]) -> tuple[Case, ...]:
    """Every planned case of every run, by suite and name, then by run."""
    cases = []
    for place in all_places:
        records = {record.id: record for record in place.run.cases}
        cases += [Case(place, planned, records.get(planned.id)) for planned in place.run.manifest.cases]
    return tuple(sorted(cases, key=lambda case: (case.planned.suite, case.planned.workload)))


def unpaired_ratio(above: Sequence[float], below: Sequence[float], level: float) -> Interval | None:
    """How many times the one's processes have what the other's have; None where one side has no values, all > 0."""
    if not above or not below:
        return None
    try:
        return compare_unpaired(above, below, confidence=level)
    except OverflowError:
        return compare_unpaired([summaries.median(above)], [summaries.median(below)])


def size(case: PlannedCase) -> tuple[float, float]:
    """How much a case works on, to find the largest of a suite: by declared bytes or operations, then by its params."""
    declared = usable(None if case.cost is None else case.cost.bytes or case.cost.flops)
    numbers = [usable(value) for value in case.params.values() if isinstance(value, int | float)]
    return declared or 0.0, math.fsum(math.log2(abs(number)) for number in numbers if number)


def size_of(value: int | float | None) -> float | None:
    """A size or count as it may have been measured, else None."""
    return _between(value, 0.0, LARGEST_COUNT)


def does_not_fit(outcome: Outcome) -> bool:
    """Whether a probe was left out since the program needs more memory than its device has."""
    return outcome.status is Status.UNSUPPORTED and (outcome.reason or "").startswith(DOES_NOT_FIT)


def _interval(
    rule: Callable[..., Interval], values: Sequence[float], confidence: float, *, looks: int
) -> Interval | None:
    if not values:
        return None
    try:
        return rule(values, confidence=confidence, looks=looks)
    except OverflowError:
        # Launches that differ by more than a float can hold have a middle, but no bounds to show.
        return rule([summaries.median(values)])


def _total(values: Sequence[float | None]) -> float | None:
    known = _present(values)
    return math.fsum(known) if len(known) == len(values) else None


def _present(values: Iterable[float | None]) -> list[float]:
    return [value for value in values if value is not None]


def _between(value: int | float | None, low: float, high: float) -> float | None:
    number = usable(value)
    return number if number is not None and low <= number <= high else None


def _key(kind: str, *names: str) -> str:
    return f"{kind}-{hashlib.sha256(repr(names).encode()).hexdigest()[:12]}"
