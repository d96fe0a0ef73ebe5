"""How an implementation is executed and waited for: a function in a mode becomes a `Prepared` call, or a reason."""

from __future__ import annotations

import copy
import re
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial, wraps
from typing import Any

import jax
import numpy
from jax.experimental import checkify

from jaxmeter.harness.declare.declaration import MIXED
from jaxmeter.harness.programs.arguments import find_argument_names, refuse_hidden_arrays, split
from jaxmeter.harness.programs.jax_events import JaxEvents, Warned, keep_warnings, watch_jax
from jaxmeter.harness.programs.older_jax import RuntimeFailure, copy_array, jit
from jaxmeter.harness.record import NATIVE, Param

Wait = Callable[[Any], Any]
"""Returns its argument once all arrays in it are ready."""

FEW = 4
"""Arrays of a flat tuple that are waited for one by one: 0.25 us each. jax.block_until_ready takes 1.2 us for the first
and 0.15 us for each further one, on two cores of an AMD EPYC."""

_PLAIN = frozenset({bool, int, float, complex, str, bytes, type(None), numpy.ndarray})
"""Types of values that are ready at once. A call may return a hundred of them, so they are recognised by a set."""


def make_wait() -> Wait:
    """Return a wait for the results of one variant.

    The first result decides how later ones are waited for. A later result of another structure is waited for as well:
    each way recognises what it is not for, and then takes that of JAX.
    """
    array: Any = _NoArray
    chosen: Wait | None = None

    def wait(result: Any) -> Any:
        nonlocal array, chosen
        if type(result) is array:
            return result.block_until_ready()
        if chosen is None:
            if isinstance(result, jax.Array):
                array = type(result)
                return result.block_until_ready()
            chosen = _choose(result)
        return chosen(result)

    return wait


class _NoArray:
    """The type of no result."""


def _choose(result: Any) -> Wait:
    """Return the cheapest way to wait for results like this one, which is no array itself."""
    leaves = jax.tree.leaves(result)
    arrays = [leaf for leaf in leaves if _can_wait(leaf)]
    if not arrays and _is_plain(result):
        return _wait_for_nothing
    kinds = set(map(type, arrays))
    if type(result) in (tuple, list) and len(arrays) == len(result) <= FEW and kinds == set(map(type, result)):
        return _make_wait_for_few(type(result), kinds)
    return jax.block_until_ready if len(arrays) == len(leaves) else _wait_for_arrays


def _can_wait(leaf: Any) -> bool:
    return hasattr(leaf, "block_until_ready")


def _is_plain(result: Any) -> bool:
    kind = type(result)
    return kind in _PLAIN or (kind in (tuple, list) and _PLAIN.issuperset(map(type, result)))


def _wait_for_nothing(result: Any) -> Any:
    return result if _is_plain(result) else jax.block_until_ready(result)


def _make_wait_for_few(container: Any, kinds: set[type]) -> Wait:
    def wait_for_few(result: Any) -> Any:
        if type(result) is not container or len(result) > FEW:
            return jax.block_until_ready(result)
        for leaf in result:
            if type(leaf) not in kinds:
                return jax.block_until_ready(result)
            leaf.block_until_ready()
        return result

    return wait_for_few


def _wait_for_arrays(result: Any) -> Any:
    """Wait for the arrays alone: JAX's own wait takes 0.5 us for each leaf that is none."""
    jax.block_until_ready([leaf for leaf in jax.tree.leaves(result) if _can_wait(leaf)])
    return result


Clock = Callable[[], float]
Stage = Callable[[str], None]
"""Receives the name of the stage that begins, so that a crash or a hang in it can be attributed."""


@dataclass(frozen=True)
class Stages:
    """A compiled program with the time of each stage, in seconds.

    Args:
      trace_s: None where lowering cannot be timed apart from tracing; `lower_s` is then the time of both.
      cached: Names of the stages that JAX had done before, and took from its caches; these have no time.
      donated: Compiles the same function again with all its arguments donated; None where a user's own jit decides.
      events: What jax reported meanwhile.
      warned: What JAX warned of meanwhile.
      compiler_options: XLA's options that it was compiled with, by name; not those of a user's own jit.
    """

    traced: Any
    lowered: Any
    compiled: Any
    trace_s: float | None
    lower_s: float | None
    compile_s: float | None
    donated: Callable[[], Any] | None
    events: JaxEvents
    warned: tuple[Warned, ...] = ()
    compiler_options: Mapping[str, Param] = field(default_factory=dict)
    cached: tuple[str, ...] = ()


def _nothing() -> None:
    """Nothing to begin again: a call that carries no state."""


