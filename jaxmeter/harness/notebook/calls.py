"""A user's callable: which transformation it has, and its calls again and again as in the user's own loop."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from types import FunctionType, MethodType
from typing import Any

import jax
import numpy

from jaxmeter.harness.declare.declaration import MODES
from jaxmeter.harness.notebook.state import Place, UserState, holds_tracer
from jaxmeter.harness.notebook.tracing import LostChangesError, describe_lost
from jaxmeter.harness.programs.arguments import is_traced
from jaxmeter.harness.programs.modes import Prepared, make_wait
from jaxmeter.harness.programs.older_jax import copy_array, find_type
from jaxmeter.harness.record import AS_GIVEN

WHOLE = "result"
"""In `carry`: the whole result takes the place of the argument."""

Key = int | str
Carry = Mapping[Key, int | str]
"""Argument, by place or name -> which output takes its place in the next call: an index, or the whole result."""


class CarryError(ValueError):
    """`carry=` names an argument or an output that is not there."""


@dataclass
class Call:
    """One call with its arguments, to be repeated.

    Args:
      function: Called as it is.
      state: All that calls may change in place; it was kept.
      carry: What the user says goes from one call to the next.
      is_eager: Whether operations run one by one, so that a result can be ready before what was changed in place.
      names: Of the positional arguments, as far as they are known.
      is_consumed: Whether a call takes the memory of any array; known after the first call, as the following.
      taken: Arguments that cannot be used again.
      updates: Places of the state that a call changes.
      updated: Names of what it changes there.
      threads: Argument -> output that takes its place in the next call.
      count: Calls so far.
    """

    function: Callable[..., Any]
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    state: UserState
    carry: Carry
    is_eager: bool
    names: tuple[str, ...] = ()
    is_consumed: bool = False
    taken: tuple[Key, ...] = ()
    updates: tuple[Place, ...] = ()
    updated: tuple[str, ...] = ()
    threads: dict[Key, int | str] = field(default_factory=dict)
    count: int = 0
    _prepared: Prepared | None = None

    def reset(self) -> None:
        """Begin again with state and arguments as the user passed them. Before the first call that does so itself."""
        if self._prepared is not None:
            self._prepared.reset()

    def __call__(self) -> Any:
        """Call once. The first call, with copies, finds out what a call takes and what it changes."""
        self.count += 1
        if self._prepared is None:
            result = self._call_first()
            self._prepared = self.prepare()
            return result
        renew = self._prepared.renew
        return self._prepared.call(*(self._prepared.args if renew is None else renew()))

    def thread(
        self, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Arguments of the next call: outputs of this one take the places of what they follow."""
        outputs = result if isinstance(result, tuple) else (result,)
        chosen = {key: outputs[index] if isinstance(index, int) else result for key, index in self.threads.items()}
        return (
            tuple(chosen.get(place, arg) for place, arg in enumerate(args)),
            {name: chosen.get(name, arg) for name, arg in kwargs.items()},
        )

    def prepare(self) -> Prepared:
        """Return the call as it is timed, with nothing around it that is not needed; after the first call.

        It goes on from what was called before, until it is reset.
        """
        wait = self._make_wait()
        if self.threads:
            loop = _Loop(self)
            return Prepared(loop, (), wait, reset=loop.reset)
        if self.taken:
            args = self.args, self.kwargs
            return Prepared(self._apply, args, wait, reset=self.state.put_back, renew=self.take_copies)
        # A call that takes memory here has put something else in its place, as an optimizer does.
        reset: Callable[[], Any] = self.take_copies if self.is_consumed else self.state.put_back
        call = partial(self.function, **self.kwargs) if self.kwargs else self.function
        return Prepared(call, self.args, wait, reset=reset)

    def list_updates(self, names: Collection[str]) -> dict[str, Any]:
        """Arrays that were changed in place since the state was put back, by name."""
        return {
            name + jax.tree_util.keystr(path): leaf
            for _, name, value in self.state.list_changed()
            if name in names
            for path, leaf in self._list_arrays(value)
        }

    def _list_arrays(self, value: Any) -> Iterator[tuple[Any, Any]]:
        """Arrays of a value with their paths; without those of objects inside, which are places of their own."""
        for path, leaf in jax.tree_util.tree_leaves_with_path(
            value, is_leaf=lambda item: id(item) in self.state.owners
        ):
            if isinstance(leaf, jax.Array | numpy.ndarray):
                yield path, leaf

    def take_copies(self) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Put state back, and return the arguments, all with arrays in memory of their own."""
        return self._copy_all()[0]

    def _apply(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        return self.function(*args, **kwargs)

    def _copy_all(self) -> tuple[tuple[tuple[Any, ...], dict[str, Any]], list[Any]]:
        copies: dict[int, Any] = {}

        def copy_leaf(leaf: Any) -> Any:
            if not isinstance(leaf, jax.Array):
                return leaf
            if id(leaf) not in copies:
                copies[id(leaf)] = copy_array(leaf)
            return copies[id(leaf)]

        def copy_tree(value: Any) -> Any:
            # What is inside an object of the state is replaced there.
            return jax.tree.map(copy_leaf, value, is_leaf=lambda item: id(item) in self.state.owners)

        self.state.put_back(copy_tree)
        taken = tuple(map(copy_tree, self.args)), {name: copy_tree(arg) for name, arg in self.kwargs.items()}
        jax.block_until_ready(list(copies.values()))
        return taken, list(copies.values())

    def _call_first(self) -> Any:
        (args, kwargs), copies = self._copy_all()
        result = jax.block_until_ready(self.function(*args, **kwargs))
        self.is_consumed = any(map(_is_gone, copies))
        items: list[tuple[Key, Any]] = [*enumerate(args), *kwargs.items()]
        self.taken = tuple(key for key, arg in items if any(map(_is_gone, jax.tree.leaves(arg))))
        # A copy that took the place of the user's own array is no change, and what is returned is compared there.
        known = set(map(id, [*copies, *jax.tree.leaves(result)]))
        changes = list(self.state.list_changed())
        if traced := [name for _, name, value in changes if holds_tracer(value)]:
            self.state.put_back()
            raise LostChangesError(describe_lost(describe_callable(self.function).name, traced))
        changed = [
            (place, name)
            for place, name, value in changes
            if any(id(leaf) not in known for _, leaf in self._list_arrays(value))
        ]
        self.updates = tuple({id(place): place for place, _ in changed}.values())
        self.updated = tuple(name for _, name in changed)
        self.threads = self._find_threads(result)
        return result

    def _make_wait(self) -> Callable[[Any], Any]:
        wait = make_wait()
        if not self.updates:
            return wait
        places, is_eager = self.updates, self.is_eager

        def wait_for_all(result: Any) -> Any:
            wait(result)
            # One program is ready as a whole; of eager code the result can be ready first.
            if is_eager or not any(isinstance(leaf, jax.Array) for leaf in jax.tree.leaves(result)):
                jax.block_until_ready([place.read() for place in places])
            return result

        return wait_for_all

    def _find_threads(self, result: Any) -> dict[Key, int | str]:
        """Which output follows which argument: as the user says, else the one output of the same form."""
        outputs = result if isinstance(result, tuple) else (result,)
        threads = self._read_carry(len(outputs))
        originals: dict[Key, Any] = dict([*enumerate(self.args), *self.kwargs.items()])
        for key in self.taken or ():
            if key in threads:
                continue
            wanted = _describe_form(originals[key])
            fitting: list[int | str] = [place for place, out in enumerate(outputs) if _describe_form(out) == wanted]
            if not fitting and _describe_form(result) == wanted:
                fitting = [WHOLE]
            if len(fitting) == 1 and fitting[0] not in threads.values():
                threads[key] = fitting[0]
        # All of them or none: a call that lacks one argument cannot be repeated.
        return threads if set(self.taken or ()) <= set(threads) else {}

    def _read_carry(self, count: int) -> dict[Key, int | str]:
        known: dict[Key, Key] = {place: place for place in range(len(self.args))}
        known |= {name: place for place, name in enumerate(self.names[: len(self.args)])}
        known |= {name: name for name in self.kwargs}
        threads: dict[Key, int | str] = {}
        for key, output in self.carry.items():
            if key not in known:
                there = ", ".join(name for name in known if isinstance(name, str)) or f"0 to {len(self.args) - 1}"
                raise CarryError(f"carry= names the argument {key!r}; the call has {there}")
            if output != WHOLE and not (isinstance(output, int) and 0 <= output < count):
                raise CarryError(
                    f"carry= gives {key!r} the output {output!r}; outputs are 0 to {count - 1}, or {WHOLE!r} for all"
                )
            threads[known[key]] = output
        return threads


class _Loop:
    """Calls that each begin with what the last one returned."""

    def __init__(self, call: Call) -> None:
        self._call, self._function = call, call.function
        self._next: tuple[tuple[Any, ...], dict[str, Any]] | None = None

    def reset(self) -> None:
        self._next = None  # what it held is free before more is taken
        self._next = self._call.take_copies()

    def __call__(self) -> Any:
        if self._next is None:
            self.reset()
        args, kwargs = self._next or ((), {})
        result = self._function(*args, **kwargs)
        self._next = self._call.thread(args, kwargs, result)
        return result


def _is_gone(leaf: Any) -> bool:
    return isinstance(leaf, jax.Array) and leaf.is_deleted()


def _describe_form(tree: Any) -> Any:
    """Structure, shapes and dtypes; None where there is no array."""
    leaves, form = jax.tree.flatten(tree)
    if not any(isinstance(leaf, jax.Array) for leaf in leaves):
        return None
    return form, tuple(map(_describe_leaf, leaves))


def _describe_leaf(leaf: Any) -> Any:
    """Shape and dtype as a program has them: a step that is a Python int at first is an array of int32 afterwards."""
    if not is_traced(leaf):
        return type(leaf)
    kind = find_type(leaf)
    return kind.shape, str(kind.dtype)


CALLABLE_MODES = (AS_GIVEN, *MODES)
"""How a callable of a user can be executed."""

SHOWN = "as given"
"""How a person reads and writes the mode `as_given`."""


@dataclass(frozen=True)
class Given:
    """A callable as a user passes it.

    Args:
      name: For the table.
      function: What is called, exactly as the user would.
      base: The function or transformed callable that decides, without what is bound to it.
      bound: Positional arguments that come before those of the call, such as `self`.
      keywords: Keyword arguments of a `functools.partial`.
      plain: The function without its transformation, with what is bound; None where there is none.
      args: Positional arguments of its own; None where it takes those of the measurement.
    """

    name: str
    function: Callable[..., Any]
    base: Any
    bound: tuple[Any, ...]
    keywords: dict[str, Any]
    plain: Callable[..., Any] | None
    args: tuple[Any, ...] | None = None

    @property
    def is_transformed(self) -> bool:
        """Whether the callable decides itself how it is compiled: `jax.jit`, `nnx.jit`, `pmap`, a compiled program."""
        return hasattr(self.base, "lower") or is_program(self.base)

    @property
    def has_stages(self) -> bool:
        """Whether it can be traced or lowered by itself."""
        return hasattr(self.base, "lower")

    @property
    def modes(self) -> tuple[str, ...]:
        """All modes that it can be measured in."""
        if not self.is_transformed:
            return MODES
        return (AS_GIVEN,) if self.plain is None else CALLABLE_MODES

    def choose_modes(self, asked: tuple[str, ...] | None) -> tuple[str, ...]:
        """Return the modes to measure it in: exactly those that are asked for and that it has, in their order.

        A function without a transformation is called as given where it is called eagerly.

        Raises:
          ValueError: It has none of the modes that are asked for.
        """
        if asked is None:
            return tuple(mode for mode in self.modes if not self.is_transformed or mode != "aot")
        own = asked if self.is_transformed else tuple("eager" if mode == AS_GIVEN else mode for mode in asked)
        chosen = tuple(dict.fromkeys(mode for mode in own if mode in self.modes))
        if not chosen:
            raise ValueError(
                f"modes= names {show_modes(asked)}, and '{self.name}' has only the mode {show_modes(self.modes)}: "
                "no function without its transformation can be called; add 'as given' to modes="
            )
        return chosen

    def describe_modes(self, asked: tuple[str, ...] | None) -> str:
        """Say which of the modes that are asked for it does not have, or how it is called instead; empty if none."""
        if asked is None:
            return ""
        if not self.is_transformed:
            return f"{self.name} has no transformation: as given, it is eager" if AS_GIVEN in asked else ""
        missing = tuple(mode for mode in asked if mode not in self.modes)
        if not missing:
            return ""
        return f"{self.name} is not measured in {show_modes(missing)}: it has no function without its transformation"


def show_modes(modes: Iterable[str]) -> str:
    """Return modes as a person reads them: `as given, jit`."""
    return ", ".join(SHOWN if mode == AS_GIVEN else mode for mode in modes)


def is_program(base: Any) -> bool:
    """Whether it is a compiled program."""
    return hasattr(base, "memory_analysis") or hasattr(base, "runtime_executable")


def describe_callable(function: Any, name: str | None = None) -> Given:
    """What a callable is.

    Raises:
      TypeError: It cannot be called, or calling it does nothing until its result is read.
    """
    if not callable(function):
        hint = "; measure its .call" if hasattr(function, "call") else ""
        hint = "; measure its .compile()" if hasattr(function, "compile") else hint
        raise TypeError(f"a function is measured; got {type(function).__name__}, which cannot be called{hint}")
    base, bound, keywords = function, tuple[Any, ...](), dict[str, Any]()
    for _ in range(10):
        if isinstance(base, functools.partial):
            bound, keywords, base = (*base.args, *bound), {**base.keywords, **keywords}, base.func
        elif isinstance(base, MethodType):
            bound, base = (base.__self__, *bound), base.__func__
        elif (cached := _find_cached(base)) is not None:
            bound, base = (*cached, *bound), base.__wrapped__
        elif not hasattr(base, "lower") and hasattr(vars(type(base)).get("__call__"), "lower"):
            bound, base = (base, *bound), vars(type(base))["__call__"]
        else:
            break
    inner = inspect.unwrap(base)
    for what, is_one in (
        ("a generator", inspect.isgeneratorfunction),
        ("a coroutine", inspect.iscoroutinefunction),
        ("an asynchronous generator", inspect.isasyncgenfunction),
    ):
        if is_one(inner):
            raise TypeError(
                f"{_find_name(function, base)} returns {what}: nothing runs until it is read; "
                "measure a function that returns arrays"
            )
    wrapped = getattr(base, "__wrapped__", None)
    # The function inside pmap is a program for one device, and no other way to run the same.
    has_plain = hasattr(base, "lower") and callable(wrapped) and not _is_per_device(base)
    return Given(
        name=name or _find_name(function, base),
        function=function,
        base=base,
        bound=bound,
        keywords=keywords,
        plain=partial(wrapped, *bound, **keywords) if has_plain and wrapped is not None else None,
    )


def _find_cached(base: Any) -> tuple[Any, ...] | None:
    """Arguments that `nnx.cached_partial` has bound, as it hands them on; None of other callables."""
    if not isinstance(base, FunctionType) or not base.__globals__.get("__name__", "").startswith("flax.nnx"):
        return None
    cells = dict(zip(base.__code__.co_freevars, base.__closure__ or (), strict=True))
    return tuple(cells["cached_args"].cell_contents) if "cached_args" in cells and "f" in cells else None


def _is_per_device(base: Any) -> bool:
    return "pmap" in f"{type(base).__qualname__} {getattr(base.lower, '__qualname__', '')}".lower()


def _find_name(function: Any, base: Any) -> str:
    for item in (function, base):
        if isinstance(name := getattr(item, "__name__", None), str) and name != "__call__":
            return name
    return "compiled" if is_program(base) else type(function).__name__
