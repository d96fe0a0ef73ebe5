"""What differs between where and how runs were made: every recorded fact by name, and which of them are unlike."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from jaxmeter.harness.record.environment import Environment
from jaxmeter.harness.record.runs import Manifest
from jaxmeter.harness.record.settings import Settings

STEERING = ("jax", "jaxlib", "libtpu")
PLUGINS = ("jax-cuda", "nvidia-", "jax-rocm", "jax-tpu")

Fact = object
"""A recorded value: a text, a number, a truth value, None, or a tuple of them."""


def steers_programs(package: str) -> bool:
    """Whether a package decides on how a compiled program runs; others change what is compiled, and other code."""
    return package in STEERING or package.startswith(PLUGINS)


def facts_of(manifest: Manifest, platform: str | None = None) -> dict[str, Fact]:
    """Return every fact of a run by name, those inside a mapping as `packages.jax`.

    Args:
      platform: Whose environment it is; by default that of the backend.
    """
    where = manifest.backend if platform is None else platform
    here = manifest.environments[where]
    return {
        "run id": manifest.run_id,
        "started": manifest.started,
        "jaxmeter": manifest.tool_version,
        "schema version": manifest.schema_version,
        "backend": where,
        # Measured or looked up, peaks say what rates are compared with, and change no measurement.
        **{name: fact for name, fact in flatten(here).items() if not name.startswith("peak")},
        **{f"own_packages.{package.name}": package.describe() for package in manifest.own_packages or ()},
        **flatten(manifest.settings),
        "cores": here.cores,  # the machine's; the settings' are those of a process
        "process_cores": manifest.settings.process_cores or "all that are allowed",
    }


def flatten(record: Environment | Settings) -> dict[str, Fact]:
    """The fields of a record by name; of a mapping, its entries in order."""
    facts: dict[str, Fact] = {}
    for field, value in msgspec.structs.asdict(record).items():
        if isinstance(value, Mapping):
            facts |= {f"{field}.{key}": inner for key, inner in sorted(value.items())}
        elif isinstance(value, msgspec.Struct):
            inside = msgspec.structs.asdict(value).items()
            facts |= {f"{field}.{key}": inner for key, inner in inside if not isinstance(inner, Mapping)}
        else:
            facts[field] = value
    return facts


def find_differences(sides: Sequence[Mapping[str, Fact]], *, of: Iterable[str] | None = None) -> tuple[str, ...]:
    """Names of the facts that are not the same on all sides; one that a side lacks differs from any value.

    Args:
      of: Only these facts, or fields with all their entries; by default all.
    """
    names = dict.fromkeys(name for side in sides for name in side)
    wanted = None if of is None else set(of)
    missing = object()
    return tuple(
        name
        for name in names
        if (wanted is None or name in wanted or name.partition(".")[0] in wanted)
        and any(side.get(name, missing) != sides[0].get(name, missing) for side in sides[1:])
    )
