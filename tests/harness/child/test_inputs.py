"""A case's inputs, kept by one process for the next."""

import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest

from jaxmeter import Needs, no_reference, workload
from jaxmeter.harness.child.inputs import LARGEST_BYTES, find_inputs
from jaxmeter.harness.programs.older_jax import copy_array


class Pair(NamedTuple):
    first: jax.Array
    second: jax.Array


def declare(inputs, **options):
    def f(x):
        return x

    return workload(inputs=inputs, reference=no_reference("none"), **options)(f)


@pytest.fixture
def made():
    """How often inputs were made."""
    return []


@pytest.fixture
def find(tmp_path, made):
    """The inputs of a case as one process after the other finds them."""

    def find(inputs, **options):
        @functools.wraps(inputs)
        def counting(key):
            made.append(key)
            return inputs(key)

        return find_inputs(declare(counting, **options), {}, tmp_path / "inputs" / "case").arguments

    return find


def tree(key):
    numbers = jax.random.normal(key, (3, 4))
    return {"a": Pair(numbers, numbers.astype(ml_dtypes.bfloat16)), "b": [jnp.arange(5), jnp.zeros((), bool)]}


def test_what_one_process_made_the_next_one_reads_the_same(find, made):
    first, second = find(tree), find(tree)

    assert len(made) == 1
    assert jax.tree.structure(first) == jax.tree.structure(second)
    for one, other in zip(jax.tree.leaves(first), jax.tree.leaves(second), strict=True):
        assert isinstance(other, jax.Array)
        assert (one.dtype, one.aval.weak_type, one.committed) == (other.dtype, other.aval.weak_type, other.committed)
        np.testing.assert_array_equal(one, other)


def test_dtypes_that_jax_makes_narrower_are_known_to_every_process(tmp_path):
    declared = declare(lambda key: (np.ones(3), np.ones(3, np.float32)))

    found = [find_inputs(declared, {}, tmp_path / "inputs" / "case") for _ in range(2)]

    assert [one.wide for one in found] == [("float64",)] * 2
    assert all(isinstance(leaf, jax.Array) for one in found for leaf in one.arguments)


def test_what_was_read_does_not_share_memory_with_what_was_kept(find, tmp_path):
    find(lambda key: jnp.arange(64.0))
    aligned = np.arange(64.0, dtype=np.float32)

    copied = copy_array(aligned)
    aligned[:] = -1

    assert copied.tolist() == list(range(64))


def test_a_stream_stays_a_stream(find, made):
    def stream(key):
        return ((jnp.ones(1),), (jnp.ones(2),))

    first, second = find(stream, stream=True), find(stream, stream=True)

    assert len(made) == 1
    assert [[array.shape for array in item] for item in first] == [[(1,)], [(2,)]]
    assert [[array.shape for array in item] for item in second] == [[(1,)], [(2,)]]


def test_an_array_that_each_item_of_a_stream_has_is_one_in_every_process(find):
    def stream(key):
        state, batches = jnp.ones(7), [jnp.full(2, number) for number in range(3)]
        return tuple((state, batch) for batch in batches)

    for items in (find(stream, stream=True), find(stream, stream=True)):
        assert len({id(state) for state, _ in items}) == 1
        assert [batch.tolist() for _, batch in items] == [[0, 0], [1, 1], [2, 2]]


def test_what_was_read_can_be_donated(find):
    find(lambda key: jnp.ones(1000))
    (read,) = find(lambda key: jnp.ones(1000))

    jax.jit(lambda x: x + 1, donate_argnums=0)(read)

    assert read.is_deleted()


@pytest.mark.parametrize(
    "inputs",
    [
        lambda key: jax.device_put(jnp.ones(3), jax.devices()[0]),
        lambda key: jnp.asarray(1.0),
        lambda key: key,
        lambda key: (jnp.ones(3), key),
    ],
    ids=["bound to a device", "of a weak type", "a random key", "a key among others"],
)
def test_what_would_not_be_the_same_is_made_by_each_process(find, made, tmp_path, inputs):
    find(inputs)
    find(inputs)

    assert len(made) == 2
    assert not (tmp_path / "inputs").exists()


def test_what_stays_on_the_host_is_made_by_each_process(find, made):
    for _ in range(2):
        (array,) = find(lambda key: np.ones(3), needs=Needs(host=("x",)))
        assert isinstance(array, np.ndarray)

    assert len(made) == 2


@pytest.mark.parametrize(("more", "times"), [(0, 1), (1, 2)])
def test_large_inputs_are_made_by_each_process(find, made, more, times):
    for _ in range(2):
        find(lambda key: jnp.zeros(LARGEST_BYTES + more, jnp.uint8))

    assert len(made) == times


class Tree:
    """A tree of an array."""

    def __init__(self, array):
        self.array = array

    def tree_flatten(self):
        return (self.array,), None

    @classmethod
    def tree_unflatten(cls, auxiliary, arrays):
        return cls(*arrays)


@jax.tree_util.register_pytree_node_class
class Unwritable(Tree):
    """A tree with a function that no file can hold."""

    def __init__(self, array):
        super().__init__(array)
        self.function = lambda: None


@jax.tree_util.register_pytree_node_class
class OfJaxAlone(Tree):
    """A tree that takes no other library's arrays."""

    def __init__(self, array):
        if isinstance(array, np.ndarray):
            raise ValueError("not an array of JAX")
        super().__init__(array)


@pytest.mark.parametrize("kind", [Unwritable, OfJaxAlone])
def test_what_cannot_be_written_or_refuses_arrays_of_numpy_is_made_by_each_process(find, made, kind):
    for _ in range(2):
        find(lambda key: kind(jnp.ones(3)))

    assert len(made) == 2


def test_where_nothing_can_be_written_each_process_makes_them(find, made, tmp_path):
    (tmp_path / "inputs").write_text("a file where the folder should be")

    for _ in range(2):
        (array,) = find(lambda key: jnp.ones(3))
        assert array.shape == (3,)

    assert len(made) == 2
