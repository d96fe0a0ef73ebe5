"""How near the limit: the rate of each fastest compiled variant over its operational intensity, on one device."""

from __future__ import annotations

import re
from collections.abc import Sequence

from jaxmeter.harness.metrics.metric import Unit
from jaxmeter.harness.metrics.reading import Case, Variant
from jaxmeter.harness.metrics.roofline import find_peak_flops, find_product_format

from ... import numbers
from ...text import counted, shorten
from ..figure_model import Axis, Dot, Roof, Roofline
from ..names import LONGEST_TERM
from .marks import TIME, make_mark, name_case, name_workload

INTENSITY, RATE = "operational_intensity", "achieved_flops"

MEASURED_AT = re.compile(r" at \d{4}-.*")
"""When and how a peak was measured, which the view of the environment has."""

MOST_DOTS = 300
"""More lie on each other, and take 300 B each."""

MOST_ROOFS = 2
"""Formats with the most cases; a page of five roofs is read by nobody."""


def draw_roofline(cases: Sequence[Case]) -> Roofline | None:
    """Return the figure of one device; None where no case has a cost, or no peak is known.

    Cases that compute in a format without a known peak, such as integers, are left out: no roof is theirs.

    Args:
      cases: Of one machine, each once.
    """
    fastest = [variant for case in cases if (variant := _choose_fastest(case)) is not None and _may_have_roof(variant)]
    found = [(variant, dot) for variant in fastest if (dot := _make_dot(variant)) is not None]
    roofs = _list_roofs([variant for variant, _ in found])
    if not found or not roofs:
        return None
    ordered = sorted((dot for _, dot in found), key=lambda one: -one.mark.estimate.value)
    shown = ordered[:: -(-len(ordered) // MOST_DOTS)]
    total = counted(len(ordered), "case")
    among = f" of {total}, evenly chosen by rate" if len(shown) < len(ordered) else ""
    alt = f"Rates of {f'{len(shown)} of {total}' if among else total} below {roofs[0].text}. The fastest: "
    x = Axis("FLOP per byte, log", Unit.COUNT, is_log=True)
    y = Axis(f"rate, log{f'; {len(shown)}{among}' if among else ''}", Unit.FLOP_PER_SECOND, is_log=True)
    return Roofline(f"{alt}{shown[0].mark.says}", x, y, tuple(shown), roofs)


def _choose_fastest(case: Case) -> Variant | None:
    compiled = [
        one
        for one in case.shown
        if one.planned.mode in ("jit", "aot") and one.read(TIME).has_number and not one.is_peer
    ]
    return min(compiled, key=lambda one: one.read(TIME).estimate or 0.0, default=None)


def _may_have_roof(variant: Variant) -> bool:
    return find_product_format(variant) is None or find_peak_flops(variant) is not None


def _make_dot(variant: Variant) -> Dot | None:
    intensity = variant.read(INTENSITY).estimate
    mark = make_mark(variant, RATE, name=name_case(variant.case))
    if intensity is None or intensity <= 0 or mark is None or mark.estimate.value <= 0:
        return None
    return Dot(intensity, mark, name_workload(variant.case))


def _list_roofs(variants: Sequence[Variant]) -> tuple[Roof, ...]:
    """Return the roofs of the formats that most cases compute in."""
    counts: dict[str, int] = {}
    roofs: dict[str, Roof] = {}
    for variant in variants:
        peak, bandwidth = find_peak_flops(variant), variant.environment.peak_bytes_per_s
        name = find_product_format(variant)
        if peak and bandwidth and name:
            counts[name] = counts.get(name, 0) + 1
            source = shorten(MEASURED_AT.sub("", variant.environment.peaks_source or ""), LONGEST_TERM)
            limits = f"{numbers.amount(peak, 'FLOP/s')} {name}, {numbers.amount(bandwidth, 'B/s')}"
            roofs[name] = Roof(bandwidth, peak, f"{limits}{f', {source}' if source else ''}")
    return tuple(roofs[name] for name in sorted(counts, key=lambda one: -counts[one])[:MOST_ROOFS])
