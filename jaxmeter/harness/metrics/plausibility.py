"""What can have been measured and what is a damaged file; means of values that lie too far apart for a float."""

from __future__ import annotations

import statistics as summaries
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime
from itertools import zip_longest

from jaxmeter.harness.metrics.statistics import Interval
from jaxmeter.harness.record.outcomes import Number
from jaxmeter.harness.record.processes import ProcessRecord
from jaxmeter.harness.record.settings import Settings

SHORTEST_S, LONGEST_S = 1e-12, 1e9
LARGEST_LOG_RATIO = 50.0
LARGEST_COUNT = 2.0**62
"""Beyond these a value is a damaged file, not a measurement: a picosecond, thirty years, 10^21 times, an exbibyte."""

LARGEST = 1e300
"""Of what is computed from others; beyond it, the next step could overflow."""


def at_both_levels(settings: Settings, find: Callable[[float], Interval]) -> Interval:
    """The interval that is shown, with the one that verdicts go by where that is another.

    Args:
      find: What makes an interval of a confidence.
    """
    decisive = find(settings.confidence)
    if settings.shown_confidence is None:
        return decisive
    return replace(find(settings.shown_confidence), verdict=decisive)


MOST_LOOKS = 100
"""At a case's intervals; there is one for each further process, of which there are 24. With millions an interval is
infinite."""


def bound(mean: Callable[..., Interval], values: Sequence[float], settings: Settings, *, looks: int) -> Interval:
    """The mean with its bounds; without them where values differ by more than a float can hold."""
    try:
        return at_both_levels(settings, lambda confidence: mean(values, confidence=confidence, looks=looks))
    except OverflowError:
        return mean([summaries.median(values)])


def keep_between(value: Number | None, low: float, high: float) -> float | None:
    """The value, or None where it lies outside: no measurement."""
    # Compared before it is converted, since a count in a damaged file may be larger than any float.
    return float(value) if value is not None and low <= value <= high else None


def divide_by_calibration(
    ratios: Sequence[float | None], times_s: Sequence[float | None], calibrations_s: Sequence[float | None]
) -> tuple[float | None, ...]:
    """Return by process a time over the calibration loop's time.

    Args:
      ratios: The ratios that processes have recorded. Older records have none; then `times_s` is divided by
        `calibrations_s`.
    """
    told = zip_longest(times_s, (ratios or calibrations_s)[: len(times_s)])
    if ratios:
        return tuple([None if own_s is None else ratio for own_s, ratio in told])
    return tuple(
        [None if own_s is None or calibration_s is None else own_s / calibration_s for own_s, calibration_s in told]
    )


def usable_size(value: Number | None) -> float | None:
    """A size or count as it may have been recorded, else None: of what is no metric, such as a buffer."""
    return keep_between(value, 0.0, LARGEST_COUNT)


def is_sound(process: ProcessRecord) -> bool:
    """Whether all that times are made of can have been measured; else the file is damaged."""
    times = (
        value
        for item in process.variants
        for values in (
            *(block.samples_s for block in item.blocks),
            item.return_s,
            item.isolated_s,
            item.waited_s,
            item.queued_s,
        )
        for value in values
    )
    walls = (block.wall_s for item in process.variants for block in item.blocks)
    sampled = all(item.blocks and all(block.samples_s for block in item.blocks) for item in process.variants)
    possible = all(SHORTEST_S <= value <= LONGEST_S for value in (*times, *walls))
    return sampled and possible and process.looks <= MOST_LOOKS and _is_moment(process.started)


def _is_moment(text: str) -> bool:
    """Whether a text is a time of some time zone."""
    try:
        return datetime.fromisoformat(text).tzinfo is not None
    except ValueError:
        return False
