"""What `benchmarks.false_passes` measures: calls that get slower outside the compiled program, a workload a kind.

The module `planted` is what a library of the user's would be: it is found on the path, and the copy next to it decides
how much Python work each call has in addition. This file is the same for all versions.
"""

import functools
import os
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import planted

from jaxmeter import no_reference, workload

SAME = no_reference("a version is compared with itself")


def vector(key):
    """A vector, (1000,)."""
    return jax.random.normal(key, (1000,))


@workload(inputs=lambda key: planted.Params(vector(key)), reference=SAME, modes=("jit",))
def pytree(params):
    """The arguments' own flattening takes longer."""
    return jnp.sin(params.value)


@functools.partial(jax.jit, static_argnums=0)
def _raise(power, x):
    return jnp.sin(x) ** power.value


@workload(inputs=lambda key: (vector(key),), reference=SAME, modes=("mixed",))
def static_hash(x):
    """A static argument's hash takes longer."""
    return _raise(planted.SQUARE, x)


@workload(inputs=lambda key: (vector(key),), reference=SAME, modes=("jit",))
def callback(x):
    """A callback's Python code takes longer."""
    return jax.pure_callback(planted.on_host, jax.ShapeDtypeStruct(x.shape, x.dtype), x) + 1


@workload(inputs=lambda key: (vector(key),), reference=SAME, modes=("eager",))
def imported(x):
    """Eager code that a suite imports takes longer."""
    return planted.step(x)


@workload(inputs=lambda key: (vector(key),), reference=SAME, modes=("eager",))
def eager_operations(x):
    """An imported helper does more operations, each dispatched by itself."""
    for _ in range(planted.OPERATIONS):
        x = jnp.sin(x)
    return x


@workload(inputs=lambda key: (vector(key),), reference=SAME, modes=("mixed",))
def recompiled(x):
    """A helper makes new functions in each call, which compile again."""
    for number in range(planted.COMPILED):
        x = jax.jit(functools.partial(planted.scale, number))(x)
    return x


@jax.jit
def _double(x):
    return x * 2


@workload(inputs=lambda key: (vector(key),), reference=SAME, modes=("mixed",))
def copied(x):
    """A helper copies what donation would have reused."""
    for _ in range(planted.COPIES):
        x = jnp.array(x, copy=True)
    return _double(x)


@workload(inputs=lambda key: (vector(key),), reference=SAME, modes=("mixed",))
def checked(x):
    """An environment variable, which no record holds, switches checks on."""
    planted.spin(int(os.environ.get("PLANTED_CHECKS", "0")))
    return _double(x)


@workload(inputs=lambda key: (vector(key),), reference=SAME, modes=("mixed",))
def transferred(x):
    """A helper takes arrays to the host and back."""
    for _ in range(planted.TRANSFERS):
        x = jnp.asarray(np.asarray(x) + 0)
    return _double(x)


@workload(inputs=lambda key: (vector(key),), reference=SAME, modes=("mixed",))
def logged(x):
    """A helper writes more to a log."""
    with Path(os.devnull).open("w", encoding="utf8") as log:
        for number in range(planted.LINES):
            print(number, file=log)
    return _double(x)


@workload(inputs=lambda key: (vector(key),), reference=SAME, modes=("mixed",))
def converted(x):
    """An object's conversion to an array takes longer."""
    return _double(jnp.asarray(planted.Lazy(x)))


def _peer(x):
    planted.spin(planted.SPINS)
    return x * 2


@workload(inputs=lambda key: (vector(key),), reference=SAME, modes=("jit",), peers={"numpy": _peer})
def with_peer(x):
    """Another library's code takes longer; JAX's does not."""
    return x * 2


@workload(
    inputs=lambda key, *, number: (vector(key),),
    params={"number": (1, 2, 3, 4, 5, 6)},
    reference=SAME,
    modes=("eager", "jit"),
)
def unchanged(x, *, number):
    """Nothing takes longer."""
    return jnp.cos(x) * number
