import jax
import jax.numpy as jnp
import pytest

import harness
from harness.notebook import IN_PROCESS
from harness.record import Status


def scaled(x, *, factor):
    """Product with a factor."""
    return factor * x


@pytest.fixture(scope="module")
def measurement():
    return harness.measure(scaled, jnp.ones(1000), factor=3.0)


def test_one_function_is_measured_in_every_mode(measurement):
    assert [variant.name for variant in measurement.record.variants] == ["scaled:eager", "scaled:jit", "scaled:aot"]
    assert measurement.record.status is Status.OK


@pytest.mark.parametrize("mode", ["eager", "jit", "aot"])
def test_a_value_is_found_by_mode_and_metric(measurement, mode):
    assert measurement.value(mode, "execution_s") == measurement.value(f"scaled:{mode}", "execution_s") > 0


def test_what_a_mode_does_not_have_is_none(measurement):
    assert measurement.value("eager", "compile_s") is None
    assert measurement.value("jit", "compile_s") > 0
    assert measurement.value("jit", "no_such_metric") is None
    assert measurement.value("jit", "compile_exponent") is None


def test_one_process_says_what_it_cannot_tell(measurement):
    assert measurement.record.notes == (IN_PROCESS,)
    assert measurement.record.launches == 1


def test_printing_it_shows_a_row_per_mode(measurement):
    first, _, *rows = repr(measurement).splitlines()

    assert first.startswith("scaled on 1 x cpu, jax ")
    assert [row.split()[0] for row in rows[:3]] == ["scaled:eager", "scaled:jit", "scaled:aot"]
    assert rows[0].split()[1] == "baseline"
    assert rows[-1] == f"({IN_PROCESS})"


def test_a_jitted_function_is_measured_unwrapped():
    measurement = harness.measure(jax.jit(lambda x: x + 1), jnp.ones(4))

    assert [variant.name.rpartition(":")[2] for variant in measurement.record.variants] == ["eager", "jit", "aot"]
    assert measurement.record.status is Status.OK


def test_what_fails_in_every_look_is_said_once():
    measurement = harness.measure(lambda x: x if x.sum() > 0 else -x, jnp.ones(4))

    lines = repr(measurement).splitlines()
    assert [line.partition(":jit: ")[2][:6] for line in lines if ":jit: " in line] == ["failed"]


def test_what_the_function_raises_is_raised():
    def broken(x):
        raise ValueError("no luck")

    with pytest.raises(ValueError, match="no luck"):
        harness.measure(broken, jnp.ones(4))


def test_what_gives_another_answer_each_time_is_wrong_and_has_no_time():
    calls = []

    def forgetful(x):
        calls.append(x)
        return x + len(calls)

    measurement = harness.measure(forgetful, jnp.ones(4))

    for variant in measurement.record.variants:
        assert variant.outcomes["numerics"].status is Status.WRONG
        assert "timing" not in variant.outcomes


def test_a_random_key_may_go_in_and_come_out():
    def advance(key, x):
        key, use = jax.random.split(key)
        return key, x + jax.random.normal(use, x.shape)

    measurement = harness.measure(advance, jax.random.key(1), jnp.ones(4))

    assert measurement.record.status is Status.OK


def test_unwrapping_a_jitted_function_is_said():
    measurement = harness.measure(jax.jit(lambda x: x + 1), jnp.ones(4))

    assert "measured without its own jax.jit" in repr(measurement)
