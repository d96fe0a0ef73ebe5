"""How small a difference a run can detect, and which speedups scatter far more than its others, and why."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from jaxmeter.harness.metrics.metric import Readable, Reading
from jaxmeter.harness.metrics.pool import kind_of_ratio, list_sides
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

WILD = 5.0
"""Times the usual standard deviation, the median of the run's speedups, from which on a speedup is wild. Of 172
speedups of a default run on two cores, 14 were: 29 to 57 %, where 6 % were usual. The 90th percentile was 3.3 times."""

LEAST_STEP = 0.5
BY_CHANCE = 0.01
"""Two speeds: the step between the two groups of processes is at least LEAST_STEP of their whole range, and larger than
it is in BY_CHANCE of equally many processes that lie anywhere in that range."""

LEAST_OF_ONE_SPEED = 2
"""Processes: a single one is an outlier, not a speed."""

_OF_SEVERAL_PROGRAMS = ("eager", "mixed")


@dataclass(frozen=True)
class _Speeds:
    """Two groups of processes, by their places."""

    fast: tuple[int, ...]
    slow: tuple[int, ...]


def list_smallest(variants: Iterable[Variant]) -> Iterator[float]:
    """Yield the smallest detectable difference of each speedup: half the width of its interval for verdicts."""
    for variant in variants:
        speedup = variant.read("speedup")
        if not variant.is_baseline and (half := _find_half(speedup, variant)) is not None:
            yield max(MINIMUM_EFFECT, half)


def _find_half(speedup: Reading, variant: Variant) -> float | None:
    """Return half the interval as it would be around a speedup of 1, from which a difference is distinguished."""
    interval = speedup.verdict_interval
    if interval is None or interval.low is None or interval.high is None or interval.estimate <= 0:
        return None
    half = math.log(interval.high / interval.estimate)
    beyond = max(0.0, speedup.shared - variant.pool.find_shared_of_ratio(0.0, *list_sides(variant)))
    of_each_look = 1 - (1 - variant.settings.confidence) / speedup.looks
    return math.expm1(math.sqrt(max(0.0, half**2 - find_shared_half(beyond, of_each_look) ** 2)))


def describe_smallest(smallest: Sequence[float]) -> str:
    """Say how small a difference a run's speedups can detect; empty where no speedup has an interval."""
    if not smallest:
        return ""
    if len(smallest) == 1:
        return f"Smallest detectable difference of its one speedup: {_write_difference(smallest[0])}"
    tenths = statistics.quantiles(smallest, n=10, method="inclusive")
    median, most = map(_write_difference, (tenths[4], tenths[8]))
    return f"Smallest detectable difference of {len(smallest)} speedups: median {median}, 90th percentile {most}"


def suggest_more(smallest: Sequence[float], settings: Settings) -> str:
    """Say what makes a run detect smaller differences; empty where it detects all that are worth a verdict."""
    if not smallest or statistics.median(smallest) <= MINIMUM_EFFECT:
        return ""
    if settings.processes is not None:
        measures = "A larger --processes"
    elif settings.level == "quick":
        measures = "A default run, or fewer cases (--select),"
    else:
        measures = "A longer run (--budget), or fewer cases (--select),"
    return f"{measures} can detect smaller differences."


def _write_difference(share: float) -> str:
    """Return `13 %`, `5.9 %`, or `a factor of 15`."""
    size = 100 * share
    return f"{size:.2g} %" if size < 9.95 else f"{size:.0f} %" if share < 1 else f"a factor of {1 + share:.2g}"


def is_wild(variance: float, usual: float | None) -> bool:
    """Return whether a speedup scatters far more than is usual in its run.

    Args:
      variance: Of the logarithms of its processes.
      usual: The median variance of the run's speedups; None where it is not known.
    """
    return usual is not None and usual > 0 and variance >= WILD**2 * usual


def explain_scatter(source: Readable) -> str:
    """Return why a variant's speedup scatters far more than the run's others, for a person; empty where it does not."""
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
    return f"its speedup scatters {times:.0f} times as much between processes as is usual here: {why}"


def _explain(sides: Sequence[Readable]) -> str:
    """Say what the record shows of the side whose times scatter more."""
    side = max(sides, key=_measure_scatter)
    name, mode = side.planned.name, side.planned.mode
    times_s = _values_of(side, "execution_s")
    if (speeds := find_two_speeds(times_s)) is not None:
        fast_s, slow_s = (
            statistics.median([times_s[place] or 0.0 for place in places]) for places in (speeds.fast, speeds.slow)
        )
        return (
            f"{name} has two speeds, {1e3 * fast_s:.3g} ms in {len(speeds.fast)} of "
            f"{len(speeds.fast) + len(speeds.slow)} processes and {1e3 * slow_s:.3g} ms in the others"
            f"{_describe_shared_core(side, speeds)}"
        )
    if mode == NATIVE:
        return f"{name} runs in processes of its own, so that the interference of a moment does not cancel out"
    if mode in _OF_SEVERAL_PROGRAMS:
        return f"each call of {name} starts several programs, whose threads may run on other cores in each process"
    return f"the processes of {name} differ, and the record does not show why"


def find_two_speeds(times_s: Sequence[float | None]) -> _Speeds | None:
    """Return two groups of processes where their times lie apart; None where they do not.

    Args:
      times_s: By process; None where a process has none.
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
    inner = len(known) - 3  # steps that can divide processes into groups of several
    least = max(LEAST_STEP, 1 - (BY_CHANCE / inner) ** (1 / (len(known) - 2)))
    is_apart = steps[cut - 1] >= least * (logs[-1] - logs[0]) > 0
    return _Speeds(*groups) if is_apart and min(map(len, groups)) >= LEAST_OF_ONE_SPEED else None


def _describe_shared_core(side: Readable, speeds: _Speeds) -> str:
    """Say that threads may have shared a core in the slow processes, if their parallelism was lower there."""
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
    """By process; None where a process has none, or one that cannot be."""
    return side.read(metric).values
