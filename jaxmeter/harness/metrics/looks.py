"""How often a variant's processes were looked at to decide whether to go on: looks share an interval's error."""

from __future__ import annotations

from jaxmeter.harness.metrics.metric import Readable
from jaxmeter.harness.record.outcomes import TimingDetails


def find_timing(source: Readable) -> TimingDetails | None:
    """What its processes tell as a whole; None where nothing was timed."""
    timing = source.outcomes.get("timing")
    return timing.details if timing is not None and isinstance(timing.details, TimingDetails) else None


def count_looks(source: Readable) -> int:
    """Looks really taken; in records of before they were told, the planned ones that the processes reached."""
    details, timing = find_timing(source), source.outcomes.get("timing")
    if details is not None and details.looks is not None:
        return max(1, details.looks)
    processes = 0 if timing is None else max(map(len, timing.values.values()), default=0)
    return max(1, sum(look <= processes for look in source.settings.looks))
