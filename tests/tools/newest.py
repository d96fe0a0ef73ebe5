"""Versions that the tests have not run with: `nox -s newest` runs some tests with them, `nox -s lock` lists them."""

from __future__ import annotations

import importlib.metadata
import platform
import re
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import nox
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from jaxmeter.launch.images import locate_lock
from jaxmeter.launch.versions import order_version
from tests.tools.exports import list_exports
from tests.tools.git import ask_git
from tests.tools.lock_versions import Change, Locked, choose_version, list_changes, read_locked
from tests.tools.locks import INSTALLERS
from tests.tools.marked_tests import ANY_PROCESS, BREAK_FIRST, choose_paths

DEVELOPMENT_LOCK = "dev"
"""The lock that the tests run with."""

INTERNALS = Path("jaxmeter/harness/machine/jax_internals.py")
"""Names the newest release of jax that all tests have passed with, as NEWEST_TESTED; nothing here imports it."""

EXTRA = "all"
"""The extra that the tests need: flax, pandas and others are no dependencies of the project."""

FINE, FAILED = 0, 1

MOST_NAMED = 20
"""Failed tests in the last message; a changed name of JAX fails hundreds."""

_NAME = re.compile(r"[A-Za-z0-9._-]+")


def run_newest_tests(
    checkout: Path,
    requirements: Sequence[str],
    arguments: Sequence[str],
    installed: Mapping[str, str],
    python: str,
    run: Callable[[Sequence[str]], int],
) -> int:
    """Run the tests that break first in an environment of the newest packages; say what failed with which versions.

    Args:
      requirements: Of the project and its tests, as pyproject.toml has them.
      arguments: Of pytest.
      installed: Versions by canonical name.
      python: The version of Python, such as `3.13.0`.
      run: Arguments of `python -m pytest` -> its exit code.
    Returns:
      FINE or FAILED.
    """
    locked = read_locked((checkout / locate_lock(DEVELOPMENT_LOCK)).read_text(encoding="utf8"))
    named = [canonicalize_name(match[0]) for match in map(_NAME.match, requirements) if match]
    for line in tabulate(installed, locked, python, named):
        say(line)
    with tempfile.TemporaryDirectory() as folder:
        results = Path(folder, "results.xml")
        # By test: pytest-xdist never ends if files are kept together and a new jaxlib aborts a process.
        options = (*ANY_PROCESS, f"--junitxml={results}", "-o", "junit_family=xunit1")
        code = run((*options, *choose_paths(BREAK_FIRST, arguments, checkout)))
        count, failed = read_results(results)
    tested = read_newest_tested((checkout / INTERNALS).read_text(encoding="utf8"))
    versions = describe_versions(installed, locked, python)
    if code == FINE:
        say(f"{count} tests passed with {versions}")
    else:
        say(f"error: {len(failed)} of {count} tests failed (pytest ended with {code}) with {versions}")
        for name in failed[:MOST_NAMED]:
            say(f"  {name}")
        if len(failed) > MOST_NAMED:
            say(f"  and {len(failed) - MOST_NAMED} others")
        say("what to do: docs/operations.md, When JAX releases")
    for line in describe_untested(installed.get("jax", ""), tested):
        say(line)
    return FINE if code == FINE else FAILED


def list_requirements(checkout: Path) -> list[str]:
    """Return what the project, its extra `all` and its tests ask for: `nox -s newest` installs it."""
    settings = nox.project.load_toml(checkout / "pyproject.toml")
    project, tests = settings["project"], nox.project.dependency_groups(settings, "test")
    return [*project["dependencies"], *_expand_extra(project, EXTRA), *tests]


def _expand_extra(project: Mapping[str, Any], extra: str) -> Iterator[str]:
    """Yield the requirements of an extra, and of the extras of the project that it names."""
    for line in project["optional-dependencies"][extra]:
        requirement = Requirement(line)
        if requirement.name == project["name"]:
            for other in sorted(requirement.extras):
                yield from _expand_extra(project, other)
        else:
            yield line


def list_installed() -> dict[str, str]:
    """Return versions by canonical name, of this environment."""
    found = {canonicalize_name(each.name): each.version for each in importlib.metadata.distributions()}
    return {name: version for name, version in sorted(found.items()) if name not in INSTALLERS}


def say(line: str) -> None:
    """Print a message to standard error, before what a program prints that follows."""
    print(line, file=sys.stderr, flush=True)


