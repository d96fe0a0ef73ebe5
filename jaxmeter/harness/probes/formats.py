"""Number formats on the way through a program, and the error of a result by rounding in each format."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import jax
import numpy

from jaxmeter.harness.machine import jax_internals as internals
from jaxmeter.harness.programs.equations import list_jaxprs, open_jaxpr
from jaxmeter.harness.programs.program import walk_equations

TOLERANCE = {
    "float64": 1e-12,
    "float32": 2e-5,
    "tensorfloat32": 5e-3,
    "float16": 5e-3,
    "bfloat16": 3e-2,
    "complex64": 2e-5,
    "complex128": 1e-12,
    "float8_e3m4": 0.0625,
    "float8_e4m3": 0.125,
    "float8_e4m3fn": 0.125,
    "float8_e4m3fnuz": 0.125,
    "float8_e4m3b11fnuz": 0.125,
    "float8_e5m2": 0.25,
    "float8_e5m2fnuz": 0.25,
    "float8_e8m0fnu": 0.5,
    "float4_e2m1fn": 0.5,
}
"""Largest error relative to the reference's largest entry, for sums and products of up to some ten thousand terms.

It is some tens of the format's rounding unit (float32 6e-8, TF32 and float16 5e-4, bfloat16 4e-3). Formats of 8 bits
and less only store values, and sums are made in wider formats. Their tolerance is two rounding units (float8_e4m3fn:
half a unit is 16/448 at the top, 16/272 just above 256). Integers have no error."""

PRODUCTS = ("dot_general", "conv_general_dilated")

EXACT = frozenset(
    {
        *("abs", "neg", "sign", "max", "min", "reduce_max", "reduce_min", "sort", "top_k", "select_n"),
        *("broadcast_in_dim", "concatenate", "expand_dims", "pad", "reshape", "rev", "split", "squeeze", "transpose"),
        *("dynamic_slice", "dynamic_update_slice", "gather", "slice"),
        *("copy", "copy_p", "optimization_barrier", "stop_gradient"),
    }
)
"""Operations that select or move values and round none: a bfloat16 argument stays exact in them."""


def find_tolerance(format_: str) -> float:
    """Return the tolerance of a floating format; without a row, the tolerance of the coarsest 16-bit format."""
    return TOLERANCE.get(format_, TOLERANCE["bfloat16"])


def find_unit(dtype: Any) -> float:
    """The distance of 1 to the next larger number of a floating dtype."""
    finfo: Any = jax.numpy.finfo
    return float(finfo(dtype).eps)


def choose_coarsest(formats: Iterable[str | None]) -> str | None:
    """The format with the largest tolerance; None where there is none."""
    return max((name for name in formats if name is not None), key=find_tolerance, default=None)


def name_format(dtype: Any) -> str | None:
    """A floating dtype by name; None of any other."""
    return str(dtype) if dtype is not None and jax.numpy.issubdtype(dtype, jax.numpy.inexact) else None


def find_formats(jaxpr: Any, arguments: Sequence[str | None] | None = None) -> tuple[str | None, ...]:
    """The coarsest format that any value on the way to each output was rounded to; None where none was floating.

    What arguments hold is exact, whatever their format. The way goes through floating values alone: an integer or a
    truth value that was computed from them is not rounded.

    Args:
      jaxpr: A program, without its constants.
      arguments: What was found of each argument; by default nothing.
    """
    known: dict[Any, str | None] = dict(zip(jaxpr.invars, arguments or (), strict=False))

    def look_up(atom: Any) -> str | None:
        return None if hasattr(atom, "val") else known.get(atom)

    for equation in jaxpr.eqns:
        before = [look_up(atom) for atom in equation.invars]
        for output, format_ in zip(equation.outvars, _find_outputs(equation, before), strict=True):
            known[output] = format_ if _name_output(output) else None
    return tuple(choose_coarsest((_name_output(atom), look_up(atom))) for atom in jaxpr.outvars)


def _find_outputs(equation: Any, before: list[str | None]) -> list[str | None]:
    """What was found of each output of an equation."""
    name, count = equation.primitive.name, len(equation.outvars)
    inner = list(map(open_jaxpr, list_jaxprs(equation)))
    if name in internals.CALLS and len(inner) == 1 and len(inner[0].invars) == len(before):
        formats = find_formats(inner[0], before)
        if len(formats) == count:
            return list(formats)
    if inner:
        inside = (_name_output(output) for jaxpr in inner for each in _list_rounding(jaxpr) for output in each.outvars)
        return [choose_coarsest((*before, *inside))] * count
    if name in EXACT:
        return [choose_coarsest(before)] * count
    return [choose_coarsest((*before, _name_output(output))) for output in equation.outvars]


def _list_rounding(jaxpr: Any) -> Iterator[Any]:
    """Equations at all levels that may round; of one that holds others, these alone."""
    for equation in walk_equations(jaxpr):
        if equation.primitive.name not in EXACT and not list_jaxprs(equation):
            yield equation


def _name_output(atom: Any) -> str | None:
    return name_format(getattr(atom.aval, "dtype", None))


def find_products(jaxpr: Any, default: str) -> tuple[str, ...]:
    """The formats that float32 matrix products and convolutions of a program are computed in.

    Args:
      default: What the device computes them in where the program asks for nothing.
    """
    return tuple(
        _find_product_format(equation, default)
        for equation in walk_equations(jaxpr)
        if equation.primitive.name in PRODUCTS and all(v.aval.dtype == numpy.float32 for v in equation.invars[:2])
    )


def _find_product_format(equation: Any, default: str) -> str:
    if default == "float32":
        return default
    asked = internals.PRECISION.find(equation.params)
    both = asked if isinstance(asked, tuple) else (asked,)
    # Of two operands the coarser counts.
    if all(each == jax.lax.Precision.HIGHEST for each in both):
        return "float32"
    finer = (jax.lax.Precision.HIGHEST, jax.lax.Precision.HIGH)
    return "tensorfloat32" if all(each in finer for each in both) else default
