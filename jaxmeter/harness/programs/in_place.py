"""Calls that change their arguments in place: the next call gets others, and a compiled program loses the change."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import FunctionType, ModuleType
from typing import Any

import jax
import numpy

LARGEST_BYTES = 64 * 2**20
"""Of the host's arrays, whose numbers are copied to be compared; in larger ones a change is not noticed."""

_MOST_NAMED = 3

_ADVICE = {
    "nnx": (
        "split the module in inputs(), `graphdef, state = nnx.split(model)`; begin the function with "
        "`model = nnx.merge(graphdef, state, copy=True)`; return `nnx.state(model)` with the other results"
    ),
    "numpy": "work on a copy in the function, such as `x = x.copy()`",
    "": "give the function the values that change, and return the new ones",
}


class InPlaceError(Exception):
    """A call changes its arguments in place; the message names them and says what to write instead."""


@dataclass(frozen=True)
class Arguments:
    """Arguments in containers of their own, which a call may change, and what they held before.

    Args:
      names: Of the arguments.
      exempt: Places of those that a call may change.
    """

    args: tuple[Any, ...]
    names: Sequence[str]
    exempt: frozenset[int]
    before: dict[str, Any]
    numbers: dict[str, Any]
    attributes: dict[str, dict[str, Any]]

    def check(self) -> None:
        """Compare with what they hold now; attributes of objects that are no containers are put back.

        Raises:
          InPlaceError: A call has changed them.
        """
        after = _list_leaves(self.args, self.names, self.exempt)
        changed = [name for name, leaf in self.before.items() if name not in after or self._differs(name, leaf, after)]
        changed += [name for name in after if name not in self.before]
        for name, kept in self.attributes.items():
            now = vars(self.before[name])
            changed += [f"{name}.{each}" for each in kept | now if kept.get(each) is not now.get(each)]
            now.clear()
            now.update(kept)
        _refuse(changed, self.args, [self.before.get(name) for name in changed])

    def _differs(self, name: str, leaf: Any, after: dict[str, Any]) -> bool:
        if name in self.numbers:
            return not numpy.array_equal(self.numbers[name], after[name], equal_nan=leaf.dtype.kind in "fc")
        return after[name] is not leaf and not _is_equal(leaf, after[name])


def keep_arguments(args: tuple[Any, ...], names: Sequence[str], exempt: frozenset[int] = frozenset()) -> Arguments:
    """Keep what arguments hold before a call, which gets `.args` of what is returned; `.check()` compares."""
    on_host = sum(leaf.nbytes for leaf in jax.tree.leaves(args) if isinstance(leaf, numpy.ndarray))
    copied = on_host <= LARGEST_BYTES

    def rebuild(leaf: Any) -> Any:
        return leaf.copy() if copied and isinstance(leaf, numpy.ndarray) else leaf

    own = jax.tree.map(rebuild, args)
    before = _list_leaves(own, names, exempt)
    arrays = {name: leaf for name, leaf in before.items() if isinstance(leaf, numpy.ndarray)}
    return Arguments(
        args=own,
        names=names,
        exempt=exempt,
        before=before,
        numbers={name: leaf.copy() for name, leaf in arrays.items()} if copied else {},
        attributes={name: dict(vars(leaf)) for name, leaf in before.items() if _is_object(leaf)},
    )


def check_traced(function: Callable[..., Any], args: tuple[Any, ...], names: Sequence[str]) -> None:
    """Look for changes of objects within a trace that are not returned: a compiled program leaves them out.

    A dictionary or a list is another one within a trace, so that a change of it changes no argument.

    Raises:
      InPlaceError: There are some, and they change what the objects hold.
    """
    if not _hold_objects(args):
        return
    changed: list[str] = []

    def watched(*traced: Any) -> list[Any]:
        before = _list_leaves(traced, names)
        returned = set(map(id, jax.tree.leaves(function(*traced))))
        after = _list_leaves(traced, names)
        changed[:] = [
            name
            for name, leaf in before.items()
            if "." in name and name in after and after[name] is not leaf and id(after[name]) not in returned
        ]
        return [after[name] for name in changed]

    jax.eval_shape(watched, *args)
    if not changed:
        return
    now = jax.jit(watched)(*args)  # some transformations put back what was there
    before = _list_leaves(args, names)
    pairs = zip(list(changed), now, strict=True)
    _refuse([name for name, leaf in pairs if not _is_equal(before[name], leaf)], args, ())


def _list_leaves(args: Any, names: Sequence[str], exempt: frozenset[int] = frozenset()) -> dict[str, Any]:
    """List leaves by their names, such as `model.layers[0].kernel.value`."""
    found = {}
    for place, argument in enumerate(args):
        if place in exempt:
            continue
        name = names[place] if place < len(names) else f"argument {place}"
        for path, leaf in jax.tree_util.tree_leaves_with_path(argument):
            found[f"{name}{jax.tree_util.keystr(path)}"] = leaf
    return found


def _hold_objects(args: Any) -> bool:
    """Return whether there is any object whose attributes a function could change."""
    found = []

    def note(node: Any) -> bool:
        found.append(_is_object(node))
        return False

    jax.tree.leaves(args, is_leaf=note)
    return any(found)


def _is_object(node: Any) -> bool:
    frozen = getattr(getattr(node, "__dataclass_params__", None), "frozen", False)
    known = (jax.Array, numpy.ndarray, numpy.generic, dict, list, tuple, FunctionType, ModuleType, type)
    return hasattr(node, "__dict__") and not frozen and not isinstance(node, known)


def _is_equal(one: Any, other: Any) -> bool:
    """Return whether two leaves hold the same; of an array that was donated that is not known."""
    if isinstance(one, jax.Array) and isinstance(other, jax.Array):
        if one.is_deleted() or other.is_deleted():
            return True
        if one.dtype != other.dtype or one.shape != other.shape:
            return False
        if jax.numpy.issubdtype(one.dtype, jax.dtypes.prng_key):
            one, other = jax.random.key_data(one), jax.random.key_data(other)
        return numpy.asarray(one).tobytes() == numpy.asarray(other).tobytes()
    try:
        return bool(numpy.all(one == other))
    except Exception:  # noqa: BLE001  an object may refuse to be compared
        return False


def _refuse(changed: Sequence[str], args: Any, leaves: Sequence[Any]) -> None:
    """Raise InPlaceError where anything has changed."""
    if not changed:
        return
    more = f" and {len(changed) - _MOST_NAMED} more" if len(changed) > _MOST_NAMED else ""
    on_host = any(isinstance(leaf, numpy.ndarray) for leaf in leaves)
    kind = "numpy" if on_host else "nnx" if _hold_modules(args) else ""
    raise InPlaceError(
        f"changes its arguments in place: {', '.join(changed[:_MOST_NAMED])}{more}; every call must begin with the "
        f"same arguments, and a compiled program loses such a change: {_ADVICE[kind]}"
    )


def _hold_modules(args: Any) -> bool:
    """Return whether there is a module of flax.nnx; flax need not be there."""
    found = []

    def note(node: Any) -> bool:
        found.append(any(kind.__module__.startswith("flax.nnx") for kind in type(node).__mro__))
        return False

    jax.tree.leaves(args, is_leaf=note)
    return any(found)
