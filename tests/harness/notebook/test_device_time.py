"""`jaxmeter.device_time`: a capture of a few calls, read and forgotten."""

from functools import partial

import jax
import jax.numpy as jnp
import pytest

from jaxmeter import device_time
from jaxmeter.harness.notebook.device_time import DeviceTime
from jaxmeter.harness.programs.capturing import FEWEST_CALLS, ProfilerBusyError
from jaxmeter.harness.record.trace_summary import Problem


@jax.jit
def product(a, b):
    return a @ b


def make_square(n: int = 200):
    return jnp.ones((n, n))


def test_the_busy_time_is_that_of_the_operations_of_a_call():
    found = device_time(product, make_square(), b=make_square())

    operations = found.operations
    assert isinstance(found, DeviceTime)
    assert found.calls >= FEWEST_CALLS
    assert found.busy_s == found.by_device["0"] > 0
    assert 0 < found.share <= 1
    assert set(operations["module"]) == {"jit_product"}
    assert operations["flops"].max() == 2 * 200**3
    assert repr(found).startswith("product on cpu, median of ")
    assert "\ndevice 0 was busy for " in repr(found)
    assert "of the traced step" in found._repr_html_()


def test_donated_arguments_are_threaded_and_stay_usable():
    @partial(jax.jit, donate_argnums=0)
    def step(state, batch):
        return jax.tree.map(lambda leaf: leaf + batch.sum(), state)

    state, batch = {"w": make_square()}, make_square()

    found = device_time(step, state, batch)

    assert found.busy_s > 0
    assert float(state["w"].sum()) == 200 * 200


def test_donated_arguments_that_nothing_follows_are_copied_outside_the_step():
    @partial(jax.jit, donate_argnums=0)
    def total(x):
        return x.sum()

    x = make_square()
    with pytest.warns(UserWarning, match="Some donated buffers were not usable"):
        found = device_time(total, x)

    assert found.busy_s > 0
    assert not x.is_deleted()


def test_a_call_without_jax_has_no_device_time_and_says_why():
    found = device_time(lambda: 3)

    assert (found.busy_s, found.by_device, found.share) == (None, {}, None)
    assert found.health[0].problem is Problem.NO_OPERATIONS
    assert "no device time" in repr(found)


def test_an_error_of_the_function_is_its_own():
    def fail():
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        device_time(fail)


def test_a_running_session_is_named(tmp_path):
    with jax.profiler.trace(tmp_path), pytest.raises(ProfilerBusyError, match="end it first"):
        device_time(product, make_square(), make_square())
