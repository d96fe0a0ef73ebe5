"""How large jaxmeter is: files and lines of code, without blank lines, comments and docstrings.

    python -m benchmarks.size [--checkout DIR]

`--checkout` counts another checkout, such as one of an earlier commit. Suites, tests and benchmarks are counted apart.
"""

from __future__ import annotations

import argparse
import ast
import io
import tokenize
from collections.abc import Iterator
from pathlib import Path

CHECKOUT = Path(__file__).parents[1]
PARTS = {
    "product": ("jaxmeter", "launcher", "noxfile.py"),
    "suites": ("jaxmeter/suites",),
    "tests": ("tests",),
    "benchmarks": ("benchmarks",),
}
"""Paths of each part; a path counts for the last part that has it. Older checkouts have `launcher`."""

_NO_CODE = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER}


def main() -> None:
    """Print files and lines of code of each part."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--checkout", type=Path, default=CHECKOUT)
    checkout = parser.parse_args().checkout
    part_of = {path: part for part, roots in PARTS.items() for root in roots for path in list_sources(checkout / root)}
    for part in PARTS:
        lines = [count_lines(path.read_text(encoding="utf8")) for path, own in part_of.items() if own == part]
        print(f"{part:12} {len(lines):5} files {sum(lines):7} lines of code")


def list_sources(root: Path) -> Iterator[Path]:
    """Yield the Python files of a folder, or the file itself."""
    yield from sorted(root.rglob("*.py")) if root.is_dir() else [root] if root.is_file() else []


def count_lines(source: str) -> int:
    """Return the number of lines that have code: each line of a statement, but none of a docstring."""
    lines: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type not in _NO_CODE:
            lines.update(range(token.start[0], token.end[0] + 1))
    return len(lines - set(_list_docstring_lines(ast.parse(source))))


def _list_docstring_lines(tree: ast.Module) -> Iterator[int]:
    """Yield the lines of strings that are statements: docstrings, and those that document a constant."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            yield from range(node.lineno, (node.end_lineno or node.lineno) + 1)


if __name__ == "__main__":
    main()
