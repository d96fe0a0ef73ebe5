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
from jax.extend.core import Primitive

from jaxmeter import Caching, no_reference, workload

UNKNOWN = Primitive("unheard_of")
UNKNOWN.def_abstract_eval(lambda x: x)


def ones(key):
    return jnp.ones(5)


def twice(x):
    return x * 2


def batches(key):
    return [(jnp.arange(float(n)),) for n in (3, 4, 3, 5)]


@workload(inputs=batches, reference=twice, stream=True, compiles=3)
def stream(x):
    return x * 2


@stream.implementation(modes=("jit",), compiles=2)
def over_budget(x):
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


@plain.implementation(modes=("eager",))
def forgets_its_program(x, *, by):
    return jax.jit(lambda y: y * by)(x)


@plain.implementation
def looks_at_values(x):
    return x * 2 if x[0] > 0 else x


@plain.implementation
def cannot_be_lowered(x):
    return UNKNOWN.bind(x)


@workload(inputs=ones, reference=no_reference("too slow"), modes=("jit",), time_limit_s=2)
def compiles_too_long(x):
    total, sums = x[0], []
    for i in range(2000):
        total = total + x[i % 5] * i
        sums.append(total)
    return jnp.stack(sums)


@workload(inputs=lambda key: jnp.ones(3_000_000), reference=no_reference("too large"), modes=("eager", "jit"))
def too_large(x):
    """36 TB."""
    return jnp.sort(x[:, None] * x[None, :], axis=0)


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
    each = ("stream", "plain", "compiles_too_long", "too_large", "inputs_too_large", "damaged", "unwritable")
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


def test_one_compile_more_than_declared_fails_the_case_and_shows_what_jax_says_of_it(outcome, code):
    found = outcome("stream", "over_budget:jit", "compilation")

    assert found.status is Status.FAILED
    assert found.reason.startswith(
        "compiled 3 programs, 2 declared; the last because at x, now f32[5] and before f32[3]"
    )
    assert "TRACING CACHE MISS" in found.details.explanation
    assert "now f32[4] and before f32[3]" in found.details.explanation
    assert found.values["compiles"] == (3,)
    assert code("stream") == 3


def test_a_compile_too_many_costs_no_other_measurement(outcome):
    assert outcome("stream", "over_budget:jit", "numerics").status is Status.OK
    assert outcome("stream", "over_budget:jit", "caching").values["cold_s"]


def test_a_function_that_makes_a_new_jit_in_every_call_recompiles(outcome):
    found = outcome("plain", "forgets_its_program:eager", "compilation")

    assert found.status is Status.OK
    assert found.values["recompiles"] == (1,)


@pytest.mark.parametrize(
    ("variant", "stage", "error"),
    [
        ("looks_at_values:jit", "trace", "TracerBoolConversionError"),
        ("cannot_be_lowered:jit", "lower", "NotImplementedError: MLIR translation rule for primitive 'unheard_of'"),
    ],
)
def test_a_program_that_cannot_be_made_says_in_which_stage_and_why(outcome, variant, stage, error):
    found = outcome("plain", variant, "numerics")

    assert found.status is Status.FAILED
    assert found.reason.startswith(f"in stage '{stage}': {error}")


def test_every_cache_state_is_proven_by_what_jax_reports(outcome):
    found = outcome("plain", "plain:jit", "caching")

    assert {name: len(values) for name, values in found.values.items()} == {
        "cold_s": 2,
        "cached_s": 2,
        "warm_s": 2,
        "default_threshold_s": 2,
        "new_shape_s": 2,
        "new_static_s": 2,
    }
    assert [msgspec.structs.replace(call, elapsed_s=None) for call in found.details.calls] == 2 * [
        CacheStateCall(cache_state="cold", proven=True, traces=1, compiled=1),
        CacheStateCall(cache_state="cached", proven=True, traces=1, hits=1),
        CacheStateCall(cache_state="warm", proven=True),
        # It compiles in less than the second from which on JAX keeps a program by itself.
        CacheStateCall(cache_state="default_threshold", proven=True, traces=1, compiled=1),
        CacheStateCall(cache_state="new_shape", proven=True, traces=1, compiled=1),
        CacheStateCall(cache_state="new_static", proven=True, traces=1, compiled=1),
    ]
    for call in found.details.calls:
        assert call.elapsed_s in found.values[f"{call.cache_state}_s"]


def test_a_compile_beyond_its_budget_is_ended_and_says_so(outcome, code):
    found = outcome("compiles_too_long", "compiles_too_long:jit", "numerics")

    assert found.status is Status.TIMED_OUT
    assert found.reason.startswith("no progress for 2 s in stage 'compile', so it was ended")
    assert code("compiles_too_long") == 3


@pytest.mark.parametrize("mode", ["eager", "jit"])
def test_a_program_that_does_not_fit_says_what_it_needs_and_is_not_run(outcome, code, mode):
    found = outcome("too_large", f"too_large:{mode}", "numerics")

    assert found.status is Status.TOO_LARGE
    assert found.reason.startswith("needs 3.35e+04 GiB of ")
    assert code("too_large") == 0


def test_a_program_that_does_not_fit_is_planned_all_the_same(outcome):
    assert outcome("too_large", "too_large:jit", "memory").values["output_bytes"] == (36_000_000_000_000,)


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
