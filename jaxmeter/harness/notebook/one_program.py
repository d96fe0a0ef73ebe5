"""Which functions are one jitted call inside, so that eager and jit run the same program."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from jaxmeter.harness.machine import jax_internals as internals
from jaxmeter.harness.notebook.measurement import compare_passes
from jaxmeter.harness.programs.equations import list_jaxprs, open_jaxpr
from jaxmeter.harness.record import ProcessRecord

MOST_APART = 2.0
"""Largest ratio of times that a Python function around a jitted call explains: it costs about 1 us of the 3 us of the
shortest call. Beyond it, the function does work of its own in every eager call, as `checkify` does."""


def describe_one_program(jitted_calls: Iterable[str], process: ProcessRecord | None) -> list[str]:
    """Name the functions whose eager and jit variants run the same program; a note, or none.

    Args:
      jitted_calls: Names of functions whose trace is one jitted call.
      process: Their times; without them nothing is known of what an eager call does.
    """
    names = [name for name in jitted_calls if process is not None and _does_nothing_else(name, process)]
    if not names:
        return []
    verb = "is" if len(names) == 1 else "are each"
    return [f"{', '.join(names)} {verb} one jitted call: eager and jit are the same program"]


def is_one_jitted_call(jaxpr: Any) -> bool:
    """Return whether a traced program is one call of a jitted function that jit around it compiles alike.

    A jit around it donates nothing, removes outputs that are not returned, and makes constants of what is no argument.
    """
    if len(jaxpr.eqns) != 1 or jaxpr.constvars:
        return False
    (equation,) = jaxpr.eqns
    if equation.primitive.name not in internals.JIT.all_names:
        return False
    donated = equation.params.get(internals.DONATED.name)
    return (
        donated is not None  # else that is unknown, and nothing is said
        and not any(donated)
        and _are_among(equation.invars, jaxpr.invars)
        and _are_among(equation.outvars, jaxpr.outvars)
        and _are_among(jaxpr.outvars, equation.outvars)
    )


def count_operations(jaxpr: Any) -> int:
    """Return how many operations eager code runs for a traced program; of a program that is one jitted call, inside."""
    while len(jaxpr.eqns) == 1 and (inside := list_jaxprs(jaxpr.eqns[0])):
        jaxpr = open_jaxpr(inside[0])
    return len(jaxpr.eqns)


def _are_among(values: Iterable[Any], others: Iterable[Any]) -> bool:
    known = set(map(id, others))  # literals cannot be hashed
    return all(id(value) in known for value in values)


def _does_nothing_else(name: str, process: ProcessRecord) -> bool:
    """Return whether eager calls of a function compile nothing and take as long as its jitted program."""
    compiles = {item.variant: item.compiles_per_call for item in process.variants}
    ratio = compare_passes(process, f"{name}:eager", f"{name}:jit")
    if ratio is None or compiles[f"{name}:eager"] or compiles[f"{name}:jit"]:
        return False
    return 1 / MOST_APART <= ratio.estimate <= MOST_APART
