"""A traced program, evaluated operation by operation; and the number formats on the way through it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import count
from typing import Any

import jax
import jax.numpy as jnp
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


def list_constants(closed: Any) -> list[Any]:
    """Captured constants of a program, then those of the jitted calls in it, in the order of its equations."""
    constants = list(closed.consts)
    for equation in closed.jaxpr.eqns:
        if equation.primitive.name in internals.JIT.all_names:
            constants += list_constants(internals.CALL_BODY.find(equation.params))
    return constants


UNITS = {"tensorfloat32": 2.0**-10, "float16": 2.0**-10}
"""Of formats that products are computed in, relative to a number; of others that of bfloat16."""

BFLOAT16_UNIT = 2.0**-7


def evaluate(
    closed: Any, constants: Iterator[Any], arguments: list[Any], seed: Any = None, coarse: str | None = None
) -> list[Any]:
    """What a program gives with other constants, also in the jitted calls inside; for use under jit.

    Args:
      constants: In the order of `list_constants`.
      seed: Moves what each operation gives by -1, 0 or +1 unit in the last place; None moves nothing. Values of 16
        bits and less stay where there is no coarse format.
      coarse: A format in which operands of float32 products are moved, where products are computed in it.
    """
    return _Evaluation(constants, seed, coarse).run(closed, arguments)


class _Evaluation:
    def __init__(self, constants: Iterator[Any], seed: Any, coarse: str | None) -> None:
        self._constants, self._seed, self._coarse, self._salts = constants, seed, coarse, count(1)

    def run(self, closed: Any, arguments: list[Any]) -> list[Any]:
        jaxpr = open_jaxpr(closed)
        values: dict[Any, Any] = dict(
            zip(jaxpr.constvars, [next(self._constants) for _ in jaxpr.constvars], strict=True)
        )
        values |= dict(zip(jaxpr.invars, arguments, strict=True))

        def look_up(atom: Any) -> Any:
            return atom.val if hasattr(atom, "val") else values[atom]

        for equation in jaxpr.eqns:
            given = [look_up(atom) for atom in equation.invars]
            values |= dict(zip(equation.outvars, self._run_one(jaxpr, equation, given), strict=True))
        return [look_up(atom) for atom in jaxpr.outvars]

    def _run_one(self, jaxpr: Any, equation: Any, given: list[Any]) -> list[Any]:
        name, params = equation.primitive.name, equation.params
        # A jitted call without constants stays one, unless its inside is moved: options of its own may count.
        if name in internals.JIT.all_names and (
            self._seed is not None or list_constants(internals.CALL_BODY.find(params))
        ):
            return self.run(internals.CALL_BODY.find(params), given)
        if self._seed is not None and (inner := list_jaxprs(equation)):
            internals.check_known(name)
            if name in internals.CALLS and len(inner) == 1:
                return self._run_inside(inner[0], given)
            if name in self._loops:
                return self._loops[name](params, given)
        if name in PRODUCTS and self._seed is not None and self._coarse is not None:
            unit = UNITS.get(self._coarse, BFLOAT16_UNIT)
            given = [self._scale(value, unit) if str(value.dtype) == "float32" else value for value in given]
        known = {atom: value for atom, value in zip(equation.invars, given, strict=True) if not hasattr(atom, "val")}
        alone = jaxpr.replace(constvars=[], invars=list(known), outvars=equation.outvars, eqns=[equation])
        results: list[Any] = internals.EVALUATE.load()(alone, [], *known.values())
        if self._seed is None or name in EXACT:
            return results
        return [self._round(result) for result in results]

    @property
    def _loops(self) -> dict[str, Callable[[Any, list[Any]], list[Any]]]:
        return {"scan": self._scan, "while": self._while, "cond": self._cond}

    def _run_inside(self, inner: Any, arguments: list[Any]) -> list[Any]:
        """Return the moved results of an inner function, which holds its own constants."""
        constants = iter(getattr(inner, "consts", ()))
        return _Evaluation(constants, self._seed, self._coarse).run(inner, arguments)

    def _scan(self, params: Any, given: list[Any]) -> list[Any]:
        fixed, carried = internals.count_scan(params, given)
        inside = internals.SCAN_BODY.find(params)

        def body(carry: Any, row: Any) -> Any:
            results = self._run_inside(inside, [*given[:fixed], *carry, *row])
            return results[:carried], results[carried:]

        length, reverse = internals.SCAN_LENGTH.find(params), internals.SCAN_REVERSE.find(params)
        begin, rows = given[fixed : fixed + carried], given[fixed + carried :]
        end, stacked = jax.lax.scan(body, begin, rows, length=length, reverse=reverse)
        return [*end, *stacked]

    def _while(self, params: Any, given: list[Any]) -> list[Any]:
        """Return the results of a loop with a moved body. Its condition is exact, but depends on moved values."""
        of_end, of_body = internals.WHILE_CONDITION_COUNT.find(params), internals.WHILE_BODY_COUNT.find(params)
        condition, body = internals.WHILE_CONDITION.find(params), internals.WHILE_BODY.find(params)
        to_end, to_body, begin = given[:of_end], given[of_end : of_end + of_body], given[of_end + of_body :]

        def goes_on(state: Any) -> Any:
            constants = iter(getattr(condition, "consts", ()))
            return _Evaluation(constants, None, None).run(condition, [*to_end, *state])[0]

        return list(jax.lax.while_loop(goes_on, lambda state: self._run_inside(body, [*to_body, *state]), begin))

    def _cond(self, params: Any, given: list[Any]) -> list[Any]:
        index, *operands = given
        branches = [
            lambda *arguments, branch=branch: self._run_inside(branch, list(arguments))
            for branch in internals.BRANCHES.find(params)
        ]
        return list(jax.lax.switch(index, branches, *operands))

    def _round(self, value: Any) -> Any:
        """A result moved by one unit in the last place at most; integers stay, as those of arguments do."""
        name = str(getattr(value, "dtype", ""))
        if name.startswith("complex"):
            return jax.lax.complex(self._round(value.real), self._round(value.imag))
        if name not in ("float32", "float64"):
            is_narrow = self._coarse is not None and jnp.issubdtype(getattr(value, "dtype", int), jnp.floating)
            return self._scale(value, find_unit(value.dtype)) if is_narrow else value
        directions = self._choose_directions(value)
        moved = jnp.nextafter(value, directions * jnp.asarray(jnp.inf, value.dtype))
        kept = (value == jnp.round(value)) & (jnp.abs(value) < 2.0 ** numpy.finfo(name).nmant)
        return jnp.where((directions == 0) | kept | ~jnp.isfinite(value), value, moved)

    def _scale(self, value: Any, unit: float) -> Any:
        """Numbers changed by -1, 0 or +1 unit relative to their size; integers stay."""
        wide = value.astype("float32")
        moved = (wide * (1 + self._choose_directions(wide) * jnp.float32(unit))).astype(value.dtype)
        return jnp.where((wide == jnp.round(wide)) | ~jnp.isfinite(wide), value, moved)

    def _choose_directions(self, value: Any) -> Any:
        """For each entry of float32 or float64 -1, 0 or 1."""
        bits = jax.lax.bitcast_convert_type(value, "uint32")  # of float64 two words
        bits = bits if value.dtype == jnp.float32 else bits[..., 0] ^ bits[..., 1]
        salt = jnp.uint32(next(self._salts) * 0x9E3779B9 % 2**32) + jnp.uint32(self._seed) * jnp.uint32(0x85EBCA6B)
        return (_mix(_mix(bits + salt) + _number(value.shape)) % 3).astype(value.dtype) - 1


def _number(shape: tuple[int, ...]) -> Any:
    """A number for each entry, so that equal entries are not all moved alike."""
    return sum(
        (
            jax.lax.broadcasted_iota("uint32", shape, axis) * jnp.uint32(2654435761 + 2 * axis)
            for axis in range(len(shape))
        ),
        start=jnp.zeros(shape, "uint32"),
    )


def _mix(bits: Any) -> Any:
    """Bits that look drawn at random: the finaliser of MurmurHash3 (Appleby)."""
    bits = (bits ^ (bits >> 16)) * jnp.uint32(0x85EBCA6B)
    bits = (bits ^ (bits >> 13)) * jnp.uint32(0xC2B2AE35)
    return bits ^ (bits >> 16)
