"""Which fusions one optimised program has and another has not."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace

from jaxmeter.harness.traces import hlo
from jaxmeter.harness.traces.hlo import HloError, Module

_SAYS_LITTLE = frozenset({"parameter", "constant", "tuple", "get-tuple-element", "bitcast", "broadcast"})
"""Opcodes that tell little of what a fusion computes."""

_KIND = re.compile(r"(?:^|, )kind=(\w+)")


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
        found = _KIND.search(instruction.attributes)
        kind = "" if found is None else found[1]
        called = hlo.list_called(instruction)
        try:
            body = "\n".join([kind, instruction.shape, *(hlo.read_body(module, name) for name in called)])
            inside = [one.opcode for name in called for one in module.computation(name).instructions]
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
    told = telling or Counter(opcode for opcode in opcodes if opcode != "parameter")
    return "+".join(opcode if count == 1 else f"{opcode}×{count}" for opcode, count in told.items())
