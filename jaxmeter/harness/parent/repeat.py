"""The same plan measured again and again, one run after the other, as often as the time allows."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from jaxmeter.harness.parent.execution import execute
from jaxmeter.harness.parent.progress import Watcher
from jaxmeter.harness.parent.servers import Servers
from jaxmeter.harness.record import Manifest, RunFolder, RunRecord

FEWEST_RUNS = 2
"""Fewer cannot be compared with each other."""

MOST_RUNS = 12
"""Of 13 cases, what a quick run has, they give 156 speedups: none that differs falsely bounds the rate at 2.3 %."""

SLACK = 1.1
"""Of the longest run so far, that a further one is given: it may meet a slower minute."""


def repeat(
    make_manifest: Callable[[int], Manifest],
    folder: Path,
    servers: Servers,
    watcher: Watcher,
    budget_s: float,
    clock: Callable[[], float] = time.monotonic,
) -> list[RunRecord]:
    """At least two runs within the time, and none more after one that has lost cases to it.

    Args:
      make_manifest: Of a run by its number, from 1.
      folder: Of which each run gets a folder.
    """
    start, runs, longest_s = clock(), list[RunRecord](), 0.0
    while len(runs) < MOST_RUNS and not any(run.lost() for run in runs):
        begun = clock()
        left_s = budget_s - (begun - start)
        if len(runs) >= FEWEST_RUNS and SLACK * longest_s > left_s:
            break
        share_s = left_s / max(1, FEWEST_RUNS - len(runs))
        manifest = make_manifest(len(runs) + 1)
        runs.append(execute(manifest, RunFolder(folder / manifest.run_id), servers, watcher, share_s))
        longest_s = max(longest_s, clock() - begun)
    return runs
