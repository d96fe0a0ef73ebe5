"""Fingerprints of functions: they change when the code does, and not when a comment or its place does."""

from __future__ import annotations

import ast
import hashlib
import inspect
import linecache
from collections.abc import Callable, Iterator
from types import CodeType, FunctionType
from typing import Any

DIGITS = 16
_LITERALS = (str, int, float, bool, tuple, frozenset, type(None))


def fingerprint(*functions: Callable[..., Any] | None) -> str:
    """Hash of the functions' syntax and of what they use from their own module: functions and literals.

    Comments, layout and docstrings do not count. A function without readable source counts by its name.
    """
    digest = hashlib.sha256()
    for function in functions:
        for part in _parts(function, set()):
            digest.update(part.encode())
            digest.update(b"\0")
    return digest.hexdigest()[:DIGITS]


def _parts(function: Callable[..., Any] | None, seen: set[int]) -> Iterator[str]:
    if function is None:
        yield "none"
        return
    plain = inspect.unwrap(function)
    if not isinstance(plain, FunctionType):
        yield f"{getattr(plain, '__module__', '')}.{getattr(plain, '__qualname__', type(plain).__qualname__)}"
        return
    if id(plain) in seen:
        return
    seen.add(id(plain))
    node = _node_of(plain)
    yield plain.__qualname__ if node is None else _text(node)
    yield repr([repr(value) for value in (plain.__defaults__ or ()) if isinstance(value, _LITERALS)])
    for cell_name, cell in zip(plain.__code__.co_freevars, plain.__closure__ or (), strict=True):
        yield from _used(cell_name, cell.cell_contents, plain, seen)
    for name in sorted(_names(plain.__code__)):
        if name in plain.__globals__:
            yield from _used(name, plain.__globals__[name], plain, seen)


def _used(name: str, value: Any, user: FunctionType, seen: set[int]) -> Iterator[str]:
    """What `user` takes from its module: other modules are identified by their versions, in the environment."""
    if isinstance(value, _LITERALS):
        yield f"{name}={value!r}"
    elif isinstance(value, FunctionType) and value.__module__ == user.__module__:
        yield from _parts(value, seen)


def _names(code: CodeType) -> set[str]:
    names = set(code.co_names)
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            names |= _names(constant)
    return names


def _node_of(function: FunctionType) -> ast.AST | None:
    """The function's own syntax node; `inspect.getsource` of a lambda gives the whole statement around it."""
    lines = linecache.getlines(function.__code__.co_filename, function.__globals__)
    try:
        tree = ast.parse("".join(lines))
    except SyntaxError:
        return None
    first = function.__code__.co_firstlineno
    column = min((start for _, _, start, _ in function.__code__.co_positions() if start), default=None)
    candidates = [node for node in ast.walk(tree) if _starts_at(node, first, function.__name__)]
    if len(candidates) > 1 and column is not None:  # several lambdas on one line
        candidates = [node for node in candidates if _contains(node, column)] or candidates
    return candidates[-1] if candidates else None


def _starts_at(node: ast.AST, line: int, name: str) -> bool:
    if isinstance(node, ast.Lambda):
        return name == "<lambda>" and node.lineno == line
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        return node.name == name and line in {node.lineno, *(item.lineno for item in node.decorator_list)}
    return False


def _contains(node: ast.AST, column: int) -> bool:
    return isinstance(node, ast.expr) and node.col_offset <= column <= (node.end_col_offset or 0)


def _text(node: ast.AST) -> str:
    """Its signature and body as text; `ast.dump` would differ between Python versions."""
    if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        return ast.unparse(node)
    body = node.body[1:] if ast.get_docstring(node) is not None else node.body
    return "\n".join([ast.unparse(node.args), *map(ast.unparse, body)])
