"""The smallest detectable differences of a run, and the causes of speedups that scatter far more than its others."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from jaxmeter.document import numbers
from jaxmeter.harness.metrics.metric import Readable, Reading
from jaxmeter.harness.metrics.moderation import kind_of_ratio, list_sides
from jaxmeter.harness.metrics.reading import Variant
from jaxmeter.harness.metrics.statistics import (
    FEWEST_PROCESSES,
    MINIMUM_EFFECT,
    UNEQUALLY_PARALLEL,
    find_shared_half,
    find_variance,
)
from jaxmeter.harness.record import Settings
from jaxmeter.harness.record.cases import NATIVE

WILD = 10.0
"""Multiple of the usual standard deviation, the median of the run's speedups, from which on a speedup is wild. In a
default run on two cores, 6 of 159 speedups were wild, compared with a usual 4 %."""

LEAST_STEP = 0.5
BY_CHANCE = 0.01
"""Two speeds: the step between the two groups of processes is at least LEAST_STEP of the range of all processes. The
probability of such a step, if equally many processes are uniformly distributed in this range, is at most BY_CHANCE."""

SLOW_PROCESS, FEW = 1.5, 0.2
"""A process is far slower than the others beyond SLOW_PROCESS times their median, if at most FEW of all are."""

SHORT_CALL_S = 100e-6
"""Waking a thread takes 10 to 60 us on two shared cores, which is a large part of calls that are shorter."""

LEAST_OF_ONE_SPEED = 2
"""Fewest processes of a speed: a single process is an outlier."""

_OF_SEVERAL_PROGRAMS = ("eager", "mixed")


@dataclass(frozen=True)
class _Speeds:
    """Two groups of processes, as their places in a sequence of times."""

    fast: tuple[int, ...]
    slow: tuple[int, ...]


def list_smallest(variants: Iterable[Variant]) -> Iterator[float]:
    """Yield the smallest detectable difference of each speedup, as a share."""
    return (smallest for variant in variants if (smallest := find_smallest(variant)) is not None)


def find_smallest(variant: Variant) -> float | None:
    """Return the smallest detectable difference of a variant's speedup, as a share; None without a speedup.

    It is half the verdict interval, and at least MINIMUM_EFFECT.
    """
    if variant.is_baseline or (half := _find_half(variant.read("speedup"), variant)) is None:
        return None
    return max(MINIMUM_EFFECT, half)


def _find_half(speedup: Reading, variant: Variant) -> float | None:
    """Return the half-width that the verdict interval would have around a speedup of 1; None without an interval."""
    interval = speedup.verdict_interval
    if interval is None or interval.low is None or interval.high is None or interval.estimate <= 0:
        return None
    half = math.log(interval.high / interval.estimate)
    beyond = max(0.0, speedup.shared - variant.pool.find_shared_of_ratio(0.0, *list_sides(variant)))
    of_each_look = 1 - (1 - variant.settings.confidence) / speedup.looks
    return math.expm1(math.sqrt(max(0.0, half**2 - find_shared_half(beyond, of_each_look) ** 2)))


def describe_smallest(smallest: Sequence[float]) -> str:
    """Return a sentence on the smallest detectable differences of a run's speedups; empty if there are none."""
    if not smallest:
        return ""
    if len(smallest) == 1:
        return f"Smallest detectable difference of its one speedup: {_write_difference(smallest[0])}"
    tenths = statistics.quantiles(smallest, n=10, method="inclusive")
    median, most = map(_write_difference, (tenths[4], tenths[8]))
    return f"Smallest detectable difference of {len(smallest)} speedups: median {median}, 90th percentile {most}"


def suggest_more(smallest: Sequence[float], settings: Settings) -> str:
    """Return a sentence on how to detect smaller differences; empty if their median is already the minimum effect."""
    if not smallest or statistics.median(smallest) <= MINIMUM_EFFECT:
        return ""
    if settings.processes is not None:
        measures = "More processes (--processes)"
    elif settings.level == "quick":
        measures = "A default run, or fewer cases (--select),"
    else:
        measures = "A longer run (--budget), or fewer cases (--select),"
    return f"{measures} can detect smaller differences."


def _write_difference(share: float) -> str:
    """Return `13 %`, `5.9 %`, or `a factor of 15`."""
    return numbers.percent(share) if share < 1 else f"a factor of {numbers.roughly(1 + share)}"


def is_wild(variance: float, usual: float) -> bool:
    """Return whether a speedup scatters far more than is usual in its run.

    Args:
      variance: Variance of the logarithms of the speedup over its processes.
      usual: Median variance of the run's speedups.
    """
    return usual > 0 and variance >= WILD**2 * usual


