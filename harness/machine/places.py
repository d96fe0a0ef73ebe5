"""What tells one backend from another: one row of one table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from harness.machine.data import DATA_VARIABLE


@dataclass(frozen=True)
class Backend:
    """A backend that runs programs.

    Args:
      name: As the command line has it.
      platforms: JAX's names (`JAX_PLATFORMS`): first its own, the default; then the host's processor, since data and
        functions may be placed there too.
      jax_backend: What `jax.default_backend()` then says.
      looked_for: The devices in words, for the error when there are none.
      extra: The requirement that brings it.
      trace_plane: How the planes of its devices are called in a profiler capture; None where there are none.
      peak_counts_temporaries: Whether `peak_memory_in_bytes` of a compiled program holds its temporaries.
      product_dtype: What a float32 product at default precision is computed in (the tolerance follows).
    """

    name: str
    platforms: str
    jax_backend: str
    looked_for: str
    extra: str
    trace_plane: str | None
    peak_counts_temporaries: bool
    product_dtype: str


BACKENDS = {
    backend.name: backend
    for backend in (
        Backend("cpu", "cpu", "cpu", "this machine's processor", "jaxmeter", None, False, "float32"),
        Backend(
            "gpu",
            "cuda,cpu",
            "gpu",
            "an NVIDIA GPU with its driver (JAX platform 'cuda')",
            "jaxmeter[gpu]",
            "/device:GPU",
            True,
            "tensorfloat32",
        ),
        Backend(
            "tpu",
            "tpu,cpu",
            "tpu",
            "a TPU with libtpu (JAX platform 'tpu')",
            "jaxmeter[tpu]",
            "/device:TPU",
            True,
            "bfloat16",
        ),
    )
}

_THREAD_VARIABLES = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")


_NOT_USED = (
    "JAX_COMPILATION_CACHE_",
    "JAX_DISABLE_JIT",
    "JAX_ENABLE_COMPILATION_CACHE",
    "JAX_PERSISTENT_CACHE_",
    "JAX_RAISE_PERSISTENT_CACHE_ERRORS",
)
"""What is cold, what is cached and what is compiled is for the run to decide, else its words would not be true."""


def unused_variables(inherited: Mapping[str, str]) -> tuple[str, ...]:
    """Names of the variables that steer JAX's compilation and its persistent cache."""
    return tuple(sorted(name for name in inherited if name.startswith(_NOT_USED)))


def process_environment(
    backend: Backend, inherited: Mapping[str, str], *, allowed_cores: int, data: str | None = None
) -> dict[str, str]:
    """The environment variables of every measuring process.

    Thread counts are set where the user has not. Inherited settings of compilation and its cache are left out; so is an
    inherited data folder, since the record must name it.
    """
    own = (*unused_variables(inherited), DATA_VARIABLE)
    variables = {name: value for name, value in inherited.items() if name not in own}
    variables["JAX_PLATFORMS"] = backend.platforms
    if data is not None:
        variables[DATA_VARIABLE] = data
    for name in _THREAD_VARIABLES:
        variables.setdefault(name, str(allowed_cores))
    return variables
