"""Whether a machine was too busy to tell anything: then its numbers are kept, and nothing is compared with them."""

from __future__ import annotations

from harness.record import Run
from harness.record.pooling import gather_pool
from harness.record.reading import is_contended

from ..compare.snapshot import Snapshot

MOST = 0.5
"""Share of the timed variants that may be contended."""


def find_busy(run: Run) -> str:
    """How many of a run's times are contended, in words; empty where these are at most half."""
    timed = [
        variant.outcomes["timing"]
        for side in Snapshot(run, gather_pool(run)).cases.values()
        for variant in side.variants.values()
        if "timing" in variant.outcomes and variant.planned.replays is None
    ]
    contended = sum(map(is_contended, timed))
    return f"{contended} of {len(timed)} times are contended" if contended > MOST * len(timed) else ""
