"""Numerical programs in float32 and less: extremes, cancellation, chaos, masks, narrow formats, many terms."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from benchmarks.correctness.program import Program, normal


def iterate_logistic(x: Any) -> Any:
    """1,000 steps of the logistic map: chaos."""
    return jax.lax.scan(lambda x, _: (3.9 * x * (1 - x), None), x, None, length=1000)[0]


def iterate_lorenz(state: Any, *, steps: int) -> Any:
    """Lorenz's equations by Euler's method."""

    def step(state: Any, _: Any) -> Any:
        x, y, z = state
        change = jnp.stack([10 * (y - x), x * (28 - z) - y, x * y - 8 / 3 * z])
        return state + 0.01 * change, None

    return jax.lax.scan(step, state, None, length=steps)[0]


def attend(q: Any, k: Any, v: Any, *, hidden: float) -> Any:
    """Causal attention: scores above the diagonal get this value."""
    scores = jnp.einsum("hqd,hkd->hqk", q, k) / q.shape[-1] ** 0.5
    mask = jnp.tril(jnp.ones(scores.shape[-2:], bool))
    return jnp.einsum("hqk,hkd->hqd", jax.nn.softmax(jnp.where(mask, scores, hidden)), v)


def make_masked(key: Any) -> tuple[Any, ...]:
    """Numbers, and a mask of zeros and ones held as floats."""
    a, b = jax.random.split(key)
    return jax.random.normal(a, (64, 8)), jax.random.bernoulli(b, 0.5, (64,)).astype("float32")


def find_masked_mean(x: Any, mask: Any) -> Any:
    """The mean of the rows whose mask is 1."""
    return jnp.where((mask == 1.0)[:, None], jnp.sin(x) * x, 0).sum(0) / mask.sum()


def recur(x: Any, w: Any) -> Any:
    """A recurrent network over 50 steps."""
    return jax.lax.scan(lambda h, row: (jnp.tanh(row + h @ w / 6), h.sum()), jnp.zeros(32), x)


def diffuse(u: Any) -> Any:
    """200 steps of the heat equation, periodic."""
    return jax.lax.fori_loop(0, 200, lambda _, u: u + 0.2 * (jnp.roll(u, 1) - 2 * u + jnp.roll(u, -1)), u)


def find_root(a: Any) -> Any:
    """Newton's method until it stands still or 50 steps are done."""

    def go_on(state: Any) -> Any:
        i, x, before = state
        return (i < 50) & (jnp.abs(x - before).max() > 1e-6)

    def step(state: Any) -> Any:
        i, x, _ = state
        return i + 1, x - (x**3 - a) / (3 * x**2), x

    return jax.lax.while_loop(go_on, step, (0, 1 + jnp.abs(a), jnp.zeros_like(a)))[1]


def move_bodies(positions: Any, velocities: Any) -> Any:
    """100 steps of bodies that attract each other, leapfrog."""

    def accelerate(positions: Any) -> Any:
        apart = positions[None] - positions[:, None]
        return (apart / ((apart**2).sum(-1, keepdims=True) + 0.1) ** 1.5).mean(1)

    def step(state: Any, _: Any) -> Any:
        x, v = state
        v = v + 0.005 * accelerate(x)
        x = x + 0.01 * v
        return (x, v + 0.005 * accelerate(x)), None

    return jax.lax.scan(step, (positions, velocities), None, length=100)[0]


WEIGHTS = jnp.asarray(np.random.default_rng(0).normal(size=(50, 8)), "float32")
"""Captured by a program that gets tokens alone."""


def embed_and_cancel(tokens: Any) -> Any:
    """Numbers from a captured table, of which most digits cancel."""
    rows = WEIGHTS[tokens]
    return (rows + 300.5) ** 2 - rows**2 - 601 * rows - 90300.25 + rows


def multiply_narrow(a: Any, b: Any) -> Any:
    """bfloat16 in, float32 out: the products are exact, the sums in float32."""
    return jnp.matmul(a, b, preferred_element_type=jnp.float32)


def quantise(x: Any) -> Any:
    """A cast to eight bits, correctly rounded."""
    return (x * 448 / jnp.abs(x).max()).astype("float8_e4m3fn").astype("float32")


def sort_by_size(x: Any) -> Any:
    """Sorted values and where they were."""
    return jnp.sort(x), jnp.argsort(x)


NORMAL = normal((64, 64))
PAIR = normal((64, 64), (64, 64))
HEADS = normal((2, 32, 16), (2, 32, 16), (2, 32, 16))

