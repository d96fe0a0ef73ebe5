"""Reads an encoded HloProto, field by field without a schema, into the same structure as a program's text."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from functools import cached_property

from jaxmeter.harness.traces.hlo import Computation, HloError, Instruction, Module

_ELEMENT_TYPES = (
    "invalid pred s8 s16 s32 s64 u8 u16 u32 u64 f16 f32 f64 tuple opaque c64 bf16 token c128 f8e5m2 f8e4m3fn s4 u4 "
    "f8e4m3b11fnuz f8e5m2fnuz f8e4m3fnuz s2 u2 f8e4m3 f8e3m4 s1 u1 f4e2m1fn f8e8m0fnu"
)
"""Names of XLA's element types, in the order of their numbers."""

_TUPLE = 13
_MOST_BITS = 64
_DEEPEST_STACK = 64
"""Frames of a stack that are followed: a damaged table may run in a circle."""


class _Message:
    """Fields of a message by number, each in order."""

    def __init__(self, encoded: bytes) -> None:
        self.fields: dict[int, list[Field]] = defaultdict(list)
        for number, value in read_fields(encoded):
            self.fields[number].append(value)

    def text(self, number: int) -> str:
        values = self.fields.get(number)
        return values[-1].decode("utf-8", "replace") if values and isinstance(values[-1], bytes) else ""

    def whole(self, number: int) -> int:
        values = self.fields.get(number)
        return sign(values[-1]) if values and isinstance(values[-1], int) else 0

    def wholes(self, number: int) -> list[int]:
        """A repeated whole number, packed or not."""
        numbers: list[int] = []
        for value in self.fields.get(number, ()):
            if isinstance(value, int):
                numbers.append(sign(value))
            else:
                numbers.extend(_unpack(value))
        return numbers

    def parts(self, number: int) -> Iterator[_Message]:
        for value in self.fields.get(number, ()):
            if isinstance(value, bytes):
                yield _Message(value)

    def part(self, number: int) -> _Message | None:
        return next(iter(list(self.parts(number))[-1:]), None)


def read_program(encoded: bytes) -> Module:
    """Return a program, read from an HloProto or an HloModuleProto.

    Raises:
      HloError: It is neither.
    """
    try:
        outer = _Message(encoded)
        inner = outer.fields.get(1)
        is_proto = 3 not in outer.fields or not outer.text(2)
        module = _Message(inner[0]) if is_proto and inner and isinstance(inner[0], bytes) else outer
        return _read_module(module)
    except (ValueError, IndexError, RecursionError) as error:
        raise HloError(f"not an encoded program: {error}") from None


def _read_module(module: _Message) -> Module:
    frames = _Frames(module.part(17))
    computations = list(module.parts(3))
    names = {computation.whole(5): computation.text(1) for computation in computations}
    entry_id = module.whole(6)
    read = [_read_computation(computation, names, frames, entry_id) for computation in computations]
    entries = [computation for computation in read if computation.is_entry]
    if len(entries) != 1:
        raise HloError(f"the module has {len(entries)} entry computations; it needs one")
    return Module(module.text(1), "", tuple(read), entries[0])


def _read_computation(computation: _Message, names: dict[int, str], frames: _Frames, entry_id: int) -> Computation:
    instructions = list(computation.parts(2))
    operands = {instruction.whole(35): instruction.text(1) for instruction in instructions}
    root = computation.whole(6)
    return Computation(
        name=computation.text(1),
        instructions=tuple(_read_instruction(part, operands, names, frames, root) for part in instructions),
        is_entry=computation.whole(5) == entry_id,
    )


def _read_instruction(
    instruction: _Message, operands: dict[int, str], names: dict[int, str], frames: _Frames, root: int
) -> Instruction:
    metadata = instruction.part(7)
    opcode = instruction.text(2)
    stack = () if metadata is None else frames.list_stack(metadata.whole(15))
    if metadata is not None and not stack and metadata.text(3):
        stack = (f"{metadata.text(3)}:{metadata.whole(4)}",)
    shape = instruction.part(3)
    return Instruction(
        name=instruction.text(1),
        shape="" if shape is None else _write_shape(shape),
        opcode=opcode,
        operands=tuple(operands.get(identifier, "") for identifier in instruction.wholes(36)),
        attributes=", ".join(_list_attributes(instruction, opcode, names)),
        operation=None if metadata is None else metadata.text(2) or None,
        source=stack[0] if stack else None,
        stack=stack,
        is_root=instruction.whole(35) == root,
    )


def _list_attributes(instruction: _Message, opcode: str, names: dict[int, str]) -> Iterator[str]:
    called = [names.get(identifier, "") for identifier in instruction.wholes(38)]
    if opcode == "while" and len(called) == 2:
        yield f"condition=%{called[1]}, body=%{called[0]}"
    elif opcode in (
        "fusion",
        "call",
        "map",
        "reduce",
        "reduce-window",
        "scatter",
        "sort",
        "all-reduce",
        "reduce-scatter",
    ):
        yield from (f"{'calls' if opcode == 'fusion' else 'to_apply'}=%{name}" for name in called)
    elif called:
        yield f"called_computations={{{', '.join(f'%{name}' for name in called)}}}"
    if dimensions := instruction.wholes(14):
        yield f"dimensions={_braces(dimensions)}"
    if (dot := instruction.part(30)) is not None:
        for number, name in enumerate(("lhs_contracting", "rhs_contracting", "lhs_batch", "rhs_batch"), 1):
            yield f"{name}_dims={_braces(dot.wholes(number))}"
    if (window := instruction.part(15)) is not None and (parts := list(window.parts(1))):
        yield _write_window(parts)
    if (convolution := instruction.part(16)) is not None:
        yield f"dim_labels={_write_labels(convolution)}"
    for number, name in ((50, "feature_group_count"), (58, "batch_group_count")):
        if (count := instruction.whole(number)) > 1:
            yield f"{name}={count}"
    if lengths := instruction.wholes(32):
        yield f"fft_length={_braces(lengths)}"
    if target := instruction.text(28):
        yield f'custom_call_target="{target}"'
    if configuration := instruction.text(43):
        yield f"backend_config={configuration}"


