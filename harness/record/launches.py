"""Raw samples of one timing launch, block by block, and how undisturbed each block was."""

from __future__ import annotations

import msgspec


class Block(msgspec.Struct, frozen=True, kw_only=True):
    """A few milliseconds of one variant's samples, and how undisturbed they were.

    Args:
      sweep: The sweep that the block belongs to; a ratio pairs blocks of one sweep.
      samples_s: Seconds per call, one value per sample.
      wall_s: The block's own wall time.
      wait_s: Time that the process's threads waited for a core (Linux run queue); null elsewhere.
      cpu_s: Processor time of the process.
      steal_s: Time that the hypervisor gave to others, all cores; null elsewhere.
      involuntary_switches: Context switches forced on the process.
    """

    sweep: int
    samples_s: tuple[float, ...]
    wall_s: float
    wait_s: float | None
    cpu_s: float
    steal_s: float | None
    involuntary_switches: int


class VariantLaunch(msgspec.Struct, frozen=True, kw_only=True):
    """Raw timing of one variant in one launch. Samples are of `calls` calls each, stored per call.

    Args:
      cores: Cores that the process was allowed to use.
    """

    variant: str
    cores: int
    calls: int
    warmup_s: tuple[float, ...]
    steady: bool
    blocks: tuple[Block, ...]
    dispatch_s: tuple[float, ...]


class LaunchRecord(msgspec.Struct, frozen=True, kw_only=True):
    """Raw samples of one launch: one fresh process that timed some variants alternately."""

    schema_version: int
    case: str
    index: int
    seed: int
    started: str
    variants: tuple[VariantLaunch, ...]
