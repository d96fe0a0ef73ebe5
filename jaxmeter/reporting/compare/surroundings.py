"""What differs around two programs: where their runs were made, and the measured code."""

from __future__ import annotations

from jaxmeter.harness.record import Manifest
from jaxmeter.harness.record.differences import Fact, facts_of, find_differences

from .. import numbers
from . import Difference
from .pairs import Pair

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


def find_surroundings(a: Manifest, b: Manifest) -> tuple[Difference, ...]:
    """What differs between two runs and may make the compiler write another program."""
    facts = facts_of(a), facts_of(b)
    order = list(_TITLES)
    names = sorted(find_differences(facts, of=order), key=lambda name: order.index(name.partition(".")[0]))
    found = (Difference(_title(name), *(_write(name, side) for side in facts)) for name in names)
    return tuple(one for one in found if one.a != one.b)


def find_changed_code(pair: Pair) -> tuple[str, ...]:
    """What of the measured code has changed, by its hashes."""
    implementation = pair.variant.rpartition(":")[0] or pair.variant
    return (
        *([f"the code of {implementation} has changed"] if pair.a.source != pair.b.source else []),
        *([f"the definition of {pair.case} has changed"] if pair.a.definition != pair.b.definition else []),
    )


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
