"""Compares two recorded programs: what of A is not in B, and the other way round, and what may explain it."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

from jaxmeter.document import numbers
from jaxmeter.harness.record import Manifest
from jaxmeter.harness.record.differences import Fact, facts_of, find_differences
from jaxmeter.harness.record.wording import counted
from jaxmeter.harness.traces import hlo
from jaxmeter.harness.traces.hlo import COLLECTIVES, STABLEHLO_HOLDERS, HloError, Module, walk_operations

from .conditions import describe_changed_code
from .programs import KINDS, PLANNED, Pair, Program

_TITLES = {
    "backend": "backend",
    "device_kind": "device",
    "device_count": "devices",
    "x64": "x64",
    "matmul_precision": "matmul precision",
    "variables": "variable",
    "packages": "package",
    "platform_version": "platform",
    "python": "Python",
    "processor": "processor",
    "allowed_cores": "allowed cores",
    "jaxmeter": "jaxmeter",
}
"""Facts of a run that may make the compiler write another program, the likeliest first, and what they are called."""

_UNSET = {"matmul_precision": "default", "platform_version": "unknown"}
"""How a fact reads that the record holds as null."""

_SAYS_LITTLE = frozenset({"parameter", "constant", "tuple", "get-tuple-element", "bitcast", "broadcast"})
"""Opcodes that tell little of what a fusion computes."""

_KIND = re.compile(r"(?:^|, )kind=(\w+)")

# `c:f32[16] d:f32[2] = scan[…`: what follows the last result's type is a primitive.
_WITH_RESULT = re.compile(r"(?:^|\s)[\w*]+:\S+\s+=\s+([A-Za-z_][\w.\-]*)", re.MULTILINE)
# `debug_callback[`: an equation without results begins a line or a jaxpr, and its params follow.
_WITHOUT_RESULT = re.compile(r"(?:^[ \t]*|\blet )([A-Za-z_][\w.\-]*)\[(?=[ \t]*$|\w+=)", re.MULTILINE)
# `d:f32[] <- c[1]` reads a reference, `f:f32[], c[0] <- c[0], e` and `c[0] <- e` write one, `c[0] += e` adds to it.
_OF_REFERENCE = re.compile(r"(?:^|\s)(\w+:)?\S+ (<-|\+=) ", re.MULTILINE)

# `%0:2 = "stablehlo.while"(…`, `stablehlo.return %1`, `%1 = call @f(…`; a reduction may name what it applies inline.
_OPERATION = re.compile(r'^\s*(?:%[^=\n"]*= )?"?((?:[a-z_]\w*\.)+\w+|call|return)\b"?', re.MULTILINE)
_APPLIED = re.compile(r"\bapplies ((?:[a-z_]\w*\.)+\w+)")
_SHORT = {"call": "func.call", "return": "func.return"}

_TARGET = re.compile(r'custom_call_target="((?:[^"\\]|\\.)*)"')


@dataclass(frozen=True)
class Difference:
    """Something that is recorded of A and of B and is not the same; None where a side has none."""

    what: str
    a: str | None
    b: str | None


@dataclass(frozen=True)
class Fusion:
    """Equal fusions of one program that the other has not.

    Args:
      shape: Of the result, with layout.
      fuses: Opcodes inside, e.g. `multiply+add+tanh`.
      operation: JAX's name for it.
      source: `file:line`.
      count: How many more of them there are than in the other program.
    """

    kind: str
    shape: str
    fuses: str
    operation: str | None
    source: str | None
    count: int = 1


@dataclass(frozen=True)
class CountChanges:
    """Counts by name that differ, as (name, A, B), the largest change first, and how many names have equal counts."""

    title: str
    rows: tuple[tuple[str, int, int], ...]
    unchanged: int


class MemoryChange(NamedTuple):
    """Planned bytes that differ."""

    metric: str
    a: float
    b: float


@dataclass(frozen=True)
class ProgramDiff:
    """Two programs compared.

    Args:
      same: Whether the optimised programs are; None where one of the two cannot be read.
      constants_only: Whether they differ in the values of large constants alone.
      instructions: How many more the optimised program of B has.
      counts: By jaxpr primitive, StableHLO operation and HLO opcode; of texts that both have.
      calls: By collective and by target of custom calls.
      gone: Fusions only in A.
      new: Fusions only in B.
      notes: What a reader must know beside the comparison.
    """

    pair: Pair
    same: bool | None
    constants_only: bool
    instructions: int
    counts: tuple[CountChanges, ...]
    calls: tuple[CountChanges, ...]
    gone: tuple[Fusion, ...]
    new: tuple[Fusion, ...]
    layouts: tuple[Difference, ...]
    memory: tuple[MemoryChange, ...]
    notes: tuple[str, ...]

    @property
    def verdict(self) -> str:
        """One line: whether it is the same program, else what differs most."""
        peak = [
            f"planned peak {' → '.join(numbers.memory_sides(a, b))}" for name, a, b in self.memory if name == PLANNED[0]
        ]
        return "; ".join([self._judge_program(), *peak])

    def _judge_program(self) -> str:
        if self.same is None:
            known = [f"{count.title} {'differ' if count.rows else 'have equal counts'}" for count in self.counts]
            return "; ".join(["optimised programs not compared", *known])
        if self.same:
            return "same program"
        if self.constants_only:
            return "different program: only the values of large constants differ"
        gone, new = (sum(fusion.count for fusion in fusions) for fusions in (self.gone, self.new))
        parts = [
            f"{counted(gone, 'fusion')} gone" if gone else "",
            (f"{new} new" if gone else f"{counted(new, 'fusion')} new") if new else "",
            f"{numbers.signed_count(self.instructions)} instruction{'' if abs(self.instructions) == 1 else 's'}"
            if self.instructions
            else "",
            f"{counted(len(self.layouts), 'layout')} changed" if self.layouts else "",
        ]
        return f"different program: {', '.join(filter(None, parts)) or 'other shapes, values, order or attributes'}"


def compare_programs(pair: Pair) -> ProgramDiff:
    """Compares what both programs have; of the rest a note says why not."""
    sides = (("A", pair.a), ("B", pair.b))
    notes = [f"no {kind} of {name}" for kind in KINDS for name, side in sides if kind not in side.texts]
    notes += [
        f"{name} compiled {len(side.fingerprints)} different programs in its processes; the text is one of them"
        for name, side in sides
        if len(side.fingerprints) > 1
    ]
    counts = _count_texts(pair)
    try:
        a, b = (_parse(name, side, notes) for name, side in sides)
    except _UnreadableError:
        return ProgramDiff(pair, None, False, 0, counts, (), (), (), (), _find_memory_changes(pair), tuple(notes))
    equal_texts = hlo.find_fingerprint(pair.a.texts["hlo"]) == hlo.find_fingerprint(pair.b.texts["hlo"])
    other_constants = equal_texts and _have_other_constants(pair)
    gone, new = find_fusions(a, b)
    return ProgramDiff(
        pair=pair,
        same=equal_texts and not other_constants,
        constants_only=other_constants,
        instructions=hlo.count_program(b).instructions - hlo.count_program(a).instructions,
        counts=(
            *counts,
            _find_changes("HLO opcodes", count_opcodes(a), count_opcodes(b)),
        ),
        calls=(
            _find_changes("collectives", count_collectives(a), count_collectives(b)),
            _find_changes("targets of custom calls", count_custom_calls(a), count_custom_calls(b)),
        ),
        gone=gone,
        new=new,
        layouts=() if equal_texts else tuple(find_layout_changes(a, b)),
        memory=_find_memory_changes(pair),
        notes=tuple(notes),
    )


class _UnreadableError(Exception):
    """A program's HLO is missing or damaged; a note tells."""


