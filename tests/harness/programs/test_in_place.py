import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from flax import nnx

from jaxmeter.harness.programs.buffers import LARGEST_BYTES, InPlaceError, check_traced, keep_arguments

NAMES = ("model", "optimizer", "x")


class Model(nnx.Module):
    def __init__(self, rngs):
        self.dense = nnx.Linear(2, 2, rngs=rngs)
        self.dropout = nnx.Dropout(0.5, rngs=rngs)

    def __call__(self, x):
        return self.dense(x)


def make():
    model = Model(nnx.Rngs(0))
    return model, nnx.Optimizer(model, optax.sgd(0.1), wrt=nnx.Param), jnp.ones((3, 2))


def loss(model, x):
    return (model(x) ** 2).sum()


def update(model, optimizer, x):
    value, gradients = nnx.value_and_grad(loss)(model, x)
    optimizer.update(model, gradients)
    return value


def gradient(model, optimizer, x):
    return nnx.value_and_grad(loss)(model, x)


def update_and_return(model, optimizer, x):
    value = update(model, optimizer, x)
    return nnx.state(model), nnx.state(optimizer), value


def drop(model, optimizer, x):
    return model.dropout(x)


def said_after(function, args, names=NAMES, exempt=frozenset()) -> str:
    """What is said against a call; empty where nothing is."""
    kept = keep_arguments(args, names, exempt)
    function(*kept.args)
    try:
        kept.check()
    except InPlaceError as error:
        return str(error)
    return ""


def said_of_trace(function, args, names=NAMES) -> str:
    try:
        check_traced(function, args, names)
    except InPlaceError as error:
        return str(error)
    return ""


@pytest.mark.parametrize("said", [said_after, said_of_trace], ids=["called", "traced"])
@pytest.mark.parametrize(
    ("function", "named"),
    [(update, "model.dense.bias"), (nnx.jit(update), "model.dense.bias"), (drop, "model.dropout.rngs.count")],
    ids=["an optimizer", "nnx.jit", "a random stream"],
)
def test_a_module_that_is_changed_in_place_is_refused_with_what_to_write(said, function, named):
    words = said(function, make())

    assert words.startswith(f"changes its arguments in place: {named}")
    assert "`graphdef, state = nnx.split(model)`" in words
    assert "`model = nnx.merge(graphdef, state, copy=True)`" in words
    assert "`nnx.state(model)`" in words


@pytest.mark.parametrize("said", [said_after, said_of_trace], ids=["called", "traced"])
@pytest.mark.parametrize("function", [gradient, nnx.jit(gradient)], ids=["plain", "nnx.jit"])
def test_a_module_that_a_transformation_puts_back_as_it_was_is_unchanged(said, function):
    assert said(function, make()) == ""


def test_a_change_that_a_trace_returns_is_not_lost():
    assert said_of_trace(update_and_return, make()) == ""
    assert said_after(update_and_return, make()).startswith("changes its arguments in place")


def split_step(*, copy):
    """A step of a module's state, as flax's own documentation has it, and its arguments."""
    model, optimizer, x = make()
    graph, state = nnx.split((model, optimizer))

    def step(state, x):
        model, optimizer = nnx.merge(graph, state, copy=copy)
        value = update(model, optimizer, x)
        return nnx.state((model, optimizer)), value

    return step, (state, x), ("state", "x")


def test_what_is_advised_leaves_a_modules_state_as_it_was():
    assert said_after(*split_step(copy=True)) == ""
    assert said_of_trace(*split_step(copy=True)) == ""


def test_a_merge_that_shares_its_variables_with_the_state_changes_it_outside_a_trace_alone():
    assert said_after(*split_step(copy=False)).startswith("changes its arguments in place: state[0]['dense']")
    assert said_of_trace(*split_step(copy=False)) == ""


def test_the_arguments_themselves_stay_as_they_are():
    args = (*make()[:2], np.ones(3))
    before = jax.tree.leaves(args)

    def change(model, optimizer, x):
        x += 1
        return update(model, optimizer, jnp.ones((3, 2)))

    said_after(change, args)

    assert all(one is leaf for one, leaf in zip(before, jax.tree.leaves(args), strict=True))
    assert np.array_equal(args[2], np.ones(3))


def test_an_array_of_the_host_that_is_changed_is_refused():
    words = said_after(lambda x: np.add(x["a"], 1, out=x["a"]), ({"a": np.ones(3)},), ("x",))

    assert words.startswith("changes its arguments in place: x['a']; ")
    assert "x.copy()" in words


def test_an_array_of_the_host_that_holds_nan_is_unchanged():
    assert said_after(np.sum, (np.array([np.nan, 1.0]),), ("x",)) == ""
    assert said_after(np.sum, (np.array(["text"], dtype=object),), ("x",)) == ""


def test_arrays_too_large_to_be_copied_are_not_copied():
    large = np.zeros(LARGEST_BYTES // 8 + 1)

    assert keep_arguments((large,), ("x",)).args[0] is large


def test_an_argument_that_calls_carry_may_be_changed():
    assert said_after(lambda x: x.pop("a"), ({"a": 1.0},), ("x",), frozenset({0})) == ""
    assert said_after(lambda x: x.pop("a"), ({"a": 1.0},), ("x",)).startswith("changes its arguments in place: x['a']")


def test_a_dictionary_within_a_trace_is_no_argument():
    def normalise(batch):
        batch["x"] = batch["x"] / 2
        return batch["x"].sum()

    batch = ({"x": jnp.ones(3)},)

    assert said_of_trace(normalise, batch, ("batch",)) == ""
    assert said_after(normalise, batch, ("batch",)).startswith("changes its arguments in place: batch['x']")


@dataclasses.dataclass
class Counter:
    calls: int = 0


def test_an_object_that_is_no_container_is_refused_and_put_back():
    counter = Counter()

    def count(counter):
        counter.calls += 1
        counter.last = 7

    words = said_after(count, (counter,), ("counter",))

    assert words.startswith("changes its arguments in place: counter.calls, counter.last; ")
    assert vars(counter) == {"calls": 0}
