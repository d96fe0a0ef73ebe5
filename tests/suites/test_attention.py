from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxmeter.harness.declare.declaration import call_with
from jaxmeter.harness.probes.conditioning import relative_error
from jaxmeter.harness.probes.evaluation import TOLERANCE
from jaxmeter.suites.attention import (
    HEAD,
    HEADS,
    attention,
    attention_gradient,
    attention_in_numpy,
    by_blocks,
    forward_cost,
    gradient_cost,
    gradient_in_numpy,
    pairs,
    xla,
)

LENGTH = 5


@pytest.fixture
def arrays() -> tuple[np.ndarray, ...]:
    """Query, key, value and cotangent, (2, 5, 3, 4): no two axes are of one length."""
    return tuple(np.random.default_rng(0).standard_normal((4, 2, LENGTH, 3, 4)))


@pytest.mark.parametrize("causal", [False, True])
def test_the_hand_written_gradient_is_the_slope_of_the_reference(arrays, causal):
    *inputs, cotangent = arrays
    direction = np.random.default_rng(1).standard_normal((3, *cotangent.shape))
    step = 1e-6

    output, *gradients = gradient_in_numpy(*inputs, cotangent, causal=causal)
    forward, backward = (
        (attention_in_numpy(*(np.array(inputs) + sign * step * direction), causal=causal) * cotangent).sum()
        for sign in (1, -1)
    )

    np.testing.assert_allclose((np.array(gradients) * direction).sum(), (forward - backward) / (2 * step), rtol=1e-7)
    np.testing.assert_allclose(output, attention_in_numpy(*inputs, causal=causal), rtol=1e-14)


def test_causal_attention_at_a_position_is_attention_over_what_came_before(arrays):
    query, key, value, _ = arrays

    causal = attention_in_numpy(query, key, value, causal=True)

    for end in range(1, LENGTH + 1):
        before = attention_in_numpy(query[:, :end], key[:, :end], value[:, :end], causal=False)
        np.testing.assert_allclose(causal[:, end - 1], before[:, -1], rtol=1e-13)


def test_scores_so_large_that_their_exponential_overflows_give_the_largest_ones_value():
    key = np.eye(4)[None, :, None]

    output = attention_in_numpy(1e6 * key, key, key, causal=False)

    np.testing.assert_array_equal(output, key)


@pytest.mark.parametrize("function", [attention, xla, by_blocks])
def test_every_attention_is_that_of_the_reference(function):
    inputs = np.random.default_rng(0).standard_normal((3, 1, 32, 2, HEAD), np.float32)
    reference = attention_in_numpy(*inputs.astype(np.float64), causal=True)

    error, _ = relative_error(np.asarray(jax.jit(partial(function, causal=True))(*inputs)), reference)

    assert error < TOLERANCE["float32"]


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_sixteen_bits_stay_within_their_tolerance(dtype):
    inputs = tuple(np.random.default_rng(0).standard_normal((4, 1, 128, 2, HEAD)).astype(jnp.dtype(dtype)))
    references = gradient_in_numpy(*(np.asarray(array, np.float64) for array in inputs), causal=True)

    results = jax.jit(partial(attention_gradient, causal=True))(*inputs)

    for result, reference in zip(results, references, strict=True):
        assert result.dtype == dtype
        assert relative_error(np.asarray(result, np.float64), reference)[0] < TOLERANCE[dtype]


def test_by_blocks_memory_grows_with_the_length_and_otherwise_with_its_square():
    def temporaries(function, length: int) -> int:
        argument = jax.ShapeDtypeStruct((1, length, HEADS, HEAD), jnp.float32)
        compiled = jax.jit(partial(function, causal=True)).lower(argument, argument, argument).compile()
        return compiled.memory_analysis().temp_size_in_bytes

    scaling = {
        function.__name__: temporaries(function, 2048) / temporaries(function, 512) for function in (xla, by_blocks)
    }

    assert scaling["xla"] == pytest.approx(16, rel=0.1)
    assert scaling["by_blocks"] < 5


@pytest.mark.parametrize("causal", [False, True])
def test_the_cost_counts_the_pairs_that_see_each_other(causal):
    seen = sum(1 for query in range(LENGTH) for key in range(LENGTH) if key <= query or not causal)

    forward = forward_cost(length=LENGTH, causal=causal, dtype="float32")
    both = gradient_cost(length=LENGTH, causal=causal, dtype="bfloat16")

    assert pairs(LENGTH, causal) == seen
    assert forward.flops == 2 * HEADS * seen * (2 * HEAD)  # a product and a sum: q k^T, p v
    assert forward.bytes == 4 * LENGTH * HEADS * HEAD * 4
    assert both.flops == 3 * forward.flops
    assert both.bytes == 8 * LENGTH * HEADS * HEAD * 2


@pytest.mark.parametrize(
    ("backend", "dtype", "reason"),
    [
        ("cpu", "bfloat16", "cuDNN runs on NVIDIA GPUs only"),
        ("tpu", "bfloat16", "cuDNN runs on NVIDIA GPUs only"),
        ("gpu", "float32", "cuDNN's attention takes float16 and bfloat16 only"),
        ("gpu", "bfloat16", None),
        ("gpu", "float16", None),
    ],
)
@pytest.mark.parametrize("declared", [attention, attention_gradient], ids=["forward", "gradient"])
def test_cudnn_takes_part_where_it_can(declared, backend, dtype, reason):
    implementation, _ = declared.find_variant("cudnn:jit")

    skip = call_with(implementation.limit, {"length": 128, "causal": True, "dtype": dtype, "backend": backend})

    assert (skip and skip.reason) == reason
