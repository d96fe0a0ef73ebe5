"""Finds traps: reasons why a program does not do the work that its source suggests. Stages in, traps out."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import compress
from typing import Any

import jax
import numpy

from jaxmeter.harness.machine import jax_internals as internals
from jaxmeter.harness.machine.environment import describe_error
from jaxmeter.harness.machine.own_fault import OwnFaultError, describe_own_fault
from jaxmeter.harness.programs.callbacks import is_callback
from jaxmeter.harness.programs.checkify_errors import list_error_leaves
from jaxmeter.harness.programs.dead_work import has_work, measure_dead_work
from jaxmeter.harness.programs.dependence import find_dependent
from jaxmeter.harness.programs.equations import Lines, brief_source, list_inside, list_jaxprs, open_jaxpr
from jaxmeter.harness.programs.modes import Prepared, as_new_function
from jaxmeter.harness.programs.program import NoTextError, read_hlo, walk_equations
from jaxmeter.harness.programs.warned import Warned, keep_warnings
from jaxmeter.harness.record import Trap
from jaxmeter.harness.record.traps import KINDS, LEAST_CAPTURED_BYTES, LEAST_DEAD, LEAST_FROM_ONE_LINE
from jaxmeter.harness.traces import hlo

MOST_NAMED = 3
"""Lines, shapes and outputs that one trap names."""

CANONICAL = {"float64": "float32", "complex128": "complex64"}
"""What JAX makes of NumPy's wide formats without a word. Wide integers are how NumPy holds labels and indices."""

WITHOUT_WORK = frozenset(
    {
        *("broadcast", "constant", "copy", "iota", "parameter", "reshape", "slice", "transpose"),
        *("bitcast", "call", "fusion", "get-tuple-element", "tuple"),
    }
)
"""Instructions of a program whose result was computed while it was compiled."""

_TRUNCATED = re.compile(rf"{internals.TRUNCATION.name} (\S+) .*will be truncated to dtype (\S+?)\.")
_ALIAS = re.compile(r"\{[\d, ]*\}: \((\d+), \{([\d, ]*)\}, \w+" + re.escape(internals.OUTPUT_ALIASES.name) + r"\)")


@dataclass(frozen=True)
class Program:
    """A variant's program as far as it has stages.

    Args:
      lowered, compiled: None of eager code.
      warned: What JAX warned of while it was made.
      wide: Dtypes of NumPy arrays that the suite gives and JAX does not take as they are.
    """

    traced: Any
    lowered: Any = None
    compiled: Any = None
    warned: Sequence[Warned] = ()
    wide: Sequence[str] = ()
    lines: Lines = field(default_factory=Lines)

    @property
    def jaxpr(self) -> Any:
        """The equations."""
        return self.traced.jaxpr.jaxpr


def find_traps(prepared: Prepared, wide: Sequence[str] = ()) -> tuple[tuple[Trap, ...], dict[str, str]]:
    """Return the traps of a variant, and by kind a note where it could not be looked for.

    Eager code does all the work that its source says: only dtypes and callbacks are looked at, where it can be traced.
    Streams, peers and code that is not traced as a whole have no program.
    """
    stages = prepared.stages
    if stages is not None:
        return _find(Program(stages.traced, stages.lowered, stages.compiled, stages.warned, wide), FINDERS)
    if prepared.traceable is None:
        return (), {}
    try:
        with keep_warnings(show=False) as warned:
            traced = jax.jit(as_new_function(prepared.traceable)).trace(*prepared.args)
    except Exception:  # noqa: BLE001  eager code may look at its values, which a trace has not
        return (), {}
    eager = {kind: finder for kind, finder in FINDERS.items() if kind in ("truncated", "callbacks")}
    return _find(Program(traced, warned=warned, wide=wide), eager)


Finder = Callable[[Program], Iterable[Trap]]


