"""Fingerprints of functions: they change when the code does, and not when a comment or its place does."""

from __future__ import annotations

import ast
import hashlib
import inspect
import linecache
from collections.abc import Callable, Iterable, Iterator
from functools import partial
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
    if isinstance(function, partial):
        yield from _parts(function.func, seen)
        yield _literals([*function.args, *sorted(function.keywords.items())])
        return
    plain = inspect.unwrap(function) if function is not None else None
    if not isinstance(plain, FunctionType):
        yield f"{getattr(plain, '__module__', '')}.{getattr(plain, '__qualname__', type(plain).__qualname__)}"
        return
    if id(plain) in seen:
        return
    seen.add(id(plain))
    node = _node_of(plain)
    yield plain.__qualname__ if node is None else _text(node)
    yield _literals([*(plain.__defaults__ or ()), *sorted((plain.__kwdefaults__ or {}).items())])
    for name, cell in zip(plain.__code__.co_freevars, plain.__closure__ or (), strict=True):
        yield from _used(name, cell.cell_contents, plain, seen)
    for name in sorted(_names(plain.__code__)):
        if name in plain.__globals__:
            yield from _used(name, plain.__globals__[name], plain, seen)


def _used(name: str, value: Any, user: FunctionType, seen: set[int]) -> Iterator[str]:
    """What `user` takes from its module: other modules are identified by their versions, in the environment."""
    if isinstance(value, _LITERALS):
        yield f"{name}={_literals([value])}"
    elif callable(value):
        plain = inspect.unwrap(value)  # what jax.jit or a decorator made of it
        if isinstance(plain, FunctionType) and plain.__module__ == user.__module__:
            yield from _parts(plain, seen)


def _literals(values: Iterable[Any]) -> str:
    """Literals as text; a set's in order, which its repr does not keep between processes."""
    ordered = (sorted(map(repr, value)) if isinstance(value, frozenset) else value for value in values)
    return repr([repr(value) for value in ordered if isinstance(value, (*_LITERALS, list))])


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
    """Signature and body without docstrings; `ast.dump` would differ between Python versions."""
    for inner in ast.walk(node):
        if isinstance(inner, ast.FunctionDef | ast.AsyncFunctionDef) and ast.get_docstring(inner) is not None:
            inner.body = inner.body[1:] or [ast.Pass()]
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        return "\n".join([ast.unparse(node.args), *map(ast.unparse, node.body)])
    return ast.unparse(node)
