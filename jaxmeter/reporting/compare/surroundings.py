"""What differs around two programs: where their runs were made, and the measured code."""

from __future__ import annotations

from jaxmeter.harness.record import Manifest, PlannedVariant
from jaxmeter.harness.record.differences import Fact, facts_of, find_differences
from jaxmeter.harness.record.own_packages import ChangedPackage, find_changed_packages
from jaxmeter.harness.record.wording import counted, write_options

from .. import numbers
from ..text import shorten
from . import Difference
from .pairs import Pair
from .programs import Program

_TITLES = {
    "backend": "backend",
    "device_kind": "device",
    "device_count": "devices",
    "x64": "x64",
    "matmul_precision": "matmul precision",
    "variables": "variable",
    "packages": "package",
    "platform_version": "platform",
    "python": "Python",
    "processor": "processor",
    "allowed_cores": "allowed cores",
    "jaxmeter": "jaxmeter",
}
"""Facts of a run that may make the compiler write another program, the likeliest first, and what they are called."""

_UNSET = {"matmul_precision": "default", "platform_version": "unknown"}
"""How a fact reads that the record holds as null."""


MOST_PACKAGES, LONGEST_PACKAGE = 3, 200
"""Packages of the user's own that a cause names, and letters of each."""


def list_changed_packages(before: Manifest, after: Manifest, suite: str | None = None) -> tuple[ChangedPackage, ...]:
    """Return the packages of the user's own whose code is not known to be the same in two runs.

    Empty also where a run did not record its packages, as runs of older versions did not.

    Args:
      suite: Only packages that this suite imports, and those of which nobody knows which suites import them.
    """
    changed = find_changed_packages(before.own_packages, after.own_packages)
    return tuple(one for one in changed if suite is None or not one.suites or suite in one.suites)


def describe_changed_packages(before: Manifest, after: Manifest, suite: str | None = None) -> str:
    """Return `mypkg: step.py changed; commit a1b2c3d → d4e5f6a`; empty where nothing is known to have changed.

    Args:
      suite: As for `list_changed_packages`.
    """
    known = [one.describe() for one in list_changed_packages(before, after, suite) if one.is_known]
    more = len(known) - MOST_PACKAGES
    named = [shorten(words, LONGEST_PACKAGE) for words in known[:MOST_PACKAGES]]
    return "; ".join([*named, *([f"{counted(more, 'more package')} changed"] if more > 0 else [])])


def find_surroundings(a: Manifest, b: Manifest) -> tuple[Difference, ...]:
    """What differs between two runs and may make the compiler write another program."""
    facts = facts_of(a), facts_of(b)
    order = list(_TITLES)
    names = sorted(find_differences(facts, of=order), key=lambda name: order.index(name.partition(".")[0]))
    found = (Difference(_title(name), *(_write(name, side) for side in facts)) for name in names)
    return tuple(one for one in found if one.a != one.b)


def find_changed_code(pair: Pair) -> tuple[str, ...]:
    """What of the measured code has changed, by its hashes."""
    changed = describe_changed_code(pair.variant.rpartition(":")[0] or pair.variant, pair.a, pair.b)
    definition = f"the definition of {pair.case} has changed" if pair.a.definition != pair.b.definition else ""
    return tuple(filter(None, (changed, definition)))


def describe_changed_code(name: str, a: Program | PlannedVariant, b: Program | PlannedVariant) -> str:
    """What has changed of an implementation: its compiler options, else its code; empty where nothing has."""
    if a.compiler_options != b.compiler_options:
        was, now_is = (write_options(one.compiler_options) or "none" for one in (a, b))
        return f"the compiler options of {name} have changed: {was} → {now_is}"
    return f"the code of {name} has changed" if a.source != b.source else ""


def _title(name: str) -> str:
    field, _, entry = name.partition(".")
    return f"{_TITLES[field]} {entry}" if "." in name else _TITLES[field]


def _write(name: str, facts: dict[str, Fact]) -> str | None:
    value = facts.get(name)
    if value is None:
        return _UNSET.get(name)
    if isinstance(value, bool):
        return "on" if value else "off"
    return numbers.count(value) if isinstance(value, int) else str(value)
