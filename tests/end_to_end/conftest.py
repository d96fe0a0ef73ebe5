"""Running the harness as its users do: as a program, in a folder of its own."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest

CHECKOUT = Path(__file__).parents[2]
Harness = Callable[..., "subprocess.CompletedProcess[str]"]

SMALL = '''"""Small."""

import jax.numpy as jnp

from jaxmeter import workload


@workload(
    inputs=lambda key, *, n: jnp.arange(n, dtype="float32"),
    params={"n": (1, 2, 3)},
    reference=lambda x: x + 1,
    modes=("eager", "jit"),
)
def increment(x):
    """Adds one, (n,) -> (n,)."""
    return x + 1
'''


def write_small_suite(folder: Path) -> Path:
    """A suite of one workload with three small cases."""
    path = folder / "small.py"
    path.write_text(SMALL, encoding="utf8")
    return path


def run_program(
    folder: Path,
    *arguments: str | Path,
    python: str | Path = sys.executable,
    path: Sequence[Path] = (),
    **variables: str,
) -> subprocess.CompletedProcess[str]:
    """Runs `jaxmeter ARGUMENTS` to its end, in a folder.

    Args:
      path: Where else modules are found.
    """
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, (CHECKOUT, *path))), **variables}
    return _run([python, "-m", "jaxmeter", *arguments], folder, environment)


def run_outside(folder: Path, *command: str | Path) -> subprocess.CompletedProcess[str]:
    """Runs a command of another environment to its end, which knows nothing of this checkout."""
    own = ("PYTHONPATH", "JAXMETER_RUNTIME")
    return _run(command, folder, {name: value for name, value in os.environ.items() if name not in own})


def _run(
    command: Sequence[str | Path], folder: Path, environment: Mapping[str, str]
) -> subprocess.CompletedProcess[str]:
    words = list(map(str, command))
    return subprocess.run(words, cwd=folder, env=environment, capture_output=True, text=True, timeout=900, check=False)


def start_program(folder: Path, *arguments: str | Path, python: Sequence[str] = ()) -> subprocess.Popen[str]:
    """Begins `jaxmeter ARGUMENTS` in a folder.

    Args:
      python: Options of Python.
    """
    command = [sys.executable, *python, "-m", "jaxmeter", *map(str, arguments)]
    variables = {**os.environ, "PYTHONPATH": str(CHECKOUT)}
    pipe, both = subprocess.PIPE, subprocess.STDOUT
    return subprocess.Popen(command, cwd=folder, env=variables, stdout=pipe, stderr=both, text=True)


def wait_for_file(running: subprocess.Popen[Any], folder: Path, pattern: str, limit_s: float = 60) -> None:
    """Returns once a program has written a file."""
    end = time.monotonic() + limit_s
    while not list(folder.glob(pattern)):
        assert running.poll() is None, f"it ended with {running.returncode} and left nothing like {pattern}"
        assert time.monotonic() < end, f"nothing like {pattern} within {limit_s} s"
        time.sleep(0.01)


def build_wheel(folder: Path) -> Path:
    """The wheel of this checkout."""
    build = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", str(folder), str(CHECKOUT)]
    subprocess.run(build, check=True)
    (path,) = folder.glob("*.whl")
    return path


@pytest.fixture
def harness(tmp_path):
    """Runs `jaxmeter ARGUMENTS` to its end, in an empty folder."""
    return partial(run_program, tmp_path)


@pytest.fixture
def suite(tmp_path):
    return write_small_suite(tmp_path)
