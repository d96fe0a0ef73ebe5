"""The versions that locks name, by Python, and how they differ from those of other locks or of an environment."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from packaging.utils import canonicalize_name

from jaxmeter.launch.environments import OLDEST_PYTHON
from jaxmeter.launch.versions import order_version

_LOCKED = re.compile(r"^([A-Za-z0-9._-]+)==([^\s;\\]+)(?: ; ([^\\\n]*))?", re.MULTILINE)
_PYTHON = re.compile(r"python_full_version (<|>=|==) '(\d+)\.(\d+)((?:\.\d+)*)(?:\.\*)?'")
"""What uv writes: `< '3.12'`, `>= '3.11.5'`, `== '3.12.*'`."""

Locked = Mapping[str, Sequence[tuple[str, str]]]
"""By canonical name: each version, with the marker that says where it is installed."""


@dataclass(frozen=True)
class Change:
    """A package whose version changed.

    Args:
      old, new: Empty for a package that is new or gone; several versions for several platforms.
      where: The Python versions that it changed for, such as `Python < 3.12`; empty for all.
    """

    name: str
    old: str
    new: str
    where: str = ""

    def __str__(self) -> str:
        where = f" ({self.where})" if self.where else ""
        is_older = self.old and self.new and order_version(self.new) < order_version(self.old)
        return f"{self.name} {self.old or 'new'} → {self.new or 'gone'}{', older' if is_older else ''}{where}"


def read_locked(lock: str) -> Locked:
    """Return what the text of a lock names."""
    locked: dict[str, list[tuple[str, str]]] = {}
    for name, version, marker in _LOCKED.findall(lock):
        locked.setdefault(canonicalize_name(name), []).append((version, marker))
    return locked


def choose_version(locked: Locked, name: str, python: str) -> str:
    """Return the locked version of a package for a Python such as `3.13.0`; empty without one.

    Other markers than those of Python are not read: of two platforms it returns `1.0 or 2.0`.
    """
    versions = [version for version, marker in locked.get(name, ()) if _fits(marker, python)]
    return " or ".join(sorted(set(versions), key=order_version))


def list_changes(old: Locked, new: Locked) -> Iterator[Change]:
    """Yield each changed package of two locks; several times where it changed differently for different Pythons."""
    for name in sorted({*old, *new}):
        bounds = _list_bounds([marker for _, marker in (*old.get(name, ()), *new.get(name, ()))])
        # The versions are the same from one bound up to the next.
        spans: list[tuple[str, str, str]] = []
        for bound in bounds:
            pair = (choose_version(old, name, bound), choose_version(new, name, bound))
            if not spans or spans[-1][1:] != pair:
                spans.append((bound, *pair))
        ends = [start for start, _, _ in spans[1:]]
        for (start, before, after), end in zip(spans, [*ends, None], strict=True):
            if before != after:
                yield Change(name, before, after, _name_span(start, end))


def _fits(marker: str, python: str) -> bool:
    return any(all(_holds(clause, python) for clause in _PYTHON.findall(part)) for part in marker.split(" or "))


def _holds(clause: tuple[str, str, str, str], python: str) -> bool:
    sign, major, minor, rest = clause
    bound = f"{major}.{minor}{rest}"
    if sign == "==":
        return f"{python}.".startswith(f"{bound}.")
    return (order_version(python) >= order_version(bound)) == (sign == ">=")


def _list_bounds(markers: Sequence[str]) -> list[str]:
    """Return the Pythons from which on another version may be locked; the first is the oldest."""
    bounds = {OLDEST_PYTHON}
    for sign, major, minor, rest in _PYTHON.findall(" ".join(markers)):
        bounds.add(f"{major}.{minor}{rest}")
        if sign == "==":
            bounds.add(f"{major}.{int(minor) + 1}")
    return sorted(bounds, key=order_version)


def _name_span(start: str, end: str | None) -> str:
    from_start = "" if start == OLDEST_PYTHON else f"≥ {start}"
    to_end = "" if end is None else f"< {end}"
    limits = ", ".join(filter(None, (from_start, to_end)))
    return f"Python {limits}" if limits else ""
