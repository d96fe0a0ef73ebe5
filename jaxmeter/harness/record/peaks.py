"""How fast a machine's own processor can compute and move data, measured once, and where that is kept."""

from __future__ import annotations

from pathlib import Path
from statistics import median

import msgspec

from jaxmeter.harness.record.files import PEAKS, RecordError, name_file, read_json, write_json

MEASURED = "measured on this machine"
"""Begins the source of such peaks."""

SLOWEST, FASTEST = 1.0, 1e18
"""Beyond these a rate is a damaged file."""


class Peaks(msgspec.Struct, frozen=True, kw_only=True):
    """Rates of a processor, each measured several times.

    Args:
      at: When they were measured.
      packages: Versions of jax and jaxlib, whose products they are.
      flops: By the format that products are computed in, FLOP/s of the fastest size, repeat by repeat.
      bytes_per_s: Of `x + 2 y` over arrays that no cache holds, read and written bytes, repeat by repeat.
    """

    at: str
    packages: dict[str, str]
    flops: dict[str, tuple[float, ...]]
    bytes_per_s: tuple[float, ...]

    @property
    def is_sound(self) -> bool:
        """Whether all of it can have been measured; else a file is damaged."""
        return all(
            values and all(1.0 <= rate < 1e18 for rate in values) for values in (*self.flops.values(), self.bytes_per_s)
        )

    @property
    def peak_flops(self) -> dict[str, float]:
        """Median by format, FLOP/s."""
        return {name: median(values) for name, values in self.flops.items()}

    @property
    def peak_bytes_per_s(self) -> float:
        """Median, B/s."""
        return median(self.bytes_per_s)

    @property
    def source(self) -> str:
        """Who says so, with the spread of the repeats."""
        spreads = [*self.flops.values(), self.bytes_per_s]
        widest = max((max(values) - min(values)) / median(values) for values in spreads)
        return (
            f"{MEASURED} at {self.at}: products and x + 2 y, median of {len(self.bytes_per_s)}, "
            f"spread at most {100 * widest:.0f} %"
        )


def locate_peaks(out: Path, machine: str) -> Path:
    """Return where a machine's peaks lie, in the folder of its runs."""
    return out / PEAKS / f"{name_file(machine)}.json"


def keep_peaks(out: Path, machine: str, peaks: Peaks) -> None:
    """Write them for the runs that follow."""
    write_json(locate_peaks(out, machine), peaks)


def find_peaks(out: Path, machine: str) -> Peaks | None:
    """Return the machine's own, or None where there are none.

    Raises:
      RecordError: They are damaged.
    """
    path = locate_peaks(out, machine)
    if not path.exists():
        return None
    peaks = read_json(path, Peaks)
    if not peaks.is_sound:
        raise RecordError(f"{path}: damaged, it contains impossible rates")
    return peaks
