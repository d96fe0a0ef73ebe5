"""Which variants of a case are one program: a difference between their times is chance."""

from __future__ import annotations

from jaxmeter.harness.metrics.metric import Readable
from jaxmeter.harness.record.outcomes import CompilationDetails

NO_EFFECT = "the compiler options that differ have no effect on it"


def is_same_program(one: Readable, other: Readable) -> bool:
    """Return whether two implementations of a case were compiled to the same program.

    That jit and aot of one implementation are the same program is by design, so it is no answer here. Equal HLO of
    unequal compiler options is not enough: options can change the machine code alone. Nor do programs count that call
    Python, which their HLO does not hold.
    """
    if one.planned.name.rpartition(":")[0] == other.planned.name.rpartition(":")[0]:
        return False
    first, second = _find_details(one), _find_details(other)
    if first is None or second is None or any(trap.kind == "callbacks" for trap in (*first.traps, *second.traps)):
        return False
    if _has_equal_options(one, other):
        return len(first.fingerprints) == 1 and first.fingerprints == second.fingerprints
    return first.code is not None and first.code == second.code


def explain_same_program(one: Readable, other: Readable) -> str:
    """Return why two variants are the same program although they were declared as two; empty if nobody asks."""
    return "" if _has_equal_options(one, other) else NO_EFFECT


def _has_equal_options(one: Readable, other: Readable) -> bool:
    return one.planned.compiler_options == other.planned.compiler_options


def _find_details(source: Readable) -> CompilationDetails | None:
    details = (outcome.details for outcome in source.outcomes.values())
    return next((each for each in details if isinstance(each, CompilationDetails)), None)
