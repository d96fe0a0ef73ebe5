"""Whether a machine was too busy to tell anything: then its numbers are kept, and nothing is compared with them."""

from __future__ import annotations

from jaxmeter.harness.metrics.reading import Run

from ..compare.findings import TIME
from ..view.trust import is_vague

MOST = 0.5
"""Share of the times that may be vague. Whether they are contended does not count: on a shared machine most are, and
known to a tenth all the same."""


def find_busy(run: Run) -> str:
    """How many of a run's times are vague, in words; empty where these are at most half."""
    times = [
        variant.read(TIME).interval
        for case in run.cases
        for variant in case.variants
        if variant.planned.replays is None
    ]
    known = [one for one in times if one is not None]
    vague = sum(map(is_vague, known))
    if vague <= MOST * len(known):
        return ""
    return f"{vague} of {len(known)} times are known to no better than a factor of two"
