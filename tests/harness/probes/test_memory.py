import dataclasses
import time
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy
import pytest

from jaxmeter.harness.machine import jax_internals as internals
from jaxmeter.harness.machine.platforms import BACKENDS
from jaxmeter.harness.probes import Context
from jaxmeter.harness.probes.memory import LONGEST_COMPILE_S, UNPLANNED, read_plan
from jaxmeter.harness.programs.modes import How, Prepared, prepare_as
from jaxmeter.harness.record import MemoryDetails, Outcome, Status
from jaxmeter.harness.record.outcomes import OWN_FAULT
from tests.harness.probes.made_up import plan

SIDE = 64
SQUARE_BYTES = SIDE * SIDE * 4
SQUARE = jnp.ones((SIDE, SIDE))


def context(backend="cpu") -> Context:
    return Context(None, {}, BACKENDS[backend], (), time.perf_counter, None)


def prepared(function, *arguments, **changed) -> Prepared:
    """A jitted function; `changed` are fields of its stages."""
    real = prepare_as("jit", function, arguments, How(), lambda: 0.0, lambda stage: None)
    return dataclasses.replace(real, stages=dataclasses.replace(real.stages, **changed))


def measured(function, *arguments, **changed) -> Outcome:
    return read_plan("a", prepared(function, *arguments, **changed), context())


# The plan


def test_the_plan_is_told_in_parts():
    found = measured(lambda x, y: (x @ y) @ x, SQUARE, SQUARE)

    parts = {name: value for name, (value,) in found.values.items()}
    assert found.status is Status.OK
    assert (parts["argument_bytes"], parts["output_bytes"], parts["alias_bytes"]) == (2 * SQUARE_BYTES, SQUARE_BYTES, 0)
    assert parts["temp_bytes"] >= SQUARE_BYTES
    assert parts["planned_peak_bytes"] == parts["argument_bytes"] + parts["output_bytes"] + parts["temp_bytes"]


def test_a_variant_without_one_program_has_no_plan():
    found = read_plan("a", Prepared(jnp.sin, (SQUARE,), jax.block_until_ready), context())

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
    assert found.details == MemoryDetails(buffers=())
    assert any(note.startswith(f"{OWN_FAULT}: cannot determine its largest buffers: ") for note in found.notes)


def test_the_largest_buffers_are_details_beside_the_values():
    found = measured(lambda x, y: (x @ y) @ x, SQUARE, SQUARE)

    kinds = {(one.kind, one.size_bytes) for one in found.details.buffers}
    assert {("argument", SQUARE_BYTES), ("output", SQUARE_BYTES)} <= kinds
    assert found.notes == ()


@pytest.mark.parametrize(
    ("reported", "backend", "values"),
    [
        ({"peak_memory_in_bytes": 8}, "gpu", (None, None)),
        ({"total_allocation_bytes": 0, "peak_memory_in_bytes": 0, "peak_unpadded_heap_bytes": 0}, "gpu", (None, None)),
        ({"total_allocation_bytes": 9, "peak_memory_in_bytes": 8, "peak_unpadded_heap_bytes": 8}, "cpu", (9, None)),
        ({"total_allocation_bytes": 9, "peak_memory_in_bytes": 8, "peak_unpadded_heap_bytes": 8}, "gpu", (9, 0)),
        ({"total_allocation_bytes": 9, "peak_memory_in_bytes": 8, "peak_unpadded_heap_bytes": 3}, "tpu", (9, 5)),
    ],
    ids=["an older jaxlib", "a backend that reports nothing", "a CPU", "no padding", "padding"],
)
def test_what_a_newer_jaxlib_reports_is_missing_and_never_0_where_it_is_not_reported(
    monkeypatch, reported, backend, values
):
    if "total_allocation_bytes" not in reported:
        monkeypatch.setattr(internals, "version", lambda name: "0.11.1")
    variant = prepared(jnp.sin, SQUARE, compiled=plan(argument=16, **reported))

    found = read_plan("a", variant, context(backend)).values

    assert (found["allocated_bytes"], found["padding_bytes"]) == tuple((value,) for value in values)


def test_all_allocations_hold_constants_which_the_planned_peak_leaves_out():
    weights = numpy.ones((SIDE, SIDE), numpy.float32) + numpy.arange(SIDE, dtype=numpy.float32)

    found = measured(lambda x: x + weights, SQUARE).values

    ((allocated,), (planned,)) = found["allocated_bytes"], found["planned_peak_bytes"]
    assert allocated is None or allocated >= planned + SQUARE_BYTES


# What no plan holds

LARGE = jnp.ones((512, 512))


def test_a_plan_of_large_products_on_a_cpu_says_that_it_leaves_out_working_memory():
    found = measured(lambda x, y: ((jnp.sin(x @ y) @ y) @ y).sum(), LARGE, LARGE)

    assert found.details.unplanned
    assert found.notes[0] == f"{UNPLANNED} ({', '.join(found.details.unplanned)}): rely on measured peak memory"


@pytest.mark.parametrize(
    ("function", "square", "backend"),
    [
        (lambda x: jnp.sin(x) + x, LARGE, "cpu"),
        (lambda x: x @ x, jnp.ones((8, 8)), "cpu"),
        (lambda x: x @ x[0], LARGE, "cpu"),
        (lambda x: x @ x, LARGE, "gpu"),
    ],
    ids=["no product", "a small product", "a product with a vector", "a device whose plan holds products"],
)
def test_a_plan_that_leaves_out_nothing_measurable_has_no_note(function, square, backend):
    found = read_plan("a", prepared(function, square), context(backend))

    assert (found.details.unplanned, found.notes) == ((), ())


def test_of_a_program_without_text_it_is_unknown_what_the_plan_leaves_out():
    found = measured(jnp.sin, SQUARE, compiled=plan(argument=16))

    assert found.details.unplanned is None


# What donation saves


@pytest.mark.parametrize(
    ("function", "saved"),
    [(lambda x: x + 1, SQUARE_BYTES), (lambda x: x[0, :2] * 2, 0)],
    ids=["can be taken", "cannot"],
)
def test_donating_an_argument_that_the_result_can_take_saves_its_size(function, saved):
    found = measured(function, SQUARE)

    assert found.values["donation_saves_bytes"] == (saved,)
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
    assert [note for note in found.notes if "not compiled a second time" in note] == (
        [] if compiled_again else ["not compiled a second time to see what donation saves: compilation took 2.1 s"]
    )


def test_a_program_that_came_from_the_cache_is_not_compiled_again():
    from_the_cache = dataclasses.replace(prepared(jnp.sin, SQUARE).stages.events, hits=1)

    found = measured(lambda x: x + 1, SQUARE, events=from_the_cache, donated=never)

    assert "donation_saves_bytes" not in found.values
    assert found.notes == (
        "what donation saves is known only where the program was compiled: here it came from the cache",
    )


def test_arguments_that_cannot_be_donated_cost_no_other_value():
    def donated():
        raise ValueError("cannot donate")

    found = measured(lambda x: x + 1, SQUARE, donated=donated)

    assert found.status is Status.OK
    assert found.values["planned_peak_bytes"] == (2 * SQUARE_BYTES,)
    assert found.notes == ("what donating saves is not known: cannot donate",)
