"""Which leaves of a call's arguments JAX traces, and which are static: functions, strings, configurations, shapes.

JAX traces arrays and Python's numbers. Every other leaf is part of the program: it is taken out of the arguments before
a jitted call and put back inside. Neither is part of a timed call: there, None replaces each static leaf.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from functools import wraps
from types import ModuleType
from typing import Any

import jax
import numpy

from jaxmeter.harness.programs.older_jax import REFERENCES
from jaxmeter.harness.programs.refusal import RefusedError

Path = tuple[Any, ...]
"""Where a leaf is: the keys of `jax.tree_util`, from the arguments down."""

MOST_TRIALS = 8
"""So many numbers are tried one by one, a trace each, for which of them must be concrete; of more all are static."""

CONCRETE_ERRORS = (
    jax.errors.ConcretizationTypeError,
    jax.errors.TracerBoolConversionError,
    jax.errors.TracerIntegerConversionError,
    jax.errors.TracerArrayConversionError,
    jax.errors.NonConcreteBooleanIndexError,
)
"""What JAX raises where a number that it traces must be known: in a branch, a shape or an axis."""

_WORDS = ("Tracer", "concrete", "static")
"""In messages of other errors for the same reason, such as that of a slice's IndexError and of a shape's TypeError."""


def is_array(leaf: Any) -> bool:
    """Whether JAX traces it as an array: its own, their shapes, and NumPy's of numbers."""
    if isinstance(leaf, numpy.ndarray | numpy.generic):
        return leaf.dtype.kind in "biufcV" and not leaf.dtype.hasobject and leaf.dtype.names is None
    return isinstance(leaf, (jax.Array, jax.ShapeDtypeStruct, *REFERENCES)) or hasattr(leaf, "__jax_array__")


def is_number(leaf: Any) -> bool:
    """Whether it is one of Python's own numbers, which JAX traces weakly typed."""
    return isinstance(leaf, bool | int | float | complex) and not isinstance(leaf, numpy.generic)


def is_traced(leaf: Any) -> bool:
    """Whether `jax.jit` traces a leaf."""
    return is_array(leaf) or is_number(leaf)


@dataclass(frozen=True)
class Arguments:
    """A call's arguments, those that are traced apart from those that are static.

    Args:
      traced: The positional and keyword arguments as a pair, None where a leaf is static.
      static: Path -> leaf.
    """

    traced: tuple[tuple[Any, ...], dict[str, Any]]
    static: dict[Path, Any]

    def take_back(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Arguments of this form, such as those of a trace, with the static leaves where they belong."""
        if not self.static:
            return args, kwargs
        whole: tuple[tuple[Any, ...], dict[str, Any]] = jax.tree_util.tree_map_with_path(
            lambda path, leaf: self.static.get(path) if leaf is None else leaf,
            (args, kwargs),
            is_leaf=lambda leaf: leaf is None,
        )
        return whole

    def close_over(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """The function of what is traced alone."""
        if not self.static:
            return function

        @wraps(function)
        def of_traced(*args: Any, **kwargs: Any) -> Any:
            args, kwargs = self.take_back(args, kwargs)
            return function(*args, **kwargs)

        return of_traced


def split(args: tuple[Any, ...], kwargs: dict[str, Any] | None = None, fixed: Collection[Path] = ()) -> Arguments:
    """Takes static leaves out of arguments.

    Args:
      fixed: Paths of numbers that are static as well.
    """
    static: dict[Path, Any] = {}

    def take_out(path: Path, leaf: Any) -> Any:
        if is_traced(leaf) and path not in fixed:
            return leaf
        if leaf is not None:
            static[path] = leaf
        return None

    whole = (args, kwargs or {})
    leaves, form = jax.tree_util.tree_flatten_with_path(whole, is_leaf=lambda leaf: leaf is None)
    kept = [take_out(path, leaf) for path, leaf in leaves]
    # The very objects where nothing is taken out: what a call is given is what the caller made.
    return Arguments(jax.tree.unflatten(form, kept) if static else whole, static)


def refuse_hidden_arrays(arguments: Arguments, names: tuple[str, ...] = ()) -> None:
    """Raise RefusedError where a static leaf holds arrays: a program would have them as constants.

    Args:
      names: Of the positional arguments, as far as they are known.
    """
    for path, leaf in arguments.static.items():
        fields = vars(leaf) if hasattr(leaf, "__dict__") and not isinstance(leaf, type | ModuleType) else {}
        if not any(isinstance(item, jax.Array | numpy.ndarray) for item in jax.tree.leaves(fields)):
            continue
        kind = type(leaf).__name__
        is_data = hasattr(leaf, "__dataclass_fields__")
        line = f"jax.tree_util.register_dataclass({kind})" if is_data else "@jax.tree_util.register_pytree_node_class"
        raise RefusedError(
            f"{name_leaf(path, names)} is a {kind}, which is not a JAX pytree: jit would treat the arrays inside "
            f"as constants; write {line}"
        )


def needs_concrete(error: BaseException) -> bool:
    """Whether tracing failed since a value must be known."""
    if isinstance(error, CONCRETE_ERRORS):
        return True
    return isinstance(error, TypeError | ValueError | IndexError) and any(word in str(error) for word in _WORDS)


def find_fixed(
    trace: Callable[[Arguments], Any], args: tuple[Any, ...], kwargs: dict[str, Any] | None = None
) -> tuple[Path, ...]:
    """Paths of the numbers among the arguments that must be static, since tracing them fails; none where it does not.

    Args:
      trace: Traces the function for such arguments.
    Raises:
      Whatever tracing raises, where making numbers static does not help.
    """
    try:
        trace(split(args, kwargs))
    except Exception as error:
        numbers = list(_list_numbers(args, kwargs))
        if not numbers or not needs_concrete(error):
            raise
        try:
            trace(split(args, kwargs, numbers))
        except Exception:  # noqa: BLE001  what was raised first says more
            raise error from None
    else:
        return ()
    fixed = tuple(numbers)
    if len(numbers) > MOST_TRIALS:
        return fixed
    for path in numbers:
        fewer = tuple(other for other in fixed if other != path)
        try:
            trace(split(args, kwargs, fewer))
        except Exception as error:
            if not needs_concrete(error):
                raise
        else:
            fixed = fewer
    return fixed


def _list_numbers(args: tuple[Any, ...], kwargs: dict[str, Any] | None) -> Iterator[Path]:
    for path, leaf in jax.tree_util.tree_leaves_with_path((args, kwargs or {})):
        if is_number(leaf):
            yield path


def find_argument_names(function: Callable[..., Any]) -> tuple[str, ...]:
    """Names of the positional arguments of a callable, as far as they are known."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (ValueError, TypeError):
        return ()
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return tuple(item.name for item in parameters if item.kind in kinds)


def name_leaf(path: Path, names: tuple[str, ...] = ()) -> str:
    """A path as a person writes it: `batch['x'][0]`.

    Args:
      path: From a pair of positional and keyword arguments down.
      names: Of the positional arguments, as far as they are known.
    """
    kind, first, *rest = path
    if kind.idx == 0:
        name = names[first.idx] if first.idx < len(names) else f"argument {first.idx}"
    else:
        name = str(first.key)
    return name + jax.tree_util.keystr(tuple(rest))
