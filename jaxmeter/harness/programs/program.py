"""A compiled program: its texts, counts, cost and fingerprint, and its bytes, from which it is loaded again."""

from __future__ import annotations

import hashlib
import math
import re
import struct
import sys
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

import jax
from jax import export
from jax.experimental import serialize_executable

from jaxmeter.harness.machine import jax_internals as internals
from jaxmeter.harness.machine.own_fault import ReleaseLacksError
from jaxmeter.harness.programs.equations import walk_inside
from jaxmeter.harness.programs.modes import Clock, Prepared, Stages, copy_arguments
from jaxmeter.harness.programs.older_jax import RuntimeFailure, jit
from jaxmeter.harness.record import Number
from jaxmeter.harness.record.outcomes import NOT_COUNTED
from jaxmeter.harness.record.wording import write_options
from jaxmeter.harness.traces import hlo
from jaxmeter.harness.traces.hlo import Computation, Instruction, Module


class NoTextError(Exception):
    """The backend does not give the text of its optimised program."""


_LEFT_OUT = re.compile(rf"\[([\d,]*)\]\S* {re.escape(hlo.ELIDED)}")
_LARGE_CONSTANT = 16
"""Elements beyond which a constant's values are left out of a text; XLA has a similar limit."""

_ELF, _ELF_HEADER = b"\x7fELF\x02\x01", 64
"""How an ELF file of 64 bits, little-endian, begins, and the size of its header in bytes."""

_WITHOUT_CODE = frozenset({"parameter", "dot", "custom-call", "fusion", "bitcast", "tuple", "get-tuple-element"})
"""Instructions of a program that needs no machine code of its own: the work is done by libraries."""

MOST_ELEMENTS = 4_000_000
"""Most elements of the constants in a fingerprint: they take about a second."""


def read_texts(stages: Stages) -> dict[str, str]:
    """Return the program's text at three levels, by kind of artifact; without the last if the backend gives no text.

    Large constants, which may be a user's data, are left out.
    """
    stablehlo = stages.lowered.compiler_ir("stablehlo").operation
    texts = {"jaxpr": str(stages.traced.jaxpr), "stablehlo": stablehlo.get_asm(large_elements_limit=_LARGE_CONSTANT)}
    with suppress(NoTextError):
        texts["hlo"] = read_hlo(stages.compiled)
    return texts


def read_hlo(compiled: Any) -> str:
    """Return the optimised program as HLO text, without large constants.

    Raises:
      NoTextError: The backend does not give it.
    """
    try:
        text = compiled.as_text()
    except (NotImplementedError, RuntimeFailure) as error:
        raise NoTextError(str(error)) from error
    if not text:
        raise NoTextError("the backend gives no text of it")
    return str(text)


def count_source(stages: Stages) -> dict[str, Number]:
    """Return the counts of the program before XLA optimises it, by metric."""
    operations = _operations(stages.lowered.compiler_ir("stablehlo").operation)
    return {**count_equations(stages.traced), "stablehlo_operations": operations}


def count_equations(traced: Any) -> dict[str, Number]:
    """Return the counts of a traced function, by metric."""
    jaxpr = traced.jaxpr.jaxpr
    return {
        "jaxpr_equations": len(jaxpr.eqns),
        "jaxpr_equations_nested": sum(1 for _ in walk_equations(jaxpr)),
    }


def count_optimised(stages: Stages) -> dict[str, Number]:
    """Return the counts of the optimised program, by metric.

    Raises:
      NoTextError, HloError: The backend does not give the program's text, or gives it in another format.
    """
    counts = hlo.count_program(hlo.parse(read_hlo(stages.compiled)))
    return {
        "hlo_instructions": counts.instructions,
        "hlo_fusions": counts.fusions,
        "hlo_custom_calls": counts.custom_calls,
        "hlo_collectives": counts.collectives,
    }


def walk_equations(jaxpr: Any) -> Iterator[Any]:
    """Yield the equations of a jaxpr and of those inside them; those of a function that is called twice come twice."""
    yield from (equation for equation, _ in walk_inside(jaxpr))


def find_fingerprint(stages: Stages) -> str:
    """Return a hash of the program without its source lines and names; its constants and compiler options count.

    With other options, the compiler may make other code of equal HLO.

    Raises:
      NoTextError, HloError: The backend does not give the program's text, or gives it in another format.
    """
    text = read_hlo(stages.compiled)
    text = _with_constants(stages.compiled, text) if hlo.ELIDED in text else text
    return hlo.find_fingerprint(text, write_options(stages.compiler_options))


