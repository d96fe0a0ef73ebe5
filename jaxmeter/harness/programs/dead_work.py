"""Dead work: the floating-point operations of a traced function of which no result depends."""

from __future__ import annotations

import math
import re
from collections import Counter
from dataclasses import dataclass
from typing import Any

from jaxmeter.harness.machine import jax_internals as internals
from jaxmeter.harness.programs.equations import (
    Lines,
    count_elementwise_flops,
    count_product_flops,
    find_user_line,
    list_inside,
)

_DIFFERENTIATED = re.compile(r"\b(jvp|transpose)\(")


@dataclass(frozen=True)
class DeadWork:
    """Work that JAX removes before it lowers.

    Args:
      share: Of the FLOPs.
      by_line: FLOPs by source line.
    """

    share: float
    by_line: Counter[str]


def measure_dead_work(jaxpr: Any, lines: Lines) -> tuple[DeadWork, DeadWork]:
    """Return the dead work that the user's lines do for nothing, and that inside calls whose other work is live.

    The second is in a library, and a user cannot change it. What differentiation leaves over of a forward pass, since
    only the derivative is used, is not dead.
    """
    live, _ = internals.DEAD_CODE.load()(jaxpr, [True] * len(jaxpr.outvars))
    before, after = _count_flops(jaxpr, lines), _count_flops(live, lines)
    used = {find_user_line(line) for (line, _), flops in after.items() if flops}
    own: Counter[str] = Counter()
    inside: Counter[str] = Counter()
    for (line, left_over), flops in before.items():
        removed = flops - after[line, left_over]
        user = find_user_line(line)
        if not left_over and removed > 0:
            (inside if user != line and user in used else own)[line] += removed
    whole = before.total() or 1
    return DeadWork(own.total() / whole, own), DeadWork(inside.total() / whole, inside)


def has_work(jaxpr: Any) -> bool:
    """Return whether anything is computed at all."""
    return bool(_count_flops(jaxpr, Lines()))


def _count_flops(jaxpr: Any, lines: Lines) -> Counter[tuple[str, bool]]:
    """FLOPs by source line, and by whether differentiation leaves such work over."""
    counted: Counter[tuple[str, bool]] = Counter()

    def count(inner: Any, times: float, outside: str, outer: tuple[Any, ...]) -> None:
        for equation in inner.eqns:
            stack = f"{outside}/{equation.source_info.name_stack}"
            if inside := list_inside(equation):
                for deeper, rounds in inside:
                    count(deeper, times * rounds, stack, (*outer, equation))
                continue
            products = count_product_flops(equation)
            if flops := math.ceil(times * (products or count_elementwise_flops(equation))):
                counted[lines.find(equation, outer), _is_left_over(stack, is_product=products > 0)] += flops

    count(jaxpr, 1.0, "", ())
    return counted


def _is_left_over(stack: str, *, is_product: bool) -> bool:
    """Whether an equation without use is what differentiation leaves over, by the transformations that made it.

    Of every forward pass elementwise work is: `jax.grad` drops the value. Products are where the function is itself a
    derivative, as in a Hessian times a vector; else a dead one was written by somebody.
    """
    outermost, *others = _DIFFERENTIATED.findall(stack) or [""]
    return outermost == "jvp" and (not is_product or "jvp" in others)
