"""State that a user's code may change in place: found, kept once before measuring, and put back once after.

These are kept: the contents of dictionaries, lists, sets, objects and the user's own classes, and the numbers of
NumPy's arrays and JAX's references. In addition, the states of random generators, and the variables that the function's
code rebinds. JAX's arrays cannot change, so only references to them are kept, which takes no memory.
"""

from __future__ import annotations

import random
import re
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from types import BuiltinFunctionType, CodeType, FunctionType, GenericAlias, MethodType, ModuleType
from typing import Any

import jax
import numpy

from jaxmeter.harness.notebook.variables import (
    LIBRARIES,
    Variables,
    empty_slot,
    fill,
    fill_slot,
    get_own,
    has,
    is_equal,
    is_own_class,
    is_same_dict,
    is_same_list,
    is_same_random,
    list_differences,
    list_own_classes,
    list_slots,
    make_generator_access,
    map_contents,
    refill,
)
from jaxmeter.harness.programs.arguments import find_argument_names

LARGEST_REACHED_BYTES = 64 * 2**20
"""Of state that is reached only through the function's own variables: it is copied though nobody passed it."""

MOST_OBJECTS = 200_000
"""Objects that are searched for state: about a second. More are no state of a training step but somebody's data."""

_ATOMS = (
    str,
    bytes,
    int,
    float,
    complex,
    bool,
    type(None),
    ModuleType,
    BuiltinFunctionType,
    CodeType,
    GenericAlias,
)


class StateError(Exception):
    """State cannot be kept, so nothing is run; the message names the object and says what to do."""


@dataclass
class Place:
    """One object whose contents may change.

    Args:
      name: How a person reaches it.
      read: Its contents, copied as far as they can change in place.
      write: Puts contents back.
      is_ref: Whether it is a reference of JAX, which compiled programs change as eager code does.
      is_random: Whether it is a generator of random numbers outside JAX.
    """

    name: str
    read: Callable[[], Any]
    write: Callable[[Any], None]
    is_same: Callable[[Any, Any], bool]
    is_ref: bool = False
    is_random: bool = False
    contents: Any = None


