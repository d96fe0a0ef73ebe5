"""Rates of a capture's devices while they are busy, next to their peaks: how far a program is from the roofs.

Source: Williams, Waterman & Patterson, Roofline: an insightful visual performance model, CACM 52 (4), 2009.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import msgspec

from jaxmeter.harness.machine.devices import DEVICE_KINDS
from jaxmeter.harness.record.environment import Environment
from jaxmeter.harness.record.trace_summary import TraceSummary
from jaxmeter.harness.traces.typical import find_busy_per_step

NARROWER = {"float32": "tensorfloat32"}
"""Formats that a device may compute products of another format in."""


HIGHEST_SHARE = 1.1
"""Of a peak. A higher one is a wrong cost, a wrong peak, or data that a cache holds."""


class Roofs(msgspec.Struct, frozen=True, kw_only=True):
    """Peaks of one device.

    Args:
      flops: FLOP/s by the format that products are computed in; under the empty name where that is unknown.
      bytes_per_s: Of its memory; None where it is unknown.
      source: Who says so; empty where nothing is known.
    """

    flops: Mapping[str, float] = {}
    bytes_per_s: float | None = None
    source: str = ""


class Rate(msgspec.Struct, frozen=True, kw_only=True):
    """What a device achieves while it is busy, over all steps, next to one peak.

    Args:
      unit: FLOP/s or B/s.
      form: The format that the peak is of; empty for bytes, and where it is unknown.
      achieved: None where operations that take time have no known cost.
      peak: None where it is unknown.
    """

    unit: str
    form: str = ""
    achieved: float | None
    peak: float | None

    @property
    def share(self) -> float | None:
        """Of the peak."""
        return None if self.achieved is None or not self.peak else self.achieved / self.peak


def find_roofs(summary: TraceSummary, environment: Environment | None = None) -> Roofs:
    """Return the peaks of a capture's device: a run's own, else of the table of devices, else as the capture states.

    Args:
      environment: Of a run on that device.
    """
    if environment is not None and (environment.peak_flops or environment.peak_bytes_per_s):
        return Roofs(
            flops=environment.peak_flops,
            bytes_per_s=environment.peak_bytes_per_s,
            source=environment.peaks_source or "",
        )
    kind = summary.device_kind.lower()
    device = next((row for name, row in DEVICE_KINDS.items() if name.lower() == kind), None)
    if device is not None:
        return Roofs(flops=device.peak_flops, bytes_per_s=device.peak_bytes_per_s, source=device.source)
    flops = {} if summary.peak_flops is None else {"": summary.peak_flops}
    is_stated = bool(flops) or summary.peak_bytes_per_s is not None
    return Roofs(flops=flops, bytes_per_s=summary.peak_bytes_per_s, source="the capture" if is_stated else "")


def find_rates(summary: TraceSummary, roofs: Roofs) -> tuple[Rate, ...]:
    """Return the rates of all steps: FLOP/s next to the peak of each format that is possible, and B/s."""
    peaks: Mapping[str, float | None] = choose_peaks(summary, roofs.flops) or {"": None}
    flops, moved = (_divide(summary, count) for count in (summary.flops, summary.bytes))
    rates = [Rate(unit="FLOP/s", form=form, achieved=flops, peak=peak) for form, peak in peaks.items()]
    return (*rates, Rate(unit="B/s", achieved=moved, peak=roofs.bytes_per_s))


def choose_peaks(summary: TraceSummary, peaks: Mapping[str, float]) -> dict[str, float]:
    """Return the peaks of the formats that the program's products can be computed in; all if these are unknown."""
    possible = set(_list_formats(summary.product_formats))
    return {form: peak for form, peak in peaks.items() if form in possible} or dict(peaks)


def _list_formats(formats: Iterable[str]) -> Iterator[str]:
    for form in formats:
        yield form
        if form in NARROWER:
            yield NARROWER[form]


def _divide(summary: TraceSummary, count: float | None) -> float | None:
    busy_s = find_busy_per_step(summary)
    return None if count is None or not busy_s else count / busy_s
