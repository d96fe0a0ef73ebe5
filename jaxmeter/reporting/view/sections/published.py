"""Published figures: what others claim beside the same of ours, with what differs and whether the claim holds here."""

from __future__ import annotations

from collections.abc import Sequence

from jaxmeter.harness.metrics.metric import Unit
from jaxmeter.harness.metrics.reading import Case
from jaxmeter.harness.metrics.statistics import CONFIDENCE, MINIMUM_EFFECT
from jaxmeter.harness.metrics.table import METRICS
from jaxmeter.harness.record import Figure, Published

from ... import numbers
from ...compare.claims import ABOUT_SAME, LIKE, ClaimVerdict, says_about_the_same
from ...compare.scaling import NEAR
from ...text import counted
from ...write import write, write_interval
from ..cells import name_level
from ..claims import TIME, JudgedClaim, Kind, count_verdicts, find_metric, judge_claims
from ..page_model import Cell, Column, Group, Part, Row, Section, Table
from ..runs import name_device
from ..sweeps import PARAM
from ..tone import Tone

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


def make_published_section(cases: Sequence[Case]) -> Section | None:
    """The section: a row for every claim and case; None where no case has a claim."""
    found = tuple(judge_claims(cases))
    if not found:
        return None
    groups: dict[tuple[str, str], list[JudgedClaim]] = {}
    for one in found:
        groups.setdefault((one.where, name_device(one.run)), []).append(one)
    columns = (
        Column("Claim"),
        Column("Theirs", numeric=True),
        Column("Ours", name_level([one.run for one in found]), numeric=True),
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
    return Section(ID, "Published", QUESTION, _answer(found), parts, packed=True)


def _answer(found: Sequence[JudgedClaim]) -> str:
    """How many claims have which verdict: `Of 4 published claims: 1 as published, 2 same direction (1 smaller), …`."""
    counts = count_verdicts(found)
    sizes = (
        (counts[one], one.removeprefix(f"{ClaimVerdict.SAME_DIRECTION}, "))
        for one in (ClaimVerdict.SMALLER, ClaimVerdict.LARGER)
    )
    same = sum(counts[one] for one in _SAME_DIRECTION)
    counted_sizes = [(count, word) for count, word in sizes if count]
    by_how_much = same - sum(count for count, _ in counted_sizes)
    if counted_sizes and by_how_much:
        counted_sizes.append((by_how_much, "of unknown size"))
    told = ", ".join(f"{count} {word}" for count, word in counted_sizes)
    parts = (
        f"{counts[ClaimVerdict.AS_PUBLISHED]} {ClaimVerdict.AS_PUBLISHED}",
        f"{same} {ClaimVerdict.SAME_DIRECTION}" + (f" ({told})" if told else ""),
        *(f"{counts[one]} {one}" for one in (ClaimVerdict.OPPOSITE, ClaimVerdict.DIFFERS, ClaimVerdict.UNDECIDED)),
    )
    return f"Of {counted(len(found), 'published claim')}{_repeated(found)}: {', '.join(parts)}."


def _repeated(found: Sequence[JudgedClaim]) -> str:
    once = len({repr(one.claim) for one in found})
    return "" if once == len(found) else f" ({once} different, each counted in every case and run that has it)"


def _row(one: JudgedClaim) -> Row:
    ours, bounds = write_ours(one)
    claim = one.claim
    measured = (_figures(claim), claim.device, claim.timed)
    size = "" if one.size is None else f"{numbers.speedup(one.size)} theirs"
    cells = (
        Cell(claim_in_words(one)),
        Cell(write_theirs(one)),
        Cell(ours, "" if bounds == numbers.MISSING else bounds),
        Cell(one.verdict.value, "; ".join(filter(None, (size, one.reason))), _TONES.get(one.verdict, Tone.PLAIN)),
        Cell(claim.differs),
        Cell(claim.source, " · ".join(filter(None, measured))),
    )
    return Row(cells)


def claim_in_words(one: JudgedClaim) -> str:
    """`selu:eager takes 6.0 times as long as selu:jit`."""
    figure, against = one.claim.figure, one.claim.against
    if one.kind is Kind.EXPONENT:
        power = "" if one.theirs is None else f" as {PARAM}^{one.theirs:g}"
        return f"the compile time of {figure.variant} grows{power}"
    if against is None:
        return (
            f"{figure.variant} has {_value(figure)}" if one.kind is Kind.COUNT else f"{_name(figure)}: {_value(figure)}"
        )
    timed = _unit(figure) is Unit.SECONDS
    names = [figure.variant, against.variant]
    if timed and {figure.metric, against.metric} != {TIME}:
        names = [_name(figure), _name(against)]
    if one.theirs is None:
        return f"{names[0]} against {names[1]}"
    verb, adverb = ("takes", "long") if timed else ("has", f"{_many(figure)} {_title(figure)}")
    factor = f"{numbers.speedup(one.theirs).removesuffix('×')} times"
    if says_about_the_same(one.theirs):
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


def write_theirs(one: JudgedClaim) -> str:
    """Their ratio, or the number itself."""
    if one.kind is Kind.RATIO:
        return numbers.speedup(one.theirs)
    return _amount(one.claim.figure, one.claim.figure.value)


def write_ours(one: JudgedClaim) -> tuple[str, str]:
    """Ours, and its bounds."""
    if one.kind is Kind.RATIO:
        text, bounds = numbers.speedup_with_bounds(one.ours)
        return text, "" if one.exact else bounds
    if one.kind is Kind.OTHER:
        return numbers.MISSING, ""
    return write_interval(METRICS[one.claim.figure.metric], one.ours)
