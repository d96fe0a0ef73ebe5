"""The warnings of JAX while a function is traced and lowered. They are also shown."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass


@dataclass(frozen=True)
class Warned:
    """A warning: its text, and `path:line` of the code that it refers to."""

    text: str
    source: str


@contextmanager
def keep_warnings(*, show: bool = True) -> Iterator[list[Warned]]:
    """Collect the warnings of the block, also those that were shown before.

    Args:
      show: Whether the warnings are given again at the end of the block, to whoever would have seen them.
    """
    kept: list[Warned] = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            yield kept
        finally:
            kept += [Warned(str(one.message), f"{one.filename}:{one.lineno}") for one in caught]
    for one in caught if show else ():
        warnings.warn_explicit(one.message, one.category, one.filename, one.lineno)
