"""Which outputs of a jaxpr depend on its inputs, also through calls, loops and branches inside."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from jaxmeter.harness.machine import jax_internals as internals
from jaxmeter.harness.programs.equations import list_jaxprs, open_jaxpr

FROM_OUTSIDE = ("callback", "outside_call", "axis_index", "infeed", "recv")
"""Parts of the names of primitives whose results come from elsewhere than their operands."""


def find_dependent(jaxpr: Any, known: Sequence[bool]) -> list[bool]:
    """Return for each output whether it depends on an input.

    Where that cannot be seen, as inside a primitive of an unknown form, an output depends on all that goes in.

    Args:
      known: For each input whether it counts as one.
    """
    dependent = {var for var, counts in zip(jaxpr.invars, known, strict=True) if counts}
    for equation in jaxpr.eqns:
        inputs = [not _is_literal(var) and var in dependent for var in equation.invars]
        outputs = _follow(equation, inputs)
        dependent |= {var for var, depends in zip(equation.outvars, outputs, strict=True) if depends}
    return [not _is_literal(var) and var in dependent for var in jaxpr.outvars]


def _follow(equation: Any, inputs: list[bool]) -> list[bool]:
    """Whether each output of an equation depends on an input of the program."""
    name, params, many = equation.primitive.name, equation.params, len(equation.outvars)
    if any(part in name for part in FROM_OUTSIDE):
        return [True] * many
    if name == "scan":
        fixed, state = internals.count_scan(params, inputs)
        return _follow_loop(
            open_jaxpr(internals.SCAN_BODY.find(params)),
            inputs[:fixed],
            inputs[fixed : fixed + state],
            inputs[fixed + state :],
        )
    if name == "while":
        return _follow_while(params, inputs)
    if name == "cond":
        if inputs[0]:  # which branch is taken
            return [True] * many
        branches = [find_dependent(open_jaxpr(branch), inputs[1:]) for branch in internals.BRANCHES.find(params)]
        return [any(outputs) for outputs in zip(*branches, strict=True)]
    inner = list(map(open_jaxpr, list_jaxprs(equation)))
    fits = len(inner) == 1 and (len(inner[0].invars), len(inner[0].outvars)) == (len(inputs), many)
    if fits and name in internals.CALLS | {"shard_map", "xla_pmap"}:
        return find_dependent(inner[0], inputs)
    # What an effect does, such as reading a mutable array, is not seen here.
    return [any(inputs) or bool(equation.effects)] * many


def _follow_loop(body: Any, fixed: list[bool], state: list[bool], sliced: list[bool]) -> list[bool]:
    """Follow a scan until its state depends on no more than before; then what it stacks is known too."""
    while True:
        outputs = find_dependent(body, [*fixed, *state, *sliced])
        grown = [before or after for before, after in zip(state, outputs, strict=False)]
        if grown == state:
            return [*state, *outputs[len(state) :]]
        state = grown


def _follow_while(params: Any, inputs: list[bool]) -> list[bool]:
    """Follow a while loop; where its end depends on an input, all that it gives does."""
    of_end, of_body = internals.WHILE_CONDITION_COUNT.find(params), internals.WHILE_BODY_COUNT.find(params)
    end, fixed, state = inputs[:of_end], inputs[of_end : of_end + of_body], inputs[of_end + of_body :]
    state = _follow_loop(open_jaxpr(internals.WHILE_BODY.find(params)), fixed, state, [])
    ends = find_dependent(open_jaxpr(internals.WHILE_CONDITION.find(params)), [*end, *state])
    return [True] * len(state) if any(ends) else state


def _is_literal(var: Any) -> bool:
    return hasattr(var, "val")
