"""Two checkouts of a user's code in lock-step: slowdowns outside the compiled program, which a replay cannot show."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import msgspec
import pytest

from jaxmeter.harness.record import RunFolder, read_run
from jaxmeter.harness.record.runs import CONFIRMING_PROCESSES, Suspect, Suspects
from jaxmeter.reporting.compare.gate import UNDECIDED
from tests.end_to_end.conftest import run_program

pytestmark = [pytest.mark.end_to_end, pytest.mark.slow]

SUITE = '''
"""Calls of which more than the program can become slower."""

import jax
import jax.numpy as jnp
import numpy

from jaxmeter import workload
from team.tree import Pair
from team.work import call_back, iterate, take_sine


def make(key):
    return jnp.linspace(0.0, 1.0, 1000)


@workload(inputs=make, reference=lambda x: numpy.sin(x), modes=("eager", "jit"))
def imported(x):
    return take_sine(x)


@workload(inputs=lambda key: Pair(make(key)), reference=lambda pair: numpy.sin(pair.x), modes=("jit",))
def flattened(pair):
    return jnp.sin(pair.x)


@workload(inputs=make, reference=lambda x: numpy.sin(x), modes=("jit",))
def called_back(x):
    return jax.pure_callback(call_back, jax.ShapeDtypeStruct(x.shape, x.dtype), x)


@workload(inputs=make, reference=lambda x: numpy.sin(x), modes=("jit",))
def compiled(x):
    return iterate(x)


@workload(inputs=make, reference=lambda x: numpy.cos(x), modes=("eager", "jit"))
def unchanged(x):
    return jnp.cos(x)
'''
WORK = """
import time

import jax
import jax.numpy as jnp
import numpy


def wait(seconds={wait_s}):
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        pass


def take_sine(x):
    wait()
    return jnp.sin(x)


def call_back(x):
    wait()
    return numpy.sin(numpy.asarray(x))


def iterate(x):
    return jax.lax.fori_loop(0, {steps}, lambda _, y: jnp.sin(y) * 0.0 + jnp.sin(x), x)
"""
TREE = """
import jax

from team.work import wait


class Pair:
    def __init__(self, x):
        self.x = x


def flatten(pair):
    wait()
    return (pair.x,), None


jax.tree_util.register_pytree_node(Pair, flatten, lambda _, children: Pair(*children))
"""
SLOWER = {"imported:eager", "flattened:jit", "called_back:jit", "compiled:jit"}
BESIDE = ("--against", "../results/before", "--baseline-checkout", "../base")


def write_checkout(folder: Path, wait_s: float, steps: int) -> Path:
    team = folder / "src" / "team"
    team.mkdir(parents=True)
    (team / "__init__.py").touch()
    (team / "work.py").write_text(WORK.format(wait_s=wait_s, steps=steps))
    (team / "tree.py").write_text(TREE)
    (folder / "bench").mkdir()
    (folder / "bench" / "step.py").write_text(SUITE)
    return folder


def call(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Runs jaxmeter in a checkout, whose package is found by a path of its own, as an editable installation has it."""
    return run_program(folder, *words, path=(folder / "src",))


def measure(folder: Path, run_id: str, *more: str) -> subprocess.CompletedProcess[str]:
    words = ("--quick", "--probe", "timing", "--suites", "bench/step.py", "--out", "../results", "--run-id", run_id)
    return call(folder, "run", *words, *more)


@pytest.fixture(scope="module")
def measured(tmp_path_factory):
    """The earlier checkout and its run, and a later checkout, which is slower in all but the unchanged workload."""
    folder = tmp_path_factory.mktemp("two")
    base = write_checkout(folder / "base", wait_s=0.0, steps=1)
    write_checkout(folder / "new", wait_s=0.001, steps=400)
    ended = measure(base, "before", "--processes", "3", "--probe", "compilation")
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return folder


@pytest.fixture
def checkouts(measured, tmp_path):
    """Copies, which a test may change."""
    return shutil.copytree(measured, tmp_path / "two")


