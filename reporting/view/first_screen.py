"""The first screen: what was found, what needs attention, and what to mistrust."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from harness.record import DOES_NOT_FIT, INCOMPLETE, Status

from ..text import one_of, shorten
from .measured import Case, Place, Variant, device
from .parts import Item, Tone
from .words import LONGEST_NAME, LONGEST_REASON, incomplete, jit_sentence, name_of, status_counts, unreached_target

NAMED_AT_MOST = 3
LONGEST_LINE = 300

CONTENDED = (
    ": a time marked ! is not to be trusted; a gain is, since both of its sides met the same disturbance, "
    "unless it is marked ! too, as a peer's is"
)


def finding(cases: Sequence[Case]) -> str:
    """The page's heading: what is wrong first, else what jit is worth."""
    gain = jit_sentence(cases)
    if not cases:
        return "No case was planned"
    if not any(variant.time for case in cases for variant in case.variants):
        gain = "no time was measured"
    troubles = _troubles(cases)
    text = f"{troubles}; {gain}" if troubles else gain
    return text[0].upper() + text[1:] if text.startswith("no ") else text


def subtitle(places: Sequence[Place]) -> str:
    """What ran where and when, with which versions."""
    runs = [place.run for place in places]
    dates = sorted({run.manifest.started[:10] for run in runs})
    span = dates[0] if len(dates) == 1 else f"{dates[0]} to {dates[-1]}"
    jax = sorted({run.manifest.environment.packages.get("jax", "unknown") for run in runs})
    tools = sorted({run.manifest.tool_version for run in runs})
    devices = dict.fromkeys(f"{place.run.manifest.backend}: {device(place.run)}" for place in places)
    more = [f"{len(devices) - NAMED_AT_MOST} more"] if len(devices) > NAMED_AT_MOST else []
    where = "; ".join([*(shorten(name, LONGEST_NAME) for name in list(devices)[:NAMED_AT_MOST]), *more])
    parts = (one_of(len(runs), "run"), where, span, f"jax {', '.join(jax)}", f"jaxmeter {', '.join(tools)}")
    return shorten(" · ".join(parts), LONGEST_LINE)


def verdict(places: Sequence[Place], cases: Sequence[Case], warnings: int) -> tuple[str, ...]:
    """One sentence a line: completeness, variants by status, jit against eager, where, warnings."""
    complete = sum(case.is_complete for case in cases)
    planned = one_of(sum(len(case.variants) for case in cases), "variant")
    counts = status_counts(variant for case in cases for variant in case.variants)
    words = {Status.OK: "measured"}
    listed = ", ".join(f"{counts[status]} {words.get(status, status.value)}" for status in reversed(counts))
    backends = dict.fromkeys(place.run.manifest.backend for place in places)
    return (
        f"{complete} of {one_of(len(cases), 'case')} measured completely.",
        f"Of {planned}: {listed or 'nothing'}.",
        f"{jit_sentence(cases)}.".replace("no pair", "No pair", 1),
        f"Measured on {one_of(len(backends), 'backend')}: {shorten(', '.join(backends), LONGEST_LINE)}.",
        f"{one_of(warnings, 'data warning')}." if warnings else "No data warning.",
    )


def attention(cases: Sequence[Case]) -> tuple[Item, ...]:
    """What failed, is wrong or missing, worst first; variants alike in case and reason share an item."""
    alike: dict[tuple[str, str, Status, str | None], list[Variant]] = {}
    for variant in incomplete(variant for case in cases if not case.is_lost for variant in case.variants):
        probe, outcome = variant.worst
        alike.setdefault((variant.case.key, probe, outcome.status, outcome.reason), []).append(variant)
    return (*map(_item, alike.values()), *(_lost_item(case) for case in cases if case.is_lost))


