"""Compares two recorded programs: what of A is not in B, and the other way round."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from jaxmeter.harness.traces import hlo
from jaxmeter.harness.traces.hlo import HloError, Module

from .. import numbers
from ..text import counted
from . import Difference
from .fusions import Fusion, find_fusions
from .layouts import find_layout_changes
from .pairs import Pair
from .program_counts import (
    count_collectives,
    count_custom_calls,
    count_opcodes,
    count_primitives,
    count_stablehlo_operations,
)
from .programs import KINDS, PLANNED, Program


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
            known = [f"{one.title} {'differ' if one.rows else 'have equal counts'}" for one in self.counts]
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
    recorded = [set(one.fingerprints) for one in (pair.a, pair.b)]
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
    return tuple(one for one in known if one.a != one.b)
