"""Notebooks without Jupyter: what the code of each cell prints and shows last."""

from __future__ import annotations

import ast
import contextlib
import io
import json
from collections.abc import Iterator
from pathlib import Path


def run_cells(path: Path) -> Iterator[tuple[str, list[str]]]:
    """The source of each code cell and what it gives now: what it prints, then the value of its last expression."""
    names: dict[str, object] = {}
    for cell in json.loads(path.read_text(encoding="utf8"))["cells"]:
        if cell["cell_type"] != "code":
            continue
        source = "".join(cell["source"])
        body = ast.parse(source).body
        last = body.pop() if body and isinstance(body[-1], ast.Expr) else None
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(ast.Module(body, []), str(path), "exec"), names)
            value = None if last is None else eval(compile(ast.Expression(last.value), str(path), "eval"), names)
        yield source, [text for text in (printed.getvalue(), "" if value is None else repr(value)) if text]


def stored_outputs(path: Path) -> list[list[str]]:
    """By code cell, the texts that the notebook keeps of what it gave."""
    cells = [cell for cell in json.loads(path.read_text(encoding="utf8"))["cells"] if cell["cell_type"] == "code"]
    return [[_text_of(output) for output in cell["outputs"]] for cell in cells]


def _text_of(output: dict) -> str:
    return "".join(output["text"] if output["output_type"] == "stream" else output["data"]["text/plain"])
