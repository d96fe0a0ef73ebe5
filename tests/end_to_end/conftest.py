"""Running the harness as its users do: as a program, in a folder of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).parents[2]
Harness = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(CHECKOUT)}


@pytest.fixture
def harness(tmp_path: Path, environment: dict[str, str]) -> Harness:
    """Runs `jaxmeter ARGUMENTS` to its end, in an empty folder."""

    def run(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "jaxmeter", *map(str, arguments)],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            timeout=900,
            check=False,
        )

    return run


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    """A suite of one workload with three small cases."""
    path = tmp_path / "small.py"
    path.write_text(
        '''"""Small."""

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
''',
        encoding="utf8",
    )
    return path
