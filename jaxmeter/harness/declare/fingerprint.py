"""Where in a user's files something is declared, and its fingerprint, which comments do not change."""

from __future__ import annotations

import ast
import hashlib
import inspect
import linecache
import sys
import sysconfig
import traceback
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from types import CodeType, FrameType, FunctionType, ModuleType
from typing import Any

DIGITS = 16
_LITERALS = (str, bytes, int, float, complex, bool, type(None))


def fingerprint(*functions: Callable[..., Any] | None, constants: tuple[str, ...] = ()) -> str:
    """Hash of the functions' syntax and of what they use from their own package: functions and constants.

    Comments, layout and docstrings do not count. What other packages hold is identified by their versions, in the
    environment, and counts by its name; so does a function without readable source.

    Args:
      constants: Texts that count too.
    """
    seen: set[int] = set()
    texts = [_text(function, getattr(function, "__module__", None), seen) for function in functions]
    text = "\0".join((*texts, *constants))
    return hashlib.sha256(text.encode()).hexdigest()[:DIGITS]


def read(modules: Iterable[str]) -> None:
    """Reads and parses the files of modules and of all that is imported of their packages, as they are now.

    Fingerprints of this process, and of those forked from it, are then of these texts whatever happens to the files.
    """
    packages = set(map(_package, modules))
    for name, module in list(sys.modules.items()):
        file = getattr(module, "__file__", None)
        if file is not None and _package(name) in packages:
            _functions("".join(linecache.getlines(file)))


def _text(value: Any, module: str | None, seen: set[int]) -> str:
    """A value as text that is the same in every process: never an address, never a set's own order."""
    if isinstance(value, _LITERALS):
        return repr(value)
    if isinstance(value, list | tuple):
        return f"({', '.join(_text(item, module, seen) for item in value)})"
    if isinstance(value, set | frozenset):
        return f"{{{', '.join(sorted(_text(item, module, seen) for item in value))}}}"
    if isinstance(value, dict):
        return f"{{{', '.join(sorted(_text(item, module, seen) for item in value.items()))}}}"
    if isinstance(value, partial):
        # Of a partial itself `__module__` is functools.
        own = value.func.__module__ if module in (None, partial.__module__) else module
        return _text((value.func, value.args, value.keywords), own, seen)
    if isinstance(value, ModuleType):
        return value.__name__
    plain = inspect.unwrap(value) if callable(value) else value  # what jax.jit or a decorator made of it
    if isinstance(plain, FunctionType) and (module is None or _package(module) == _package(plain.__module__)):
        return _function_text(plain, seen)
    named = plain if hasattr(plain, "__qualname__") and hasattr(plain, "__module__") else type(plain)
    return f"{named.__module__}.{named.__qualname__}"


def _package(module: str) -> str:
    """The package of a module of a suite; a module in none is its own."""
    return module.rpartition(".")[0] or module


def _function_text(function: FunctionType, seen: set[int]) -> str:
    if id(function) in seen:
        return function.__qualname__
    seen.add(id(function))
    node, code = _node_of(function), function.__code__
    values = dict(zip(code.co_freevars, (cell.cell_contents for cell in function.__closure__ or ()), strict=True))
    values |= {name: function.__globals__[name] for name in _names(code) if name in function.__globals__}
    parts = [function.__qualname__ if node is None else _syntax(node)]
    parts += [
        _text(value, function.__module__, seen)
        for value in (function.__defaults__, function.__kwdefaults__, sorted(values.items()))
    ]
    return "\n".join(parts)


def _names(code: CodeType) -> set[str]:
    names = set(code.co_names)
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            names |= _names(constant)
    return names


def _node_of(function: FunctionType) -> ast.AST | None:
    """The function's own syntax node; `inspect.getsource` of a lambda gives the whole statement around it."""
    lines = linecache.getlines(function.__code__.co_filename, function.__globals__)
    first = function.__code__.co_firstlineno
    column = min((start for _, _, start, _ in function.__code__.co_positions() if start), default=None)
    candidates = [node for node in _functions("".join(lines)) if _starts_at(node, first, function)]
    if len(candidates) > 1 and column is not None:  # several lambdas on one line
        candidates = [node for node in candidates if _contains(node, column)] or candidates
    return candidates[-1] if candidates else None


def _starts_at(node: ast.AST, line: int, function: FunctionType) -> bool:
    code = function.__code__
    if isinstance(node, ast.Lambda):
        arguments = [item.arg for item in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)]
        own = list(code.co_varnames[: code.co_argcount + code.co_kwonlyargcount])
        return code.co_name == "<lambda>" and node.lineno == line and arguments == own
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        return node.name == code.co_name and line in {node.lineno, *(item.lineno for item in node.decorator_list)}
    return False


def _contains(node: ast.AST, column: int) -> bool:
    return isinstance(node, ast.expr) and node.col_offset <= column <= (node.end_col_offset or 0)


@lru_cache
def _functions(source: str) -> tuple[ast.AST, ...]:
    """A module's functions and lambdas without their docstrings. Parsed once: every function of a suite asks for it."""
    try:
        tree = ast.parse(source)
    except SyntaxError:
        return ()
    kinds = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
    functions = [node for node in ast.walk(tree) if isinstance(node, kinds)]
    for node in functions:
        if not isinstance(node, ast.Lambda) and ast.get_docstring(node) is not None:
            node.body = node.body[1:] or [ast.Pass()]
    return tuple(functions)


def _syntax(node: ast.AST) -> str:
    """Signature and body; `ast.dump` would differ between Python versions."""
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        return "\n".join([ast.unparse(node.args), *map(ast.unparse, node.body)])
    return ast.unparse(node)


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
