"""State that a user's code may change in place: found, kept once before measuring, and put back once after.

What is kept: the contents of dictionaries, lists, sets and objects, and the numbers of NumPy's arrays and JAX's
references. JAX's arrays cannot change, so of these the reference is kept, which takes no memory.
"""

from __future__ import annotations

import inspect
import re
import sys
import sysconfig
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from types import BuiltinFunctionType, CodeType, FunctionType, GenericAlias, MethodType, ModuleType
from typing import Any

import jax
import numpy

from harness.programs.static_leaves import find_argument_names

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
    type,
    ModuleType,
    BuiltinFunctionType,
    CodeType,
    GenericAlias,
)
_LIBRARIES = {"jax", "jaxlib", "numpy", "builtins", *sys.stdlib_module_names}
"""Whose objects hold no state of a user's, but for containers."""


class StateError(Exception):
    """State cannot be kept, so nothing is run; the message names the object and says what to do."""


@dataclass
class Place:
    """One object whose contents may change.

    Args:
      name: How a person reaches it.
      read: Its contents, copied as far as they can change in place.
      write: Puts contents back.
    """

    name: str
    read: Callable[[], Any]
    write: Callable[[Any], None]
    is_same: Callable[[Any, Any], bool]
    contents: Any = None


@dataclass
class State:
    """All that a call may change in place.

    Args:
      places: In the order in which they are found.
      owners: Ids of the objects that the places belong to.
    """

    places: list[Place] = field(default_factory=list)
    owners: set[int] = field(default_factory=set)
    _seen: dict[int, Any] = field(default_factory=dict)
    _reached_bytes: int | None = None

    @classmethod
    def of_call(cls, functions: Sequence[Callable[..., Any]], args: tuple[Any, ...], kwargs: dict[str, Any]) -> State:
        """What calls with these arguments may change: the arguments, the object of a method, and own variables.

        Raises:
          StateError: It is too large to be copied, or to be searched.
        """
        state = cls()
        names = find_argument_names(functions[0])
        for place, arg in enumerate(args):
            state._find(arg, names[place] if place < len(names) else f"argument {place}")
        for name, arg in kwargs.items():
            state._find(arg, name)
        for function in functions:
            state._find(function, "")
        state._reached_bytes = 0
        for function in functions:
            for name, variable in list_variables(function):
                state._find(variable, name)
        return state

    def keep(self) -> None:
        """Keeps what all places hold now."""
        for place in self.places:
            place.contents = place.read()

    def put_back(self, fresh: Callable[[Any], Any] | None = None) -> None:
        """Puts back what was kept, where anything has changed.

        Args:
          fresh: A kept value -> the same with arrays in memory of their own, which a call may take.
        """
        for place in self.places:
            if fresh is not None:
                place.write(_map_contents(place.contents, fresh))
            elif not place.is_same(place.contents, place.read()):
                place.write(place.contents)

    def list_changed(self) -> Iterator[tuple[Place, str, Any]]:
        """Places that do not hold what was kept, with the name and the value of each change."""
        for place in self.places:
            now = place.read()
            if not place.is_same(place.contents, now):
                yield from ((place, name, value) for name, value in _list_differences(place.name, place.contents, now))

    def _find(self, root: Any, name: str) -> None:
        waiting = deque([(root, name)])
        while waiting:
            item, name = waiting.popleft()
            if id(item) in self._seen or isinstance(item, _ATOMS):
                continue
            self._seen[id(item)] = item  # so that no other object gets its id
            if len(self._seen) > MOST_OBJECTS:
                raise StateError(
                    f"'{re.split(r'[.[]', name)[0]}' holds more than {MOST_OBJECTS:,} objects, too many to keep and to "
                    "put back; nothing was run; pass the arrays that the function needs as arguments"
                )
            waiting.extend(self._look(item, name))

    def _look(self, item: Any, name: str) -> list[tuple[Any, str]]:
        """Notes what of an object can change; returns what is inside it."""
        match item:
            case numpy.ndarray():
                if item.flags.writeable:
                    self._count(item.nbytes, name)
                    self._add(item, name, item.copy, lambda kept: numpy.copyto(item, kept), _is_equal)
                return []
            case jax.Ref():
                self._count(item.size * item.dtype.itemsize, name)
                self._add(
                    item, name, lambda: jax.numpy.copy(item[...]), lambda kept: item.__setitem__(..., kept), _is_equal
                )
                return []
            case jax.Array():
                return []
            case dict():
                self._add(item, name, lambda: dict(item), lambda kept: _refill(item, kept), _is_same_dict)
                return [(value, f"{name}[{key!r}]") for key, value in item.items()]
            case list() | deque():
                self._add(item, name, lambda: list(item), lambda kept: _fill(item, kept), _is_same_list)
                return [(value, f"{name}[{place}]") for place, value in enumerate(item)]
            case set():
                self._add(item, name, lambda: set(item), lambda kept: _refill(item, kept), set.__eq__)
                return []
            case tuple() | frozenset():
                return [(value, f"{name}[{place}]") for place, value in enumerate(item)]
            case MethodType():
                return [(item.__self__, name or type(item.__self__).__name__), (item.__func__, name)]
            case FunctionType():
                return []
        partial_parts = [getattr(item, part, None) for part in ("func", "args", "keywords")]
        if type(item).__module__ == "functools" and partial_parts[0] is not None:
            return [(part, name) for part in partial_parts]
        if type(item).__module__.partition(".")[0] in _LIBRARIES:
            return []
        return self._look_at_object(item, name or type(item).__name__)

    def _look_at_object(self, item: Any, name: str) -> list[tuple[Any, str]]:
        slots = [slot for kind in type(item).__mro__ for slot in _list_slots(kind)]
        own = _get_own(item)

        def read() -> dict[str, Any]:
            found = {slot: object.__getattribute__(item, slot) for slot in slots if _has(item, slot)}
            return {**found, **_get_own(item)}

        def write(kept: dict[str, Any]) -> None:
            attributes = _get_own(item)
            for slot in slots:
                if slot in kept:
                    object.__setattr__(item, slot, kept[slot])
                elif _has(item, slot):
                    object.__delattr__(item, slot)
            attributes.clear()
            attributes.update({name: value for name, value in kept.items() if name not in slots})

        if slots or own:
            self._add(item, name, read, write, _is_same_dict)
        return [(value, f"{name}.{attribute}") for attribute, value in read().items()]

    def _count(self, size: int, name: str) -> None:
        if self._reached_bytes is None:
            return
        self._reached_bytes += size
        if self._reached_bytes > LARGEST_REACHED_BYTES:
            raise StateError(
                f"the function uses '{name}', which it could change in place; with it its variables hold more than "
                f"{LARGEST_REACHED_BYTES // 2**20} MB; nothing was run; pass it as an argument"
            )

    def _add(
        self,
        item: Any,
        name: str,
        read: Callable[[], Any],
        write: Callable[[Any], Any],
        is_same: Callable[[Any, Any], bool],
    ) -> None:
        self.owners.add(id(item))
        self.places.append(Place(name, read, write, is_same))