PROGRAMS = (
    Program("logistic map", iterate_logistic, lambda key: (jax.random.uniform(key, (64,)),)),
    Program(
        "Lorenz, 1,000 steps", lambda s: iterate_lorenz(s, steps=1000), lambda key: (jax.random.normal(key, (3,)),)
    ),
    Program(
        "Lorenz, 4,000 steps", lambda s: iterate_lorenz(s, steps=4000), lambda key: (jax.random.normal(key, (3,)),)
    ),
    Program("(1e8 + x) - 1e8", lambda a, x: (a + x) - a, lambda key: (jnp.float32(1e8), jax.random.normal(key, (64,)))),
    Program("(1000.1 + x) - 1000.1", lambda a, x: (a + x) - a, lambda key: (jnp.float32(1000.1), *NORMAL(key))),
    Program("variance by squares", lambda x: ((x + 100.3) ** 2).mean(0) - (x + 100.3).mean(0) ** 2, NORMAL),
    Program("1 - cos", lambda x: 1 - jnp.cos(x * 1e-3), NORMAL),
    Program("numerical derivative", lambda x: (jnp.sin(x + 1e-3) - jnp.sin(x)) / 1e-3, NORMAL),
    Program("softmax, extremes", lambda x: jax.nn.softmax(1e4 * x), NORMAL),
    Program("softmax, all alike", lambda x: jax.nn.softmax(1e-4 * x), NORMAL),
    Program("log-softmax, extremes", lambda x: jax.nn.log_softmax(1e4 * x), NORMAL),
    Program("log-sum-exp, extremes", lambda x: jax.nn.logsumexp(1e4 * x, axis=-1), NORMAL),
    Program("log-sum-exp, near 0", lambda x: jax.nn.logsumexp(x - jnp.log(64.0) - 0.5, axis=-1), NORMAL),
    Program("attention, -inf", lambda q, k, v: attend(q, k, v, hidden=-jnp.inf), HEADS),
    Program("attention, -1e9", lambda q, k, v: attend(q, k, v, hidden=-1e9), HEADS),
    Program("masked mean", find_masked_mean, make_masked),
    Program("matrix product", jnp.matmul, PAIR),
    Program("chain of products", lambda a, b: jnp.tanh(a @ b / 8) @ b.T / 8 @ a, PAIR),
    Program("bfloat16 in, float32 out", multiply_narrow, normal((64, 64), (64, 64), dtype="bfloat16")),
    Program("bfloat16 product", jnp.matmul, normal((64, 64), (64, 64), dtype="bfloat16")),
    Program("float16 product", jnp.matmul, normal((64, 64), (64, 64), dtype="float16")),
    Program("float8 cast", quantise, NORMAL, reference=lambda x: x * 448 / np.abs(x).max()),
    Program("convolution", lambda a, b: jax.scipy.signal.convolve2d(a, b[:5, :5]), PAIR),
    Program("layer norm", lambda x: (x - x.mean(-1, keepdims=True)) / x.std(-1, keepdims=True), NORMAL),
    Program("FFT there and back", lambda x: jnp.fft.irfft(jnp.fft.rfft(x) * 2), NORMAL),
    Program("complex FFT", lambda x: jnp.fft.fft2(x.astype("complex64")), NORMAL),
    Program("cumulative sum", jnp.cumsum, normal((10_000,))),
    Program("cumulative product", lambda x: jnp.cumprod(1 + x / 100), normal((1000,))),
    Program("sum of 1,000,000", jnp.sum, normal((1_000_000,))),
    Program("mean of 1,000,000", lambda x: jnp.mean(x + 3), normal((1_000_000,))),
    Program("difference of means", lambda x: (x + 10.7).mean(0) - (x.T + 10.7).mean(0), NORMAL),
    Program("recurrent network", recur, normal((50, 32), (32, 32))),
    Program("heat equation", diffuse, normal((256,))),
    Program("Newton", find_root, normal((64,))),
    Program("bodies", move_bodies, normal((16, 3), (16, 3))),
    Program("captured table", embed_and_cancel, lambda key: (jax.random.randint(key, (64,), 0, 50),)),
    Program("captured table, jitted", jax.jit(embed_and_cancel), lambda key: (jax.random.randint(key, (64,), 0, 50),)),
    Program("sorted, and where", sort_by_size, normal((500,))),
    Program("error function, small and large", lambda x: jax.scipy.special.erfc(3 * x), NORMAL),
    Program("log gamma", lambda x: jax.scipy.special.gammaln(jnp.abs(x) + 0.5), NORMAL),
    Program("sine of large numbers", lambda x: jnp.sin(x * 1e4), NORMAL),
    Program("power", lambda x: jnp.abs(x) ** 20.5, NORMAL),
    Program("polynomial near a root", lambda x: jnp.polyval(jnp.poly(jnp.ones(5)), 1 + x / 50), NORMAL),
    Program(
        "second derivative", jax.vmap(jax.grad(jax.grad(lambda x: jnp.exp(jnp.sin(x)) / (1 + x**2)))), normal((64,))
    ),
    Program("covariance", lambda x: jnp.cov(x + 50.5, rowvar=False), NORMAL),
    Program("distances by products", lambda x: (x**2).sum(1)[:, None] + (x**2).sum(1) - 2 * x @ x.T, NORMAL),
    Program("whole-number counts", lambda x: jnp.bincount((jnp.abs(x) * 3).astype(int).ravel(), length=20), NORMAL),
)
