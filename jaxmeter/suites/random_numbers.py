"""Random numbers: JAX's generators, which any core can run from any place, against NumPy's, which run in sequence."""

from statistics import NormalDist

import jax
import numpy as np

from jaxmeter import Answer, Caching, Cost, itemsize, levels, workload

BINS = 10
"""Equally likely ranges in which the numbers are counted."""

SAMPLING_ERROR = 0.016
"""Every statistic is compared relative to its expected value. With n numbers, the share of a range of probability
1/10 has the largest standard error, sqrt((1 - 1/10) / (n / 10)) = 0.30 % at the smallest n, 1 000 000; the neighbours'
correlation has 0.10 %, the mean of fourth powers of normal numbers sqrt(96 / n) / 3 = 0.33 %. So a right generator
stays within five standard errors, and the seed is fixed: what passes once, passes always."""

SAMPLING_ERROR_OF_KEYS = 0.022
"""A bit's share of ones has the standard error 1 / sqrt(n), relative to 1/2: 0.32 % at the smallest n, 100 000. The
worst of 128 bits is beyond three of them in three cases of ten, and beyond seven in none."""


def words(key):
    """What a generator starts from: four random words, shape (4,) uint32."""
    return jax.random.bits(key, (4,), "uint32")


def key_of(words, generator):
    """A key of one of JAX's generators; Threefry's has two words, RBG's four."""
    return jax.random.wrap_key_data(words[:2] if generator == "threefry2x32" else words, impl=generator)


def statistics_of(numbers, edges):
    """What is known of random numbers, (n,) -> means of powers, shares by range, correlation of neighbours."""
    numbers = numbers.astype(np.float64)
    ranges = np.bincount(np.searchsorted(edges, numbers, side="right"), minlength=BINS)
    with np.errstate(invalid="ignore", divide="ignore"):  # equal or infinite numbers: not a number, which is an error
        centred = numbers - numbers.mean()
        return {
            "mean": numbers.mean(),
            "squares": (numbers**2).mean(),
            "fourth_powers": (numbers**4).mean(),
            "shares": ranges / numbers.size,
            "neighbours": (centred[1:] * centred[:-1]).mean() / (centred**2).mean(),
        }


def expected(mean, squares, fourth_powers):
    """The same of independent numbers of a distribution whose ranges are equally likely."""
    return {
        "mean": np.float64(mean),
        "squares": np.float64(squares),
        "fourth_powers": np.float64(fourth_powers),
        "shares": np.full(BINS, 1 / BINS),
        "neighbours": np.float64(0),
    }


def uniform_statistics(numbers):
    """Statistics of numbers that should be uniform, and whether all are from 0 to below 1."""
    edges = np.arange(1, BINS) / BINS
    return statistics_of(numbers, edges) | {"inside": np.bool_(numbers.min() >= 0 and numbers.max() < 1)}


def uniform_expected(words):
    """Moments of the uniform distribution: the mean of x**k is 1 / (k + 1)."""
    return expected(1 / 2, 1 / 3, 1 / 5) | {"inside": np.bool_(True)}


def normal_statistics(numbers):
    """Statistics of numbers that should be standard normal."""
    edges = np.array([NormalDist().inv_cdf(place / BINS) for place in range(1, BINS)])
    return statistics_of(numbers, edges)


def normal_expected(words):
    """Moments of the standard normal distribution."""
    return expected(0, 1, 3)


def key_statistics(keys):
    """Of keys (n, words): the rarest and the commonest bit, how many bits neighbours share, whether all differ."""
    bits = np.unpackbits(np.ascontiguousarray(keys).view(np.uint8), axis=1)
    shares = bits.mean(axis=0)
    return {
        "ones": np.array([shares.min(), shares.max()]),
        "shared": (bits[1:] == bits[:-1]).mean(),
        "different": np.bool_(len(np.unique(keys, axis=0)) == len(keys)),
    }


def keys_expected(words):
    """The same of independent random words."""
    return {"ones": np.full(2, 1 / 2), "shared": np.float64(1 / 2), "different": np.bool_(True)}


def drawn(*, n):
    """The numbers are written once. Operations are not declared: each generator has its own."""
    return Cost(bytes=n * itemsize("float32"))


def uniform_pcg64(words, *, n):
    """`numpy.random.Generator(PCG64)`, NumPy's default, (4,) -> (n,)."""
    return np.random.Generator(np.random.PCG64(words)).random(n, np.float32)


