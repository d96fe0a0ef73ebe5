"""Claims that others published, and whether each holds in our cases. A verdict is on a direction, never on a device."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from harness.record import Figure, Published, Status
from harness.record.metrics import METRICS, Unit
from harness.record.statistics import FEWEST_LAUNCHES, MINIMUM_EFFECT, Interval, differs

from .. import numbers
from ..text import counted
from .measured import Case, Place, Variant, unpaired_ratio
from .parts import Point
from .sweeps import COMPILE, FEWEST_SIZES, PARAM, WIDEST_TOLD, Sweep, families, is_told
from .words import told

COMPILE_EXPONENT = "compile_exponent"
"""The metric of a claim on how trace + lower + compile grow with n; it is of a workload, not of one case."""

ABOUT_SAME = 1.1
"""A published ratio this near to 1, either way, claims that there is no difference: single calls tell no less."""

FIRST_RESULT = "first_result_s"
EXECUTION = "execution_s"

_COMPARED = (Unit.SECONDS, Unit.COUNT, Unit.BYTES)
_MEASURED_SIZES = frozenset({"runtime_peak_bytes"})
"""Bytes that a process measures; all others follow from the program, as counts do."""


class Verdict(StrEnum):
    """What our figures say of a claim."""

    HOLDS = "holds here"
    FAILS = "fails here"
    INCONCLUSIVE = "inconclusive"


class Kind(StrEnum):
    """What a claim's number is."""

    RATIO = "ratio"
    COUNT = "count"
    EXPONENT = "exponent"
    OTHER = "other"


@dataclass(frozen=True, eq=False)
class Judged:
    """A claim beside ours.

    Args:
      where: The case, or the workload, and the run.
      theirs: Their ratio, count or exponent; None where their figures have none.
      ours: The same of ours; None where there is none.
      reason: Why the verdict is none, or what to know of it; may be empty.
    """

    claim: Published
    kind: Kind
    place: Place
    where: str
    theirs: float | None
    ours: Interval | None
    verdict: Verdict
    reason: str = ""

    @property
    def is_exact(self) -> bool:
        """Whether ours is of counts that were the same in all processes."""
        exact = all(map(_is_exact, self.claim.figures))
        return exact and self.ours is not None and self.ours.low == self.ours.high

    @property
    def size(self) -> float | None:
        """Our ratio over theirs."""
        if self.kind is not Kind.RATIO or self.theirs is None or self.ours is None:
            return None
        return numbers.usable(self.ours.estimate / self.theirs)


def judged(cases: Sequence[Case]) -> Iterator[Judged]:
    """Every claim of every case, in the order of the cases; one on an exponent once for its workload."""
    for one in _compared(cases):
        why = one.claim.undecided
        yield replace(one, verdict=Verdict.INCONCLUSIVE, reason=why if one.ours else one.reason) if why else one


def _compared(cases: Sequence[Case]) -> Iterator[Judged]:
    sweeps = {id(case): sweep for sweep in families(cases) for _, case in sweep.cases}
    seen: set[tuple[str, str, str]] = set()
    for case in cases:
        for claim in case.planned.published:
            kind = kind_of(claim)
            if kind is Kind.EXPONENT:
                sweep = sweeps.get(id(case), Sweep(case.place, case.planned.workload, "", ((1.0, case),)))
                key = (case.place.run_id, sweep.label, repr(claim))
                if key not in seen:
                    seen.add(key)
                    yield _exponent(sweep, case, claim)
            elif kind is Kind.RATIO:
                yield _ratio(case, claim)
            else:
                yield _count(case, claim, kind)


def kind_of(claim: Published) -> Kind:
    """By how many figures a claim has, and of what."""
    if claim.against is not None:
        return Kind.RATIO
    if claim.figure.metric == COMPILE_EXPONENT:
        return Kind.EXPONENT
    return Kind.COUNT if unit_of(claim.figure) is Unit.COUNT else Kind.OTHER


def unit_of(figure: Figure) -> Unit | None:
    """The unit of a figure; None where it is of no metric."""
    metric = METRICS.get(figure.metric)
    return None if metric is None else metric.unit


def probe_of(figure: Figure) -> str | None:
    """The probe that measures a figure's metric, or what it is a sum of; None where none does."""
    metric = METRICS.get(figure.metric)
    return "compilation" if figure.metric == FIRST_RESULT else None if metric is None else metric.probe


def says_about_the_same(theirs: float) -> bool:
    """Whether a published ratio claims that there is no difference worth a word."""
    return 1 / ABOUT_SAME <= theirs <= ABOUT_SAME


def _ratio(case: Case, claim: Published) -> Judged:
    theirs = _quotient(claim)
    ours, reason = _our_ratio(case, claim)
    verdict = Verdict.INCONCLUSIVE
    if theirs is None:
        reason = "their figures have no ratio"
    elif ours is not None and not reason:
        verdict, reason = _on_ratio(theirs, ours, exact=all(map(_is_exact, claim.figures)))
    return Judged(claim, Kind.RATIO, case.place, case.label, theirs, ours, verdict, reason)


