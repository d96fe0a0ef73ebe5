"""Is the answer right? Every variant against the workload's reference, before anything is timed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import jax
import numpy

from harness.declare.declaration import NoReference
from harness.declare.levels import call_with, find_wanted_params
from harness.declare.unread import describe_unread_result
from harness.machine.environment import describe_error, make_private
from harness.probes.context import Context, Findings
from harness.probes.look_at_each import LONGEST_REASON, describe_failure, look_at_each
from harness.programs.arguments import widest
from harness.programs.in_place import InPlaceError, check_traced, keep_arguments
from harness.programs.modes import Prepared
from harness.programs.program import find_fingerprint, walk_equations
from harness.record import NumericsDetails, Outcome, Status

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

_HINT = "; if that is rounding, a larger tolerance= allows it"


def look(variants: tuple[str, ...], context: Context) -> Findings:
    """Compares each variant with the reference; one that is declared to raise an error, with that."""
    outcomes = {}
    for variant in variants:
        expected = context.find_variant(variant)[0].raises
        if expected is not None:
            outcomes[variant] = _check_raised(expected, variant, context)
        else:
            outcomes |= look_at_each("numerics", _check_in_suite, (variant,), context).outcomes
    return Findings(outcomes)


def _check_in_suite(variant: str, prepared: Prepared, context: Context) -> Outcome:
    """Check a variant, whose calls must leave their arguments as they are: variants take turns with the same ones."""
    try:
        return _check(prepared, context, partial(_call_watched, prepared, context))
    except InPlaceError as error:
        return Outcome(status=Status.FAILED, reason=str(error))


def _call_watched(prepared: Prepared, context: Context) -> Any:
    """Call a variant once.

    A peer is called with arguments of its own, and an argument that calls carry is a copy.

    Raises:
      InPlaceError: It changes other arguments in place; a compiled program within its trace, where that is lost.
    """
    if not prepared.dispatches:
        return prepared.call(*prepared.args)
    workload = context.workload
    is_stream = workload.declaration.stream
    carried = frozenset(workload.carried)
    if prepared.jitted is not None:
        item = prepared.args[0] if is_stream else prepared.args
        check_traced(prepared.jitted.__wrapped__, item, workload.arguments)
        return prepared.call(*prepared.args)
    items = prepared.args if is_stream else (prepared.args,)
    kept = [keep_arguments(item, workload.arguments, carried) for item in items]
    result = prepared.call(*(one.args for one in kept)) if is_stream else prepared.call(*kept[0].args)
    for one in kept:
        one.check()
    return result


def check(variant: str, prepared: Prepared, context: Context) -> Outcome:
    """Calls the variant once and compares."""
    return _check(prepared, context, lambda: prepared.call(*prepared.args))


def _check(prepared: Prepared, context: Context, call: Callable[[], Any]) -> Outcome:
    if "reference" not in vars(context):
        context.beat(None, "reference")  # common to all variants
        context.at = "reference"
        _ = context.reference
        context.stage("numerics")
    result = call()
    if (problem := describe_unread_result(result)) is not None:
        return Outcome(status=Status.FAILED, reason=problem)
    prepared.wait(result)
    reference = context.workload.declaration.reference
    if isinstance(reference, NoReference):
        details = NumericsDetails(fingerprint=_find_fingerprint(prepared))
        return Outcome(status=Status.OK, notes=(f"not checked: {reference.reason}",), details=details)
    if (compare := context.workload.declaration.compare) is not None:
        known = dict(context.params)
        if "inputs" in find_wanted_params(compare, known):
            known["inputs"] = jax.tree.map(_as_array, context.arguments)
        try:
            result = call_with(compare, known, jax.tree.map(_as_array, result))
        except Exception as unreadable:  # noqa: BLE001  it is written for results of the right form
            reason = f"compare() cannot read the result: {describe_error(unreadable)}"
            return Outcome(status=Status.WRONG, reason=reason)
    pairs = _pair(result, context.reference)
    if isinstance(pairs, str):
        return Outcome(status=Status.WRONG, reason=pairs)
    precision, is_seen = _find_product_dtype(prepared, context)
    worst = 0.0
    for path, got, want in pairs:
        allowed = _tolerance(got.dtype, precision, context)
        error, place = relative_error(widest(got), want)
        worst = max(worst, error)
        if not error <= allowed:
            where = f"output {path}, index {place}" if path else f"index {place}"
            return Outcome(
                status=Status.WRONG,
                reason=f"at {where}: got {_entry(got, place)}, reference {_entry(want, place)}; "
                f"error {error:.2g} of the largest entry, allowed {allowed:.2g} for {precision or got.dtype}"
                + (_HINT if 0 < allowed < error < numpy.inf else ""),
                values={"max_error": (worst if numpy.isfinite(worst) else None,)},
            )
    details = NumericsDetails(
        products=precision if is_seen else None,
        outputs=len(pairs),
        # What a reference does not know it gives as NaN, and compare() does the same.
        unchecked=sum(bool(want.size and numpy.isnan(want).all()) for _, _, want in pairs),
        fingerprint=_find_fingerprint(prepared),
    )
    return Outcome(status=Status.OK, values={"max_error": (worst,)}, details=details)


def _find_fingerprint(prepared: Prepared) -> str | None:
    """Which program was called; None where there is none, or where the backend does not tell it."""
    if prepared.stages is None:
        return None
    try:
        return find_fingerprint(prepared.stages.compiled)
    except Exception:  # noqa: BLE001  backends tell their programs in many ways, or not
        return None


def _check_raised(expected: type[Exception], variant: str, context: Context) -> Outcome:
    """Whether a call raises what its implementation declares; the error's own words are the result."""
    context.variant = variant
    context.stage("prepare")
    try:
        prepared = context.prepare(variant)
        context.stage("numerics")
        prepared.wait(prepared.call(*prepared.args))
    except expected as error:
        name = "" if type(error) is expected else f"{type(error).__name__}: "
        words = f"{name}{' '.join(str(error).split())}"
        return Outcome(status=Status.OK, details=NumericsDetails(raised=make_private(words)[:LONGEST_REASON]))
    except Exception as error:  # noqa: BLE001  a suite's code may raise anything, and that is a result
        return describe_failure(error, context.at)
    return Outcome(status=Status.WRONG, reason=f"raised nothing; it is declared to raise {expected.__name__}")


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