def uniform_philox(words, *, n):
    """`numpy.random.Generator(Philox)`, counter-based as JAX's are, (4,) -> (n,)."""
    return np.random.Generator(np.random.Philox(words)).random(n, np.float32)


def normal_pcg64(words, *, n):
    """`numpy.random.Generator(PCG64)` with the ziggurat method, (4,) -> (n,)."""
    return np.random.Generator(np.random.PCG64(words)).standard_normal(n, np.float32)


def normal_philox(words, *, n):
    """`numpy.random.Generator(Philox)` with the ziggurat method, (4,) -> (n,)."""
    return np.random.Generator(np.random.Philox(words)).standard_normal(n, np.float32)


LENGTHS = levels(default=1_000_000, full=10_000_000, by_device={"gpu": 100_000_000, "tpu": 100_000_000})


@workload(
    inputs=words,
    params={"n": LENGTHS},
    reference=uniform_expected,
    compare=uniform_statistics,
    tolerance=SAMPLING_ERROR,
    cost=drawn,
    peers={"numpy_pcg64": uniform_pcg64, "numpy_philox": uniform_philox},
    modes=("jit",),
    implementation="threefry2x32",
    compiles=1,
    caching=Caching(new_static=lambda *, n: {"n": n + 1}),
    level="full",
)
def random_uniform(words, *, n):
    """Uniform numbers from 0 to below 1 by JAX's default generator, (4,) -> (n,).

    Source: Salmon et al., Parallel Random Numbers: As Easy as 1, 2, 3, 2011.
    """
    return jax.random.uniform(key_of(words, "threefry2x32"), (n,))


@random_uniform.implementation(name="rbg")
def uniform_rbg(words, *, n):
    """By XLA's own generator, whose numbers differ between backends, (4,) -> (n,)."""
    return jax.random.uniform(key_of(words, "rbg"), (n,))


@workload(
    inputs=words,
    params={"n": LENGTHS},
    reference=normal_expected,
    compare=normal_statistics,
    tolerance=SAMPLING_ERROR,
    cost=drawn,
    peers={"numpy_pcg64": normal_pcg64, "numpy_philox": normal_philox},
    modes=("jit",),
    implementation="threefry2x32",
    compiles=1,
    caching=Caching(new_static=lambda *, n: {"n": n + 1}),
    level="default",
    answer=Answer(
        "What do random numbers cost?",
        "threefry2x32:jit",
        against="numpy_pcg64:native",
    ),
)
def random_normal(words, *, n):
    """Standard normal numbers by JAX's default generator and the inverse error function, (4,) -> (n,).

    Source: Salmon et al., Parallel Random Numbers: As Easy as 1, 2, 3, 2011.
    """
    return jax.random.normal(key_of(words, "threefry2x32"), (n,))


@random_normal.implementation(name="rbg")
def normal_rbg(words, *, n):
    """By XLA's own generator and the inverse error function, (4,) -> (n,)."""
    return jax.random.normal(key_of(words, "rbg"), (n,))


@workload(
    inputs=words,
    params={"n": levels(default=100_000, full=1_000_000, by_device={"gpu": 10_000_000, "tpu": 10_000_000})},
    reference=keys_expected,
    compare=key_statistics,
    tolerance=SAMPLING_ERROR_OF_KEYS,
    modes=("jit",),
    implementation="threefry2x32",
    compiles=1,
    caching=Caching(new_static=lambda *, n: {"n": n + 1}),
    level="full",
)
def random_split(words, *, n):
    """A key split into n, by JAX's default generator, (4,) -> (n, 2).

    No cost is declared: RBG's keys are twice as long, so that the implementations write different numbers of bytes.

    Source: Salmon et al. 2011; JAX's documentation, "JAX PRNG Design".
    """
    return jax.random.key_data(jax.random.split(key_of(words, "threefry2x32"), n))


@random_split.implementation(name="rbg")
def split_rbg(words, *, n):
    """RBG's keys of four words, split by Threefry, (4,) -> (n, 4): twice as many bytes."""
    return jax.random.key_data(jax.random.split(key_of(words, "rbg"), n))


@random_split.implementation(name="unsafe_rbg")
def split_unsafe_rbg(words, *, n):
    """The same keys, split by XLA's own generator: of no known quality, (4,) -> (n, 4). Drawing is as with RBG."""
    return jax.random.key_data(jax.random.split(key_of(words, "unsafe_rbg"), n))
