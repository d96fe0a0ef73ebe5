"""State that a user's code may change: variables and objects, found, kept before measuring, and put back after."""

from __future__ import annotations

import copy
import dis
import random
import re
import sys
import sysconfig
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from types import (
    BuiltinFunctionType,
    CellType,
    CodeType,
    FunctionType,
    GenericAlias,
    MemberDescriptorType,
    MethodType,
    ModuleType,
)
from typing import Any

import jax
import numpy

from jaxmeter.harness.programs.arguments import find_argument_names

LIBRARIES = {"jax", "jaxlib", "numpy", "builtins", *sys.stdlib_module_names}
"""Whose objects hold no state of a user's, but for containers."""

_LIBRARY_FOLDERS = tuple(sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib"))

_LOADS = ("LOAD_GLOBAL", "LOAD_NAME", "LOAD_FROM_DICT_OR_GLOBALS")
_STORES = ("STORE_GLOBAL", "DELETE_GLOBAL")
_CELL_STORES = ("STORE_DEREF", "DELETE_DEREF")
_ATTRIBUTE_LOADS = ("LOAD_ATTR", "LOAD_METHOD", "LOAD_SUPER_ATTR")
_ATTRIBUTE_STORES = ("STORE_ATTR", "DELETE_ATTR")


@dataclass(frozen=True)
class Binding:
    """One variable that code binds to another value.

    Args:
      name: How the code names it.
      holder: The module's variables, or the cell of a closure.
    """

    name: str
    holder: dict[str, Any] | CellType
    key: str = ""

    @property
    def identity(self) -> tuple[int, str]:
        """What two bindings of one variable have in common."""
        return id(self.holder), self.key

    def read(self) -> dict[str, Any]:
        """The value by the variable's name; empty where it has none."""
        if isinstance(self.holder, dict):
            return {self.name: self.holder[self.key]} if self.key in self.holder else {}
        try:
            return {self.name: self.holder.cell_contents}
        except ValueError:  # the cell is empty
            return {}

    def write(self, kept: Mapping[str, Any]) -> None:
        """Bind the variable to what was read."""
        if isinstance(self.holder, dict):
            if kept:
                self.holder[self.key] = kept[self.name]
            else:
                self.holder.pop(self.key, None)
        elif kept:
            self.holder.cell_contents = kept[self.name]
        elif self.read():
            del self.holder.cell_contents


@dataclass
class Variables:
    """What the code of functions reaches, found step by step: a value that is found can have code of its own.

    Args:
      waiting: Callables whose code is not read yet.
      bindings: Variables that code rebinds, by identity.
    """

    waiting: list[Any]
    bindings: dict[tuple[int, str], Binding] = field(default_factory=dict)
    _attributes: set[str] = field(default_factory=lambda: {"__call__"})
    _functions: dict[int, FunctionType] = field(default_factory=dict)
    _methods: set[tuple[type, str]] = field(default_factory=set)

    def read_code(self, kinds: Iterable[type]) -> list[tuple[str, Any]]:
        """Read all code that is reached by now; return the names and values of the variables that are new.

        Args:
          kinds: The user's classes of what was found so far; methods of theirs that the code names are code, too.
        """
        variables: list[tuple[str, Any]] = []
        kinds = tuple(kinds)
        while self.waiting:
            while self.waiting:
                variables += self._read(self.waiting.pop())
            named = {(kind, name) for kind in kinds for name in self._attributes & vars(kind).keys()} - self._methods
            self._methods |= named
            self.waiting += [_unwrap_method(vars(kind)[name]) for kind, name in named]
        return variables

    def _read(self, item: Any) -> Iterator[tuple[str, Any]]:
        for function in list_functions(item):
            is_library = is_of_library(function.__code__.co_filename)
            # Of a library only wrappers, such as `nnx.cached_partial`, hold what is the user's.
            if id(function) in self._functions or (is_library and not hasattr(function, "__wrapped__")):
                continue
            self._functions[id(function)] = function  # so that no other function gets its id
            variables = dict(_list_cells(function))
            if not is_library:
                variables |= self._read_own(function, variables)
            for name, value in variables.items():
                if callable(value):
                    self.waiting.append(value)
                if not isinstance(value, FunctionType):
                    yield name, value

    def _read_own(self, function: FunctionType, cells: Mapping[str, Any]) -> dict[str, Any]:
        """Read a user's own function: note what it rebinds; return its globals and the variables of its modules."""
        namespace, used = function.__globals__, _Names.of(function.__code__)
        self._attributes |= used.attributes
        holders = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True))
        bindings = [Binding(name, holders[name]) for name in _find_stored_cells(function.__code__, frozenset(holders))]
        bindings += [Binding(name, namespace, name) for name in used.stored]
        values = {name: namespace[name] for name in used.loaded | used.stored if name in namespace}
        for name, module in {**values, **cells}.items():
            if not isinstance(module, ModuleType) or is_of_library(getattr(module, "__file__", None)):
                continue
            own = vars(module)
            bindings += [Binding(f"{name}.{item}", own, item) for item in used.stored_attributes]
            values |= {f"{name}.{item}": own[item] for item in used.attributes & own.keys()}
        self.bindings |= {binding.identity: binding for binding in bindings if binding.identity not in self.bindings}
        return values