def _quotient(claim: Published) -> float | None:
    values = [numbers.usable(figure.value) for figure in claim.figures]
    above, below = values[0], values[-1]
    if above is None or below is None or above <= 0 or below <= 0:
        return None
    ratio = numbers.usable(above / below)
    return ratio if ratio is not None and ratio > 0 else None


def _our_ratio(case: Case, claim: Published) -> tuple[Interval | None, str]:
    """The ratio of the same two of ours, and why it decides nothing where it does not."""
    figures = claim.figures
    units = {unit_of(figure) for figure in figures}
    if len(units) > 1 or not units.issubset(_COMPARED):
        return None, "these metrics have no ratio here"
    paired = all(figure.metric == EXECUTION for figure in figures)
    above, below = (_variant(case, figure) for figure in figures)
    peers = any(variant is not None and variant.is_peer for variant in (above, below))
    reason = _lacking(case, figures, trusted=paired and not peers)
    if above is None or below is None or any(not _values(case, figure) for figure in figures):
        return None, reason
    if paired:
        # How many times faster the second is: the first's time over the second's, paired by launch.
        ours, replicate, none = below.speedup_over(above), "launch", "no launch timed both"
    else:
        ours, replicate, none = _unpaired(case, figures), "process", "one of ours is 0, so there is no ratio"
    if ours is None:
        return None, reason or none
    if not reason and (ours.low is None or ours.high is None):
        reason = f"no interval: {counted(ours.count, replicate, replicate + 'es')}, it takes {FEWEST_LAUNCHES}"
    return ours, reason


def _unpaired(case: Case, figures: Sequence[Figure]) -> Interval | None:
    """The ratio over processes that measured one side each; exact where both sides are the same in all processes."""
    above, below = (_values(case, figure) for figure in figures)
    if min(*above, *below) <= 0:
        return None
    if all(map(_is_exact, figures)) and len(set(above)) == len(set(below)) == 1:
        ratio = above[0] / below[0]
        return Interval(ratio, ratio, ratio, min(len(above), len(below)))
    looked = max(case.place.looks if probe_of(figure) == "timing" else 1 for figure in figures)
    return unpaired_ratio(above, below, 1 - (1 - case.place.level) / looked)


def _on_ratio(theirs: float, ours: Interval, *, exact: bool) -> tuple[Verdict, str]:
    low, high = ours.low, ours.high
    if low is None or high is None:
        return Verdict.INCONCLUSIVE, "no interval"
    if says_about_the_same(theirs):
        edge = numbers.percent(ABOUT_SAME - 1)
        if low > ABOUT_SAME or high < 1 / ABOUT_SAME:
            return Verdict.FAILS, f"ours differ by more than {edge}"
        if low >= 1 / ABOUT_SAME and high <= ABOUT_SAME:
            return Verdict.HOLDS, f"ours differ by less than {edge}, too"
        return Verdict.INCONCLUSIVE, f"our interval reaches beyond a difference of {edge}"
    if exact and low == high == 1:
        return Verdict.FAILS, "equal here"
    if low <= 1 <= high:
        near = low >= 1 / ABOUT_SAME and high <= ABOUT_SAME
        more = f"; any difference is below {numbers.percent(ABOUT_SAME - 1)}" if near else ""
        return Verdict.INCONCLUSIVE, f"our interval includes 1{more}"
    if not exact and not differs(ours):
        return Verdict.INCONCLUSIVE, f"below {numbers.percent(MINIMUM_EFFECT)}, the least that is worth a verdict"
    return (Verdict.HOLDS if (low > 1) == (theirs > 1) else Verdict.FAILS), ""


def _count(case: Case, claim: Published, kind: Kind) -> Judged:
    """A number by itself: a count can be equal; of anything else, devices differ."""
    theirs, reason = numbers.usable(claim.figure.value), _lacking(case, claim.figures)
    ours, verdict = None, Verdict.INCONCLUSIVE
    if kind is Kind.OTHER:
        reason = "one figure of another device is no claim that can be tested here"
    elif values := _values(case, claim.figure):
        ours = Interval(None, values[0], None, len(values))
        if not reason and len(set(values)) > 1:
            found = ", ".join(map(numbers.count, sorted(set(values))))
            reason = f"ours differs between processes: {found}"
        elif not reason:
            verdict = Verdict.HOLDS if values[0] == theirs else Verdict.FAILS
    return Judged(claim, kind, case.place, case.label, theirs, ours, verdict, reason)


