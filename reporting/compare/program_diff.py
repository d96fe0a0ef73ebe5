"""Compares two recorded programs: what of A is not in B, and the other way round."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from harness.record import Manifest, Number, hlo
from harness.record.hlo import HloError, Module

from . import numbers, program_counts
from .programs import KINDS, PLANNED, Pair, Program
from .text import one_of

ELIDED = "constant({...})"
"""What stands in HLO for the values of a large constant."""

_SAYS_LITTLE = frozenset({"parameter", "constant", "tuple", "get-tuple-element", "bitcast", "broadcast"})
"""Opcodes that tell little of what a fusion computes."""

_KIND = re.compile(r"(?:^|, )kind=(\w+)")


@dataclass(frozen=True)
class Difference:
    """Something that is recorded of A and of B and is not the same; None where a side has none."""

    what: str
    a: str | None
    b: str | None


@dataclass(frozen=True)
class Counted:
    """Counts by name that differ, as (name, A, B), the largest change first, and how many names have equal counts."""

    title: str
    rows: tuple[tuple[str, int, int], ...]
    unchanged: int


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
      memory: Planned bytes that differ, as (metric, A, B).
      notes: What a reader must know beside the comparison.
    """

    pair: Pair
    same: bool | None
    constants_only: bool
    instructions: int
    counts: tuple[Counted, ...]
    calls: tuple[Counted, ...]
    gone: tuple[Fusion, ...]
    new: tuple[Fusion, ...]
    layouts: tuple[Difference, ...]
    memory: tuple[tuple[str, Number | None, Number | None], ...]
    notes: tuple[str, ...]

    @property
    def verdict(self) -> str:
        """One line: whether it is the same program, else what differs most."""
        peak = [
            f"planned peak {numbers.memory(a)} → {numbers.memory(b)}"
            for name, a, b in self.memory
            if name == PLANNED[0]
        ]
        return "; ".join([self._program(), *peak])

    def _program(self) -> str:
        if self.same is None:
            known = [f"{one.title} {'differ' if one.rows else 'have equal counts'}" for one in self.counts]
            return "; ".join(["optimised programs not compared", *known])
        if self.same:
            return "same program"
        if self.constants_only:
            return "different program: only the values of large constants differ"
        gone, new = (sum(fusion.count for fusion in fusions) for fusions in (self.gone, self.new))
        parts = [
            f"{one_of(gone, 'fusion')} gone" if gone else "",
            (f"{new} new" if gone else f"{one_of(new, 'fusion')} new") if new else "",
            f"{signed(self.instructions)} instruction{'' if abs(self.instructions) == 1 else 's'}"
            if self.instructions
            else "",
            f"{one_of(len(self.layouts), 'layout')} changed" if self.layouts else "",
        ]
        return f"different program: {', '.join(filter(None, parts)) or 'other shapes, values, order or attributes'}"


def compare(pair: Pair) -> ProgramDiff:
    """Compares what both programs have; of the rest a note says why not."""
    sides = (("A", pair.a), ("B", pair.b))
    notes = [f"no {kind} of {name}" for kind in KINDS for name, side in sides if kind not in side.texts]
    notes += [
        f"{name} compiled {len(side.fingerprints)} different programs in its processes; the text is one of them"
        for name, side in sides
        if len(side.fingerprints) > 1
    ]
    counts = _text_counts(pair)
    try:
        a, b = (_module(name, side, notes) for name, side in sides)
    except _UnreadableError:
        return ProgramDiff(pair, None, False, 0, counts, (), (), (), (), _memory(pair), tuple(notes))
    equal_texts = hlo.fingerprint(pair.a.texts["hlo"]) == hlo.fingerprint(pair.b.texts["hlo"])
    other_constants = equal_texts and _other_constants(pair)
    gone, new = _fusions(a, b)
    return ProgramDiff(
        pair=pair,
        same=equal_texts and not other_constants,
        constants_only=other_constants,
        instructions=hlo.counts(b).instructions - hlo.counts(a).instructions,
        counts=(*counts, _counted("HLO opcodes", program_counts.opcodes(a), program_counts.opcodes(b))),
        calls=(
            _counted("collectives", program_counts.collectives(a), program_counts.collectives(b)),
            _counted("targets of custom calls", program_counts.custom_calls(a), program_counts.custom_calls(b)),
        ),
        gone=gone,
        new=new,
        layouts=() if equal_texts else tuple(_layouts(a, b)),
        memory=_memory(pair),
        notes=tuple(notes),
    )


