"""What stands next to a variant's time or speedup where a reader must know more of it: a word for each doubt."""

from __future__ import annotations

from jaxmeter.harness.metrics.agreement import TIMES, find_disagreement
from jaxmeter.harness.metrics.metric import Reading
from jaxmeter.harness.metrics.precision import explain_scatter
from jaxmeter.harness.metrics.reading import Variant
from jaxmeter.harness.record.traps import describe_trap, find_traps, name_trap

CONTENDED = "contended"
"""What follows a number that is not to be trusted."""

AT_ODDS = "inconsistent"


def find_doubts(variant: Variant, reading: Reading) -> tuple[str, ...]:
    """Return the words that follow a number: contended, inconsistent with the speedup, above the peak, traps."""
    words = [CONTENDED] if reading.contended else [reading.doubt] if reading.doubt else []
    if reading.metric.name in TIMES and find_disagreement(variant, reading.metric.name):
        words.append(AT_ODDS)
    return (*words, *name_traps(variant))


def name_traps(variant: Variant) -> tuple[str, ...]:
    """Return `trap: dead work` for each kind of trap that its suite does not declare."""
    return tuple(dict.fromkeys(f"trap: {name_trap(trap)}" for trap in find_traps(variant.outcomes)))


def explain_doubts(variant: Variant) -> tuple[str, ...]:
    """Return the sentences behind the words, and why a speedup scatters far more than others, each once."""
    traps = map(describe_trap, find_traps(variant.outcomes))
    times = (find_disagreement(variant, metric) for metric in TIMES)
    return tuple(dict.fromkeys(filter(None, (*traps, *times, explain_scatter(variant)))))
