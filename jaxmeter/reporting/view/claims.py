"""Claims that others published, each beside the same of ours: which claim meets which case, and what ours lacks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from jaxmeter.harness.metrics.derived import compare_paired, doubt_ratio, find_withheld
from jaxmeter.harness.metrics.metric import Metric, Reading, Unit
from jaxmeter.harness.metrics.reading import Case, Run, Variant
from jaxmeter.harness.metrics.statistics import FEWEST_PROCESSES, Interval
from jaxmeter.harness.metrics.table import METRICS
from jaxmeter.harness.record import Figure, Published

from .. import numbers
from ..compare.claims import ClaimJudgement, ClaimVerdict, Reason, judge_count, judge_exponent, judge_ratio
from ..compare.ratios import divide_readings
from ..text import counted
from ..write import write
from .cases import label_case
from .reasons import describe_fault
from .sweeps import FEWEST_SIZES, PARAM, Sweep, group_cases, list_slopes

TIME = "execution_s"
"""The metric whose ratios are paired by process."""

_COMPARED = (Unit.SECONDS, Unit.COUNT, Unit.FLOP, Unit.BYTES)


class Kind(StrEnum):
    """What a claim's number is."""

    RATIO = "ratio"
    COUNT = "count"
    EXPONENT = "exponent"
    OTHER = "other"


@dataclass(frozen=True, eq=False)
class JudgedClaim:
    """A claim beside ours.

    Args:
      where: The case, or the workload, and the run.
      theirs: Their ratio, count or exponent; None where their figures have none.
      ours: The same of ours; None where there is none.
      exact: Whether ours is of counts that were the same in all processes.
      reason: Why the verdict is none, or what to know of it; may be empty.
    """

    claim: Published
    kind: Kind
    run: Run
    where: str
    theirs: float | None
    ours: Interval | None = None
    verdict: ClaimVerdict = ClaimVerdict.UNDECIDED
    reason: str = ""
    exact: bool = False

    @property
    def size(self) -> float | None:
        """Our ratio over theirs."""
        if self.kind is not Kind.RATIO or self.theirs is None or self.ours is None:
            return None
        return numbers.usable(self.ours.estimate / self.theirs)


def judge_claims(cases: Sequence[Case]) -> Iterator[JudgedClaim]:
    """Every claim of every case, in the order of the cases; one on an exponent once for its workload."""
    for one in _compare_claims(cases):
        why = one.claim.undecided
        if why:
            yield replace(one, verdict=ClaimVerdict.UNDECIDED, reason=why if one.ours else one.reason)
        else:
            yield replace(one, reason="; ".join(filter(None, (one.reason, _tell_devices(one)))))


def _tell_devices(one: JudgedClaim) -> str:
    """`theirs on a gpu, ours on a cpu`: of times that were told, of two kinds of device."""
    theirs, ours = one.claim.backend, one.run.where
    timed = any((metric := find_metric(figure)) and metric.unit is Unit.SECONDS for figure in one.claim.figures)
    if one.verdict is ClaimVerdict.UNDECIDED or not timed or not theirs or theirs == ours:
        return ""
    return f"theirs on a {theirs}, ours on a {ours}"


def _compare_claims(cases: Sequence[Case]) -> Iterator[JudgedClaim]:
    sweeps = {id(case): sweep for sweep in group_cases(cases) for _, case in sweep.cases}
    seen: set[tuple[str, str, str]] = set()
    for case in cases:
        for claim in case.planned.published:
            kind = find_kind(claim)
            if kind is Kind.EXPONENT:
                sweep = sweeps.get(id(case), Sweep(case.run, case.planned.workload, "", ((1.0, case),)))
                key = (case.run.name, sweep.label, repr(claim))
                if key not in seen:
                    seen.add(key)
                    yield _compare_exponent(sweep, case, claim)
            elif kind is Kind.RATIO:
                yield _compare_ratio(case, claim)
            else:
                yield _compare_number(case, claim, kind)


