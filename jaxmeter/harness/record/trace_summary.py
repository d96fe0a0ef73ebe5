"""What a profiler capture shows, as a small table: device time, operations, ledger and health. No events."""

from __future__ import annotations

from enum import StrEnum

import msgspec


class Problem(StrEnum):
    """What can be wrong with a capture."""

    DAMAGED = "damaged"
    """Empty, cut short, or no capture at all."""

    NO_OPERATIONS = "no operations"
    NO_DEVICE = "no device"
    NOT_PERMITTED = "not permitted"
    MISSING_STEPS = "missing steps"
    DROPPED_EVENTS = "dropped events"
    FOREIGN_PROGRAM = "foreign program"
    CLOCKS_DISAGREE = "clocks disagree"
    COMMAND_BUFFERS = "command buffers"
    UNEQUAL_STEPS = "unequal steps"
    LONG_STEP = "long step"
    PYTHON_TRACER = "Python tracer"
    UNFINISHED = "unfinished"
    CUT_JSON = "cut JSON"
    READ_IN_PART = "read in part"


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """Something that is wrong with a capture.

    Args:
      text: What was found, for a person.
      remedy: What to do about it; empty where nothing helps.
      is_fatal: Whether the capture gives no numbers then.
    """

    problem: Problem
    text: str
    remedy: str = ""
    is_fatal: bool = True


class TracedOperation(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One operation of one program, over all traced steps and devices.

    Args:
      module: The program's name.
      opcode: HLO's; of a fusion with what is heaviest inside.
      category: compute, callback, collective, transfer or control flow.
      source: `file:line` of the user's own code; empty where unknown.
      jax_name: Of the operation in JAX, with named scopes, `jit(step)/mlp/dot_general`; a run's record leaves it out.
      count: Executions.
      total_s: Sum of their durations.
      self_s: The same without what ran inside a loop or call.
      share: Of the devices' busy time; shares of all operations add up to 1.
      flops: Of one execution; None where nobody can say.
      bytes: Read and written by one execution; None where nobody can say.
    """

    name: str
    module: str
    opcode: str = ""
    category: str
    source: str = ""
    jax_name: str = ""
    count: int
    total_s: float
    self_s: float
    share: float
    flops: float | None = None
    bytes: float | None = None


class TracedDevice(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One device, step by step, in seconds.

    Args:
      busy_s: Union of its operations.
      program_s: Union of its programs' runs; empty if a platform's captures do not distinguish runs.
      collective_s: Union of its collectives.
      waiting_s: The part of the collectives that waited for other devices; None if captures do not show it.
      transfer_s: Union of its copies between memories.
    """

    name: str
    busy_s: tuple[float, ...]
    program_s: tuple[float, ...] = ()
    collective_s: tuple[float, ...] = ()
    waiting_s: tuple[float, ...] | None = None
    transfer_s: tuple[float, ...] = ()


class TraceSummary(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The summary of one host's capture. An unhealthy capture has no numbers.

    Args:
      platform: cpu, gpu or tpu; empty if no device has operations.
      steps_from: What a step is: annotations, runs of the longest program, or first to last operation.
      step_name: Name of annotated steps.
      other_steps: Number of annotated steps of other names, by name.
      until_next: Whether a step lasts until the next one begins, since the annotated code does not wait for results.
      traced_s: Wall time of each step while it was traced, which is no time of the program: tracing slows it down.
      devices: The devices with operations.
      operations: In order of their shares, the largest first.
      executions: Number of executions of operations in all steps, on all devices.
      outside_share: Share of the devices' busy time that lies in no step.
      between_share: Share of the time from the first step to the last one that lies between two of them.
      product_formats: Formats of the operands of its products and convolutions, such as float32.
      others, others_share: Number of operations that are not listed, and their share.
      by_category: Share of the busy time by category.
      by_source: Share of the busy time by line of the user's code, the largest first; the empty text is for no line.
      ledger: Share of all steps' wall time by part; the parts exclude each other and add up to 1.
      hidden: Parts that the platform's captures cannot show.
      ledger_device: The device of the ledger.
      launch_delay_s: Median kernel launch delay: from the host's call to the kernel's start; None if it is unknown.
      flops, bytes: Counts of one step, all operations together; None if an operation that takes time has none.
      findings: What is wrong with the capture.
      events: Number of events in the capture.
      peak_flops, peak_bytes_per_s: Peaks in the device's plane, per second, or None.
      device_kind: Kind of device in the plane.
    """

    platform: str
    steps_from: str
    step_name: str = ""
    other_steps: dict[str, int] = {}
    until_next: bool = False
    traced_s: tuple[float, ...] = ()
    devices: tuple[TracedDevice, ...] = ()
    operations: tuple[TracedOperation, ...] = ()
    executions: int = 0
    outside_share: float = 0.0
    between_share: float = 0.0
    product_formats: tuple[str, ...] = ()
    others: int = 0
    others_share: float = 0.0
    by_category: dict[str, float] = {}
    by_source: dict[str, float] = {}
    ledger: dict[str, float] = {}
    hidden: tuple[str, ...] = ()
    ledger_device: str = ""
    launch_delay_s: float | None = None
    flops: float | None = None
    bytes: float | None = None
    findings: tuple[Finding, ...] = ()
    events: int = 0
    peak_flops: float | None = None
    peak_bytes_per_s: float | None = None
    device_kind: str = ""

    @property
    def is_healthy(self) -> bool:
        """Whether its numbers can be used."""
        return not any(finding.is_fatal for finding in self.findings)

    @property
    def busiest(self) -> TracedDevice | None:
        """The device that was busy for longest."""
        return max(self.devices, key=lambda device: sum(device.busy_s), default=None)
