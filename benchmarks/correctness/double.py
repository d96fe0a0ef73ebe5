"""Programs in float64, of kinds that peers publish benchmarks of: ocean models, and objectives with their gradients."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from benchmarks.correctness.program import Program, normal


def make_water(key: Any) -> tuple[Any, ...]:
    """Salinity, temperature and pressure of sea water."""
    salt, heat, deep = jax.random.uniform(key, (3, 1000), "float64")
    return 30 + 8 * salt, 30 * heat - 1, 5000 * deep


def find_density(salt: Any, heat: Any, pressure: Any) -> Any:
    """Density anomaly by a rational equation of state: the density less 1000, of which three digits cancel."""
    square = heat * heat
    above = 999.84 + heat * (7.35 - 0.0523 * heat + 4.0e-4 * square) + salt * (2.62 - 7.2e-3 * heat + 2.0e-3 * salt)
    below = 1 + heat * (7.29e-3 - 3.7e-5 * heat + 1.0e-9 * square**1.5) + salt * (1.9e-3 - 9e-6 * heat)
    above = above + pressure * (1.04e-2 + 1.03e-7 * square + 5.2e-6 * salt)
    return above / (below + pressure * (5.3e-6 - 1.5e-17 * pressure * heat**3)) - 1000


def expand(salt: Any, heat: Any, pressure: Any) -> Any:
    """Thermal expansion: a difference of two densities that are almost alike."""
    return (find_density(salt, heat + 1e-3, pressure) - find_density(salt, heat, pressure)) / 1e-3


def make_column(key: Any) -> tuple[Any, ...]:
    """Diagonals of a tridiagonal system, and its right-hand side."""
    lower, upper, right = jax.random.normal(key, (3, 50), "float64")
    return lower, 3 + lower**2, upper, right


def solve_column(lower: Any, middle: Any, upper: Any, right: Any) -> Any:
    """Thomas' algorithm by two scans."""

    def down(state: Any, row: Any) -> Any:
        c, d = state
        a, b, e, f = row
        w = b - a * c
        return (e / w, (f - a * d) / w), (e / w, (f - a * d) / w)

    zero = jnp.zeros((), right.dtype)
    _, (c, d) = jax.lax.scan(down, (zero, zero), (lower, middle, upper, right))
    return jax.lax.scan(lambda x, row: (row[1] - row[0] * x, row[1] - row[0] * x), zero, (c, d), reverse=True)[1]


def make_mixture(key: Any) -> tuple[Any, ...]:
    """Weights, means and points of a mixture."""
    return normal((5,), (5, 3), (200, 3), dtype="float64")(key)


def find_likelihood(weights: Any, means: Any, points: Any) -> Any:
    """The log likelihood of a mixture of normal distributions, and its gradients."""

    def objective(weights: Any, means: Any) -> Any:
        square = ((points[:, None] - means) ** 2).sum(-1)
        return jax.nn.logsumexp(jax.nn.log_softmax(weights) - square / 2, axis=1).sum()

    return jax.value_and_grad(objective, (0, 1))(weights, means)


def run_lstm(x: Any, w: Any, u: Any) -> Any:
    """A recurrent network with gates."""

    def step(state: Any, row: Any) -> Any:
        h, c = state
        i, f, o, g = jnp.split(row @ w + h @ u, 4)
        c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
        return (jax.nn.sigmoid(o) * jnp.tanh(c), c), c.sum()

    zeros = jnp.zeros(u.shape[0], x.dtype)
    return jax.lax.scan(step, (zeros, zeros), x)


def project_points(camera: Any, points: Any) -> Any:
    """Points seen by a camera that is turned (Rodrigues' formula), with its Jacobian."""

    def see(camera: Any) -> Any:
        angle = jnp.sqrt((camera[:3] ** 2).sum())
        axis = camera[:3] / angle
        turned = points * jnp.cos(angle) + jnp.cross(axis, points) * jnp.sin(angle)
        turned = turned + axis * (points @ axis)[:, None] * (1 - jnp.cos(angle)) + camera[3:]
        return turned[:, :2] / (turned[:, 2:] + 10)

    return see(camera), jax.jacfwd(see)(camera)


def cluster(points: Any) -> Any:
    """Ten steps of k-means."""

    def step(_: Any, centres: Any) -> Any:
        nearest = ((points[:, None] - centres) ** 2).sum(-1).argmin(1)
        chosen = jax.nn.one_hot(nearest, len(centres), dtype=points.dtype)
        return (chosen.T @ points) / jnp.maximum(chosen.sum(0)[:, None], 1)

    return jax.lax.fori_loop(0, 10, step, points[:4])


def evolve(u: Any) -> Any:
    """Shallow waves: 100 steps of a leapfrog in one dimension."""

    def step(state: Any, _: Any) -> Any:
        now, before = state
        return (2 * now - before + 0.2 * (jnp.roll(now, 1) - 2 * now + jnp.roll(now, -1)), now), None

    return jax.lax.scan(step, (u, u), None, length=100)[0][0]


PROGRAMS = (
    Program("equation of state", find_density, make_water, x64=True),
    Program("thermal expansion", expand, make_water, x64=True),
    Program("tridiagonal", solve_column, make_column, x64=True),
    Program("mixture with gradients", find_likelihood, make_mixture, x64=True),
    Program("LSTM", run_lstm, normal((30, 8), (8, 64), (16, 64), dtype="float64"), x64=True),
    Program("bundle adjustment", project_points, normal((6,), (50, 3), dtype="float64"), x64=True),
    Program("k-means", cluster, normal((200, 3), dtype="float64"), x64=True),
    Program("waves", evolve, normal((128,), dtype="float64"), x64=True),
    Program(
        "Hessian",
        jax.hessian(lambda x: jnp.log1p((x**2).sum()) * jnp.sin(x).sum()),
        normal((20,), dtype="float64"),
        x64=True,
    ),
    Program(
        "sum of exponentials",
        lambda x: jnp.exp(10 * x).sum() / jnp.exp(10 * x).max(),
        normal((1000,), dtype="float64"),
        x64=True,
    ),
)
