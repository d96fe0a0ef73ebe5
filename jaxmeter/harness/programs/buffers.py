"""The largest buffers of a compiled program: their values, and the source lines that made these.

Read from the compiler's buffer assignment, a protocol buffer (`xla/service/hlo.proto`, messages BufferAssignmentProto,
LogicalBufferProto, BufferAllocationProto, HloModuleProto). Backends without a buffer assignment have no buffers here.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from jaxmeter.harness.machine import jax_internals as internals
from jaxmeter.harness.machine.own_fault import ReleaseLacksError
from jaxmeter.harness.programs import program
from jaxmeter.harness.programs.equations import brief_source
from jaxmeter.harness.record import Buffer
from jaxmeter.harness.traces import hlo
from jaxmeter.harness.traces.hlo import Instruction
from jaxmeter.harness.traces.wire import Field, read_fields

MOST = 8
SMALLEST_BYTES = 1024
"""Smallest buffer that is listed."""

LONGEST_SHAPE = 80
"""A tuple of a thousand results has a shape of a thousand parts."""


def find_largest(compiled: Any) -> tuple[Buffer, ...]:
    """Return the largest buffers of the program, by size; empty if the backend reports none.

    Buffers of temporaries may overlap if their values are not needed at the same time.
    """
    try:
        assignment = internals.BUFFERS.find(compiled.memory_analysis())
    except ReleaseLacksError:
        return ()
    if not assignment:
        return ()
    names = _names(compiled.runtime_executable().hlo_modules()[0].as_serialized_hlo_module_proto())
    module = hlo.parse(program.read_hlo(compiled))
    known = {one.name: one for computation in module.computations for one in computation.instructions}
    places = sorted(_places(assignment), key=lambda place: -place.size_bytes)
    kept = [place for place in places if place.size_bytes >= SMALLEST_BYTES][:MOST]
    return tuple(
        _buffer(place, [known[names[key]] for key in place.writers if names.get(key) in known]) for place in kept
    )


@dataclass(frozen=True)
class _Platform:
    """A range of memory; `writers` are ids of the instructions whose values fill it, `values` counts all its values."""

    kind: str
    size_bytes: int
    writers: tuple[int, ...]
    values: int


def _buffer(place: _Platform, writers: list[Instruction]) -> Buffer:
    writer = _most_telling(writers, of_argument=place.kind == "argument")
    return Buffer(
        kind=place.kind,
        size_bytes=place.size_bytes,
        shape="" if writer is None else _short(hlo.without_layout(writer.shape)),
        instruction="" if writer is None else writer.name,
        operation=None if writer is None else writer.operation,
        source=None if writer is None or writer.source is None else brief_source(writer.source),
        values=place.values,
    )


def _most_telling(writers: list[Instruction], *, of_argument: bool) -> Instruction | None:
    """Return the argument itself, or an instruction that computes the value, not a loop, and that has a source."""

    def rank(one: Instruction) -> tuple[bool, bool, bool]:
        return (one.opcode == "parameter") is not of_argument, one.shape.startswith("("), one.source is None

    return min(writers, key=rank, default=None)


def _short(shape: str) -> str:
    return shape if len(shape) <= LONGEST_SHAPE else f"{shape[: LONGEST_SHAPE - 1]}…"


def _places(assignment: bytes) -> Iterator[_Platform]:
    """Every allocation; those that hold values at several offsets, offset by offset."""
    sizes, writers = {}, {}
    for number, value in read_fields(assignment):
        if number == 1:
            logical = dict(read_fields(_bytes(value)))
            key = _int(logical.get(1, 0))
            sizes[key] = _int(logical.get(2, 0))
            writers[key] = _int(dict(read_fields(_bytes(logical.get(3, b"")))).get(4, 0))
    for number, value in read_fields(assignment):
        if number != 3:
            continue
        allocation = list(read_fields(_bytes(value)))
        at: dict[int, list[int]] = defaultdict(list)
        for name, content in allocation:
            if name == 9:
                assigned = dict(read_fields(_bytes(content)))
                at[_int(assigned.get(2, 0))].append(_int(assigned.get(1, 0)))
        kind = _kind({name for name, content in allocation if content})
        for held in at.values():
            size = max(sizes.get(key, 0) for key in held)
            yield _Platform(
                kind, size, tuple(writers[key] for key in held if sizes.get(key) == size and key in writers), len(held)
            )


def _kind(flags: set[int]) -> str:
    if 5 in flags:
        return "argument"
    if 12 in flags:
        return "constant"
    return "output" if 7 in flags else "temporary"


def _names(module: bytes) -> dict[int, str]:
    """Instruction names by id."""
    found = {}
    for number, computation in read_fields(module):
        for name, content in read_fields(_bytes(computation)) if number == 3 else ():
            if name == 2:
                instruction = dict(read_fields(_bytes(content)))
                found[_int(instruction.get(35, 0))] = _bytes(instruction.get(1, b"")).decode("utf8", "replace")
    return found


def _int(value: Field) -> int:
    return value if isinstance(value, int) else 0


def _bytes(value: Field) -> bytes:
    return value if isinstance(value, bytes) else b""
