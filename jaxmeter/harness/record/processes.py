"""One process: what it looked at and how that ended; of a timing process, its samples and how quiet each block was.

These files are the record of a run. All else that a run says of a case is made of them.
"""

from __future__ import annotations

import msgspec

from jaxmeter.harness.record.cases import Artifact
from jaxmeter.harness.record.outcomes import Outcome

ALU, COPY, DEVICE = "alu", "copy", "device"
"""Names of calibration loops: a core's own speed, that of memory, that of the device."""

LEFT_OUT = "left-out"
"""The kind of a process that was planned, and not run since the budget had no time for it."""

IDLE = "gpu idle"
"""That a device had nothing to do is no reason of being slow; its clock then tells nothing."""


class Block(msgspec.Struct, frozen=True, kw_only=True):
    """A few milliseconds of one variant's samples, and how quiet they were.

    Args:
      pass_number: The pass that the block belongs to; a ratio pairs blocks of one pass.
      samples_s: Seconds per call, one value per sample.
      wall_s: The block's own wall time.
      wait_s: Time that the process's threads waited for a core (Linux run queue); null elsewhere.
      cpu_s: Processor time of the process.
      steal_s: Time that the hypervisor gave to others, all cores; null elsewhere.
      involuntary_switches: Context switches forced on the process.
      calibration_s: Of the calibration loop just before the block and just after it, the slower; null where there is
        none.
    """

    pass_number: int
    samples_s: tuple[float, ...]
    wall_s: float
    wait_s: float | None
    cpu_s: float
    steal_s: float | None
    involuntary_switches: int
    calibration_s: float | None = None


class VariantSamples(msgspec.Struct, frozen=True, kw_only=True):
    """Raw timing of one variant in one process. Samples are of `calls` calls each, stored per call.

    Args:
      cores: Cores that the process could use, by its affinity and by its control groups' quota, which may be of a part.
      isolated_s: Blocks of this variant alone, one after the other, after the passes: the median of each, seconds per
        call.
      queued_calls: Calls of a queue, and of a row interleaved with it; 0 where none were queued.
      waited_s, queued_s: Rows of calls that are waited for one by one, and queues, which are waited for once: the
        median of each turn, seconds per call. The two of one place are of one pass.
      compiles_per_call: Programs that every call compiles, within its time and without a persistent cache.
    """

    variant: str
    cores: float
    calls: int
    warmup_s: tuple[float, ...]
    steady: bool
    blocks: tuple[Block, ...]
    return_s: tuple[float, ...]
    isolated_s: tuple[float, ...] = ()
    queued_calls: int = 0
    waited_s: tuple[float, ...] = ()
    queued_s: tuple[float, ...] = ()
    compiles_per_call: int = 0


class Load(msgspec.Struct, frozen=True, kw_only=True):
    """What ran on the machine while one process timed, from its first warm-up to its last time until return.

    Over all of it, since the kernel counts in ticks of 10 ms, of which a block holds none or one.

    Args:
      wall_s: Of the stretch.
      cpu_s: Processor time of the process.
      machine_s: Processor time of all that the machine ran, this process too; null where the system does not tell.
      steal_s: Time that the hypervisor gave to others, all cores; null elsewhere.
      throttled_s: Time that the process's control group was not let run, its quota being used up; null without one.
    """

    wall_s: float
    cpu_s: float
    machine_s: float | None = None
    steal_s: float | None = None
    throttled_s: float | None = None


class CalibrationLoop(msgspec.Struct, frozen=True, kw_only=True):
    """A fixed piece of work, timed between the blocks: how fast the machine was meanwhile.

    Args:
      name: alu, copy or device.
      identity: What it is, with the versions that decide how fast; times of two identities cannot be compared.
      samples_s: Seconds, in the order taken: of alu one before and one after each block, of others one in every two
        passes.
    """

    name: str
    identity: str
    samples_s: tuple[float, ...]


class DeviceState(msgspec.Struct, frozen=True, kw_only=True):
    """What a device reported of itself at the end of two passes.

    Args:
      pass_number: The second of the two.
      clock_hz: Of its processors; null where it does not tell.
      most_clock_hz: The highest that it has.
      throttled: Reasons for which it runs slower than it could, in the vendor's words.
    """

    pass_number: int
    clock_hz: float | None = None
    most_clock_hz: float | None = None
    throttled: tuple[str, ...] = ()


class ProcessRecord(msgspec.Struct, frozen=True, kw_only=True):
    """One fresh process: which probes looked at which variants, how that ended, and the samples of those that it timed.

    Args:
      index: The round that it belongs to, from 0.
      variants: Raw samples; empty but for a timing process.
      calibrations: Empty but for a timing process.
      device_states: Empty where no device tells.
      load: Null but for a timing process.
      kind: As it was planned: check, compilation, timing …; LEFT_OUT of what was planned and not run.
      assignments: By probe, the variants of which it knows how they ended.
      cache_state: What the caches held when a call began; empty for other probes than caching.
      refills: Whether it filled the compilation cache of a run that was resumed, and tells nothing else.
      replaces: Whether it replaces a contended process.
      left_out: Why it was not run; null of one that was.
      looks: How often the case's intervals were looked at to decide on more processes, and at the end.
      plan: By probe, all variants of the case that it is to look at, by whatever process.
      outcomes: By variant and probe; lost where the budget has ended the process. Of timing what failed alone.
      notes: On the whole case.
      elapsed_s: Of the process, with that which it replaces.
    """

    schema_version: int
    case: str
    index: int
    seed: int
    started: str
    variants: tuple[VariantSamples, ...] = ()
    calibrations: tuple[CalibrationLoop, ...] = ()
    device_states: tuple[DeviceState, ...] = ()
    load: Load | None = None
    kind: str = ""
    assignments: dict[str, tuple[str, ...]] = {}
    cache_state: str = ""
    refills: bool = False
    replaces: bool = False
    left_out: str | None = None
    looks: int = 1
    plan: dict[str, tuple[str, ...]] = {}
    outcomes: dict[str, dict[str, Outcome]] = {}
    artifacts: tuple[Artifact, ...] = ()
    notes: tuple[str, ...] = ()
    elapsed_s: float = 0.0