def find_kind(claim: Published) -> Kind:
    """By how many figures a claim has, and of what."""
    metric = find_metric(claim.figure)
    if claim.against is not None:
        return Kind.RATIO
    if metric is None:
        return Kind.OTHER
    if metric.exponent_of is not None:
        return Kind.EXPONENT
    return Kind.COUNT if metric.exact and metric.unit is Unit.COUNT else Kind.OTHER


def find_metric(figure: Figure) -> Metric | None:
    """What a figure is one of; None where no such metric is known."""
    return METRICS.get(figure.metric)


def count_verdicts(found: Iterable[JudgedClaim]) -> dict[ClaimVerdict, int]:
    """How many have each verdict."""
    verdicts = [one.verdict for one in found]
    return {verdict: verdicts.count(verdict) for verdict in ClaimVerdict}


def _compare_ratio(case: Case, claim: Published) -> JudgedClaim:
    theirs = _divide_theirs(claim)
    ours, reason = _divide_ours(case, claim)
    exact = all(reading is not None and reading.exact for reading in _read_figures(case, claim))
    judgement = ClaimJudgement(ClaimVerdict.UNDECIDED)
    if theirs is None:
        reason = "their figures have no ratio"
    elif ours is not None and not reason:
        judgement = judge_ratio(theirs, ours, exact=exact)
        reason = judgement.reason.value
    return JudgedClaim(claim, Kind.RATIO, case.run, label_case(case), theirs, ours, judgement.verdict, reason, exact)


def _divide_theirs(claim: Published) -> float | None:
    values = [numbers.usable(figure.value) for figure in claim.figures]
    above, below = values[0], values[-1]
    if above is None or below is None or above <= 0 or below <= 0:
        return None
    ratio = numbers.usable(above / below)
    return ratio if ratio is not None and ratio > 0 else None


def _divide_ours(case: Case, claim: Published) -> tuple[Interval | None, str]:
    """The ratio of the same two of ours, and why it decides nothing where it does not."""
    figures = claim.figures
    units = {None if (metric := find_metric(figure)) is None else metric.unit for figure in figures}
    if len(units) > 1 or not units.issubset(_COMPARED):
        return None, "these metrics have no ratio here"
    paired = all(figure.metric == TIME for figure in figures)
    above, below = (case.find(figure.variant) for figure in figures)
    doubt = "" if above is None or below is None else doubt_ratio(above, below)
    reason = _describe_lacking(case, figures, trusted=paired and not doubt) or (doubt if paired else "")
    readings = [reading for reading in _read_figures(case, claim) if reading is not None and _has_ended_well(reading)]
    if above is None or below is None or len(readings) < len(figures):
        return None, reason
    if paired:
        # How many times faster the second is: the first's time over the second's, paired by process.
        withheld = find_withheld(below, above)
        none = "no process timed both" if withheld is None else withheld.reason
        ours, replicate = compare_paired(below, above), "process"
    else:
        ours, replicate = divide_readings(readings[0], readings[1], above.settings), "process"
        none = "one of our numbers is 0, so there is no ratio"
    if ours is None:
        return None, reason or none
    if not reason and (ours.low is None or ours.high is None):
        reason = (
            f"{Reason.NO_INTERVAL}: {counted(ours.count, replicate, replicate + 'es')}, it takes {FEWEST_PROCESSES}"
        )
    return ours, reason


def _compare_number(case: Case, claim: Published, kind: Kind) -> JudgedClaim:
    """A number by itself: a count can be equal; of anything else, devices differ."""
    theirs, reason = numbers.usable(claim.figure.value), _describe_lacking(case, claim.figures)
    (ours,) = _read_figures(case, claim)
    judged = JudgedClaim(claim, kind, case.run, label_case(case), theirs, reason=reason)
    if kind is Kind.OTHER:
        return replace(judged, reason="a single figure of another device cannot be tested here")
    if ours is None or not _has_ended_well(ours):
        return judged
    judged = replace(judged, ours=Interval(None, ours.known[0], None, len(ours.known)), exact=ours.exact)
    if reason:
        return judged
    judgement = judge_count(theirs, ours)
    if judgement.reason is Reason.UNLIKE_PROCESSES:
        found = ", ".join(write(ours.metric, value) for value in sorted(set(ours.known)))
        return replace(judged, reason=f"{judgement.reason}: {found}")
    return replace(judged, verdict=judgement.verdict)