def surroundings(a: Manifest, b: Manifest) -> tuple[Difference, ...]:
    """What differs between two runs and may make the compiler write another program."""
    return _unequal(_facts(a), _facts(b))


def changed_code(pair: Pair) -> tuple[str, ...]:
    """What of the measured code has changed, by its hashes."""
    implementation = pair.variant.rpartition(":")[0] or pair.variant
    return (
        *([f"the code of {implementation} has changed"] if pair.a.source != pair.b.source else []),
        *([f"the definition of {pair.case} has changed"] if pair.a.definition != pair.b.definition else []),
    )


def signed(number: int) -> str:
    """`+12`, `−3`."""
    return f"{'+' if number > 0 else ''}{numbers.count(number)}"


class _UnreadableError(Exception):
    """A program's HLO is missing or damaged; a note tells."""


def _module(name: str, program: Program, notes: list[str]) -> Module:
    text = program.texts.get("hlo")
    if text is None:
        raise _UnreadableError
    try:
        return hlo.parse(text)
    except HloError as error:
        notes.append(f"hlo of {name} cannot be read: {error}")
        raise _UnreadableError from error


def _other_constants(pair: Pair) -> bool:
    """Whether equal texts leave out constants of unequal values, which the recorded fingerprints tell."""
    recorded = [set(one.fingerprints) for one in (pair.a, pair.b)]
    return ELIDED in pair.a.texts["hlo"] and all(recorded) and not recorded[0] & recorded[1]


def _text_counts(pair: Pair) -> tuple[Counted, ...]:
    counters = (
        ("jaxpr", "jaxpr primitives", program_counts.primitives),
        ("stablehlo", "StableHLO operations", program_counts.stablehlo_operations),
    )
    return tuple(
        _counted(title, count(pair.a.texts[kind]), count(pair.b.texts[kind]))
        for kind, title, count in counters
        if kind in pair.a.texts and kind in pair.b.texts
    )


def _counted(title: str, a: Mapping[str, int], b: Mapping[str, int]) -> Counted:
    names = sorted({*a, *b})
    rows = [(name, a.get(name, 0), b.get(name, 0)) for name in names if a.get(name, 0) != b.get(name, 0)]
    rows.sort(key=lambda row: -abs(row[2] - row[1]))
    return Counted(title, tuple(rows), len(names) - len(rows))


def _fusions(a: Module, b: Module) -> tuple[tuple[Fusion, ...], tuple[Fusion, ...]]:
    """Fusions only in A, and only in B, matched by their bodies."""
    known: dict[str, Fusion] = {}
    in_a, in_b = (Counter(_bodies(module, known)) for module in (a, b))
    gone, new = (
        tuple(replace(known[body], count=count) for body, count in more.items()) for more in (in_a - in_b, in_b - in_a)
    )
    return gone, new


def _bodies(module: Module, known: dict[str, Fusion]) -> Iterator[str]:
    """Each fusion's kind and body as text; `known` keeps what there is to tell of the first that has it."""
    for instruction, opcode in hlo.operations(module):
        if opcode != "fusion":
            continue
        found = _KIND.search(instruction.attributes)
        kind = "" if found is None else found[1]
        called = hlo.called(instruction)
        try:
            body = "\n".join([kind, instruction.shape, *(hlo.body(module, name) for name in called)])
            inside = [one.opcode for name in called for one in module.computation(name).instructions]
        except HloError:  # a hand-made text that calls what it does not hold
            body, inside = f"{kind}\n{instruction.shape}", []
        if body not in known:
            known[body] = Fusion(kind, instruction.shape, _fuses(inside), instruction.operation, instruction.source)
        yield body


