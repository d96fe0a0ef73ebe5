"""What a program holds: the compiler's plan (`memory_analysis`), its largest buffers, and what donation saves."""

from __future__ import annotations

import warnings

from jaxmeter.harness.machine.environment import describe_error
from jaxmeter.harness.probes.context import Context, Findings
from jaxmeter.harness.probes.fit import planned_peak_bytes
from jaxmeter.harness.probes.look_at_each import describe_unread, look_at_each
from jaxmeter.harness.programs import buffers
from jaxmeter.harness.programs.modes import Prepared, Stages
from jaxmeter.harness.programs.older_jax import RuntimeFailure
from jaxmeter.harness.record import MemoryDetails, Number, Outcome, Status

LONGEST_COMPILE_S = 2.0
"""A program that took longer is not compiled again to see what donating its arguments would save."""


def look(variants: tuple[str, ...], context: Context) -> Findings:
    """Reads the plan of each; nothing is called."""
    return look_at_each("memory", read_plan, variants, context)


def read_plan(variant: str, prepared: Prepared, context: Context) -> Outcome:
    """Reads the plan of a variant's program."""
    if prepared.stages is None:
        return Outcome(
            status=Status.UNSUPPORTED,
            reason="memory_analysis describes one compiled program; this variant has none of its own",
        )
    compiled = prepared.stages.compiled
    analysis = compiled.memory_analysis()
    if analysis is None:
        return Outcome(status=Status.UNSUPPORTED, reason="the backend gives no memory_analysis")
    values: dict[str, tuple[Number | None, ...]] = {
        "argument_bytes": (analysis.argument_size_in_bytes,),
        "output_bytes": (analysis.output_size_in_bytes,),
        "temp_bytes": (analysis.temp_size_in_bytes,),
        "alias_bytes": (analysis.alias_size_in_bytes,),
        "code_bytes": (analysis.generated_code_size_in_bytes,),
        "planned_peak_bytes": (planned_peak_bytes(compiled, context.platform),),
    }
    saved, notes = _try_donation(prepared.stages, context)
    if saved is not None:
        values["donation_saves_bytes"] = (saved,)
    try:
        largest = buffers.find_largest(compiled)
    except Exception as error:  # noqa: BLE001  backends describe their programs in many ways, or not
        largest, notes = (), (*notes, describe_unread("its largest buffers", error))
    return Outcome(status=Status.OK, values=values, notes=notes, details=MemoryDetails(buffers=largest))


def _try_donation(stages: Stages, context: Context) -> tuple[int | None, tuple[str, ...]]:
    """What donating all arguments saves of the peak."""
    if stages.donated is None:
        return None, ()
    if stages.events.hits:
        return None, ("what donation saves is known only where the program was compiled: here it came from the cache",)
    if stages.compile_s > LONGEST_COMPILE_S:
        return None, (
            f"not compiled a second time to see what donation saves: compilation took {stages.compile_s:.1f} s",
        )
    plain = planned_peak_bytes(stages.compiled, context.platform)
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Some donated buffers were not usable")
            donated = planned_peak_bytes(stages.donated(), context.platform)
    except (TypeError, ValueError, RuntimeFailure) as error:
        return None, (f"what donating saves is not known: {describe_error(error)}",)
    return (None, ()) if plain is None or donated is None else (plain - donated, ())
