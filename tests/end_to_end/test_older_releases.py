"""Older releases of jax next to today's, each in an environment of its own: nox -s releases."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from jaxmeter.harness.record import LOCK_STEP, RunFolder, Status, read_run
from jaxmeter.launch.environments import make_environment, read_wanted
from jaxmeter.launch.runs import PROGRAMS
from jaxmeter.launch.shell import list_needed
from tests.end_to_end.conftest import CHECKOUT, run_program

pytestmark = [pytest.mark.end_to_end, pytest.mark.releases]

RELEASES = ("0.4.31", "0.5.3", "0.6.2", "0.7.2", "0.8.3", "0.11.2")

SUITE = '''
"""Three small cases."""

import jax
import jax.numpy as jnp
import numpy as np

from jaxmeter import Needs, State, workload


@workload(inputs=lambda key: (jax.random.normal(key, (64, 64)),), reference=np.sin, compiles=1)
def sine(x):
    return jnp.sin(x)


@workload(
    inputs=lambda key: (jnp.float64(0.0), jax.random.normal(key, (100,), "float64")),
    reference=lambda total, x: (total + x.sum(), np.ones(100)),
    modes=("jit",),
    state=State(carry={"total": 0}, donate=("total",)),
    needs=Needs(config={"jax_enable_x64": True}, devices=2),
)
def slope(total, x):
    add = lambda x: jax.lax.scan(lambda carry, one: (carry + one, None), total, x)[0]
    return add(x), jax.grad(add)(x)


def in_python(i):
    x = 0.1 + i / 100.0
    for _ in range(60):
        x = 3.9 * x * (1 - x)
    return x


@workload(inputs=lambda key: jnp.arange(64), reference=in_python, modes=("jit",))
def chaos(i):
    return jax.lax.scan(lambda x, _: (3.9 * x * (1 - x), None), 0.1 + i / 100.0, None, length=60)[0]
'''

CHECK_TABLE = """
import jax, jax.numpy as jnp
from jaxmeter.harness.machine.jax_internals import INTERNALS, read_release
from jaxmeter.harness.machine.own_fault import ReleaseLacksError

RELEASE = read_release(jax.__version__)


def is_read(row, holder=None):
    try:
        row.load() if holder is None else row.find(holder)
    except ReleaseLacksError:
        return False
    return True


x = jnp.ones(3)
jaxpr = jax.make_jaxpr(lambda x: jax.jit(lambda x: jax.lax.scan(lambda c, r: (c + r, c), x[0], x))(x))(x).jaxpr
(call,) = jaxpr.eqns
(scan,) = [each for each in INTERNALS["CALL_BODY"].find(call.params).jaxpr.eqns if each.primitive.name == "scan"]
compiled = jax.jit(lambda x: x + 1).lower(x).compile()
holders = {name: scan.params for name in ("SCAN_COUNTS", "SCAN_BODY", "SCAN_LENGTH", "SCAN_REVERSE")}
holders |= {name: compiled.memory_analysis() for name in ("BUFFERS", "PEAK_BYTES", "TOTAL_BYTES", "UNPADDED_BYTES")}
holders |= {"SERIALIZE": compiled.runtime_executable()}
holders |= {name: None for name, row in INTERNALS.items() if row.name.startswith(("jax.", "jax._src", "jaxlib."))}
holders |= {"JIT": {call.primitive.name: 1}}
wrong = [name for name, holder in holders.items()
         if is_read(INTERNALS[name], holder) is not any(each.is_in(RELEASE) for each in INTERNALS[name].names)]
print(len(holders), wrong)
"""


@pytest.fixture(params=RELEASES)
def older(request):
    """The python of an environment with an older release."""
    environments = CHECKOUT / ".nox" / "environments"
    return make_environment(read_wanted(f"jax=={request.param}"), environments, list_needed())


def measure(folder: Path, python: Path, *arguments: str) -> None:
    ended = run_program(folder, "run", "--suites", "small.py", "--quick", *arguments, python=python)
    assert ended.returncode == 0, ended.stdout + ended.stderr


def test_an_older_release_has_the_internals_of_the_table_and_no_others(older):
    variables = {**os.environ, "PYTHONPATH": str(CHECKOUT), "JAX_PLATFORMS": "cpu"}
    ended = subprocess.run([older, "-c", CHECK_TABLE], env=variables, capture_output=True, text=True, check=False)

    assert ended.stderr == "" or ended.returncode == 0, ended.stderr
    count, _, wrong = ended.stdout.strip().partition(" ")
    assert int(count) > 18
    assert wrong == "[]"


def test_an_older_release_measures_and_takes_turns_with_todays(tmp_path, older, harness):
    (tmp_path / "small.py").write_text(SUITE)

    measure(tmp_path, older, *PROGRAMS, "--processes", "1", "--run-id", "before")
    beside = ("--against", "results/before", "--lock-step", str(older))
    ended = harness("run", "--suites", "small.py", "--quick", "--probe", "timing", "--run-id", "after", *beside)

    assert ended.returncode == 0, ended.stdout + ended.stderr
    before = read_run(RunFolder(tmp_path / "results" / "before"))
    after = read_run(RunFolder(tmp_path / "results" / "after"))
    for case in before.cases:
        for variant in case.variants:
            for probe in ("numerics", "compilation", "memory"):
                if probe in variant.outcomes and not variant.name.endswith(":eager"):
                    assert variant.outcomes[probe].status is Status.OK, (variant.name, variant.outcomes[probe])
    modes = {one.name: one.mode for case in after.manifest.cases for one in case.variants}
    timed = {one.name: one.outcomes["timing"].status for case in after.cases for one in case.variants}
    assert timed == dict.fromkeys(timed, Status.OK)
    assert {"sine:jit before", "slope:jit before"} <= {name for name, mode in modes.items() if mode == LOCK_STEP}


def test_an_older_release_measures_all_probes(tmp_path, older):
    (tmp_path / "small.py").write_text(SUITE)

    measure(tmp_path, older, "--processes", "3", "--run-id", "alone")

    run = read_run(RunFolder(tmp_path / "results" / "alone"))
    found = {
        (variant.name, probe): outcome.status
        for case in run.cases
        for variant in case.variants
        for probe, outcome in variant.outcomes.items()
    }
    assert not [key for key, status in found.items() if status not in (Status.OK, Status.UNSUPPORTED)]
    assert found["slope:jit", "timing"] is Status.OK
