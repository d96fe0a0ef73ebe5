"""What to record of a process that gave no result: how it ended, in which stage, and what it wrote."""

from __future__ import annotations

import signal

from jaxmeter.harness.parent.allowance import Allowance
from jaxmeter.harness.parent.fork_client import Ended
from jaxmeter.harness.parent.limits import Overran, silence_limit_s
from jaxmeter.harness.plan.messages import Problem
from jaxmeter.harness.record import Outcome, Status


def describe_end(ended: Ended, limit_s: float) -> Outcome:
    """The outcome of each variant that the process was at.

    Args:
      limit_s: The longest silence that it was allowed in a stage of a variant.
    """
    stderr = ended.stderr or None
    if isinstance(ended.answer, Problem):
        return Outcome(status=Status.FAILED, reason=ended.answer.message, stderr=stderr)
    stage = f"in stage '{ended.last.stage}'"
    if ended.timed_out:
        silence_s = silence_limit_s(ended.last, limit_s)
        sets = "a workload's time_limit_s sets this limit"
        if silence_s > limit_s:
            sets = (
                f"before the first variant the limit is {silence_s:g} s, or a workload's time_limit_s if it is longer"
            )
        reason = f"no progress for {silence_s:g} s {stage}, so it was ended; {sets}"
        return Outcome(status=Status.TIMED_OUT, reason=reason, stderr=stderr)
    if ended.signal is not None:
        reason = f"ended by {_name_signal(ended.signal)} {stage}{_suspect_memory(ended)}"
        return Outcome(status=Status.KILLED, reason=reason, stderr=stderr)
    words = f": {ended.stderr.splitlines()[-1]}" if ended.stderr else ""
    return Outcome(status=Status.FAILED, reason=f"exited with code {ended.code} {stage}{words}", stderr=stderr)


def describe_overrun(ended: Ended, process: str, allowance: Allowance) -> str:
    """Why the budget ended a process: names the process, and the variant and stage that it was at.

    Args:
      process: Its kind.
    """
    at = f"variant '{ended.last.variant}', " if ended.last.variant is not None else ""
    since = f" for {ended.stage_s:.0f} s" if ended.stage_s >= 1 else ""
    was = f"process '{process}' had been at {at}stage '{ended.last.stage}'{since}"
    budget = f"the budget of {allowance.budget_s:g} s"
    if ended.overran is Overran.STAGE:
        return (
            f"{was}, its share of {budget}, so it was ended: other cases wait for that time; a run with a larger "
            "--budget, or of this case alone (--select), gives it more"
        )
    return (
        f"{was} when {budget} had been used up for {allowance.grace_s:g} s, so it was ended; "
        "continue with --resume, or give a larger --budget"
    )


def _name_signal(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _suspect_memory(ended: Ended) -> str:
    if ended.signal != signal.SIGKILL:
        return ""
    held = f"; it held {ended.peak_bytes / 2**30:.2f} GiB" if ended.peak_bytes else ""
    return f", which the harness did not send; often that is the kernel, out of memory{held}"
