"""Raw samples of one timing process, block by block, and how quiet each block was."""

from __future__ import annotations

import msgspec

ALU, COPY, DEVICE = "alu", "copy", "device"
"""Names of calibration loops: a core's own speed, that of memory, that of the device."""

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
        none, and in records of before it stood there.
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
    """What a device told of itself at the end of two passes.

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
    """Raw samples of one process: one fresh process that timed some variants alternately.

    Args:
      calibrations: Empty in records of before there were any.
      device_states: Empty where no device tells.
      load: Null in records of before it was read.
    """

    schema_version: int
    case: str
    index: int
    seed: int
    started: str
    variants: tuple[VariantSamples, ...]
    calibrations: tuple[CalibrationLoop, ...] = ()
    device_states: tuple[DeviceState, ...] = ()
    load: Load | None = None
