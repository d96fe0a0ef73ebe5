"""Variants, probed one by one: whatever a suite's code raises is an outcome."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterable

from jaxmeter.harness.machine.disk import is_disk_full
from jaxmeter.harness.machine.environment import LONGEST_SEARCHED, describe_error, find_words, make_private
from jaxmeter.harness.machine.jax_internals import describe_missing_name
from jaxmeter.harness.machine.own_fault import blame_jaxmeter, describe_own_fault, is_own_fault
from jaxmeter.harness.plan.probes import PROBES
from jaxmeter.harness.probes.context import Context, Findings
from jaxmeter.harness.programs.modes import Prepared, describe_refused_option
from jaxmeter.harness.programs.older_jax import RuntimeFailure
from jaxmeter.harness.programs.program import NoTextError
from jaxmeter.harness.programs.refusal import RefusedError
from jaxmeter.harness.record import Outcome, Status

LONGEST_REASON = 1000
LONGEST_TRACEBACK = 4000

ProbeVariant = Callable[[str, Prepared, Context], Outcome]


def probe_each(probe: str, probe_variant: ProbeVariant, variants: Iterable[str], context: Context) -> Findings:
    """Prepare one variant after the other and probe it.

    Args:
      probe_variant: (variant's name, prepared, context) -> outcome. What it raises becomes a failed outcome.
    """
    return Findings({variant: _probe_one(probe, probe_variant, variant, context) for variant in variants})


def _probe_one(probe: str, probe_variant: ProbeVariant, variant: str, context: Context) -> Outcome:
    context.variant = variant
    context.stage("prepare")
    try:
        prepared = context.prepare(variant)
        if PROBES[probe].calls and (excess := context.find_excess(prepared)) is not None:
            return Outcome(status=Status.TOO_LARGE, reason=excess)
        context.stage(probe)
        prepared.reset()
        return probe_variant(variant, prepared, context)
    except Exception as error:  # noqa: BLE001  a suite's code may raise anything, and that is a result
        is_analysis = context.at == probe and not PROBES[probe].calls  # a stage without user code
        if is_analysis and not isinstance(error, (RefusedError, RuntimeFailure)) and not is_disk_full(error):
            error = blame_jaxmeter(error, f"what stage '{probe}' finds")
        return describe_failure(error, context.at)


def describe_unread(what: str, error: BaseException) -> str:
    """Return a note on a failed reader: the backend's message, a limit of the release, or jaxmeter's own fault.

    Args:
      what: What the reader reads, such as `the executable`.
      error: Error of the reader, which calls no user code.
    """
    if isinstance(error, (NoTextError, NotImplementedError, RuntimeFailure)):
        return f"{what} cannot be read: {describe_error(error)}"
    return describe_own_fault(error, what)


def describe_failure(error: Exception, stage: str) -> Outcome:
    """Return a failed outcome: the stage, the error's message, and the traceback in place of stderr.

    If jaxmeter itself fails, the outcome is `unknown`, with jaxmeter's own fault as the reason.
    If the compiler finds a program too large for its device, the outcome is `does not fit`, as with the memory plan.

    Raises:
      The error itself if the disk is full, which has nothing to do with the variant.
    """
    if is_disk_full(error):
        raise error
    if is_own_fault(error) and not describe_missing_name(error):
        return Outcome(
            status=Status.UNKNOWN,
            reason=make_private(describe_own_fault(error, f"what stage '{stage}' finds"))[:LONGEST_REASON],
            stderr=make_private("".join(traceback.format_exception(error)))[-LONGEST_TRACEBACK:],
        )
    if isinstance(error, RefusedError):
        return Outcome(status=Status.UNSUPPORTED, reason=make_private(str(error))[:LONGEST_REASON])
    if (refused := describe_refused_option(error)) is not None:
        return Outcome(status=Status.FAILED, reason=make_private(refused)[:LONGEST_REASON])
    if missing := describe_missing_name(error):
        return Outcome(status=Status.UNSUPPORTED, reason=missing)
    words = find_words(error)
    if stage == "compile" and "RESOURCE_EXHAUSTED" in words:
        return Outcome(status=Status.TOO_LARGE, reason=make_private(words)[:LONGEST_REASON])
    text = "".join(traceback.format_exception(error))
    return Outcome(
        status=Status.FAILED,
        reason=make_private(f"in stage '{stage}': {type(error).__name__}: {words}")[:LONGEST_REASON],
        stderr=make_private(text[-LONGEST_SEARCHED:])[-LONGEST_TRACEBACK:],
    )
