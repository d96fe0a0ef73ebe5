"""The numbers that control one timing process, with their sources.

The length of a block and the largest number of blocks are settings of a run: harness/plan/settings.py.
"""

from __future__ import annotations

import math
from collections.abc import Collection

from jaxmeter.harness.record import Settings
from jaxmeter.harness.record.cases import FEWEST_QUEUED

WARM_UP_S = 0.02
WARM_UP_LIMIT_S = 0.3
STEADY_WITHIN = 0.05
"""Warm-up ends when two consecutive blocks agree, not before WARM_UP_S and not after WARM_UP_LIMIT_S. After compiling,
calls of four benchmarks were within 10 % of their steady time after at most 42 ms. That holds for 90 % of processes, on
a busy machine of two cores. The limit is seven times as long, and the passes warm up too."""

WARM_CALL_S = 0.01
"""Two calls of this length are warm-up blocks, since one was made before them. If they disagree, more follow. In a
default run, warm-up took 258 s of 1800 s, most of it in such calls."""

WARM_UP_BLOCK_S = 0.005
"""Chosen, not measured: one slow sample does not change the median of about 25."""

SLOW_CALL_S = WARM_UP_LIMIT_S
"""Two calls of this length are all of the warm-up, and one is the only sample of time until return."""

ONE_PASS_S = 10.0
"""A call of this length warms up by itself, and the first block shows whether it was steady; its time until return is
not timed. A shorter call is called twice: delays that occur once in a process are shorter than this."""

MOST_CALLS = 1_000_000
"""Largest number of calls in a sample of 200 us: no call takes less than a nanosecond."""

SCATTER = 10.0
SCATTER_BLOCK_S = 0.002
SCATTER_EXPONENT = -0.25
"""Standard deviation of a pass's ratio over that of processes beyond their passes, for blocks of SCATTER_BLOCK_S, and
how it changes with their length. In a default run on two cores, the deviation of 46 ratios between processes fell from
8.1 to 6.1 and 4.6 % with 10, 20 and 32 passes: a pass scatters by 26 %, and processes beyond that by at most 3 %.
Single passes scattered by 20 % with blocks of 3 ms, 13 % with 20 ms, 10 % with 65 ms and 5 % with 200 ms
(`python -m benchmarks.run_time`)."""

AROUND_BLOCK_S = 0.0008
"""What a block takes in addition to its samples: counters and calibration loop before and after it, and its part of the
untimed calls on drawn cores. 63 timing processes of a quick run took 0.7 to 1.1 ms."""

OUTSIDE_S = 0.1
"""What a process costs its run before its clock starts and after its last pass: fork, message, answer, record."""

LEAST_SAMPLED_S = 0.08
"""If there are few passes because one variant is slow, the blocks of the others are longer, to have so much time in
all: 44 to 220 ms were best by the variances of four benchmarks within and between processes."""

SLOW_BLOCK_S = 0.003
FEWEST_PASSES = 6
SLOW_PASSES_S_PER_VARIANT = 3.0
FEWEST_SLOW_PASSES = 2
"""If blocks take longer than SLOW_BLOCK_S, passes are cut to the time of all blocks of that length. At least three
shuffled orders with their reverses remain, which is one more block than a clean process needs. If these take longer
than SLOW_PASSES_S_PER_VARIANT for each variant, at least one order and its reverse remain. So a process of one variant
of 5 s a call makes six calls: the first, two to warm up, two passes, and one of time until return. With 10 s a call, it
makes four."""

RETURN_S = 0.02
FEWEST_RETURNS, MOST_RETURNS = 3, 50
"""Single calls for the time until return: as many as take RETURN_S, or one slow call."""

QUEUE, ISOLATED, RETURN = "queue", "isolated", "return"
SIDE_PROCESSES = {QUEUE: 5, ISOLATED: 3, RETURN: 5}
"""Processes that also take these side times. An interval needs at least three. With five, its half-width is 1.2
standard deviations, which for the speedup by queueing is 6 %. Time alone serves a note. In all processes, side times
took a quarter of the time of a quick run's timing."""

QUEUE_S = 0.1
"""Longest duration of a queue, except a queue of FEWEST_QUEUED calls. Chosen: waiting costs at most about 0.1 ms a
call, which is 0.2 % of a call of 0.05 s; the queue has two of those. Calls of SLOW_CALL_S are not queued at all."""

QUEUE_PASSES = 20
"""Passes in which calls are queued, spread over all passes. For two programs on two busy cores, the speedup by queueing
scattered by 5 % between processes with 36 and 70 passes."""

ISOLATED_BLOCKS = 5
ISOLATED_S = 0.3
"""Blocks of one variant alone, if all of them take no longer than ISOLATED_S. For a call of 0.06 s, refilling 32 MiB of
caches at 10 GB/s is about 5 %. Chosen, not measured: as many blocks as a clean process needs, for a note."""

TURN_S = 0.02
"""A block's length if two processes take turns: waking the other process takes 0.1 ms, which is 0.5 % of a block."""

TURNS = 10
"""Turns of each variant in a round of two processes. The ratios of eight programs, two environments on one core,
scattered between rounds by 1.3 % with 4 turns, and by 1.2 % with 12 and with 40. More processes help more."""

LOCK_STEP_ROUNDS = 8
"""Fewest rounds if there is time: with these, ratios that scatter by 1.2 % have 99 % intervals of ± 1.5 %."""


def count_queued(call_s: float, declared: int) -> int:
    """Return how many calls a queue has: those that are declared, or fewer where calls are slow; 0 without a queue."""
    if declared < FEWEST_QUEUED or call_s >= SLOW_CALL_S:
        return 0
    return declared if declared * call_s <= QUEUE_S else max(FEWEST_QUEUED, int(QUEUE_S / call_s))


def count_passes(blocks_s: Collection[float], settings: Settings) -> int:
    """Return the number of passes, which is even: `settings.blocks`, or fewer if calls are slow.

    Args:
      blocks_s: Shortest time of a block of each variant, or of its rows of calls.
    """
    pass_s = math.fsum(blocks_s)

    def fit(s_per_variant: float) -> int:
        return int(round(s_per_variant * len(blocks_s) / pass_s, 9))

    usual_s = settings.blocks * max(SLOW_BLOCK_S, settings.block_s)
    passes = max(min(FEWEST_PASSES, fit(SLOW_PASSES_S_PER_VARIANT)), min(settings.blocks, fit(usual_s)))
    return max(FEWEST_SLOW_PASSES, 2 * (passes // 2))


def share_passes(blocks_s: Collection[float], before_s: float) -> int:
    """Return how many passes pay in a process, an even number: more would cost more than another process gains.

    Args:
      blocks_s: As for `count_passes`.
      before_s: What the process took before its first pass.
    Source: Kalibera & Jones, Rigorous Benchmarking in Reasonable Time, 2013, section 6: the square root of the ratio of
      costs times the ratio of standard deviations.
    """
    pass_s = math.fsum(blocks_s) + len(blocks_s) * AROUND_BLOCK_S
    block_s = math.fsum(blocks_s) / len(blocks_s)
    scatter = SCATTER * math.pow(max(1.0, block_s / SCATTER_BLOCK_S), SCATTER_EXPONENT)
    passes = scatter * math.sqrt((before_s + OUTSIDE_S) / pass_s)
    return max(FEWEST_PASSES, 2 * round(passes / 2))


def is_among(place: int, chosen: int, of: int) -> bool:
    """Return whether a place is one of so many that are spread evenly over all."""
    return (place + 1) * chosen // of > place * chosen // of
