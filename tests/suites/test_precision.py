import itertools
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from harness.probes.numerics import relative_error
from suites.precision import (
    BATCH,
    CHANNELS,
    LARGEST,
    convolution_cost,
    convolution_in_numpy,
    dtype_of,
    precision_convolution,
    precision_matmul,
    precision_of,
    series_in_numpy,
    wide_where_needed,
)


def test_a_format_names_its_dtype_and_where_there_is_a_choice_its_precision():
    assert [(dtype_of(one), precision_of(one)) for one in ("float32 highest", "bfloat16")] == [
        ("float32", "highest"),
        ("bfloat16", None),
    ]


def test_only_float64_is_measured_in_64_bit_mode():
    formats = ("float64", "float32 highest", "float32 default", "bfloat16", "float16")

    wide = [one for one in formats if precision_matmul.find_config({"arithmetic": one})["jax_enable_x64"]]

    assert wide == ["float64"]
    assert wide_where_needed(arithmetic="float64") == {"jax_enable_x64": True}


@pytest.mark.parametrize("declared", [precision_matmul, precision_convolution], ids=["matmul", "convolution"])
def test_precisions_of_float32_are_cases_only_where_they_differ(declared):
    precisions = {
        backend: {
            case["arithmetic"] for case in declared.list_cases("full", backend) if "float32" in case["arithmetic"]
        }
        for backend in ("cpu", "gpu", "tpu")
    }

    every = {"float32 default", "float32 high", "float32 highest"}
    assert precisions == {"cpu": {"float32 highest"}, "gpu": every, "tpu": every}


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

    assert convolution_cost(side=side, arithmetic="float32 high").flops == 2 * BATCH * CHANNELS * CHANNELS * inside


def test_a_coarser_format_has_a_larger_error():
    errors = {}
    for arithmetic in ("float32 highest", "float16", "bfloat16"):
        matrices = np.random.default_rng(0).standard_normal((2, 64, 64)).astype(jnp.dtype(dtype_of(arithmetic)))
        product = jax.jit(partial(precision_matmul, arithmetic=arithmetic))(*matrices)
        errors[arithmetic], _ = relative_error(np.asarray(product, np.float64), np.matmul(*matrices.astype(np.float64)))

    assert 0 < errors["float32 highest"] < errors["float16"] / 50
    assert errors["float16"] < errors["bfloat16"] / 3 < 1e-2


def test_the_series_is_the_exponential_to_better_than_float32_can_tell():
    x = np.linspace(-LARGEST, LARGEST, 1001)

    error, _ = relative_error(series_in_numpy(x), np.exp(x))

    assert error < np.finfo(np.float32).eps / 10