def _pair(result: Any, reference: Any) -> list[tuple[str, Any, Any]] | str:
    """Leaves of result and reference side by side with their path, or what does not fit.

    A list of scalars may stand for an array. The path is as Python would index the result; empty where it is one array.
    """
    got = [(jax.tree_util.keystr(path), _as_array(leaf)) for path, leaf in jax.tree.leaves_with_path(result)]
    want = [_as_array(leaf) for leaf in jax.tree.leaves(reference)]
    if len(want) == 1 and len(got) != 1 and len({leaf.shape for _, leaf in got}) == 1:
        got = [("", numpy.stack([leaf for _, leaf in got]))]
    if len(got) != len(want):
        return f"returned {len(got)} arrays, the reference {len(want)}"
    for (path, one), other in zip(got, want, strict=True):
        if one.shape != other.shape:
            where = f" at output {path}" if path else ""
            return f"returned shape {one.shape}{where}, the reference {other.shape}"
    return [(path, one, other) for (path, one), other in zip(got, want, strict=True)]


def _as_array(leaf: Any) -> Any:
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


def _find_product_dtype(prepared: Prepared, context: Context) -> tuple[str | None, bool]:
    """The coarsest format that float32 matrix products and convolutions are computed in; None without such.

    Returns:
      The format, and whether such products were seen; where code cannot be traced, there may be some.
    """
    unseen = context.place.product_dtype, False
    if not prepared.dispatches:
        return None, False  # a peer, whose products are its own affair
    try:
        traced = prepared.trace()
    except (TypeError, jax.errors.JAXTypeError):  # eager code may look at its values, which a trace has not
        return unseen
    formats = [_format(equation, context.place.product_dtype) for equation in _products(traced.jaxpr.jaxpr)]
    return max(formats, key=lambda name: TOLERANCE[name], default=None), bool(formats)


def _products(jaxpr: Any) -> Iterator[Any]:
    for equation in walk_equations(jaxpr):
        if equation.primitive.name in _PRODUCTS and all(v.aval.dtype == numpy.float32 for v in equation.invars[:2]):
            yield equation


def _format(equation: Any, default: str) -> str:
    if default == "float32":
        return default
    asked = equation.params.get("precision")
    both = asked if isinstance(asked, tuple) else (asked,)
    # Of two operands the coarser counts.
    if all(one == jax.lax.Precision.HIGHEST for one in both):
        return "float32"
    finer = (jax.lax.Precision.HIGHEST, jax.lax.Precision.HIGH)
    return "tensorfloat32" if all(one in finer for one in both) else default