@dataclass(frozen=True)
class Prepared:
    """A variant as probes see it: `wait(call(*args))` is one call until its result is ready.

    Args:
      stages: The stages of compiling it; None without a single program (eager code, peers, streams).
      returns_early: Whether a call returns before its result is ready.
      reset: Makes the next call begin with the inputs again, if calls carry state. It copies the inputs, so it is
        called before the timed calls, and before a first call.
      traceable: What a call computes, as a function of `args` that JAX can trace; None if it cannot.
      jitted: The jitted function of the calls or of the ahead-of-time program; None in modes without one.
      renew: Returns the arguments of the next call, made outside the clock. It is for calls that donate their arguments
        and return no state; None for others.
      most_calls: How often it may be called while it is timed; None without a limit.
    """

    call: Callable[..., Any]
    args: tuple[Any, ...]
    wait: Callable[[Any], Any]
    stages: Stages | None = None
    returns_early: bool = True
    reset: Callable[[], Any] = _nothing
    traceable: Callable[..., Any] | None = None
    jitted: Any = None
    renew: Callable[[], tuple[Any, ...]] | None = None
    most_calls: int | None = None

    def trace(self) -> Any:
        """Return what a call computes as JAX traces it, also where the call itself is not jitted.

        Raises:
          Whatever JAX has against tracing it.
        """
        if self.stages is not None:
            return self.stages.traced
        if self.traceable is None:
            raise TypeError("JAX cannot trace it as a whole")
        arguments = split(self.args)
        return jax.jit(arguments.close_over(self.traceable)).trace(*arguments.traced[0])

    def call_and_wait(self) -> Any:
        """The result of one call, ready."""
        return self.wait(self.call(*self.args))


@dataclass(frozen=True)
class How:
    """How calls of a variant follow each other.

    Args:
      carry: Place of an argument -> index of the output that takes its place in the next call.
      donate: Places of the arguments whose memory a jitted call may take.
      convert: NumPy's arrays as a peer's arguments.
      stream: Whether the arguments are argument tuples, one for each call of a pass.
      compiler_options: XLA's options that it is compiled with, by name.
    """

    carry: Mapping[int, int] = field(default_factory=dict)
    donate: tuple[int, ...] = ()
    convert: Callable[..., tuple[Any, ...]] | None = None
    stream: bool = False
    compiler_options: Mapping[str, Param] = field(default_factory=dict)


def prepare_as(
    mode: str, function: Callable[..., Any], args: tuple[Any, ...], how: How, clock: Clock, stage: Stage
) -> Prepared:
    """A function made ready to be called in a mode.

    Args:
      args: Of a stream, one tuple for each call of a pass.
    """
    if how.stream:
        return _stream(mode, function, args, how)
    if mode == NATIVE:
        return _native(function, args, how)
    if mode in ("eager", MIXED):
        traceable = function if mode == "eager" else None
        prepared = Prepared(function, args, make_wait(), traceable=traceable)
    else:
        arguments = split(args)
        refuse_hidden_arrays(arguments, find_argument_names(function))
        function, args = arguments.close_over(function), arguments.traced[0]
        jitted = _jit(function, how)
        stages = compile_in_stages(jitted, function, args, {}, clock, stage, how.compiler_options)
        # A jitted function is called through its own dispatch, and reuses what the stages have compiled.
        call = jitted if mode == "jit" else stages.compiled
        prepared = Prepared(call, args, make_wait(), stages, jitted=jitted)
    return _carried(prepared, how) if how.carry else prepared


def _jit(function: Callable[..., Any], how: How) -> Any:
    """A jitted function with nothing compiled yet."""
    return jit(as_new_function(function), how.compiler_options, donate_argnums=how.donate)


def _native(function: Callable[..., Any], args: tuple[Any, ...], how: How) -> Prepared:
    """A peer: called as it is; its result is ready when it returns."""
    convert = how.convert or (lambda *args: copy_arguments(args))
    converted = convert(*args) if how.convert or how.carry else args
    prepared = Prepared(function, converted, _already_ready, returns_early=False)
    if not how.carry:
        return prepared
    carried = Carried(function, how.carry, begin=lambda _: convert(*args))
    return replace(prepared, call=carried, reset=partial(carried.reset, *converted))


def _stream(mode: str, function: Callable[..., Any], items: tuple[tuple[Any, ...], ...], how: How) -> Prepared:
    """One call is a pass over all argument tuples, each with as many programs as it has types.

    What is carried goes from one tuple's call to the next; the result then holds it once, as it is at the end.
    """
    native = mode == NATIVE
    if native and how.convert is not None:
        convert = how.convert
        items = tuple(convert(*item) for item in items)
    jitted = _jit(function, how) if mode == "jit" else None
    call = function if jitted is None else jitted
    wait = _already_ready if native else make_wait()
    if not how.carry:
        return Prepared(
            lambda *items: [call(*item) for item in items], items, wait, returns_early=not native, jitted=jitted
        )
    carried = Carried(call, how.carry, begin=partial(copy_arguments, places=how.carry))

    def one_pass(*items: tuple[Any, ...]) -> tuple[list[Any], list[Any]]:
        return carried.over(items)

    reset = partial(carried.reset, *items[0])
    return Prepared(one_pass, items, wait, returns_early=not native, reset=reset, jitted=jitted)


def _carried(prepared: Prepared, how: How) -> Prepared:
    carried = Carried(prepared.call, how.carry, begin=partial(copy_arguments, places=how.carry))
    return replace(prepared, call=carried, reset=partial(carried.reset, *prepared.args))


