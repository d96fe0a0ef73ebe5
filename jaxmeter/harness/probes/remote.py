"""A variant that runs in a process of another environment, or of this one, which takes turns with others."""

from __future__ import annotations

import socket
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

import msgspec

from jaxmeter.harness.machine.interference import ReadInterference
from jaxmeter.harness.plan.messages import ERRORS, Begin, Done, Reply, Turn, TurnStep
from jaxmeter.harness.probes.calibration import TakeCalibration, find_slower, take_none
from jaxmeter.harness.record import VariantSamples

STDERR_KEPT = 500


class Arm(StrEnum):
    """Whose process runs a variant."""

    BEFORE = "the environment of the earlier run"
    NOW = "today's environment"


class ArmError(Exception):
    """A process that takes turns cannot run a variant; the message says why."""


@dataclass(frozen=True)
class Address:
    """Where an environment's processes are asked for, and for which case.

    Args:
      path: Of its socket.
    """

    path: str
    begin: Begin


@dataclass(eq=False)
class Meeting:
    """One process that takes turns.

    Args:
      inputs: Hash of the inputs that it has.
      cpu_s: Its processor time so far.
    """

    connected: socket.socket
    errors: Path
    inputs: str = ""
    cpu_s: float = 0.0

    def __post_init__(self) -> None:
        self._stream = self.connected.makefile("rwb")

    def ask(self, message: Begin | Turn, numbers: bytes = b"") -> Done:
        """What was done.

        Args:
          numbers: What follows the message.

        Raises:
          ArmError: It cannot be done, or the process has ended.
        """
        line = b""
        with suppress(OSError):  # it has ended
            self._stream.write(msgspec.json.encode(message) + b"\n" + numbers)
            self._stream.flush()
            line = self._stream.readline()
        if not line:
            words = _read_end(self.errors)
            raise ArmError(f"its process has ended without an answer{f': {words}' if words else ''}")
        reply = msgspec.json.decode(line, type=Reply)
        if reply.done is None:
            raise ArmError(reply.refusal)
        self.cpu_s = reply.done.cpu_s
        return reply.done

    def give_inputs(self, numbers: bytes) -> None:
        """Has it take other numbers as its inputs.

        Raises:
          ArmError: It cannot.
        """
        self.inputs = self.ask(Turn(step=TurnStep.INPUTS, size=len(numbers)), numbers).inputs

    def prepare(self, variant: str) -> RemoteVariant:
        """A variant there, called once.

        Raises:
          ArmError: It cannot be called.
        """
        return RemoteVariant(self, variant, self.ask(Turn(variant=variant, step=TurnStep.PREPARE)))

    def close(self) -> None:
        """Ends the process."""
        with suppress(OSError):
            self._stream.close()


@dataclass(eq=False)
class RemoteVariant:
    """A variant there, with what is known of it; its process does each step with a `Sampler` of its own.

    Args:
      there: Its name in the other environment.
      last: What its process said last.
    """

    meeting: Meeting
    there: str
    last: Done = field(repr=False)
    _calibrations_s: list[float | None] = field(default_factory=list, repr=False)

    @property
    def calls(self) -> int:
        """How many calls make a sample."""
        return self.last.calls

    @property
    def call_s(self) -> float:
        """About how long a call takes."""
        return self.last.call_s

    @property
    def returns_early(self) -> bool:
        """Whether a call returns before its result is ready."""
        return self.last.returns_early

    @property
    def is_limited(self) -> bool:
        """False: a callable of a notebook, whose calls may be limited, runs in no other environment."""
        return False

    def calibrate(self) -> None:
        """Find how many calls make a sample."""
        self._take(Turn(variant=self.there, step=TurnStep.CALIBRATE))

    def warm_up(self) -> None:
        """Run until it is steady, for a limited time."""
        self._take(Turn(variant=self.there, step=TurnStep.WARM_UP))

    def wake_threads(self, longest_s: float) -> None:
        """Do nothing: its process is kept on one core."""

    def take_block(
        self, pass_number: int, block_s: float, interference: ReadInterference, calibration: TakeCalibration = take_none
    ) -> None:
        """Take a block: counters are the working process's, the calibration loop is this one's, on the same core."""
        before_s = calibration()
        self._take(Turn(variant=self.there, step=TurnStep.BLOCK, pass_number=pass_number, block_s=block_s))
        self._calibrations_s.append(find_slower(before_s, calibration()))

    def take_row(self, calls: int, block_s: float, *, queued: bool) -> None:
        """Take rows of so many calls: each waited for, or all once."""
        self._take(Turn(variant=self.there, step=TurnStep.ROW, count=calls, block_s=block_s, queued=queued))

    def take_isolated(self, count: int, block_s: float) -> None:
        """Take blocks in a row."""
        self._take(Turn(variant=self.there, step=TurnStep.ISOLATED, count=count, block_s=block_s))

    def take_returns(self) -> None:
        """Time single calls until they return."""
        self._take(Turn(variant=self.there, step=TurnStep.RETURN))

    def record(self, name: str, cores: float) -> VariantSamples:
        """Return all samples.

        Raises:
          ArmError: The other process reported no samples.
        """
        self._take(Turn(variant=self.there, step=TurnStep.RECORD, cores=cores))
        samples = self.last.process
        if samples is None:
            raise ArmError("its process reported no samples")
        blocks = tuple(
            msgspec.structs.replace(block, calibration_s=calibration_s)
            for block, calibration_s in zip(samples.blocks, self._calibrations_s, strict=True)
        )
        return msgspec.structs.replace(samples, variant=name, blocks=blocks)

    def _take(self, turn: Turn) -> None:
        self.last = self.meeting.ask(turn)


@contextmanager
def meet(other: Address) -> Iterator[Meeting]:
    """Yield a connection to a fresh process of another environment, which has made the inputs.

    Raises:
      ArmError: The process cannot be reached, or has no such case.
    """
    with socket.socket(socket.AF_UNIX) as connected:
        try:
            connected.connect(other.path)
        except OSError as error:
            raise ArmError(f"it cannot be reached: {error.strerror}") from error
        meeting = Meeting(connected, Path(other.path).with_name(ERRORS))
        try:
            meeting.inputs = meeting.ask(other.begin).inputs
            yield meeting
        finally:
            meeting.close()


def sum_cpu_s(variants: Iterable[object]) -> float:
    """Return the processor time so far of the other processes that some variants are in."""
    meetings = {variant.meeting for variant in variants if isinstance(variant, RemoteVariant)}
    return sum(meeting.cpu_s for meeting in meetings)


def _read_end(errors: Path) -> str:
    """Return the last line of the other process's standard error."""
    try:
        lines = errors.read_bytes()[-STDERR_KEPT:].decode("utf8", "replace").splitlines()
    except OSError:
        return ""
    return next((line.strip() for line in reversed(lines) if line.strip()), "")
