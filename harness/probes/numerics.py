"""Is the answer right? Every variant against the workload's reference, before anything is timed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import jax
import numpy

from harness.declare.levels import call_with, find_wanted_params
from harness.machine.environment import said
from harness.plan.messages import CHECK
from harness.probes.context import Context, Probe, widest
from harness.programs.modes import Prepared
from harness.programs.program import equations
from harness.record import Outcome, Status

TOLERANCE = {
    "float64": 1e-12,
    "float32": 2e-5,
    "tensorfloat32": 5e-3,
    "float16": 5e-3,
    "bfloat16": 3e-2,
    "complex64": 2e-5,
    "complex128": 1e-12,
}
"""Largest error relative to the reference's largest entry: some tens of the format's rounding unit (float32 6e-8,
TF32 and float16 5e-4, bfloat16 4e-3), for sums and products of up to some ten thousand terms. Integers: none."""

_PRODUCTS = ("dot_general", "conv_general_dilated")


def run(variant: str, prepared: Prepared, context: Context) -> Outcome:
    """Calls the variant once and compares."""
    result = prepared.wait(prepared.call(*prepared.args))
    if context.reference is None:
        return Outcome(status=Status.OK, notes=(f"not checked: {context.workload.declaration.reference.reason}",))  # type: ignore[union-attr]
    if (compare := context.workload.declaration.compare) is not None:
        known = dict(context.params)
        if "inputs" in find_wanted_params(compare, known):
            known["inputs"] = jax.tree.map(_array, context.arguments)
        try:
            result = call_with(compare, known, jax.tree.map(_array, result))
        except Exception as unreadable:  # noqa: BLE001  it is written for results of the right form
            return Outcome(status=Status.WRONG, reason=f"compare() cannot read the result: {said(unreadable)}")
    pairs = _pairs(result, context.reference)
    if isinstance(pairs, str):
        return Outcome(status=Status.WRONG, reason=pairs)
    precision, is_seen = _product_dtype(prepared, context)
    worst = 0.0
    for number, (got, want) in enumerate(pairs):
        allowed = _tolerance(got.dtype, precision, context)
        error, place = relative_error(widest(got), want)
        worst = max(worst, error)
        if not error <= allowed:
            where = f"output {number}, index {place}" if len(pairs) > 1 else f"index {place}"
            return Outcome(
                status=Status.WRONG,
                reason=f"at {where}: got {_entry(got, place)}, reference {_entry(want, place)}; "
                f"error {error:.2g} of the largest entry, allowed {allowed:.2g} for {precision or got.dtype}",
                values={"max_error": (worst if numpy.isfinite(worst) else None,)},
            )
    notes = [f"products in {precision}"] if precision and is_seen else []
    # What a reference does not know it gives as NaN, and compare() does the same.
    if unknown := sum(bool(want.size and numpy.isnan(want).all()) for _, want in pairs):
        notes.append(f"not checked: {unknown} of {len(pairs)} outputs, NaN in the reference too")
    return Outcome(status=Status.OK, values={"max_error": (worst,)}, notes=tuple(notes))


NUMERICS = Probe("numerics", CHECK, run)


def relative_error(got: Any, want: Any) -> tuple[float, tuple[int, ...]]:
    """Largest absolute difference over the reference's largest finite entry, and where it is.

    Args:
      got, want: Arrays of one shape, any.
    Returns:
      (error, index). Equal infinities agree, and so do two NaN; any other non-finite entry is an infinite error.
    """
    if want.dtype == bool:
        got, want = got.astype(int), want.astype(int)
    # Relative to the largest entry: beside a zero, any error looks huge.
    finite = numpy.abs(want[numpy.isfinite(want)])
    scale = float(finite.max()) if finite.size and finite.max() > 0 else 1.0
    same = (got == want) | (numpy.isnan(got) & numpy.isnan(want))
    with numpy.errstate(invalid="ignore", over="ignore"):
        difference = numpy.where(same, 0.0, numpy.abs(got - want) / scale)
    difference = numpy.where(numpy.isnan(difference), numpy.inf, difference)
    if difference.size == 0:
        return 0.0, ()
    place = numpy.unravel_index(int(difference.argmax()), difference.shape)
    return float(difference.max()), tuple(int(index) for index in place)


def _pairs(result: Any, reference: Any) -> list[tuple[Any, Any]] | str:
    """Leaves of result and reference side by side, or what does not fit. A list of scalars may stand for an array."""
    got = [_array(leaf) for leaf in jax.tree.leaves(result)]
    want = [_array(leaf) for leaf in jax.tree.leaves(reference)]
    if len(want) == 1 and len(got) != 1 and len({leaf.shape for leaf in got}) == 1:
        got = [numpy.stack(got)]
    if len(got) != len(want):
        return f"returned {len(got)} arrays, the reference {len(want)}"
    for one, other in zip(got, want, strict=True):
        if one.shape != other.shape:
            return f"returned shape {one.shape}, the reference {other.shape}"
    return list(zip(got, want, strict=True))


def _array(leaf: Any) -> Any:
    """A result as NumPy's array; of a random key its words."""
    if isinstance(leaf, jax.Array) and jax.numpy.issubdtype(leaf.dtype, jax.dtypes.prng_key):
        leaf = jax.random.key_data(leaf)
    return numpy.asarray(leaf)


def _entry(array: Any, place: tuple[int, ...]) -> str:
    return f"{widest(array[place]).item():.7g}"


def _tolerance(dtype: Any, precision: str | None, context: Context) -> float:
    if context.workload.declaration.tolerance is not None:
        return context.workload.declaration.tolerance
    if not jax.numpy.issubdtype(dtype, jax.numpy.inexact):
        return 0.0
    return max(TOLERANCE.get(str(dtype), TOLERANCE["bfloat16"]), TOLERANCE.get(precision or "", 0.0))


def _product_dtype(prepared: Prepared, context: Context) -> tuple[str | None, bool]:
    """The coarsest format that float32 matrix products and convolutions are computed in; None without such.

    Returns:
      The format, and whether such products were seen; where code cannot be traced, there may be some.
    """
    unseen = context.backend.product_dtype, False
    if not prepared.dispatches:
        return None, False  # a peer, whose products are its own affair
    if prepared.stages is not None:
        traced = prepared.stages.traced
    elif prepared.traceable is None:
        return unseen
    else:
        try:
            traced = jax.jit(prepared.traceable).trace(*prepared.args)
        except jax.errors.JAXTypeError:  # eager code may look at its values, which a trace has not
            return unseen
    formats = [_format(equation, context.backend.product_dtype) for equation in _products(traced.jaxpr.jaxpr)]
    return max(formats, key=lambda name: TOLERANCE[name], default=None), bool(formats)


def _products(jaxpr: Any) -> Iterator[Any]:
    for equation in equations(jaxpr):
        if equation.primitive.name in _PRODUCTS and all(v.aval.dtype == numpy.float32 for v in equation.invars[:2]):
            yield equation


def _format(equation: Any, default: str) -> str:
    if default == "float32":
        return default
    asked = equation.params.get("precision")
    asked = asked[0] if isinstance(asked, tuple) else asked
    if asked == jax.lax.Precision.HIGHEST:
        return "float32"
    return "tensorfloat32" if asked == jax.lax.Precision.HIGH else default