def _parse(name: str, program: Program, notes: list[str]) -> Module:
    text = program.texts.get("hlo")
    if text is None:
        raise _UnreadableError
    try:
        return hlo.parse(text)
    except HloError as error:
        notes.append(f"hlo of {name} cannot be read: {error}")
        raise _UnreadableError from error


def _have_other_constants(pair: Pair) -> bool:
    """Whether equal texts leave out constants of unequal values, which the recorded fingerprints tell."""
    recorded = [set(program.fingerprints) for program in (pair.a, pair.b)]
    return hlo.ELIDED in pair.a.texts["hlo"] and all(recorded) and not recorded[0] & recorded[1]


def _count_texts(pair: Pair) -> tuple[CountChanges, ...]:
    counters = (
        ("jaxpr", "jaxpr primitives", count_primitives),
        ("stablehlo", "StableHLO operations", count_stablehlo_operations),
    )
    return tuple(
        _find_changes(title, count(pair.a.texts[kind]), count(pair.b.texts[kind]))
        for kind, title, count in counters
        if kind in pair.a.texts and kind in pair.b.texts
    )


def _find_changes(title: str, a: Mapping[str, int], b: Mapping[str, int]) -> CountChanges:
    names = sorted({*a, *b})
    rows = [(name, a.get(name, 0), b.get(name, 0)) for name in names if a.get(name, 0) != b.get(name, 0)]
    rows.sort(key=lambda row: -abs(row[2] - row[1]))
    return CountChanges(title, tuple(rows), len(names) - len(rows))


