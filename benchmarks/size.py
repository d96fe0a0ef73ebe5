"""How large jaxmeter is: files, lines of code without blank lines, comments and docstrings, imports, class names.

    python -m benchmarks.size [--checkout DIR]

`--checkout` counts another checkout, such as one of an earlier commit. Suites, tests and benchmarks are counted apart.
"""

from __future__ import annotations

import argparse
import ast
import io
import tokenize
from collections import Counter
from collections.abc import Iterable, Iterator
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
    """Print the files and lines of code of each part; of the product also imports and repeated class names."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--checkout", type=Path, default=CHECKOUT)
    sources = read_parts(parser.parse_args().checkout)
    for part, own in sources.items():
        print(f"{part:12} {len(own):5} files {sum(map(count_lines, own)):7} lines of code")
    product = sources["product"]
    imports = sum(map(count_imports, product)) / sum(map(count_lines, product))
    print(f"product: {imports:.1%} of the lines are imports; {len(find_twins(product))} class names are defined twice")


def read_parts(checkout: Path) -> dict[str, list[str]]:
    """Return the sources of each part of a checkout."""
    part_of = {path: part for part, roots in PARTS.items() for root in roots for path in list_sources(checkout / root)}
    return {part: [path.read_text("utf8") for path, own in part_of.items() if own == part] for part in PARTS}


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


def count_imports(source: str) -> int:
    """Return the number of lines that import statements take."""
    statements = (node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Import | ast.ImportFrom))
    return sum((node.end_lineno or node.lineno) - node.lineno + 1 for node in statements)


def find_twins(sources: Iterable[str]) -> list[str]:
    """Return the names of classes that are defined more than once, sorted."""
    names = Counter(
        node.name for source in sources for node in ast.parse(source).body if isinstance(node, ast.ClassDef)
    )
    return sorted(name for name, count in names.items() if count > 1)


def _list_docstring_lines(tree: ast.Module) -> Iterator[int]:
    """Yield the lines of strings that are statements: docstrings, and those that document a constant."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            yield from range(node.lineno, (node.end_lineno or node.lineno) + 1)


if __name__ == "__main__":
    main()