def read_results(path: Path) -> tuple[int, list[str]]:
    """Return the number of tests in pytest's file of results, and those that failed; nothing where there is no file."""
    if not path.is_file():
        return 0, []
    cases = list(ElementTree.parse(path).iter("testcase"))
    failed = [case for case in cases if case.find("failure") is not None or case.find("error") is not None]
    names = ("::".join(filter(None, (case.get("file"), case.get("name")))) for case in failed)
    return len(cases), list(dict.fromkeys(names))


def read_newest_tested(source: str) -> str:
    """Return the version that NEWEST_TESTED names in the text of INTERNALS; empty without one."""
    match = re.search(r'^NEWEST_TESTED\b.*?= *"([^"]+)"', source, re.MULTILINE)
    return match[1] if match else ""


def tabulate(installed: Mapping[str, str], locked: Locked, python: str, named: Sequence[str]) -> Iterator[str]:
    """Yield a table of the packages that pyproject.toml names, and of all others that differ from the lock."""
    rows = [("package", "newest", "locked")]
    for name, version in installed.items():
        before = choose_version(locked, name, python)
        if name in named or version != before:
            rows.append((name, version, "the same" if version == before else before or "not"))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    yield f"the newest packages for Python {python}; {len(installed) - len(rows) + 1} others have their locked versions"
    for row in rows:
        yield "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()


def describe_versions(installed: Mapping[str, str], locked: Locked, python: str) -> str:
    """Return `Python 3.13.0, jax 0.13.0 (locked: 0.12.0.1) and the locked versions of all others`."""
    words = [f"Python {python}"]
    for name, version in sorted(installed.items(), key=lambda item: not item[0].startswith("jax")):
        before = choose_version(locked, name, python)
        if version != before:
            words.append(f"{name} {version} (locked: {before or 'none'})")
        elif name == "jax":
            words.append(f"jax {version}")
    return f"{', '.join(words)} and the locked versions of all others"


def describe_untested(jax: str, tested: str) -> Iterator[str]:
    """Yield a line if a release of jax is newer than the newest that all tests have passed with."""
    if order_version(jax) > order_version(tested):
        yield (
            f"jax {jax} is newer than {tested}, the newest that all tests have passed with; once `nox` passes with it, "
            f"write it into {INTERNALS}, NEWEST_TESTED"
        )


def describe_new_locks(checkout: Path) -> Iterator[str]:
    """Yield what differs between the locks and those of the last commit, which the tests have run with."""
    changed: dict[Change, list[str]] = {}
    newest_jax, is_compared = "", False
    for name, _ in list_exports():
        new = read_locked((checkout / locate_lock(name)).read_text(encoding="utf8"))
        newest_jax = max([newest_jax, *(version for version, _ in new.get("jax", ()))], key=order_version)
        old = ask_git(checkout, "show", f"HEAD:{locate_lock(name)}")
        if old is None:
            yield f"{locate_lock(name)}: git has none of the last commit to compare with"
            continue
        is_compared = True
        for change in list_changes(read_locked(old), new):
            changed.setdefault(change, []).append(name)
    for change, names in sorted(changed.items(), key=lambda item: item[0].name):
        yield f"{change}{'' if DEVELOPMENT_LOCK in names else '; only in ' + ', '.join(names)}"
    if unseen := {(change.name, change.new) for change in changed if change.new}:
        yield f"the tests have not run with these {len(unseen)} new versions; run them: nox -s tests newest"
    elif is_compared:
        yield "no version is new since the last commit"
    yield from describe_untested(newest_jax, read_newest_tested((checkout / INTERNALS).read_text(encoding="utf8")))


def main() -> int:
    """Run as `nox -s newest` and `nox -s lock` do: with `locks` for the latter, else with pytest's arguments."""
    checkout = Path(__file__).parents[2]
    if sys.argv[1:] == ["locks"]:
        for _, command in list_exports():
            subprocess.run(command, cwd=checkout, check=True)
        for line in describe_new_locks(checkout):
            say(line)
        return FINE
    pytest = [sys.executable, "-m", "pytest"]
    return run_newest_tests(
        checkout,
        list_requirements(checkout),
        sys.argv[1:],
        list_installed(),
        platform.python_version(),
        lambda words: subprocess.run([*pytest, *words], cwd=checkout, check=False).returncode,
    )


if __name__ == "__main__":
    sys.exit(main())
