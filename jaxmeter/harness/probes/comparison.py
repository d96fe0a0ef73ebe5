"""A variant's outputs next to what is wanted of them: the error of each, and what its formats allow."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import jax

from jaxmeter.harness.declare.declaration import NoReference, call_with, find_wanted_params
from jaxmeter.harness.machine.environment import describe_error
from jaxmeter.harness.machine.own_fault import analysing
from jaxmeter.harness.probes.conditioning import as_array, is_unknown, pair, relative_error, write_entry
from jaxmeter.harness.probes.context import Context
from jaxmeter.harness.probes.evaluation import (
    TOLERANCE,
    choose_coarsest,
    find_formats,
    find_products,
    find_tolerance,
    name_format,
)
from jaxmeter.harness.probes.updates import Update
from jaxmeter.harness.probes.verdict import Leaf
from jaxmeter.harness.programs.modes import Prepared

PRODUCT_FORMAT, FORMATS = "the format of its products", "the formats that its tolerance depends on"
"""What is unknown if the analysis of a program fails, as the object of a sentence."""


class UnfitError(Exception):
    """Why a result cannot be compared: its form is another, or compare() cannot read it."""


@dataclass(frozen=True)
class Output:
    """One output that was compared.

    Args:
      format: The coarsest format that its tolerance is of.
      at: Where its largest error is, and the two entries there, for a person.
      is_unknown: Whether nothing is known of it: NaN in what is wanted, which compare() gives too.
      update: What it changes of an argument, where that is little; None where it is no such change.
    """

    leaf: Leaf
    format: str
    at: str
    is_unknown: bool
    update: Update | None = None


@dataclass(frozen=True)
class Comparison:
    """All outputs of a variant that were compared.

    Args:
      products: The coarsest format that float32 products are computed in; None without such products.
      traced: The variant's program; None where it cannot be traced.
      is_final: Whether the tolerance is declared: then rounding explains no more.
    """

    outputs: tuple[Output, ...]
    products: str | None
    traced: Any
    is_final: bool = False


def compare(variant: str, prepared: Prepared, result: Any, context: Context) -> Comparison:
    """Every output with its error and its tolerance.

    Raises:
      UnfitError: The result has another form than what is wanted.
    """
    pairs = pair(read_result(result, context.arguments, context), find_wanted(context), context.reference_name)
    if isinstance(pairs, str):
        raise UnfitError(pairs)
    traced = _trace(prepared)
    products, is_seen = _find_product_format(prepared, traced, context)
    formats = _find_formats(variant, traced, context)
    whole = choose_coarsest(formats)
    # What compare() gives of several outputs belongs to none of them.
    is_by_leaf = context.workload.declaration.compare is None and len(formats) == len(pairs)
    given, name = context.find_tolerance(variant), context.reference_name
    outputs = []
    for index, (path, got, want) in enumerate(pairs):
        own, judged = name_format(got.dtype), formats[index] if is_by_leaf else whole
        judged = judged if is_by_leaf and judged is not None else choose_coarsest((own, judged))
        # The products are those of the variant itself: they do not widen what a judge in float64 allows.
        is_finer = whole is not None and judged is not None and find_tolerance(judged) < TOLERANCE["float32"]
        format_ = judged if is_finer else choose_coarsest((judged, products))
        allowed = 0.0 if own is None or format_ is None else find_tolerance(format_)
        error, place = relative_error(got, want)
        where = f"output {path}, index {place}" if path else f"index {place}"
        is_update = own is not None and given is None and context.workload.declaration.compare is None
        outputs.append(
            Output(
                leaf=Leaf(path, error, allowed if given is None else given, is_floating=own is not None),
                format=format_ if own is not None and format_ is not None else str(got.dtype),
                at=f"{where}: got {write_entry(got, place)}, {name} {write_entry(want, place)}" if error else where,
                is_unknown=is_unknown(want),
                update=context.olds.find_update(got, want, allowed) if is_update else None,
            )
        )
    return Comparison(tuple(outputs), products if is_seen else None, traced, is_final=given is not None)


def read_result(result: Any, arguments: tuple[Any, ...], context: Context) -> Any:
    """What of a result is compared.

    Args:
      arguments: Those that it was computed from.
    Raises:
      UnfitError: compare() cannot read it.
    """
    if (declared := context.workload.declaration.compare) is None:
        return result
    known = dict(context.params)
    if "inputs" in find_wanted_params(declared, known):
        known["inputs"] = jax.tree.map(as_array, arguments)
    try:
        return call_with(declared, known, jax.tree.map(as_array, result))
    except Exception as unreadable:
        raise UnfitError(f"compare() cannot read the result: {describe_error(unreadable)}") from unreadable


def find_wanted(context: Context) -> Any:
    """What variants are compared with."""
    if isinstance(context.workload.declaration.reference, NoReference):
        return read_result(context.reference, context.arguments, context)
    return context.reference


def _trace(prepared: Prepared) -> Any:
    """The variant's traced program; None where there is none."""
    if not prepared.returns_early:
        return None
    try:
        return prepared.trace()
    except Exception:  # noqa: BLE001  eager code may look at its values, and do anything else
        return None


def _find_product_format(prepared: Prepared, traced: Any, context: Context) -> tuple[str | None, bool]:
    """The coarsest format that float32 matrix products and convolutions are computed in; None without such.

    Returns:
      The format, and whether such products were seen; where code cannot be traced, there may be some.
    """
    if not prepared.returns_early:
        return None, False  # a peer, whose products are its own affair
    if traced is None:
        return context.platform.product_dtype, False
    with analysing(PRODUCT_FORMAT):
        formats = find_products(traced.jaxpr.jaxpr, context.platform.product_dtype)
    return choose_coarsest(formats), bool(formats)


def _find_formats(variant: str, traced: Any, context: Context) -> Sequence[str | None]:
    """The coarsest format on the way to each output of the program that variants are judged by; empty if unknown."""
    if context.judge_formats is None:
        judge = context.judge
        with analysing(FORMATS):
            if variant == context.judging_variant and traced is not None:
                context.judge_formats = find_formats(traced.jaxpr.jaxpr)
            else:
                context.judge_formats = () if judge is None else judge.find_formats()
    return context.judge_formats