@pytest.mark.alone
def test_each_slowdown_outside_the_program_is_confirmed_and_unchanged_code_is_not_slower(checkouts):
    new = checkouts / "new"

    ended = measure(new, "after", "--processes", "3", *BESIDE)

    assert ended.returncode == 0, ended.stdout + ended.stderr
    run = read_run(RunFolder(checkouts / "results" / "after"))
    assert run.manifest.settings.lock_step.checkout == "../base"
    beside = [one for case in run.manifest.cases for one in case.variants if one.replays is not None]
    assert {one.same_as for one in beside} == SLOWER | {"imported:jit", "unchanged:eager", "unchanged:jit"}
    assert all(one.replays.from_checkout for one in beside)
    compared = call(new, "compare", "../results/before", "../results/after", "--verdict", "verdict.json")
    times = {
        one["variant"]: one
        for one in json.loads((new / "verdict.json").read_text())["changes"]
        if one["metric"] == "execution_s"
    }
    assert compared.returncode == 1, compared.stdout
    assert all(times[name]["effect"]["estimate"] > 2 for name in SLOWER), times
    assert all(one["in_lock_step"] for one in times.values())
    assert {name for name, one in times.items() if one["finding"] == "slower"} == SLOWER


@pytest.mark.alone
def test_a_gate_confirms_slower_eager_code_by_fresh_processes(checkouts):
    new = checkouts / "new"
    only = ("--select", "imported")
    suspects = Suspects(
        baseline="before",
        suspects=(Suspect(case="imported", variant="imported:eager"),),
        processes=CONFIRMING_PROCESSES,
    )
    (new / "suspects.json").write_bytes(msgspec.json.encode(suspects))
    first = measure(new, "after", "--processes", "3", *only, *BESIDE)
    again = measure(new, "again", "--suspects", "suspects.json", *only, *BESIDE)
    assert (first.returncode, again.returncode) == (0, 0), first.stderr + again.stderr

    ended = call(
        new, "gate", *(f"../results/{name}" for name in ("before", "after")), "--confirmed-by", "../results/again"
    )

    assert ended.returncode == 1, ended.stdout
    assert "imported:eager" in ended.stdout
    assert "in lock-step" in ended.stdout


@pytest.mark.alone
def test_without_the_earlier_checkout_longer_calls_outside_the_program_leave_no_answer(checkouts):
    new, both = checkouts / "new", ("../results/before", "../results/after")
    outside = ("imported", "flattened", "called_back")
    only = [word for name in (*outside, "unchanged") for word in ("--select", name)]
    assert measure(new, "after", "--against", both[0], *only, "--probe", "compilation").returncode == 0
    call(new, "compare", *both, "--suspects", "suspects.json")
    looking = ("--against", both[0], "--suspects", "suspects.json", "--processes", "3")
    assert measure(new, "again", *looking).returncode == 0

    ended = call(new, "gate", *both, "--confirmed-by", "../results/again", "--verdict", "verdict.json")

    unconfirmed = json.loads((new / "verdict.json").read_text())["unconfirmed"]
    held = {one["case"]: one["effect"]["estimate"] for one in unconfirmed}
    assert ended.returncode == UNDECIDED, ended.stdout
    assert min(held[case] for case in outside) > 4
    assert "unchanged" not in held


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ("edit", "not what run before measured: the code of imported in imported differs"),
        ("loaded", "team is loaded from"),
    ],
)
def test_a_checkout_with_other_code_than_the_earlier_run_is_refused_before_anything_is_measured(
    checkouts, change, words
):
    base, new = checkouts / "base", checkouts / "new"
    earlier = base / "bench" / "step.py"
    if change == "edit":
        earlier.write_text(SUITE.replace("return take_sine(x)", "return take_sine(x + 0.0)"))
    else:
        (base / "src" / "team").rename(base / "src" / "mate")
        earlier.write_text(f"import sys\nsys.path.insert(0, {str(new / 'src')!r})\n{SUITE}")

    ended = measure(new, "after", "--processes", "3", *BESIDE)

    assert ended.returncode == 2, ended.stdout
    assert words in ended.stderr
    assert not (checkouts / "results" / "after").exists()
