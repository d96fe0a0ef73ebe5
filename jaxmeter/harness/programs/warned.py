"""The warnings of JAX while a function is traced and lowered. They are also shown."""

from __future__ import annotations

import traceback
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax

_INSIDE = (f"{Path(jax.__file__).parent}/", warnings.__file__, __file__)
"""Files between the code that JAX warns of and the function that keeps the warning."""


@dataclass(frozen=True)
class Warned:
    """A warning.

    Args:
      stack: `path:line` of each frame outside JAX, the innermost first.
    """

    text: str
    stack: tuple[str, ...]


@contextmanager
def keep_warnings(*, show: bool = True) -> Iterator[list[Warned]]:
    """Collect the warnings of the block, also those that were shown before.

    Args:
      show: Whether the warnings are given again at the end of the block, to whoever would have seen them.
    """
    kept: list[Warned] = []
    caught: list[tuple[Any, type[Warning], str, int]] = []

    def keep(message: Warning | str, category: type[Warning], filename: str, lineno: int, *_: Any, **__: Any) -> None:
        frames = ((frame.f_code.co_filename, line) for frame, line in traceback.walk_stack(None))
        stack = tuple(f"{file}:{line}" for file, line in frames if not file.startswith(_INSIDE))
        kept.append(Warned(str(message), stack))
        caught.append((message, category, filename, lineno))

    with warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.showwarning = keep  # the end of this block restores it
        yield kept
    for each in caught if show else ():
        warnings.warn_explicit(*each)
