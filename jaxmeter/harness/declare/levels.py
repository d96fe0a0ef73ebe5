"""The values that a workload is measured with, and calling functions with those that they ask for."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from types import FunctionType
from typing import Any

import ml_dtypes
import numpy

from jaxmeter.harness.record.cases import Param

Values = Param | tuple[Param, ...] | list[Param]


class DeclarationError(Exception):
    """An invalid declaration in a suite. The message names the workload and what is allowed."""


LEVELS = ("quick", "default", "full")
"""How much is measured; each has all of those before it."""


@dataclass(frozen=True, kw_only=True)
class Levels:
    """Values of a param, sizes or dtypes, by level; each level includes the ones before it.

    Without a quick value, the first of the next level stands for it.

    Args:
      quick, default, full: Values by level.
      by_device: Kind of device -> what it adds there to the default level: `{"gpu": (1_000_000,)}`.
    """

    quick: tuple[Param, ...]
    default: tuple[Param, ...]
    full: tuple[Param, ...]
    by_device: Mapping[str, tuple[Param, ...]]

    def at(self, level: str, device: str) -> tuple[Param, ...]:
        """The values for a level on a kind of device, without repeats, numbers in order."""
        values = self.quick or self.default[:1] or self.full[:1]
        if level != "quick":
            values += self.default + self.by_device.get(device, ())
        if level == "full":
            values += self.full
        different = dict.fromkeys(values)
        numeric = all(isinstance(value, int | float) for value in different)
        return tuple(sorted(different) if numeric else different)

    @property
    def first(self) -> Param:
        """The first value of the lowest level that has one, on any device."""
        return next(values[0] for values in (self.quick, self.default, self.full, *self.by_device.values()) if values)


def levels(
    *, quick: Values = (), default: Values = (), full: Values = (), by_device: Mapping[str, Values] | None = None
) -> Levels:
    """Return a param's values by level: `levels(quick=100, default=(1_000, 10_000), by_device={"gpu": 1_000_000})`."""
    return Levels(
        quick=_make_tuple(quick),
        default=_make_tuple(default),
        full=_make_tuple(full),
        by_device={device: _make_tuple(values) for device, values in (by_device or {}).items()},
    )


def _make_tuple(values: Values) -> tuple[Param, ...]:
    several = values if isinstance(values, list | tuple | range | numpy.ndarray) else (values,)
    return tuple(_make_param(value) for value in several)


def _make_param(value: Any) -> Param:
    """A value that a record can hold and a name can show.

    Raises:
      DeclarationError: Anything else, such as a shape or a dtype object.
    """
    if isinstance(value, numpy.generic):
        value = value.item()
    if not isinstance(value, Param):
        raise DeclarationError(
            f"a param's value cannot be {value!r}; it is a text, a number or a truth value: "
            f"write a dtype as 'float32', and each dimension of a shape as a param"
        )
    return value


def itemsize(dtype: str) -> int:
    """Return the bytes of one element of a NumPy dtype, bfloat16 or another dtype of ml_dtypes."""
    return numpy.dtype(getattr(ml_dtypes, dtype, dtype)).itemsize


def call_with(function: Callable[..., Any], params: Mapping[str, Param], *args: Any) -> Any:
    """Calls a function with positional arguments and the params that it requires by name."""
    names = find_wanted_params(function, params, keyword_only=bool(args))
    return function(*args, **{name: params[name] for name in names})


def find_wanted_params(
    function: Callable[..., Any], params: Collection[str], *, keyword_only: bool = True
) -> list[str]:
    """Names that a function takes as params: those without a default, and those with one that params lists.

    A default counts in Python functions only: NumPy's own have a `dtype` that means something else.
    """
    try:
        parameters = inspect.signature(function).parameters.values()
    except ValueError:  # a built-in without a signature asks for none
        return []
    kinds = [inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD]
    named = [item for item in parameters if item.kind in (kinds[:1] if keyword_only else kinds)]
    plain = isinstance(function, FunctionType)
    return [item.name for item in named if item.default is item.empty or (plain and item.name in params)]
