import dataclasses
import os
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import pytest

from harness import no_reference, workload
from harness.child import worker
from harness.machine.places import BACKENDS
from harness.plan.messages import CHECK
from harness.probes import Context
from harness.probes.memory import LONGEST_COMPILE_S, does_not_fit, peak_bytes, run, size_bytes
from harness.programs.modes import How, Prepared, prepared_as
from harness.record import Outcome, Status

CHECKOUT = Path(__file__).parents[3]
GIB = 2**30
SIDE = 64
SQUARE_BYTES = SIDE * SIDE * 4
SQUARE = jnp.ones((SIDE, SIDE))


def context_on(backend="cpu", *, of=None, arguments=(), capacity_bytes=None) -> Context:
    return Context(of, {}, BACKENDS[backend], arguments, time.perf_counter, None, capacity_bytes)


def prepared(function, *arguments, **changed) -> Prepared:
    """A jitted function; `changed` are fields of its stages."""
    real = prepared_as("jit", function, arguments, How(), lambda: 0.0, lambda stage: None)
    return dataclasses.replace(real, stages=dataclasses.replace(real.stages, **changed))


def measured(function, *arguments, **changed) -> Outcome:
    return run("a", prepared(function, *arguments, **changed), context_on())


def plan(**sizes):
    """A compiled program as the compiler plans it; what is not told is 0."""
    names = ("argument", "output", "temp", "alias", "generated_code")
    rest = {f"{name}_size_in_bytes": sizes.pop(name, 0) for name in names}
    analysis = SimpleNamespace(**rest, **sizes)
    return SimpleNamespace(memory_analysis=lambda: analysis)


# The plan


@pytest.mark.parametrize("backend", ["gpu", "tpu"])
def test_a_peak_that_counts_temporaries_is_the_compilers(backend):
    compiled = plan(argument=1, output=2, temp=4, alias=1, peak_memory_in_bytes=5)

    assert peak_bytes(compiled, context_on(backend)) == 5


def test_a_peak_that_leaves_temporaries_out_is_what_the_plan_adds_up_to():
    compiled = plan(argument=16, output=8, temp=4, alias=2, peak_memory_in_bytes=24)

    assert peak_bytes(compiled, context_on("cpu")) == 16 + 8 + 4 - 2


@pytest.mark.parametrize("told", [{}, {"peak_memory_in_bytes": 0}], ids=["not told", "zero"])
def test_a_peak_that_the_compiler_does_not_tell_is_what_the_plan_adds_up_to(told):
    compiled = plan(argument=16, output=8, temp=4, alias=2, **told)

    assert peak_bytes(compiled, context_on("gpu")) == 16 + 8 + 4 - 2


def test_without_a_plan_there_is_no_peak():
    assert peak_bytes(SimpleNamespace(memory_analysis=lambda: None), context_on()) is None


def test_the_plan_is_told_in_parts():
    found = measured(lambda x, y: (x @ y) @ x, SQUARE, SQUARE)

    parts = {name: value for name, (value,) in found.values.items()}
    assert found.status is Status.OK
    assert (parts["argument_bytes"], parts["output_bytes"], parts["alias_bytes"]) == (2 * SQUARE_BYTES, SQUARE_BYTES, 0)
    assert parts["temp_bytes"] >= SQUARE_BYTES
    assert parts["peak_bytes"] == parts["argument_bytes"] + parts["output_bytes"] + parts["temp_bytes"]


def test_a_variant_without_one_program_has_no_plan():
    found = run("a", Prepared(jnp.sin, (SQUARE,), jax.block_until_ready), context_on())

    assert found.status is Status.UNSUPPORTED
    assert found.reason == "memory_analysis describes one compiled program; this variant has none of its own"


def test_a_backend_that_plans_nothing_is_unsupported():
    found = measured(jnp.sin, SQUARE, compiled=SimpleNamespace(memory_analysis=lambda: None))

    assert (found.status, found.reason) == (Status.UNSUPPORTED, "the backend gives no memory_analysis")