def _find_memory_changes(pair: Pair) -> tuple[MemoryChange, ...]:
    a, b = pair.a.memory, pair.b.memory
    known = [MemoryChange(name, a[name], b[name]) for name in PLANNED if name in a and name in b]
    return tuple(difference for difference in known if difference.a != difference.b)


def find_fusions(a: Module, b: Module) -> tuple[tuple[Fusion, ...], tuple[Fusion, ...]]:
    """Fusions only in A, and only in B, matched by what they compute."""
    known: dict[str, Fusion] = {}
    in_a, in_b = (Counter(_read_bodies(module, known)) for module in (a, b))
    gone, new = (
        tuple(replace(known[body], count=count) for body, count in more.items()) for more in (in_a - in_b, in_b - in_a)
    )
    return gone, new


def _read_bodies(module: Module, known: dict[str, Fusion]) -> Iterator[str]:
    """Each fusion's kind and body as text; `known` keeps what there is to tell of the first that has it."""
    for instruction, opcode in hlo.walk_operations(module):
        if opcode != "fusion":
            continue
        match = _KIND.search(instruction.attributes)
        kind = "" if match is None else match[1]
        called = hlo.list_called(instruction)
        try:
            body = "\n".join([kind, instruction.shape, *(hlo.read_body(module, name) for name in called)])
            inside = [inner.opcode for name in called for inner in module.computation(name).instructions]
        except HloError:  # a hand-made text that calls what it does not hold
            body, inside = f"{kind}\n{instruction.shape}", []
        if body not in known:
            known[body] = Fusion(
                kind, instruction.shape, _name_opcodes(inside), instruction.operation, instruction.source
            )
        yield body


def _name_opcodes(opcodes: list[str]) -> str:
    """`multiply×2+add`: by first appearance; what says little only where there is nothing else."""
    telling = Counter(opcode for opcode in opcodes if opcode not in _SAYS_LITTLE)
    named = telling or Counter(opcode for opcode in opcodes if opcode != "parameter")
    return "+".join(opcode if count == 1 else f"{opcode}×{count}" for opcode, count in named.items())


def find_layout_changes(a: Module, b: Module) -> Iterator[Difference]:
    """Values of equal shape in another layout: of the entry, then of instructions that JAX gives one name."""
    places = [_read_entry_shapes(module) for module in (a, b)]
    for what, shape in places[0].items():
        yield from _pair_shapes(what, [shape], [places[1].get(what, shape)])
    named = [_read_named_shapes(module) for module in (a, b)]
    for key, shapes in named[0].items():
        yield from _pair_shapes(f"{key[1]} {key[0]}", shapes, named[1].get(key, []))