def _find(program: Program, finders: dict[str, Finder]) -> tuple[tuple[Trap, ...], dict[str, str]]:
    """What the finders give; where one fails, its trap is unknown."""
    traps: list[Trap] = []
    notes: dict[str, str] = {}
    for kind, find in finders.items():
        try:
            traps += find(program)
        except NoTextError as error:
            notes[kind] = f"cannot look for the trap '{KINDS[kind].title.lower()}': {describe_error(error)}"
        except Exception as error:  # noqa: BLE001  no finder calls the user's code
            notes[kind] = describe_own_fault(error, f"whether it has the trap '{KINDS[kind].title.lower()}'")
    return tuple(traps), notes


def find_dead_work(program: Program) -> Iterator[Trap]:
    """Find work of which no result depends."""
    share, by_line = measure_dead_work(program.jaxpr, program.lines)
    if share >= LEAST_DEAD:
        lines = tuple(line for line, _ in by_line.most_common(MOST_NAMED) if line)
        evidence = f"{_write_share(share)} of the traced FLOPs"
        yield Trap(kind="dead_work", evidence=evidence, sources=lines, share=share)


def _write_share(share: float) -> str:
    return "over 99.9 %" if 0.999 < share < 1 else f"{100 * share:.3g} %"


def find_constant_results(program: Program) -> Iterator[Trap]:
    """Find outputs that depend on no argument.

    A Python number that is returned as it is counts as no output, nor do the codes and payloads of checkify's errors.
    """
    jaxpr = program.jaxpr
    paths = [path for path, _ in jax.tree_util.tree_leaves_with_path(program.traced.out_info)]
    if not jaxpr.invars:
        if jaxpr.outvars and has_work(jaxpr) and _is_folded(program.compiled):
            yield Trap(kind="no_input", evidence="the whole result", share=1.0, count=len(paths))
        return
    dependent = find_dependent(jaxpr, [True] * len(jaxpr.invars))
    is_own = [not is_error for is_error in list_error_leaves(program.traced.out_info)]
    paths, outputs, dependent = ([*compress(each, is_own)] for each in (paths, jaxpr.outvars, dependent))
    if paths and not any(dependent):
        lines = dict.fromkeys(filter(None, (_find_maker(jaxpr, var, program.lines) for var in outputs)))
        sources = tuple(lines)[:MOST_NAMED]
        yield Trap(kind="no_input", evidence="the whole result", sources=sources, share=1.0, count=len(paths))
        return
    made = {var for equation in jaxpr.eqns for var in equation.outvars}
    found = [
        (jax.tree_util.keystr(path), var)
        for path, var, depends in zip(paths, outputs, dependent, strict=True)
        if not depends and not _is_literal(var) and var in made
    ]
    if found:
        names = ", ".join(path for path, _ in found[:MOST_NAMED])
        more = f" and {len(found) - MOST_NAMED} more" if len(found) > MOST_NAMED else ""
        evidence = f"output {names}" if len(found) == 1 else f"each of {len(found)} outputs ({names}{more})"
        lines = dict.fromkeys(filter(None, (_find_maker(jaxpr, var, program.lines) for _, var in found)))
        sources = tuple(lines)[:MOST_NAMED]
        share = len(found) / len(paths)
        yield Trap(kind="no_input", evidence=evidence, sources=sources, share=share, count=len(found))


def _is_folded(compiled: Any) -> bool:
    """Whether nothing is left to compute in the optimised program."""
    module = hlo.parse(read_hlo(compiled))
    return all(item.opcode in WITHOUT_WORK for block in module.computations for item in block.instructions)


def _find_maker(jaxpr: Any, var: Any, lines: Lines) -> str:
    """The line of the equation that gives a value; empty where it is no equation's."""
    makers = (equation for equation in jaxpr.eqns if any(var is given for given in equation.outvars))
    equation = next(makers, None)
    return "" if equation is None else lines.find(equation)


