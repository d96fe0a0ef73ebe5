"""A suite whose programs give the compiler trouble, run for real."""

import os
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from jaxmeter.harness.record import CacheStateCall, Outcome, RunRecord, Status, read_json

pytestmark = pytest.mark.slow

CHECKOUT = Path(__file__).parents[3]
INPUTS = "makes_inputs"
"""The run of all workloads that are called so."""

SUITE = '''
import functools
import itertools
import shutil
import time
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy

from jaxmeter import Caching, workload

def twice(x):
    return x * 2


def batches(key):
    return [(jnp.arange(float(n)),) for n in (3, 4, 3, 5)]


@workload(inputs=batches, reference=twice, stream=True, compiles=3)
def stream(x):
    return x * 2


@workload(
    inputs=lambda key, *, n: jnp.ones(n),
    params=dict(n=5, by=2),
    reference=lambda x, *, by: x * by,
    modes=("jit",),
    compiles=1,
    caching=Caching(new_shape=lambda *, n: dict(n=n + 1), new_static=dict(by=3), default_threshold=True),
)
def plain(x, *, by):
    return x * by


@workload(inputs=lambda key: jnp.ones(10**13), reference=twice, modes=("eager", "jit"))
def inputs_too_large(x):
    """40 TB."""
    return x * 2


def ones_and_a_damaged_cache(key):
    for path in Path(jax.config.jax_compilation_cache_dir).rglob("*damaged*"):
        path.write_bytes(b"nonsense")
    return jax.device_put(jnp.ones(5), jax.devices()[0])  # what is bound to a device is made by every process


@workload(inputs=ones_and_a_damaged_cache, reference=twice, modes=("jit",))
def damaged(x):
    return x * 2


def ones_and_no_cache(key):
    folder = Path(jax.config.jax_compilation_cache_dir)
    shutil.rmtree(folder, ignore_errors=True)
    folder.unlink(missing_ok=True)
    folder.write_text("a file, where a folder should be")
    return jnp.ones(5)


@workload(inputs=ones_and_no_cache, reference=twice, modes=("jit",))
def unwritable(x):
    return x * 2


@functools.cache
def table():
    return jnp.arange(5.0)


@workload(inputs=lambda key: table() + 1, reference=lambda x: x * numpy.arange(5), modes=("eager", "jit"))
def makes_inputs_from_a_cache(x):
    return x * table()


calls = itertools.count(1)


def numbered(key):
    number = next(calls)
    with Path(__file__).with_name("numbers.txt").open("a") as file:
        file.write(f"{number}\\n")
    return jnp.full(5, float(number))


@workload(inputs=numbered, reference=lambda x: numpy.full(5, 2), modes=("jit",))
def makes_inputs_by_counting(x):
    return x * 2


def no_shapes(key):
    return numpy.asarray(jax.random.normal(key, (5,)))


@workload(inputs=no_shapes, reference=twice, modes=("jit",))
def makes_inputs_with_numpy(x):
    return x * 2


@workload(
    inputs=lambda key: (jnp.ones(10**13), jnp.ones(5)), reference=lambda unused, x: x * 2, modes=("eager", "jit")
)
def makes_inputs_that_it_does_not_use(unused, x):
    """40 TB."""
    return x * 2
'''


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """The folder of the suite and its run."""
    folder = tmp_path_factory.mktemp("knowledge")
    (folder / "knowledge.py").write_text(SUITE)
    probes = ("--probe", "compilation", "--probe", "caching", "--probe", "memory")
    # One case at a time: some of them make the cache unusable for whatever comes after.
    each = ("stream", "plain", "inputs_too_large", "damaged", "unwritable")
    runs = {name: (name, "2", probes) for name in each} | {INPUTS: ("makes_inputs_*", "1", ("--probe", "memory"))}
    for name, (selected, processes, chosen) in runs.items():
        options = ("--quick", "--processes", processes, *chosen, "--out", ".", "--run-id", name, "--select", selected)
        ended = subprocess.run(
            [sys.executable, "-m", "jaxmeter", "run", "--suites", "knowledge.py", *options],
            cwd=folder,
            env={**os.environ, "PYTHONPATH": str(CHECKOUT), "JAX_COMPILATION_CACHE_DIR": str(folder / "inherited")},
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        (folder / f"{name}.said").write_text(f"{ended.returncode}\n{ended.stdout}{ended.stderr}")
    return folder


@pytest.fixture(scope="module")
def outcome(folder):
    """(workload, variant, probe) -> outcome."""

    def find(workload: str, variant: str, probe: str) -> Outcome:
        run = INPUTS if workload.startswith(INPUTS) else workload
        cases = read_json(folder / run / "run.json", RunRecord).cases
        (found,) = (item for case in cases for item in case.variants if item.name == variant)
        return found.outcomes[probe]

    return find


@pytest.fixture(scope="module")
def code(folder):
    return lambda workload: int((folder / f"{workload}.said").read_text().partition("\n")[0])


def test_a_stream_compiles_once_for_every_type_and_not_again_in_its_second_pass(outcome):
    found = outcome("stream", "stream:jit", "compilation")

    assert found.status is Status.OK
    assert found.values["compiles"] == (3, 3)
    assert found.values["recompiles"] == (0,)


@pytest.mark.parametrize("mode", ["eager", "jit"])
def test_a_stream_is_checked_call_by_call(outcome, mode):
    assert outcome("stream", f"stream:{mode}", "numerics").status is Status.OK


def test_every_cache_state_is_proven_by_what_jax_reports(outcome):
    found = outcome("plain", "plain:jit", "caching")

    expected = [
        CacheStateCall(cache_state="cold", proven=True, traces=1, compiled=1),
        CacheStateCall(cache_state="cached", proven=True, traces=1, hits=1),
        CacheStateCall(cache_state="warm", proven=True),
        # It compiles in less than the second from which on JAX keeps a program by itself.
        *(
            CacheStateCall(cache_state=name, proven=True, traces=1, compiled=1)
            for name in ("default_threshold", "new_shape", "new_static")
        ),
    ]
    assert [msgspec.structs.replace(call, elapsed_s=None) for call in found.details.calls] == 2 * expected
    assert {name: len(values) for name, values in found.values.items()} == {
        f"{call.cache_state}_s": 2 for call in expected
    }
    for call in found.details.calls:
        assert call.elapsed_s in found.values[f"{call.cache_state}_s"]


def test_inputs_that_do_not_fit_are_never_made_and_the_program_is_planned_all_the_same(outcome):
    planned = outcome("inputs_too_large", "inputs_too_large:jit", "memory")

    assert planned.values["argument_bytes"] == (40_000_000_000_000,)
    assert planned.values["planned_peak_bytes"] == (80_000_000_000_000,)
    eager = outcome("inputs_too_large", "inputs_too_large:eager", "numerics")
    assert eager.status is Status.TOO_LARGE
    assert eager.reason.endswith("for its arguments alone")


@pytest.mark.parametrize("mode", ["eager", "jit"])
def test_looking_at_shapes_leaves_nothing_in_what_a_suite_keeps(outcome, code, mode):
    assert outcome("makes_inputs_from_a_cache", f"makes_inputs_from_a_cache:{mode}", "numerics").status is Status.OK
    assert code(INPUTS) == 0


def test_inputs_that_depend_on_how_often_they_are_made_are_the_same_in_every_process(outcome, folder):
    numbers = (folder / "numbers.txt").read_text().split()

    assert outcome("makes_inputs_by_counting", "makes_inputs_by_counting:jit", "numerics").status is Status.OK
    assert len(numbers) > 1
    assert set(numbers) == {"1"}


def test_inputs_whose_shapes_cannot_be_looked_at_are_made_all_the_same(outcome):
    found = outcome("makes_inputs_with_numpy", "makes_inputs_with_numpy:jit", "numerics")

    assert found.status is Status.OK
    assert found.values["max_error"]


@pytest.mark.parametrize("mode", ["eager", "jit"])
def test_an_argument_that_does_not_fit_is_no_failure_even_where_it_is_not_used(outcome, mode):
    variant = f"makes_inputs_that_it_does_not_use:{mode}"

    found = outcome("makes_inputs_that_it_does_not_use", variant, "numerics")

    assert found.status is Status.TOO_LARGE
    assert found.reason.startswith("needs 3.73e+04 GiB of ")
    assert found.reason.endswith("for its arguments alone")


@pytest.mark.parametrize("name", ["damaged", "unwritable"])
def test_a_cache_that_cannot_be_used_costs_a_cache_state_its_name_and_nothing_else(outcome, code, name):
    found = outcome(name, f"{name}:jit", "caching")

    assert found.status is Status.OK
    assert "cached_s" not in found.values
    assert set(found.values) == {"cold_s", "warm_s"}
    cached = [call for call in found.details.calls if call.cache_state == "cached"]
    assert len(cached) == 2
    for call in cached:
        assert (call.proven, call.traces, call.compiled, call.hits) == (False, 1, 1, 0)
        assert call.elapsed_s > 0
    assert code(name) == 0


def test_an_inherited_compilation_cache_is_neither_read_nor_written_and_that_is_said(folder):
    assert not (folder / "inherited").exists()
    assert "JAX_COMPILATION_CACHE_DIR is not used" in (folder / "plain.said").read_text()