def find_code_fingerprint(stages: Stages) -> str | None:
    """Return a hash of the optimised program and its machine code, without the compiler options; None if unknown.

    Options can change machine code of equal HLO. Executables of other platforms than a CPU under Linux do not show it.

    Raises:
      NoTextError, HloError: As `find_fingerprint`.
    """
    executable = stages.compiled.runtime_executable()
    serialize = None if executable is None else internals.SERIALIZE.get(executable)
    if (
        serialize is None
        or sys.platform != "linux"
        or {each.platform for each in executable.local_devices()} != {"cpu"}
    ):
        return None
    objects = _list_objects(serialize())
    opcodes = {item.opcode for item in hlo.parse(read_hlo(stages.compiled)).instructions()}
    if objects is None or not (objects or opcodes <= _WITHOUT_CODE):
        return None
    whole = hashlib.sha256(find_fingerprint(replace(stages, compiler_options={})).encode())
    for each in sorted(objects):
        whole.update(each)
    return whole.hexdigest()[: hlo.DIGITS]


def _list_objects(executable: bytes) -> list[bytes] | None:
    """Return the ELF files of 64 bits inside a serialised executable; None if one has another form.

    Source: https://refspecs.linuxfoundation.org/elf/gabi4+/ch4.eheader.html; the section headers are last.
    """
    files, at = [], executable.find(_ELF)
    while at >= 0:
        if len(executable) < at + _ELF_HEADER:
            return None
        (sections,) = struct.unpack_from("<Q", executable, at + 40)
        size, number = struct.unpack_from("<HH", executable, at + 58)
        end = at + sections + size * number
        if end > len(executable):
            return None
        files.append(executable[at:end])
        at = executable.find(_ELF, end)
    return files


def measure_executable(compiled: Any) -> dict[str, Number]:
    """Return the size of the serialised executable, by metric; empty if the backend cannot serialise it."""
    executable = compiled.runtime_executable()
    serialize = None if executable is None else internals.SERIALIZE.get(executable)
    try:
        return {} if serialize is None else {"executable_bytes": len(serialize())}
    except (NotImplementedError, ValueError, RuntimeFailure):
        return {}


def _with_constants(compiled: Any, text: str) -> str:
    """Return the program's text with the values of large constants.

    Raises:
      NoTextError: This jaxlib does not print them, or they are too large to be read in every process.
    """
    elements = sum(math.prod(map(int, filter(None, sides.split(",")))) for sides in _LEFT_OUT.findall(text))
    if elements > MOST_ELEMENTS:
        raise NoTextError(f"its constants have {elements} elements, too many to read in every process")
    try:
        options = internals.PRINT_OPTIONS.load()()
    except ReleaseLacksError as error:
        raise NoTextError("this jaxlib does not print the values of large constants") from error
    options.print_large_constants = True
    return "\n".join(module.to_string(options) for module in compiled.runtime_executable().hlo_modules())


def _operations(operation: Any) -> int:
    """Return the number of operations inside an MLIR operation at all levels, without modules and functions."""
    inside = [inner for region in operation.regions for block in region for inner in block]
    return sum((inner.operation.name not in hlo.STABLEHLO_HOLDERS) + _operations(inner.operation) for inner in inside)


def load_executable(prepared: Prepared, clock: Clock) -> dict[str, Number]:
    """Seconds to load the executable from its bytes, and of its first call, by metric.

    Raises:
      Whatever jax or the backend has against it: nothing says beforehand what can be serialised.
    """
    assert prepared.stages is not None
    compiled = prepared.stages.compiled
    written, arguments, results = serialize_executable.serialize(compiled)
    sharding = next(iter(jax.tree.leaves(compiled.input_shardings)), None)
    devices = None if sharding is None else sorted(sharding.device_set, key=lambda device: device.id)
    start = clock()
    loaded = serialize_executable.deserialize_and_load(written, arguments, results, execution_devices=devices)
    load_s = clock() - start
    given = jax.block_until_ready(copy_arguments(prepared.args))
    start = clock()
    prepared.wait(loaded(*given))
    return {"executable_load_s": load_s, "executable_first_call_s": clock() - start}


def load_exported(prepared: Prepared, clock: Clock) -> dict[str, Number]:
    """Size of the exported program, seconds to write and to load it, and of its first call, by metric.

    Raises:
      Whatever jax has against it, such as argument types that it does not know how to write.
    """
    assert prepared.stages is not None
    options = prepared.stages.compiler_options
    start = clock()
    written = export.export(prepared.jitted)(*prepared.args).serialize()
    export_s = clock() - start
    start = clock()
    loaded = export.deserialize(written)
    load_s = clock() - start
    given = jax.block_until_ready(copy_arguments(prepared.args))
    start = clock()
    prepared.wait(jit(loaded.call, options)(*given))
    return {
        "exported_bytes": len(written),
        "export_s": export_s,
        "exported_load_s": load_s,
        "exported_first_call_s": clock() - start,
    }


