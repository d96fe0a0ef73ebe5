"""What the first result costs: trace, lower, compile and first call, in a fresh process without any cache."""

from __future__ import annotations

from harness.messages import COMPILATION as KIND
from harness.modes import Prepared
from harness.probes.context import Context, Probe
from harness.record import Number, Outcome, Status


def run(variant: str, prepared: Prepared, context: Context) -> Outcome:
    """Reads the stages that preparing took, then times the first call."""
    start = context.clock()
    prepared.wait(prepared.call(*prepared.args))
    values: dict[str, tuple[Number | None, ...]] = {"first_call_s": (context.clock() - start,)}
    if prepared.stages is not None:
        stages = prepared.stages
        values["trace_s"] = (stages.trace_s,)
        values["lower_s"] = (stages.lower_s,)
        values["compile_s"] = (stages.compile_s,)
        values["jaxpr_equations"] = (len(stages.traced.jaxpr.jaxpr.eqns),)
    return Outcome(status=Status.OK, values=values)


COMPILATION = Probe("compilation", KIND, run)
