import itertools

import jax
import numpy as np
import pytest

from jaxmeter.harness.probes.conditioning import relative_error
from jaxmeter.suites.precision import (
    BATCH,
    CHANNELS,
    FORMATS,
    LARGEST,
    convolution_cost,
    convolution_in_numpy,
    in_every_format,
    precision_convolution,
    precision_matmul,
    series_in_numpy,
)

BOTH = pytest.mark.parametrize("declared", [precision_matmul, precision_convolution], ids=["matmul", "convolution"])


def test_every_format_has_the_same_numbers_as_near_as_it_holds_them():
    with jax.enable_x64():
        made = {name: np.asarray(one) for name, one in in_every_format(jax.random.key(0), (1000,)).items()}

    assert {name: array.dtype.name for name, array in made.items()} == {name: name for name in FORMATS}
    numbers = made["float64"]
    np.testing.assert_array_equal(made["float32"], numbers)
    np.testing.assert_allclose(made["float16"].astype("float64"), numbers, rtol=2**-11, atol=1e-7)
    np.testing.assert_allclose(made["bfloat16"].astype("float64"), numbers, rtol=2**-8)
    assert 0.9 < numbers.std() < 1.1


@BOTH
def test_precisions_of_float32_are_compared_only_where_they_differ(declared):
    precisions = [item for item in declared.implementations if item.name.startswith("float32_")]

    assert precisions
    for one in precisions:
        assert one.find_skip({}, "cpu").reason == "on a CPU every precision of float32 is the same as 'float32'"
        assert one.find_skip({}, "gpu") is one.find_skip({}, "tpu") is None


@BOTH
def test_each_format_computes_in_itself(declared):
    with jax.enable_x64():
        made = in_every_format(jax.random.key(0), (16, 16))
        trees = (made, made)
        if declared is precision_convolution:
            trees = (
                {name: one.reshape(1, 4, 4, 16) for name, one in made.items()},
                in_every_format(jax.random.key(1), (3, 3, 16, 8)),
            )
        found = {
            item.name: str(item.function(*trees).dtype) for item in declared.implementations if item.modes == ("jit",)
        }

    assert found == {name: name.partition("_")[0] for name in found}
    assert set(FORMATS) <= set(found)


def test_the_references_convolution_is_the_sum_over_the_kernels_places_inside_the_image():
    random = np.random.default_rng(0)
    images, kernels = random.standard_normal((1, 4, 4, 2)), random.standard_normal((3, 3, 2, 5))
    wanted = np.zeros((1, 4, 4, 5))
    for row, column, y, x in itertools.product(range(4), range(4), range(3), range(3)):
        source = row + y - 1, column + x - 1
        if all(0 <= place < 4 for place in source):
            wanted[0, row, column] += images[(0, *source)] @ kernels[y, x]

    np.testing.assert_allclose(convolution_in_numpy(images, kernels), wanted, rtol=1e-12)


@pytest.mark.parametrize("side", [1, 2, 5])
def test_the_convolutions_cost_leaves_out_what_falls_outside_the_image(side):
    inside = sum(
        1
        for row, column, y, x in itertools.product(range(side), range(side), (-1, 0, 1), (-1, 0, 1))
        if 0 <= row + y < side and 0 <= column + x < side
    )

    assert convolution_cost(side=side).flops == 2 * BATCH * CHANNELS * CHANNELS * inside


def test_a_coarser_format_has_a_larger_error():
    with jax.enable_x64():
        matrices = [in_every_format(key, (64, 64)) for key in jax.random.split(jax.random.key(0))]
        wanted = np.matmul(*(np.asarray(one["float64"]) for one in matrices))
        products = {
            item.name: jax.jit(item.function)(*matrices)
            for item in precision_matmul.implementations
            if item.name in FORMATS
        }
        errors = {name: relative_error(np.asarray(one, np.float64), wanted)[0] for name, one in products.items()}

    assert errors["float64"] < errors["float32"] / 1e6
    assert 0 < errors["float32"] < errors["float16"] / 50
    assert 0 < errors["float16"] < errors["bfloat16"] / 3 < 1e-2


def test_the_series_is_the_exponential_to_better_than_float32_can_tell():
    x = np.linspace(-LARGEST, LARGEST, 1001)

    error, _ = relative_error(series_in_numpy(x), np.exp(x))

    assert error < np.finfo(np.float32).eps / 10
