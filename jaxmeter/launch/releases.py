"""The releases of a package, as the package index offers them for a version of Python."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

from jaxmeter.launch.environments import Wanted, ask_version
from jaxmeter.launch.options import UsageError
from jaxmeter.launch.pip import explain, find_nearest_version, find_pip, list_versions
from jaxmeter.launch.versions import order_version

NO_VERSION = "0.0.0.dev0"
"""A version that does not exist: when asked for it, pip lists every version."""

PYTHONS = ("3.11", "3.12", "3.13", "3.14")
"""Versions of Python that pip is asked about where this one lacks a release."""

OTHER_INDEX = ("-i", "--index-url", "--extra-index-url", "--no-index", "-f", "--find-links")
"""Options of a requirements file by which pip installs from elsewhere than `ask_versions` looks."""

JAX, JAXLIB = "jax", "jaxlib"

_PINNED = re.compile(r"([A-Za-z0-9._-]+(?:\[[^\]]*\])?)==([0-9][A-Za-z0-9.]*)")
_RELEASE = re.compile(r"\d+(\.\d+)*(\.post\d+)?")


def read_pin(words: str) -> tuple[str, str]:
    """Return the package and the version of `jax==0.12.0`.

    Raises:
      UsageError: It is anything else.
    """
    match = _PINNED.fullmatch(words.strip())
    if match is None:
        raise UsageError(f'{words!r} is no release; write one package with its version, such as "jax==0.12.0"')
    return match[1], match[2]


def list_releases(good: str, bad: str, python: str = sys.executable) -> tuple[str, ...]:
    """Return `jax==0.9.0`, … from the good release to the bad one, which may be older.

    Args:
      python: The interpreter that they are for.
    Raises:
      UsageError: They are of two packages, the same, or not to be had for this Python.
    """
    (package, first), (other, last) = read_pin(good), read_pin(bad)
    package, other = package.lower(), other.lower()
    if package != other:
        raise UsageError(f"--good is a release of {package}, --bad one of {other}; give two of one package")
    if first == last:
        raise UsageError(f"--good and --bad are both {good}; give two releases")
    known = _check_offered(package, (first, last), python, "--python")
    return choose_between(package, first, last, known)


def check_environment(wanted: Wanted, option: str) -> None:
    """Check that the interpreter of an environment has the releases of jax that are named, before pip begins.

    A requirements file that names its own index, as for nightly releases, is left to pip.

    Args:
      option: The option that gives this environment another interpreter.
    Raises:
      UsageError: It has not; the message names a Python that has.
    """
    lines = [line.strip() for line in wanted.contents.splitlines()]
    if any(line.startswith(OTHER_INDEX) for line in lines):
        return
    pins = map(_PINNED.fullmatch, (*wanted.arguments, *lines))
    for match in filter(None, pins):
        if _name(match[1]) == JAX:
            _check_offered(match[1], (match[2],), wanted.python, option)


def choose_between(package: str, first: str, last: str, known: Sequence[str]) -> tuple[str, ...]:
    """Return the known releases between two; release candidates only if they are one of the two."""
    first, last = (_find_as_named(version, known) for version in (first, last))
    releases = sorted((name for name in known if _RELEASE.fullmatch(name) or name in (first, last)), key=order_version)
    start, end = releases.index(first), releases.index(last)
    between = releases[start : end + 1] if start < end else releases[end : start + 1][::-1]
    return tuple(f"{package}=={version}" for version in between)


def _check_offered(package: str, versions: Sequence[str], python: str, option: str) -> tuple[str, ...]:
    """Return every version of a package for an interpreter.

    Raises:
      UsageError: Some are not among them; the message names the Pythons that have all of them.
    """
    version = _shorten(ask_version(python))
    known = list_offered(package, version)
    for missing in (name for name in versions if _find_as_named(name, known) not in known):
        nearest = find_nearest_version(f"{package}=={missing}", known)
        hint = f"; nearest: {nearest}" if nearest else ""
        advice = _advise(package, versions, version, option)
        raise UsageError(f"there is no {package}=={missing} for Python {version}{hint}{advice}")
    return known


def _advise(package: str, versions: Sequence[str], python: str, option: str) -> str:
    """Name the Pythons that have all of these versions, the option, and an interpreter that this machine has."""

    def has_all(other: str) -> bool:
        try:
            known = list_offered(package, other)
        except UsageError:
            return False
        return all(_find_as_named(name, known) in known for name in versions)

    others = [other for other in PYTHONS if other != python]
    with ThreadPoolExecutor() as pool:  # pip takes seconds to answer
        having = [other for other, has in zip(others, pool.map(has_all, others), strict=True) if has]
    if not having:
        return ""
    names = " and ".join(filter(None, (", ".join(having[:-1]), having[-1])))
    what = " and ".join(versions)
    path = next(filter(None, map(find_interpreter, having)), "")
    example = f", such as {path}" if path else ""
    return f"; Python {names} {'has' if len(having) == 1 else 'have'} {what}: add {option} PATH{example}"


def find_interpreter(version: str) -> str:
    """Return the path of a Python of this machine, by PATH, pyenv or uv; empty where there is none.

    Args:
      version: `3.12`.
    """
    named = shutil.which(f"python{version}")
    pyenv = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv")
    folders = pyenv / "versions", Path.home() / ".local" / "share" / "uv" / "python"
    kept = sorted(path for folder in folders for path in folder.glob(f"*{version}.*/bin/python"))
    for path in (*filter(None, [named]), *map(str, kept)):
        with suppress(UsageError):  # a shim of pyenv may name a version that is not chosen
            if _shorten(ask_version(path)) == version:
                return path
    return ""


def list_offered(package: str, python: str) -> tuple[str, ...]:
    """Return every version of a package that can be installed; of jax those that jaxlib has wheels for.

    Args:
      python: `3.12`.
    Raises:
      UsageError: There is none, or pip cannot look.
    """
    versions = ask_versions(package, python)
    if _name(package) != JAX:
        return versions
    # A release of jax needs a jaxlib that is no newer than itself; jax itself names the oldest Python of new releases.
    oldest = min(ask_versions(JAXLIB, python), key=order_version)
    return tuple(name for name in versions if order_version(name) >= order_version(oldest))


def _find_as_named(version: str, known: Sequence[str]) -> str:
    """Return the version as the index writes it: 0.10 is 0.10.0."""
    return next((name for name in known if order_version(name) == order_version(version)), version)


def ask_versions(package: str, python: str) -> tuple[str, ...]:
    """Return every version that pip finds for a Python, pre-releases among them.

    Raises:
      UsageError: It finds none, or cannot look.
    """
    name = package.partition("[")[0]
    download = ("--disable-pip-version-check", "download", "--no-deps", "--dest", "/dev/null")
    asked = [*find_pip(), *download, "--python-version", python]
    ended = subprocess.run(
        [*asked, f"{name}=={NO_VERSION}"], capture_output=True, text=True, errors="replace", check=False
    )
    versions = list_versions(ended.stderr)
    if not versions:
        why = explain(ended.stderr).replace(f"=={NO_VERSION}", "").replace("this Python", f"Python {python}")
        raise UsageError(f"no release of {name} can be found: {why}")
    return versions


def _name(package: str) -> str:
    """Return the name of a package without its extras."""
    return package.partition("[")[0].lower()


def _shorten(version: str) -> str:
    """Return `3.12` of `3.12.1 (main, …)`."""
    return ".".join(version.split(maxsplit=1)[0].split(".")[:2])
