"""Is the answer right? Every variant against the workload's reference, before anything is timed."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import msgspec

from jaxmeter.harness.declare.check import describe_unread_result
from jaxmeter.harness.declare.declaration import NoReference
from jaxmeter.harness.machine.environment import find_words, make_private
from jaxmeter.harness.machine.own_fault import describe_own_fault, is_own_fault
from jaxmeter.harness.probes.comparison import UnfitError, compare
from jaxmeter.harness.probes.context import LONGEST_REASON, Context, Findings, Unavailable, describe_failure, probe_each
from jaxmeter.harness.probes.judgement import CheckResult, find_chance, judge_variant
from jaxmeter.harness.probes.update_draws import UpdatesJudged, judge_updates
from jaxmeter.harness.programs.buffers import InPlaceError, check_traced, keep_arguments
from jaxmeter.harness.programs.modes import Prepared
from jaxmeter.harness.programs.program import find_fingerprint
from jaxmeter.harness.record import Correctness, NumericsDetails, Outcome, Status


def probe_variants(variants: tuple[str, ...], context: Context) -> Findings:
    """Compares each variant with the reference; one that is declared to raise an error, with that."""
    outcomes = {}
    for variant in variants:
        expected = context.find_variant(variant)[0].raises
        if expected is not None:
            outcomes[variant] = _check_raised(expected, variant, context)
        else:
            outcomes |= probe_each("numerics", _check_in_suite, (variant,), context).outcomes
    return Findings(outcomes)


def _check_in_suite(variant: str, prepared: Prepared, context: Context) -> Outcome:
    """Check a variant, whose calls must leave their arguments as they are: variants take turns with the same ones."""
    try:
        return _check(variant, prepared, context, partial(_call_watched, prepared, context))
    except InPlaceError as error:
        return Outcome(status=Status.FAILED, reason=str(error))


def _call_watched(prepared: Prepared, context: Context) -> Any:
    """Call a variant once.

    A peer is called with arguments of its own, and an argument that calls carry is a copy.

    Raises:
      InPlaceError: It changes other arguments in place; a compiled program within its trace, where that is lost.
    """
    if not prepared.returns_early:
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
    result = prepared.call(*(arguments.args for arguments in kept)) if is_stream else prepared.call(*kept[0].args)
    for arguments in kept:
        arguments.check()
    return result


def check(variant: str, prepared: Prepared, context: Context) -> Outcome:
    """Calls the variant once and compares; again, and the judge, only where an output is beyond its tolerance."""
    return _check(variant, prepared, context, lambda: prepared.call(*prepared.args))


def _check(variant: str, prepared: Prepared, context: Context, call: Callable[[], Any]) -> Outcome:
    try:
        return _compare_and_judge(variant, prepared, context, call)
    except Exception as error:
        if not is_own_fault(error):
            raise
        fault = describe_own_fault(error, "whether its result is right")
        details = NumericsDetails(verdict=Correctness.CANNOT_BE_CHECKED)
        return Outcome(status=Status.OK, notes=(fault,), details=details)


def _compare_and_judge(variant: str, prepared: Prepared, context: Context, call: Callable[[], Any]) -> Outcome:
    declared = context.workload.declaration.reference
    notes: tuple[str, ...] = ()
    if "reference" not in vars(context) and not isinstance(declared, NoReference):
        context.beat(None, "reference")  # common to all variants
        context.at = "reference"
        _ = context.reference
        context.stage("numerics")
    result = call()
    if (problem := describe_unread_result(result)) is not None:
        return Outcome(status=Status.FAILED, reason=problem)
    prepared.wait(result)
    details = NumericsDetails(fingerprint=_find_fingerprint(prepared))
    if isinstance(declared, NoReference):
        if unchecked := _say_why_unchecked(variant, declared, context):
            return Outcome(status=Status.OK, notes=(unchecked,), details=details)
        notes = (f"no reference: {declared.reason}; compared with {context.judging_variant}",)
    try:
        comparison = compare(variant, prepared, result, context)
    except UnfitError as unfit:
        return _conclude(CheckResult(Correctness.WRONG, str(unfit)), details, context, notes)
    details = msgspec.structs.replace(
        details,
        products=comparison.products,
        outputs=len(comparison.outputs),
        unchecked=sum(output.is_unknown for output in comparison.outputs),
    )
    worst = max((output.leaf.error for output in comparison.outputs), default=0.0)
    judgement, call_s = CheckResult(Correctness.RIGHT), 0.0
    is_beyond = any(output.leaf.is_beyond for output in comparison.outputs)
    if is_beyond or any(output.update and output.update.is_suspect for output in comparison.outputs):
        chance, call_s = find_chance(prepared, result, comparison, context)
        del result  # before the draws take memory
        if chance:
            judgement = CheckResult(Correctness.NOT_DETERMINISTIC, chance)
        elif is_beyond:
            judgement = judge_variant(comparison, call_s, context)
    if judgement.verdict not in (Correctness.WRONG, Correctness.NOT_DETERMINISTIC):
        try:
            updates = judge_updates(comparison, call_s, context)
        except Exception as error:  # noqa: BLE001  judge_updates catches errors of the user's code
            updates = UpdatesJudged(note=describe_own_fault(error, "whether it makes the updates of the reference"))
        judgement = CheckResult(Correctness.WRONG, updates.reason) if updates.reason else judgement
        notes = (*notes, updates.note) if updates.note else notes
    notes = (*notes, judgement.fault) if judgement.fault else notes
    outcome = _conclude(judgement, details, context, notes)
    return msgspec.structs.replace(outcome, values={"max_error": (worst if math.isfinite(worst) else None,)})


def _say_why_unchecked(variant: str, declared: NoReference, context: Context) -> str:
    """Why a variant of a workload without a reference is compared with nothing; empty where it is compared."""
    why = f"not checked: {declared.reason}"
    is_alone = context.judging_variant is None or len(context.workload.variants) == 1
    if not declared.comparable or is_alone or context.is_replay(variant):
        return why
    if context.judging_variant == variant:
        return f"{why}; the other variants are compared with this one"
    return f"{why}; {context.reference.reason}" if isinstance(context.reference, Unavailable) else ""


def _conclude(judgement: CheckResult, details: NumericsDetails, context: Context, notes: tuple[str, ...]) -> Outcome:
    """The outcome of a judgement. A variant that only differs from another is timed: neither is known to be right."""
    verdict, reason = judgement.verdict, judgement.reason or None
    if verdict is Correctness.WRONG and isinstance(context.workload.declaration.reference, NoReference):
        verdict, notes, reason = Correctness.DIFFERS, (*notes, f"{Correctness.DIFFERS}: {reason}"), None
    is_wrong = verdict in (Correctness.WRONG, Correctness.NOT_DETERMINISTIC)
    recorded = None if verdict is Correctness.RIGHT else verdict
    return Outcome(
        status=Status.WRONG if is_wrong else Status.OK,
        reason=reason,
        notes=notes,
        details=msgspec.structs.replace(details, verdict=recorded, conditioning=judgement.conditioning),
    )


def _find_fingerprint(prepared: Prepared) -> str | None:
    """Which program was called; None where there is none, or where the backend does not report it."""
    if prepared.stages is None:
        return None
    try:
        return find_fingerprint(prepared.stages)
    except Exception:  # noqa: BLE001  backends report their programs in many ways, or not
        return None


def _check_raised(expected: type[Exception], variant: str, context: Context) -> Outcome:
    """Whether a call raises what its implementation declares; the error's own words are the result."""
    context.variant = variant
    context.stage("prepare")
    try:
        prepared = context.prepare(variant)
        context.stage("numerics")
        prepared.call_and_wait()
    except expected as error:
        name = "" if type(error) is expected else f"{type(error).__name__}: "
        words = make_private(f"{name}{find_words(error)}")[:LONGEST_REASON]
        return Outcome(status=Status.OK, details=NumericsDetails(raised=words))
    except Exception as error:  # noqa: BLE001  a suite's code may raise anything, and that is a result
        return describe_failure(error, context.at)
    return Outcome(status=Status.WRONG, reason=f"raised nothing; it is declared to raise {expected.__name__}")