def _item(variants: Sequence[Variant]) -> Item:
    case = variants[0].case
    probe, outcome = variants[0].worst
    names = ", ".join(shorten(variant.planned.name, LONGEST_NAME) for variant in variants[:NAMED_AT_MOST])
    more = f" and {len(variants) - NAMED_AT_MOST} more" if len(variants) > NAMED_AT_MOST else ""
    reason = shorten(outcome.reason or "no reason recorded", LONGEST_REASON)
    where = f" ({probe})" if probe else ""
    text = f"{shorten(case.planned.name, LONGEST_NAME)} · {names}{more} · {case.place.label}{where}: {reason}"
    return Item(text, outcome.status.value, f"p-{variants[0].key}", Tone.BAD)


def _lost_item(case: Case) -> Item:
    name = shorten(case.planned.name, LONGEST_NAME)
    return Item(f"{name} · {case.place.label}: {case.why_lost}", Status.LOST.value, f"p-{case.key}", Tone.BAD)


def data_warnings(loaded: Iterable[str], places: Sequence[Place], cases: Sequence[Case]) -> tuple[Item, ...]:
    """Damaged files first, then what makes the numbers less than they seem."""
    variants = [variant for case in cases for variant in case.variants]
    contended = [variant for variant in variants if variant.is_contended]
    large = [variant for variant in variants if variant.does_not_fit]
    again = [variant for variant in variants if variant.most("recompiles", "compilation")]
    several = [variant for variant in variants if len(variant.fingerprints) > 1]
    vague = [variant for variant in variants if unreached_target(variant)]
    found = [
        *(("file", text) for text in loaded),
        *(("data", text) for text in _missing_data(cases)),
        (DOES_NOT_FIT, _some(large, "too large for the device's memory, so not run")),
        ("recompiles", _some(again, "compiled again in a second, equal call")),
        ("programs", _some(several, "got different programs from the compiler in different processes")),
        ("contended", _some(contended, "had too few undisturbed blocks", CONTENDED)),
        ("precision", _some(vague, "did not reach the precision target; the interval beside each number says so")),
        ("versions", _versions(places)),
        ("git", _dirty([place for place in places if place.run.manifest.environment.git_dirty])),
    ]
    return tuple(Item(text, label, tone=Tone.WARN) for label, text in found if text)


def _missing_data(cases: Sequence[Case]) -> list[str]:
    """Which data were asked for and not there, and what is in their place."""
    alike = Counter((case.planned.data, case.planned.data_missing) for case in cases if case.planned.data_missing)
    return [
        shorten(f"--data has none of {missing}; the inputs of {one_of(number, 'case')} are {used}", LONGEST_LINE)
        for (used, missing), number in alike.items()
    ]


def _troubles(cases: Sequence[Case]) -> str:
    """`1 variant wrong, 2 lost`, or empty."""
    counts = status_counts(variant for case in cases for variant in case.variants)
    bad = [(status.value, number) for status, number in counts.items() if status in INCOMPLETE]
    first = [f"{one_of(number, 'variant')} {word}" for word, number in bad[:1]]
    return ", ".join([*first, *(f"{number} {word}" for word, number in bad[1:])])


def _some(variants: Sequence[Variant], what: str, so: str = "") -> str:
    if not variants:
        return ""
    names = "; ".join(name_of(variant) for variant in variants[:NAMED_AT_MOST])
    more = f"; and {len(variants) - NAMED_AT_MOST} more" if len(variants) > NAMED_AT_MOST else ""
    return f"{one_of(len(variants), 'variant')} {what} ({names}{more}){so}"


def _versions(places: Sequence[Place]) -> str:
    """Packages of which the runs had different versions."""
    packages: list[Mapping[str, str]] = [
        {**place.run.manifest.environment.packages, "Python": place.run.manifest.environment.python} for place in places
    ]
    names = sorted({name for one in packages for name in one})
    found = {name: sorted({one[name] for one in packages if name in one}) for name in names}
    different = [f"{name} {' and '.join(versions)}" for name, versions in found.items() if len(versions) > 1]
    return f"differ between the runs: {shorten(', '.join(different), LONGEST_LINE)}" if different else ""


def _dirty(places: Sequence[Place]) -> str:
    names = ", ".join(place.run_id for place in places)
    return f"made from a checkout with uncommitted changes: {shorten(names, LONGEST_LINE)}" if places else ""
