"""What a program holds: the compiler's plan (`memory_analysis`), its largest buffers, and what donation saves."""

from __future__ import annotations

import warnings
from typing import Any

import jax

from harness import buffers
from harness.messages import CHECK
from harness.modes import Prepared, Stages
from harness.probes.context import Context, Probe
from harness.program import UNREADABLE
from harness.record import DOES_NOT_FIT, Number, Outcome, Status

LONGEST_NOTE = 200
LONGEST_COMPILE_S = 2.0
"""A program that took longer is not compiled again to see what donating its arguments would save."""


def run(variant: str, prepared: Prepared, context: Context) -> Outcome:
    """Reads the plan; nothing is called."""
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
        "peak_bytes": (peak_bytes(compiled, context),),
    }
    saved, notes = _donation(prepared.stages, context)
    if saved is not None:
        values["donation_saves_bytes"] = (saved,)
    try:
        largest = buffers.largest(compiled)
    except (*UNREADABLE, ValueError, AttributeError) as error:
        said = " ".join(str(error).split())[:LONGEST_NOTE]
        largest, notes = (), (*notes, f"its largest buffers cannot be read: {said}")
    return Outcome(status=Status.OK, values=values, notes=notes, buffers=largest)


MEMORY = Probe("memory", CHECK, run, calls=False)


def needed_bytes(prepared: Prepared, context: Context) -> int | None:
    """What one call needs, found without calling: the plan's peak; of eager code at least arguments and results.

    None where it is not known: for streams, for eager code that cannot be traced, and on several devices, since
    shapes do not tell which of them would hold how much.
    """
    if prepared.stages is not None:
        return peak_bytes(prepared.stages.compiled, context)
    if context.workload.stream or not prepared.dispatches or jax.device_count() > 1:
        return None
    try:
        results = jax.eval_shape(prepared.call, *prepared.args)
    except Exception:  # noqa: BLE001  eager code may do what a trace cannot; then calling it tells
        return None
    return size_bytes((prepared.args, results))


def size_bytes(arrays: Any) -> int:
    """Of all arrays, or their shapes, in a tree."""
    return sum(leaf.size * leaf.dtype.itemsize for leaf in jax.tree.leaves(arrays))


def does_not_fit(needed_bytes: int | None, context: Context) -> str | None:
    """Why a program cannot be run here, or None; also where it is not known."""
    capacity = context.capacity_bytes
    if needed_bytes is None or capacity is None or needed_bytes <= capacity:
        return None
    return f"{DOES_NOT_FIT}: needs {needed_bytes / 2**30:.3g} GiB of {capacity / 2**30:.3g} GiB"


def peak_bytes(compiled: Any, context: Context) -> int | None:
    """The most that the program holds at once; None where the backend does not tell."""
    analysis = compiled.memory_analysis()
    if analysis is None:
        return None
    told = getattr(analysis, "peak_memory_in_bytes", None)
    if told and context.backend.peak_counts_temporaries:
        return int(told)
    held = analysis.argument_size_in_bytes + analysis.output_size_in_bytes + analysis.temp_size_in_bytes
    return int(held - analysis.alias_size_in_bytes)


def _donation(stages: Stages, context: Context) -> tuple[int | None, tuple[str, ...]]:
    """What donating all arguments saves of the peak."""
    if stages.compile_s > LONGEST_COMPILE_S:
        return None, (f"not compiled again to see what donating saves: compiling took {stages.compile_s:.1f} s",)
    plain = peak_bytes(stages.compiled, context)
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Some donated buffers were not usable")
            donated = peak_bytes(stages.donated(), context)
    except (TypeError, ValueError, jax.errors.JaxRuntimeError) as error:
        return None, (f"what donating saves is not known: {' '.join(str(error).split())[:LONGEST_NOTE]}",)
    return (None, ()) if plain is None or donated is None else (plain - donated, ())