_METRICS = {"counted_flops": internals.COUNTED_FLOPS.name, "counted_bytes": internals.COUNTED_BYTES.name}
_METADATA = re.compile(r", metadata=\{[^{}]*\}")
"""It refers to tables of the header, which a loop's body by itself does not have."""

UNKNOWN_CALLS = f"{NOT_COUNTED}: it does not know what the program's custom calls do"
UNKNOWN_BRANCH = f"{NOT_COUNTED}: which branch of a conditional is taken is not known"
UNKNOWN_TRIPS = f"{NOT_COUNTED}: it counts a loop's body once, and how often a loop of this program runs is not known"
NO_COUNT = f"{NOT_COUNTED}: it gives none for this program"
NO_BODY = f"{NOT_COUNTED}: it counts a loop's body once, and nothing here can count a body by itself"


class NotCountableError(Exception):
    """There is no count to trust; the message says why."""


@dataclass(frozen=True)
class Work:
    """Floating-point operations and bytes read and written, by metric."""

    values: dict[str, float]

    def plus(self, other: Work, times: float) -> Work:
        """This work and `times` the other."""
        return Work({name: value + times * other.values[name] for name, value in self.values.items()})


def count_work(compiled: Any) -> Work:
    """XLA's count of one call of a compiled program, on one device.

    Raises:
      NotCountableError: The backend gives none, a loop runs an unknown number of times, or there are custom calls or
        conditionals, of which XLA counts nothing and the dearest branch.
    """
    whole = _work(compiled.cost_analysis())
    text = read_hlo(compiled)
    module = hlo.parse(text)
    if hlo.count_program(module).custom_calls:
        raise NotCountableError(UNKNOWN_CALLS)
    if any(instruction.opcode == "conditional" for instruction in module.instructions()):
        raise NotCountableError(UNKNOWN_BRANCH)
    if not hlo.trip_counts(module):
        return whole
    return _Loops(module, text).completed(module.entry, whole)


@dataclass(frozen=True)
class _Loops:
    """Adds to a computation's count what its loops do after their first round."""

    module: Module
    text: str
    counted: dict[str, Work] = field(default_factory=dict)

    def completed(self, computation: Computation, once: Work) -> Work:
        total = once
        for loop in self._outermost(computation):
            trips = hlo.trip_count(loop)
            if trips is None:
                raise NotCountableError(UNKNOWN_TRIPS)
            for name in hlo.list_called(loop):  # body and condition
                inside = self.module.computation(name)
                body = self._count(inside)
                total = total.plus(self.completed(inside, body), trips).plus(body, -1)
        return total

    def _outermost(self, computation: Computation) -> Iterable[Instruction]:
        """Loops of a computation and of what it calls, but not those inside loops."""
        for instruction in computation.instructions:
            if instruction.opcode == "while":
                yield instruction
            elif instruction.opcode != "fusion":
                for name in hlo.list_called(instruction):
                    yield from self._outermost(self.module.computation(name))

    def _count(self, computation: Computation) -> Work:
        """One round of a loop's body, counted by XLA as a program of its own."""
        if computation.name not in self.counted:
            self.counted[computation.name] = self._count_anew(computation)
        return self.counted[computation.name]

    def _count_anew(self, computation: Computation) -> Work:
        try:
            body = internals.MODULE_FROM_TEXT.load()(_as_program(self.text, computation.name))
            return _work(internals.MODULE_COST.load()(jax.devices()[0].client, body))
        except (ReleaseLacksError, RuntimeFailure) as error:
            raise NotCountableError(NO_BODY) from error


def _as_program(text: str, computation: str) -> str:
    """The module's text with another computation as its entry, without what refers to the whole program."""
    lines, copying = ["HloModule body"], False
    begins = re.compile(rf"%?{re.escape(computation)} \(")
    for line in text.splitlines():
        if line.endswith("{") and not line.startswith((" ", "HloModule")):
            copying = True
            head = line.removeprefix("ENTRY ")
            lines.append(f"ENTRY {head}" if begins.match(head) else head)
        elif copying:
            lines.append(_METADATA.sub("", line))
            copying = line != "}"
    return "\n".join(lines)


def _work(analysis: Any) -> Work:
    if isinstance(analysis, list):  # older releases return one for each device
        analysis = analysis[0] if analysis else {}
    # XLA leaves out what is 0. Below 0 is its way to say that it does not know of some operation.
    values = {metric: float(analysis.get(key, 0.0)) for metric, key in _METRICS.items()} if analysis else {}
    if not any(values.values()) or any(value < 0 for value in values.values()):
        raise NotCountableError(NO_COUNT)
    return Work(values)
