"""Linear algebra by LAPACK, of well and of badly conditioned matrices."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import jax.scipy as jsp

from benchmarks.correctness.program import Program, normal

N = 64


def make_positive(key: Any) -> tuple[Any, ...]:
    """A positive definite matrix and a right-hand side."""
    a, b = normal((N, N), (N, 3))(key)
    return a @ a.T / N + 0.1 * jnp.eye(N), b


def make_symmetric(key: Any) -> tuple[Any, ...]:
    """A symmetric matrix."""
    (a,) = normal((N, N))(key)
    return ((a + a.T) / 2,)


def make_hilbert(key: Any) -> tuple[Any, ...]:
    """Hilbert's matrix of six rows, condition number 1.5e7, and a right-hand side."""
    i = jnp.arange(1.0, 7.0)
    return 1 / (i[:, None] + i[None, :] - 1), jax.random.normal(key, (6,))


def make_graded(key: Any) -> tuple[Any, ...]:
    """A matrix of condition number about 1e4, and a right-hand side."""
    a, b = normal((N, N), (N,))(key)
    u, _, v = jnp.linalg.svd(a)
    return u @ jnp.diag(jnp.logspace(0, -4, N)) @ v, b


def project(a: Any) -> Any:
    """The projection on the eigenvectors of the larger half of the eigenvalues: no sign is free in it."""
    _, vectors = jnp.linalg.eigh(a)
    upper = vectors[:, N // 2 :]
    return upper @ upper.T


def truncate(a: Any) -> Any:
    """The best approximation of rank 8."""
    u, s, v = jnp.linalg.svd(a, full_matrices=False)
    return (u[:, :8] * s[:8]) @ v[:8]


def solve_by_lu(a: Any, b: Any) -> Any:
    """A solution by LU factors that are kept."""
    return jsp.linalg.lu_solve(jsp.linalg.lu_factor(a), b)


def solve_by_cholesky(a: Any, b: Any) -> Any:
    """A solution by Cholesky factors."""
    return jsp.linalg.cho_solve(jsp.linalg.cho_factor(a), b)


def sum_eigenvalues(a: Any) -> Any:
    """The sorted sizes of a general matrix's eigenvalues."""
    return jnp.sort(jnp.abs(jnp.linalg.eigvals(a)))


SQUARE = normal((N, N))
SYSTEM = normal((N, N), (N, 3))

PROGRAMS = (
    Program("inverse 256", jnp.linalg.inv, normal((256, 256))),
    Program("inverse", jnp.linalg.inv, SQUARE),
    Program("inverse, graded", lambda a, b: jnp.linalg.inv(a), make_graded),
    Program("solve", jnp.linalg.solve, SYSTEM),
    Program("solve, graded", jnp.linalg.solve, make_graded),
    Program("solve, Hilbert", jnp.linalg.solve, make_hilbert),
    Program("solve by LU", solve_by_lu, SYSTEM),
    Program("solve by Cholesky", solve_by_cholesky, make_positive),
    Program("Cholesky", lambda a, b: jnp.linalg.cholesky(a), make_positive),
    Program("QR, R", lambda a: jnp.linalg.qr(a)[1], SQUARE),
    Program("QR", lambda a: tuple(jnp.linalg.qr(a)), SQUARE),
    Program("singular values", lambda a: jnp.linalg.svd(a, compute_uv=False), SQUARE),
    Program("rank 8 by SVD", truncate, SQUARE),
    Program("eigenvalues, symmetric", jnp.linalg.eigvalsh, make_symmetric),
    Program("projection by eigenvectors", project, make_symmetric),
    Program("eigenvalues", sum_eigenvalues, SQUARE),
    Program("determinant", jnp.linalg.det, normal((16, 16))),
    Program("log determinant", lambda a: jnp.linalg.slogdet(a)[1], SQUARE),
    Program("least squares", lambda a, b: jnp.linalg.lstsq(a, b)[0], normal((N, 8), (N,))),
    Program("pseudo-inverse", jnp.linalg.pinv, normal((N, 16))),
    Program("matrix exponential", lambda a: jsp.linalg.expm(a / 4), normal((16, 16))),
    Program("matrix power", lambda a: jnp.linalg.matrix_power(a / 8, 5), SQUARE),
    Program("inverse, float64", jnp.linalg.inv, normal((N, N), dtype="float64"), x64=True),
    Program("gradient of log determinant", jax.grad(lambda a: jnp.linalg.slogdet(a)[1]), SQUARE),
)
