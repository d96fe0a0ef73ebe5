"""What XLA counts that a program does, with loops counted as often as they run.

XLA's `cost_analysis` counts a loop's body once, however often it runs (jax issue 18672). Here the body is counted by
itself, by XLA, and added for the rounds that are missing, where the compiler knows how many there are.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import jax

from jaxmeter.harness.machine import jax_internals as internals
from jaxmeter.harness.machine.own_fault import ReleaseLacksError
from jaxmeter.harness.programs import program
from jaxmeter.harness.programs.older_jax import RuntimeFailure
from jaxmeter.harness.record.outcomes import NOT_COUNTED
from jaxmeter.harness.traces import hlo
from jaxmeter.harness.traces.hlo import Computation, Instruction, Module

_METRICS = {"counted_flops": internals.COUNTED_FLOPS.name, "counted_bytes": internals.COUNTED_BYTES.name}
_METADATA = re.compile(r", metadata=\{[^{}]*\}")
"""It refers to tables of the header, which a loop's body by itself does not have."""

UNKNOWN_CALLS = f"{NOT_COUNTED}: it does not know what the program's custom calls do"
UNKNOWN_BRANCH = f"{NOT_COUNTED}: which branch of a conditional is taken is not known"
UNKNOWN_TRIPS = f"{NOT_COUNTED}: it counts a loop's body once, and how often a loop of this program runs is not known"
NO_COUNT = f"{NOT_COUNTED}: it gives none for this program"
NO_BODY = f"{NOT_COUNTED}: it counts a loop's body once, and nothing here can count a body by itself"


class NotCountableError(Exception):
    """There is no count to trust; the message says why."""


@dataclass(frozen=True)
class Work:
    """Floating-point operations and bytes read and written, by metric."""

    values: dict[str, float]

    def plus(self, other: Work, times: float) -> Work:
        """This work and `times` the other."""
        return Work({name: value + times * other.values[name] for name, value in self.values.items()})


def count_work(compiled: Any) -> Work:
    """XLA's count of one call of a compiled program, on one device.

    Raises:
      NotCountableError: The backend gives none, a loop runs an unknown number of times, or there are custom calls or
        conditionals, of which XLA counts nothing and the dearest branch.
    """
    whole = _work(compiled.cost_analysis())
    text = program.read_hlo(compiled)
    module = hlo.parse(text)
    if hlo.count_program(module).custom_calls:
        raise NotCountableError(UNKNOWN_CALLS)
    if any(instruction.opcode == "conditional" for instruction in module.instructions()):
        raise NotCountableError(UNKNOWN_BRANCH)
    if not hlo.trip_counts(module):
        return whole
    return _Loops(module, text).completed(module.entry, whole)


@dataclass(frozen=True)
class _Loops:
    """Adds to a computation's count what its loops do after their first round."""

    module: Module
    text: str
    counted: dict[str, Work] = field(default_factory=dict)

    def completed(self, computation: Computation, once: Work) -> Work:
        total = once
        for loop in self._outermost(computation):
            trips = hlo.trip_count(loop)
            if trips is None:
                raise NotCountableError(UNKNOWN_TRIPS)
            for name in hlo.list_called(loop):  # body and condition
                inside = self.module.computation(name)
                body = self._count(inside)
                total = total.plus(self.completed(inside, body), trips).plus(body, -1)
        return total

    def _outermost(self, computation: Computation) -> Iterable[Instruction]:
        """Loops of a computation and of what it calls, but not those inside loops."""
        for instruction in computation.instructions:
            if instruction.opcode == "while":
                yield instruction
            elif instruction.opcode != "fusion":
                for name in hlo.list_called(instruction):
                    yield from self._outermost(self.module.computation(name))

    def _count(self, computation: Computation) -> Work:
        """One round of a loop's body, counted by XLA as a program of its own."""
        if computation.name not in self.counted:
            self.counted[computation.name] = self._count_anew(computation)
        return self.counted[computation.name]

    def _count_anew(self, computation: Computation) -> Work:
        try:
            body = internals.MODULE_FROM_TEXT.load()(_as_program(self.text, computation.name))
            return _work(internals.MODULE_COST.load()(jax.devices()[0].client, body))
        except (ReleaseLacksError, RuntimeFailure) as error:
            raise NotCountableError(NO_BODY) from error


def _as_program(text: str, computation: str) -> str:
    """The module's text with another computation as its entry, without what refers to the whole program."""
    lines, copying = ["HloModule body"], False
    begins = re.compile(rf"%?{re.escape(computation)} \(")
    for line in text.splitlines():
        if line.endswith("{") and not line.startswith((" ", "HloModule")):
            copying = True
            head = line.removeprefix("ENTRY ")
            lines.append(f"ENTRY {head}" if begins.match(head) else head)
        elif copying:
            lines.append(_METADATA.sub("", line))
            copying = line != "}"
    return "\n".join(lines)


def _work(analysis: Any) -> Work:
    if isinstance(analysis, list):  # older releases return one for each device
        analysis = analysis[0] if analysis else {}
    # XLA leaves out what is 0. Below 0 is its way to say that it does not know of some operation.
    values = {metric: float(analysis.get(key, 0.0)) for metric, key in _METRICS.items()} if analysis else {}
    if not any(values.values()) or any(value < 0 for value in values.values()):
        raise NotCountableError(NO_COUNT)
    return Work(values)
