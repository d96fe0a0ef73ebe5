"""A call that gets longer outside its compiled program is never called the same: real runs, and a gate's two looks."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from jaxmeter.reporting.compare.gate import UNDECIDED
from tests.end_to_end.conftest import CHECKOUT

pytestmark = [pytest.mark.end_to_end, pytest.mark.slow]

LIBRARY = '''"""What the suite imports."""

import jax
import jax.numpy as jnp
import numpy as np

SPINS = {spins}


def spin():
    for _ in range(SPINS):
        pass


class Parameters:
    def __init__(self, value):
        self.value = value


def flatten(parameters):
    spin()
    return (parameters.value,), None


jax.tree_util.register_pytree_node(Parameters, flatten, lambda _, children: Parameters(*children))


def step(x):
    spin()
    return jnp.sin(x)


def on_host(x):
    spin()
    return np.asarray(x) * 2
'''

SUITE = '''"""Calls with Python code of a library."""

import jax
import jax.numpy as jnp
import library

from jaxmeter import no_reference, workload

SAME = no_reference("a version is compared with itself")


def vector(key):
    return jax.random.normal(key, (1000,))


@workload(inputs=lambda key: library.Parameters(vector(key)), reference=SAME, modes=("jit",))
def flattened(parameters):
    return jnp.sin(parameters.value)


@workload(inputs=lambda key: (vector(key),), reference=SAME, modes=("eager",))
def imported(x):
    return library.step(x)


@workload(inputs=lambda key: (vector(key),), reference=SAME, modes=("jit",))
def called_back(x):
    return jax.pure_callback(library.on_host, jax.ShapeDtypeStruct(x.shape, x.dtype), x) + 1


@workload(inputs=lambda key: (vector(key),), reference=SAME, modes=("jit",))
def unchanged(x):
    return jnp.cos(x)
'''


def run_version(folder: Path, spins: int, *arguments: str) -> int:
    """Runs the program with a version of the library; returns its exit code."""
    where = folder / str(spins)
    where.mkdir(exist_ok=True)
    (where / "library.py").write_text(LIBRARY.replace("{spins}", str(spins)))
    path = os.pathsep.join(map(str, (CHECKOUT, where)))
    environment = {**os.environ, "PYTHONPATH": path}
    return subprocess.run(
        [sys.executable, "-m", "jaxmeter", *arguments], cwd=folder, env=environment, check=False, timeout=900
    ).returncode


def test_flattening_imports_and_callbacks_that_take_longer_leave_no_answer(tmp_path):
    (tmp_path / "suite.py").write_text(SUITE)
    measuring = ("run", "--suites", "suite.py", "--quick", "--quiet", "--probe", "timing", "--probe", "compilation")

    assert run_version(tmp_path, 1000, *measuring, "--run-id", "before") == 0
    assert run_version(tmp_path, 200_000, *measuring, "--run-id", "after", "--against", "before") == 0
    both = ("results/before", "results/after")
    run_version(tmp_path, 0, "compare", *both, "--suspects", "suspects.json")
    looking = ("--against", "before", "--suspects", "suspects.json", "--processes", "3")
    assert run_version(tmp_path, 200_000, *measuring[:5], *looking, "--run-id", "again") == 0

    code = run_version(tmp_path, 0, "gate", *both, "--confirmed-by", "results/again", "--verdict", "verdict.json")

    verdict = json.loads((tmp_path / "verdict.json").read_text())
    held = {one["case"]: one["effect"]["estimate"] for one in verdict["unconfirmed"]}
    assert code == UNDECIDED
    assert set(held) >= {"flattened", "imported", "called_back"}
    assert min(held[case] for case in ("flattened", "imported", "called_back")) > 4
    assert "unchanged" not in held
