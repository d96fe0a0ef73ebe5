"""From samples to numbers with intervals, and the bounds of a rate. Pure functions, no jax."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from scipy.special import betaincinv, ndtri, stdtr, stdtrit

VERSION = 7
"""Stored with every summary; a change of what is stored of a process raises it. Intervals are made on reading."""

CONFIDENCE = 0.99
"""Of the intervals that verdicts go by."""

SHOWN_CONFIDENCE = 0.95
"""Of the intervals that are shown."""

MINIMUM_EFFECT = 0.03
"""The smallest difference worth a verdict: the A/A differences of one process reach about 2 % on a busy machine."""

BETWEEN_RUNS = 0.035
"""Standard deviation of the logarithms of normalised times from run to run, beyond the deviation of processes: those of
one run share its hour. It was 0 to 3.4 % in the six pairs of four default runs, started 28 to 88 minutes apart, by
which it was chosen. With it, 99 % intervals contained the other run's times in 94.9 to 98.5 % of cases, without it in
84 to 89 %. In three runs of the next day, by which it was not chosen, they contained 96.6 to 98.0 %. It is only known
for machines whose speed varies: no machine with a constant calibration loop was measured."""

RATIOS_BETWEEN_RUNS = 0.02
LOG_UNLIKE = 0.15
"""Standard deviation, from run to run, of the logarithms of ratios within a process. It applies in full from the
logarithm LOG_UNLIKE on (a ratio of 1.16), and in proportion below it: variants with similar times are slowed alike.

It was measured in the 45 pairs of ten default runs, half an hour to eight hours apart. It was 0 for ratios below 1.1,
0 to 0.8 % up to 1.6, and 0.8 to 3.9 % above, most where calls move 4 MB or more. With 1.5 %, 99 % intervals contained
95 to 98 % of the other run's ratios within two hours, in each of three periods, and 92 to 97 % without it. Three later
default runs have narrower intervals. Their three pairs determined the value: the smallest, in steps of 0.25 %,
with which at least 95 % of the other runs' ratios are contained: 802 of 838. With 1.75 % these are 796, 94.99 %, with
1.5 % 791. It hardly affects whether a ratio differs from 1: it is small compared with the ratio's logarithm.

A ratio to a peer, which has a process of its own, has the error of a time. Without this error, 99 % intervals contained
91 % of 648 peers' ratios; with 3 %, they contained 95 %."""

FEWEST_PROCESSES = 3
"""Fewer replicates give no interval."""

FEWEST_CLEAN_SHARE = 0.5
"""Fewest clean processes, as a share of all: fewer are a selection, and not typical of all."""

FEWEST_CLEAN_BLOCKS = 5
FEWEST_CLEAN_S = 0.02
"""Quiet blocks, and time in them, that a process needs for a trusted absolute time: ten blocks of 2 ms. With ten, times
scatter hardly more between processes than with forty (standard deviations of 20 and 18 %). If calls are so slow that
there are fewer than five blocks, all must be quiet."""

LARGEST_WAIT = 0.10
"""Largest share of the time that the threads of a quiet block were ready to run, but had no core. On two cores, code on
two threads took 3 to 4 % longer when these waited up to 20 % of the wall time, which is 10 % of both threads' time.
Beyond that, it took up to twice as long. The share is per thread, so it means the same on many cores."""

OWN_WAIT = 0.06
"""Code on several threads waits up to this share by itself: on an idle machine 5 to 12 % of two threads' wall time."""

LARGEST_OTHERS = 0.2
COUNTED_WITHIN_S = 0.05
"""Largest share of one core, plus seconds, that other processes may use during a process before its threads' waits
count. A median over blocks is not affected if one block in five is disturbed. The kernel counts in ticks of 10 ms. When
nothing else ran, its sum was off by 0.014 s: one standard deviation of 280 processes of 0.2 to 0.4 s, on two cores."""

LARGEST_LOSS = 0.1
"""Largest share of a process's time that the hypervisor or a quota may take; beyond it, the process is contended.

Source: 4381 timings of 208 variants in two default runs, on two cores. If less than 2 % was taken, 3 % of the times
were above 1.5 times the usual one. If 5 to 10 % was taken, 10 % of them were; for 10 to 15 %, 22 %; for 15 to 20 %,
38 %; above 30 %, 85 %. Calls of a few microseconds that wake a second thread suffer most: up to twelve times."""

FULL_SPEED_SHARE = 0.05
SLOWED = 1.2
"""A core is slow if its calibration loop takes more than 1.2 times its 5th percentile. On a virtual machine of two
cores the loop took 28 us, or 47 to 50 us. The core was slow next to 20 % of the blocks of one default run, and next to
49 and 74 % of two others. If fewer than 5 % of a case's blocks are at full speed, the slow speed counts as full."""

SLOW_SPELL_S = 0.04
"""As long as a core is slow at a time, at most: what lasts longer met several such spells and the time between them."""

