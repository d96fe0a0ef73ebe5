"""Finds traps: reasons why a program does not do the work that its source suggests, and calls of Python."""

from __future__ import annotations

import math
import pkgutil
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import wraps
from itertools import compress
from typing import Any, TextIO

import jax
import numpy

from jaxmeter.harness.machine import jax_internals as internals
from jaxmeter.harness.machine.environment import describe_error
from jaxmeter.harness.machine.own_fault import OwnFaultError, UnknownError, describe_own_fault
from jaxmeter.harness.programs.equations import (
    DeadWork,
    SourceLines,
    find_dependent,
    has_work,
    is_inside_library,
    list_inside,
    list_jaxprs,
    measure_dead_work,
    name_source,
    walk_inside,
)
from jaxmeter.harness.programs.jax_events import Warned, keep_warnings
from jaxmeter.harness.programs.modes import Prepared, as_new_function, list_error_leaves
from jaxmeter.harness.programs.program import NoTextError, read_hlo
from jaxmeter.harness.record import Trap
from jaxmeter.harness.record.outcomes import KINDS, LEAST_CAPTURED_BYTES, LEAST_DEAD, LEAST_FROM_ONE_LINE
from jaxmeter.harness.traces import hlo

CALLBACKS = ("callback", "outside_call", "debug_print")
"""Parts of the names of primitives that call Python."""

RUNNERS = (internals.PURE_CALLBACK, internals.IO_CALLBACK, internals.DEBUG_CALLBACK, internals.DEBUG_PRINT)
"""A compiled program looks each of them up when it calls Python."""


def is_callback(primitive: str) -> bool:
    """Return whether a primitive of this name calls Python."""
    return any(part in primitive for part in CALLBACKS)


@dataclass
class Called:
    """Calls of Python by programs.

    Args:
      callbacks: The callback of each call, as the equation has it. `jax.debug.print` has one that no equation has.
      fault: Why they are not counted; None if they are.
    """

    callbacks: list[Any] = field(default_factory=list)
    fault: UnknownError | None = None


