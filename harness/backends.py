"""What tells one backend from another: one row of one table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from harness.data import DATA_VARIABLE


@dataclass(frozen=True)
class Backend:
    """A backend that runs programs.

    Args:
      name: As the command line has it.
      platform: JAX's name for it (`JAX_PLATFORMS`).
      jax_backend: What `jax.default_backend()` then says.
      looked_for: The devices in words, for the error when there are none.
      extra: The requirement that brings it.
      trace_plane: How the planes of its devices are called in a profiler capture; None where there are none.
      product_dtype: What a float32 product at default precision is computed in (the tolerance follows).
    """

    name: str
    platform: str
    jax_backend: str
    looked_for: str
    extra: str
    trace_plane: str | None
    product_dtype: str


BACKENDS = {
    backend.name: backend
    for backend in (
        Backend("cpu", "cpu", "cpu", "this machine's processor", "jaxmeter", None, "float32"),
        Backend(
            "gpu",
            "cuda",
            "gpu",
            "an NVIDIA GPU with its driver (JAX platform 'cuda')",
            "jaxmeter[gpu]",
            "/device:GPU",
            "tensorfloat32",
        ),
        Backend(
            "tpu",
            "tpu",
            "tpu",
            "a TPU with libtpu (JAX platform 'tpu')",
            "jaxmeter[tpu]",
            "/device:TPU",
            "bfloat16",
        ),
    )
}

_THREAD_VARIABLES = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")


def process_environment(
    backend: Backend, inherited: Mapping[str, str], *, allowed_cores: int, data: str | None = None
) -> dict[str, str]:
    """The environment variables of every measuring process.

    Thread counts are set where the user has not. An inherited compilation cache is left out: what is cold and
    what is cached is the harness's to decide. So is an inherited data folder, since the record must name it.
    """
    own = ("JAX_COMPILATION_CACHE_DIR", DATA_VARIABLE)
    variables = {name: value for name, value in inherited.items() if name not in own}
    variables["JAX_PLATFORMS"] = backend.platform
    if data is not None:
        variables[DATA_VARIABLE] = data
    for name in _THREAD_VARIABLES:
        variables.setdefault(name, str(allowed_cores))
    return variables