SLOWEST_SAMPLES = 0.1
FEWEST_CUT = 4
"""The slowest tenth of a block's samples, at least one of FEWEST_CUT or more, does not count: an interruption of a
millisecond hits one of ten samples of 0.2 ms."""

SLOWEST_CLOCK = 0.75
"""Of its highest clock: below it, a device's times are not its own. NVBench's rule (its throttle threshold)."""

MOST_SLOW_STATES = 0.25
"""Of a process's looks at a device. A median over blocks does not mind a few that were slow."""

UNEQUALLY_PARALLEL = 0.2
"""Two variants whose parallelism (processor time over wall time) differs by more lose unequally if a core is lost. Code
on one thread has a parallelism of 1.0, on two threads of 1.6 to 2.0."""

ALTERNATION_EFFECT = 0.05
SHORTEST_ALTERNATED_S = 1e-3
"""A note is given for a variant whose calls take longer by more than this share when interleaved than when alone. For
calls longer than a millisecond, the caches hold the other variant's data at first. Blocks of shorter calls mostly find
their own data."""


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
class VariancePrior:
    """The variance that a variant borrows from the run's other variants.

    Args:
      variance: The other variants' variance, s0².
      degrees: Number of degrees of freedom that it counts for, d0; may be infinite.
      most_degrees: Upper limit of own and borrowed degrees of freedom together.
    """

    variance: float
    degrees: float
    most_degrees: float

    def moderate(self, variance: float, degrees: float) -> tuple[float, float]:
        """Return a moderated variance with its degrees of freedom. Source: Smyth 2004, section 4."""
        if math.isinf(self.degrees):
            return self.variance, self.most_degrees
        together = degrees + self.degrees
        moderated = (degrees * variance + self.degrees * self.variance) / together
        return moderated, min(together, self.most_degrees)


@dataclass(frozen=True)
class PseudoProcess:
    """One additional process with the run's usual deviation; it may widen an interval, and never narrows one.

    Occasionally a process is off by half, because its threads were placed badly. If none of a ratio's few processes is,
    the ratio seems more precise than it is. This rule was chosen by two default runs. Ordinary 99 % intervals contained
    92 % of the other run's ratios; with the additional process they contained 96 %, at the same median width
    (benchmarks/README.md).

    Args:
      variance: Variance of the logs, the median over the run's ratios.
    """

    variance: float

    def moderate(self, variance: float, degrees: float) -> tuple[float, float]:
        """Return a variance with its degrees of freedom, which remain those of the real processes."""
        return max(variance, (degrees * variance + self.variance) / (degrees + 1)), degrees


VarianceModeration = VariancePrior | PseudoProcess


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
    borrowed: VarianceModeration | None = None,
    shared: float = 0.0,
) -> Interval:
    """Return the mean with a t interval.

    Args:
      values: One per process, shape (k,), k >= 1.
      confidence: Confidence level of the interval, over all interim analyses together.
      looks: Number of interim analyses that decided whether to go on; the error is divided among them.
      borrowed: The variance of other variants; with a prior, the interval is that of the moderated t.
      shared: Variance of the part that all processes of a run share, which more processes do not reduce.
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
    """Return half the interval of an error of known variance. Add it to half the interval of a mean in quadrature.

    Degrees of freedom by Welch and Satterthwaite would be too many: with three processes they made the interval of the
    sum narrower than that of the processes alone.
    """
    return float(ndtri((1 + confidence) / 2)) * math.sqrt(variance)


def geometric_interval(
    values: Sequence[float],
    *,
    confidence: float = CONFIDENCE,
    looks: int = 1,
    borrowed: VarianceModeration | None = None,
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
    borrowed: VarianceModeration | None = None,
    shared: float = 0.0,
) -> Interval:
    """Return how many times faster a variant is than its baseline variant, with a t interval over processes.

    Args:
      log_ratios: One per process, shape (k,): `paired_log_ratio`.
    Returns:
      Interval, dimensionless; above 1 is faster.
    Source: Kalibera & Jones, Rigorous Benchmarking in Reasonable Time, 2013, section 7.
    """
    return exponentiate(mean_interval(log_ratios, confidence=confidence, looks=looks, borrowed=borrowed, shared=shared))


def differs(ratio: Interval, *, minimum_effect: float = MINIMUM_EFFECT) -> bool:
    """Return whether a ratio's interval for verdicts excludes 1 and its estimate is beyond the minimum effect."""
    low, high = ratio.decisive.low, ratio.decisive.high
    if low is None or high is None:
        return False
    return not low <= 1 <= high and abs(math.log(ratio.estimate)) > math.log1p(minimum_effect)


def exponentiate(logs: Interval) -> Interval:
    """Return the interval of a ratio or of a time from the interval of its log."""
    low = None if logs.low is None else math.exp(logs.low)
    high = None if logs.high is None else math.exp(logs.high)
    return Interval(low, math.exp(logs.estimate), high, logs.count)


