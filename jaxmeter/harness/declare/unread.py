"""Functions and results that run nothing until somebody reads them: generators and coroutines."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

_FUNCTIONS: dict[str, Callable[[Any], bool]] = {
    "a generator": inspect.isgeneratorfunction,
    "an asynchronous generator": inspect.isasyncgenfunction,
    "a coroutine": inspect.iscoroutinefunction,
}
_RESULTS: dict[str, Callable[[Any], bool]] = {
    "a generator": inspect.isgenerator,
    "an asynchronous generator": inspect.isasyncgen,
    "a coroutine": inspect.iscoroutine,
}


def describe_unread_function(function: Callable[..., Any]) -> str | None:
    """Return why a function cannot be measured whose call only makes a generator or a coroutine; else None.

    A function that wraps one may read it, so nothing is unwrapped but a partial, by `inspect` itself.
    """
    return next((_describe(kind) for kind, is_kind in _FUNCTIONS.items() if is_kind(function)), None)


def describe_unread_result(result: Any) -> str | None:
    """Return why a result says nothing of its call, being a generator or a coroutine; else None."""
    return next((_describe(kind) for kind, is_kind in _RESULTS.items() if is_kind(result)), None)


def _describe(kind: str) -> str:
    return f"returns {kind}: nothing runs until it is read; return the arrays themselves, such as a list of them"
