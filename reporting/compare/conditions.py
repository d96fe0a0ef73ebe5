"""Under which conditions two runs were made: what forbids to compare them, what weakens it, and what may explain it."""

from __future__ import annotations

from dataclasses import dataclass

from harness.record import Manifest
from harness.record.differences import Fact, facts_of, find_differences

FORBIDDING = ("backend", "x64", "matmul_precision")
"""Facts that make two numbers of one name two things."""

BLINDING = (
    *("packages", "variables", "threads", "platform_version", "device_kind", "device_name", "device_count"),
    *("processor", "allowed_cores", "cpu_quota"),
)
"""Facts on which a program's time hangs, besides the program. A kept program runs under those of today."""

PACKAGES = ("jax", "jaxlib", "libtpu")
PLUGINS = ("jax-cuda", "nvidia-", "jax-rocm", "jax-tpu")
"""Of the packages only these steer a compiled program: those of the suites change the program itself."""

MOST_NAMED = 4


@dataclass(frozen=True)
class Conditions:
    """What is not the same.

    Args:
      incomparable: Why nothing can be compared; empty where it can.
      blind: Why a difference may have another cause than the code; empty where there is none.
      changed: What has changed, as `jaxlib 0.10.1 → 0.10.2`.
    """

    incomparable: str
    blind: str
    changed: tuple[str, ...]

    def describe(self) -> str:
        """What has changed; empty where nothing has."""
        more = f" and {len(self.changed) - MOST_NAMED} more" if len(self.changed) > MOST_NAMED else ""
        return f"{', '.join(self.changed[:MOST_NAMED])}{more}"


def compare_conditions(before: Manifest, after: Manifest) -> Conditions:
    """What is not the same of two runs."""
    sides = facts_of(before), facts_of(after)
    forbidding = find_differences(sides, of=FORBIDDING)
    incomparable = f"{', '.join(_write(name, *sides) for name in forbidding)}" if forbidding else ""
    if not incomparable and before.machine and after.machine and before.machine != after.machine:
        incomparable = f"another machine: {before.machine} → {after.machine}"
    blinding = [name for name in find_differences(sides, of=BLINDING) if _steers(name)]
    changed = tuple(_write(name, *sides) for name in blinding)
    found = Conditions(incomparable, "", changed)
    return Conditions(incomparable, f"{found.describe()}" if changed else "", changed)


def _steers(name: str) -> bool:
    field, _, entry = name.partition(".")
    return field != "packages" or entry in PACKAGES or entry.startswith(PLUGINS)


def _write(name: str, before: dict[str, Fact], after: dict[str, Fact]) -> str:
    """`jaxlib 0.10.1 → 0.10.2`."""
    title = name.partition(".")[2] or name.replace("_", " ")
    was, now_is = ("none" if (value := side.get(name)) is None else str(value) for side in (before, after))
    return f"{title} {was} → {now_is}"
