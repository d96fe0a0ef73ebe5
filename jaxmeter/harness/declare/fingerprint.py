"""Fingerprints of functions: they change when the code does, and not when a comment or its place does."""

from __future__ import annotations

import ast
import hashlib
import inspect
import linecache
import sys
from collections.abc import Callable, Iterable
from functools import lru_cache, partial
from types import CodeType, FunctionType, ModuleType
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
    found = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)]
    for node in found:
        if not isinstance(node, ast.Lambda) and ast.get_docstring(node) is not None:
            node.body = node.body[1:] or [ast.Pass()]
    return tuple(found)


def _syntax(node: ast.AST) -> str:
    """Signature and body; `ast.dump` would differ between Python versions."""
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        return "\n".join([ast.unparse(node.args), *map(ast.unparse, node.body)])
    return ast.unparse(node)