def _read_entry_shapes(module: Module) -> dict[str, str]:
    parameters = [instruction for instruction in module.entry.instructions if instruction.opcode == "parameter"]
    shapes = {f"parameter {', '.join(instruction.operands)}": instruction.shape for instruction in parameters}
    return shapes | dict(
        [("result", instruction.shape) for instruction in module.entry.instructions if instruction.is_root][:1]
    )


def _read_named_shapes(module: Module) -> dict[tuple[str, str], list[str]]:
    """Shapes by JAX's name and opcode, without those of the entry that are told apart by their places."""
    shapes: defaultdict[tuple[str, str], list[str]] = defaultdict(list)
    for computation in module.computations:
        for instruction in computation.instructions:
            has_place = instruction.opcode == "parameter" or (computation.is_entry and instruction.is_root)
            if instruction.operation is not None and not has_place:
                shapes[instruction.operation, instruction.opcode].append(instruction.shape)
    return shapes


def _pair_shapes(what: str, a: list[str], b: list[str]) -> Iterator[Difference]:
    only_a, only_b = list((Counter(a) - Counter(b)).elements()), list((Counter(b) - Counter(a)).elements())
    for shape in only_a:
        plain = hlo.without_layout(shape)
        other = next((shape for shape in only_b if hlo.without_layout(shape) == plain), None)
        if other is not None:
            only_b.remove(other)
            yield Difference(what, shape, other)


def count_primitives(jaxpr: str) -> Counter[str]:
    """Equations by primitive, at all levels; a jaxpr that several equations share is written, and counted, once."""
    counts = Counter(_WITH_RESULT.findall(jaxpr))
    counts.update(_WITHOUT_RESULT.findall(jaxpr))
    for match in _OF_REFERENCE.finditer(jaxpr):
        counts["addupdate" if match[2] == "+=" else "swap" if match[1] is None else "get"] += 1
    return counts


def count_stablehlo_operations(text: str) -> Counter[str]:
    """Operations by name with dialect, at all levels."""
    names = [_SHORT.get(name, name) for name in _OPERATION.findall(text)]
    return Counter(name for name in (*names, *_APPLIED.findall(text)) if name not in STABLEHLO_HOLDERS)


def count_opcodes(module: Module) -> Counter[str]:
    """Instructions by opcode, inside fusions too."""
    return Counter(instruction.opcode for instruction in module.instructions())


def count_collectives(module: Module) -> Counter[str]:
    """Collectives by opcode, a start and its done once."""
    return Counter(opcode for _, opcode in walk_operations(module) if opcode in COLLECTIVES)


def count_custom_calls(module: Module) -> Counter[str]:
    """Custom calls by target."""
    calls = (instruction for instruction, opcode in walk_operations(module) if opcode == "custom-call")
    targets = (_TARGET.search(call.attributes) for call in calls)
    return Counter("unnamed" if target is None else target[1] for target in targets)


def find_surroundings(a: Manifest, b: Manifest) -> tuple[Difference, ...]:
    """What differs between two runs and may make the compiler write another program."""
    facts = facts_of(a), facts_of(b)
    order = list(_TITLES)
    names = sorted(find_differences(facts, of=order), key=lambda name: order.index(name.partition(".")[0]))
    facts_of_both = (Difference(_title(name), *(_write(name, side) for side in facts)) for name in names)
    return tuple(difference for difference in facts_of_both if difference.a != difference.b)


def find_changed_code(pair: Pair) -> tuple[str, ...]:
    """What of the measured code has changed, by its hashes."""
    changed = describe_changed_code(pair.variant.rpartition(":")[0] or pair.variant, pair.a, pair.b)
    definition = f"the definition of {pair.case} has changed" if pair.a.definition != pair.b.definition else ""
    return tuple(filter(None, (changed, definition)))


def _title(name: str) -> str:
    field, _, entry = name.partition(".")
    return f"{_TITLES[field]} {entry}" if "." in name else _TITLES[field]


def _write(name: str, facts: dict[str, Fact]) -> str | None:
    value = facts.get(name)
    if value is None:
        return _UNSET.get(name)
    if isinstance(value, bool):
        return "on" if value else "off"
    return numbers.count(value) if isinstance(value, int) else str(value)
