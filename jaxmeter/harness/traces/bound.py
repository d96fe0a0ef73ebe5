"""The bound of a traced program: the part of its typical step that takes at least half of the wall time."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

import msgspec

from jaxmeter.document import numbers
from jaxmeter.harness.record.trace_summary import Problem, TraceSummary
from jaxmeter.harness.traces.ledger import DOMINANT, GROUPS, HOST, IDLE
from jaxmeter.harness.traces.programs import CALLBACK, COLLECTIVE, COMPUTE, TRANSFER
from jaxmeter.harness.traces.roofline import Roofs, find_rates
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
