"""The releases of a package between two, as the package index offers them for this Python."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Sequence

from launcher.environments import PIP
from launcher.options import UsageError
from launcher.pip_messages import explain, find_nearest_version, list_versions, order_version

NO_VERSION = "0.0.0.dev0"
"""A version that does not exist: when asked for it, pip lists every version."""

_PINNED = re.compile(r"([A-Za-z0-9._-]+(?:\[[^\]]*\])?)==([0-9][A-Za-z0-9.]*)")
_RELEASE = re.compile(r"\d+(\.\d+)*(\.post\d+)?")


def read_pin(words: str) -> tuple[str, str]:
    """Package and version of `jax==0.10.0`.

    Raises:
      UsageError: It is anything else.
    """
    match = _PINNED.fullmatch(words.strip())
    if match is None:
        raise UsageError(f'{words!r} is no release; write one package with its version, such as "jax==0.10.0"')
    return match[1], match[2]


def list_releases(good: str, bad: str) -> tuple[str, ...]:
    """`jax==0.9.0`, … from the good release to the bad one, which may be older.

    Raises:
      UsageError: They are of two packages, the same, or not to be had for this Python.
    """
    (package, first), (other, last) = read_pin(good), read_pin(bad)
    package, other = package.lower(), other.lower()
    if package != other:
        raise UsageError(f"--good is a release of {package}, --bad one of {other}; give two of one package")
    if first == last:
        raise UsageError(f"--good and --bad are both {good}; give two releases")
    return choose_between(package, first, last, ask_versions(package))


def choose_between(package: str, first: str, last: str, known: Sequence[str]) -> tuple[str, ...]:
    """The releases among those that are known; without release candidates, unless they are one of the two.

    Raises:
      UsageError: One of the two is unknown.
    """
    first, last = (_find_as_named(version, known) for version in (first, last))
    for version in (first, last):
        if version not in known:
            nearest = find_nearest_version(f"{package}=={version}", known)
            hint = f"; nearest: {nearest}" if nearest else ""
            raise UsageError(f"there is no {package}=={version} for this Python{hint}")
    releases = sorted((one for one in known if _RELEASE.fullmatch(one) or one in (first, last)), key=order_version)
    one, two = releases.index(first), releases.index(last)
    between = releases[one : two + 1] if one < two else releases[two : one + 1][::-1]
    return tuple(f"{package}=={version}" for version in between)


def _find_as_named(version: str, known: Sequence[str]) -> str:
    """The version as the index writes it: 0.10 is 0.10.0."""
    return next((one for one in known if order_version(one) == order_version(version)), version)


def ask_versions(package: str) -> tuple[str, ...]:
    """Every version that pip finds.

    Raises:
      UsageError: It finds none, or cannot look.
    """
    name = package.partition("[")[0]
    asked = [sys.executable, *PIP, "download", "--no-deps", "--dest", "/dev/null", f"{name}=={NO_VERSION}"]
    ended = subprocess.run(asked, capture_output=True, text=True, errors="replace", check=False)
    versions = list_versions(ended.stderr)
    if not versions:
        raise UsageError(f"no release of {name} can be found: {explain(ended.stderr).replace(f'=={NO_VERSION}', '')}")
    return versions
