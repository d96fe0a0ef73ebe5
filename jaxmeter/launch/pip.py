"""A pip that asks the package index: that of this Python, or of an environment that is made for it."""

from __future__ import annotations

import atexit
import os
import subprocess
import sys
import tempfile
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from jaxmeter.launch.execution import say
from jaxmeter.launch.options import UsageError


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
