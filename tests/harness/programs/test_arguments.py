import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxmeter import Needs, workload
from jaxmeter.harness.programs.arguments import (
    as_numpy,
    choose_static,
    hash_arguments,
    make_inputs,
    make_shapes,
    pack_numbers,
    size_bytes,
    unpack_numbers,
    widest,
)

CHECKOUT = Path(__file__).parents[3]
SIDE = 64
SQUARE_BYTES = SIDE * SIDE * 4
SHAPE = jax.ShapeDtypeStruct((3,), jnp.float32)
SQUARE = jnp.ones((SIDE, SIDE))


# Made


def product(x, w, *, by):
    return x @ w * by


def declared(**changes):
    as_usual = {
        "inputs": lambda key, *, n: (np.ones(n, np.float32), jax.random.normal(key, (n, 2))),
        "reference": product,
        "params": {"n": [3], "by": [2]},
    }
    return workload(**{**as_usual, **changes})(product)


PARAMS = {"n": 3, "by": 2}


def test_inputs_are_on_the_device_but_for_those_that_belong_on_the_host():
    x, w = make_inputs(declared(needs=Needs(host=("w",))), PARAMS)

    assert (type(w), w.shape) == (np.ndarray, (3, 2))
    assert isinstance(x, jax.Array)


def test_inputs_are_the_same_each_time_that_they_are_made():
    first, again = (make_inputs(declared(), PARAMS) for _ in range(2))

    assert np.array_equal(first[1], again[1])


def test_one_array_is_one_argument_and_of_a_stream_each_item_is_a_tuple_of_arguments():
    made = declared(inputs=lambda key: [(np.ones(n), np.ones((n, 2))) for n in (3, 4)], stream=True, modes=("jit",))

    items = make_inputs(made, PARAMS)

    assert [[argument.shape for argument in item] for item in items] == [[(3,), (3, 2)], [(4,), (4, 2)]]
    assert all(isinstance(argument, jax.Array) for item in items for argument in item)
    assert [argument.shape for argument in make_inputs(declared(inputs=lambda key: np.ones(3)), PARAMS)] == [(3,)]


@pytest.mark.parametrize("stream", [False, True])
def test_shapes_are_those_of_the_inputs_and_nothing_is_made(stream):
    def inputs(key):
        arguments = jnp.ones(10**13), jax.random.normal(key, (3, 2))
        return [arguments, arguments] if stream else arguments

    shapes = make_shapes(declared(inputs=inputs, stream=stream, modes=("jit",)), PARAMS)

    expected = (jax.ShapeDtypeStruct((10**13,), jnp.float32), jax.ShapeDtypeStruct((3, 2), jnp.float32))
    assert shapes == ((expected, expected) if stream else expected)


def test_the_static_arguments_of_a_function_are_the_params_that_it_takes():
    assert choose_static(product, PARAMS) == {"by": 2}
    assert choose_static(lambda x: x, PARAMS) == {}


# As NumPy's


@pytest.mark.parametrize(
    ("dtype", "expected"),
    [
        ("bfloat16", "float64"),
        ("float16", "float64"),
        ("float32", "float64"),
        ("int8", "int64"),
        ("uint32", "int64"),
        ("complex64", "complex128"),
        ("bool", "bool"),
    ],
)
def test_the_widest_of_a_kind_holds_the_same_numbers(dtype, expected):
    found = widest(jnp.asarray([0, 1], dtype))

    assert (type(found), found.dtype) == (np.ndarray, expected)
    assert found.tolist() == [0, 1]


def test_a_random_key_stays_what_it_is():
    key = jax.random.key(0)

    assert as_numpy(key) is key
    assert widest(key) is key


# Sizes


@pytest.mark.parametrize(
    ("tree", "expected"),
    [
        ((), 0),
        (SQUARE, SQUARE_BYTES),
        (jnp.ones(3, bool), 3),
        (jnp.ones(3, jnp.bfloat16), 6),
        ({"a": [jnp.ones(3), (jnp.ones((2, 2)),)], "b": None}, (3 + 4) * 4),
        (jax.ShapeDtypeStruct((10**13,), jnp.float32), 4 * 10**13),
        (((SQUARE, 1), (SQUARE, 2)), SQUARE_BYTES),
        ([SHAPE, SHAPE], 2 * 12),
    ],
    ids=["nothing", "array", "bool", "bfloat16", "nested", "shape", "an array in two items", "a shape of two arrays"],
)
def test_a_tree_holds_what_its_arrays_hold(tree, expected):
    assert size_bytes(tree) == expected


