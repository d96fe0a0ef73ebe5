"""Where a run was made: what a reader needs to know before comparing two numbers."""

from __future__ import annotations

import msgspec


class Environment(msgspec.Struct, frozen=True, kw_only=True):
    """The environment of a run. `host` is a hash, `variables` an allow-list; no user name, home shown as `~`.

    Args:
      image: Name and id of the container image; None outside a container.
      lock_sha256: Hash of the lock that the environment was made from; None for an environment of the user's own.
      device_name: Name of the devices: JAX's name of their kind, or the processor's name if that is the device.
      device_memory_bytes: Memory of one device that programs may use: the allocator's limit; on a CPU the machine's
        memory, or the control group's limit. None if it is unknown.
      peak_flops: Peak floating-point operations per second of one device, by the format of products; empty if unknown.
      peak_bytes_per_s: Peak bandwidth of one device's memory; None if it is unknown.
      peaks_source: Source of the peaks.
      driver: Version of the devices' driver; None if there is none, or if it is unknown.
    """

    python: str
    system: str
    machine: str
    packages: dict[str, str]
    device_kind: str
    device_name: str
    device_count: int
    platform_version: str | None
    processor: str
    cores: int
    allowed_cores: int
    cpu_quota: float | None
    governor: str | None
    memory_bytes: int | None
    load_average: float | None
    threads: dict[str, int | None]
    variables: dict[str, str]
    x64: bool
    matmul_precision: str | None
    host: str
    git_revision: str | None
    git_dirty: bool | None
    image: str | None
    lock_sha256: str | None = None
    device_memory_bytes: int | None = None
    driver: str | None = None
    peak_flops: dict[str, float] = {}
    peak_bytes_per_s: float | None = None
    peaks_source: str | None = None
