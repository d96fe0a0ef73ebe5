import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jaxmeter import DeclarationError, itemsize, levels
from jaxmeter.harness.declare.declaration import call_with

LEVELS = ("quick", "default", "full")

# Values by level


def test_a_level_includes_those_before_it_and_a_device_adds_its_own_beyond_quick():
    values = levels(quick=1, default=2, full=3, by_device={"gpu": (5, 4), "tpu": 6})
    words = levels(quick=("float32", "bfloat16"), default=("bfloat16", "auto"))

    assert [values.at(level, "gpu") for level in LEVELS] == [(1,), (1, 2, 4, 5), (1, 2, 3, 4, 5)]
    assert [values.at("default", device) for device in ("tpu", "cpu")] == [(1, 2, 6), (1, 2)]
    assert words.at("default", "cpu") == ("float32", "bfloat16", "auto")  # no numbers: in their order


numbers = st.lists(st.integers(0, 20), max_size=5).map(tuple)


@given(quick=numbers, default=numbers, full=numbers, gpu=numbers, device=st.sampled_from(["cpu", "gpu", "tpu"]))
def test_numbers_are_in_order_without_repeats_and_grow_with_the_level(quick, default, full, gpu, device):
    values = levels(quick=quick, default=default, full=full, by_device={"gpu": gpu})

    at = [values.at(level, device) for level in LEVELS]

    assert all(list(one) == sorted(set(one)) for one in at)
    assert set(at[0]) <= set(at[1]) <= set(at[2])


@pytest.mark.parametrize(
    ("dtype", "expected"),
    [("float32", 4), ("bfloat16", 2), ("float64", 8), ("int8", 1), ("complex64", 8), ("float8_e4m3fn", 1), ("bool", 1)],
)
def test_itemsize_is_the_bytes_of_one_element(dtype, expected):
    assert itemsize(dtype) == expected


@pytest.mark.parametrize("value", [None, (8, 8), np.float32, object()])
def test_a_param_that_a_record_cannot_hold_is_an_error(value):
    with pytest.raises(DeclarationError, match="write a dtype as 'float32'"):
        levels(quick=[value])


def test_numpy_numbers_and_ranges_are_values_and_the_first_of_the_next_level_stands_for_one_that_lacks():
    assert levels(quick=np.array([1, 2]), default=range(3, 5)).at("default", "cpu") == (1, 2, 3, 4)
    assert levels(default=(5, 10)).at("quick", "cpu") == (5,)
    assert levels(full=(7, 8)).at("default", "cpu") == (7,)


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (levels(quick=(3, 1), default=2), 3),
        (levels(default=(2, 1), full=3), 2),
        (levels(full=(4, 3), by_device={"gpu": 5}), 4),
        (levels(by_device={"tpu": (), "gpu": (6, 5)}), 6),
    ],
    ids=["quick", "default", "full", "of a device"],
)
def test_the_first_value_is_that_of_the_lowest_level_as_it_is_written(values, expected):
    assert values.first == expected


# Calling functions with params


def test_functions_get_the_params_that_they_ask_for():
    params = {"n": 3, "dtype": "float32"}

    assert call_with(lambda key, *, n: (key, n), params, "key") == ("key", 3)
    assert call_with(lambda *, dtype, n: (n, dtype), params) == (3, "float32")
    assert call_with(lambda n: n, params) == 3
    assert call_with(lambda: 1, params) == 1
    assert call_with(lambda n, digits=2: (n, digits), params) == (3, 2)
    assert call_with(lambda x, *, n=1: n * x, params, 2) == 6  # also where it has a default


def test_a_default_of_numpys_own_functions_is_no_param():
    assert call_with(np.matmul, {"dtype": "int64"}, np.eye(2), np.eye(2)).dtype == np.float64
