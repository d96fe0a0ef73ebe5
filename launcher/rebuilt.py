"""The environment of a baseline run, made anew from what the run recorded, where today's is another."""

from __future__ import annotations

import platform
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from launcher.environments import Wanted
from launcher.options import UsageError
from launcher.runs import MANIFEST, read_record

STEERING = ("jax", "jaxlib")
"""Packages that decide on how a compiled program runs; a test holds that the harness names them, too."""

PINNED = (*STEERING, "numpy", "scipy", "ml-dtypes", "flax", "optax")
"""Of the recorded packages those that are installed again. Peers are not compared across versions."""

FLAGS = re.compile(r"(XLA_|JAX_|LIBTPU_)")
UNUSED = re.compile(
    "JAX_(PLATFORMS$|DISABLE_JIT|COMPILATION_CACHE_|ENABLE_COMPILATION_CACHE|PERSISTENT_CACHE_|RAISE_PERSISTENT_CACHE_)"
    "|XLA_PYTHON_CLIENT_PREALLOCATE$"
)
"""Flags that the harness sets by the backend, or leaves out: none of them is another in a run. Whether a device's
memory is taken ahead steers no program."""


@dataclass(frozen=True)
class Baseline:
    """Where a baseline run was made.

    Args:
      packages, variables: As it recorded them.
      image: Name and id of the image that it was measured in; empty outside of containers.
    """

    backend: str
    python: str
    packages: Mapping[str, str]
    variables: Mapping[str, str]
    image: str = ""

    @property
    def image_id(self) -> str:
        """By which an engine finds the image, whatever is called so today."""
        return self.image.rpartition(" ")[2]

    @property
    def wanted(self) -> Wanted:
        """What its environment held."""
        pins = tuple(f"{name}=={self.packages[name]}" for name in PINNED if name in self.packages)
        return Wanted(" ".join(pins), pins, is_pinned=True)


def read_baseline(run: Path) -> Baseline:
    """What a run recorded of where it was made.

    Raises:
      UsageError: Its manifest cannot be read.
    """
    try:
        manifest: dict[str, Any] = read_record(run / MANIFEST)
        here = manifest["environment"]
        return Baseline(
            str(manifest["backend"]),
            str(here["python"]),
            dict(here["packages"]),
            dict(here["variables"]),
            str(here.get("image") or ""),
        )
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UsageError(
            f"{run / MANIFEST}: cannot be read ({type(error).__name__}); measure a new baseline"
        ) from error


def find_changes(baseline: Baseline, installed: Mapping[str, str], variables: Mapping[str, str]) -> list[str]:
    """`jaxlib 0.10.1 → 0.10.2`: what differs of today's environment that steers compiled programs.

    Args:
      installed: Versions by package.
      variables: Of today's processes.
    """
    found = [
        f"{name} {was} → {installed[name]}"
        for name in STEERING
        if (was := baseline.packages.get(name)) is not None and name in installed and was != installed[name]
    ]
    sides = [_choose_flags(side) for side in (baseline.variables, variables)]
    return found + [name for name in sorted(sides[0] | sides[1]) if sides[0].get(name) != sides[1].get(name)]


def find_obstacle(baseline: Baseline, *, in_container: bool) -> str:
    """Why the environment cannot run beside today's; empty where it can."""
    if in_container and not baseline.image:
        return "it was measured outside of containers; --runtime local can make its environment anew"
    if baseline.backend != "cpu":
        return f"two processes that take turns on one {baseline.backend} have never been tried"
    if not in_container and _minor(baseline.python) != _minor(platform.python_version()):
        return f"it was made with Python {baseline.python}, here is {platform.python_version()}"
    return ""


def read_installed(listed: str) -> dict[str, str]:
    """Versions by package, of what `pip list --format=freeze` prints."""
    pairs = (line.strip().partition("==") for line in listed.splitlines())
    return {name.lower().replace("_", "-"): version for name, _, version in pairs if version}


def _choose_flags(variables: Mapping[str, str]) -> dict[str, str]:
    """Those that steer programs, with the user's home as a record has it."""
    home = str(Path.home())
    flags = {name: value for name, value in variables.items() if FLAGS.match(name) and not UNUSED.match(name)}
    return {name: value.replace(home, "~") for name, value in flags.items()}


def _minor(version: str) -> list[str]:
    return version.split(".")[:2]
