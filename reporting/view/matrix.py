"""Suite by run: the headline time of each suite's largest case, and what it gains over its baseline variant."""

from __future__ import annotations

from collections.abc import Sequence

from harness.record import DOES_NOT_FIT, INCOMPLETE, Status

from .. import numbers
from ..text import counted, shorten
from .measured import Case, Place, Variant, device, size
from .parts import Cell, Column, Group, Row, Table, Tone
from .words import gain_tone

MOST_SUITES = 24
MOST_PLACES = 6
"""More is no overview; every case stands in the tables below."""

LONGEST_LABEL = 60


def matrix(places: Sequence[Place], cases: Sequence[Case]) -> tuple[Table | None, str]:
    """The table, and one line on what it leaves out."""
    suites = tuple(dict.fromkeys(case.planned.suite for case in cases))
    if not suites:
        return None, "No suite to show: no case was planned."
    shown = tuple(places)[-MOST_PLACES:]
    columns = (Column("Suite"), *(Column(place.label, _where(place)) for place in shown))
    rows = tuple(
        Row(
            (
                Cell(shorten(suite, LONGEST_LABEL), target=next(c.key for c in cases if c.planned.suite == suite)),
                *(
                    _cell([case for case in cases if case.planned.suite == suite and case.place is place])
                    for place in shown
                ),
            )
        )
        for suite in suites[:MOST_SUITES]
    )
    caption = (
        "Each suite's largest case: its fastest jit variant, and how many times faster than the baseline variant it is."
    )
    left_out = [
        f"{counted(len(places) - len(shown), 'earlier run')}" if len(places) > len(shown) else "",
        f"{counted(len(suites) - MOST_SUITES, 'suite')}" if len(suites) > MOST_SUITES else "",
    ]
    rest = " and ".join(part for part in left_out if part)
    note = "Times of different backends are not ranked: precision and hardware differ."
    return Table(caption, columns, (Group(rows),)), f"+ {rest} more, in the tables below. {note}" if rest else note


def _where(place: Place) -> str:
    """Device and run id, without what the label says already."""
    names = (shorten(name, LONGEST_LABEL) for name in (device(place.run), place.run_id) if name not in place.label)
    return " · ".join(names)


def _cell(cases: Sequence[Case]) -> Cell:
    if not cases:
        return Cell("not planned", tone=Tone.MUTED)
    largest = max(cases, key=lambda case: size(case.planned))
    name = shorten(largest.planned.name, LONGEST_LABEL)
    best = _headline(largest)
    if best is None or best.time is None:
        fits = not any(variant.does_not_fit for variant in largest.variants)
        tone = Tone.MUTED if fits else Tone.WARN
        tone = Tone.BAD if any(variant.status in INCOMPLETE for variant in largest.variants) else tone
        return Cell(_why_none(largest), name, tone)
    gain = "baseline" if best.is_baseline else numbers.gain(best.speedup.estimate if best.speedup else None)
    flags = [shorten(best.planned.name, LONGEST_LABEL), *(["! contended"] if best.is_contended else [])]
    bad = [variant for case in cases for variant in case.variants if variant.status in INCOMPLETE]
    flags += [f"! {counted(len(bad), 'variant')} not measured"] if bad else []
    tone = Tone.WARN if bad or best.is_contended else gain_tone(best.speedup)
    time = numbers.time_with_bounds(best.time)[0]
    return Cell(f"{time} · {gain}", " · ".join([name, *flags]), tone)


def _headline(case: Case) -> Variant | None:
    """The fastest jit variant; without one, the fastest of all."""
    timed = [variant for variant in case.variants if variant.time is not None]
    jitted = [variant for variant in timed if variant.planned.mode == "jit"]
    return min(jitted or timed, key=lambda variant: variant.time.estimate if variant.time else 0.0, default=None)


def _why_none(case: Case) -> str:
    worst = max((variant.status for variant in case.variants), key=list(Status).index, default=None)
    if worst is Status.UNSUPPORTED and any(variant.does_not_fit for variant in case.variants):
        return DOES_NOT_FIT
    return worst.value if worst not in (None, Status.OK) else "no time recorded"
