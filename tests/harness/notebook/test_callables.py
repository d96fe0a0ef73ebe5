from functools import partial

import jax
import jax.numpy as jnp
import pytest
from flax import nnx

from jaxmeter.harness.notebook.calls import describe_callable


def double(x):
    return 2 * x


class Model:
    @partial(jax.jit, static_argnums=0)
    def apply(self, x):
        return 2 * x

    @partial(jax.jit, static_argnums=0)
    def __call__(self, x):
        return 3 * x


class Net(nnx.Module):
    def __init__(self):
        self.weights = nnx.Param(jnp.ones(1))


def multiply(net, x):
    return net.weights * x


PLAIN = ("eager", "jit", "aot")


@pytest.mark.parametrize(
    ("function", "name", "modes"),
    [
        (double, "double", PLAIN),
        (partial(double), "double", PLAIN),
        (jax.vmap(double), "double", PLAIN),
        (jax.jit(double), "double", ("as_given", "eager", "jit")),
        (partial(jax.jit(double), x=1), "double", ("as_given", "eager", "jit")),
        (nnx.jit(double), "double", ("as_given", "eager", "jit")),
        (nnx.cached_partial(nnx.jit(multiply), Net()), "multiply", ("as_given", "eager", "jit")),
        (Model().apply, "apply", ("as_given", "eager", "jit")),
        (Model(), "Model", ("as_given", "eager", "jit")),
        (jax.pmap(double), "double", ("as_given",)),
        (jax.jit(double).lower(1.0).compile(), "compiled", ("as_given",)),
    ],
)
def test_a_transformed_callable_is_measured_as_given_and_where_it_can_be_without(function, name, modes):
    given = describe_callable(function)

    assert given.function is function
    assert (given.name, given.choose_modes(None)) == (name, modes)


def test_modes_that_are_asked_for_are_those_of_a_plain_function():
    assert describe_callable(double).choose_modes(("jit",)) == ("jit",)


def test_a_transformed_callable_is_measured_in_the_modes_that_are_asked_for():
    assert describe_callable(jax.jit(double)).choose_modes(("aot",)) == ("aot",)


def test_the_function_without_its_transformation_keeps_what_is_bound():
    model = Model()

    assert describe_callable(model.apply).plain(jnp.ones(1)) == 2
    assert describe_callable(model).plain(jnp.ones(1)) == 3
    assert describe_callable(nnx.cached_partial(nnx.jit(multiply), Net())).plain(2 * jnp.ones(1)) == 2


def generate(x):
    yield x


async def wait(x):
    return x


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (generate, "generate returns a generator: nothing runs until it is read"),
        (partial(generate), "generate returns a generator"),
        (wait, "wait returns a coroutine"),
        (3, "a function is measured; got int, which cannot be called"),
        (jax.jit(double).lower(1.0), "got Lowered, which cannot be called; measure its .compile()"),
        (jax.export.export(jax.jit(double))(1.0), "got Exported, which cannot be called; measure its .call"),
    ],
)
def test_what_cannot_be_measured_says_what_to_do(function, message):
    with pytest.raises(TypeError) as raised:
        describe_callable(function)

    assert message in str(raised.value)
