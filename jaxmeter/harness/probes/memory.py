"""What a program holds: the compiler's plan (`memory_analysis`), its largest buffers, and what donation saves."""

from __future__ import annotations

import warnings
from typing import Any

from jaxmeter.harness.machine import jax_internals as internals
from jaxmeter.harness.machine.environment import describe_error
from jaxmeter.harness.machine.own_fault import UnknownError, describe_own_fault
from jaxmeter.harness.probes.context import Context, Findings, describe_unread, probe_each
from jaxmeter.harness.probes.fit import planned_peak_bytes
from jaxmeter.harness.programs import buffers, program
from jaxmeter.harness.programs.modes import Prepared, Stages
from jaxmeter.harness.programs.older_jax import RuntimeFailure
from jaxmeter.harness.record import MemoryDetails, Number, Outcome, Status
from jaxmeter.harness.traces import hlo

UNPLANNED = "the plan leaves out the working memory of matrix products and convolutions"

LONGEST_COMPILE_S = 2.0
"""A program that took longer is not compiled again to see what donating its arguments would save."""


def probe_variants(variants: tuple[str, ...], context: Context) -> Findings:
    """Reads the plan of each; nothing is called."""
    return probe_each("memory", read_plan, variants, context)


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
    }
    saved: int | None = None
    notes: tuple[str, ...] = ()
    try:
        values["planned_peak_bytes"] = (planned_peak_bytes(compiled, context.platform),)
        values |= _read_newer(analysis, context)
        saved, notes = _try_donation(prepared.stages, context)
    except UnknownError as error:
        notes = (describe_own_fault(error),)
    if saved is not None:
        values["donation_saves_bytes"] = (saved,)
    try:
        largest = buffers.find_largest(compiled)
    except Exception as error:  # noqa: BLE001  backends describe their programs in many ways, or not
        largest, notes = (), (*notes, describe_unread("its largest buffers", error))
    unplanned, more = _find_unplanned(compiled, context)
    details = MemoryDetails(buffers=largest, unplanned=unplanned)
    return Outcome(status=Status.OK, values=values, notes=(*notes, *more), details=details)


def _read_newer(analysis: Any, context: Context) -> dict[str, tuple[Number | None, ...]]:
    """Return the values that newer releases report. Each program needs memory, so 0 means that a value is missing."""
    rows = (internals.TOTAL_BYTES, internals.PEAK_BYTES, internals.UNPADDED_BYTES)
    total, padded, unpadded = (row.get(analysis) or None for row in rows)
    if padded is None or unpadded is None or not context.platform.peak_counts_temporaries:
        return {"allocated_bytes": (total,), "padding_bytes": (None,)}
    return {"allocated_bytes": (total,), "padding_bytes": (padded - unpadded,)}


def _find_unplanned(compiled: Any, context: Context) -> tuple[tuple[str, ...] | None, tuple[str, ...]]:
    """Return the kinds of operations whose working memory the plan leaves out, and notes on these operations."""
    if context.platform.plans_products:
        return (), ()
    try:
        unplanned = buffers.find_unplanned(hlo.parse(program.read_hlo(compiled)))
    except Exception as error:  # noqa: BLE001  as above
        return None, (describe_unread("which products the plan leaves out", error),)
    if not unplanned.kinds:
        return (), ()
    note = f"{UNPLANNED} ({', '.join(unplanned.kinds)}): rely on measured peak memory"
    inside = f"the plan leaves out up to {unplanned.inside_bytes / 2**20:,.0f} MiB of results inside fused products"
    return unplanned.kinds, (note, inside) if unplanned.inside_bytes >= buffers.SMALLEST_UNPLANNED_BYTES else (note,)


def _try_donation(stages: Stages, context: Context) -> tuple[int | None, tuple[str, ...]]:
    """What donating all arguments saves of the peak."""
    if stages.donated is None:
        return None, ()
    if stages.events.hits:
        return None, ("what donation saves is known only where the program was compiled: here it came from the cache",)
    if stages.compile_s is not None and stages.compile_s > LONGEST_COMPILE_S:
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