def _compare_exponent(sweep: Sweep, case: Case, claim: Published) -> JudgedClaim:
    theirs, variant = numbers.usable(claim.figure.value), case.find(claim.figure.variant)
    grown = METRICS[METRICS[claim.figure.metric].exponent_of or ""]
    fitted = None if variant is None else sweep.fit(variant.planned.implementation, grown)
    judged = JudgedClaim(claim, Kind.EXPONENT, sweep.run, sweep.label, theirs)
    if variant is None or fitted is None:
        return replace(judged, reason=_describe_unfitted(sweep, claim.figure, grown))
    judgement = judge_exponent(theirs, fitted)
    sizes = [size for size, _ in sweep.list_readings(variant.planned.implementation, grown)]
    over = f"over {PARAM} = {numbers.number(sizes[0])} to {numbers.number(sizes[-1])}"
    slopes = ", ".join(list_slopes(fitted, bounds=fitted.exponent.low is None))
    reason = "; ".join(filter(None, (judgement.reason, over, f"between sizes {slopes}")))
    return replace(judged, ours=fitted.exponent, verdict=judgement.verdict, reason=reason)


def _describe_unfitted(sweep: Sweep, figure: Figure, grown: Metric) -> str:
    """Why there is no exponent: too few sizes, and what became of the first that has no compile time."""
    variants = [variant for _, case in sweep.cases if (variant := case.find(figure.variant))]
    readings = [variant.read(grown.name) for variant in variants]
    compiled = sum(reading.interval is not None for reading in readings)
    lacking = (_describe_reading(reading) for reading in readings if reading.interval is None)
    first = next(filter(None, lacking), "")
    have = f"{counted(compiled, 'size')} of {PARAM} with a compile time, it takes {FEWEST_SIZES}"
    return f"{have} ({figure.variant}: {first})" if first else have


def _read_figures(case: Case, claim: Published) -> list[Reading | None]:
    """Ours of each figure; None where there can be none."""
    return [_read(case.find(figure.variant), find_metric(figure)) for figure in claim.figures]


def _read(variant: Variant | None, metric: Metric | None) -> Reading | None:
    return None if variant is None or metric is None or metric.exponent_of else variant.read(metric.name)


def _has_ended_well(reading: Reading) -> bool:
    """Whether there is a number, the result was right and the probe ended well."""
    return reading.interval is not None and reading.fault is None


def _describe_lacking(case: Case, figures: Sequence[Figure], *, trusted: bool = False) -> str:
    """Whose number ours lacks or cannot trust, and why: `a:jit and b:jit: contended`; empty where all is well.

    Args:
      trusted: Also where it was noisy: what disturbs one side of a paired ratio disturbs the other.
    """
    alike: dict[str, list[str]] = {}
    for figure in figures:
        variant, metric = case.find(figure.variant), find_metric(figure)
        reading = _read(variant, metric)
        if reading is None:
            why = "not planned in this case" if variant is None else f"{figure.metric} is not a metric of a variant"
        else:
            why = _describe_reading(reading, trusted=trusted)
        names = alike.setdefault(why, [])
        if figure.variant not in names:
            names.append(figure.variant)
    return "; ".join(f"{' and '.join(names)}: {why}" for why, names in alike.items() if why)


def _describe_reading(reading: Reading, *, trusted: bool = False) -> str:
    """Why there is no number, or none to rely on; `trusted` as above."""
    if reading.fault is not None:
        return describe_fault(reading.fault)
    return "contended, too few quiet processes" if reading.contended and not trusted else ""
