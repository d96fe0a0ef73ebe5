"""Functions of users that rebind variables or change arrays in place: these are as before, and jit is refused."""

import queue

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

import jaxmeter
from jaxmeter.harness.record import Status

WEIGHTS = jnp.ones(4)
LAST = None
measure = jaxmeter.measure.with_options(modes=("eager", "jit"))
measure_transformed = jaxmeter.measure.with_options(modes=("as given", "eager", "jit"))


def find_statuses(measurement):
    return [variant.outcomes["numerics"].status for variant in measurement.record.variants]


def find_reason(measurement, index):
    return measurement.record.variants[index].outcomes["numerics"].reason


def train(x):
    global WEIGHTS  # noqa: PLW0603  that it rebinds it matters
    WEIGHTS = WEIGHTS - 0.1 * x
    return WEIGHTS.sum()


@pytest.mark.parametrize(
    ("how", "function", "statuses"),
    [
        (measure, train, [Status.OK, Status.UNSUPPORTED]),
        (measure_transformed, jax.jit(train), [Status.UNSUPPORTED, Status.OK]),
    ],
    ids=["plain", "jitted"],
)
def test_a_global_that_is_rebound_is_put_back_and_jit_is_refused_by_its_name(how, function, statuses):
    weights = WEIGHTS

    measurement = how(function, jnp.arange(4.0))

    assert weights is WEIGHTS
    assert find_statuses(measurement)[:2] == statuses
    assert "train changes WEIGHTS in place" in find_reason(measurement, statuses.index(Status.UNSUPPORTED))
    assert measurement.value("eager", "execution_s") > 0


def test_a_global_that_holds_what_is_returned_holds_no_tracer_in_the_calls_between():
    seen = queue.SimpleQueue()  # a list would be put back

    def remember(x):
        global LAST  # noqa: PLW0603  that it rebinds it matters
        seen.put(isinstance(LAST, jax.core.Tracer))
        LAST = 2 * x
        return LAST

    # What is wrong has the function traced again, to find out what rounding can do.
    measurement = measure({"old": remember, "new": lambda x: 2.01 * x}, jnp.arange(4.0))

    assert find_statuses(measurement) == [Status.OK, Status.OK, Status.WRONG, Status.WRONG]
    assert LAST is None
    assert not any(seen.get() for _ in range(seen.qsize()))


def test_a_reference_of_jax_is_measured_in_every_mode_and_put_back():
    ref = jax.new_ref(jnp.zeros(4))

    def step(x):
        ref[...] = ref[...] + x
        return ref[...].sum()

    measurement = measure(step, jnp.ones(4))

    assert find_statuses(measurement) == [Status.OK, Status.OK]
    assert ref[...].tolist() == [0, 0, 0, 0]


def test_integers_that_jit_would_lose_are_refused_by_name():
    class Net(nnx.Module):
        def __init__(self):
            self.dropout = nnx.Dropout(0.5, rngs=nnx.Rngs(0))

        def __call__(self, x):
            return self.dropout(x)

    given = measure_transformed(nnx.jit(lambda net, x: net(x)), Net(), jnp.ones(4))
    plain = measure(lambda net, x: net(x), Net(), jnp.ones(4))

    assert find_statuses(given) == [Status.OK, Status.OK, Status.UNSUPPORTED]
    assert find_statuses(plain) == [Status.OK, Status.UNSUPPORTED]
    assert "changes net.dropout.rngs.count" in find_reason(plain, 1)


def test_an_array_of_numpy_that_jit_does_not_change_is_refused_by_name():
    def step(x, total):
        total += 1
        return x + total[0]

    measurement = measure(step, jnp.ones(4), np.zeros(3))

    assert find_statuses(measurement) == [Status.OK, Status.UNSUPPORTED]
    assert "step changes total in place" in find_reason(measurement, 1)


def test_another_function_that_does_not_change_the_same_arrays_is_wrong_by_their_names():
    def step(x, total):
        total += 1
        return x

    measurement = jaxmeter.measure.with_options(modes=("eager",))(
        {"old": step, "new": lambda x, total: x}, jnp.ones(4), np.zeros(3)
    )

    assert find_statuses(measurement) == [Status.OK, Status.WRONG]
    assert find_reason(measurement, 1) == "does not change total in place, which old:eager changes"
    assert measurement.find_speedup("new:eager") is None