def _fuses(opcodes: list[str]) -> str:
    """`multiply×2+add`: by first appearance; what says little only where there is nothing else."""
    telling = Counter(opcode for opcode in opcodes if opcode not in _SAYS_LITTLE)
    told = telling or Counter(opcode for opcode in opcodes if opcode != "parameter")
    return "+".join(opcode if count == 1 else f"{opcode}×{count}" for opcode, count in told.items())


def _layouts(a: Module, b: Module) -> Iterator[Difference]:
    """Values of equal shape in another layout: of the entry, then of instructions that JAX gives one name."""
    places = [_entry_shapes(module) for module in (a, b)]
    for what, shape in places[0].items():
        yield from _other_layouts(what, [shape], [places[1].get(what, shape)])
    named = [_named_shapes(module) for module in (a, b)]
    for key, shapes in named[0].items():
        yield from _other_layouts(f"{key[1]} {key[0]}", shapes, named[1].get(key, []))


def _entry_shapes(module: Module) -> dict[str, str]:
    parameters = [one for one in module.entry.instructions if one.opcode == "parameter"]
    shapes = {f"parameter {', '.join(one.operands)}": one.shape for one in parameters}
    return shapes | dict([("result", one.shape) for one in module.entry.instructions if one.is_root][:1])


def _named_shapes(module: Module) -> dict[tuple[str, str], list[str]]:
    """Shapes by JAX's name and opcode, without those of the entry that are told apart by their places."""
    shapes: defaultdict[tuple[str, str], list[str]] = defaultdict(list)
    for computation in module.computations:
        for one in computation.instructions:
            has_place = one.opcode == "parameter" or (computation.is_entry and one.is_root)
            if one.operation is not None and not has_place:
                shapes[one.operation, one.opcode].append(one.shape)
    return shapes


def _other_layouts(what: str, a: list[str], b: list[str]) -> Iterator[Difference]:
    only_a, only_b = list((Counter(a) - Counter(b)).elements()), list((Counter(b) - Counter(a)).elements())
    for shape in only_a:
        plain = hlo.without_layout(shape)
        other = next((one for one in only_b if hlo.without_layout(one) == plain), None)
        if other is not None:
            only_b.remove(other)
            yield Difference(what, shape, other)


def _memory(pair: Pair) -> tuple[tuple[str, Number | None, Number | None], ...]:
    values = [(name, pair.a.memory.get(name), pair.b.memory.get(name)) for name in PLANNED]
    return tuple(value for value in values if value[1] != value[2] and None not in value)


def _facts(manifest: Manifest) -> dict[str, str]:
    environment = manifest.environment
    return {
        "backend": manifest.backend,
        "device": environment.device_kind,
        "devices": numbers.count(environment.device_count),
        "x64": "on" if environment.x64 else "off",
        "matmul precision": environment.matmul_precision or "default",
        **{f"variable {name}": value for name, value in sorted(environment.variables.items())},
        **{f"package {name}": version for name, version in sorted(environment.packages.items())},
        "platform": environment.platform_version or "unknown",
        "Python": environment.python,
        "processor": environment.processor,
        "allowed cores": numbers.count(environment.allowed_cores),
        "jaxmeter": manifest.tool_version,
    }


def _unequal(a: Mapping[str, str], b: Mapping[str, str]) -> tuple[Difference, ...]:
    names = dict.fromkeys([*a, *b])
    return tuple(Difference(name, a.get(name), b.get(name)) for name in names if a.get(name) != b.get(name))
