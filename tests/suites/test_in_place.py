import jax
import numpy as np
import pytest

from jaxmeter.suites.in_place import add_in_numpy, at_add, at_set, distinct, repeated

N, UPDATES = 1_000, 100


def as_numpy(arguments):
    return tuple(map(np.array, arguments))


def test_places_that_are_set_are_distinct_so_that_no_order_decides():
    _, indices, _ = distinct(jax.random.key(0), n=N, updates=UPDATES)

    assert len(set(indices.tolist())) == UPDATES
    assert 0 <= indices.min() <= indices.max() < N


@pytest.mark.parametrize("updates", [1, 7, UPDATES])
def test_the_second_half_of_the_places_that_are_added_to_repeats_the_first(updates):
    _, indices, values = repeated(jax.random.key(0), n=N, updates=updates)

    repeats = updates // 2
    assert indices.shape == values.shape == (updates,)
    assert indices[updates - repeats :].tolist() == indices[:repeats].tolist()


def test_an_indexed_addition_in_numpy_which_adds_repeated_indices_once_is_not_the_same():
    x, indices, values = as_numpy(repeated(jax.random.key(0), n=N, updates=UPDATES))
    right = add_in_numpy(x.copy(), indices, values)

    x[indices] += values

    assert not np.allclose(x, right)


@pytest.mark.parametrize("workload", [at_set, at_add], ids=lambda workload: workload.name)
def test_only_a_donated_array_lends_its_memory(workload):
    x, indices, values = workload.declaration.inputs(jax.random.key(0), n=N, updates=UPDATES)
    aliased = {}

    for one in workload.implementations:
        if "jit" in one.modes:
            jitted = jax.jit(one.function, donate_argnums=workload.find_positions(one.donate))
            analysis = jitted.lower(x, indices, values).compile().memory_analysis()
            aliased[one.name] = analysis.alias_size_in_bytes

    assert aliased == {workload.name: 0, "donated": x.nbytes}


@pytest.mark.parametrize("workload", [at_set, at_add], ids=lambda workload: workload.name)
def test_the_peer_changes_its_array_and_the_reference_does_not(workload):
    arguments = as_numpy(workload.declaration.inputs(jax.random.key(0), n=N, updates=UPDATES))
    before = arguments[0].copy()
    peer, _ = workload.find_variant("numpy:native")

    expected = workload.declaration.reference(*arguments)
    kept = np.array_equal(arguments[0], before)
    result = peer.function(*arguments)

    assert kept
    assert result is arguments[0]
    assert np.array_equal(result, expected)
