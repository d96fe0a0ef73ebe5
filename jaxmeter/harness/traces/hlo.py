"""A reader of optimised programs as XLA writes them (HLO text): instructions, counts, fingerprint. Pure text, no jax.

`compiled.as_text()` leaves out the values of large constants (`ELIDED`). Programs that differ only in these values can
be distinguished by a text with them (`HloPrintOptions.print_large_constants`); this module cannot restore them.
"""

from __future__ import annotations

import hashlib
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from jaxmeter.harness.machine import jax_internals as internals

DIGITS = 16

ELIDED = internals.ELIDED.name
"""What stands for the values of a large constant."""

STABLEHLO_HOLDERS = ("builtin.module", "func.func")
"""What holds operations in StableHLO, the program before it is optimised, and is none itself."""

COLLECTIVES = frozenset(
    {
        "all-gather",
        "all-reduce",
        "all-to-all",
        "collective-broadcast",
        "collective-permute",
        "ragged-all-to-all",
        "reduce-scatter",
    }
)

_QUOTED = r'"(?:[^"\\]++|\\.)*+"'
_FLAT = rf'\{{(?:[^"{{}}]++|{_QUOTED})*+\}}'
_NESTED = rf'\{{(?:[^"{{}}]++|{_QUOTED}|{_FLAT})*+\}}'
_NAME = r"[\w.\-]+"

# What says where an instruction comes from and nothing about what it does. A sharding has metadata of its own, with no
# comma before it.
_ORIGIN = re.compile(rf"{_QUOTED}|(?P<comma>,)?\s(?P<kind>metadata|origin)=(?P<value>{_NESTED})")
_FIELD = re.compile(rf"(\w+)=(?:({_QUOTED})|([^\s}}]+))")
_TABLE_ROW = re.compile(rf"(\d+) ({_QUOTED}|{_FLAT})\s*$")
_TABLES = ("FileNames", "FunctionNames", "FileLocations", "StackFrames")

_MODULE = re.compile(r"HloModule ([^\s,]+)(.*)")
_COMPUTATION = re.compile(rf"(ENTRY\s)?\s*%?({_NAME})\s(?:.*\s)?\{{\s*$")
_DEFINITION = re.compile(rf"\s*+(ROOT\s)?\s*+%?({_NAME}) = ")
_OPCODE = re.compile(r" ([a-z][\w\-]*)\(")
_BRACKET = re.compile(rf"[()\[\]{{}}]|,|{_QUOTED}")
_COMMENT = re.compile(r"/\*.*?\*/")

_CALLING = (
    "calls",
    "to_apply",
    "body",
    "condition",
    "branch_computations",
    "true_computation",
    "false_computation",
    "called_computations",
    "select",
    "scatter",
)
"""Attributes that name computations."""

_LITERAL = frozenset({"constant", "parameter"})
"""Opcodes with a value or a number where others have operands."""

_REFERENCE = re.compile(
    rf"{_QUOTED}|(?<![\w.%-])(?P<key>{'|'.join(_CALLING)}|control-predecessors)="
    rf"(?P<value>\{{[^{{}}\"=]*\}}|%?{_NAME})|%(?P<name>{_NAME})"
)
_TRIPS = re.compile(rf'\\?"{internals.TRIP_COUNT.name}\\?"\s*:\s*\{{\s*\\?"n\\?"\s*:\s*\\?"?(\d{{1,18}})(?!\d)')

# XLA's hash of the program as it was before scheduling: what of it still matters is in the text itself.
_HASH_BEFORE = re.compile(rf",?\s*fingerprint_before_lhs={_QUOTED}")
_ESCAPE = re.compile(rb"\\([0-7]{1,3}|.)", re.DOTALL)
_ESCAPED = {b"n": b"\n", b"r": b"\r", b"t": b"\t"}


class HloError(ValueError):
    """A text is not HLO; the message names the line."""


@dataclass(frozen=True)
class Instruction:
    """One line of a computation.

    Args:
      shape: As HLO writes it, with the layout.
      operands: Names of instructions, without `%`; for a constant or parameter, its value or number.
      attributes: The raw rest of the line, without metadata.
      operation: JAX's name for it, e.g. `jit(f)/dot_general`; None if it is not in the text.
      source: `file:line` of the innermost frame, the file as written; None if it is not in the text.
      stack: All frames that the text has, the innermost first.
    """

    name: str
    shape: str
    opcode: str
    operands: tuple[str, ...]
    attributes: str
    operation: str | None = None
    source: str | None = None
    is_root: bool = False
    stack: tuple[str, ...] = ()


