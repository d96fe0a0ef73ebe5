"""What a variant is whose outputs are beyond their tolerance: not deterministic, rounded, wrong, or not to be known."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from typing import Any

from jaxmeter.harness.machine import jax_internals as internals
from jaxmeter.harness.machine.environment import describe_error
from jaxmeter.harness.machine.own_fault import describe_own_fault
from jaxmeter.harness.probes.comparison import Comparison, Output, UnfitError, find_wanted, read_result
from jaxmeter.harness.probes.conditioning import RefusedInputsError, TooLongError, find_scale, pair, relative_error
from jaxmeter.harness.probes.context import Context
from jaxmeter.harness.probes.evaluation import TOLERANCE, choose_coarsest, find_formats, find_products, find_tolerance
from jaxmeter.harness.probes.verdict import FACTOR, LeafResult, count_digits, judge
from jaxmeter.harness.programs.modes import Prepared
from jaxmeter.harness.programs.program import walk_equations
from jaxmeter.harness.record import Conditioning, Correctness

_HINT = "; if that is rounding, a larger tolerance= allows it"

_ORDERING = frozenset({"sort", "top_k", "approx_top_k", "argmax", "argmin"})
"""Operations of which integer results depend on the order of equal values."""

_ORDER_HINT = "; the program orders values, and another order of equal values is as good: compare the values themselves"


@dataclass(frozen=True)
class CheckResult:
    """What a variant is.

    Args:
      reason: Why it is wrong, for a person.
      fault: Jaxmeter's own fault, which prevents a verdict, for a person.
    """

    verdict: Correctness
    reason: str = ""
    conditioning: Conditioning | None = None
    fault: str = ""


@dataclass(frozen=True)
class Drawn:
    """What the draws of a case have shown, for all its variants.

    Args:
      spreads: The largest deviation of each output; None where the draws would take too long.
      failure: Why there are none, for a person: then tolerances alone decide, as if nothing deviated.
      fault: Jaxmeter's own fault, for a person: then outputs beyond their tolerance cannot be checked.
      inside: Whether what operations give was moved too.
    """

    spreads: list[float] | None = None
    failure: str = ""
    fault: str = ""
    inside: bool = False


def judge_variant(comparison: Comparison, call_s: float, context: Context) -> CheckResult:
    """Judges a variant of which an output is beyond its tolerance, and whose equal calls agree: has draws made.

    Args:
      call_s: About what a call of a program takes; 0 where that is not known.
    """
    outputs = comparison.outputs
    leaves = [output.leaf for output in outputs]
    may_be_rounding = any(leaf.is_beyond and leaf.is_floating for leaf in leaves)
    drawn = Drawn([0.0] * len(leaves))
    if may_be_rounding and not comparison.is_final:
        drawn = _draw(context, len(leaves), call_s, inside=False)
        if judge(leaves, drawn.spreads)[0] is Correctness.WRONG and not drawn.failure:
            drawn = _draw(context, len(leaves), call_s, inside=True)
    verdict, each = judge(leaves, drawn.spreads)
    if verdict is Correctness.WRONG:
        wrong = [i for i, result in enumerate(each) if result is LeafResult.WRONG]
        index = max(wrong, key=lambda i: _find_excess(leaves[i].error, leaves[i].tolerance))
        return CheckResult(verdict, _explain(outputs[index], index, drawn, comparison))
    if drawn.fault:
        return CheckResult(verdict, fault=drawn.fault)
    beyond = [i for i, leaf in enumerate(leaves) if leaf.is_beyond]
    worst = max(beyond, key=lambda i: leaves[i].error)
    spread = None if drawn.spreads is None else drawn.spreads[worst]
    return CheckResult(
        verdict,
        conditioning=Conditioning(
            beyond=len(beyond),
            unresolved=each.count(LeafResult.UNKNOWN),
            worst=leaves[worst].path,
            error=_keep_finite(leaves[worst].error),
            allowed=None if spread is None else _keep_finite(FACTOR * spread),
            digits=None if spread is None else _keep_finite(count_digits(spread)),
            is_too_slow=drawn.spreads is None,
        ),
    )


def _find_excess(error: float, tolerance: float) -> float:
    return error / tolerance if tolerance else math.inf if error else 0.0


def _keep_finite(number: float) -> float | None:
    return number if math.isfinite(number) else None


def find_chance(prepared: Prepared, result: Any, comparison: Comparison, context: Context) -> tuple[str, float]:
    """Why equal calls of a variant, or two traces of its judge, give different results; empty where they do not.

    Args:
      result: Of the call that was compared.
    Returns:
      The reason, and the seconds that a call took, if it is one of a program; else 0.
    """
    prepared.reset()
    start = context.clock()
    again = prepared.call_and_wait()
    call_s = context.clock() - start if prepared.stages is not None else 0.0  # eager code says nothing of a program
    pairs = pair(*(read_result(each, context.arguments, context) for each in (again, result)))
    if isinstance(pairs, str):
        return f"not deterministic: a second, equal call {pairs}", call_s
    for output, (path, second, once) in zip(comparison.outputs, pairs, strict=False):
        error, place = relative_error(second, once, find_scale(once))
        if not error <= output.leaf.tolerance:
            where = f"output {path}, index {place}" if path else f"index {place}"
            reason = f"not deterministic: two equal calls differ at {where} by {error:.2g} of the largest entry"
            return reason, call_s
    if context.judge is not None and context.judge.changes_when_traced():
        reason = "not deterministic: two traces of it differ, as where it takes random numbers or counts outside JAX"
        return reason, call_s
    return "", call_s


def _draw(context: Context, leaves: int, call_s: float, *, inside: bool) -> Drawn:
    """What the draws show, made when they are first asked for, in a stage of their own.

    Args:
      inside: Whether what operations give is moved too: some programs lose digits that their inputs do not show, such
        as (a + x) - a.
    """
    drawn: Drawn | None = context.drawn
    if drawn is None or (inside and not drawn.inside):
        variant, context.variant = context.variant, None
        context.stage("draws")
        made = _make_draws(context, leaves, call_s, inside=inside)
        if drawn is not None and drawn.spreads is not None and not made.fault:
            # Where no more can be known than what moved inputs have shown, that decides.
            known = made.spreads or drawn.spreads
            made = Drawn(list(map(max, drawn.spreads, known)), drawn.failure, inside=True)
        drawn = context.drawn = made
        context.variant = variant
        context.stage("numerics")
    return drawn


def _make_draws(context: Context, leaves: int, call_s: float, *, inside: bool) -> Drawn:
    none = [0.0] * leaves
    if context.judge is None:
        return Drawn(none, "no variant in JAX can make the draws", inside=inside)
    read = partial(read_result, context=context)
    try:
        coarse = find_coarse(context) if inside else None
        spreads = context.judge.find_spreads(
            find_wanted(context), read, context.clock, call_s=call_s, inside=inside, coarse=coarse
        )
    except TooLongError:
        return Drawn(inside=inside)
    except (RefusedInputsError, UnfitError) as error:  # from the user's function, or from compare()
        return Drawn(none, f"the draws failed: {describe_error(error)}", inside=inside)
    except Exception as error:  # noqa: BLE001  all other errors come from jaxmeter's code
        return Drawn(fault=describe_own_fault(error, internals.ROUNDING), inside=inside)
    if spreads is None:
        return Drawn(none, "the variant that others are judged by returns another form", inside=inside)
    return Drawn(spreads, inside=inside)


def find_coarse(context: Context) -> str | None:
    """The coarsest format in the judge's program, its products on this device among them, if coarser than float32."""
    traced = context.trace_judge()
    if traced is None:
        return None
    jaxpr = traced.jaxpr.jaxpr
    format_ = choose_coarsest((*find_formats(jaxpr), *find_products(jaxpr, context.platform.product_dtype)))
    return format_ if format_ is not None and find_tolerance(format_) > TOLERANCE["float32"] else None


def _explain(output: Output, index: int, drawn: Drawn, comparison: Comparison) -> str:
    """Why an output is wrong."""
    leaf = output.leaf
    reason = f"at {output.at}; error {leaf.error:.2g} of the largest entry, "
    reason += f"allowed {leaf.tolerance:.2g} for {output.format}"
    if not leaf.is_floating:
        return reason + (_ORDER_HINT if _orders(comparison.traced) else "")
    if drawn.failure:
        reason += f"; {drawn.failure}"
    elif not comparison.is_final and drawn.spreads is not None:
        reason += f"; values moved by one unit in the last place change it by {drawn.spreads[index]:.2g}"
    return reason + (_HINT if 0 < leaf.tolerance < leaf.error < math.inf else "")


def _orders(traced: Any) -> bool:
    """Whether a program orders values."""
    return traced is not None and any(each.primitive.name in _ORDERING for each in walk_equations(traced.jaxpr.jaxpr))