def _is_literal(var: Any) -> bool:
    return hasattr(var, "val")


def find_captured_constants(program: Program) -> Iterator[Trap]:
    """Find arrays that the function takes from outside its arguments, which become a part of the program."""
    held = {id(value): (value, use) for value, use in _list_constants(program.traced.jaxpr, program.lines)}
    sizes = [(_size_bytes(value), value, use) for value, use in held.values()]
    whole = sum(size for size, _, _ in sizes)
    if whole >= LEAST_CAPTURED_BYTES:
        largest = sorted(sizes, key=lambda item: -item[0])[:MOST_NAMED]
        shapes = ", ".join(_write_shape(value) for _, value, _ in largest)
        more = f" and {len(sizes) - MOST_NAMED} more" if len(sizes) > MOST_NAMED else ""
        yield Trap(
            kind="constants",
            evidence=f"{whole / 1e6:.3g} MB of arrays ({shapes}{more})",
            sources=tuple(dict.fromkeys(use for _, _, use in largest if use)),
            size_bytes=whole,
            count=len(sizes),
        )


def _list_constants(closed: Any, lines: Lines) -> Iterator[tuple[Any, str]]:
    """Arrays that a closed jaxpr holds, at all levels, with the line of the equation that uses each first."""
    jaxpr = closed.jaxpr
    users: dict[Any, str] = {}
    for equation in jaxpr.eqns:
        for var in equation.invars:
            if not _is_literal(var):
                users.setdefault(var, lines.find(equation))
            elif getattr(var.val, "shape", ()):
                yield var.val, lines.find(equation)
        for inner in list_jaxprs(equation):
            if hasattr(inner, "consts"):
                yield from _list_constants(inner, lines)
            else:
                yield from _list_constants(_Closed(inner), lines)
    for var, value in zip(jaxpr.constvars, closed.consts, strict=False):
        yield value, users.get(var, "")


@dataclass(frozen=True)
class _Closed:
    """An open jaxpr, which holds no arrays itself."""

    jaxpr: Any
    consts: tuple[Any, ...] = ()


def _size_bytes(value: Any) -> int:
    return math.prod(getattr(value, "shape", ())) * int(getattr(getattr(value, "dtype", None), "itemsize", 0))


def _write_shape(value: Any) -> str:
    return f"{value.dtype}[{','.join(map(str, value.shape))}]"


def find_unused_donation(program: Program) -> Iterator[Trap]:
    """Find donated arrays whose memory the compiled program does not reuse, by its table of aliases."""
    donated = [
        (place, item)
        for place, item in enumerate(jax.tree.leaves(program.lowered.args_info))
        if item.donated and math.prod(item.shape)
    ]
    if not donated:
        return
    text = read_hlo(program.compiled)
    aliased = set(_ALIAS.findall(text.partition("\n")[0]))
    unused = len(donated) - len(aliased)
    if unused <= 0:
        return
    if not aliased and program.compiled.memory_analysis().alias_size_in_bytes:
        raise OwnFaultError("a program that reuses memory names no alias", internals.OUTPUT_ALIASES.unknown)
    reused = _find_reused(program, text, aliased)
    left = [item for place, item in donated if place not in reused] if reused is not None else []
    shapes = f" ({', '.join(map(_write_shape, left[:MOST_NAMED]))})" if left else ""
    yield Trap(
        kind="donation",
        evidence=f"{unused} of {len(donated)} donated arrays {'is' if unused == 1 else 'are'} not reused{shapes}",
        size_bytes=sum(map(_size_bytes, left)) or None,
        count=unused,
    )


def _find_reused(program: Program, text: str, aliased: set[tuple[str, str]]) -> set[int] | None:
    """Places of the arguments whose memory is reused; None where the program lacks arguments, so that places differ."""
    parameters = sum(item.opcode == "parameter" for item in hlo.parse(text).entry.instructions)
    if parameters != len(jax.tree.leaves(program.lowered.args_info)):
        return None
    return {int(number) for number, _ in aliased}


