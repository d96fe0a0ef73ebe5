"""The locks: uv.lock holds every version once; what becomes an image or an environment is exported from it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from jaxmeter.launch.host import GB, MB

LOCK_FOLDER = Path("docker/locks")


@dataclass(frozen=True)
class Lock:
    """A lock that becomes an image, and the cost of installing it.

    Args:
      name: Its file is docker/locks/<name>.txt, its image jaxmeter:<name>-<hash>.
      extras: Extras of pyproject.toml, in addition to `all`, as arguments of `uv export`.
      download_bytes: Size of its wheels, for Linux on x86-64 and the image's Python (a cold build fetches these).
      image_bytes: Size of the finished image, with its base.
      disk_bytes: Disk space of a cold build: wheels, the environment twice (build stage and image), and a reserve.
      oldest_driver: Major version of NVIDIA's driver that its CUDA needs; None without CUDA.
    Source: image sizes measured with docker, which the session `container` checks to within 10 % (gpu-cuda12, cpu-torch
      and stores: built once). Downloads are counted from the wheels. Drivers are from JAX's installation page.
    """

    name: str
    extras: tuple[str, ...]
    download_bytes: int
    image_bytes: int
    disk_bytes: int
    oldest_driver: int | None = None


LOCKS = {
    lock.name: lock
    for lock in (
        Lock("cpu", (), 290 * MB, 1270 * MB, 3 * GB),
        # For peers in PyTorch. What PyPI has of it for Linux holds CUDA's libraries too.
        Lock("cpu-torch", ("--extra", "torch"), 3290 * MB, 6840 * MB, 18 * GB),
        Lock("gpu", ("--extra", "gpu"), 2780 * MB, 5320 * MB, 15 * GB, oldest_driver=580),
        Lock("gpu-cuda12", ("--extra", "gpu-cuda12"), 3510 * MB, 6470 * MB, 18 * GB, oldest_driver=525),
        Lock("tpu", ("--extra", "tpu"), 500 * MB, 1940 * MB, 5 * GB),
        Lock("stores", ("--extra", "s3", "--extra", "gcs"), 300 * MB, 1290 * MB, 3 * GB),
    )
}

SMALLEST_LOCK = "cpu"
"""What is meant where no lock is named. A report needs no more."""


STORES_LOCK = "stores"
"""That of the report, with what reads and writes buckets."""


def choose_lock(arguments: Sequence[str]) -> str:
    """The lock that a command of the report needs."""
    return STORES_LOCK if any("://" in word for word in arguments) else SMALLEST_LOCK


def locate_lock(name: str) -> str:
    """Where the file of a lock is, from the root of a checkout."""
    return (LOCK_FOLDER / f"{name}.txt").as_posix()