def test_buffers_that_cannot_be_read_cost_no_other_value():
    unreadable = plan(argument=16, serialized_buffer_assignment_proto=b"\x0a")

    found = measured(jnp.sin, SQUARE, compiled=unreadable)

    assert found.status is Status.OK
    assert found.values["argument_bytes"] == (16,)
    assert found.buffers == ()
    assert any(note.startswith("its largest buffers cannot be read: ") for note in found.notes)


# What donation saves


def test_donating_an_argument_that_the_result_can_take_saves_its_size():
    assert measured(lambda x: x + 1, SQUARE).values["donation_saves_bytes"] == (SQUARE_BYTES,)


def test_donating_what_no_result_can_take_saves_nothing_and_warns_nobody():
    found = measured(lambda x: x[0, :2] * 2, SQUARE)

    assert found.values["donation_saves_bytes"] == (0,)
    assert found.notes == ()


def never():
    """Stands for compiling with all arguments donated."""
    raise AssertionError("it was compiled again")


@pytest.mark.parametrize(
    ("compile_s", "compiled_again"), [(LONGEST_COMPILE_S, True), (LONGEST_COMPILE_S + 0.125, False)]
)
def test_a_program_that_takes_long_to_compile_is_not_compiled_again(compile_s, compiled_again):
    donated = (lambda: plan(argument=2 * SQUARE_BYTES)) if compiled_again else never

    found = measured(lambda x: x + 1, SQUARE, compile_s=compile_s, donated=donated)

    assert ("donation_saves_bytes" in found.values) is compiled_again
    assert [note for note in found.notes if "not compiled again" in note] == (
        [] if compiled_again else ["not compiled again to see what donating saves: compiling took 2.1 s"]
    )


def test_a_program_that_came_from_the_cache_is_not_compiled_again():
    from_the_cache = dataclasses.replace(prepared(jnp.sin, SQUARE).stages.events, hits=1)

    found = measured(lambda x: x + 1, SQUARE, events=from_the_cache, donated=never)

    assert "donation_saves_bytes" not in found.values
    assert found.notes == (
        "what donating saves is told where its program was compiled first: here it came from the cache",
    )


def test_arguments_that_cannot_be_donated_cost_no_other_value():
    def donated():
        raise ValueError("cannot donate")

    found = measured(lambda x: x + 1, SQUARE, donated=donated)

    assert found.status is Status.OK
    assert found.values["peak_bytes"] == (2 * SQUARE_BYTES,)
    assert found.notes == ("what donating saves is not known: cannot donate",)


# Whether it fits


@pytest.mark.parametrize(("needed", "capacity"), [(GIB, GIB), (GIB - 1, GIB), (None, GIB), (GIB, None), (None, None)])
def test_what_a_device_can_hold_or_nobody_knows_is_run(needed, capacity):
    assert does_not_fit(needed, capacity) is None


def test_what_is_larger_than_its_device_does_not_fit_and_says_both_sizes():
    assert does_not_fit(3 * GIB, 2 * GIB) == "does not fit: needs 3 GiB of 2 GiB"
    assert does_not_fit(GIB + 1, GIB) is not None


def outcomes(function, *, mode, probes, **of_context) -> dict[str, Outcome]:
    made = workload(inputs=lambda key: (SQUARE,), reference=no_reference("none"), modes=(mode,))(function)
    (name,) = made.variants
    return worker.outcomes_of(name, CHECK, probes, context_on(of=made, arguments=(SQUARE,), **of_context))


