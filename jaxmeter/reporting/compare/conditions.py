"""Under which conditions two runs were made: what forbids to compare them, what weakens it, and what may explain it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from jaxmeter.harness.record import Environment, Manifest
from jaxmeter.harness.record.differences import Fact, facts_of, find_differences, steers_programs

from ..text import shorten
from .runtimes import describe_other_runtime, read_runtime

FORBIDDING = ("backend", "x64", "matmul_precision")
"""Facts that make two numbers of one name two things."""

FORBIDDING_VARIABLES = ("JAX_ENABLE_X64", "JAX_DEFAULT_MATMUL_PRECISION")
"""By which a process sets the last two of them."""

WEAKENING = (
    *("packages", "variables", "threads", "platform_version", "driver", "device_kind", "device_name", "device_count"),
    *("processor", "allowed_cores", "cpu_quota"),
)
"""Facts on which a program's time hangs, besides the program. A kept program runs under those of today."""

HARDWARE = ("driver", "device_kind", "device_name", "device_count", "processor", "allowed_cores", "cpu_quota")
"""Of these what no environment brings with it: the earlier run's own, in lock-step, runs under those of today too."""

OF_JAX = (
    *("packages.jax", "packages.libtpu", "variables.JAX_", "variables.XLA_", "variables.LIBTPU_"),
    "platform_version",
)
"""Beginnings of facts on which JAX's code hangs, and no other library's. CUDA's packages are not among them."""

RELEASED = ("packages.jax", "packages.jaxlib")
"""Packages whose releases can plan the same program differently."""

MOST_NAMED = 4
LONGEST_FACT = 120
LONGEST_VARIABLE = 60
LONGEST_RUNTIMES = 500


@dataclass(frozen=True)
class Conditions:
    """What is not the same.

    Args:
      incomparable: Why nothing can be compared; empty where it can.
      other_machine: That stored times are of two machines; empty where they are not.
      steering: What has changed that steers compiled programs, as `jaxlib 0.10.1 → 0.10.2`.
      others: What else has changed of packages.
      hardware: Of `steering` what the earlier run's environment does not bring with it.
      beside_jax: What has changed that code of other libraries hangs on too.
      other_runtime: That the runs are of two runtimes, in a sentence; empty where they are not.
      releases: Entries of `steering` about the releases of jax and jaxlib.
    """

    incomparable: str = ""
    other_machine: str = ""
    steering: tuple[str, ...] = ()
    others: tuple[str, ...] = ()
    hardware: tuple[str, ...] = ()
    beside_jax: tuple[str, ...] = ()
    other_runtime: str = ""
    releases: tuple[str, ...] = ()

    @property
    def weak(self) -> str:
        """Why a difference of two compiled programs may have another cause than the code; empty where it may not."""
        return _join(self.steering)

    @property
    def weak_in_lock_step(self) -> str:
        """The same where the earlier run's own environment takes turns with today's."""
        return _join(self.hardware)

    @property
    def anything(self) -> bool:
        """Whether anything has changed."""
        return bool(self.steering or self.others)

    def describe(self, *, everything: bool = False) -> str:
        """What has changed; empty where nothing has.

        Args:
          everything: Also what does not steer compiled programs.
        """
        return _join((*self.steering, *(self.others if everything else ())))

    def describe_beside_jax(self) -> str:
        """What has changed that another library's code hangs on; empty where nothing has."""
        return _join(self.beside_jax)


def compare_conditions(before: Manifest, after: Manifest, platform: str | None = None) -> Conditions:
    """Return what is not the same of two runs.

    Args:
      platform: One that both have; by default the backend of each.
    """
    sides = facts_of(before, platform), facts_of(after, platform)
    incomparable = _join(_write(name, *sides) for name in find_differences(sides, of=FORBIDDING))
    changed = find_differences(sides, of=WEAKENING)
    machines = f"another machine: {before.machine} → {after.machine}"
    return Conditions(
        incomparable,
        shorten(machines, LONGEST_FACT) if before.machine != after.machine else "",
        tuple(_write(name, *sides) for name in changed if _steers(name)),
        tuple(_write(name, *sides) for name in changed if not _steers(name)),
        tuple(_write(name, *sides) for name in changed if name in HARDWARE),
        tuple(_write(name, *sides) for name in changed if not name.startswith(OF_JAX)),
        shorten(describe_other_runtime(read_runtime(before), read_runtime(after), after.backend), LONGEST_RUNTIMES),
        tuple(_write(name, *sides) for name in changed if name in RELEASED),
    )


def name_variables(*environments: Environment) -> tuple[str, ...]:
    """Return the environment variables by which runs differ, of each: `XLA_FLAGS=--xla_…`, `XLA_FLAGS unset`.

    Empty words where all have the same.
    """
    sides = [one.variables for one in environments]
    different = [name for name in sorted(set().union(*sides)) if len({side.get(name) for side in sides}) > 1]
    return tuple(
        _join(
            shorten(f"{name}={side[name]}" if name in side else f"{name} unset", LONGEST_VARIABLE) for name in different
        )
        for side in sides
    )


def _join(facts: Iterable[str]) -> str:
    """The first facts, and how many more there are."""
    listed = list(facts)
    more = f" and {len(listed) - MOST_NAMED} more" if len(listed) > MOST_NAMED else ""
    return f"{', '.join(listed[:MOST_NAMED])}{more}"


def _steers(name: str) -> bool:
    field, _, entry = name.partition(".")
    return field != "packages" or steers_programs(entry)


def _write(name: str, before: dict[str, Fact], after: dict[str, Fact]) -> str:
    """`jaxlib 0.10.1 → 0.10.2`."""
    title = name.partition(".")[2] or name.replace("_", " ")
    was, now_is = ("none" if (value := side.get(name)) is None else str(value) for side in (before, after))
    return shorten(f"{title} {was} → {now_is}", LONGEST_FACT)
