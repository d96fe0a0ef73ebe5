"""From samples to numbers with intervals. Pure functions, no jax.

The replicate is the process (a process), never the sample: see docs/method.md.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from scipy.special import ndtri, stdtrit

VERSION = 6
"""Stored with every summary; a change of what is stored of a process raises it. Intervals are made on reading."""

CONFIDENCE = 0.99
"""Of the intervals that verdicts go by."""

SHOWN_CONFIDENCE = 0.95
"""Of the intervals that are shown."""

MINIMUM_EFFECT = 0.03
"""The smallest difference worth a verdict: the A/A differences of one process reach about 2 % on a busy machine."""

BETWEEN_RUNS = 0.035
"""Of normalised times, the standard deviation of their logarithms from run to run, beyond what processes tell:
those of one run share its hour. It was 0 to 3.4 % in the six pairs of four default runs, begun 28 to 88 minutes apart,
by which it was chosen. With it 99 % intervals held the other run's times in 94.9 to 98.5 %, without it in 84 to 89 %.
In three runs of the next day, which it was not chosen by, they held 96.6 to 98.0 %. Only where the machine's speed
varied: no machine was measured whose calibration loop was constant."""

RATIOS_BETWEEN_RUNS = 0.015
LOG_UNLIKE = 0.15
"""The same of ratios within a process, in full from this logarithm on (1.16 times), below it in proportion: what takes
alike is slowed alike. In the 45 pairs of ten default runs, half an hour to eight hours apart, it was nothing below a
ratio of 1.1, 0 to 0.8 % up to 1.6, 0.8 to 3.9 % beyond, most where calls move 4 MB and more. Chosen, as the narrowest
by which 99 % intervals hold 95 % of the other run's ratios within two hours: 95 to 98 % in each of three stretches, 92
to 97 % without it. A ratio is told from 1 as before, as it is small beside the ratio's logarithm.

A ratio to a peer, which has a process of its own, has the error of a time. Without any, 99 % intervals held 91 % of
648 peers' ratios, with 3 % 95 %."""

FEWEST_PROCESSES = 3
"""Fewer replicates give no interval."""

FEWEST_CLEAN_SHARE = 0.5
"""Of the processes: where fewer are clean, those few are a selection of the rest, and no longer the usual ones."""

FEWEST_CLEAN_BLOCKS = 5
FEWEST_CLEAN_S = 0.02
"""Quiet blocks, and time in them, that a process needs before its absolute time is trusted: ten blocks of 2 ms,
with which times scatter hardly more between processes than with forty (sd 20 and 18 %). Where calls are so slow that
there are fewer than five blocks, all must be quiet."""

LARGEST_WAIT = 0.10
"""Share of the time in which a block's threads were ready to run, but had no core, before it counts as disturbed. On
two cores, code on two threads that waited up to 20 % of the wall time, 10 % of both threads', took 3 to 4 % longer,
beyond that up to twice as long. Being counted by threads, it means the same on many cores."""

OWN_WAIT = 0.06
"""Code on several threads waits up to this share by itself: on an idle machine 5 to 12 % of the wall time of two."""

LARGEST_OTHERS = 0.2
COUNTED_WITHIN_S = 0.05
"""Of one core, what other processes may run during a process before its threads' waits are held against it: a median
over blocks does not mind what disturbs one in five. The kernel counts in ticks of 10 ms: where nobody else ran, its sum
was off by 0.014 s (one standard deviation of 280 processes of 0.2 to 0.4 s, on two cores)."""

LARGEST_LOSS = 0.1
"""Share of a process's time that the hypervisor or a quota may take, before none of it is trusted. Over 4381 timings of
208 variants in two default runs, on two cores: where it took less than 2 %, 3 % of the times were beyond one and a half
times the usual one; where it took 5 to 10 % 10 %, from 10 to 15 % 22 %, from 15 to 20 % 38 %, beyond 30 % 85 %. Calls
of some microseconds that wake a second thread suffer most: up to twelve times."""

FULL_SPEED_SHARE = 0.05
SLOWED = 1.2
"""A core is slow where its calibration loop takes so many times as long as the least but one in twenty of it. On a
virtual machine of two cores it took 28 us, or 47 to 50. It was slow beside 20 % of the blocks of one default run,
beside 49 and 74 % of two others. Where fewer than that share of a case's blocks are at full speed, the slow speed
counts as full."""

SLOW_SPELL_S = 0.04
"""As long as a core is slow at a time, at most: what lasts longer met several such spells and the time between them."""

SLOWEST_CLOCK = 0.75
"""Of its highest clock: below it, a device's times are not its own. NVBench's rule (its throttle threshold)."""

