"""What `--select`, `--case` and `--suites` can mean, known before an environment is made."""

from __future__ import annotations

import ast
import difflib
import re
from collections.abc import Sequence
from pathlib import Path

from jaxmeter.launch.options import UsageError, read_options

OWN_SUITES = Path("jaxmeter", "suites")

_WILDCARD = re.compile(r"[*?]")


def check_names(checkout: Path, words: Sequence[str], option: str = "--select") -> None:
    """Check files of suites, and what is selected of jaxmeter's own suites, without an environment.

    Sizes of a case, levels and suites of users are checked by the harness, in an environment that can import them.

    Args:
      words: Options of a measurement.
      option: The name by which the user gave the selection.
    Raises:
      UsageError: A file of suites does not exist, or no suite and no workload has a selected name.
    """
    given = read_options(words, "--select", "--suites")
    for suites in given.values.get("--suites", ()):
        if suites.endswith(".py") and not Path(suites).expanduser().is_file():
            raise UsageError(
                f"no suite module or file '{suites}'; --suites takes a module name, a .py file or a folder"
            )
    if "--suites" in given:
        return
    names = list_own_names(checkout)
    for pattern in given.values.get("--select", ()):
        if not any(_may_match(pattern, name) for name in names):
            like = difflib.get_close_matches(pattern.strip("*?"), names, n=1, cutoff=0.4)
            hint = f"; nearest: '{like[0]}'" if like else ""
            raise UsageError(
                f"no case of this level matches {option} '{pattern}'{hint}; list all: jaxmeter list --full"
            )


def list_own_names(checkout: Path) -> list[str]:
    """Return the names of jaxmeter's own suites and workloads, read from their files without an import."""
    names = []
    for path in sorted((checkout / OWN_SUITES).glob("[!_]*.py")):
        functions = [node for node in ast.parse(path.read_bytes()).body if isinstance(node, ast.FunctionDef)]
        if workloads := [node.name for node in functions if any(map(_declares_workload, node.decorator_list))]:
            names += [path.stem, *workloads]
    return list(dict.fromkeys(names))


def _declares_workload(decorator: ast.expr) -> bool:
    return isinstance(decorator, ast.Call) and isinstance(decorator.func, ast.Name) and decorator.func.id == "workload"


def _may_match(pattern: str, name: str) -> bool:
    """Return whether a pattern matches a name, or may match it with the sizes of a case in brackets."""
    literal, *rest = _WILDCARD.split(pattern, maxsplit=1)
    if "[" in literal:
        return literal.partition("[")[0] == name
    return name.startswith(literal) if rest else name == literal
