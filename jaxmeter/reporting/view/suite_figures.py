"""The figures of a suite: how fast, how everything grows with each size, what first calls cost, memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from jaxmeter.harness.metrics.reading import Case, Variant
from jaxmeter.harness.metrics.table import METRICS
from jaxmeter.harness.record.cases import COMPILATION

from ..text import shorten
from .figures.growth import draw_growth
from .figures.memory import draw_memory
from .figures.speed import compare_suite
from .figures.stages import draw_stages
from .names import LONGEST_NAME, LONGEST_TERM
from .overview_model import Card
from .sweeps import Sweep

GROWING = ("execution_s", "items_per_s", "flops_share", "compile_total_s", "planned_peak_bytes", "return_s")
GROWING_OF_COMPILING = ("compile_total_s", "trace_s", "compile_s", "execution_s", "planned_peak_bytes")
"""Metrics with a curve each; where compiling is what is measured its stages come first."""

MOST_GROWTH = 12
"""Cards of a suite that show growth."""

MOST_STAGES = 10


def make_suite_figures(standing: Sequence[Case], cases: Sequence[Case], sweeps: Sequence[Sweep]) -> tuple[Card, ...]:
    """Return the cards of a suite that have a figure.

    Args:
      standing: The case that answers the suite's question, on each machine that ran it.
      cases: All of the suite, on each machine each once.
      sweeps: Its cases that differ in one param.
    """
    found = (
        Card("speed", "How fast?", (), compare_suite(cases)),
        *list(_list_growth(sweeps))[:MOST_GROWTH],
        Card("first", "What does the first call cost?", (), draw_stages(_choose_compiled(cases))),
        Card("memory", "How much memory?", (), draw_memory(standing)),
    )
    return tuple(card for card in found if card.figure is not None)


def _list_growth(sweeps: Sequence[Sweep]) -> Iterator[Card]:
    """Yield a card for each metric over each param, all devices in one figure."""
    groups: dict[tuple[str, str, str], list[Sweep]] = {}
    for sweep in sweeps:
        groups.setdefault((sweep.workload, sweep.fixed, sweep.param), []).append(sweep)
    for (workload, fixed, param), own in groups.items():
        is_of_compiling = all(case.planned.measures == COMPILATION for _, case in own[0].cases)
        for metric in GROWING_OF_COMPILING if is_of_compiling else GROWING:
            figure = draw_growth(own, (metric,))
            if figure is not None:
                title = f"{METRICS[metric].title} over {param}"
                where = f": {shorten(f'{workload} {fixed}'.strip(), LONGEST_NAME)}" if len(groups) > 1 else ""
                yield Card(
                    f"{metric}-{shorten(workload, LONGEST_TERM)}", f"{title[:1].upper()}{title[1:]}{where}", (), figure
                )


def _choose_compiled(cases: Sequence[Case]) -> list[Variant]:
    """Return the first compiled variant of each case."""
    found = ((one for one in case.shown if one.planned.mode in ("jit", "aot")) for case in cases)
    return [variant for variants in found if (variant := next(variants, None)) is not None][:MOST_STAGES]