@dataclass(frozen=True)
class Computation:
    """A function of HLO: the entry, or what an instruction calls.

    Args:
      attributes: What follows its closing brace, e.g. `execution_thread="host"`.
    """

    name: str
    instructions: tuple[Instruction, ...]
    is_entry: bool
    attributes: str = ""


@dataclass(frozen=True)
class Module:
    """A compiled program.

    Args:
      header: The raw rest of its first line: aliases, entry layout, partitions.
      computations: In the order of the text.
    """

    name: str
    header: str
    computations: tuple[Computation, ...]
    entry: Computation

    def computation(self, name: str) -> Computation:
        """The computation of that name, without `%`.

        Raises:
          HloError: There is none.
        """
        if name not in self._by_name:
            raise HloError(f"module {self.name} has no computation {name!r}")
        return self._by_name[name]

    @cached_property
    def _by_name(self) -> dict[str, Computation]:
        return {computation.name: computation for computation in self.computations}

    def instructions(self) -> Iterator[Instruction]:
        """All, of every computation, in the order of the text."""
        for computation in self.computations:
            yield from computation.instructions


@dataclass(frozen=True)
class Counts:
    """How many instructions a program has, inside fusions too, and how many of them are of a kind."""

    instructions: int
    fusions: int
    custom_calls: int
    collectives: int


def parse(text: str) -> Module:
    """Reads one module.

    Raises:
      HloError: The text is not HLO, or holds more than one module.
    """
    lines = text.split("\n")
    first = next((index for index, line in enumerate(lines) if line.strip()), 0)
    header = _MODULE.match(lines[first])
    if header is None:
        raise _error(first, lines[first], "should begin with 'HloModule'")
    reader = _TextReader(lines, first + 1)
    computations = tuple(reader.computations())
    entries = [computation for computation in computations if computation.is_entry]
    if len(entries) != 1:
        raise HloError(f"line {first + 1}: the module has {len(entries)} ENTRY computations; it needs one")
    return Module(header[1], header[2].removeprefix(",").strip(), computations, entries[0])


def list_called(instruction: Instruction) -> tuple[str, ...]:
    """Names of the computations that it calls, in the order of the text."""
    references = _REFERENCE.finditer(instruction.attributes)
    values = [match["value"] for match in references if match["key"] in _CALLING]
    return tuple(name for value in values for name in re.findall(_NAME, value))


def count_program(module: Module) -> Counts:
    """Counts what runs; a start and its done are one, also where the start wraps a computation with the operation."""
    opcodes = [opcode for _, opcode in walk_operations(module)]
    return Counts(
        instructions=sum(len(computation.instructions) for computation in module.computations),
        fusions=opcodes.count("fusion"),
        custom_calls=opcodes.count("custom-call"),
        collectives=sum(opcode in COLLECTIVES for opcode in opcodes),
    )


def walk_operations(module: Module) -> Iterator[tuple[Instruction, str]]:
    """Instructions with their opcodes; a start has that of what it starts, and is left out where it calls just that."""
    inside = {body.name: {inner.opcode for inner in body.instructions} for body in module.computations}
    for instruction in module.instructions():
        opcode = instruction.opcode.removesuffix("-start")
        is_start = opcode != instruction.opcode
        if not (is_start and any(opcode in inside.get(name, ()) for name in list_called(instruction))):
            yield instruction, opcode


def trip_counts(module: Module) -> tuple[int | None, ...]:
    """How often each `while` runs, in the order of the text; None where the compiler does not know."""
    return tuple(trip_count(instruction) for instruction in module.instructions() if instruction.opcode == "while")


def trip_count(loop: Instruction) -> int | None:
    """How often a `while` runs; None where the compiler does not know."""
    match = _TRIPS.search(loop.attributes)
    return None if match is None else int(match[1])


def find_fingerprint(text: str, options: str = "") -> str:
    """Hash of what the program does: its names, and where its operations come from, do not count.

    Args:
      options: What it is compiled with, which counts too.
    Raises:
      HloError: The text is not HLO.
    """
    module = parse(text)
    canonical = f"{_HASH_BEFORE.sub('', module.header)}\n{_canonical(module.computations)}{options}"
    return hashlib.sha256(canonical.encode("utf-8", "replace")).hexdigest()[:DIGITS]


def read_body(module: Module, name: str) -> str:
    """A computation, and all that it calls, as text without names and origins: equal for equal bodies.

    Raises:
      HloError: The module has no such computation.
    """
    # In the order of the first call, so that places in the module do not count.
    reached = {name: module.computation(name)}
    waiting = [name]
    while waiting:
        for instruction in reached[waiting.pop()].instructions:
            for other in list_called(instruction):
                if other not in reached:
                    reached[other] = module.computation(other)
                    waiting.append(other)
    return _canonical(tuple(reached.values()))


