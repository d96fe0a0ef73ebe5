"""The bound of a traced program, and the rates of its device next to the peaks: how far it is from the roofs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from enum import StrEnum

import msgspec

from jaxmeter.document import numbers
from jaxmeter.harness.machine.platforms import DEVICE_KINDS
from jaxmeter.harness.record.environment import Environment
from jaxmeter.harness.record.trace_summary import Problem, TraceSummary
from jaxmeter.harness.traces.ledger import DOMINANT, GROUPS, HOST, IDLE
from jaxmeter.harness.traces.programs import CALLBACK, COLLECTIVE, COMPUTE, TRANSFER
from jaxmeter.harness.traces.summary import find_busy_per_step
from jaxmeter.harness.traces.timeline import COMPILE, DISPATCH


class BoundKind(StrEnum):
    """The kinds that can bound a program."""

    COMPILATION = "compilation"
    DISPATCH = "dispatch"
    PYTHON = "Python"
    TRANSFERS = "transfers"
    COLLECTIVES = "collectives"
    CALLBACKS = "callbacks"
    WAITING = "waiting"
    ARITHMETIC = "compute"
    BANDWIDTH = "memory bandwidth"
    OPERATIONS = "the device's operations"
    NOTHING = "no part"


PARTS: Mapping[BoundKind, tuple[str, ...]] = {
    BoundKind.COMPILATION: (COMPILE,),
    BoundKind.DISPATCH: GROUPS[DISPATCH],
    BoundKind.PYTHON: GROUPS[HOST],
    BoundKind.TRANSFERS: GROUPS[TRANSFER],
    BoundKind.COLLECTIVES: (COLLECTIVE,),
    BoundKind.CALLBACKS: (CALLBACK,),
    BoundKind.WAITING: GROUPS[IDLE],
    BoundKind.OPERATIONS: (COMPUTE,),
}
"""Parts of the ledger whose sum decides. The first sum that is at least DOMINANT names the kind."""

LEAST_OF_PEAK = 0.3
"""Share of the nearer roof from which on operations are bound by it."""

_SENTENCES: Mapping[BoundKind, str] = {
    BoundKind.COMPILATION: "The traced step is bound by compilation: {share} of its wall time.",
    BoundKind.DISPATCH: "The traced step is bound by dispatch: handing programs to the device takes {share} of it.",
    BoundKind.PYTHON: "The traced step is bound by Python: the host's own code takes {share} of it.",
    BoundKind.TRANSFERS: "The traced step is bound by transfers: copies between memories take {share} of it.",
    BoundKind.COLLECTIVES: "The traced step is bound by collectives: exchange between devices takes {share} of it.",
    BoundKind.CALLBACKS: "The traced step is bound by callbacks: Python inside the program takes {share} of it.",
    BoundKind.WAITING: "The traced step is bound by waiting: the device runs nothing in {share} of it.",
    BoundKind.ARITHMETIC: "The traced step is bound by compute: operations take {share} of it, at {rate} of peak.",
    BoundKind.BANDWIDTH: (
        "The traced step is bound by memory bandwidth: operations take {share} of it, at {rate} of the peak bandwidth."
    ),
    BoundKind.OPERATIONS: "The traced step is bound by the device's operations: they take {share} of it.",
    BoundKind.NOTHING: "No part dominates the traced step: the largest is {largest} with {share}.",
}


class Bound(msgspec.Struct, frozen=True, kw_only=True):
    """The kind that bounds a program.

    Args:
      share: Share of the kind's parts in the typical traced step; without a dominant kind, the largest share.
      largest: The kind with the largest share, before the roofline splits operations.
      of_peak_flops, of_peak_bandwidth: Achieved rate while the busiest device is busy, over its peak. If several
        formats of numbers are possible, the highest peak counts. None if a cost or a peak is unknown.
    """

    kind: BoundKind
    share: float
    largest: BoundKind
    of_peak_flops: float | None = None
    of_peak_bandwidth: float | None = None


def find_bound(summary: TraceSummary, roofs: Roofs) -> Bound | None:
    """Return what a capture's program is bound by; None where it is unhealthy or has no ledger.

    Args:
      roofs: Of the device. Where several formats are possible, the rule has to agree for all, else no roofline decides.
    """
    if not summary.is_healthy or not summary.ledger:
        return None
    shares = {kind: sum(summary.ledger.get(part, 0.0) for part in parts) for kind, parts in PARTS.items()}
    largest = max(shares, key=lambda kind: shares[kind])
    kind = next((kind for kind, share in shares.items() if share >= DOMINANT), BoundKind.NOTHING)
    if kind is BoundKind.DISPATCH and summary.ledger.get(COMPILE, 0.0) > summary.ledger.get(DISPATCH, 0.0):
        kind = BoundKind.COMPILATION
        shares[kind] = shares[BoundKind.DISPATCH]
    is_swollen = any(finding.problem is Problem.PYTHON_TRACER for finding in summary.findings)
    decisive = largest if kind is BoundKind.NOTHING else kind
    if is_swollen and decisive in (BoundKind.PYTHON, BoundKind.DISPATCH, BoundKind.COMPILATION):
        return None
    if kind is not BoundKind.OPERATIONS:
        share = shares[largest] if kind is BoundKind.NOTHING else shares[kind]
        return Bound(kind=kind, share=share, largest=largest)
    *arithmetic, memory = find_rates(summary, roofs)
    of_flops, of_bandwidth = sorted(rate.share for rate in arithmetic if rate.share is not None), memory.share
    nearest = max(of_flops[-1] if of_flops else 0.0, of_bandwidth or 0.0)
    # Far below both roofs it is neither; above the memory's, the data stays in a cache.
    if of_flops and of_bandwidth is not None and nearest >= LEAST_OF_PEAK and of_bandwidth <= 1.0:
        if of_flops[0] >= of_bandwidth:
            kind = BoundKind.ARITHMETIC
        elif of_flops[-1] < of_bandwidth:
            kind = BoundKind.BANDWIDTH
    return Bound(
        kind=kind,
        share=shares[BoundKind.OPERATIONS],
        largest=largest,
        of_peak_flops=of_flops[0] if of_flops else None,
        of_peak_bandwidth=of_bandwidth,
    )


def describe_bound(bound: Bound | None) -> str:
    """Return the sentence of a bound; empty without a bound."""
    if bound is None:
        return ""
    rate = bound.of_peak_flops if bound.kind is BoundKind.ARITHMETIC else bound.of_peak_bandwidth
    return _SENTENCES[bound.kind].format(
        share=numbers.percent(bound.share), rate=numbers.percent(rate or 0.0), largest=bound.largest.value
    )


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