MOST_SLOW_STATES = 0.25
"""Of a process's looks at a device. A median over blocks does not mind a few that were slow."""

UNEQUALLY_PARALLEL = 0.2
"""Two variants whose processor time over wall time differs by more lose unequally where a core is taken away: code on
one thread reads 1.0, on two 1.6 to 2.0."""

ALTERNATION_EFFECT = 0.05
SHORTEST_ALTERNATED_S = 1e-3
"""A variant is noted whose calls take longer beside others than alone by more than this share: in calls beyond a
millisecond the caches hold the other variant's data at first, while blocks of shorter ones are mostly their own."""


@dataclass(frozen=True)
class Interval:
    """An estimate between bounds, from `count` replicates. Bounds are null where there are too few.

    Args:
      verdict: The same with the bounds that verdicts go by; None where they are these.
    """

    low: float | None
    estimate: float
    high: float | None
    count: int
    verdict: Interval | None = None

    @property
    def decisive(self) -> Interval:
        """The one that verdicts go by."""
        return self.verdict or self

    @property
    def half_width(self) -> float | None:
        """Half the interval, relative to the estimate; None without bounds."""
        if self.low is None or self.high is None or self.estimate == 0:
            return None
        return (self.high - self.low) / 2 / abs(self.estimate)


@dataclass(frozen=True)
class Borrowed:
    """What the variants around one tell of its variance.

    Args:
      variance: Theirs, s0².
      degrees: For how many degrees of freedom it counts, d0; may be infinite.
      most_degrees: Own and borrowed ones together are no more.
    """

    variance: float
    degrees: float
    most_degrees: float

    def moderate(self, variance: float, degrees: float) -> tuple[float, float]:
        """A variance with its degrees, moderated: Smyth 2004, section 4."""
        if math.isinf(self.degrees):
            return self.variance, self.most_degrees
        together = degrees + self.degrees
        moderated = (degrees * variance + self.degrees * self.variance) / together
        return moderated, min(together, self.most_degrees)


@dataclass(frozen=True)
class PseudoProcess:
    """One process more, that deviates as is usual in the run; it may widen an interval, and never narrows one.

    Now and then a process is off by half, since its threads were placed badly. A ratio whose few processes met none of
    those looks better known than it is: of the two default runs that this was chosen by, ordinary 99 % intervals held
    the other run's ratios in 92 %, with this process in 96 %, the median width being the same (benchmarks/README.md).

    Args:
      variance: Of the logs, the median over the run's ratios.
    """

    variance: float

    def moderate(self, variance: float, degrees: float) -> tuple[float, float]:
        """A variance with its degrees, which stay those of the processes that there are."""
        return max(variance, (degrees * variance + self.variance) / (degrees + 1)), degrees


Lent = Borrowed | PseudoProcess


def find_variance(values: Sequence[float]) -> float:
    """Of a sample, shape (k,), k >= 2. `statistics.variance` is exact, and takes ten times as long.

    Raises:
      OverflowError: The values differ by more than a float can hold.
    """
    centre = math.fsum(values) / len(values)
    return math.fsum([(value - centre) ** 2 for value in values]) / (len(values) - 1)


def mean_interval(
    values: Sequence[float],
    *,
    confidence: float = CONFIDENCE,
    looks: int = 1,
    borrowed: Lent | None = None,
    shared: float = 0.0,
) -> Interval:
    """Mean with a t interval.

    Args:
      values: One per process, shape (k,), k >= 1.
      confidence: Of the interval, over all looks together.
      looks: How often the processes were looked at to decide whether to go on; the error is shared among them.
      borrowed: What other variants tell of the variance; of a prior it makes the moderated t.
      shared: Variance of what all processes of a run share, so that more processes do not lessen it.
    Raises:
      ValueError: No values.
    """
    if not values:
        raise ValueError("mean_interval needs at least one value")
    count = len(values)
    centre = math.fsum(values) / count
    of_each_look = 1 - (1 - confidence) / looks
    if count < FEWEST_PROCESSES or not 0 <= of_each_look < 1:  # a record may hold any number
        return Interval(None, centre, None, count)
    variance, degrees = find_variance(values), count - 1.0
    if borrowed is not None:
        variance, degrees = borrowed.moderate(variance, degrees)
    own = -float(stdtrit(degrees, (1 - of_each_look) / 2)) * math.sqrt(variance / count)
    half = math.hypot(own, find_shared_half(shared, of_each_look))
    return Interval(centre - half, centre, centre + half, count)


