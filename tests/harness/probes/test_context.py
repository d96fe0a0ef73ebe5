"""What a probe is given of a variant."""

import time

import jax.numpy as jnp
import numpy
import pytest

from jaxmeter import no_reference, workload
from jaxmeter.harness.machine.platforms import BACKENDS
from jaxmeter.harness.plan.aa_controls import add_aa_control
from jaxmeter.harness.plan.cases import plan_case
from jaxmeter.harness.probes import Context, look_with
from jaxmeter.harness.record import Status


def add_one(x):
    return x + 1


@pytest.fixture
def context():
    """Of a case whose jitted variant has an A/A control."""
    declared = workload(inputs=lambda key: jnp.ones(3), reference=lambda x: x + 1, compiles=1)(add_one)
    case = add_aa_control(plan_case("some", declared, {}, BACKENDS["cpu"]))
    return Context(declared, {}, BACKENDS["cpu"], (jnp.ones(3),), time.perf_counter, None, case=case)


def test_a_aa_control_is_a_second_program_of_the_same_implementation_and_mode(context):
    first, aa_control = (context.prepare(item.name) for item in context.case.variants)

    assert first.stages.compiled is not aa_control.stages.compiled
    assert first.jitted is not aa_control.jitted
    for prepared in (first, aa_control):
        assert numpy.array_equal(prepared.wait(prepared.call(*prepared.args)), [2, 2, 2])


def test_a_aa_control_may_compile_what_the_variant_may_whose_aa_control_it_is(context):
    assert context.find_variant("add_one:jit again") == context.find_variant("add_one:jit")
    assert context.compiles("add_one:jit again") == 1


def test_a_aa_control_is_checked_like_any_variant(context):
    found, _ = look_with({"numerics": ("add_one:jit", "add_one:jit again")}, context)

    assert {name: outcomes["numerics"].status for name, outcomes in found.items()} == {
        "add_one:jit": Status.OK,
        "add_one:jit again": Status.OK,
    }


def test_without_a_plan_every_variant_is_itself():
    declared = workload(inputs=lambda key: jnp.ones(3), reference=no_reference("none"))(add_one)

    found = Context(declared, {}, BACKENDS["cpu"], (), time.perf_counter, None)

    assert found.find_variant("add_one:jit") == declared.find_variant("add_one:jit")
