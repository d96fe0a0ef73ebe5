import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from jaxmeter.harness.probes.conditioning import is_kept, is_moved, move, move_tree

FORMATS = st.sampled_from(["float32", "float64"])
floats = FORMATS.flatmap(lambda name: arrays(name, array_shapes(max_side=6)))
seeds = st.tuples(st.integers(0, 9), st.integers(0, 9))


@given(array=floats, seed=seeds)
def test_an_entry_moves_by_one_unit_in_the_last_place_at_most(array, seed):
    moved = move(array, seed)

    with np.errstate(over="ignore"):
        above, below = np.nextafter(array, np.inf), np.nextafter(array, -np.inf)
    is_near = (moved == array) | (moved == above) | (moved == below) | (np.isnan(moved) & np.isnan(array))
    assert moved.dtype == array.dtype
    assert is_near.all()


@given(array=floats, seed=seeds)
def test_small_integers_infinities_and_nan_stay(array, seed):
    rounded = np.round(array)
    small = rounded[np.abs(rounded) < 2**20]
    special = np.array([np.inf, -np.inf, np.nan, 0.0, -0.0], array.dtype)

    assert np.array_equal(move(small, seed), small)
    assert np.array_equal(move(special, seed), special, equal_nan=True)


@given(array=floats, seed=seeds)
def test_equal_seeds_move_alike_and_the_array_itself_stays(array, seed):
    before = array.copy()

    first, second = move(array, seed), move(array, seed)

    assert np.array_equal(first, second, equal_nan=True)
    assert np.array_equal(array, before, equal_nan=True)


def test_numbers_too_large_for_fractions_move():
    assert not is_kept(np.float32([1e8, 2.0**23])).any()
    assert is_kept(np.float32([2.0**23 - 1, 1e6])).all()


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
def test_about_a_third_of_the_entries_goes_each_way(dtype):
    array = np.full((300, 20), 0.1 + 0.1j if dtype.startswith("complex") else 0.1, dtype)

    moved = move(array, (0,)).view(array.real.dtype)

    still = array.view(array.real.dtype)
    assert [0.3 < share.mean() < 0.37 for share in (moved > still, moved < still, moved == still)] == [True] * 3


@given(array=arrays("float32", (3, 4), elements=st.floats(0.125, 0.875, width=32)))
def test_the_layout_in_memory_does_not_matter(array):
    assert np.array_equal(move(np.asfortranarray(array), (1,)), move(array, (1,)))


def test_only_wide_floating_arrays_of_a_tree_move():
    tree = {
        "wide": jnp.full(9, 0.1),
        "host": np.full(9, 0.1, np.float32),
        "narrow": jnp.full(9, 0.1, "bfloat16"),
        "tokens": jnp.arange(3),
        "key": jax.random.key(0),
        "name": "relu",
        "rate": 0.1,
        "function": jnp.tanh,
    }

    moved = move_tree(tree, (0,))

    assert [name for name in tree if moved[name] is not tree[name]] == ["wide", "host"]
    assert isinstance(moved["wide"], jax.Array)
    assert isinstance(moved["host"], np.ndarray)
    assert not np.array_equal(moved["wide"], tree["wide"])


@pytest.mark.parametrize("leaf", [None, 0.5, "x", jnp.tanh, object()])
def test_what_is_no_array_does_not_move(leaf):
    assert not is_moved(leaf)