def without_layout(shape: str) -> str:
    """`f32[8,128]` of `f32[8,128]{1,0:T(8,128)}`; of a tuple too, without its index comments."""
    return re.sub(r"\{[^{}]*\}", "", _COMMENT.sub("", shape))


def _canonical(computations: Sequence[Computation]) -> str:
    """The computations with every name replaced by its place: a computation's, or an instruction's within its own."""
    places = {computation.name: f"%{place}" for place, computation in enumerate(computations)}
    lines: list[str] = []
    for computation in computations:
        lines.append("ENTRY {" if computation.is_entry else "{")
        instructions = _in_order_of_need(computation)
        own = {instruction.name: f"%{place}" for place, instruction in enumerate(instructions)}
        for instruction in instructions:
            root = "ROOT " if instruction.is_root else ""
            is_literal = instruction.opcode in _LITERAL
            operands = instruction.operands if is_literal else [own.get(name, name) for name in instruction.operands]
            attributes = _renamed(instruction.attributes, own, places)
            lines.append(f"{root}{instruction.shape} {instruction.opcode}({', '.join(operands)}) {attributes}")
        lines.append(f"}}{computation.attributes}")
    return "\n".join(lines)


def _in_order_of_need(computation: Computation) -> list[Instruction]:
    """Each instruction after its operands, from the root's on: the compiler may write independent ones in any order."""
    known = {instruction.name: instruction for instruction in computation.instructions}
    ordered: dict[str, Instruction] = {}
    roots = [instruction for instruction in computation.instructions if instruction.is_root]
    waiting = [*reversed(computation.instructions), *roots]  # what the root does not need comes last, as it is written
    begun: set[str] = set()
    while waiting:
        instruction = waiting[-1]
        operands = () if instruction.opcode in _LITERAL else instruction.operands
        needed = [known[name] for name in operands if name in known]
        left = [other for other in needed if other.name not in begun]
        if instruction.name not in begun and left:
            begun.add(instruction.name)
            waiting += reversed(left)
            continue
        begun.add(instruction.name)
        waiting.pop()
        ordered.setdefault(instruction.name, instruction)
    return list(ordered.values())


def _renamed(attributes: str, instructions: Mapping[str, str], computations: Mapping[str, str]) -> str:
    """Attributes with the names in them replaced, but not what is quoted."""

    def replaced(match: re.Match[str]) -> str:
        if (name := match["name"]) is not None:
            return instructions.get(name) or computations.get(name) or match[0]
        if (key := match["key"]) is not None:
            known = computations if key in _CALLING else instructions
            return f"{key}={re.sub(f'%?({_NAME})', lambda word: known.get(word[1], word[0]), match['value'])}"
        return match[0]

    return _REFERENCE.sub(replaced, attributes) if attributes else ""