@dataclass
class UserState:
    """All that a call may change in place.

    Args:
      places: In the order in which they are found.
      owners: Ids of the objects that the places belong to.
    """

    places: list[Place] = field(default_factory=list)
    owners: set[int] = field(default_factory=set)
    _seen: dict[int, Any] = field(default_factory=dict)
    _callables: list[Any] = field(default_factory=list)
    _reached_bytes: int | None = None

    @classmethod
    def of_calls(cls, calls: Sequence[tuple[Callable[..., Any], tuple[Any, ...], dict[str, Any]]]) -> UserState:
        """What calls may change: their arguments, the object of a method, and own variables.

        Args:
          calls: Functions with their positional and keyword arguments.
        Raises:
          StateError: It is too large to be copied, or to be searched.
        """
        state = cls()
        for function, args, kwargs in calls:
            names = find_argument_names(function)
            for place, arg in enumerate(args):
                state._find(arg, names[place] if place < len(names) else f"argument {place}")
            for name, arg in kwargs.items():
                state._find(arg, name)
        for function, _, _ in calls:
            state._find(function, "")
        state._reached_bytes = 0
        variables = Variables([function for function, _, _ in calls])
        while variables.waiting or state._callables:
            variables.waiting += state._callables
            state._callables = []
            for name, value in variables.read_code(filter(_is_own, state._seen.values())):
                state._find(value, name)
        for binding in variables.bindings.values():
            state._add(binding.holder, "", binding.read, binding.write, is_same_dict)
        return state

    def keep(self) -> None:
        """Keep the current contents of each `Place`."""
        for place in self.places:
            place.contents = place.read()

    def put_back(self, fresh: Callable[[Any], Any] | None = None) -> None:
        """Puts back what was kept, where anything has changed.

        Args:
          fresh: A kept value -> the same with arrays in memory of their own, which a call may take.
        """
        for place in self.places:
            if fresh is not None:
                place.write(map_contents(place.contents, fresh))
            elif not place.is_same(place.contents, place.read()):
                place.write(place.contents)

    def drop_tracers(self, changed: Sequence[tuple[Place, str, Any]] | None = None) -> None:
        """Put back what holds values of a trace, within the trace: nothing outside of it can use them.

        Args:
          changed: What is changed by now, where that is known.
        """
        changed = list(self.list_changed(in_trace=True)) if changed is None else changed
        traced = [place for place, _, value in changed if holds_tracer(value)]
        for place in {id(place): place for place in traced}.values():
            place.write(place.contents)

    def list_changed(self, *, in_trace: bool = False) -> Iterator[tuple[Place, str, Any]]:
        """Places that do not hold what was kept, with the name and the value of each change.

        Args:
          in_trace: Whether JAX traces now: reading a reference would be a step of the traced program.
        """
        for place in self.places:
            if in_trace and place.is_ref:
                continue
            now = place.read()
            if not place.is_same(place.contents, now):
                yield from ((place, name, value) for name, value in list_differences(place.name, place.contents, now))

    def _find(self, root: Any, name: str) -> None:
        waiting = deque([(root, name)])
        while waiting:
            item, name = waiting.popleft()
            if id(item) in self._seen or isinstance(item, _ATOMS):
                continue
            self._seen[id(item)] = item  # so that no other object gets its id
            if len(self._seen) > MOST_OBJECTS:
                raise StateError(
                    f"'{re.split(r'[.[]', name)[0]}' holds more than {MOST_OBJECTS:,} objects, too many to save and "
                    "restore; nothing was run; pass the arrays that the function needs as arguments"
                )
            waiting.extend(self._visit(item, name))

    def _visit(self, item: Any, name: str) -> list[tuple[Any, str]]:
        """Notes what of an object can change; returns what is inside it."""
        match item:
            case numpy.ndarray():
                if item.flags.writeable:
                    self._count(item.nbytes, name)
                    self._add(item, name, item.copy, lambda kept: numpy.copyto(item, kept), is_equal)
                return []
            case jax.Ref():
                self._count(item.size * item.dtype.itemsize, name)
                read, write = lambda: jax.numpy.copy(item[...]), lambda kept: item.__setitem__(..., kept)
                self._add(item, name, read, write, is_equal, is_ref=True)
                return []
            case bytearray():
                self._count(len(item), name)
                self._add(
                    item, name, lambda: bytes(item), lambda kept: item.__setitem__(slice(None), kept), bytes.__eq__
                )
                return []
            case random.SystemRandom():  # the operating system's, which has no state
                return []
            case numpy.random.Generator() | numpy.random.RandomState() | random.Random():
                self._add(item, name, *make_generator_access(item), is_same_random, is_random=True)
                return []
            case jax.Array():
                return []
            case dict():
                self._add(item, name, lambda: dict(item), lambda kept: refill(item, kept), is_same_dict)
                return [(value, f"{name}[{key!r}]") for key, value in item.items()]
            case list() | deque():
                self._add(item, name, lambda: list(item), lambda kept: fill(item, kept), is_same_list)
                return [(value, f"{name}[{place}]") for place, value in enumerate(item)]
            case set():
                self._add(item, name, lambda: set(item), lambda kept: refill(item, kept), set.__eq__)
                return []
            case tuple() | frozenset():
                return [(value, f"{name}[{place}]") for place, value in enumerate(item)]
            case MethodType():
                return [(item.__self__, name or type(item.__self__).__name__), (item.__func__, name)]
            case FunctionType():
                self._callables.append(item)
                return []
            case type():
                return self._visit_class(item) if is_own_class(item) else []
        partial_parts = [getattr(item, part, None) for part in ("func", "args", "keywords")]
        if type(item).__module__ == "functools" and partial_parts[0] is not None:
            return [(part, name) for part in partial_parts]
        if callable(item) and hasattr(item, "__wrapped__"):
            self._callables.append(item)
        if type(item).__module__.partition(".")[0] in LIBRARIES:
            return []
        return self._visit_object(item, name or type(item).__name__)

    def _visit_object(self, item: Any, name: str) -> list[tuple[Any, str]]:
        slots = [slot for kind in type(item).__mro__ for slot in list_slots(kind)]
        own = get_own(item)

        def read() -> dict[str, Any]:
            return {slot: object.__getattribute__(item, slot) for slot in slots if has(item, slot)} | get_own(item)

        def write(kept: dict[str, Any]) -> None:
            attributes = get_own(item)
            for slot in slots:
                if slot in kept:
                    fill_slot(item, slot, kept[slot])
                elif has(item, slot):
                    empty_slot(item, slot)
            attributes.clear()
            attributes.update({name: value for name, value in kept.items() if name not in slots})

        if slots or own:
            self._add(item, name, read, write, is_same_dict)
        classes = [(kind, kind.__name__) for kind in list_own_classes(type(item))]
        return [*((value, f"{name}.{attribute}") for attribute, value in read().items()), *classes]

    def _visit_class(self, kind: type) -> list[tuple[Any, str]]:
        def read() -> dict[str, Any]:
            return {name: value for name, value in vars(kind).items() if not name.startswith("__")}

        def write(kept: dict[str, Any]) -> None:
            now = read()
            for name in now.keys() - kept.keys():
                type.__delattr__(kind, name)
            for name, value in kept.items():
                # Setting an attribute of a class invalidates Python's caches of it, which costs the next call time.
                if name not in now or now[name] is not value:
                    type.__setattr__(kind, name, value)

        self._add(kind, kind.__name__, read, write, is_same_dict)
        return [(value, f"{kind.__name__}.{attribute}") for attribute, value in read().items()]

    def _count(self, size: int, name: str) -> None:
        if self._reached_bytes is None:
            return
        self._reached_bytes += size
        if self._reached_bytes > LARGEST_REACHED_BYTES:
            raise StateError(
                f"the function uses '{name}', which it could change in place; its variables exceed "
                f"{LARGEST_REACHED_BYTES // 2**20} MB with it; nothing was run; pass it as an argument"
            )

    def _add(
        self,
        item: Any,
        name: str,
        read: Callable[[], Any],
        write: Callable[[Any], Any],
        is_same: Callable[[Any, Any], bool],
        *,
        is_ref: bool = False,
        is_random: bool = False,
    ) -> None:
        self.owners.add(id(item))
        self.places.append(Place(name, read, write, is_same, is_ref, is_random))


def holds_tracer(value: Any) -> bool:
    """Whether a value of a trace is among the leaves."""
    return any(isinstance(leaf, jax.core.Tracer) for leaf in jax.tree.leaves(value))


def _is_own(item: Any) -> bool:
    return isinstance(item, type) and is_own_class(item)
