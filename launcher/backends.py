"""What tells one backend from another to a container engine: one row of one table."""

from __future__ import annotations

from dataclasses import dataclass

MB = 10**6
GB = 10**9


@dataclass(frozen=True)
class Environment:
    """One lock and the image made from it.

    Args:
      lock: Its file is docker/locks/<lock>.txt, its image jaxmeter:<lock>-<hash>.
      extras: What of pyproject.toml it takes beside the project's own requirements, as `uv export` is told.
      download_bytes: Wheels of the lock, for Linux on x86-64 and the image's Python (a cold build fetches these).
      image_bytes: The finished image, base included.
      disk_bytes: What a cold build needs: wheels, the environment twice (build stage and image), room to spare.
      oldest_driver: Major version of NVIDIA's driver that its CUDA needs; None where there is no CUDA.
    Source: image sizes measured with docker, which the session `container` holds to within a tenth (gpu-cuda12 and
      cpu-torch: built once); downloads counted from the wheels; drivers from JAX's installation page.
    """

    lock: str
    extras: tuple[str, ...]
    download_bytes: int
    image_bytes: int
    disk_bytes: int
    oldest_driver: int | None = None


ENVIRONMENTS = {
    environment.lock: environment
    for environment in (
        Environment("cpu", (), 290 * MB, 1270 * MB, 3 * GB),
        Environment("cpu-torch", ("--extra", "torch"), 3290 * MB, 6840 * MB, 18 * GB),
        Environment("gpu", ("--extra", "gpu"), 2780 * MB, 5320 * MB, 15 * GB, oldest_driver=580),
        Environment("gpu-cuda12", ("--extra", "gpu-cuda12"), 3510 * MB, 6470 * MB, 18 * GB, oldest_driver=525),
        Environment("tpu", ("--extra", "tpu"), 500 * MB, 1940 * MB, 5 * GB),
    )
}

TORCH_LOCK = "cpu-torch"
"""The CPU's environment with PyTorch for the peers. What PyPI has of it for Linux holds CUDA's libraries too."""

CUDA_LOCKS = {"13": "gpu", "12": "gpu-cuda12"}
DEFAULT_CUDA = "13"


@dataclass(frozen=True)
class Backend:
    """Where a run happens, as the launcher sees it.

    Args:
      name: As the command line has it.
      shared_memory: Size of /dev/shm in its containers; docker's 64 MiB are too small for collectives.
      network: Network of its containers; a TPU's library asks the machine's metadata server for its topology.
    """

    name: str
    shared_memory: str = "1g"
    network: str = "none"


BACKENDS = {
    backend.name: backend
    for backend in (Backend("cpu"), Backend("gpu"), Backend("tpu", shared_memory="100g", network="host"))
}
