"""Counts what a variant asks of the machine from the shapes of its arguments: it is traced and never called."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any

import jax

from jaxmeter.harness.declare.workload import Workload
from jaxmeter.harness.machine.platforms import Platform
from jaxmeter.harness.plan.probes import ONE_COMPILED
from jaxmeter.harness.plan.work import Work
from jaxmeter.harness.programs.arguments import choose_static, make_inputs, make_shapes
from jaxmeter.harness.programs.equations import CONVOLUTION, count_elements, count_product_flops, list_inside
from jaxmeter.harness.programs.program import walk_equations
from jaxmeter.harness.programs.static_leaves import is_array, split
from jaxmeter.harness.record import NATIVE, Param, PlannedCase

CONVOLUTION_COST = 4
"""An operation of a convolution takes as long as so many of a product: cnn_step[batch=128] against matmul[n=2048]."""

HARD = {"exp", "log", "tanh", "logistic", "erf", "sin", "cos", "pow", "threefry2x32", "random_bits", "sort", "cumsum"}
HARD_ELEMENTS = 8
"""An element of these takes about as long as so many of a sum: polynomials of that length, or passes."""

_LOOPS = {"scan", "while", "cond"}
_EVALUATED = {"custom_jvp_call", "custom_vjp_call", "custom_vjp_call_jaxpr", "checkpoint", "remat", "remat2"}
"""Calls whose inside eager code evaluates equation by equation."""


def count_work(workload: Workload, case: PlannedCase, platform: Platform) -> dict[str, Work]:
    """Work by variant; without those that cannot be traced. A peer is taken to do what the first that can be does."""
    shapes = _find_shapes(workload, case.params, platform)
    if shapes is None:
        return {}
    items = Counter(map(_key, shapes)) if workload.declaration.stream else Counter()
    calls = [(one, items[_key(one)]) for one in {_key(one): one for one in shapes}.values()] if items else [(shapes, 1)]
    traced: dict[str, list[tuple[Any, int]]] = {}
    found: dict[str, Work] = {}
    for variant in case.variants:
        if variant.skip is not None or variant.mode == NATIVE:
            continue
        if variant.implementation not in traced:
            function = workload.find_variant(variant.name)[0].function
            traced[variant.implementation] = _trace(function, case.params, calls)
        if programs := traced[variant.implementation]:
            compiled = variant.mode in ONE_COMPILED
            work = _weigh(programs, compiled=compiled)
            tuning_s = platform.tunes_s if work.flops else 0.0
            found[variant.name] = Work(**vars(work), accelerator=platform.device != "cpu", tuning_s=tuning_s)
    if found:
        like = next(iter(found.values()))
        found |= {item.name: like for item in case.variants if item.mode == NATIVE and item.skip is None}
    return found


def _find_shapes(workload: Workload, params: dict[str, Param], platform: Platform) -> tuple[Any, ...] | None:
    """Shapes of a case's arguments; None where they cannot be known here.

    Inputs that are made without JAX are made, as every process will do, unless they are sized for another device.
    """
    try:
        return make_shapes(workload, params)
    except Exception:  # noqa: BLE001  they may be made in any way
        if platform.device != "cpu":
            return None
    try:
        made = make_inputs(workload, params)
        shapes: tuple[Any, ...] = jax.tree.map(_find_shape, made)
    except Exception:  # noqa: BLE001  as above
        return None
    return shapes


def _find_shape(leaf: Any) -> Any:
    return jax.ShapeDtypeStruct(leaf.shape, leaf.dtype) if is_array(leaf) else leaf


def _key(arguments: Any) -> str:
    return str(jax.tree.map(_find_shape, arguments))


def _trace(function: Any, params: dict[str, Param], calls: Iterable[tuple[Any, int]]) -> list[tuple[Any, int]]:
    """Its equations for each type of arguments, and how often a call comes to them; none where it cannot be traced."""
    whole = partial(function, **choose_static(function, params))
    try:
        return [(_make_jaxpr(whole, arguments), times) for arguments, times in calls]
    except Exception:  # noqa: BLE001  a suite's code may do what a trace cannot
        return []


def _make_jaxpr(function: Any, arguments: tuple[Any, ...]) -> Any:
    whole = split(arguments)
    return jax.make_jaxpr(whole.close_over(function))(*whole.traced[0]).jaxpr


@dataclass
class _Tally:
    """The fields of Work while they are counted."""

    programs: int = 0
    equations: int = 0
    again: int = 0
    equations_again: int = 0
    dispatched: float = 0.0
    derived: float = 0.0
    flops: float = 0.0
    elements: float = 0.0
    bytes: float = 0.0


def _weigh(programs: Iterable[tuple[Any, int]], *, compiled: bool) -> _Tally:
    tally, kinds = _Tally(), set[tuple[Any, ...]]()
    for jaxpr, times in programs:
        if not compiled:
            _times_return(jaxpr, times, tally, kinds)
            continue
        tally.programs += 1
        tally.equations += sum(1 for _ in walk_equations(jaxpr))
        tally.dispatched += times
        tally.bytes += times * _bytes((*jaxpr.invars, *jaxpr.outvars))
        _execute(jaxpr, times, tally)
    return tally


def _times_return(jaxpr: Any, times: float, tally: _Tally, kinds: set[tuple[Any, ...]]) -> None:
    """Equations that are started one by one, each compiled when it is met for the first time."""
    for equation in jaxpr.eqns:
        name, inside = equation.primitive.name, list_inside(equation)
        if name in _EVALUATED:
            for inner, rounds in inside:
                _times_return(inner, times * rounds, tally, kinds)
            continue
        held = sum(1 for inner, _ in inside for _ in walk_equations(inner))
        if "(" in str(equation.source_info.name_stack):  # such as transpose(jvp())
            tally.derived += times
        tally.dispatched += times
        if inside or not _weigh_products(equation):  # else counted with the product
            tally.bytes += times * _bytes((*equation.invars, *equation.outvars))
        if name in _LOOPS:
            tally.again += int(times)
            tally.equations_again += int(times) * held
        kind = (name, *(str(item.aval) for item in (*equation.invars, *equation.outvars)))
        if kind not in kinds:
            kinds.add(kind)
            tally.programs += 1
            tally.equations += held
        _count(equation, inside, times, tally)


def _execute(jaxpr: Any, times: float, tally: _Tally) -> None:
    """Equations inside a program."""
    for equation in jaxpr.eqns:
        _count(equation, list_inside(equation), times, tally)


def _count(equation: Any, inside: list[tuple[Any, float]], times: float, tally: _Tally) -> None:
    """What one equation computes, or what is inside it."""
    for inner, rounds in inside:
        _execute(inner, times * rounds, tally)
    if inside:
        return
    flops = _weigh_products(equation)
    if flops:
        tally.flops += times * flops
        tally.bytes += times * _bytes((*equation.invars, *equation.outvars))
    else:
        hard = HARD_ELEMENTS if equation.primitive.name in HARD else 1
        tally.elements += times * hard * sum(count_elements(item) for item in equation.outvars)


def _weigh_products(equation: Any) -> float:
    """Operations of a product, a convolution or a factorisation, in those of a product; 0 of anything else."""
    flops = count_product_flops(equation)
    return CONVOLUTION_COST * flops if equation.primitive.name == CONVOLUTION else flops


def _bytes(items: Iterable[Any]) -> int:
    return sum(count_elements(item) * getattr(getattr(item.aval, "dtype", None), "itemsize", 0) for item in items)
