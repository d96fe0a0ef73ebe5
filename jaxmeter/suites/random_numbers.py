"""Random numbers: JAX's generators, which can start at any position, compared with NumPy's sequential ones."""

from statistics import NormalDist

import jax
import numpy as np

from jaxmeter import Answer, Caching, Cost, itemsize, levels, workload

BINS = 10
"""Number of equally likely ranges for the counts of random numbers."""

SAMPLING_ERROR = 0.016
"""Every statistic is compared relative to its expected value. Standard errors at the smallest n, 1 000 000:
- share of a range of probability 1/10: sqrt((1 - 1/10) / (n / 10)) = 0.30 %
- correlation of neighbours: 0.10 %
- mean of fourth powers of normal numbers: sqrt(96 / n) / 3 = 0.33 %

A correct generator stays within five standard errors. The seed is fixed, so a check that passes once always passes."""

SAMPLING_ERROR_OF_KEYS = 0.022
"""The share of ones in a bit has the standard error 1 / sqrt(n), relative to 1/2: 0.32 % at the smallest n, 100 000.
The worst of 128 bits exceeds three standard errors in three cases of ten, and seven in none."""


def words(key):
    """Return the seed of a generator: four random words, shape (4,) uint32."""
    return jax.random.bits(key, (4,), "uint32")


def key_of(words, generator):
    """Return a key of one of JAX's generators: two words for Threefry, four for RBG."""
    return jax.random.wrap_key_data(words[:2] if generator == "threefry2x32" else words, impl=generator)


def statistics_of(numbers, edges):
    """Return statistics of random numbers, (n,) -> means of powers, shares by range, correlation of neighbours."""
    numbers = numbers.astype(np.float64)
    ranges = np.bincount(np.searchsorted(edges, numbers, side="right"), minlength=BINS)
    with np.errstate(invalid="ignore", divide="ignore"):  # equal or infinite numbers give NaN, which fails the check
        centred = numbers - numbers.mean()
        return {
            "mean": numbers.mean(),
            "squares": (numbers**2).mean(),
            "fourth_powers": (numbers**4).mean(),
            "shares": ranges / numbers.size,
            "neighbours": (centred[1:] * centred[:-1]).mean() / (centred**2).mean(),
        }


def expected(mean, squares, fourth_powers):
    """Return the expected statistics of independent numbers from a distribution with equally likely ranges."""
    return {
        "mean": np.float64(mean),
        "squares": np.float64(squares),
        "fourth_powers": np.float64(fourth_powers),
        "shares": np.full(BINS, 1 / BINS),
        "neighbours": np.float64(0),
    }


def uniform_statistics(numbers):
    """Return the statistics of numbers that should be uniform, and whether all are in [0, 1)."""
    edges = np.arange(1, BINS) / BINS
    return statistics_of(numbers, edges) | {"inside": np.bool_(numbers.min() >= 0 and numbers.max() < 1)}


def uniform_expected(words):
    """Return the expected statistics of the uniform distribution: the mean of x**k is 1 / (k + 1)."""
    return expected(1 / 2, 1 / 3, 1 / 5) | {"inside": np.bool_(True)}


def normal_statistics(numbers):
    """Return the statistics of numbers that should be standard normal."""
    edges = np.array([NormalDist().inv_cdf(place / BINS) for place in range(1, BINS)])
    return statistics_of(numbers, edges)


def normal_expected(words):
    """Return the expected statistics of the standard normal distribution."""
    return expected(0, 1, 3)


def key_statistics(keys):
    """Return statistics of keys (n, words): extreme shares of ones, bits that neighbours share, whether all differ."""
    bits = np.unpackbits(np.ascontiguousarray(keys).view(np.uint8), axis=1)
    shares = bits.mean(axis=0)
    return {
        "ones": np.array([shares.min(), shares.max()]),
        "shared": (bits[1:] == bits[:-1]).mean(),
        "different": np.bool_(len(np.unique(keys, axis=0)) == len(keys)),
    }


def keys_expected(words):
    """Return the expected statistics of independent random words."""
    return {"ones": np.full(2, 1 / 2), "shared": np.float64(1 / 2), "different": np.bool_(True)}


def drawn(*, n):
    """Return the bytes, which are written once; operations depend on the generator and are not declared."""
    return Cost(bytes=n * itemsize("float32"))


def uniform_pcg64(words, *, n):
    """`numpy.random.Generator(PCG64)`, NumPy's default, (4,) -> (n,)."""
    return np.random.Generator(np.random.PCG64(words)).random(n, np.float32)


def uniform_philox(words, *, n):
    """`numpy.random.Generator(Philox)`, counter-based like JAX's generators, (4,) -> (n,)."""
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
    """Uniform numbers in [0, 1) by JAX's default generator, (4,) -> (n,).

    Source: Salmon et al., Parallel Random Numbers: As Easy as 1, 2, 3, 2011.
    """
    return jax.random.uniform(key_of(words, "threefry2x32"), (n,))


@random_uniform.implementation(name="rbg")
def uniform_rbg(words, *, n):
    """Uniform numbers by XLA's own generator, whose numbers differ between backends, (4,) -> (n,)."""
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
    """Normal numbers by XLA's own generator and the inverse error function, (4,) -> (n,)."""
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

    No cost is declared: RBG's keys are twice as long, so implementations write different numbers of bytes.

    Source: Salmon et al. 2011; JAX's documentation, "JAX PRNG Design".
    """
    return jax.random.key_data(jax.random.split(key_of(words, "threefry2x32"), n))


@random_split.implementation(name="rbg")
def split_rbg(words, *, n):
    """RBG's keys of four words, split by Threefry, (4,) -> (n, 4): twice as many bytes."""
    return jax.random.key_data(jax.random.split(key_of(words, "rbg"), n))


@random_split.implementation(name="unsafe_rbg")
def split_unsafe_rbg(words, *, n):
    """RBG's keys, split by XLA's own generator, (4,) -> (n, 4): quality unknown; numbers are drawn as with RBG."""
    return jax.random.key_data(jax.random.split(key_of(words, "unsafe_rbg"), n))
