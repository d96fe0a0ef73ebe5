"""What the compiler plans to hold: `memory_analysis` of the compiled program."""

from __future__ import annotations

from harness.messages import CHECK
from harness.modes import Prepared
from harness.probes.context import Context, Probe
from harness.record import Outcome, Status


def run(variant: str, prepared: Prepared, context: Context) -> Outcome:
    """Reads the plan; nothing is called."""
    if prepared.stages is None:
        return Outcome(
            status=Status.UNSUPPORTED,
            reason="memory_analysis describes one compiled program; this mode has none of its own",
        )
    analysis = prepared.stages.compiled.memory_analysis()
    if analysis is None:
        return Outcome(status=Status.UNSUPPORTED, reason="the backend gives no memory_analysis")
    return Outcome(
        status=Status.OK,
        values={
            "argument_bytes": (analysis.argument_size_in_bytes,),
            "output_bytes": (analysis.output_size_in_bytes,),
            "temp_bytes": (analysis.temp_size_in_bytes,),
            "alias_bytes": (analysis.alias_size_in_bytes,),
            "code_bytes": (analysis.generated_code_size_in_bytes,),
        },
    )


MEMORY = Probe("memory", CHECK, run)
