"""Contents of objects: read as far as they can change in place, compared with what was read before, and put back."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from contextlib import suppress
from types import MemberDescriptorType
from typing import Any

import jax
import numpy


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


def is_same_random(one: Any, other: Any) -> bool:
    """Whether two states of a generator are equal."""
    return all(map(numpy.array_equal, jax.tree.leaves(one), jax.tree.leaves(other)))


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
    found = (kind.__dict__.get(slot) for kind in type(item).__mro__)
    return next(one for one in found if isinstance(one, MemberDescriptorType))


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


def is_same_dict(one: dict[Any, Any], other: dict[Any, Any]) -> bool:
    """Whether two dictionaries hold the same objects in the same order."""
    return list(one) == list(other) and all(value is other[key] for key, value in one.items())


def is_same_list(one: list[Any], other: list[Any]) -> bool:
    """Whether two lists hold the same objects."""
    return len(one) == len(other) and all(map(lambda left, right: left is right, one, other))


def is_equal(one: Any, other: Any) -> bool:
    """Whether two arrays have the same bytes."""
    return bool(numpy.asarray(one).tobytes() == numpy.asarray(other).tobytes())


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
