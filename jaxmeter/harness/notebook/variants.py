"""The variants of a user's callables: each callable in each of its modes, prepared to be checked and timed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any

import jax

from jaxmeter.harness.machine import jax_internals as internals
from jaxmeter.harness.notebook.calls import Call, Carry, Given
from jaxmeter.harness.notebook.measurement import compare_passes
from jaxmeter.harness.notebook.state import UserState
from jaxmeter.harness.notebook.tracing import (
    Compiled,
    LostChangesError,
    OtherChangesError,
    compile_function,
    describe_lost,
    list_names,
)
from jaxmeter.harness.probes.conditioning import LIMIT_S, Judge
from jaxmeter.harness.probes.context import Context
from jaxmeter.harness.programs.arguments import RefusedError, find_argument_names, is_traced, split
from jaxmeter.harness.programs.equations import list_jaxprs, open_jaxpr
from jaxmeter.harness.programs.jax_events import JaxEvents, find_silent_events, watch_jax
from jaxmeter.harness.programs.modes import Prepared, Stages, compile_in_stages, is_error, list_predicates, make_wait
from jaxmeter.harness.programs.older_jax import copy_array
from jaxmeter.harness.programs.traps import watch_callbacks, watch_writing
from jaxmeter.harness.record import AS_GIVEN, ProcessRecord

MOST_APART = 2.0
"""Largest ratio of times that a Python function around a jitted call explains: it costs about 1 us of the 3 us of the
shortest call. Beyond it, the function does work of its own in every eager call, as `checkify` does."""


def describe_one_program(jitted_calls: Iterable[str], process: ProcessRecord | None) -> list[str]:
    """Name the functions whose eager and jit variants run the same program; a note, or none.

    Args:
      jitted_calls: Names of functions whose trace is one jitted call.
      process: Their times; without them nothing is known of what an eager call does.
    """
    names = [name for name in jitted_calls if process is not None and _does_nothing_else(name, process)]
    if not names:
        return []
    verb = "is" if len(names) == 1 else "are each"
    return [f"{', '.join(names)} {verb} one jitted call: eager and jit are the same program"]


def is_one_jitted_call(jaxpr: Any) -> bool:
    """Return whether a traced program is one call of a jitted function that jit around it compiles alike.

    A jit around it donates nothing, removes outputs that are not returned, and makes constants of what is no argument.
    """
    if len(jaxpr.eqns) != 1 or jaxpr.constvars:
        return False
    (equation,) = jaxpr.eqns
    if equation.primitive.name not in internals.JIT.all_names:
        return False
    donated = equation.params.get(internals.DONATED.name)
    return (
        donated is not None  # else that is unknown, and nothing is said
        and not any(donated)
        and _are_among(equation.invars, jaxpr.invars)
        and _are_among(equation.outvars, jaxpr.outvars)
        and _are_among(jaxpr.outvars, equation.outvars)
    )


def count_operations(jaxpr: Any) -> int:
    """Return how many operations eager code runs for a traced program; of a program that is one jitted call, inside."""
    while len(jaxpr.eqns) == 1 and (inside := list_jaxprs(jaxpr.eqns[0])):
        jaxpr = open_jaxpr(inside[0])
    return len(jaxpr.eqns)


def _are_among(values: Iterable[Any], others: Iterable[Any]) -> bool:
    known = set(map(id, others))  # literals cannot be hashed
    return all(id(value) in known for value in values)


def _does_nothing_else(name: str, process: ProcessRecord) -> bool:
    """Return whether eager calls of a function compile nothing and take as long as its jitted program."""
    compiles = {item.variant: item.compiles_per_call for item in process.variants}
    ratio = compare_passes(process, f"{name}:eager", f"{name}:jit")
    if ratio is None or compiles[f"{name}:eager"] or compiles[f"{name}:jit"]:
        return False
    return 1 / MOST_APART <= ratio.estimate <= MOST_APART


SLOW_S = 0.1
"""A call of this length is slow: eager code that takes as long would fill the passes of compiled programs. Chosen: five
blocks, so that the shortest pass still holds a block of each program."""

TRACES = 3
"""How often a compiled variant's function is traced: once to compile it, and to check what it gives."""