def list_variables(function: Callable[..., Any]) -> Iterator[tuple[str, Any]]:
    """Names and values of the variables that a callable uses, and the user's own functions that it calls, use."""
    waiting, seen = [function], set[int]()
    while waiting:
        item = _find_function(waiting.pop())
        if item is None or id(item) in seen or _is_of_library(item):
            continue
        seen.add(id(item))
        try:
            variables = inspect.getclosurevars(item)
        except (TypeError, ValueError):
            continue
        for name, value in {**variables.globals, **variables.nonlocals}.items():
            if _find_function(value) is not None:
                waiting.append(value)
            if not isinstance(value, FunctionType):
                yield name, value


def _find_function(item: Any) -> FunctionType | None:
    """The Python function that a callable runs; None where there is none."""
    for _ in range(10):
        if isinstance(item, FunctionType) and not hasattr(item, "__wrapped__"):
            return item
        if isinstance(item, MethodType):
            item = item.__func__
        elif type(item).__module__ == "functools" and hasattr(item, "func"):
            item = item.func
        elif callable(getattr(item, "__wrapped__", None)):
            item = item.__wrapped__
        elif isinstance(item, FunctionType):
            return item
        elif not isinstance(item, type) and isinstance(vars(type(item)).get("__call__"), FunctionType):
            item = vars(type(item))["__call__"]
        else:
            return None
    return None


_LIBRARY_FOLDERS = tuple(sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib"))


def _is_of_library(function: FunctionType) -> bool:
    file = function.__code__.co_filename
    return "site-packages" in file or file.startswith(("<frozen", *_LIBRARY_FOLDERS))


def _list_slots(kind: type) -> tuple[str, ...]:
    slots = kind.__dict__.get("__slots__", ())
    names = (slots,) if isinstance(slots, str) else tuple(slots)
    return tuple(name for name in names if name not in ("__dict__", "__weakref__"))


def _has(item: Any, slot: str) -> bool:
    with suppress(AttributeError):
        object.__getattribute__(item, slot)
        return True
    return False


def _get_own(item: Any) -> dict[str, Any]:
    with suppress(AttributeError):
        own = object.__getattribute__(item, "__dict__")
        return own if isinstance(own, dict) else {}
    return {}


def _fill(item: Any, kept: list[Any]) -> None:
    item.clear()
    item.extend(kept)


def _refill(item: Any, kept: Any) -> None:
    item.clear()
    item.update(kept)


def _is_same_dict(one: dict[Any, Any], other: dict[Any, Any]) -> bool:
    return list(one) == list(other) and all(value is other[key] for key, value in one.items())


def _is_same_list(one: list[Any], other: list[Any]) -> bool:
    return len(one) == len(other) and all(map(lambda left, right: left is right, one, other))


def _is_equal(one: Any, other: Any) -> bool:
    return bool(numpy.asarray(one).tobytes() == numpy.asarray(other).tobytes())


def _map_contents(contents: Any, change: Callable[[Any], Any]) -> Any:
    if isinstance(contents, dict):
        return {key: change(value) for key, value in contents.items()}
    if isinstance(contents, list):
        return [change(value) for value in contents]
    return contents


def _list_differences(name: str, before: Any, now: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(before, dict) and isinstance(now, dict):
        for key, value in now.items():
            if key not in before or before[key] is not value:
                yield f"{name}.{key}", value
    else:
        yield name, now
