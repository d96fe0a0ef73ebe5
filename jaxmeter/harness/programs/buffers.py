"""The largest buffers of a compiled program with their source lines, and the products whose memory has no buffer.

jaxmeter reads buffers from the compiler's buffer assignment, a protocol buffer (`xla/service/hlo.proto`, messages
BufferAssignmentProto, LogicalBufferProto, BufferAllocationProto, HloModuleProto). The list of buffers is empty if a
backend has no buffer assignment.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from jaxmeter.harness.machine import jax_internals as internals
from jaxmeter.harness.programs import program
from jaxmeter.harness.programs.equations import brief_source
from jaxmeter.harness.record import Buffer
from jaxmeter.harness.traces import hlo
from jaxmeter.harness.traces.costs import count_bytes
from jaxmeter.harness.traces.hlo import Instruction, Module
from jaxmeter.harness.traces.wire import Field, read_fields

MOST = 8
SMALLEST_BYTES = 1024
"""Smallest buffer that is listed."""

PRODUCTS = frozenset({"dot", "convolution"})

# Attributes of HLO, as XLA:CPU writes them from jaxlib 0.10 on: the library that runs a fusion (YNN), and the target of
# a call to a library (oneDNN).
_FUSION_KIND = re.compile(rf'"{internals.FUSION_KIND.name}":\s*\{{"kind":\s*"_*(\w+)"')
_PRODUCT_TARGET = re.compile(r'custom_call_target="([^"]*(?:matmul|gemm|conv)[^"]*)"', re.IGNORECASE)

SMALLEST_UNPLANNED_BYTES = 2**20
"""Smallest product that is reported: the size of its operands, results and intermediate results. Working memory is
proportional to this size. The working memory of smaller products is too small to be measured."""

MATRIX = 2
"""Fewest dimensions, other than 1, in the result of a product that a library computes."""

LONGEST_SHAPE = 80
"""A tuple of a thousand results has a shape of a thousand parts."""


def find_largest(compiled: Any) -> tuple[Buffer, ...]:
    """Return the largest buffers of the program, by size; empty if the backend reports none.

    Buffers of temporaries may overlap if their values are not needed at the same time.
    """
    assignment = internals.BUFFERS.get(compiled.memory_analysis())
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
class Unplanned:
    """Operations whose working memory the plan leaves out.

    Args:
      kinds: Kinds of operations, such as `ynn_fusion` and `__onednn$matmul`. Eigen computes `dot` and `convolution`.
      inside_bytes: All intermediate results inside fusions of these kinds; the library can hold fewer at a time.
    """

    kinds: tuple[str, ...] = ()
    inside_bytes: int = 0


def find_unplanned(module: Module) -> Unplanned:
    """Return the products and convolutions of a CPU program that libraries compute in working memory of their own.

    A chain of products can be one fusion. The plan then has no buffers for the intermediate results of the chain.
    """
    fusions = (each for each in module.instructions() if each.opcode == "fusion")
    fused = {name for fusion in fusions for name in hlo.list_called(fusion)}
    kinds, total = set(), 0.0
    for computation in module.computations:
        shapes = {each.name: each.shape for each in computation.instructions}
        for instruction in computation.instructions if computation.name not in fused else ():
            kind, inside = _read_product(instruction, module)
            inside_bytes = sum(count_bytes(inner.shape) for inner in inside)
            around = [instruction.shape, *(shapes.get(name, "") for name in instruction.operands)]
            if kind and inside_bytes + sum(map(count_bytes, around)) >= SMALLEST_UNPLANNED_BYTES:
                kinds.add(kind)
                total += inside_bytes
    return Unplanned(tuple(sorted(kinds)), int(total))


def _read_product(instruction: Instruction, module: Module) -> tuple[str, Iterable[Instruction]]:
    """Return the kind of product that a library computes, and what its fusion contains; empty for other operations."""
    opcode, attributes = instruction.opcode, instruction.attributes
    if opcode in PRODUCTS:
        sides = re.findall(r"\d+", hlo.without_layout(instruction.shape).partition("[")[2])
        # XLA's own code computes a product with a vector.
        return (opcode if sum(side != "1" for side in sides) >= MATRIX else ""), ()
    if opcode == "custom-call" and (target := _PRODUCT_TARGET.search(attributes)):
        return target[1], ()
    if opcode != "fusion" or internals.CUSTOM_FUSION.name not in attributes:
        return "", ()
    inner = [each for name in hlo.list_called(instruction) for each in module.computation(name).instructions]
    if not any(each.opcode in PRODUCTS for each in inner):
        return "", ()
    kind = _FUSION_KIND.search(attributes)
    inside = [each for each in inner if not each.is_root and each.opcode not in ("parameter", "constant")]
    return kind[1] if kind else "custom fusion", inside


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
