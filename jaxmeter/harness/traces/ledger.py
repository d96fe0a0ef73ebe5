"""A ledger of a step's wall time: parts that exclude each other and add up to it.

Where several things happen at once, the first of `PARTS` counts: what the device does comes before what the host does.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy
from numpy.typing import NDArray

from jaxmeter.harness.traces.analysis import MODULE_RUNS, Analysis
from jaxmeter.harness.traces.columns import NONE, Intervals, Times, covered, join, subtract, unite
from jaxmeter.harness.traces.programs import CALLBACK, COLLECTIVE, COMPUTE, CONTROL, TRANSFER
from jaxmeter.harness.traces.timeline import COMPILE, DISPATCH, WAITING

BETWEEN = "between operations"
BEFORE, AMID, AFTER = "host before", "host amid", "host after"

PARTS = (COMPUTE, CALLBACK, COLLECTIVE, TRANSFER, BETWEEN, COMPILE, DISPATCH, WAITING, BEFORE, AMID, AFTER)
"""In order: an instant that two claim is the earlier one's."""

DEVICE, HOST, IDLE = "device", "host", "idle"

GROUPS: Mapping[str, tuple[str, ...]] = {
    DEVICE: (COMPUTE, CALLBACK, COLLECTIVE),
    TRANSFER: (TRANSFER,),
    DISPATCH: (DISPATCH, COMPILE),
    HOST: (BEFORE, AMID, AFTER),
    IDLE: (BETWEEN, WAITING),
}
"""What a drawing shows: five groups of the parts."""

BUSIEST = "the busiest of each step"
"""The device of a ledger, where several share their steps."""

OF_HOST = frozenset({COMPILE, DISPATCH, WAITING, BEFORE, AMID, AFTER})
"""Parts that are the host's."""

DOMINANT = 0.5
"""Share of a step from which on it is said to be bound by a part."""


@dataclass(frozen=True)
class Ledger:
    """How the wall time of a step is divided on the busiest device.

    Args:
      device: The name of the one that is busiest over all steps. Where devices share their steps, each step counts by
        the device that is busiest in it.
      shares: By part, of all steps together, so that they add up to 1 and a rare stall counts as long as it lasts. A
        part that the platform's captures cannot show is left out.
      medians: The medians of the steps' own shares, which need not add up.
      hidden: Parts that the platform's captures cannot show.
    """

    device: str
    shares: Mapping[str, float]
    medians: Mapping[str, float]
    hidden: tuple[str, ...]

    def group(self, name: str) -> float:
        """Return the share of one of the groups."""
        return sum(self.shares.get(part, 0.0) for part in GROUPS[name])


def make_ledger(analysis: Analysis) -> Ledger | None:
    """Return the ledger of the busiest device; None of a capture without operations or steps."""
    if not analysis.devices or not len(analysis.wall):
        return None
    place = analysis.busiest
    layout = analysis.timeline.layout
    hidden = frozenset() if layout is None else layout.hides
    if layout is not None and not len(analysis.timeline.host.get(WAITING, NONE)[0]):
        hidden |= {WAITING}  # code that waits for several arrays at once looks like Python
    if analysis.steps.source == MODULE_RUNS:
        hidden |= OF_HOST  # a step is a run of a program, and what the host does between two is in none
    common = [step for step in analysis.steps.steps if step.device is None]
    steps = common or [step for step in analysis.steps.steps if step.device == place]
    starts = numpy.array([step.start for step in steps], numpy.int64)
    ends = numpy.array([step.end for step in steps], numpy.int64)
    if common:
        # Devices that share their steps take turns at being the busiest.
        busy = numpy.array([device.busy for device in analysis.devices])
        divided = [_divide(analysis, device, starts, ends, hidden) for device in range(len(analysis.devices))]
        chosen = busy.argmax(axis=0)
        at_chosen = chosen, numpy.arange(len(steps))
        parts = {part: numpy.array([division[part] for division in divided])[at_chosen] for part in PARTS}
    else:
        parts = _divide(analysis, place, starts, ends, hidden)
    wall = numpy.maximum(ends - starts, 1)
    medians = {part: float(numpy.median(parts[part] / wall)) for part in PARTS if part not in hidden}
    totals = {part: float(parts[part].sum()) for part in PARTS if part not in hidden}
    total = sum(totals.values())
    if total <= 0:
        return None
    several = bool(common) and len(analysis.devices) > 1
    return Ledger(
        device=BUSIEST if several else analysis.devices[place].name,
        shares={part: share / total for part, share in totals.items()},
        medians=medians,
        hidden=tuple(part for part in PARTS if part in hidden),
    )


def _divide(
    analysis: Analysis, place: int, starts: Times, ends: Times, hidden: frozenset[str]
) -> dict[str, NDArray[numpy.int64]]:
    """By part, its picoseconds in each step."""
    timeline = analysis.timeline
    own = timeline.operations.take(timeline.operations.device == place)
    busy = unite(own.intervals)
    categories = analysis.by_category[place]
    runs = [run for run in timeline.runs if run.device == place]
    # What the host did is by another clock than the operations of a device that has its own.
    host = {} if timeline.layout is not None and timeline.layout.has_device_clock else timeline.host
    claims: dict[str, Intervals] = {
        COMPUTE: unite(join(categories.get(COMPUTE, NONE), categories.get(CONTROL, NONE))),
        CALLBACK: categories.get(CALLBACK, NONE),
        COLLECTIVE: categories.get(COLLECTIVE, NONE),
        TRANSFER: unite(join(categories.get(TRANSFER, NONE), host.get(TRANSFER, NONE))),
        BETWEEN: unite(
            (numpy.array([run.start for run in runs], numpy.int64), numpy.array([run.end for run in runs], numpy.int64))
        ),
        **{part: unite(host.get(part, NONE)) for part in (COMPILE, DISPATCH, WAITING)},
    }
    divided: dict[str, NDArray[numpy.int64]] = {}
    taken: Intervals = NONE
    for part in PARTS:
        if part in claims:
            if part in hidden:
                claims[part] = NONE
            divided[part] = covered(subtract(claims[part], taken), starts, ends)
            taken = unite(join(taken, claims[part]))
    # What nobody claims is the host's own, by where it lies: before the first operation, after the last, or amid.
    first, last = _find_bounds(busy, starts, ends)
    divided[BEFORE] = first - starts - covered(taken, starts, first)
    divided[AMID] = last - first - covered(taken, first, last)
    divided[AFTER] = ends - last - covered(taken, last, ends)
    return divided


def _find_bounds(busy: Intervals, starts: Times, ends: Times) -> tuple[Times, Times]:
    """When in each step the device's first operation begins and its last one ends; of one without any, both its end."""
    first, last = ends.copy(), ends.copy()
    for place, (start, end) in enumerate(zip(starts.tolist(), ends.tolist(), strict=True)):
        low = int(numpy.searchsorted(busy[1], start, side="right"))
        high = int(numpy.searchsorted(busy[0], end, side="left"))
        if low < high:
            first[place] = max(start, int(busy[0][low]))
            last[place] = min(end, int(busy[1][high - 1]))
    return first, last
