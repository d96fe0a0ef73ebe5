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
"""Shortest call whose first two timed calls are warm-up blocks, because the first call of the variant preceded them. If
the two blocks disagree, more follow. Its time until return has only one sample. In a default run, warm-up took 258 s of
1800 s, mostly for such calls."""

WARM_UP_BLOCK_S = 0.005
"""Chosen, not measured: two slow samples of about 25 do not count."""

SLOW_CALL_S = WARM_UP_LIMIT_S
"""Shortest call whose warm-up has only two calls."""

ONE_PASS_S = 10.0
"""A call of this length warms up by itself, and the first block shows whether it was steady; its time until return is
not timed. A shorter call is called twice: delays that occur once in a process are shorter than this."""

MOST_CALLS = 1_000_000
"""Largest number of calls in a sample of 200 us: no call takes less than a nanosecond."""

SCATTER = 10.0
SCATTER_BLOCK_S = 0.002
SCATTER_EXPONENT = -0.25
"""Quotient of two standard deviations of a ratio: that of a single pass, divided by the additional standard deviation
between processes. SCATTER is the quotient for blocks of SCATTER_BLOCK_S. For longer blocks, the quotient is
proportional to the block length to the power SCATTER_EXPONENT. In a default run on two cores, the standard deviation of
46 ratios between processes fell from 8.1 to 6.1 and 4.6 % with 10, 20 and 32 passes. So a single pass has 26 %, and
processes have at most 3 % in addition. Single passes had 20 % with blocks of 3 ms, 13 % with 20 ms, 10 % with 65 ms and
5 % with 200 ms (`python -m benchmarks.run_time`)."""

AROUND_BLOCK_S = 0.0008
"""Time of a block in addition to its samples: counters and the calibration loop before and after the block, and a share
of the untimed calls on drawn cores. 63 timing processes of a quick run took 0.7 to 1.1 ms."""

OUTSIDE_S = 0.1
"""Time that a process costs its run before its clock starts and after its last pass: fork, message, answer, record."""

LEAST_SAMPLED_S = 0.08
"""Least total time of a variant's blocks, also with few passes. If a slow variant limits the number of passes, the
blocks of the other variants are longer. By the variances of four benchmarks within and between processes, 44 to 220 ms
were best."""

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
"""Number of single calls for the time until return: as many as take RETURN_S, within these limits, or one slow call."""

QUEUE, ISOLATED, RETURN = "queue", "isolated", "return"
SIDE_PROCESSES = {QUEUE: 5, ISOLATED: 3, RETURN: 5}
"""Number of processes that also measure each side time. An interval needs at least three processes. With five, its
half-width is 1.2 standard deviations: 6 % for the speedup by queueing. Only a note uses the time of a variant alone. In
all processes, side times took a quarter of the time of a quick run's timing."""

QUEUE_S = 0.1
"""Longest duration of a queue, except a queue of FEWEST_QUEUED calls. Chosen: waiting costs at most about 0.1 ms a
call, which is 0.2 % of a call of 0.05 s; the queue has two of those. Calls of SLOW_CALL_S are not queued at all."""

QUEUE_PASSES = 20
"""Number of passes with queued calls, spread over all passes. For two programs on two busy cores, the standard
deviation of the speedup by queueing between processes was 5 % with 36 and with 70 passes."""

ISOLATED_BLOCKS = 5
ISOLATED_S = 0.3
"""Number of blocks of each variant alone, if all of these blocks take at most ISOLATED_S. For a call of 0.06 s, a
refill of 32 MiB of caches at 10 GB/s is about 5 %. Chosen, not measured: as many quiet blocks as an uncontended process
needs, because only a note uses this time."""

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
    """Return the best number of passes of a process, an even number: more passes would help less than more processes.

    Args:
      blocks_s: As for `count_passes`.
      before_s: Seconds from the start of the process to its first pass.
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
