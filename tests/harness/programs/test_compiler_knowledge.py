"""A suite that tries each state of the caches, one that spoils its cache, and one with a cache of its own, for real."""

import os
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from jaxmeter.harness.record import CacheStateCall, Outcome, RunRecord, Status, read_json

pytestmark = pytest.mark.slow

CHECKOUT = Path(__file__).parents[3]

SUITE = """
import functools
import shutil
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy

from jaxmeter import Caching, workload

def twice(x):
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
def own_cache(x):
    return x * table()
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """The folder of the suite and its runs, one of each case: some make the cache unusable for what comes after."""
    folder = tmp_path_factory.mktemp("knowledge")
    (folder / "knowledge.py").write_text(SUITE)
    probes = ("--probe", "compilation", "--probe", "caching", "--probe", "memory")
    for name in ("plain", "damaged", "unwritable", "own_cache"):
        options = ("--quick", "--processes", "2", *probes, "--out", ".", "--run-id", name, "--select", name)
        ended = subprocess.run(
            [sys.executable, "-m", "jaxmeter", "run", "--suites", "knowledge.py", *options],
            cwd=folder,
            env={**os.environ, "PYTHONPATH": str(CHECKOUT), "JAX_COMPILATION_CACHE_DIR": str(folder / "inherited")},
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        assert ended.returncode == 0, ended.stderr
        (folder / f"{name}.said").write_text(f"{ended.stdout}{ended.stderr}")
    return folder


@pytest.fixture(scope="module")
def outcome(folder):
    """(workload, mode, probe) -> outcome."""

    def find(workload: str, mode: str, probe: str) -> Outcome:
        (case,) = read_json(folder / workload / "run.json", RunRecord).cases
        return next(item.outcomes[probe] for item in case.variants if item.name == f"{workload}:{mode}")

    return find


def test_every_cache_state_is_proven_by_what_jax_reports(outcome):
    found = outcome("plain", "jit", "caching")

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
    calls = found.details.calls
    assert [msgspec.structs.replace(call, elapsed_s=None) for call in calls] == 2 * expected
    assert {name: len(values) for name, values in found.values.items()} == {
        f"{call.cache_state}_s": 2 for call in expected
    }
    assert all(call.elapsed_s in found.values[f"{call.cache_state}_s"] for call in calls)


@pytest.mark.parametrize("mode", ["eager", "jit"])
def test_looking_at_shapes_leaves_nothing_in_what_a_suite_keeps(outcome, mode):
    assert outcome("own_cache", mode, "numerics").status is Status.OK


@pytest.mark.parametrize("name", ["damaged", "unwritable"])
def test_a_cache_that_cannot_be_used_costs_a_cache_state_its_name_and_nothing_else(outcome, name):
    found = outcome(name, "jit", "caching")

    assert found.status is Status.OK
    assert set(found.values) == {"cold_s", "warm_s"}
    cached = [call for call in found.details.calls if call.cache_state == "cached"]
    assert [(call.proven, call.traces, call.compiled, call.hits) for call in cached] == [(False, 1, 1, 0)] * 2
    assert all(call.elapsed_s > 0 for call in cached)


def test_an_inherited_compilation_cache_is_neither_read_nor_written_and_that_is_said(folder):
    assert not (folder / "inherited").exists()
    assert "JAX_COMPILATION_CACHE_DIR is not used" in (folder / "plain.said").read_text()