@contextmanager
def watch_callbacks() -> Iterator[Called]:
    """Keep which callbacks programs call, also programs that were compiled before. The block's effects end with it."""
    called = Called()

    def keep(run: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(run)
        def run_and_keep(*args: Any, **params: Any) -> Any:
            called.callbacks.append(params.get("callback"))
            return run(*args, **params)

        return run_and_keep

    try:
        runners = [(row.load(), *_find_holder(row)) for row in RUNNERS]
    except UnknownError as error:
        called.fault, runners = error, []
    for run, holder, name in runners:
        setattr(holder, name, keep(run))
    try:
        yield called
        jax.effects_barrier()
    finally:
        for run, holder, name in runners:
            setattr(holder, name, run)


def _find_holder(row: internals.Internal) -> tuple[Any, str]:
    """The object that has the internal as an attribute, and the attribute's name."""
    holder, _, name = row.name.rpartition(".")
    return pkgutil.resolve_name(holder), name


@dataclass
class Written:
    """Whether something was written to stdout or stderr."""

    is_any: bool = False


class _Watched:
    """A stream that notes writing, and is the stream in all else."""

    def __init__(self, stream: TextIO, written: Written) -> None:
        self._stream, self._written = stream, written

    def write(self, text: str) -> int:
        """Write the text."""
        self._written.is_any = True
        return self._stream.write(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


@contextmanager
def watch_writing() -> Iterator[Written]:
    """Note whether Python code, also that of callbacks, writes to stdout or stderr."""
    written, streams = Written(), (sys.stdout, sys.stderr)
    watched: Any = [None if stream is None else _Watched(stream, written) for stream in streams]
    sys.stdout, sys.stderr = watched
    try:
        yield written
    finally:
        # What the code has put there itself stays.
        sys.stdout = streams[0] if sys.stdout is watched[0] else sys.stdout
        sys.stderr = streams[1] if sys.stderr is watched[1] else sys.stderr


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
class TracedProgram:
    """A variant's program as far as it has stages.

    Args:
      lowered, compiled: None of eager code.
      warned: What JAX warned of while it was made.
      wide: Dtypes of NumPy arrays that the suite gives and JAX does not take as they are.
      called: What one call of it called in Python; None if it was not called.
    """

    traced: Any
    lowered: Any = None
    compiled: Any = None
    warned: Sequence[Warned] = ()
    wide: Sequence[str] = ()
    called: Called | None = None
    lines: SourceLines = field(default_factory=SourceLines)

    @property
    def jaxpr(self) -> Any:
        """The equations."""
        return self.traced.jaxpr.jaxpr


@dataclass(frozen=True)
class Remark:
    """What is no trap: what the program can do, and does not, or what a user cannot change."""

    kind: str
    text: str


@dataclass(frozen=True)
class Found:
    """What was found in a program.

    Args:
      unknown: By kind why it could not be looked for.
    """

    traps: tuple[Trap, ...] = ()
    remarks: tuple[Remark, ...] = ()
    unknown: Mapping[str, str] = field(default_factory=dict)


def find_traps(prepared: Prepared, wide: Sequence[str] = (), called: Called | None = None) -> Found:
    """Return the traps of a variant.

    Eager code does all the work that its source says: only dtypes and callbacks are looked at, where it can be traced.
    Streams, peers and code that is not traced as a whole have no program.

    Args:
      called: What one call of the variant called in Python; None if it was not called.
    """
    stages = prepared.stages
    if stages is not None:
        return _find(
            TracedProgram(stages.traced, stages.lowered, stages.compiled, stages.warned, wide, called), FINDERS
        )
    if prepared.traceable is None:
        return Found()
    try:
        with keep_warnings(show=False) as warned:
            traced = jax.jit(as_new_function(prepared.traceable)).trace(*prepared.args)
    except Exception:  # noqa: BLE001  eager code may look at its values, which a trace has not
        return Found()
    eager = {kind: finder for kind, finder in FINDERS.items() if kind in ("truncated", "callbacks")}
    return _find(TracedProgram(traced, warned=warned, wide=wide, called=called), eager)


Finder = Callable[[TracedProgram], Iterable[Trap | Remark]]


def _find(program: TracedProgram, finders: dict[str, Finder]) -> Found:
    """What the finders give; where one fails, its trap is unknown."""
    items: list[Trap | Remark] = []
    unknown: dict[str, str] = {}
    for kind, find in finders.items():
        try:
            items += find(program)
        except NoTextError as error:
            unknown[kind] = f"cannot look for the trap '{KINDS[kind].title.lower()}': {describe_error(error)}"
        except Exception as error:  # noqa: BLE001  no finder calls the user's code
            unknown[kind] = describe_own_fault(error, f"whether it has the trap '{KINDS[kind].title.lower()}'")
    traps = tuple(item for item in items if isinstance(item, Trap))
    return Found(traps, tuple(item for item in items if isinstance(item, Remark)), unknown)


def find_dead_work(program: TracedProgram) -> Iterator[Trap | Remark]:
    """Find work of which no result depends."""
    own, inside = measure_dead_work(program.jaxpr, program.lines)
    if own.share >= LEAST_DEAD:
        evidence = f"{_write_share(own.share)} of the traced FLOPs"
        yield Trap(kind="dead_work", evidence=evidence, sources=_name_most(own), share=own.share)
    elif own.share + inside.share >= LEAST_DEAD:
        evidence, lines = f"{_write_share(inside.share)} of the traced FLOPs", ", ".join(_name_most(inside))
        yield Remark("dead_work", f"{evidence} do not reach the result, inside calls of a library ({lines})")


def _name_most(dead: DeadWork) -> tuple[str, ...]:
    return tuple(line for line, _ in dead.by_line.most_common(MOST_NAMED) if line)


def _write_share(share: float) -> str:
    return "over 99.9 %" if 0.999 < share < 1 else f"{100 * share:.3g} %"


def find_constant_results(program: TracedProgram) -> Iterator[Trap]:
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
    constants = [
        (jax.tree_util.keystr(path), var)
        for path, var, depends in zip(paths, outputs, dependent, strict=True)
        if not depends and not _is_literal(var) and var in made
    ]
    if constants:
        names = ", ".join(path for path, _ in constants[:MOST_NAMED])
        more = f" and {len(constants) - MOST_NAMED} more" if len(constants) > MOST_NAMED else ""
        evidence = f"output {names}" if len(constants) == 1 else f"each of {len(constants)} outputs ({names}{more})"
        lines = dict.fromkeys(filter(None, (_find_maker(jaxpr, var, program.lines) for _, var in constants)))
        sources = tuple(lines)[:MOST_NAMED]
        share = len(constants) / len(paths)
        yield Trap(kind="no_input", evidence=evidence, sources=sources, share=share, count=len(constants))


def _is_folded(compiled: Any) -> bool:
    """Whether nothing is left to compute in the optimised program."""
    module = hlo.parse(read_hlo(compiled))
    return all(item.opcode in WITHOUT_WORK for block in module.computations for item in block.instructions)


def _find_maker(jaxpr: Any, var: Any, lines: SourceLines) -> str:
    """The line of the equation that gives a value; empty where it is no equation's."""
    makers = (equation for equation in jaxpr.eqns if any(var is given for given in equation.outvars))
    equation = next(makers, None)
    return "" if equation is None else lines.find(equation)


def _is_literal(var: Any) -> bool:
    return hasattr(var, "val")


def find_captured_constants(program: TracedProgram) -> Iterator[Trap]:
    """Find arrays that the function takes from outside its arguments, which become a part of the program."""
    held = {id(value): (value, user) for value, *user in _list_constants(program.traced.jaxpr)}
    sizes = [(_size_bytes(value), value, user) for value, user in held.values()]
    whole = sum(size for size, _, _ in sizes)
    if whole >= LEAST_CAPTURED_BYTES:
        largest = sorted(sizes, key=lambda item: -item[0])[:MOST_NAMED]
        shapes = ", ".join(_write_shape(value) for _, value, _ in largest)
        more = f" and {len(sizes) - MOST_NAMED} more" if len(sizes) > MOST_NAMED else ""
        lines = (program.lines.find(*user) for _, _, user in largest if user[0] is not None)
        yield Trap(
            kind="constants",
            evidence=f"{whole / 1e6:.3g} MB of arrays ({shapes}{more})",
            sources=tuple(dict.fromkeys(filter(None, lines))),
            size_bytes=whole,
            count=len(sizes),
        )


def _list_constants(closed: Any, outer: tuple[Any, ...] = ()) -> Iterator[tuple[Any, Any, tuple[Any, ...]]]:
    """Arrays that a closed jaxpr holds, at all levels, with the equation that uses each first and those around it."""
    jaxpr = closed.jaxpr
    users: dict[Any, Any] = {}
    for equation in jaxpr.eqns:
        for var in equation.invars:
            if not _is_literal(var):
                users.setdefault(var, equation)
            elif getattr(var.val, "shape", ()):
                yield var.val, equation, outer
        for inner in list_jaxprs(equation):
            yield from _list_constants(inner if hasattr(inner, "consts") else _Closed(inner), (*outer, equation))
    for var, value in zip(jaxpr.constvars, closed.consts, strict=False):
        yield value, users.get(var), outer


@dataclass(frozen=True)
class _Closed:
    """An open jaxpr, which holds no arrays itself."""

    jaxpr: Any
    consts: tuple[Any, ...] = ()


def _size_bytes(value: Any) -> int:
    return math.prod(getattr(value, "shape", ())) * int(getattr(getattr(value, "dtype", None), "itemsize", 0))


def _write_shape(value: Any) -> str:
    return f"{value.dtype}[{','.join(map(str, value.shape))}]"


def find_unused_donation(program: TracedProgram) -> Iterator[Trap]:
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


def _find_reused(program: TracedProgram, text: str, aliased: set[tuple[str, str]]) -> set[int] | None:
    """Places of the arguments whose memory is reused; None where the program lacks arguments, so that places differ."""
    parameters = sum(item.opcode == "parameter" for item in hlo.parse(text).entry.instructions)
    if parameters != len(jax.tree.leaves(program.lowered.args_info)):
        return None
    return {int(number) for number, _ in aliased}


def find_truncated_dtypes(program: TracedProgram) -> Iterator[Trap]:
    """Find dtypes that JAX makes narrower: asked for in the code, or those of NumPy arrays among the inputs."""
    asked: dict[str, None] = {}
    sources: dict[str, None] = {}
    for warned in program.warned:
        if match := _TRUNCATED.search(warned.text):
            asked[f"{match[1]} becomes {match[2]}"] = None
            sources[name_source(warned.stack)] = None
    given = [f"NumPy's {dtype} among the inputs becomes {CANONICAL[dtype]}" for dtype in program.wide]
    if asked or given:
        evidence = "; ".join([*given, *asked])
        named = tuple(filter(None, sources))[:MOST_NAMED]
        yield Trap(kind="truncated", evidence=evidence, sources=named, count=len(asked) + len(given))


def list_wide(made: Any) -> tuple[str, ...]:
    """Return the dtypes of NumPy arrays among inputs, as the suite gives them, that JAX takes as narrower ones."""
    dtypes: dict[str, None] = {}
    for leaf in jax.tree.leaves(made):
        is_wide = isinstance(leaf, numpy.ndarray) and leaf.size > 1 and str(leaf.dtype) in CANONICAL
        if is_wide and jax.dtypes.canonicalize_dtype(leaf.dtype) != leaf.dtype:
            dtypes[str(leaf.dtype)] = None
    return tuple(dtypes)


def find_wide_inputs(make: Callable[[], Any]) -> tuple[str, ...]:
    """Return the wide dtypes of inputs that are made again to be looked at.

    Args:
      make: () -> the inputs as the suite gives them. It is traced where that is possible.
    """
    dtypes: list[tuple[str, ...]] = []

    def note() -> None:
        dtypes.append(list_wide(make()))

    try:
        jax.eval_shape(note)
    except Exception:  # noqa: BLE001  inputs may be made in any way, also without JAX
        note()
    return dtypes[-1]


_OPTIONAL = {"cond": "branch", "while": "loop"}
"""Primitives around an equation that a call of the program need not come to."""


@dataclass(frozen=True, eq=False)
class _Callback:
    """An equation that calls Python.

    Args:
      inside: "branch" or "loop" where a call need not come to it; a loop of a known length is none.
      times: How often a call of the program comes to it, where it does.
    """

    name: str
    line: str
    callback: Any
    inside: str
    times: int


def find_callbacks(program: TracedProgram) -> Iterator[Trap | Remark]:
    """Find primitives that call Python while the program runs, and how often a call of the program does.

    What a call did not come to, as a check in a branch that was not taken, is a remark.
    """
    called, present = program.called, list(_list_callbacks(program))
    if present and called is not None and called.fault is not None:
        raise called.fault
    used, counted = _expect_calls(present) if called is None else _match_calls(present, called.callbacks)
    if used:
        named = [name if often == 1 else f"{name} ({often:,} times a call)" for name, often in counted.most_common()]
        evidence = named[0] if len(named) == 1 else f"each of {', '.join(named)}"
        yield Trap(kind="callbacks", evidence=evidence, sources=_list_lines(used), count=counted.total())
    unused = [each for each in present if each not in used]
    if unused:
        names, lines = ", ".join(dict.fromkeys(each.name for each in unused)), ", ".join(_list_lines(unused))
        inside = " or a ".join(dict.fromkeys(each.inside for each in unused))
        where = f", in a {inside}" if all(each.inside for each in unused) else ""
        result = "" if called is None else "; the call that was examined did not come to it"
        yield Remark("callbacks", f"{names} can call Python{where}{f' ({lines})' if lines else ''}{result}")


def _list_callbacks(program: TracedProgram) -> Iterator[_Callback]:
    for equation, outer in walk_inside(program.jaxpr):
        name = equation.primitive.name
        if is_callback(name):
            times = math.prod(list_inside(each)[0][1] for each in outer)
            inside = next((_OPTIONAL[each.primitive.name] for each in outer if each.primitive.name in _OPTIONAL), "")
            line = program.lines.find(equation, outer)
            yield _Callback(name, line, equation.params.get("callback"), inside, int(times))


def _expect_calls(present: Sequence[_Callback]) -> tuple[list[_Callback], Counter[str]]:
    """The equations that every call of the program comes to, and how often, by the primitive's name."""
    used = [each for each in present if not each.inside]
    counted: Counter[str] = Counter()
    for each in used:
        counted[each.name] += each.times
    return used, counted


def _match_calls(present: Sequence[_Callback], called: Sequence[Any]) -> tuple[list[_Callback], Counter[str]]:
    """The equations that a call of the program came to, and how often, by the primitive's name.

    Equations can have equal callbacks, and eager code creates its callbacks in each call. Of equations that cannot be
    distinguished, the optional ones count only if there were more calls than the others make.
    """
    calls = Counter(map(_identify, called))
    alike: dict[Any, list[_Callback]] = {}
    for each in present:
        key = _identify(each.callback)
        alike.setdefault(key if key in calls else None, []).append(each)
    if None in alike:
        calls[None] = sum(number for key, number in calls.items() if key not in alike)
    used: list[_Callback] = []
    counted: Counter[str] = Counter()
    for key, equations in alike.items():
        expected, by_name = _expect_calls(equations)
        if not 0 < calls[key] <= by_name.total():
            expected = equations if calls[key] else []
        if expected:
            used += expected
            counted[" and ".join(dict.fromkeys(each.name for each in expected))] += calls[key]
    return used, counted


def _identify(callback: Any) -> Any:
    """A callback as a key; None of `jax.debug.print`, whose equation has none."""
    try:
        hash(callback)
    except TypeError:
        return id(callback)
    return callback


def _list_lines(callbacks: Sequence[_Callback]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(filter(None, (each.line for each in callbacks))))[:MOST_NAMED]


def find_unrolled_loops(program: TracedProgram) -> Iterator[Trap | Remark]:
    """Find source lines that very many equations come from, as where a Python loop is traced step by step.

    Lines of a library are a remark.
    """
    by_line: dict[str, list[tuple[Any, tuple[Any, ...]]]] = {}
    for equation, outer in walk_inside(program.jaxpr):
        for line in program.lines.read_stack(equation)[:1]:
            by_line.setdefault(line, []).append((equation, outer))
    many = [each for each in sorted(by_line.values(), key=len, reverse=True) if len(each) >= LEAST_FROM_ONE_LINE]
    own = [each for each in many if not is_inside_library(program.lines.read_stack(*each[0]))]
    shown = own or many
    if not shown:
        return
    lines = tuple(dict.fromkeys(program.lines.find(*item) for each in shown for item in each))[:MOST_NAMED]
    most = len(shown[0])
    evidence = f"{most:,} equations" if len(shown) == 1 else f"Up to {most:,} equations each"
    if own:
        yield Trap(kind="unrolled", evidence=evidence, sources=lines, count=most)
    else:
        yield Remark("unrolled", f"{evidence} come from one line of a library: an unrolled loop ({', '.join(lines)})")


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
