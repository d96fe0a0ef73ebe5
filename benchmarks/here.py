"""Where and when a benchmark ran: the line that every figure is read with."""

from __future__ import annotations

import os
import platform
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path


def describe_here(*packages: str) -> str:
    """Machine, system, load, versions of Python and of some packages, and the date, in one line."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    versions = ", ".join((f"Python {platform.python_version()}", *(f"{name} {version(name)}" for name in packages)))
    return (
        f"{cores} cores of {_name_processor()}, {platform.system()} {platform.release()}, "
        f"load {os.getloadavg()[0]:.2f}; {versions}; {datetime.now(UTC):%Y-%m-%d}"
    )


def _name_processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf8").splitlines()
    except OSError:
        lines = []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()
