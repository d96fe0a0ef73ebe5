"""Devices, by the name that JAX gives their kind: what they hold and how fast they can be at most. One row each."""

from __future__ import annotations

from dataclasses import dataclass

_NVIDIA = "NVIDIA's data sheet, dense, SXM"
_TPU = "jax.experimental.pallas.tpu.get_tpu_info_for_chip of jax 0.10.2, all cores of a device"


@dataclass(frozen=True, kw_only=True)
class Device:
    """A kind of device.

    Args:
      kind: `device_kind` of JAX's devices.
      memory_bytes: Of one device.
      peak_flops: By the format that products are computed in, floating-point operations per second at most.
      peak_bytes_per_s: Of its memory.
      source: Who says so.
    """

    kind: str
    memory_bytes: int
    peak_flops: dict[str, float]
    peak_bytes_per_s: float
    source: str


def _hopper(kind: str, memory_bytes: int, peak_bytes_per_s: float) -> Device:
    return Device(
        kind=kind,
        memory_bytes=memory_bytes,
        peak_flops={"bfloat16": 989e12, "float16": 989e12, "tensorfloat32": 495e12, "float32": 67e12},
        peak_bytes_per_s=peak_bytes_per_s,
        source=_NVIDIA,
    )


def _tpu(kind: str, memory_bytes: int, bfloat16: float, peak_bytes_per_s: float) -> Device:
    return Device(
        kind=kind,
        memory_bytes=memory_bytes,
        peak_flops={"bfloat16": bfloat16},
        peak_bytes_per_s=peak_bytes_per_s,
        source=_TPU,
    )


DEVICE_KINDS: dict[str, Device] = {
    device.kind: device
    for device in (
        Device(
            kind="NVIDIA A100-SXM4-80GB",
            memory_bytes=80 * 10**9,
            peak_flops={"bfloat16": 312e12, "float16": 312e12, "tensorfloat32": 156e12, "float32": 19.5e12},
            peak_bytes_per_s=2.04e12,
            source=_NVIDIA,
        ),
        _hopper("NVIDIA H100 80GB HBM3", 80 * 10**9, 3.35e12),
        _hopper("NVIDIA H200", 141 * 10**9, 4.8e12),
        _tpu("TPU v4", 34_400_000_000, 275e12, 1.23e12),
        _tpu("TPU v5 lite", 17_200_000_000, 197e12, 0.82e12),
        _tpu("TPU v5", 103_000_000_000, 459e12, 2.46e12),
        _tpu("TPU v6 lite", 34_400_000_000, 920e12, 1.64e12),
        _tpu("TPU7x", 103_000_000_000, 1155e12, 3.7e12),
    )
}
"""What is not here has no known peaks: a processor's depend on the machine, and have to be measured."""


def find_device(kind: str) -> Device | None:
    """Return the row of a kind of device; None where it is not known."""
    return DEVICE_KINDS.get(kind)
