"""What the shapes of arguments and results tell before anything is made."""

import time

import jax
import jax.numpy as jnp
import pytest

from jaxmeter import no_reference, workload
from jaxmeter.harness.child.inputs import ONLY_TRACED, probe_shapes
from jaxmeter.harness.machine.platforms import BACKENDS
from jaxmeter.harness.probes import Context
from jaxmeter.harness.record import Outcome, Status

N = 1_000
SQUARE_BYTES = 4 * N * N


def context(capacity_bytes, *, inputs=lambda key: jax.random.normal(key, (N, N)), function=lambda x: x + 1):
    declared = workload(inputs=inputs, reference=no_reference("none"), peers={"numpy": len})
    return Context(declared(named(function)), {}, BACKENDS["cpu"], (), time.perf_counter, None, capacity_bytes)


def named(function):
    function.__name__ = "f"
    return function


LOOKS = {"numerics": ("f:eager", "f:jit", "numpy:native"), "memory": ("f:jit",)}


def test_what_fits_by_its_shapes_is_not_spoken_of():
    assert probe_shapes(LOOKS, context(3 * SQUARE_BYTES)) == {}


def test_arguments_that_do_not_fit_cost_every_variant_and_a_program_still_has_its_plan():
    found = probe_shapes(LOOKS, context(SQUARE_BYTES - 1))

    alone = Outcome(status=Status.TOO_LARGE, reason="needs 0.00373 GiB of 0.00373 GiB for its arguments alone")
    assert found["f:eager"] == found["numpy:native"] == {"numerics": alone}
    assert found["f:jit"]["numerics"].status is Status.TOO_LARGE
    assert found["f:jit"]["memory"].status is Status.OK
    assert found["f:jit"]["memory"].values["argument_bytes"] == (SQUARE_BYTES,)


def test_eager_code_needs_its_results_too():
    found = probe_shapes(LOOKS, context(2 * SQUARE_BYTES - 1))

    assert set(found) == {"f:eager"}
    assert found["f:eager"]["numerics"].status is Status.TOO_LARGE


def test_nothing_is_made_or_called():
    made = []

    def inputs(key):
        made.append(key)
        return jax.random.normal(key, (N, N))

    probe_shapes(LOOKS, context(None, inputs=inputs))

    assert all(isinstance(key, jax.core.Tracer) for key in made)


@pytest.mark.parametrize(
    "inputs", [lambda key: jnp.ones(int(key[0])), lambda key: 1 / 0], ids=["looks at values", "raises"]
)
def test_inputs_that_cannot_be_traced_are_left_to_the_check(inputs):
    assert probe_shapes(LOOKS, context(1, inputs=inputs)) == {}


def test_eager_code_that_cannot_be_traced_is_left_to_the_check():
    def branch(x):
        return x if x.sum() > 0 else -x

    assert probe_shapes({"numerics": ("f:eager",)}, context(SQUARE_BYTES, function=branch)) == {}


# Traced alone


def unrolled(x):
    for _ in range(7):
        x = x * 2
    return x


def test_what_is_only_traced_has_its_equations_counted_and_nothing_else(monkeypatch):
    monkeypatch.setattr(jax.stages.Traced, "lower", None)

    found = probe_shapes({"compilation": ("f:jit",)}, context(None, function=unrolled))

    counted = Outcome(
        status=Status.OK, values={"jaxpr_equations": (7,), "jaxpr_equations_nested": (7,)}, notes=(ONLY_TRACED,)
    )
    assert found == {"f:jit": {"compilation": counted}}


def test_what_cannot_be_traced_says_why():
    def branch(x):
        return x if x.sum() > 0 else -x

    found = probe_shapes({"compilation": ("f:jit",)}, context(None, function=branch))

    assert found["f:jit"]["compilation"].status is Status.FAILED
    assert found["f:jit"]["compilation"].reason.startswith("in stage 'trace': TracerBoolConversionError: ")
