"""Faults planted in a program: it is traced, and one of its operations, constants or arguments is made wrong."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import jax
import jax.numpy as jnp

from jaxmeter.harness.machine import jax_internals
from jaxmeter.harness.programs.equations import list_jaxprs, open_jaxpr
from jaxmeter.harness.programs.modes import as_new_function

TIMES = 10
"""How many times the tolerance a scaled output is off."""

PRODUCTS = frozenset({"dot_general", "conv_general_dilated"})
LINEAR = frozenset({"mul", "div", "sub", "tanh", "exp", "sin", "cos", "reduce_sum", "cumsum", "fft", "lu", "eigh"})
TERMS = frozenset({"add", "sub", "add_any"})
ROUNDED = frozenset({"reduce_sum", "cumsum", "add", "mul", "lu", "eigh", "svd", "householder_product", "fft"})


@dataclass
class _Fault:
    """What is done to the operations of one kind, in the order in which they are met.

    Args:
      names: Of primitives.
      change: (equation, operands, results) -> results.
      chosen: Which of them; None for all, -1 for none.
      met: How many were met.
    """

    names: frozenset[str]
    change: Callable[[Any, list[Any], list[Any]], list[Any]]
    is_fit: Callable[[Any], bool] = lambda equation: True
    chosen: int | None = -1
    met: int = field(default=0)

    def apply(self, equation: Any, operands: list[Any], results: list[Any]) -> list[Any]:
        """The results, wrong where this operation is chosen."""
        if equation.primitive.name not in self.names or not _is_floating(equation) or not self.is_fit(equation):
            return results
        self.met += 1
        return self.change(equation, operands, results) if self.chosen in (None, self.met - 1) else results


def plant(function: Callable[..., Any], args: tuple[Any, ...], tolerance: float) -> dict[str, Callable[..., Any]]:
    """By name, the function with one fault each; without those for which it has no place."""
    faults: dict[str, Callable[..., Any]] = {}
    sign = _choose(function, args, lambda names: _Fault(names, _negate), (PRODUCTS, LINEAR))
    term = _choose(function, args, lambda names: _Fault(names, _drop, _has_two_terms), (TERMS,))
    rounded = _choose(function, args, lambda names: _Fault(names, _round), (PRODUCTS, ROUNDED))
    for name, fault in (("sign", sign), ("missing term", term), ("bfloat16", rounded)):
        if fault is not None:
            fault.chosen = None if name == "bfloat16" else fault.met // 2
            faults[name] = _interpret(function, fault)
    if (transposed := _transpose(function, args)) is not None:
        faults["transposed"] = transposed
    faults["scaled"] = lambda *given: _scale_largest(function(*given), 1 + TIMES * tolerance)
    faults["zeros"] = lambda *given: _scale_largest(function(*given), 0)
    return faults


def _choose(function: Any, args: Any, make: Callable[[frozenset[str]], _Fault], kinds: Any) -> _Fault | None:
    """A fault in operations of the first kind that the program has."""
    for names in kinds:
        fault = make(names)
        jax.eval_shape(_interpret(function, fault), *args)
        if fault.met:
            return fault
    return None


def _negate(equation: Any, operands: list[Any], results: list[Any]) -> list[Any]:
    return [-results[0], *results[1:]]


def _drop(equation: Any, operands: list[Any], results: list[Any]) -> list[Any]:
    return [operands[0]]


def _round(equation: Any, operands: list[Any], results: list[Any]) -> list[Any]:
    def narrow(value: Any) -> Any:
        is_wide = jnp.issubdtype(value.dtype, jnp.floating)
        return jax.lax.reduce_precision(value, 8, 7) if is_wide else value

    return [narrow(value) for value in results]


def _is_floating(equation: Any) -> bool:
    return bool(jnp.issubdtype(equation.outvars[0].aval.dtype, jnp.inexact))


def _has_two_terms(equation: Any) -> bool:
    shapes = [atom.aval.shape for atom in equation.invars]
    return shapes[0] == shapes[1] and not any(hasattr(atom, "val") for atom in equation.invars)


def _transpose(function: Any, args: tuple[Any, ...]) -> Callable[..., Any] | None:
    """The function with its first square matrix transposed."""
    leaves, tree = jax.tree.flatten(args)
    for place, leaf in enumerate(leaves):
        is_square = leaf.ndim == 2 and leaf.shape[0] == leaf.shape[1] > 1
        if is_square and jnp.issubdtype(leaf.dtype, jnp.inexact):

            def transposed(*given: Any, place: int = place) -> Any:
                changed = jax.tree.leaves(given)
                changed[place] = changed[place].T
                return function(*jax.tree.unflatten(tree, changed))

            return transposed
    return None


def _scale_largest(result: Any, factor: float) -> Any:
    """The largest floating output, times a factor."""
    leaves, tree = jax.tree.flatten(result)
    floating = [place for place, leaf in enumerate(leaves) if jnp.issubdtype(leaf.dtype, jnp.inexact)]
    if floating:
        place = max(floating, key=lambda place: leaves[place].size)
        # In float32 at least: in a narrow format the factor may round to 1.
        wide = jnp.promote_types(leaves[place].dtype, jnp.float32)
        leaves[place] = (leaves[place].astype(wide) * jnp.asarray(factor, wide)).astype(leaves[place].dtype)
    return jax.tree.unflatten(tree, leaves)


def _interpret(function: Callable[..., Any], fault: _Fault) -> Callable[..., Any]:
    """The function, evaluated operation by operation with the fault."""

    def faulty(*args: Any) -> Any:
        traced = jax.jit(as_new_function(function)).trace(*args)
        fault.met = 0
        results = _evaluate(traced.jaxpr.jaxpr, traced.jaxpr.consts, jax.tree.leaves(args), fault)
        return jax.tree.unflatten(jax.tree.structure(traced.out_info), results)

    return faulty


def _evaluate(jaxpr: Any, consts: Any, args: Any, fault: _Fault) -> list[Any]:
    values: dict[Any, Any] = dict(zip(jaxpr.constvars, consts, strict=True)) | dict(
        zip(jaxpr.invars, args, strict=True)
    )

    def read(atom: Any) -> Any:
        return atom.val if hasattr(atom, "val") else values[atom]

    for equation in jaxpr.eqns:
        operands = [read(atom) for atom in equation.invars]
        values |= dict(zip(equation.outvars, _evaluate_one(jaxpr, equation, operands, fault), strict=True))
    return [read(atom) for atom in jaxpr.outvars]


def _evaluate_one(jaxpr: Any, equation: Any, operands: list[Any], fault: _Fault) -> list[Any]:
    name, params = equation.primitive.name, equation.params
    if (inside := list_jaxprs(equation)) and not name.startswith(jax_internals.REDUCTIONS):
        jax_internals.check_known(name)
    if name in jax_internals.CALLS and len(inside) == 1:
        return _evaluate(open_jaxpr(inside[0]), getattr(inside[0], "consts", []), operands, fault)
    if name == "scan":
        return _scan(params, operands, fault)
    given = {atom: operand for atom, operand in zip(equation.invars, operands, strict=True) if not hasattr(atom, "val")}
    alone = jaxpr.replace(constvars=[], invars=list(given), outvars=equation.outvars, eqns=[equation])
    return fault.apply(equation, operands, jax_internals.EVALUATE.load()(alone, [], *given.values()))


def _scan(params: Any, operands: list[Any], fault: _Fault) -> list[Any]:
    (fixed, carried), closed = jax_internals.count_scan(params, operands), jax_internals.SCAN_BODY.find(params)
    before = fault.met

    def body(carry: Any, row: Any) -> Any:
        fault.met = before  # it may be traced more than once
        results = _evaluate(closed.jaxpr, closed.consts, [*operands[:fixed], *carry, *row], fault)
        return results[:carried], results[carried:]

    begin, rows = operands[fixed : fixed + carried], operands[fixed + carried :]
    end, given = jax.lax.scan(body, begin, rows, length=params["length"], reverse=params["reverse"])
    return [*end, *given]