def find_shared_half(variance: float, confidence: float) -> float:
    """Half the interval of an error of a known variance. Beside that of a mean both add as the sides of a right angle.

    Degrees of freedom by Welch and Satterthwaite would be those of a sum that is known better than its worse part: with
    three processes they made the sum's interval narrower than that of the processes alone.
    """
    return float(ndtri((1 + confidence) / 2)) * math.sqrt(variance)


def geometric_interval(
    values: Sequence[float],
    *,
    confidence: float = CONFIDENCE,
    looks: int = 1,
    borrowed: Lent | None = None,
    shared: float = 0.0,
) -> Interval:
    """Geometric mean with a t interval on the logs, for times of processes: shape (k,), all > 0.

    Raises:
      ValueError: No values, or one that is not positive.
    """
    logs = [math.log(value) for value in values]
    return exponentiate(mean_interval(logs, confidence=confidence, looks=looks, borrowed=borrowed, shared=shared))


def speedup(
    log_ratios: Sequence[float],
    *,
    confidence: float = CONFIDENCE,
    looks: int = 1,
    borrowed: Lent | None = None,
    shared: float = 0.0,
) -> Interval:
    """How many times faster a variant is than its baseline variant, with a t interval over processes.

    Args:
      log_ratios: One per process, shape (k,): `paired_log_ratio`.
    Returns:
      Interval, dimensionless; above 1 is faster.
    Source: Kalibera & Jones, Rigorous Benchmarking in Reasonable Time, 2013, section 7.
    """
    return exponentiate(mean_interval(log_ratios, confidence=confidence, looks=looks, borrowed=borrowed, shared=shared))


def differs(ratio: Interval, *, minimum_effect: float = MINIMUM_EFFECT) -> bool:
    """Whether a ratio's interval for verdicts excludes 1 and its estimate is beyond the minimum effect."""
    low, high = ratio.decisive.low, ratio.decisive.high
    if low is None or high is None:
        return False
    return not low <= 1 <= high and abs(math.log(ratio.estimate)) > math.log1p(minimum_effect)


def exponentiate(logs: Interval) -> Interval:
    """The interval of a ratio, or of a time, from that of its log."""
    low = None if logs.low is None else math.exp(logs.low)
    high = None if logs.high is None else math.exp(logs.high)
    return Interval(low, math.exp(logs.estimate), high, logs.count)


def paired_log_ratio(baseline_s: Sequence[float], variant_s: Sequence[float]) -> float:
    """One process's log ratio: the median of log(baseline / variant) over its passes.

    Paired ratios hold on a busy machine, where the ratio of the medians does not. There a third of the passes and more
    may be far off: processes of 22 pairs of programs scattered 33 and 35 % less than by the Hodges-Lehmann location of
    the same passes, beside a process that used a core. On an idle machine both are alike: 0 to 4 % less in one run of
    28 ratios (3 to 15 % more by their root mean square, in which few count), 4 and 6 % more in two earlier ones.

    Args:
      baseline_s, variant_s: The blocks' medians by pass, equal shapes (passes,).
    """
    return statistics.median(math.log(b / v) for b, v in zip(baseline_s, variant_s, strict=True))


def lost_share(waited_s: float, wall_s: float, cpu_s: float, cores: float) -> float:
    """Share of the time that threads were ready to run, in which something else had the core that they lacked.

    Of the wall time, where they sleep for most of it: what waits for a device misses little of a core.

    Args:
      waited_s: Time that the threads were ready and did not run, added up.
      wall_s: Of the stretch.
      cpu_s: Time that they ran, added up.
      cores: Threads of one process also wait for each other: what the process itself used of its cores, nobody took.
    """
    lost_s = min(waited_s, max(0.0, cores * wall_s - cpu_s))
    return lost_s / max(wall_s, lost_s + cpu_s) if lost_s > 0 else 0.0


def clean_blocks(waits: Sequence[float | None]) -> tuple[bool, ...]:
    """Which blocks were quiet, by the share of their threads' time spent waiting for a core.

    Args:
      waits: One variant's blocks in one process, shape (blocks,); null where the system does not tell.
    Returns:
      True for a clean block. A block without a reading counts as clean: nothing speaks against it.
    """
    known = sorted(wait for wait in waits if wait is not None)
    own = known[len(known) // 5] if known else 0.0
    limit = max(LARGEST_WAIT, 2 * min(own, OWN_WAIT))
    return tuple(wait is None or wait <= limit for wait in waits)


def agree(first: float, second: float, *, within: float) -> bool:
    """Whether two positive values differ by at most the share `within` of the smaller."""
    return abs(first - second) <= within * min(first, second)
