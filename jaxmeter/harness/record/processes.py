"""One process: what it looked at and how that ended, its samples, and which stage took the time."""

from __future__ import annotations

import msgspec

from jaxmeter.harness.record.cases import Artifact
from jaxmeter.harness.record.outcomes import Outcome

ALU, COPY, DEVICE = "alu", "copy", "device"
"""Names of calibration loops: a core's own speed, that of memory, that of the device."""

LEFT_OUT = "left-out"
"""The kind of a planned process that was not run, because the budget had no time for it."""

IDLE = "gpu idle"
"""The reason of an idle device, which does not make it slow; the clock of an idle device has no meaning."""


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
      isolated_s: Blocks of this variant alone, one after the other, after the passes: the time of each, seconds per
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
    """The load of the machine while one process timed, from its first warm-up to its last time until return.

    It is counted over the whole period: the kernel counts in ticks of 10 ms, of which a block has none or one.

    Args:
      wall_s: Wall time of the period.
      cpu_s: Processor time of the process.
      machine_s: Processor time of everything on the machine, with this process; null if the system does not report it.
      steal_s: Time that the hypervisor gave to others, all cores; null elsewhere.
      throttled_s: Time that the process's control group could not run because its quota was used up; null without one.
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
    """The state that a device reported at the end of two passes.

    Args:
      pass_number: Number of the second pass.
      clock_hz: Clock of its processors; null if it does not report it.
      most_clock_hz: Its highest clock.
      throttled: Reasons why it is slower than it could be, in the vendor's words.
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
      device_states: Empty if no device reports its state.
      load: Null but for a timing process.
      kind: As it was planned: check, compilation, timing …; LEFT_OUT if it was planned and not run.
      assignments: By probe, the variants whose outcomes it has.
      cache_state: What the caches held when a call began; empty for other probes than caching.
      refills: Whether it only filled the compilation cache of a resumed run, and has no other result.
      replaces: Whether it replaces a contended process.
      left_out: Why it was not run; null if it was.
      looks: Number of interim analyses of the case's intervals that decided on more processes, with the final one.
      plan: By probe, all variants of the case that it looks at, in any process.
      outcomes: By variant and probe; lost if the budget has ended the process. For timing, only failures.
      notes: Notes on the whole case.
      elapsed_s: Time of the process, with that of the process that it replaces.
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


class Holder(msgspec.Struct, frozen=True, kw_only=True):
    """A stage of one variant in one kind of process, and what all such processes took for it.

    Args:
      case: Its name.
      process: check, compilation, timing …
      variant: None in a stage before any variant, such as the inputs.
      stage: trace, compile …
      seconds: Wall time.
    """

    case: str
    process: str
    variant: str | None
    stage: str
    seconds: float

    def __str__(self) -> str:
        """Process, stage, variant and case."""
        of = f"variant '{self.variant}' of {self.case}" if self.variant is not None else self.case
        return f"{of} (process '{self.process}', stage '{self.stage}')"


def describe_used_up(budget_s: float, held: Holder | None) -> str:
    """Say that a budget is used up, and what took the most of it."""
    of = f"; the most of it, {held.seconds:.0f} s, went to {held}" if held is not None else ""
    return f"the budget of {budget_s:g} s is used up{of}"
