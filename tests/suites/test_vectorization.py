import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxmeter.harness.programs.jax_events import watch_jax
from jaxmeter.harness.programs.program import walk_equations
from jaxmeter.suites import vectorization


def primitives(function, *args):
    """Names of all operations that a function traces to."""
    return {equation.primitive.name for equation in walk_equations(jax.make_jaxpr(function)(*args).jaxpr)}


def digits(length=20, first=7):
    return vectorization.digits_and_count(jax.random.key(0), length=length, first=first)


@pytest.mark.parametrize("wrong", [6, 8])
def test_one_element_too_many_or_too_few_shows_in_the_sum(wrong):
    x, n = map(np.asarray, digits(first=7))

    assert x[:wrong].sum() != vectorization.sum_first_n.declaration.reference(x, n)


def test_the_largest_sum_is_exact_in_float32():
    lengths = vectorization.sum_first_n.params["first"].at("full", "cpu")

    assert 9 * max(lengths) < 2**24


@pytest.mark.parametrize("name", ["mask", "fori_loop"])
def test_one_program_sums_any_first_n(name):
    function = jax.jit(vectorization.sum_first_n.find_variant(f"{name}:jit")[0].function)
    x, n = digits(first=7)
    function(x, n)
    another = n + 1

    with watch_jax() as seen:
        result = function(x, another)

    assert seen.compiled == 0
    assert result == x[:8].sum()


def test_a_static_slice_is_another_program_for_each_n():
    function = jax.jit(vectorization.static_slice, static_argnames="first")
    x, n = digits(first=7)
    function(x, n, first=7)

    with watch_jax() as seen:
        function(x, n, first=8)

    assert seen.compiled == 1


def test_vmap_of_cond_computes_both_branches_and_lax_map_keeps_them_apart():
    arguments = vectorization.examples_and_choices(jax.random.key(0), examples=4, n=3)

    vectorized = primitives(vectorization.branch_per_example.function, *arguments)
    mapped = primitives(vectorization.map_cond, *arguments)

    assert "cond" not in vectorized
    assert "select_n" in vectorized
    assert "cond" in mapped


@pytest.mark.parametrize("name", ["cond", "switch"])
def test_one_program_with_a_branch_computes_whichever_is_asked_for(name):
    function = jax.jit(vectorization.branch.find_variant(f"{name}:jit")[0].function)
    x = jnp.linspace(-1, 1, 25).reshape(5, 5)

    for is_expensive in (True, False):
        got = function(x, jnp.bool_(is_expensive))
        assert got == pytest.approx(
            vectorization.branch.declaration.reference(np.asarray(x), is_expensive), rel=1e-5, abs=1e-6
        )
    assert "cond" in primitives(function, x, jnp.bool_(True))


def test_lax_map_takes_what_is_left_over_by_its_batches():
    examples = vectorization.LAX_MAP_BATCH + 3
    weights, xs = vectorization.layer_and_examples(jax.random.key(0), examples=examples, features=4)

    got = vectorization.lax_map_in_batches(weights, xs)

    assert got == pytest.approx(
        vectorization.per_example_function.declaration.reference(*map(np.asarray, (weights, xs))), rel=1e-4
    )


def test_the_cost_of_branches_counts_each_examples_own():
    expensive, cheap = (vectorization.flops_of_branch(n=10, is_expensive=choice) for choice in (True, False))

    cost = vectorization.branch_per_example.declaration.cost(examples=9, n=10)

    assert cost.flops == 2 * expensive + 7 * cheap