@dataclass(frozen=True)
class _Names:
    """Names that a function's code uses, with the code of functions inside it."""

    loaded: frozenset[str]
    stored: frozenset[str]
    attributes: frozenset[str]
    stored_attributes: frozenset[str]

    @classmethod
    def of(cls, code: CodeType) -> _Names:
        instructions = [item for inner in _walk_code(code) for item in dis.get_instructions(inner)]

        def find(*operations: str) -> frozenset[str]:
            return frozenset(item.argval for item in instructions if item.opname in operations)

        return cls(find(*_LOADS), find(*_STORES), find(*_ATTRIBUTE_LOADS), find(*_ATTRIBUTE_STORES))


def _walk_code(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _walk_code(constant)


def _find_stored_cells(code: CodeType, names: frozenset[str]) -> frozenset[str]:
    """Which of the closure's cells the code binds, or the code of functions inside it."""
    own = names & frozenset(code.co_freevars)
    stored = {item.argval for item in dis.get_instructions(code) if item.opname in _CELL_STORES} & own
    inner = (_find_stored_cells(item, own) for item in code.co_consts if isinstance(item, CodeType))
    return frozenset(stored).union(*inner) if own else frozenset()


def _list_cells(function: FunctionType) -> Iterator[tuple[str, Any]]:
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        try:
            yield name, cell.cell_contents
        except ValueError:  # the cell is empty
            continue


def list_functions(item: Any) -> Iterator[FunctionType]:
    """Python functions that a callable runs: wrappers, and the function inside them."""
    for _ in range(10):
        if isinstance(item, FunctionType):
            yield item
        if isinstance(item, MethodType):
            item = item.__func__
        elif type(item).__module__ == "functools" and hasattr(item, "func"):
            item = item.func
        elif callable(getattr(item, "__wrapped__", None)):
            item = item.__wrapped__
        elif not isinstance(item, type | FunctionType) and isinstance(vars(type(item)).get("__call__"), FunctionType):
            item = vars(type(item))["__call__"]
        else:
            return


def list_own_classes(kind: type) -> list[type]:
    """A class with those that it inherits from, as far as they are the user's own."""
    return [base for base in kind.__mro__ if is_own_class(base)]


def is_own_class(kind: type) -> bool:
    """Whether a class is the user's own, of no library."""
    module = str(kind.__module__)
    if module.partition(".")[0] in LIBRARIES - {"__main__"}:
        return False
    return not is_of_library(getattr(sys.modules.get(module), "__file__", None) or "")


def is_of_library(file: str | None) -> bool:
    """Whether a file of code is a library's; of a module without a file too, which is Python's own."""
    return file is None or "site-packages" in file or file.startswith(("<frozen", *_LIBRARY_FOLDERS))


def _unwrap_method(method: Any) -> Callable[..., Any] | Any:
    if isinstance(method, staticmethod | classmethod):
        return method.__func__
    return method.fget if isinstance(method, property) else method


def make_generator_access(generator: Any) -> tuple[Callable[[], Any], Callable[[Any], Any]]:
    """How the state of a random generator is read and written; a tuple holds it, since no array of it is a variable."""
    match generator:
        case numpy.random.Generator():
            bits = generator.bit_generator
            return lambda: (copy.deepcopy(bits.state),), lambda kept: setattr(bits, "state", kept[0])
        case numpy.random.RandomState():
            return lambda: (generator.get_state(),), lambda kept: generator.set_state(kept[0])
        case _:
            return lambda: (generator.getstate(),), lambda kept: generator.setstate(kept[0])


def is_same_random(left: Any, right: Any) -> bool:
    """Whether two states of a generator are equal."""
    return all(map(numpy.array_equal, jax.tree.leaves(left), jax.tree.leaves(right)))


def list_slots(kind: type) -> tuple[str, ...]:
    """Names of the slots that a class itself declares."""
    slots = kind.__dict__.get("__slots__", ())
    names = (slots,) if isinstance(slots, str) else tuple(slots)
    return tuple(name for name in names if name not in ("__dict__", "__weakref__"))


def has(item: Any, slot: str) -> bool:
    """Whether a slot of an object holds a value."""
    with suppress(AttributeError):
        object.__getattribute__(item, slot)
        return True
    return False


def fill_slot(item: Any, slot: str, value: Any) -> None:
    """Set a slot of an object, also of a frozen one and of one whose type is not written in Python."""
    _find_slot(item, slot).__set__(item, value)


def empty_slot(item: Any, slot: str) -> None:
    """Delete what a slot of an object holds."""
    _find_slot(item, slot).__delete__(item)


def _find_slot(item: Any, slot: str) -> MemberDescriptorType:
    members = (kind.__dict__.get(slot) for kind in type(item).__mro__)
    return next(member for member in members if isinstance(member, MemberDescriptorType))


def get_own(item: Any) -> dict[str, Any]:
    """The dictionary of an object's attributes; an empty one where it has none."""
    with suppress(AttributeError):
        own = object.__getattribute__(item, "__dict__")
        return own if isinstance(own, dict) else {}
    return {}


def fill(item: Any, kept: list[Any]) -> None:
    """Put items back into a list or deque."""
    item.clear()
    item.extend(kept)


def refill(item: Any, kept: Any) -> None:
    """Put items back into a dictionary or set."""
    item.clear()
    item.update(kept)


def is_same_dict(left: dict[Any, Any], right: dict[Any, Any]) -> bool:
    """Whether two dictionaries hold the same objects in the same order."""
    return list(left) == list(right) and all(value is right[key] for key, value in left.items())


def is_same_list(first: list[Any], second: list[Any]) -> bool:
    """Whether two lists hold the same objects."""
    return len(first) == len(second) and all(map(lambda left, right: left is right, first, second))


def is_equal(left: Any, right: Any) -> bool:
    """Whether two arrays have the same bytes."""
    return bool(numpy.asarray(left).tobytes() == numpy.asarray(right).tobytes())


def map_contents(contents: Any, change: Callable[[Any], Any]) -> Any:
    """Contents with each value changed."""
    if isinstance(contents, dict):
        return {key: change(value) for key, value in contents.items()}
    if isinstance(contents, list):
        return [change(value) for value in contents]
    return contents


def list_differences(name: str, before: Any, now: Any) -> Iterator[tuple[str, Any]]:
    """Names and values of what is new or another object now."""
    if isinstance(before, dict) and isinstance(now, dict):
        for key, value in now.items():
            if key not in before or before[key] is not value:
                yield f"{name}.{key}" if name else key, value  # a variable has no object around it
    else:
        yield name, now


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
