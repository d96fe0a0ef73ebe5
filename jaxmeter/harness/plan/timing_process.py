"""How much of what one timing process does: every number that steers it, with its source.

How long a block lasts and how many there are at most is a run's setting: harness/plan/settings.py.
"""

from __future__ import annotations

import math
from collections.abc import Collection

from jaxmeter.harness.record import Settings
from jaxmeter.harness.record.cases import FEWEST_QUEUED

WARM_UP_S = 0.02
WARM_UP_LIMIT_S = 0.3
STEADY_WITHIN = 0.05
"""Two blocks in a row that agree end the warm-up, not before the first of these and not after the second. After
compiling, calls of four benchmarks were within 10 % of their steady time after at most 42 ms (90 % of processes, on a
busy machine of two cores): the limit is seven times that, and the passes warm up too."""

WARM_UP_BLOCK_S = 0.005
"""Chosen, not measured: the median of some 25 samples is not moved by one that was slow."""

SLOW_CALL_S = WARM_UP_LIMIT_S
"""A call so long is a warm-up block and a sample of time until return by itself: it is called as seldom as can be."""

ONE_PASS_S = 10.0
"""A call so long warms up by itself, and the first block tells whether it was steady; its time until return is not
timed. A shorter one is called twice: what holds a process up once does not last so long."""

MOST_CALLS = 1_000_000
"""In one sample: 200 us of calls that take less than a nanosecond do not exist."""

SLOW_BLOCK_S = 0.003
FEWEST_PASSES = 6
SLOW_PASSES_S_PER_VARIANT = 3.0
FEWEST_SLOW_PASSES = 2
"""Where blocks take longer than the first, passes are cut to what would hold all blocks of that length, but not to
fewer than three shuffled orders with their reverses, one more block than a clean process needs; beyond the third for
each variant, not to fewer than one order and its reverse. A process of one variant of 5 s a call so makes six calls:
two to warm up, two passes, one of time until return, and the first; of one of 10 s four."""

RETURN_S = 0.02
FEWEST_RETURNS, MOST_RETURNS = 3, 50
RETURN_PROCESSES = 5
"""As many single calls as that time holds, of slow calls one, in the processes of a usual run. Chosen, not measured: an
eighth of what the blocks of a variant take, as a time until return has no verdicts between runs."""

QUEUE_S = 0.1
"""A queue lasts no longer, but for one of FEWEST_QUEUED calls. Chosen: waiting costs some 0.1 ms a call at most, which
is 0.2 % of calls of 0.05 s, of which it holds two. Calls of SLOW_CALL_S are not queued at all."""

QUEUE_PASSES = 20
"""In which calls are queued, spread over all. Chosen: a quarter of the blocks, as no verdicts rest on queues. Of two
programs on two busy cores, what queueing was worth scattered by 5 % between processes with 36 and 70 passes."""

ISOLATED_BLOCKS = 5
ISOLATED_S = 0.3
ISOLATED_PROCESSES = 3
"""Blocks of one variant alone, where they take no longer than that in all: of a call of 0.06 s, filling 32 MiB of
caches anew at 10 GB/s is some 5 %; and in as many processes as give an interval. Chosen, not measured: as many blocks
as a clean process needs, for a note and no verdict. They are a tenth of a process of quick calls."""

TURN_S = 0.02
"""A block's length where two processes take turns: waking the other one takes 0.1 ms, 0.5 % of it."""

TURNS = 10
"""Of each variant in a round of two processes. Between rounds the ratios of eight programs, two environments on one
core, scattered by 1.3 % with 4 turns, by 1.2 % with 12 and by 1.2 % with 40: more processes tell more."""

LOCK_STEP_ROUNDS = 8
"""At least as many where time allows: by t and root, ratios that scatter by 1.2 % are known to 1.5 % at 99 %."""


def count_queued(call_s: float, declared: int) -> int:
    """Return how many calls a queue has: those that are declared, or fewer where calls are slow; 0 without a queue."""
    if declared < FEWEST_QUEUED or call_s >= SLOW_CALL_S:
        return 0
    return declared if declared * call_s <= QUEUE_S else max(FEWEST_QUEUED, int(QUEUE_S / call_s))


def count_passes(blocks_s: Collection[float], settings: Settings) -> int:
    """An even number: `settings.blocks`, or fewer where calls are slow.

    Args:
      blocks_s: How long a block of each variant takes at least; or its rows of calls.
    """
    pass_s = math.fsum(blocks_s)

    def fit(s_per_variant: float) -> int:
        return int(round(s_per_variant * len(blocks_s) / pass_s, 9))

    usual_s = settings.blocks * max(SLOW_BLOCK_S, settings.block_s)
    passes = max(min(FEWEST_PASSES, fit(SLOW_PASSES_S_PER_VARIANT)), min(settings.blocks, fit(usual_s)))
    return max(FEWEST_SLOW_PASSES, 2 * (passes // 2))


def is_among(place: int, chosen: int, of: int) -> bool:
    """Return whether a place is one of so many that are spread evenly over all."""
    return (place + 1) * chosen // of > place * chosen // of
