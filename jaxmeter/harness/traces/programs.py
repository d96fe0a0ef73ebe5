"""The compiled programs of a capture: what each operation is, what it costs, and which line it comes from."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import pairwise

from jaxmeter.harness.machine import jax_internals as internals
from jaxmeter.harness.traces import hlo
from jaxmeter.harness.traces.costs import UNKNOWN, Cost, count_costs
from jaxmeter.harness.traces.hlo import COLLECTIVES, HloError, Instruction, Module, list_called
from jaxmeter.harness.traces.hlo_proto import read_program
from jaxmeter.harness.traces.xplane import Space

METADATA_PLANE, HLO_STATISTIC = internals.METADATA_PLANE.name, internals.PROGRAM_STATISTIC.name

COMPUTE, CALLBACK, COLLECTIVE, TRANSFER, CONTROL = "compute", "callback", "collective", "transfer", "control flow"
"""Categories of operations."""

HOLDERS = frozenset({"while", "call", "conditional"})
"""Opcodes of operations that run others, each of which a capture has by itself."""

_OWN = re.compile(r"/jaxmeter/(harness|cli)/")
_PACKAGES = re.compile(r"/(site|dist)-packages/")
_LIBRARY = re.compile(rf"^<(?!ipython-input)|{_PACKAGES.pattern}|/python3\.\d+/|{_OWN.pattern}")
_SUITES = re.compile(r"/jaxmeter/suites/[^/]+$")
_CALLBACK = re.compile(
    r"(pure_|io_|debug_)?callback|xla_ffi_(partitioned_)?python_\w+_callback|xla_python_\w+_callback"
)
_TRANSFERRED = re.compile(r"(copy|send|recv|infeed|outfeed|async-copy)-(start|done)(\.|$)|(infeed|outfeed)(\.|$)")
_ELEMENT = re.compile(r"[a-z]\w*")
_PRODUCT = re.compile(r'custom_call_target="(__cublas\$|__cudnn\$conv)')
_JAX_NAMES = {"f16": "float16", "bf16": "bfloat16", "f32": "float32", "f64": "float64", "s8": "int8"}
_IDENTIFIER = re.compile(r"\((\d+)\)$")


@dataclass(frozen=True)
class Operation:
    """What a program says of one of its operations.

    Args:
      opcode: HLO's; of a fusion the heaviest inside it where that says more.
      category: One of those above.
      source: `file:line` of the user's own code, or of the nearest caller that is the user's; empty where unknown.
      formats: Of a product or convolution, those of its operands, in jax's names.
      cost: Of one execution.
    """

    opcode: str = ""
    category: str = COMPUTE
    source: str = ""
    jax_name: str = ""
    formats: tuple[str, ...] = ()
    cost: Cost = UNKNOWN


class Programs:
    """Programs by name and identifier, read when they are asked for.

    On a CPU the identifier in a capture's events is another than that of its programs where an executable came from the
    compilation cache. A program is then the one of that name that holds all the operations that ran.
    """

    def __init__(self, encoded: Iterable[tuple[str, str, bytes]] = (), texts: Iterable[str] = ()) -> None:
        self._encoded: dict[str, list[tuple[str, bytes]]] = defaultdict(list)
        for name, identifier, program in encoded:
            self._encoded[name].append((identifier, program))
        self._texts = tuple(texts)
        self._modules: dict[str, list[tuple[str, Module]]] = {}
        self._found: dict[tuple[str, str], tuple[frozenset[str], list[Module]]] = {}
        self._costs: dict[int, dict[str, Cost]] = {}
        self._instructions: dict[int, dict[str, Instruction]] = {}

    def find(self, name: str, identifier: str, operations: Iterable[str]) -> list[Module]:
        """Return the programs that may be meant: of its identifier, else of its name, with all of the operations."""
        wanted = frozenset(operations)
        known = self._found.get((name, identifier))
        if known is not None and wanted <= known[0]:
            return known[1]
        modules = self._read(name)
        holding = [(own, module) for own, module in modules if wanted <= self._by_name(module).keys()]
        exact = [module for own, module in holding if own == identifier]
        matching = exact[:1] or [module for _, module in holding]
        self._found[name, identifier] = (wanted, matching)
        return matching

    def find_bodies(self, name: str, identifier: str, operations: Iterable[str]) -> Mapping[str, frozenset[str]]:
        """Return, by operation that holds others, all that run inside it."""
        wanted = frozenset(operations)
        if not any(operation.startswith(tuple(HOLDERS)) for operation in wanted):
            return {}
        modules = self.find(name, identifier, wanted)
        return dict(_list_bodies(modules[0], wanted)) if modules else {}

    def describe(self, name: str, identifier: str, operations: Sequence[str]) -> dict[str, Operation]:
        """Return what is known of each operation of a program; by its name alone where no program is known."""
        modules = self.find(name, identifier, operations)
        return {operation: self._describe(modules, operation) for operation in operations}

    def _describe(self, modules: Sequence[Module], operation: str) -> Operation:
        if not modules:
            return Operation(category=find_category(operation, "", ""))
        module = modules[0]
        instruction = self._by_name(module)[operation]
        costs = {self._costs_of(candidate).get(operation, UNKNOWN) for candidate in modules}
        inner = _find_heaviest(module, instruction)
        stack = next((part.stack for part in (instruction, inner) if pick_line(part.stack)), ())
        return Operation(
            opcode=instruction.opcode if inner is instruction else f"{instruction.opcode} of {inner.opcode}",
            category=find_category(operation, instruction.opcode, instruction.attributes),
            source=pick_line(stack),
            jax_name=instruction.operation or inner.operation or "",
            formats=self._find_formats(module, instruction),
            # Several programs of one name that cost differently: which ran is not known.
            cost=costs.pop() if len(costs) == 1 else UNKNOWN,
        )

    def _find_formats(self, module: Module, instruction: Instruction) -> tuple[str, ...]:
        inside = [instruction, *_list_inside(module, instruction, frozenset({"fusion"}))]
        by_name = self._by_name(module)
        kinds = {
            _ELEMENT.match(by_name[operand].shape)
            for inner in inside
            if inner.opcode in ("dot", "convolution") or _PRODUCT.search(inner.attributes)
            for operand in inner.operands[:2]
            if operand in by_name
        }
        return tuple(sorted({_JAX_NAMES.get(kind[0], kind[0]) for kind in kinds if kind is not None}))

    def _read(self, name: str) -> list[tuple[str, Module]]:
        if name not in self._modules:
            self._modules[name] = list(self._list_modules(name))
        return self._modules[name]

    def _list_modules(self, name: str) -> Iterator[tuple[str, Module]]:
        for identifier, encoded in self._encoded.get(name, ()):
            try:
                yield identifier, read_program(encoded)
            except HloError:
                continue
        for text in self._texts:
            try:
                module = hlo.parse(text)
            except HloError:
                continue
            if module.name == name:
                yield "", module

    def _by_name(self, module: Module) -> dict[str, Instruction]:
        if id(module) not in self._instructions:
            self._instructions[id(module)] = {instruction.name: instruction for instruction in module.instructions()}
        return self._instructions[id(module)]

    def _costs_of(self, module: Module) -> dict[str, Cost]:
        if id(module) not in self._costs:
            try:
                self._costs[id(module)] = count_costs(module)
            except (HloError, ValueError, IndexError, KeyError, OverflowError, RecursionError):
                self._costs[id(module)] = {}
        return self._costs[id(module)]


def list_programs(space: Space) -> Iterator[tuple[str, str, bytes]]:
    """Yield name, identifier and encoded HLO of each program that a capture holds."""
    plane = space.find_plane(METADATA_PLANE)
    for metadata in () if plane is None else plane.metadata.values():
        for statistic, value in metadata.stats.items():
            if statistic.lower().replace("_", " ") == HLO_STATISTIC.lower() and isinstance(value, bytes):
                identifier = _IDENTIFIER.search(metadata.name)
                yield _IDENTIFIER.sub("", metadata.name), identifier[1] if identifier else "", value


def find_category(name: str, opcode: str, attributes: str) -> str:
    """Return an operation's category by its opcode, or by its name where no program is known."""
    base = _strip_numbers(opcode or name).removesuffix("-start").removesuffix("-done")
    if base in COLLECTIVES:
        return COLLECTIVE
    if base in HOLDERS:
        return CONTROL
    if _TRANSFERRED.match(opcode or name) or _TRANSFERRED.match(name):
        return TRANSFER
    if _CALLBACK.match(name) or (opcode == "custom-call" and "callback" in attributes):
        return CALLBACK
    return COMPUTE