def explain_scatter(source: Readable) -> str:
    """Return why a variant's speedup scatters far more than the run's others, as text; empty for other speedups."""
    baseline = source.find(source.planned_case.baseline)
    logs = [value for value in _values_of(source, "log_ratio") if value is not None]
    if baseline is None or len(logs) < FEWEST_PROCESSES or source.read("speedup").interval is None:
        return ""
    usual = source.pool.usual_ratios.get(kind_of_ratio(source, baseline))
    variance = find_variance(logs)
    if usual is None or not is_wild(variance, usual):
        return ""
    times = math.sqrt(variance / usual)
    why = _explain((source, baseline))
    return f"the speedup scatters {times:.0f} times as much between processes as is usual in this run; {why}"


def _explain(sides: Sequence[Readable]) -> str:
    """Return what the record shows of the variant whose times scatter more."""
    side = max(sides, key=_measure_scatter)
    name, mode = side.planned.name, side.planned.mode
    times_s = _values_of(side, "execution_s")
    if (speeds := find_two_speeds(times_s)) is not None:
        fast_s, slow_s = (
            statistics.median([times_s[place] or 0.0 for place in places]) for places in (speeds.fast, speeds.slow)
        )
        return (
            f"{name} has two speeds, {numbers.time(fast_s)} in {len(speeds.fast)} of "
            f"{len(speeds.fast) + len(speeds.slow)} processes and {numbers.time(slow_s)} in the others"
            f"{_describe_shared_core(side, speeds)}"
        )
    if (sentence := _describe_slow_processes(side)) is not None:
        return sentence
    if mode == NATIVE:
        return f"{name} runs in processes of its own, so momentary interference does not cancel"
    if mode in _OF_SEVERAL_PROGRAMS:
        return f"each call of {name} starts several programs, and threads can run on different cores in each process"
    return f"the processes of {name} differ, and the record does not show why"


def _describe_slow_processes(side: Readable) -> str | None:
    """Describe a few processes that are far slower than the others; None if there are none.

    Calls of microseconds that wake a second thread are the usual case: the hypervisor can delay each wake-up.
    """
    times_s = [time_s for time_s in _values_of(side, "execution_s") if time_s is not None and time_s > 0]
    if not times_s:
        return None
    usual_s = statistics.median(times_s)
    slow_s = [time_s for time_s in times_s if time_s > SLOW_PROCESS * usual_s]
    if not 0 < len(slow_s) <= FEW * len(times_s):
        return None
    parallelism = [value for value in _values_of(side, "parallelism") if value is not None]
    is_woken = usual_s < SHORT_CALL_S and parallelism and statistics.median(parallelism) > 1 + UNEQUALLY_PARALLEL
    woken = ", possibly because each of its short calls wakes a second thread" if is_woken else ""
    return (
        f"{side.planned.name} takes up to {numbers.time(max(slow_s))} in {len(slow_s)} of {len(times_s)} processes, "
        f"usually {numbers.time(usual_s)}{woken}"
    )


def find_two_speeds(times_s: Sequence[float | None]) -> _Speeds | None:
    """Return the fast and the slow group of processes if the times have two speeds; None otherwise.

    Args:
      times_s: Time of each process; None if a process has no time.
    """
    known = sorted(
        (math.log(time_s), place) for place, time_s in enumerate(times_s) if time_s is not None and time_s > 0
    )
    if len(known) < 2 * LEAST_OF_ONE_SPEED:
        return None
    logs = [log for log, _ in known]
    steps = [after - before for before, after in pairwise(logs)]
    cut = max(range(len(steps)), key=steps.__getitem__) + 1
    groups = tuple(tuple(place for _, place in group) for group in (known[:cut], known[cut:]))
    inner = len(known) - 3  # steps with at least two processes before and after them
    least = max(LEAST_STEP, 1 - (BY_CHANCE / inner) ** (1 / (len(known) - 2)))
    is_apart = steps[cut - 1] >= least * (logs[-1] - logs[0]) > 0
    return _Speeds(*groups) if is_apart and min(map(len, groups)) >= LEAST_OF_ONE_SPEED else None


def _describe_shared_core(side: Readable, speeds: _Speeds) -> str:
    """Return a phrase if threads possibly shared a core: the slow processes had lower parallelism; else empty."""
    parallelism = _values_of(side, "parallelism")
    fast, slow = (
        [value for place in places if place < len(parallelism) and (value := parallelism[place]) is not None]
        for places in (speeds.fast, speeds.slow)
    )
    if not fast or not slow:
        return ""
    usual, shared = statistics.median(fast), statistics.median(slow)
    if shared > usual * (1 - UNEQUALLY_PARALLEL):
        return ""
    return f", possibly because its threads shared a core there: parallelism {shared:.2g} instead of {usual:.2g}"


def _measure_scatter(side: Readable) -> float:
    logs = [math.log(value) for value in _values_of(side, "execution_s") if value is not None and value > 0]
    return find_variance(logs) if len(logs) >= LEAST_OF_ONE_SPEED else 0.0


def _values_of(side: Readable, metric: str) -> Sequence[float | None]:
    """Return a metric's value of each process; None if a process has no plausible value."""
    return side.read(metric).values
