"""Dead work: the floating-point operations of a traced function of which no result depends."""

from __future__ import annotations

import math
import re
from collections import Counter
from typing import Any

from jaxmeter.harness.machine import jax_internals as internals
from jaxmeter.harness.programs.equations import Lines, count_elementwise_flops, count_product_flops, list_inside

_DIFFERENTIATED = re.compile(r"\b(jvp|transpose)\(")


def measure_dead_work(jaxpr: Any, lines: Lines) -> tuple[float, Counter[str]]:
    """Return the share of the FLOPs that jax removes before it lowers, and these FLOPs by source line.

    What differentiation leaves over of a forward pass, since only the derivative is used, is not dead.
    """
    live, _ = internals.DEAD_CODE.load()(jaxpr, [True] * len(jaxpr.outvars))
    before, after = _count_flops(jaxpr, lines), _count_flops(live, lines)
    dead: Counter[str] = Counter()
    for (line, left_over), flops in before.items():
        removed = flops - after[line, left_over]
        if not left_over and removed > 0:
            dead[line] += removed
    return (dead.total() / before.total() if before else 0.0), dead


def has_work(jaxpr: Any) -> bool:
    """Return whether anything is computed at all."""
    return bool(_count_flops(jaxpr, Lines()))


def _count_flops(jaxpr: Any, lines: Lines) -> Counter[tuple[str, bool]]:
    """FLOPs by source line, and by whether differentiation leaves such work over."""
    counted: Counter[tuple[str, bool]] = Counter()

    def count(inner: Any, times: float, outside: str) -> None:
        for equation in inner.eqns:
            stack = f"{outside}/{equation.source_info.name_stack}"
            if inside := list_inside(equation):
                for deeper, rounds in inside:
                    count(deeper, times * rounds, stack)
                continue
            products = count_product_flops(equation)
            if flops := math.ceil(times * (products or count_elementwise_flops(equation))):
                counted[lines.find(equation), _is_left_over(stack, is_product=products > 0)] += flops

    count(jaxpr, 1.0, "")
    return counted


def _is_left_over(stack: str, *, is_product: bool) -> bool:
    """Whether an equation without use is what differentiation leaves over, by the transformations that made it.

    Of every forward pass elementwise work is: `jax.grad` drops the value. Products are where the function is itself a
    derivative, as in a Hessian times a vector; else a dead one was written by somebody.
    """
    outermost, *others = _DIFFERENTIATED.findall(stack) or [""]
    return outermost == "jvp" and (not is_product or "jvp" in others)
