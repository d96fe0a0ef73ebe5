"""Published figures: what others claim beside the same of ours, with what differs and whether the claim holds here."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from jaxmeter.document import numbers
from jaxmeter.document.model import Cell, Column, Group, Part, Row, Section, Table, Tone
from jaxmeter.harness.metrics.derived import compare_paired, doubt_ratio, find_withheld
from jaxmeter.harness.metrics.metric import Metric, Reading, Unit
from jaxmeter.harness.metrics.reading import Case, Run, Variant
from jaxmeter.harness.metrics.statistics import CONFIDENCE, FEWEST_PROCESSES, MINIMUM_EFFECT, Interval
from jaxmeter.harness.metrics.table import METRICS
from jaxmeter.harness.metrics.write import write, write_interval
from jaxmeter.harness.record import Figure, Published
from jaxmeter.harness.record.wording import counted

from ..compare.claims import (
    ABOUT_SAME,
    LIKE,
    ClaimJudgement,
    ClaimVerdict,
    Reason,
    judge_count,
    judge_exponent,
    judge_ratio,
    says_about_the_same,
)
from ..compare.ratios import divide_readings
from ..compare.scaling import NEAR
from .cells import describe_fault, name_level
from .figures.points import TIME
from .growth import FEWEST_SIZES, PARAM, Sweep, group_cases, list_slopes
from .runs import label_case, name_device

ID = "published"
QUESTION = "Against published figures: what is as published here?"

_LEAST, _NEAR = numbers.percent(MINIMUM_EFFECT), numbers.percent(ABOUT_SAME - 1)

HOW_TO_READ = (
    "A claim is a ratio, count or exponent of a source's figures; ours is the same quantity in the same case.",
    "Ratios of execution times are paired by process, of other times over processes; ratios of counts are exact.",
    f"Same direction: our whole interval lies on their side of 1, and the difference is beyond {_LEAST}.",
    f"As published: it lies within a factor of {LIKE:g} of theirs, too; larger or smaller: wholly beyond that.",
    "Opposite: our whole interval lies opposite to the claim, compared with 1.",
    f"Verdicts go by intervals of {numbers.percent(CONFIDENCE)}, which are wider than those shown.",
    "Undecided: our interval includes 1, or our number is missing, contended or without an interval.",
    f"A ratio within {_NEAR} of 1 claims no difference: as published is then a whole interval that is as near to 1.",
    "A count by itself is as published where ours is equal.",
    f"So is an exponent where our whole interval lies within {NEAR:g} of it; where it lies wholly outside it is not.",
    "Where ours has no interval, that goes for all exponents between neighbouring sizes.",
    "Below the verdict: our ratio divided by theirs. Our times are not ranked with theirs.",
    "± is the spread that the source gives, mostly of single calls; no interval follows from it.",
)

_TONES = {
    ClaimVerdict.AS_PUBLISHED: Tone.GOOD,
    ClaimVerdict.OPPOSITE: Tone.WARN,
    ClaimVerdict.DIFFERS: Tone.WARN,
    ClaimVerdict.UNDECIDED: Tone.MUTED,
}

_SAME_DIRECTION = (ClaimVerdict.SMALLER, ClaimVerdict.LARGER, ClaimVerdict.SAME_DIRECTION)

_COMPARED = (Unit.SECONDS, Unit.COUNT, Unit.FLOP, Unit.BYTES)


class ClaimKind(StrEnum):
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
    kind: ClaimKind
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
        if self.kind is not ClaimKind.RATIO or self.theirs is None or self.ours is None:
            return None
        return numbers.usable(self.ours.estimate / self.theirs)


def judge_claims(cases: Sequence[Case]) -> Iterator[JudgedClaim]:
    """Yield every claim of every case, in the order of the cases; a claim on an exponent once for its workload."""
    for judged in _compare_claims(cases):
        why = judged.claim.undecided
        if why:
            yield replace(judged, verdict=ClaimVerdict.UNDECIDED, reason=why if judged.ours else judged.reason)
        else:
            yield replace(judged, reason="; ".join(filter(None, (judged.reason, _name_devices(judged)))))


def _name_devices(judged: JudgedClaim) -> str:
    """Return `theirs on a gpu, ours on a cpu`: of times with a verdict, of two kinds of device."""
    theirs, ours = judged.claim.backend, judged.run.where
    timed = any((metric := find_metric(figure)) and metric.unit is Unit.SECONDS for figure in judged.claim.figures)
    if judged.verdict is ClaimVerdict.UNDECIDED or not timed or not theirs or theirs == ours:
        return ""
    return f"theirs on a {theirs}, ours on a {ours}"


def _compare_claims(cases: Sequence[Case]) -> Iterator[JudgedClaim]:
    sweeps = {id(case): sweep for sweep in group_cases(cases) for _, case in sweep.cases}
    seen: set[tuple[str, str, str]] = set()
    for case in cases:
        for claim in case.planned.published:
            kind = find_kind(claim)
            if kind is ClaimKind.EXPONENT:
                sweep = sweeps.get(id(case), Sweep(case.run, case.planned.workload, "", ((1.0, case),)))
                key = (case.run.name, sweep.label, repr(claim))
                if key not in seen:
                    seen.add(key)
                    yield _compare_exponent(sweep, case, claim)
            elif kind is ClaimKind.RATIO:
                yield _compare_ratio(case, claim)
            else:
                yield _compare_number(case, claim, kind)


def find_kind(claim: Published) -> ClaimKind:
    """By how many figures a claim has, and of what."""
    metric = find_metric(claim.figure)
    if claim.against is not None:
        return ClaimKind.RATIO
    if metric is None:
        return ClaimKind.OTHER
    if metric.exponent_of is not None:
        return ClaimKind.EXPONENT
    return ClaimKind.COUNT if metric.exact and metric.unit is Unit.COUNT else ClaimKind.OTHER


def find_metric(figure: Figure) -> Metric | None:
    """Return the metric of a figure; None where no such metric is known."""
    return METRICS.get(figure.metric)


def count_verdicts(claims: Iterable[JudgedClaim]) -> dict[ClaimVerdict, int]:
    """Return how many have each verdict."""
    verdicts = [judged.verdict for judged in claims]
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
    return JudgedClaim(
        claim, ClaimKind.RATIO, case.run, label_case(case), theirs, ours, judgement.verdict, reason, exact
    )


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


def _compare_number(case: Case, claim: Published, kind: ClaimKind) -> JudgedClaim:
    """A number by itself: a count can be equal; of anything else, devices differ."""
    theirs, reason = numbers.usable(claim.figure.value), _describe_lacking(case, claim.figures)
    (ours,) = _read_figures(case, claim)
    judged = JudgedClaim(claim, kind, case.run, label_case(case), theirs, reason=reason)
    if kind is ClaimKind.OTHER:
        return replace(judged, reason="a single figure of another device cannot be tested here")
    if ours is None or not _has_ended_well(ours):
        return judged
    judged = replace(judged, ours=Interval(None, ours.known[0], None, len(ours.known)), exact=ours.exact)
    if reason:
        return judged
    judgement = judge_count(theirs, ours)
    if judgement.reason is Reason.UNLIKE_PROCESSES:
        values = ", ".join(write(ours.metric, value) for value in sorted(set(ours.known)))
        return replace(judged, reason=f"{judgement.reason}: {values}")
    return replace(judged, verdict=judgement.verdict)


def _compare_exponent(sweep: Sweep, case: Case, claim: Published) -> JudgedClaim:
    theirs, variant = numbers.usable(claim.figure.value), case.find(claim.figure.variant)
    grown = METRICS[METRICS[claim.figure.metric].exponent_of or ""]
    fitted = None if variant is None else sweep.fit(variant.planned.implementation, grown)
    judged = JudgedClaim(claim, ClaimKind.EXPONENT, sweep.run, sweep.label, theirs)
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


def make_published_section(cases: Sequence[Case]) -> Section | None:
    """Return the section: a row for every claim and case; None where no case has a claim."""
    claims = tuple(judge_claims(cases))
    if not claims:
        return None
    groups: dict[tuple[str, str], list[JudgedClaim]] = {}
    for judged in claims:
        groups.setdefault((judged.where, name_device(judged.run)), []).append(judged)
    columns = (
        Column("Claim"),
        Column("Theirs", numeric=True),
        Column("Ours", name_level([judged.run for judged in claims]), numeric=True),
        Column("Verdict"),
        Column("What differs"),
        Column("Source", "figures, device, what was timed"),
    )
    table = Table(
        "Each published claim below our case and device. Theirs and ours are ratios, counts or exponents.",
        columns,
        tuple(Group(tuple(map(_row, members)), where, f"here: {on}") for (where, on), members in groups.items()),
    )
    parts = (Part(tables=(table,)), Part("How to read this", notes=HOW_TO_READ))
    return Section(ID, "Published", QUESTION, _answer(claims), parts, packed=True)


def _answer(claims: Sequence[JudgedClaim]) -> str:
    """Return `Of 4 published claims: 1 as published, 2 same direction (1 smaller), …`."""
    counts = count_verdicts(claims)
    sizes = (
        (counts[verdict], verdict.removeprefix(f"{ClaimVerdict.SAME_DIRECTION}, "))
        for verdict in (ClaimVerdict.SMALLER, ClaimVerdict.LARGER)
    )
    same = sum(counts[verdict] for verdict in _SAME_DIRECTION)
    counted_sizes = [(count, word) for count, word in sizes if count]
    by_how_much = same - sum(count for count, _ in counted_sizes)
    if counted_sizes and by_how_much:
        counted_sizes.append((by_how_much, "of unknown size"))
    of_sizes = ", ".join(f"{count} {word}" for count, word in counted_sizes)
    parts = (
        f"{counts[ClaimVerdict.AS_PUBLISHED]} {ClaimVerdict.AS_PUBLISHED}",
        f"{same} {ClaimVerdict.SAME_DIRECTION}" + (f" ({of_sizes})" if of_sizes else ""),
        *(
            f"{counts[verdict]} {verdict}"
            for verdict in (ClaimVerdict.OPPOSITE, ClaimVerdict.DIFFERS, ClaimVerdict.UNDECIDED)
        ),
    )
    return f"Of {counted(len(claims), 'published claim')}{_repeated(claims)}: {', '.join(parts)}."


def _repeated(claims: Sequence[JudgedClaim]) -> str:
    once = len({repr(judged.claim) for judged in claims})
    return "" if once == len(claims) else f" ({once} different, each counted in every case and run that has it)"


def _row(judged: JudgedClaim) -> Row:
    ours, bounds = write_ours(judged)
    claim = judged.claim
    measured = (_figures(claim), claim.device, claim.timed)
    size = "" if judged.size is None else f"{numbers.speedup(judged.size)} theirs"
    cells = (
        Cell(claim_in_words(judged)),
        Cell(write_theirs(judged)),
        Cell(ours, "" if bounds == numbers.MISSING else bounds),
        Cell(
            judged.verdict.value, "; ".join(filter(None, (size, judged.reason))), _TONES.get(judged.verdict, Tone.PLAIN)
        ),
        Cell(claim.differs),
        Cell(claim.source, " · ".join(filter(None, measured))),
    )
    return Row(cells)


def claim_in_words(judged: JudgedClaim) -> str:
    """Return `selu:eager takes 6.0 times as long as selu:jit`."""
    figure, against = judged.claim.figure, judged.claim.against
    if judged.kind is ClaimKind.EXPONENT:
        power = "" if judged.theirs is None else f" as {PARAM}^{judged.theirs:g}"
        return f"the compile time of {figure.variant} grows{power}"
    if against is None:
        return (
            f"{figure.variant} has {_value(figure)}"
            if judged.kind is ClaimKind.COUNT
            else f"{_name(figure)}: {_value(figure)}"
        )
    timed = _unit(figure) is Unit.SECONDS
    names = [figure.variant, against.variant]
    if timed and {figure.metric, against.metric} != {TIME}:
        names = [_name(figure), _name(against)]
    if judged.theirs is None:
        return f"{names[0]} against {names[1]}"
    verb, adverb = ("takes", "long") if timed else ("has", f"{_many(figure)} {_title(figure)}")
    factor = f"{numbers.speedup(judged.theirs).removesuffix('×')} times"
    if says_about_the_same(judged.theirs):
        return f"{names[0]} {verb} about as {adverb} as {names[1]} ({factor})"
    return f"{names[0]} {verb} {factor} as {adverb} as {names[1]}"


def _name(figure: Figure) -> str:
    return f"{figure.variant} ({_title(figure)})"


def _title(figure: Figure) -> str:
    metric = find_metric(figure)
    return figure.metric if metric is None else metric.title


def _unit(figure: Figure) -> Unit | None:
    metric = find_metric(figure)
    return None if metric is None else metric.unit


def _many(figure: Figure) -> str:
    return "much" if _unit(figure) is Unit.BYTES else "many"


def _figures(claim: Published) -> str:
    """`786 µs ± 31.8 µs / 132 µs ± 260 µs`; empty where it would only repeat the ratio's column."""
    values = {figure.value for figure in claim.figures}
    if len(values) == 1 and claim.figure.spread is None:
        return ""
    return " / ".join(map(_value, claim.figures))


def _value(figure: Figure) -> str:
    spread = "" if figure.spread is None else f"{numbers.SPACE}±{numbers.SPACE}{_amount(figure, figure.spread)}"
    what = _title(figure) if _unit(figure) is Unit.COUNT else ""
    what = what.removesuffix("s") if figure.value == 1 else what
    return " ".join(filter(None, (f"{_amount(figure, figure.value)}{spread}", what)))


def _amount(figure: Figure, value: float) -> str:
    metric = find_metric(figure)
    return numbers.number(value) if metric is None else write(metric, value)


def write_theirs(judged: JudgedClaim) -> str:
    """Return their ratio, or the number itself."""
    if judged.kind is ClaimKind.RATIO:
        return numbers.speedup(judged.theirs)
    return _amount(judged.claim.figure, judged.claim.figure.value)


def write_ours(judged: JudgedClaim) -> tuple[str, str]:
    """Return ours, and its bounds."""
    if judged.kind is ClaimKind.RATIO:
        text, bounds = numbers.speedup_with_bounds(judged.ours)
        return text, "" if judged.exact else bounds
    if judged.kind is ClaimKind.OTHER:
        return numbers.MISSING, ""
    return write_interval(METRICS[judged.claim.figure.metric], judged.ours)