def copy_arguments(args: tuple[Any, ...], places: Collection[int] | None = None) -> tuple[Any, ...]:
    """Return the arguments, with copies of all of them or of those at `places`, which a call may take."""
    chosen = range(len(args)) if places is None else places
    return tuple(jax.tree.map(_copy, arg) if place in chosen else arg for place, arg in enumerate(args))


def _copy(leaf: Any) -> Any:
    if isinstance(leaf, jax.Array):
        # Its own copy() compiles a program, which would count as the variant's; a sharding that is named commits it.
        return copy_array(leaf)
    return copy.deepcopy(leaf)


class Carried:
    """Calls that carry state: the next call begins with what a call returns, as in a training step."""

    def __init__(
        self,
        call: Callable[..., Any],
        carry: Mapping[int, int],
        begin: Callable[[tuple[Any, ...]], tuple[Any, ...]],
    ) -> None:
        """Begin with the arguments of the first call.

        Args:
          begin: The arguments -> copies of them.
        """
        self._call, self._carry, self._begin = call, carry, begin
        self.state: dict[int, Any] = {}

    def reset(self, *args: Any) -> None:
        """Begin again with copies of these arguments, made now: a copy is no part of a call."""
        self.state = {}  # what it held is free before more is taken
        begun = self._begin(args)
        self.state = jax.block_until_ready({place: begun[place] for place in self._carry})

    def __call__(self, *args: Any) -> Any:
        """Call once with the arguments, except for the state, which the previous call returned."""
        if not self.state:
            self.reset(*args)
        result = self._call(*(self.state.get(place, arg) for place, arg in enumerate(args)))
        self.state = {place: _outputs(result)[index] for place, index in self._carry.items()}
        return result

    def over(self, items: Iterable[tuple[Any, ...]]) -> tuple[list[Any], list[Any]]:
        """Run a pass over argument tuples; return each call's results without its state, and the final state."""
        # Not the states in between: an epoch of them does not fit where one does.
        return [self._without_state(self(*item)) for item in items], list(self.state.values())

    def _without_state(self, result: Any) -> list[Any]:
        return [output for index, output in enumerate(_outputs(result)) if index not in self._carry.values()]


def _outputs(result: Any) -> tuple[Any, ...]:
    """Return a function's result, one value or a tuple, as a tuple."""
    return result if isinstance(result, tuple) else (result,)


def compile_in_stages(
    jitted: Any,
    function: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any],
    clock: Clock,
    stage: Stage,
    compiler_options: Mapping[str, Param] | None = None,
) -> Stages:
    """Trace, lower and compile a jitted function for these arguments, each stage timed.

    Args:
      compiler_options: Those that the jitted function has.
    """
    options = dict(compiler_options or {})
    with watch_jax() as events, keep_warnings() as warned:
        stage("trace")
        start = clock()
        traced = jitted.trace(*args, **kwargs)
        trace_s = clock() - start
        stage("lower")
        start = clock()
        lowered = traced.lower()
        lower_s = clock() - start
        stage("compile")
        start = clock()
        compiled = lowered.compile()
        compile_s = clock() - start

    def donated() -> Any:
        donating = jit(
            as_new_function(function), options, donate_argnums=range(len(args)), donate_argnames=tuple(kwargs)
        )
        return donating.lower(*args, **kwargs).compile()

    return Stages(traced, lowered, compiled, trace_s, lower_s, compile_s, donated, events, tuple(warned), options)


def as_new_function(function: Callable[..., Any]) -> Callable[..., Any]:
    """The same function as a new object: jax reuses what this process has compiled for the old one."""

    @wraps(function)
    def same(*args: Any, **static: Any) -> Any:
        return function(*args, **static)

    return same


def _already_ready(result: Any) -> Any:
    return result


_REFUSED = re.compile(r"No such compile option: '(?P<unknown>[^']*)'|While setting option (?P<name>\S+), (?P<why>.*)")


def describe_refused_option(error: Exception) -> str | None:
    """Return which compiler option the backend refuses, and what to do; None of any other error."""
    match = _REFUSED.search(str(error)) if isinstance(error, RuntimeFailure) else None
    if match is None:
        return None
    if (unknown := match["unknown"]) is not None:
        problem = f"no compiler option '{unknown}' on backend '{jax.default_backend()}' with jax {jax.__version__}"
        return f"{problem}; correct its name, or declare limit= where it is unknown"
    return f"compiler option '{match['name']}': {match['why']} Correct its value in compiler_options="


def is_error(item: Any) -> bool:
    """Return whether an object is an error value of checkify."""
    return isinstance(item, checkify.Error)


def list_error_leaves(tree: Any) -> list[bool]:
    """Return for each leaf of a tree whether it belongs to an error value."""
    nodes = jax.tree.leaves(tree, is_leaf=is_error)
    return [is_error(node) for node in nodes for _ in jax.tree.leaves(node)]


def list_predicates(error: Any) -> list[Any]:
    """Return which checks of an error value failed. Codes are left out: they differ from trace to trace."""
    return [leaf for leaf in jax.tree.leaves(error) if leaf.dtype == bool]