def test_a_program_that_does_not_fit_is_planned_and_not_called():
    needed = 2 * SQUARE_BYTES

    fits = outcomes(lambda x: x + 1, mode="jit", probes=("numerics", "memory"), capacity_bytes=needed)
    does_not = outcomes(lambda x: x + 1, mode="jit", probes=("numerics", "memory"), capacity_bytes=needed - 1)

    assert (fits["numerics"].status, fits["memory"].status) == (Status.OK, Status.OK)
    assert (does_not["numerics"].status, does_not["memory"].status) == (Status.UNSUPPORTED, Status.OK)


def exhausted(*arguments):
    raise jax.errors.JaxRuntimeError("RESOURCE_EXHAUSTED: 40 GiB\nof 16 GiB")


def test_a_compiler_that_finds_a_program_too_large_says_that_it_does_not_fit(monkeypatch):
    def prepare(mode, function, arguments, how, clock, stage):
        stage("compile")
        exhausted()

    monkeypatch.setattr("harness.child.prepare.prepared_as", prepare)

    found = outcomes(jnp.sin, mode="jit", probes=("numerics", "memory"))

    expected = Outcome(status=Status.UNSUPPORTED, reason="does not fit: RESOURCE_EXHAUSTED: 40 GiB of 16 GiB")
    assert found == {"numerics": expected, "memory": expected}


def test_a_call_that_runs_out_of_memory_has_failed():
    found = outcomes(exhausted, mode="eager", probes=("numerics",))["numerics"]

    assert found.status is Status.FAILED
    assert found.reason == "in stage 'numerics': JaxRuntimeError: RESOURCE_EXHAUSTED: 40 GiB of 16 GiB"


def test_a_compiler_that_fails_otherwise_has_failed(monkeypatch):
    def prepare(mode, function, arguments, how, clock, stage):
        stage("compile")
        raise jax.errors.JaxRuntimeError("INTERNAL: a bug")

    monkeypatch.setattr("harness.child.prepare.prepared_as", prepare)

    assert outcomes(jnp.sin, mode="jit", probes=("memory",))["memory"].status is Status.FAILED


# Sizes


@pytest.mark.parametrize(
    ("tree", "expected"),
    [
        ((), 0),
        (SQUARE, SQUARE_BYTES),
        (jnp.ones(3, bool), 3),
        (jnp.ones(3, jnp.bfloat16), 6),
        ({"a": [jnp.ones(3), (jnp.ones((2, 2)),)], "b": None}, (3 + 4) * 4),
        (jax.ShapeDtypeStruct((10**13,), jnp.float32), 4 * 10**13),
    ],
    ids=["nothing", "array", "bool", "bfloat16", "nested", "shape"],
)
def test_a_tree_holds_what_its_arrays_hold(tree, expected):
    assert size_bytes(tree) == expected


@pytest.mark.parametrize(("implementation", "words"), [("threefry2x32", 2), ("rbg", 4)])
def test_random_keys_hold_the_words_that_they_are_made_of(implementation, words):
    keys = jax.random.split(jax.random.key(0, impl=implementation), 5)

    assert size_bytes(keys) == 5 * words * 4
    assert size_bytes(jax.eval_shape(lambda: keys)) == 5 * words * 4


EIGHT_DEVICES = """
import jax, numpy
from jax.sharding import NamedSharding, PartitionSpec
from harness.probes.memory import size_bytes

mesh = jax.make_mesh((8,), ("x",))
for parts in (PartitionSpec("x"), PartitionSpec()):
    print(size_bytes(jax.device_put(numpy.ones(64, numpy.float32), NamedSharding(mesh, parts))))
"""


def test_an_array_on_several_devices_holds_what_they_hold_together():
    variables = {"XLA_FLAGS": "--xla_force_host_platform_device_count=8", "JAX_PLATFORMS": "cpu"}

    ended = subprocess.run(
        [sys.executable, "-c", EIGHT_DEVICES],
        env={**os.environ, **variables, "PYTHONPATH": str(CHECKOUT)},
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )

    divided, copied = map(int, ended.stdout.split())
    assert (divided, copied) == (64 * 4, 8 * 64 * 4)
