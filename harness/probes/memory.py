"""What a program holds: the compiler's plan (`memory_analysis`), its largest buffers, and what donation saves."""

from __future__ import annotations

import warnings
from typing import Any

import jax

from harness.machine.environment import said
from harness.plan.messages import CHECK
from harness.probes.context import Context, Probe
from harness.programs import buffers
from harness.programs.modes import Prepared, Stages
from harness.record import DOES_NOT_FIT, Number, Outcome, Status

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
    except Exception as error:  # noqa: BLE001  backends tell their programs in many ways, or not
        largest, notes = (), (*notes, f"its largest buffers cannot be read: {said(error)}")
    return Outcome(status=Status.OK, values=values, notes=notes, buffers=largest)


MEMORY = Probe("memory", CHECK, run, calls=False)


def size_bytes(arrays: Any) -> int:
    """What all arrays, or their shapes, in a tree hold; of an array, on all devices together that this process sees."""
    return sum(map(_leaf_bytes, jax.tree.leaves(arrays)))


def _leaf_bytes(leaf: Any) -> int:
    if isinstance(leaf, jax.Array) and len(leaf.sharding.device_set) > 1:
        return sum(shard.data.nbytes for shard in leaf.addressable_shards)
    if isinstance(leaf, jax.ShapeDtypeStruct):
        return int(leaf.size * leaf.dtype.itemsize)
    # Other libraries count the bytes of their arrays too; numbers, and models of theirs, are not counted.
    return int(getattr(leaf, "nbytes", 0))


def does_not_fit(needed_bytes: int | None, capacity_bytes: int | None) -> str | None:
    """Why a program cannot be run here, or None; also where it is not known."""
    if needed_bytes is None or capacity_bytes is None or needed_bytes <= capacity_bytes:
        return None
    return f"{DOES_NOT_FIT}: needs {needed_bytes / 2**30:.3g} GiB of {capacity_bytes / 2**30:.3g} GiB"


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
    if stages.events.hits:
        return None, ("what donating saves is told where its program was compiled first: here it came from the cache",)
    if stages.compile_s > LONGEST_COMPILE_S:
        return None, (f"not compiled again to see what donating saves: compiling took {stages.compile_s:.1f} s",)
    plain = peak_bytes(stages.compiled, context)
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Some donated buffers were not usable")
            donated = peak_bytes(stages.donated(), context)
    except (TypeError, ValueError, jax.errors.JaxRuntimeError) as error:
        return None, (f"what donating saves is not known: {said(error)}",)
    return (None, ()) if plain is None or donated is None else (plain - donated, ())
