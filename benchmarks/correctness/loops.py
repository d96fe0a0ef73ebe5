"""Scans and counted loops in float32: chaos that only rounding inside moves, states of several arrays, a decoder."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from benchmarks.correctness.program import Program, normal

STEPS = 24
"""Of chaos: rounding reaches a tenth of the result, so that it can still be checked."""


def begin(i: Any) -> Any:
    """Numbers between 0 and 1 from integers, which cannot be moved by a unit in the last place."""
    return 0.1 + i / 100.0


def iterate_once(x: Any, rate: Any = 3.9) -> Any:
    """One step of the logistic map."""
    return rate * x * (1 - x)


def scan_logistic(i: Any) -> Any:
    """The logistic map in a scan without rows."""
    return jax.lax.scan(lambda x, _: (iterate_once(x), None), begin(i), None, length=STEPS)[0]


def loop_logistic(i: Any) -> Any:
    """The logistic map in a counted loop."""
    return jax.lax.fori_loop(0, STEPS, lambda _, x: iterate_once(x), begin(i))


def scan_logistic_with_rows(i: Any) -> Any:
    """The logistic map backwards over its rates, all values stacked."""
    rates = jnp.linspace(3.7, 3.9, STEPS)
    return jax.lax.scan(lambda x, rate: (iterate_once(x, rate), x), begin(i), rates, reverse=True)


def nest_logistic(i: Any) -> Any:
    """The logistic map in a scan inside a counted loop, jitted."""

    @jax.jit
    def eight(x: Any) -> Any:
        return jax.lax.scan(lambda x, _: (iterate_once(x), None), x, None, length=8)[0]

    return jax.lax.fori_loop(0, STEPS // 8, lambda _, x: eight(x), begin(i))


def loop_logistic_while(i: Any) -> Any:
    """The logistic map in a loop that looks at its state."""
    return jax.lax.while_loop(
        lambda state: state[0] < STEPS, lambda state: (state[0] + 1, iterate_once(state[1])), (0, begin(i))
    )[1]


def branch_logistic(i: Any) -> Any:
    """The logistic map with another form in every second step."""

    def step(x: Any, number: Any) -> Any:
        return jax.lax.cond(number % 2 == 0, iterate_once, lambda x: 3.9 * (x - x * x), x), None

    return jax.lax.scan(step, begin(i), jnp.arange(STEPS))[0]


def recompute_logistic(i: Any) -> Any:
    """The gradient through a scan that is recomputed."""
    return jax.vmap(jax.grad(jax.checkpoint(lambda x: jax.lax.scan(_step, x, None, length=8)[0])))(begin(i))


def _step(x: Any, _: Any) -> Any:
    return iterate_once(x), None


@jax.custom_jvp
def _iterate_all(x: Any) -> Any:
    return jax.lax.scan(_step, x, None, length=STEPS)[0]


_iterate_all.defjvp(lambda primals, tangents: (_iterate_all(*primals), *tangents))


def iterate_with_own_derivative(i: Any) -> Any:
    """The logistic map in a function with its own derivative."""
    return _iterate_all(begin(i))


def run_lstm(x: Any, w: Any) -> Any:
    """A long short-term memory: two carried arrays, one captured, rows in and out."""

    def step(state: Any, row: Any) -> Any:
        h, c = state
        gates = jnp.concatenate([row, h]) @ w / 8
        i, f, g, o = jnp.split(gates, 4)
        c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
        h = jax.nn.sigmoid(o) * jnp.tanh(c)
        return (h, c), h

    return jax.lax.scan(step, (jnp.zeros(16), jnp.zeros(16)), x)


def differentiate_lstm(x: Any, w: Any) -> Any:
    """The gradient through that scan."""
    return jax.grad(lambda w: (run_lstm(x, w)[1] ** 2).mean())(w)


def descend(w: Any, x: Any) -> Any:
    """Gradient descent with momentum in a scan."""

    def step(state: Any, _: Any) -> Any:
        w, momentum = state
        loss, gradient = jax.value_and_grad(lambda w: jnp.mean((jnp.tanh(x @ w) - 0.5) ** 2))(w)
        momentum = 0.9 * momentum + gradient
        return (w - 0.1 * momentum, momentum), loss

    return jax.lax.scan(step, (w, jnp.zeros_like(w)), None, length=30)


def decode(prompt: Any, keys: Any) -> Any:
    """A decoder that writes into a cache at each position."""
    keys = jnp.asarray(keys)

    def step(position: Any, state: Any) -> Any:
        cache, query = state
        scores = jnp.where(jnp.arange(cache.shape[0]) <= position, cache @ query, -1e9)
        query = jnp.tanh(jax.nn.softmax(scores) @ cache + keys[position])
        return cache.at[position].set(query), query

    return jax.lax.fori_loop(0, keys.shape[0], step, (jnp.zeros_like(keys), prompt))


def make_integers(key: Any) -> tuple[Any, ...]:
    """The integers of `begin`."""
    return (jnp.arange(64),)


PROGRAMS = (
    Program("logistic map from integers, scan", scan_logistic, make_integers),
    Program("logistic map from integers, fori_loop", loop_logistic, make_integers),
    Program("logistic map over rows, backwards", scan_logistic_with_rows, make_integers),
    Program("logistic map, nested loops", nest_logistic, make_integers),
    Program("logistic map, while_loop", loop_logistic_while, make_integers),
    Program("logistic map, branches", branch_logistic, make_integers),
    Program("logistic map, recomputed", recompute_logistic, make_integers),
    Program("logistic map, own derivative", iterate_with_own_derivative, make_integers),
    Program("LSTM", run_lstm, normal((40, 16), (32, 64))),
    Program("gradient of an LSTM", differentiate_lstm, normal((40, 16), (32, 64))),
    Program("descent in a scan", descend, normal((8,), (64, 8))),
    Program("decoder with a cache", decode, normal((16,), (32, 16))),
)
