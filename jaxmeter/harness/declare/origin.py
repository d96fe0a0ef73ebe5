"""Where in a user's files something is declared, or has failed."""

from __future__ import annotations

import sys
import sysconfig
import traceback
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

_OWN = str(Path(__file__).parents[1])
"""Of this package, whose frames lie between a suite's."""

_SUITES = str(Path(__file__).parents[2] / "suites")
"""jaxmeter's own suites: written as a user's, and in a library's folder where jaxmeter is installed."""

_MODULE = "<module>"
"""What Python calls the code of a module's top."""


@dataclass(frozen=True)
class Origin:
    """The statement that declares something, in the module that is imported at the time.

    Args:
      variables: Of the module.
      code: Of its top: another one each time that it is run.
    """

    variables: dict[str, Any]
    code: CodeType
    line: int

    @property
    def module(self) -> str:
        """The module's name."""
        return str(self.variables["__name__"])

    @property
    def location(self) -> str:
        """`file:line`."""
        return f"{self.code.co_filename}:{self.line}"


def find_origin() -> Origin | None:
    """Return where the caller is called from; None outside the top of a module that is imported.

    The line is the innermost one in the module's own file: a loop may call a function there that declares.
    """
    frames = list(_list_frames())
    top = next((frame for frame in frames if frame.f_code.co_name == _MODULE), None)
    if top is None or not _is_imported(top):
        return None
    here = next(frame for frame in frames if frame.f_code.co_filename == top.f_code.co_filename)
    return Origin(top.f_globals, top.f_code, here.f_lineno)


def _list_frames() -> Iterator[FrameType]:
    """List the frames above this package's, the innermost first."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if not _is_own(frame.f_code.co_filename):
            yield frame
        frame = frame.f_back


def _is_imported(top: FrameType) -> bool:
    """Return whether a suite can be found by its module: a program's own top, as of a notebook, is none."""
    name = top.f_globals.get("__name__")
    module = sys.modules.get(str(name))
    return name != "__main__" and module is not None and vars(module) is top.f_globals


def find_failing_line(error: BaseException) -> str | None:
    """Return `file:line` of what a user wrote and what raised an error; of a library where no frame is a user's.

    Frames of this package, of the import system and of code that was generated are left out.
    """
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if not _is_hidden(frame.filename)]
    written = [frame for frame in frames if is_of_user(frame.filename)]
    return next((f"{frame.filename}:{frame.lineno}" for frame in reversed(written or frames)), None)


def is_of_user(path: str | None) -> bool:
    """Return whether a file is a user's own, or a suite of jaxmeter: of no library, and not of the harness."""
    return path is not None and not _is_hidden(path) and not _is_library(path)


def _is_hidden(path: str) -> bool:
    return path.startswith("<") or _is_own(path)


def _is_own(path: str) -> bool:
    return path.startswith(f"{_OWN}/")


def _is_library(path: str) -> bool:
    if path.startswith(f"{_SUITES}/"):
        return False
    return any(path.startswith(f"{sysconfig.get_path(name)}/") for name in ("stdlib", "purelib", "platlib"))