def _strip_numbers(name: str) -> str:
    """A name without the numbers at its end: `add` of `add.3.1`."""
    while True:
        rest, dot, number = name.rpartition(".")
        if not dot or not number.isdecimal():
            return name
        name = rest


def pick_line(stack: Sequence[str]) -> str:
    """Return the innermost line of the user's own code; empty where the whole stack is a library's.

    Suites may be installed as packages. So a file in which jaxmeter calls a function counts as the user's own.
    """
    called = {
        _find_file(line)
        for line, caller in pairwise(stack)
        if _PACKAGES.search(line) and _OWN.search(caller) and not _OWN.search(line)
    }
    return next((line for line in stack if _find_file(line) in called or not is_of_library(line)), "")


def _find_file(line: str) -> str:
    return line.rpartition(":")[0]


def is_of_library(line: str) -> bool:
    """Return whether a line is Python's, an installed package's or the harness's; suites of jaxmeter are no library."""
    return _LIBRARY.search(line) is not None and _SUITES.search(line) is None


def _find_heaviest(module: Module, instruction: Instruction) -> Instruction:
    """Of a fusion the product or convolution inside it, which says more of it than its own name; else itself."""
    if instruction.opcode != "fusion":
        return instruction
    inside = _list_inside(module, instruction, frozenset({"fusion"}))
    heavy = [inner for inner in inside if inner.opcode in ("dot", "convolution", "custom-call")]
    root = [inner for inner in inside if inner.is_root and inner.stack]
    return next(iter([*heavy, *(root if not instruction.stack else ())]), instruction)


def _list_bodies(module: Module, operations: frozenset[str]) -> Iterator[tuple[str, frozenset[str]]]:
    for instruction in module.instructions():
        if instruction.opcode in HOLDERS and instruction.name in operations:
            yield instruction.name, frozenset(inner.name for inner in _list_inside(module, instruction, HOLDERS))


def _list_inside(module: Module, instruction: Instruction, opcodes: frozenset[str]) -> list[Instruction]:
    """What an instruction runs, and what instructions of some opcodes in there run; nothing of what a text lacks."""
    inside: list[Instruction] = []
    waiting = list(list_called(instruction))
    seen = set(waiting)
    while waiting:
        with suppress(HloError):
            for inner in module.computation(waiting.pop()).instructions:
                inside.append(inner)
                more = [name for name in list_called(inner) if name not in seen] if inner.opcode in opcodes else []
                seen.update(more)
                waiting += more
    return inside