def find_truncated_dtypes(program: Program) -> Iterator[Trap]:
    """Find dtypes that JAX makes narrower: asked for in the code, or those of NumPy arrays among the inputs."""
    asked: dict[str, None] = {}
    sources: dict[str, None] = {}
    for warned in program.warned:
        if found := _TRUNCATED.search(warned.text):
            asked[f"{found[1]} becomes {found[2]}"] = None
            if "/jax/_src/" not in warned.source:
                sources[brief_source(warned.source)] = None
    given = [f"NumPy's {dtype} among the inputs becomes {CANONICAL[dtype]}" for dtype in program.wide]
    if asked or given:
        evidence = "; ".join([*given, *asked])
        named = tuple(filter(None, sources))[:MOST_NAMED]
        yield Trap(kind="truncated", evidence=evidence, sources=named, count=len(asked) + len(given))


def find_wide_inputs(make: Callable[[], Any]) -> tuple[str, ...]:
    """Return the dtypes of NumPy arrays among inputs that JAX takes as narrower ones.

    Args:
      make: () -> the inputs as the suite gives them. It is traced where that is possible.
    """
    found: dict[str, None] = {}

    def look() -> None:
        for leaf in jax.tree.leaves(make()):
            is_wide = isinstance(leaf, numpy.ndarray) and leaf.size > 1 and str(leaf.dtype) in CANONICAL
            if is_wide and jax.dtypes.canonicalize_dtype(leaf.dtype) != leaf.dtype:
                found[str(leaf.dtype)] = None

    try:
        jax.eval_shape(look)
    except Exception:  # noqa: BLE001  inputs may be made in any way, also without JAX
        look()
    return tuple(found)


def find_callbacks(program: Program) -> Iterator[Trap]:
    """Find primitives that call Python while the program runs, and how often a call of the program does."""
    counted: Counter[str] = Counter()
    lines: dict[str, None] = {}

    def count(jaxpr: Any, times: float) -> None:
        for equation in jaxpr.eqns:
            name = equation.primitive.name
            if is_callback(name):
                counted[name] += int(times)
                lines[program.lines.find(equation)] = None
            # Of branches all are looked at: any may be taken.
            rounds = {id(inner): often for inner, often in list_inside(equation)}
            for inner in map(open_jaxpr, list_jaxprs(equation)):
                count(inner, times * rounds.get(id(inner), 1))

    count(program.jaxpr, 1.0)
    if counted:
        named = [name if often == 1 else f"{name} ({often:,} times a call)" for name, often in counted.most_common()]
        evidence = named[0] if len(named) == 1 else f"each of {', '.join(named)}"
        sources = tuple(filter(None, lines))[:MOST_NAMED]
        yield Trap(kind="callbacks", evidence=evidence, sources=sources, count=counted.total())


def find_unrolled_loops(program: Program) -> Iterator[Trap]:
    """Find source lines that very many equations come from, as where a Python loop is traced step by step."""
    counted = Counter(program.lines.find(equation) for equation in walk_equations(program.jaxpr))
    many = [(line, number) for line, number in counted.most_common() if line and number >= LEAST_FROM_ONE_LINE]
    if many:
        lines, most = tuple(line for line, _ in many[:MOST_NAMED]), many[0][1]
        evidence = f"{most:,} equations" if len(many) == 1 else f"Up to {most:,} equations each"
        yield Trap(kind="unrolled", evidence=evidence, sources=lines, count=most)


FINDERS: dict[str, Finder] = {
    "dead_work": find_dead_work,
    "no_input": find_constant_results,
    "constants": find_captured_constants,
    "donation": find_unused_donation,
    "truncated": find_truncated_dtypes,
    "callbacks": find_callbacks,
    "unrolled": find_unrolled_loops,
}
"""By kind, in the order of the table of kinds."""
