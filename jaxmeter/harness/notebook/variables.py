"""Variables and objects of a user's functions: what code uses, rebinds or changes in place, and putting it back."""

from __future__ import annotations

import copy
import dis
import sys
import sysconfig
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from types import CellType, CodeType, FunctionType, MemberDescriptorType, MethodType, ModuleType
from typing import Any

import jax
import numpy

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