def find_block_time(samples_s: Sequence[float]) -> float:
    """Return the seconds of a call in a block: the mean of the samples without the slowest SLOWEST_SAMPLES of them.

    A mean depends less than a median on how many calls make a sample. That number differs between variants and between
    processes, and few calls are far slower than the others, so the median of the samples rises with it. In 144
    processes, two equal programs of 8 us a call differed by 3.6 % by medians, and by 0.8 % by this mean. The standard
    deviation of their ratio between processes was 8.0 and 2.7 %. While another process used a core, the standard
    deviations of six such pairs were 1.2 to 5.3 % by medians and 1.2 to 4.2 % by this mean; by the mean of all
    samples, up to 7.7 %.

    Args:
      samples_s: One or more, seconds per call.
    """
    kept = len(samples_s) - (math.ceil(SLOWEST_SAMPLES * len(samples_s)) if len(samples_s) >= FEWEST_CUT else 0)
    return statistics.fmean(sorted(samples_s)[:kept])


def paired_log_ratio(baseline_s: Sequence[float], variant_s: Sequence[float]) -> float:
    """Return one process's log ratio: the median of log(baseline / variant) over its passes.

    Paired ratios are valid on a busy machine, where the ratio of the medians is not. There, a third of the passes or
    more may be far off. While another process used a core, processes of 22 pairs of programs scattered 33 and 35 % less
    than by the Hodges-Lehmann location of the same passes. On an idle machine the two are similar. The median scattered
    0 to 4 % less in one run of 28 ratios (3 to 15 % more by the root mean square, which few ratios dominate). In two
    earlier runs it scattered 4 and 6 % more.

    Args:
      baseline_s, variant_s: The blocks' times by pass, equal shapes (passes,).
    """
    return statistics.median(math.log(b / v) for b, v in zip(baseline_s, variant_s, strict=True))


def lost_share(waited_s: float, wall_s: float, cpu_s: float, cores: float) -> float:
    """Return the share of the time that threads were ready to run in which other processes had their core.

    If the threads sleep for most of the time, it is a share of the wall time: a thread that waits for a device needs
    little of a core.

    Args:
      waited_s: Time that the threads were ready and did not run, summed.
      wall_s: Wall time of the period.
      cpu_s: Time that the threads ran, summed.
      cores: Cores of the process. Its threads also wait for each other: time that the process itself used is not lost.
    """
    lost_s = min(waited_s, max(0.0, cores * wall_s - cpu_s))
    return lost_s / max(wall_s, lost_s + cpu_s) if lost_s > 0 else 0.0


def clean_blocks(waits: Sequence[float | None]) -> tuple[bool, ...]:
    """Return which blocks were quiet, by the share of their threads' time spent waiting for a core.

    Args:
      waits: One variant's blocks in one process, shape (blocks,); None where the system does not report the wait.
    Returns:
      True for a clean block. A block without a reading counts as clean.
    """
    known = sorted(wait for wait in waits if wait is not None)
    own = known[len(known) // 5] if known else 0.0
    limit = max(LARGEST_WAIT, 2 * min(own, OWN_WAIT))
    return tuple(wait is None or wait <= limit for wait in waits)


def agree(first: float, second: float, *, within: float) -> bool:
    """Return whether two positive values differ by at most the share `within` of the smaller."""
    return abs(first - second) <= within * min(first, second)


def take_logarithm(ratio: Interval) -> tuple[float, float] | None:
    """Return the logarithm of a ratio and half the width of its interval; None without bounds above 0."""
    low, high = ratio.low, ratio.high
    if low is None or high is None or not 0 < low <= ratio.estimate <= high < math.inf:
        return None
    return math.log(ratio.estimate), (math.log(high) - math.log(low)) / 2


def invert(amount: float, time: Interval | None) -> Interval | None:
    """Return an amount over a time, with the same probability: the bounds change places."""
    if time is None:
        return None
    low, high = (None if bound is None or bound <= 0 else amount / bound for bound in (time.high, time.low))
    return Interval(low, amount / time.estimate, high, time.count, invert(amount, time.verdict))


BOUNDS_CONFIDENCE = 0.95
"""Of the bounds of a rate."""


def bound_rate(count: int, of: int) -> tuple[float, float]:
    """Return the Clopper-Pearson interval of a proportion.

    Source: C. J. Clopper, E. S. Pearson, The use of confidence or fiducial limits, 1934.
    """
    tail = (1 - BOUNDS_CONFIDENCE) / 2
    low = 0.0 if count == 0 else float(betaincinv(count, of - count + 1, tail))
    high = 1.0 if count == of else float(betaincinv(count + 1, of - count, 1 - tail))
    return low, high


def hold_another(confidence: float, degrees: float) -> float:
    """Return how often a correct t interval contains the mean of an equal run, which has an error of its own.

    Args:
      degrees: Degrees of freedom of either run's variance.
    """
    reach = float(stdtrit(degrees, (1 + confidence) / 2)) / math.sqrt(2)
    return 2 * float(stdtr(degrees, reach)) - 1
