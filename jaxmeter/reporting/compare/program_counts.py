"""Counts what a program's recorded texts hold: jaxpr primitives, StableHLO operations, HLO opcodes and targets."""

from __future__ import annotations

import re
from collections import Counter

from jaxmeter.harness.traces.hlo import COLLECTIVES, STABLEHLO_HOLDERS, Module, walk_operations

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


def count_primitives(jaxpr: str) -> Counter[str]:
    """Equations by primitive, at all levels; a jaxpr that several equations share is written, and counted, once."""
    found = Counter(_WITH_RESULT.findall(jaxpr))
    found.update(_WITHOUT_RESULT.findall(jaxpr))
    for match in _OF_REFERENCE.finditer(jaxpr):
        found["addupdate" if match[2] == "+=" else "swap" if match[1] is None else "get"] += 1
    return found


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
