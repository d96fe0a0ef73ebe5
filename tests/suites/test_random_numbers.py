import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxmeter.harness.probes.conditioning import relative_error
from jaxmeter.suites.random_numbers import (
    BINS,
    SAMPLING_ERROR,
    SAMPLING_ERROR_OF_KEYS,
    key_of,
    random_normal,
    random_split,
    random_uniform,
    split_rbg,
)

SMALLEST = 1_000_000
FEWEST_KEYS = 100_000

WORDS = np.array([0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344], np.uint32)
"""The first digits of pi."""


def test_unsafe_rbg_draws_as_rbg_does_and_splits_otherwise():
    def drawn(generator: str) -> np.ndarray:
        return np.asarray(jax.random.bits(key_of(jnp.asarray(WORDS), generator), (1001,)))

    split, _ = random_split.find_variant("unsafe_rbg:jit")

    np.testing.assert_array_equal(drawn("unsafe_rbg"), drawn("rbg"))
    assert not np.array_equal(split.function(jnp.asarray(WORDS), n=10), split_rbg(jnp.asarray(WORDS), n=10))


def worst(declared, result: np.ndarray) -> float:
    """The largest error that the numerics probe finds."""
    got, want = declared.declaration.compare(result), declared.declaration.reference(WORDS)
    assert got.keys() == want.keys()
    return max(relative_error(np.asarray(got[name]), np.asarray(want[name]))[0] for name in want)


def uniform(seed: int = 0) -> np.ndarray:
    return np.random.Generator(np.random.PCG64(seed)).random(SMALLEST, np.float32)


def normal(seed: int = 0) -> np.ndarray:
    return np.random.Generator(np.random.PCG64(seed)).standard_normal(SMALLEST, np.float32)


def keys(seed: int = 0) -> np.ndarray:
    return np.random.Generator(np.random.PCG64(seed)).integers(0, 2**32, (FEWEST_KEYS, 4), np.uint32)


def test_a_right_generator_is_within_the_sampling_error_at_the_smallest_size():
    for seed in range(5):
        assert worst(random_uniform, uniform(seed)) < SAMPLING_ERROR
        assert worst(random_normal, normal(seed)) < SAMPLING_ERROR
        assert worst(random_split, keys(seed)) < SAMPLING_ERROR_OF_KEYS


def test_the_tolerances_are_five_and_seven_of_the_largest_standard_errors():
    share = np.sqrt((1 - 1 / BINS) / (SMALLEST / BINS))
    fourth_powers = np.sqrt((105 - 9) / SMALLEST) / 3  # E x**8 = 105 and E x**4 = 3 of normal numbers

    assert SAMPLING_ERROR / max(share, fourth_powers) == pytest.approx(5, rel=0.1)
    assert SAMPLING_ERROR_OF_KEYS / (1 / np.sqrt(FEWEST_KEYS)) == pytest.approx(7, rel=0.01)
    assert min(random_uniform.params["n"].default + random_normal.params["n"].default) == SMALLEST
    assert min(random_split.params["n"].default) == FEWEST_KEYS


ONE = np.arange(SMALLEST) == 7
WRONG = {
    (random_uniform, SAMPLING_ERROR): {
        "each drawn twice": lambda: uniform().repeat(2)[:SMALLEST],
        "neighbours that repel": lambda: np.stack([uniform()[::2], 1 - uniform()[::2]], axis=1).ravel(),
        "normal": normal,
        "one that is 1": lambda: np.where(ONE, np.float32(1), uniform()),
        "not a number": lambda: np.where(ONE, np.float32(np.nan), uniform()),
        "a bit that is stuck": lambda: ((np.floor(uniform() * 8) // 2 * 2 + uniform(1)) / 8).astype(np.float32),
    },
    (random_normal, SAMPLING_ERROR): {
        "each drawn twice": lambda: normal().repeat(2)[:SMALLEST],
        "too wide": lambda: np.float32(1.02) * normal(),
        "beside zero": lambda: normal() + np.float32(0.1),
        "tails cut off": lambda: np.clip(normal(), -2.5, 2.5),
        "uniform with the right variance": lambda: ((uniform() - 0.5) * np.sqrt(12)).astype(np.float32),
        "one that is infinite": lambda: np.where(ONE, np.float32(np.inf), normal()),
    },
    (random_split, SAMPLING_ERROR_OF_KEYS): {
        "counted up": lambda: np.arange(4 * FEWEST_KEYS, dtype=np.uint32).reshape(-1, 4),
        "a bit that is stuck": lambda: keys() | np.uint32(1 << 9),
        "one twice": lambda: np.concatenate([keys()[:-1], keys()[:1]]),
        "each twice": lambda: keys().repeat(2, axis=0)[:FEWEST_KEYS],
    },
}


@pytest.mark.parametrize(("workload", "error", "wrong"), [(*key, wrong) for key in WRONG for wrong in WRONG[key]])
def test_numbers_that_are_not_so_distributed_or_not_independent_are_caught(workload, error, wrong):
    assert worst(workload, WRONG[workload, error][wrong]()) > error
