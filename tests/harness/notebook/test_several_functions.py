"""Several functions in one measurement: the first is the baseline, each may have arguments of its own."""

import functools

import jax.numpy as jnp
import pytest

import jaxmeter
from jaxmeter.harness.record import Status

measure = jaxmeter.measure.with_options(modes=("jit",))


def one(x):
    return x + 1


def both(x, y):
    return x + 1, x + y


def test_functions_take_arguments_of_their_own():
    x, y = jnp.ones((4, 4)), jnp.zeros((4, 4))

    found = measure({"old": (one, (x,)), "new": (lambda x, y: x + y, (x, y + 1))})

    assert [variant.outcomes["numerics"].status for variant in found.record.variants] == [Status.OK, Status.OK]
    assert found.value("old:jit", "argument_bytes") * 2 == found.value("new:jit", "argument_bytes")
    assert found.find_speedup("new:jit") is not None


def test_a_function_without_arguments_of_its_own_takes_those_of_the_call():
    found = measure({"old": lambda x, *, by: x + by, "new": (one, (jnp.ones(4),))}, jnp.ones(4), by=1.0)

    assert [variant.outcomes["numerics"].status for variant in found.record.variants] == [Status.OK, Status.OK]


def test_what_a_function_changes_in_its_own_arguments_is_put_back():
    def change(state):
        state["x"] = state["x"] + 1
        return state["x"]

    first, second = {"x": jnp.ones(3)}, {"x": jnp.ones(3)}

    jaxmeter.measure.with_options(modes=("eager",))({"old": (change, (first,)), "new": (change, (second,))})

    assert first["x"].tolist() == second["x"].tolist() == [1, 1, 1]


@pytest.mark.parametrize(
    ("function", "args"),
    [
        ((one,), ()),
        ((one, jnp.ones(4)), ()),
        ((one, [jnp.ones(4)]), ()),
        ((jnp.ones(4), (one,)), ()),
        ((one, (jnp.ones(4),), {"by": 1}), ()),
    ],
)
def test_another_form_is_an_error_that_shows_the_right_one(function, args):
    with pytest.raises(ValueError, match=r"'old' must be a function, or .* as in \{\"old\": \(f, \(a, b\)\)\}"):
        measure({"old": function}, *args)


def test_arguments_that_no_function_takes_are_an_error():
    with pytest.raises(ValueError, match="every function has its own arguments; pass no shared arguments"):
        measure({"old": (one, (jnp.ones(4),)), "new": (functools.partial(one), (jnp.ones(4),))}, jnp.ones(4))


@pytest.mark.parametrize("comparable", [True, False])
def test_functions_whose_results_differ_on_purpose_have_a_speedup(comparable):
    functions = {"zeros": lambda x, y: x + 1, "sums": both}

    found = measure.with_options(comparable=comparable)(functions, jnp.ones(4), jnp.ones(4))

    numerics = found.record.variants[1].outcomes["numerics"]
    assert numerics.status is (Status.OK if comparable is False else Status.WRONG)
    assert (found.find_speedup("sums:jit") is not None) is not comparable
    said = "zeros:jit, sums:jit: not checked: comparable=False, so results and changes in place may differ"
    assert (said in repr(found).splitlines()) is not comparable
    assert any(note.startswith("results are compared") for note in found.record.notes) is comparable


@pytest.mark.parametrize("comparable", [True, False])
def test_functions_that_change_other_objects_on_purpose_have_a_speedup(comparable):
    def change(state):
        state["x"] = state["x"] + 1
        return state["x"].sum()

    functions = {"changes": change, "keeps": lambda state: (state["x"] + 1).sum()}

    found = jaxmeter.measure.with_options(modes=("eager",), comparable=comparable)(functions, {"x": jnp.ones(3)})

    assert (found.find_speedup("keeps:eager") is not None) is not comparable