def _name_type(number: int) -> str:
    names = _ELEMENT_TYPES.split()
    return names[number] if 0 <= number < len(names) else "opaque"


def _write_shape(shape: _Message) -> str:
    kind = shape.whole(2)
    if kind == _TUPLE:
        return f"({', '.join(_write_shape(part) for part in shape.parts(4))})"
    return f"{_name_type(kind)}[{','.join(map(str, shape.wholes(3)))}]"


def _write_window(parts: Sequence[_Message]) -> str:
    def joined(number: int, empty: int = 0) -> str:
        return "x".join(str(part.whole(number) or empty) for part in parts)

    pads = "x".join(f"{part.whole(3)}_{part.whole(4)}" for part in parts)
    return (
        f"window={{size={joined(1)} stride={joined(2, 1)} pad={pads} lhs_dilate={joined(6, 1)} "
        f"rhs_dilate={joined(5, 1)}}}"
    )


def _write_labels(numbers: _Message) -> str:
    def written(first: tuple[int, str], second: tuple[int, str], spatial: int) -> str:
        places = {numbers.whole(first[0]): first[1], numbers.whole(second[0]): second[1]}
        places |= {place: str(index) for index, place in enumerate(numbers.wholes(spatial))}
        return "".join(places[place] for place in sorted(places))

    left, kernel = written((7, "b"), (8, "f"), 11), written((3, "i"), (4, "o"), 6)
    return f"{left}_{kernel}->{written((9, 'b'), (10, 'f'), 12)}"


class _Frames:
    """The table of stack frames: places count from 1."""

    def __init__(self, table: _Message | None) -> None:
        self._table = table
        self._stacks: dict[int, tuple[str, ...]] = {}

    @cached_property
    def _rows(self) -> tuple[list[str], list[_Message], list[_Message]]:
        if self._table is None:
            return [], [], []
        files = [value.decode("utf-8", "replace") for value in self._table.fields[1] if isinstance(value, bytes)]
        return files, list(self._table.parts(3)), list(self._table.parts(4))

    def list_stack(self, frame: int) -> tuple[str, ...]:
        """Lines of the stack, `file:line`, the innermost first."""
        if frame not in self._stacks:
            files, locations, frames = self._rows
            lines: list[str] = []
            at = frame
            while 0 < at <= len(frames) and len(lines) < _DEEPEST_STACK:
                place = frames[at - 1].whole(1)
                if 0 < place <= len(locations):
                    name = locations[place - 1].whole(1)
                    if 0 < name <= len(files):
                        lines.append(f"{files[name - 1]}:{locations[place - 1].whole(3)}")
                at = frames[at - 1].whole(2)
            self._stacks[frame] = tuple(lines)
        return self._stacks[frame]


def _braces(numbers: Sequence[int]) -> str:
    return f"{{{','.join(map(str, numbers))}}}"


def _unpack(packed: bytes) -> Iterator[int]:
    value = shift = 0
    for byte in packed:
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            yield sign(value)
            value = shift = 0
        elif shift > _MOST_BITS:
            raise ValueError("a number of more than 64 bits")


Field = int | bytes

_MOST_SHIFT = 63
"""Of a whole number's last seven bits: it has 64 bits at most."""

_LEAST_KEY = 1 << 3
"""Of field 1 and wire type 0."""


def sign(value: int) -> int:
    """Return a whole number of 64 bits with its sign: negative ones are written as large ones."""
    value &= (1 << 64) - 1
    return value - (1 << 64) if value >= 1 << 63 else value


def read_fields(message: bytes) -> Iterator[tuple[int, Field]]:
    """Field numbers and values of an encoded protocol buffer: whole numbers, or bytes.

    Raises:
      ValueError: Not a protocol buffer, or cut short.
    Source: https://protobuf.dev/programming-guides/encoding/
    """
    at = 0

    def whole() -> int:
        nonlocal at
        value = shift = 0
        while True:
            if at >= len(message):
                raise ValueError("a protocol buffer that is cut short")
            byte = message[at]
            at += 1
            value |= (byte & 127) << shift
            if byte < 128:
                return value
            shift += 7
            if shift > _MOST_SHIFT:
                raise ValueError("a protocol buffer cannot hold a number of more than 64 bits")

    while at < len(message):
        key = whole()
        kind = key & 7
        if key < _LEAST_KEY:
            raise ValueError("a protocol buffer cannot hold a field of number 0")
        if kind == 0:
            yield key >> 3, whole()
            continue
        if kind not in (1, 2, 5):
            raise ValueError(f"a protocol buffer cannot hold wire type {kind}")
        size = whole() if kind == 2 else {1: 8, 5: 4}[kind]
        if at + size > len(message):
            raise ValueError("a protocol buffer that is cut short")
        yield key >> 3, message[at : at + size]
        at += size
