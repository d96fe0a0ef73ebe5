"""A jitted program kept as a file, so that a later run can compare its own program with it."""

from __future__ import annotations

from jaxmeter.harness.machine.environment import describe_error
from jaxmeter.harness.machine.own_fault import is_disk_full
from jaxmeter.harness.probes.context import Context, Findings, probe_each
from jaxmeter.harness.programs.modes import Prepared
from jaxmeter.harness.programs.replay import write_program
from jaxmeter.harness.record import Outcome, Status, write_bytes
from jaxmeter.harness.record.files import LARGEST_PROGRAM

LONGEST_LOWER_S = 10.0
"""Longest time of tracing and lowering a program that is kept, which repeats both. A large unrolled loop would take as
long as a case."""


def probe_variants(variants: tuple[str, ...], context: Context) -> Findings:
    """Keep the program of each variant that has one."""
    return probe_each("export", keep_program, variants, context)


def keep_program(variant: str, prepared: Prepared, context: Context) -> Outcome:
    """Write the program into the case's folder, or return why there is none to replay."""
    stages = prepared.stages
    if stages is None:
        return _not_kept("a pass over a stream has a program for each type of arguments, and none by itself")
    if context.folder is None:
        return _not_kept("no folder to write it to")
    if context.folder.exported(variant).exists():  # this process is there to fill the cache once more
        return Outcome(status=Status.OK)
    lowering_s = sum(filter(None, (stages.trace_s, stages.lower_s)))
    if lowering_s > LONGEST_LOWER_S:
        return _not_kept(f"tracing and lowering it takes {lowering_s:.0f} s")
    try:
        written = write_program(prepared.jitted, prepared.args)
    except Exception as error:  # noqa: BLE001  jax refuses in many ways, and none says anything of the variant
        return _not_kept(f"jax.export refuses it: {describe_error(error)}")
    if len(written) > LARGEST_PROGRAM:
        return _not_kept(f"it has {len(written) / 2**20:.0f} MiB, most of it constants")
    try:
        write_bytes(context.folder.exported(variant), written, lasting=False)
    except OSError as error:
        if is_disk_full(error):
            raise
        return _not_kept(f"it cannot be written: {error}")
    return Outcome(status=Status.OK)


def _not_kept(reason: str) -> Outcome:
    return Outcome(status=Status.UNSUPPORTED, reason=f"the program is not kept for comparisons: {reason}")