class _TextReader:
    """Goes through the lines after a module's first one."""

    def __init__(self, lines: list[str], start: int) -> None:
        self._lines = lines
        self._start = start
        self._tables: defaultdict[str, dict[str, str]] = defaultdict(dict)
        self._stacks: dict[str, tuple[str, ...]] = {}

    def computations(self) -> Iterator[Computation]:
        table: str | None = None
        index = self._start
        while index < len(self._lines):
            line = self._lines[index]
            if not line.strip():
                table = None
            elif line.strip() in _TABLES:
                table = line.strip()
            elif table is not None and (row := _TABLE_ROW.match(line)):
                self._tables[table][row[1]] = row[2]
            elif (header := _COMPUTATION.match(line)) and not line.startswith("HloModule "):
                end = self._end(index)
                instructions = tuple(
                    self._instruction(place) for place in range(index + 1, end) if self._lines[place].strip()
                )
                rest = self._lines[end].strip().removeprefix("}")
                yield Computation(header[2], instructions, header[1] is not None, rest)
                index = end
            else:
                raise _error(index, line, "should begin a computation, such as '%name (a: f32[]) -> f32[] {'")
            index += 1

    def _end(self, start: int) -> int:
        for index in range(start + 1, len(self._lines)):
            if self._lines[index].lstrip().startswith("}"):
                return index
        raise _error(start, self._lines[start], "is a computation without an end, so the text is cut off")

    def _instruction(self, index: int) -> Instruction:
        line = self._lines[index]
        definition = _DEFINITION.match(line)
        if definition is None:
            raise _error(index, line, "should be an instruction, such as '%a = f32[2]{0} negate(%b)'")
        try:
            start = definition.end()
            shape_end = _closing(line, start) if line.startswith("(", start) else line.index(" ", start)
            opcode = _OPCODE.match(line, shape_end)
            if opcode is None:
                raise ValueError("no opcode")
            end = _closing(line, opcode.end() - 1)
        except ValueError:
            raise _error(index, line, "should have a shape, an opcode and operands in parentheses") from None
        attributes, metadata = _without_origin(line[end:])
        inside = line[opcode.end() : end - 1]
        return Instruction(
            name=definition[2],
            shape=line[start:shape_end],
            opcode=opcode[1],
            operands=(inside.strip(),) if opcode[1] in _LITERAL else _operands(inside),
            attributes=attributes,
            operation=_unquoted(metadata["op_name"]) if "op_name" in metadata else None,
            source=stack[0] if (stack := self._stack(metadata)) else None,
            stack=stack,
            is_root=definition[1] is not None,
        )

    def _stack(self, metadata: Mapping[str, str]) -> tuple[str, ...]:
        if (file := metadata.get("source_file")) is not None:
            return (f"{_unquoted(file)}:{metadata['source_line']}",) if "source_line" in metadata else ()
        if (frame := metadata.get("stack_frame_id")) is None:
            return ()
        if frame not in self._stacks:
            self._stacks[frame] = tuple(self._list_frames(frame))
        return self._stacks[frame]

    def _list_frames(self, frame: str) -> Iterator[str]:
        """Lines from a frame on to those who called."""
        seen: set[str] = set()
        while frame in self._tables["StackFrames"] and frame not in seen:
            seen.add(frame)
            row = _fields(self._tables["StackFrames"][frame])
            fields = _fields(self._tables["FileLocations"].get(row.get("file_location_id", ""), ""))
            file = self._tables["FileNames"].get(fields.get("file_name_id", ""))
            if file is not None and "line" in fields:
                yield f"{_unquoted(file)}:{fields['line']}"
            parent = row.get("parent_frame_id", "")
            frame = str(int(parent) - 1) if parent.isdecimal() else ""  # XLA writes it as one more: 1 is none


def _closing(line: str, start: int) -> int:
    """The place after the bracket that closes the one at `start`.

    Raises:
      ValueError: There is none.
    """
    depth = 0
    for match in _BRACKET.finditer(line, start):
        if match[0] in "([{":
            depth += 1
        elif match[0] in ")]}":
            depth -= 1
            if depth == 0:
                return match.end()
    raise ValueError(f"no bracket closes the one at {start}")


def _operands(inside: str) -> tuple[str, ...]:
    """Names of operands; older texts have the shape before each, and other texts no `%`."""
    if "%" in inside:
        return tuple(re.findall(f"%({_NAME})", inside))
    if not inside.strip():
        return ()
    parts, depth, start = [], 0, 0
    for match in _BRACKET.finditer(inside):
        if match[0] == "," and depth == 0:
            parts.append(inside[start : match.start()])
            start = match.end()
        else:
            depth += (match[0] in "([{") - (match[0] in ")]}")
    parts.append(inside[start:])
    words = (_COMMENT.sub("", part).split() for part in parts)
    return tuple(pieces[-1] for pieces in words if pieces)


def _without_origin(rest: str) -> tuple[str, dict[str, str]]:
    """Return the attributes without origin and metadata, and the instruction's own metadata."""
    metadata: dict[str, str] = {}

    def taken(match: re.Match[str]) -> str:
        if match["kind"] is None:
            return match[0]
        if match["kind"] == "metadata" and match["comma"]:
            metadata.update(_fields(match["value"]))
        return ""

    if " metadata=" in rest or " origin=" in rest:
        rest = _ORIGIN.sub(taken, rest)
    return rest.removeprefix(",").strip(), metadata


def _fields(text: str) -> dict[str, str]:
    return {match[1]: match[2] or match[3] for match in _FIELD.finditer(text)}


def _unquoted(text: str) -> str:
    text = text[1:-1] if text.startswith('"') else text
    if "\\" not in text:
        return text
    return _ESCAPE.sub(_unescaped, text.encode("utf-8", "replace")).decode("utf-8", "replace")


def _unescaped(match: re.Match[bytes]) -> bytes:
    sign = match[1]
    return bytes([int(sign, 8) & 0xFF]) if sign.isdigit() and sign < b"8" else _ESCAPED.get(sign, sign)


def _error(index: int, line: str, problem: str) -> HloError:
    return HloError(f"line {index + 1}: {line.strip()[:60]!r} {problem}")
