"""Suite by run: the headline time of each suite's largest case, and what it gains over its baseline variant."""

from __future__ import annotations

from collections.abc import Sequence

from harness.record import INCOMPLETE, Status
from harness.record.metric import Reading
from harness.record.statistics import differs

from .. import numbers
from ..text import counted, shorten
from ..write import write_reading
from .cases import Case, Variant, find_size
from .cells import find_gain_tone
from .page_model import Cell, Column, Group, Row, Table, Tone
from .runs import LabelledRun, name_device

MOST_SUITES = 24
MOST_RUNS = 6
"""More is no overview; every case stands in the tables below."""

LONGEST_LABEL = 60
TIME = "execution_s"


def make_matrix(runs: Sequence[LabelledRun], cases: Sequence[Case]) -> tuple[Table | None, str]:
    """The table, and one line on what it leaves out."""
    suites = tuple(dict.fromkeys(case.planned.suite for case in cases))
    if not suites:
        return None, "No suite to show: no case was planned."
    shown = tuple(runs)[-MOST_RUNS:]
    columns = (Column("Suite"), *(Column(run.label, _where(run)) for run in shown))
    rows = tuple(
        Row(
            (
                Cell(shorten(suite, LONGEST_LABEL), target=next(c.key for c in cases if c.planned.suite == suite)),
                *(_cell([case for case in cases if case.planned.suite == suite and case.run is run]) for run in shown),
            )
        )
        for suite in suites[:MOST_SUITES]
    )
    caption = (
        "Each suite's largest case: the jit variant with the surest gain over the baseline variant (by its lower "
        "bound), its time, and the gain with its interval."
    )
    left_out = [
        f"{counted(len(runs) - len(shown), 'earlier run')}" if len(runs) > len(shown) else "",
        f"{counted(len(suites) - MOST_SUITES, 'suite')}" if len(suites) > MOST_SUITES else "",
    ]
    rest = " and ".join(part for part in left_out if part)
    note = "Times of different backends are not ranked: precision and hardware differ."
    return Table(caption, columns, (Group(rows),)), f"+ {rest} more, in the tables below. {note}" if rest else note


def _where(run: LabelledRun) -> str:
    """Device and run id, without what the label says already."""
    names = (shorten(name, LONGEST_LABEL) for name in (name_device(run.run), run.run_id) if name not in run.label)
    return " · ".join(names)


def _cell(cases: Sequence[Case]) -> Cell:
    if not cases:
        return Cell("not planned", tone=Tone.MUTED)
    largest = max(cases, key=lambda case: find_size(case.planned))
    name = shorten(largest.planned.name, LONGEST_LABEL)
    best = _headline(largest)
    if best is None:
        fits = not any(variant.is_too_large for variant in largest.variants)
        tone = Tone.MUTED if fits else Tone.WARN
        tone = Tone.BAD if any(variant.status in INCOMPLETE for variant in largest.variants) else tone
        return Cell(_why_none(largest), name, tone)
    time, speedup = best.read(TIME), best.read("speedup")
    gain = _why_baseline(largest) if best.is_baseline else _gain(speedup)
    contended = time.contended or speedup.contended
    flags = [shorten(best.planned.name, LONGEST_LABEL), *(["! contended"] if contended else [])]
    bad = [variant for case in cases for variant in case.variants if variant.status in INCOMPLETE]
    flags += [f"! {counted(len(bad), 'variant')} not measured"] if bad else []
    tone = Tone.WARN if bad or contended else find_gain_tone(speedup.interval)
    return Cell(f"{write_reading(time)[0]} · {gain}", " · ".join([name, *flags]), tone)


def _why_baseline(case: Case) -> str:
    alone = sum(variant.planned.mode == "jit" for variant in case.variants if variant.read(TIME).interval) < 2
    return "baseline" if alone else "baseline, none surely faster"


def _gain(speedup: Reading) -> str:
    """`8.7× [8.5, 8.9]`, `1.02× [0.98, 1.06] undecided`."""
    undecided = speedup.interval is not None and not differs(speedup.interval)
    parts = (*write_reading(speedup), "undecided" if undecided else "")
    return " ".join(part for part in parts if part not in ("", numbers.MISSING)) or numbers.MISSING


def _headline(case: Case) -> Variant | None:
    """The jit variant, or without one the variant, that is surely the fastest: by the lower bound of its gain."""
    timed = [variant for variant in case.variants if variant.read(TIME).interval is not None]
    jitted = [variant for variant in timed if variant.planned.mode == "jit"]
    return max(jitted or timed, key=_sure_gain, default=None)


def _sure_gain(variant: Variant) -> tuple[float, float]:
    """The lower bound over the baseline variant; without one that can be trusted, the shorter time is the better."""
    gain = variant.read("speedup")
    low = 1.0 if variant.is_baseline else None if gain.interval is None or gain.contended else gain.interval.low
    return low or 0.0, -(variant.read(TIME).estimate or 0.0)


def _why_none(case: Case) -> str:
    worst = max((variant.status for variant in case.variants), key=list(Status).index, default=None)
    return worst.value if worst not in (None, Status.OK) else "no time recorded"
