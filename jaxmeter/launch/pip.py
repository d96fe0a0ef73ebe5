"""A pip that asks the package index, and what it says where it cannot install something."""

from __future__ import annotations

import atexit
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from jaxmeter.launch.execution import say
from jaxmeter.launch.options import UsageError
from jaxmeter.launch.versions import order_version

_BOUND = re.compile(r"[=<>~!]=?\s*(\d[\w.]*)")
_CONFLICT = re.compile(r"^The conflict is caused by:\n((?: +\S.*\n?)+)", re.MULTILINE)
"""Pip's list of requirements that exclude one another; each line says which package asks for which versions."""

_UNREACHED = re.compile(r"after connection broken by|Could not fetch URL")
_VERSIONS = re.compile(r"Could not find a version that satisfies the requirement (\S+).*\(from versions: ([^)]*)\)")
LONGEST_COMPLAINT = 600


def find_complaint(out: str, error: str) -> str:
    """Return what pip complained of: the causes of a conflict are on its stdout, all else is on stderr."""
    return out if _CONFLICT.search(out) is not None else error or out


def explain(complaint: str) -> str:
    """Return pip's errors: for a missing version the nearest one, for a conflict the requirements that cause it."""
    if (conflict := _CONFLICT.search(complaint)) is not None:
        causes = "; ".join(line.strip() for line in conflict[1].splitlines())
        return f"these requirements exclude one another: {causes}; leave out or change one of the versions"
    lines = [line.strip().removeprefix("ERROR: ") for line in complaint.splitlines() if line.startswith("ERROR")]
    errors = "; ".join(lines) if lines else complaint.strip()
    match = _VERSIONS.search(complaint)
    if match is None:
        return errors[:LONGEST_COMPLAINT]
    requirement = match[1]
    nearest = find_nearest_version(requirement, list_versions(complaint))
    if nearest is None and _UNREACHED.search(complaint) is not None:
        return f"the package index cannot be reached to find {requirement}; check the network, pip's index and proxy"
    if nearest is None:
        return f"the package index has no {requirement} for this Python; check the name, and that pip reaches the index"
    return f"there is no {requirement} for this Python; nearest: {nearest}"


def list_versions(complaint: str) -> tuple[str, ...]:
    """Return the versions that pip lists if it does not find the requested one; empty if it lists none."""
    match = _VERSIONS.search(complaint)
    versions = () if match is None else map(str.strip, match[2].split(","))
    return tuple(version for version in versions if version not in ("", "none"))


def find_nearest_version(requirement: str, versions: Sequence[str]) -> str | None:
    """Return the newest version older than a missing one, else the oldest; None where there is none.

    Args:
      requirement: `name==1.2.3`, or bounds, `name<=1.2.3,>=1.2.3`, as one package asks for another.
      versions: What the index lists. A withdrawn version may be listed, and cannot be installed.
    """
    bound = _BOUND.search(requirement)
    missing = order_version(bound[1] if bound else "")
    known = sorted((version for version in versions if order_version(version) != missing), key=order_version)
    older = [version for version in known if order_version(version) < missing]
    return older[-1] if older else next(iter(known), None)


@cache  # an environment takes seconds to make
def find_pip() -> tuple[str, ...]:
    """Return the command of a pip. An environment that is made for it is removed when this process ends.

    Raises:
      UsageError: This Python has no pip, and cannot make an environment with one.
    """
    if find_spec("pip") is not None:
        return (sys.executable, "-m", "pip")
    say("making an environment with pip in it")
    folder = tempfile.TemporaryDirectory(prefix="jaxmeter-")
    atexit.register(folder.cleanup)
    made = subprocess.run([sys.executable, "-m", "venv", folder.name], capture_output=True, text=True, check=False)
    if made.returncode != 0:
        raise UsageError(f"no pip here, and no environment with one: {made.stderr.strip() or made.stdout.strip()}")
    return (os.fspath(Path(folder.name, "bin", "python")), "-m", "pip")