@pytest.mark.parametrize(("implementation", "words"), [("threefry2x32", 2), ("rbg", 4)])
def test_random_keys_hold_the_words_that_they_are_made_of(implementation, words):
    keys = jax.random.split(jax.random.key(0, impl=implementation), 5)

    assert size_bytes(keys) == 5 * words * 4
    assert size_bytes(jax.eval_shape(lambda: keys)) == 5 * words * 4


EIGHT_DEVICES = """
import jax, numpy
from jax.sharding import NamedSharding, PartitionSpec
from jaxmeter.harness.programs.arguments import size_bytes

mesh = jax.make_mesh((8,), ("x",))
for parts in (PartitionSpec("x"), PartitionSpec()):
    print(size_bytes(jax.device_put(numpy.ones(64, numpy.float32), NamedSharding(mesh, parts))))
"""


def test_an_array_on_several_devices_holds_what_they_hold_together():
    variables = {"XLA_FLAGS": "--xla_force_host_platform_device_count=8", "JAX_PLATFORMS": "cpu"}

    ended = subprocess.run(
        [sys.executable, "-c", EIGHT_DEVICES],
        env={**os.environ, **variables, "PYTHONPATH": str(CHECKOUT)},
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )

    divided, copied = map(int, ended.stdout.split())
    assert (divided, copied) == (64 * 4, 8 * 64 * 4)


def test_a_model_of_another_library_counts_only_what_it_says():
    assert size_bytes([SimpleNamespace(nbytes=5), object(), 3]) == 5


# Packed for another process


def all_kinds(seed):
    """Arrays of every kind that inputs hold, of other numbers for each seed."""
    key = jax.random.key(seed)
    return (
        {"x": jax.random.normal(key, (3, 2)), "half": jnp.full(5, seed, jnp.bfloat16)},
        np.arange(seed, seed + 4),
        key,
        jax.device_put(jnp.full(2, seed), jax.devices()[0]),
        jnp.asarray(float(seed)),
        jnp.asarray([seed > 1]),
        jnp.zeros((0, 3)),
        jax.device_put(key, jax.devices()[0]),
    )


def test_numbers_of_another_tree_are_taken_where_the_own_ones_were():
    theirs, own = all_kinds(1), all_kinds(2)

    taken = unpack_numbers(pack_numbers(theirs), own)

    assert hash_arguments(own) != hash_arguments(theirs) == hash_arguments(taken)
    assert jax.tree.structure(taken) == jax.tree.structure(own)
    for one, like in zip(jax.tree.leaves(taken), jax.tree.leaves(own), strict=True):
        assert type(one) is type(like)
        if isinstance(like, jax.Array):
            assert (one.aval, one.sharding, one.committed) == (like.aval, like.sharding, like.committed)


def test_what_is_taken_can_be_written_and_donated():
    host, device = unpack_numbers(pack_numbers((np.ones(2), jnp.ones(2))), (np.zeros(2), jnp.zeros(2)))

    host[0] = 3
    jax.jit(lambda x: x + 1, donate_argnums=0)(device)

    assert device.is_deleted()


def test_numbers_of_the_host_stay_where_in_memory_they_begin():
    """Whether they can be handed over without a copy hangs on it."""
    shifted = np.zeros(64, np.float32)[3:51].reshape(6, 8)
    by_columns, fixed = np.zeros((3, 2), order="F"), np.zeros(2)
    fixed.flags.writeable = False
    own = (shifted, by_columns, fixed, 1.5, np.float32(2))
    arrays = np.arange(48, dtype=np.float32).reshape(6, 8), np.arange(6.0).reshape(3, 2), np.ones(2)
    theirs = (*arrays, 2.5, np.float32(3))

    taken = unpack_numbers(pack_numbers(theirs), own)

    assert hash_arguments(taken) == hash_arguments(theirs)
    assert (taken[0] is shifted, taken[1] is by_columns) == (True, True)
    assert (taken[3:], type(taken[3]), type(taken[4])) == (theirs[3:], float, np.float32)


def test_what_is_the_same_already_is_left_alone():
    own = all_kinds(1)

    taken = unpack_numbers(pack_numbers(all_kinds(1)), own)

    assert all(one is like for one, like in zip(jax.tree.leaves(taken), jax.tree.leaves(own), strict=True))


def test_objects_that_hold_no_numbers_stay_what_they_are():
    words = np.array(["a", None], dtype=object)

    assert pack_numbers((words, np.ones(1, np.int8))) == b"\x01"
    assert unpack_numbers(b"\x02", (words, np.ones(1, np.int8)))[0] is words


@pytest.mark.parametrize("packed", [bytes(7), bytes(9)])
def test_numbers_of_other_shapes_are_refused(packed):
    with pytest.raises(ValueError, match=f"its inputs have 8 bytes, and today's {len(packed)}"):
        unpack_numbers(packed, (jnp.ones(2, jnp.float32),))
