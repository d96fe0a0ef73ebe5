"""Functions that are one jitted call: named where eager and jit are the same program, and nowhere else."""

import jax
import jax.numpy as jnp
import pytest
from msgspec import structs

import jaxmeter
from jaxmeter.harness.notebook import variants
from jaxmeter.harness.notebook.variants import MOST_APART, describe_one_program, is_one_jitted_call
from tests.harness.raw import clean, process, variant

inner = jax.jit(lambda x: x + 1)
donating = jax.jit(lambda x: x + 1, donate_argnums=0)
pair = jax.jit(lambda x: (x + 1, x @ x))
product = jax.jit(lambda x, y: x * y)
constant = jnp.arange(4.0)


def traced(function):
    return jax.make_jaxpr(function)(jnp.ones(4)).jaxpr


@pytest.mark.parametrize(
    ("function", "is_one"),
    [
        pytest.param(inner, True, id="one call"),
        pytest.param(lambda x: inner(x) * 2, False, id="work around it"),
        pytest.param(donating, False, id="donation"),
        pytest.param(lambda x: pair(x)[0], False, id="an output that is not returned"),
        pytest.param(lambda x: product(x, constant), False, id="an array that is no argument"),
        pytest.param(lambda x: product(x, 2.0), False, id="a number that is no argument"),
        pytest.param(lambda x: (inner(x), x), False, id="an argument that is returned"),
    ],
)
def test_one_jitted_call_is_what_a_jit_around_it_compiles_alike(function, is_one):
    assert is_one_jitted_call(traced(function)) is is_one


def process_of(eager_s, jit_s, *, compiles=0):
    """A process in which a function was timed, eager and jitted."""
    eager, jitted = (variant(f"f:{mode}", *clean(*[s] * 24)) for mode, s in (("eager", eager_s), ("jit", jit_s)))
    return process(structs.replace(eager, compiles_per_call=compiles), jitted)


@pytest.mark.parametrize(
    ("process", "is_said"),
    [
        pytest.param(process_of(4e-6, 3e-6), True, id="alike"),
        pytest.param(process_of(3e-6 * MOST_APART * 1.1, 3e-6), False, id="eager slower"),
        pytest.param(process_of(3e-6, 3e-6 * MOST_APART * 1.1), False, id="jit slower"),
        pytest.param(process_of(4e-6, 3e-6, compiles=1), False, id="eager compiles"),
        pytest.param(None, False, id="not timed"),
    ],
)
def test_the_same_program_is_said_only_where_times_and_compiles_agree(process, is_said):
    assert bool(describe_one_program(["f"], process)) is is_said


def test_of_several_functions_only_those_that_are_one_jitted_call_are_named(monkeypatch):
    monkeypatch.setattr(variants, "MOST_APART", float("inf"))  # a busy machine's times say nothing here
    measure = jaxmeter.measure.with_options(modes=("eager", "jit"))

    def wrapped(x):
        return inner(x)

    notes = measure({"wrapped": wrapped, "own": lambda x: x + 1}, jnp.ones(100_000)).record.notes

    assert "wrapped is one jitted call: eager and jit are the same program" in notes


def test_a_function_jitted_anew_in_every_call_is_another_program():
    def build(x):
        return jax.jit(lambda y: y + 1)(x)

    measurement = jaxmeter.measure.with_options(modes=("eager", "jit"))(build, jnp.ones(4))

    assert not [note for note in measurement.record.notes if "same program" in note]