@dataclass
class NotebookContext(Context):
    """The callables of a user as one case.

    Args:
      given: By name of the implementation.
      keywords: Keyword arguments of the call.
      state: What calls may change in place; it was kept.
      carry: What goes from one call to the next, as the user says.
      comparable: Whether all variants must give the same results and changes in place.
      draws_s: Returns how long the draws of conditioning may take.
    """

    given: Mapping[str, Given] = field(default_factory=dict)
    keywords: dict[str, Any] = field(default_factory=dict)
    state: UserState = field(default_factory=UserState)
    carry: Carry = field(default_factory=dict)
    comparable: bool = True
    draws_s: Callable[[], float] = lambda: LIMIT_S
    _calls: dict[str, Call] = field(default_factory=dict)
    _made: dict[str, Prepared] = field(default_factory=dict)
    _compiled: dict[str, Compiled] = field(default_factory=dict)
    _calling: set[str] = field(default_factory=set)
    _writing: set[str] = field(default_factory=set)
    _calls_s: dict[str, float] = field(default_factory=dict)

    def find_arguments(self, given: Given) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Positional and keyword arguments of a function: its own, or those of the measurement."""
        return (self.arguments, self.keywords) if given.args is None else (given.args, {})

    def find_call_s(self, variant: str, most_s: float) -> float:
        """Return about how long a call takes.

        After a slow first call, another shows whether it was slow because it compiled, unless it takes longer than
        `most_s`.
        """
        call, call_s = self.call(variant), self._calls_s[variant]
        if SLOW_S < call_s <= most_s and call.count == 1:
            call.reset()
            self._time_call(variant)
        return self._calls_s[variant]

    def stages_of(self, variant: str) -> Stages | None:
        """The stages of a variant that was prepared; None where it has none, or could not be prepared."""
        prepared = self._made.get(variant)
        return None if prepared is None else prepared.stages

    def _time_call(self, variant: str) -> Any:
        start = self.clock()
        result = jax.block_until_ready(self._calls[variant]())
        self._calls_s[variant] = self.clock() - start
        return result

    def call(self, variant: str) -> Call:
        """The variant as a call that can be repeated.

        Raises:
          Whatever its code or its compiler raise.
        """
        self.prepare(variant)
        return self._calls[variant]

    def list_notes(self, variant: str) -> list[str]:
        """What a reader must know of how a variant was called."""
        notes: list[str] = []
        compiled, call = self._compiled.get(variant), self._calls.get(variant)
        if compiled is not None and compiled.fixed:
            is_one = len(compiled.fixed) == 1
            notes.append(f"{', '.join(compiled.fixed)} {'is' if is_one else 'are'} static: tracing it fails")
        if compiled is not None and compiled.once:
            notes.append(
                f"changes {', '.join(compiled.once)} in place when it is traced, and not in the calls after it"
            )
        if call is not None and call.threads:
            if not self.carry:
                notes.append("a call takes the memory of its arguments; its result is the argument of the next call")
        elif call is not None and call.taken:
            notes.append("a call takes the memory of its arguments; each call gets copies made outside the clock")
        return notes

    def describe_effects(self, variants: Iterable[str]) -> str:
        """What a call of these variants does outside JAX; empty where nothing is seen."""
        known = [name for name in variants if name in self._made]
        if self._calling & set(known):
            return "calls back into Python"
        return "writes to stdout or stderr" if self._writing & set(known) else ""

    def count_calls(self) -> int:
        """How often the functions have been called so far; tracing one runs its Python code, too."""
        traced = sum(TRACES for made in self._made.values() if made.stages is not None)
        return sum(call.count for call in self._calls.values()) + traced

    def list_jitted_calls(self) -> list[str]:
        """Names of the functions that are one jitted call inside."""
        made = {name: self._made.get(f"{name}:jit") for name, given in self.given.items() if not given.is_transformed}
        return [
            name
            for name, prepared in made.items()
            if prepared is not None
            and prepared.stages is not None
            and is_one_jitted_call(prepared.stages.traced.jaxpr.jaxpr)
        ]

    @property
    def reference_name(self) -> str:
        """What a person calls the result that variants are compared with."""
        return "baseline"

    @cached_property
    def reference(self) -> Any:
        """What the first variant that can be called gives, and the arrays that it changes in place."""
        call = self.call(self._first)
        call.reset()
        result = jax.block_until_ready(call())
        self._updated = call.updated
        kept = describe_results(result, call.list_updates(self._updated))
        return jax.tree.map(copy_leaf, kept) if call.is_consumed else kept  # else the next call would take it

    @cached_property
    def judging_variant(self) -> str | None:
        """The first function as it was passed."""
        given = next(iter(self.given.values()))
        return f"{given.name}:{AS_GIVEN}" if given.is_transformed else self._first

    @cached_property
    def judge(self) -> Judge:
        """The first function as it was passed; traced where that is all that it does."""
        given, call = next(iter(self.given.values())), self.call(self._first)
        is_pure = not given.is_transformed and not call.updated and not call.is_consumed

        def function(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
            if is_pure:
                try:
                    return describe_results(given.function(*args, **kwargs), {})
                finally:
                    self.state.drop_tracers()
            kept = UserState.of_calls([(given.function, args, kwargs)])
            once = Call(given.function, args, kwargs, kept, {}, is_eager=True)
            once.state.keep()
            try:
                return describe_results(once(), once.list_updates(self._updated))
            finally:
                once.state.put_back()

        self.state.put_back()
        # In containers that no call changes.
        own = jax.tree.map(lambda leaf: leaf, self.find_arguments(given))
        return Judge(function, own, is_traced=is_pure, limit_s=min(LIMIT_S, self.draws_s()))

    def trace_judge(self) -> Any:
        """The judge's traced program, which a transformed function has as its own; None where it has none."""
        judge = self.judge
        if judge.is_traced or self.judging_variant is None:
            return judge.trace()
        stages = self.prepare(self.judging_variant).stages
        return None if stages is None else stages.traced

    def list_arrays(self) -> list[Any]:
        """All leaves of arguments, of keyword arguments and of the state, as they were passed."""
        owners = self.state.owners
        kept = [_list_contents(place.contents) for place in self.state.places]
        arguments = [item.args for item in self.given.values()]
        leaves = jax.tree.leaves(
            (self.arguments, self.keywords, arguments, kept), is_leaf=lambda item: id(item) in owners
        )
        # What belongs to a place may have changed: what the place has kept has not.
        return [leaf for leaf in leaves if id(leaf) not in owners]

    def check_with(self, variant: str) -> None:
        """Choose the variant whose result is the reference."""
        self._first = variant

    def prepare_check(self, variant: str) -> Prepared:
        """The variant, which returns what the reference holds."""
        call, prepared = self.call(variant), self.prepare(variant)
        _ = self.reference  # it has set the names of what is changed in place

        def result_with_updates() -> Any:
            with watch_writing() as written, watch_callbacks() as called:
                result = self._time_call(variant)
                jax.effects_barrier()
            if called.callbacks:
                self._calling.add(variant)
            if written.is_any:
                self._writing.add(variant)
            if lacking := [name for name in self._updated if name not in call.updated]:
                error = self._describe_lacking(variant, lacking)
                if self.comparable or not isinstance(error, OtherChangesError):
                    raise error
            return describe_results(result, call.list_updates(self._updated))

        return Prepared(result_with_updates, (), make_wait(), prepared.stages, reset=call.reset, jitted=prepared.jitted)

    def _describe_lacking(self, variant: str, lacking: list[str]) -> Exception:
        """Why a variant does not change in place what the reference does: it is jitted, or another function."""
        name, reference = variant.rpartition(":")[0], self._first
        if name == reference.rpartition(":")[0]:
            return LostChangesError(describe_lost(name, lacking))
        return OtherChangesError(
            f"does not change {list_names(lacking)} in place, which {reference.replace(AS_GIVEN, 'as given')} changes"
        )

    def _prepare(self, variant: str) -> Prepared:
        if variant not in self._made:
            self._made[variant] = self._make(variant)
        return self._made[variant]

    def _make(self, variant: str) -> Prepared:
        name, _, mode = variant.rpartition(":")
        given = self.given[name]
        self.state.put_back()  # another variant may have taken what the state held
        function = given.function if mode == AS_GIVEN or given.plain is None else given.plain
        names = find_argument_names(function)  # a compiled program has none
        stages = jitted = None
        args, kwargs = self.find_arguments(given)
        if mode == AS_GIVEN:
            stages = self._read_stages(given, args, kwargs)
        elif mode != "eager":
            if mode == "aot" and jax.config.values["jax_disable_jit"]:
                raise RefusedError("jax_disable_jit is True, and nothing is compiled ahead of time under it; unset it")
            compiled = compile_function(name, function, args, kwargs, self.state, self.clock, self.stage)
            stages, jitted, (args, kwargs) = compiled.stages, compiled.jitted, compiled.arguments.traced
            function = jitted if mode == "jit" else stages.compiled
            self._compiled[variant] = compiled
        call = self._calls[variant] = Call(function, args, kwargs, self.state, self.carry, mode == "eager", names)
        return Prepared(call, (), make_wait(), stages, reset=call.reset, jitted=jitted)

    def _read_stages(self, given: Given, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Stages | None:
        """The callable's own stages, for its program and its memory; None where it has none.

        What the user's process has traced, lowered or compiled before has no time.
        """
        if not given.has_stages:
            return None
        args, kwargs = (*given.bound, *args), {**given.keywords, **kwargs}
        try:
            if hasattr(given.base, "trace"):
                stages = compile_in_stages(given.base, given.function, args, kwargs, self.clock, self.stage)
            else:
                stages = self._lower(given.base, args, kwargs)
            cached = _find_cached(stages.events)
            return replace(
                stages,
                cached=cached,
                trace_s=None if "trace" in cached else stages.trace_s,
                lower_s=None if "lower" in cached else stages.lower_s,
                compile_s=None if "compile" in cached else stages.compile_s,
                traced=_find_inner(stages.traced),
                lowered=_find_inner(stages.lowered),
                compiled=_find_inner(stages.compiled),
                donated=None,
            )
        finally:
            self.state.put_back()

    def _lower(self, base: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Stages:
        """Stages of a callable that traces and lowers in one step."""
        with watch_jax() as events:
            self.stage("lower")
            start = self.clock()
            lowered = base.lower(*args, **kwargs)
            lower_s = self.clock() - start
            self.stage("compile")
            start = self.clock()
            compiled = lowered.compile()
            compile_s = self.clock() - start
        arguments = split(args, kwargs)
        whole = jax.jit(arguments.close_over(partial(_call, base)))  # only to read its equations
        traced = whole.trace(*arguments.traced[0], **arguments.traced[1])
        return Stages(traced, lowered, compiled, None, lower_s, compile_s, None, events)


def _find_cached(events: JaxEvents) -> tuple[str, ...]:
    """Names of the stages that JAX took from its caches: it reports no event of them, and would."""
    stages = {internals.TRACED: "trace", internals.LOWERED: "lower", internals.COMPILED: "compile"}
    silent = find_silent_events()
    return tuple(stage for row, stage in stages.items() if row not in silent and row.name not in events.durations_s)


def _list_contents(contents: Any) -> Any:
    return list(contents.values()) if isinstance(contents, dict) else contents


def copy_leaf(leaf: Any) -> Any:
    """An array in memory of its own."""
    return copy_array(leaf) if isinstance(leaf, jax.Array) else leaf


def describe_results(result: Any, updates: dict[str, Any]) -> Any:
    """What of a call is compared: its result, and the arrays that it changed in place where there are any."""
    cleaned = _clean(result)
    return {"result": cleaned, "changed in place": updates} if updates else cleaned


def _clean(result: Any) -> Any:
    """A result without what is neither an array nor a number; of a dataclass that JAX does not know the fields."""

    def clean_leaf(leaf: Any) -> Any:
        if is_error(leaf):
            return list_predicates(leaf)
        if hasattr(leaf, "__dataclass_fields__") and not isinstance(leaf, type):
            return _clean({name: getattr(leaf, name) for name in leaf.__dataclass_fields__})
        return leaf if is_traced(leaf) else None

    return jax.tree.map(clean_leaf, result, is_leaf=is_error)


def _call(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    return [leaf for leaf in jax.tree.leaves(function(*args, **kwargs)) if is_traced(leaf)]


def _find_inner(stage: Any) -> Any:
    """JAX's own stage inside that of another library."""
    if isinstance(stage, jax.stages.Traced | jax.stages.Lowered | jax.stages.Compiled):
        return stage
    for name in ("traced", "lowered", "compiled"):
        inner = getattr(stage, name, None)
        if isinstance(inner, jax.stages.Traced | jax.stages.Lowered | jax.stages.Compiled):
            return inner
    return stage
