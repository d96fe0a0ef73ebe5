"""Achieved rates against the device's peaks: share of peak, operational intensity, and which roof is nearer.

Source: Williams, Waterman & Patterson, Roofline: an insightful visual performance model, CACM 52 (4), 2009.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from jaxmeter.harness.metrics import statistics
from jaxmeter.harness.metrics.metric import Derived, Fault, Lack, Readable, Reading
from jaxmeter.harness.metrics.plausibility import LARGEST
from jaxmeter.harness.metrics.traced import find_trace
from jaxmeter.harness.record.outcomes import NumericsDetails
from jaxmeter.harness.traces.roofline import HIGHEST_SHARE

DECLARED = "declared"

ABOVE_PEAK = "above the peak: its declared cost or the peak is wrong"
ABOVE_BANDWIDTH = "above the memory's peak: its data stays in a cache, or the declared bytes or the peak are wrong"


def find_cost(source: Readable, what: str) -> tuple[float, str] | None:
    """Return FLOPs or bytes of one call and who says so: the workload, else what the program's own HLO gives.

    Args:
      what: `flops` or `bytes`.
    """
    cost = source.planned_case.cost
    declared = None if cost is None else getattr(cost, what)
    if declared is not None and 0 < declared < LARGEST:
        return float(declared), DECLARED
    summary = find_trace(source)
    counted = None if summary is None else getattr(summary, what)
    if summary is None or counted is None or not 0 < counted < LARGEST:
        return None
    return float(counted) * len(summary.devices), "counted from the program"


def find_peak_flops(source: Readable) -> float | None:
    """Return the peak of one device in the format that the case's products are computed in; None without one."""
    peaks: Mapping[str, float] = source.environment.peak_flops
    return peaks.get(find_product_format(source) or "")


def find_product_format(source: Readable) -> str | None:
    """Return the format that the case's products are computed in; None if it is unknown, or there are several."""
    summary = find_trace(source)
    formats = () if summary is None else summary.product_formats
    # Of several formats nobody can say which peak holds; of a program without products the declared one does.
    name = formats[0] if len(formats) == 1 else None if formats else source.planned_case.params.get("dtype")
    if name != "float32":
        return None if name is None else str(name)
    numerics = source.outcomes.get("numerics")
    details = None if numerics is None else numerics.details
    products = details.products if isinstance(details, NumericsDetails) else None
    return products or "float32"


def derive_flops_share(source: Readable) -> Derived:
    """Achieved FLOP/s over the peak of all devices of the case."""
    return _derive(source, "flops", find_peak_flops(source), ABOVE_PEAK)


def derive_bandwidth_share(source: Readable) -> Derived:
    """Achieved B/s over the peak of all devices' memories."""
    return _derive(source, "bytes", source.environment.peak_bytes_per_s, ABOVE_BANDWIDTH)


def derive_intensity(source: Readable) -> Derived:
    """FLOPs over bytes."""
    flops, moved = find_cost(source, "flops"), find_cost(source, "bytes")
    if flops is None or moved is None:
        return Derived(fault=Fault(Lack.NOT_DEFINED, "operational_intensity"))
    return Derived((flops[0] / moved[0],))


def _derive(source: Readable, what: str, peak: float | None, above: str) -> Derived:
    name = "flops_share" if what == "flops" else "bandwidth_share"
    cost = find_cost(source, what)
    if cost is None or not peak:
        reason = (
            f"its workload declares no {what}, and no capture gives them" if cost is None else _explain(source, what)
        )
        return Derived(fault=Fault(Lack.NOT_DEFINED, name, reason=reason))
    time = _find_time(source)
    devices = 1 if source.environment.device_kind == "cpu" else _count_devices(source, cost[1])
    at_peak_s = cost[0] / (peak * devices)
    values = tuple(None if value is None else at_peak_s / value for value in time.values)
    interval = statistics.invert(at_peak_s, time.interval) if values else None
    derived = Derived(values, time.contended, time.fault, interval=interval)
    known = [value for value in values if value is not None]
    is_above = bool(known) and max(known) > HIGHEST_SHARE
    return replace(derived, doubt=above) if is_above else derived


def _explain(source: Readable, what: str) -> str:
    """Return why there is no peak."""
    here = source.environment
    if what == "bytes" or not here.peak_flops:
        return f"no peak is known of its device ({here.device_kind})"
    name = find_product_format(source)
    return f"no peak is known of {name} products" if name else "in which format its products are computed is not known"


def _count_devices(source: Readable, said_by: str) -> int:
    """How many devices' peaks a cost is held against: those that the case asks for, or that the program ran on."""
    summary = find_trace(source)
    return source.planned_case.devices if said_by == DECLARED or summary is None else len(summary.devices)


def _find_time(source: Readable) -> Reading:
    """Busy time where the device has a clock of its own; else the timed call."""
    summary = find_trace(source)
    has_clock = summary is not None and summary.platform != "cpu"
    busy = source.read("device_busy_s") if has_clock else None
    return busy if busy is not None and busy.has_number else source.read("execution_s")