def _exponent(sweep: Sweep, case: Case, claim: Published) -> Judged:
    theirs, variant = numbers.usable(claim.figure.value), _variant(case, claim.figure)
    fitted = None if variant is None else sweep.growth(variant.planned.implementation, COMPILE)
    ours = None if fitted is None else fitted.exponent
    verdict, reason = Verdict.INCONCLUSIVE, ""
    if variant is None or fitted is None or ours is None or ours.low is None or ours.high is None:
        reason = _unfitted(sweep, claim.figure)
    elif not is_told(fitted):
        reason = f"our interval is wider than {WIDEST_TOLD:g}"
    elif theirs is not None:
        verdict = Verdict.HOLDS if ours.low <= theirs <= ours.high else Verdict.FAILS
        reason = _fitted_over(sweep.points(variant.planned.implementation, COMPILE))
    return Judged(claim, Kind.EXPONENT, sweep.place, sweep.label, theirs, ours, verdict, reason)


def _fitted_over(points: Sequence[Point]) -> str:
    """The sizes, and the slope at the largest two, which a constant part bends least."""
    sizes = f"over {PARAM} = {numbers.number(points[0].x)} to {numbers.number(points[-1].x)}"
    before, last = points[-2:]
    if last.x == before.x:
        return sizes
    slope = math.log(last.y / before.y) / math.log(last.x / before.x)
    return f"{sizes}; {numbers.exponent_with_bounds(Interval(None, slope, None, 1))[0]} between the largest two"


def _unfitted(sweep: Sweep, figure: Figure) -> str:
    """Why there is no exponent: too few sizes, and what became of the first that has no compile time."""
    variants = [variant for _, case in sweep.cases if (variant := _variant(case, figure))]
    compiled = sum(variant.compile_total is not None for variant in variants)
    lacking = (_why(variant, "compilation") for variant in variants if variant.compile_total is None)
    first = next(filter(None, lacking), "")
    have = f"{counted(compiled, 'size')} of {PARAM} with a compile time, it takes {FEWEST_SIZES}"
    return f"{have} ({figure.variant}: {first})" if first else have


def _variant(case: Case, figure: Figure) -> Variant | None:
    return next((variant for variant in case.variants if variant.planned.name == figure.variant), None)


def _values(case: Case, figure: Figure) -> Sequence[float]:
    """Ours by process, where the result was right and the probe ended well."""
    variant, metric, probe = _variant(case, figure), METRICS.get(figure.metric), probe_of(figure)
    if variant is None or metric is None or probe is None or variant.is_wrong:
        return ()
    outcome = variant.outcomes.get(probe)
    if outcome is None or outcome.status is not Status.OK:
        return ()
    if figure.metric == FIRST_RESULT:
        return variant.first_results
    return (variant.cold_times if metric.unit is Unit.SECONDS else variant.sizes)(metric.name, probe)


def _is_exact(figure: Figure) -> bool:
    return unit_of(figure) in (Unit.COUNT, Unit.BYTES) and figure.metric not in _MEASURED_SIZES


def _lacking(case: Case, figures: Sequence[Figure], *, trusted: bool = False) -> str:
    """Whose number ours lacks or cannot trust, and why: `a:jit and b:jit: contended`; empty where all is well.

    Args:
      trusted: Also where it was disturbed: what disturbs one side of a paired ratio disturbs the other. A peer's is
        paired by order only.
    """
    alike: dict[str, list[str]] = {}
    for figure in figures:
        names = alike.setdefault(_missing(case, figure, trusted=trusted), [])
        if figure.variant not in names:
            names.append(figure.variant)
    return "; ".join(f"{' and '.join(names)}: {why}" for why, names in alike.items() if why)


def _missing(case: Case, figure: Figure, *, trusted: bool) -> str:
    variant, probe = _variant(case, figure), probe_of(figure)
    if variant is None:
        return "not planned in this case"
    if probe is None:
        return f"{figure.metric} is no metric that is measured"
    why = _why(variant, probe, trusted=trusted)
    return why or ("" if _values(case, figure) else f"no {figure.metric} recorded")


def _why(variant: Variant, probe: str, *, trusted: bool = False) -> str:
    """What became of a variant, if one probe of it is not simply ok; `trusted` as above."""
    worst_probe, worst = variant.worst
    outcome = variant.outcomes.get(probe)
    if variant.is_wrong or (outcome is None and worst.status is not Status.OK):
        return told(worst, *filter(None, (worst_probe,)))
    if outcome is None:
        asked = probe in variant.case.place.run.manifest.settings.probes
        return f"no record of its {probe}" if asked else f"the run was not asked for {probe}"
    if outcome.status is not Status.OK:
        return told(outcome, probe)
    return "contended, too few undisturbed samples" if outcome.contended and not trusted else ""


def tally(found: Iterable[Judged]) -> dict[Verdict, int]:
    """How many have each verdict."""
    verdicts = [one.verdict for one in found]
    return {verdict: verdicts.count(verdict) for verdict in Verdict}
