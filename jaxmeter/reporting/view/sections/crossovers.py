"""Crossovers: the measured size from which another implementation is ahead, or work outweighs the time until return."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import permutations, takewhile

from jaxmeter.harness.metrics.derived import compare_paired, doubt_ratio
from jaxmeter.harness.metrics.reading import Variant
from jaxmeter.harness.metrics.statistics import Interval, differs
from jaxmeter.harness.metrics.table import METRICS

from ... import numbers
from ...compare.ratios import divide_readings
from ...text import shorten
from ..names import LONGEST_TERM

TIME, RETURN, COMPILING = "execution_s", "return_s", "compile_total_s"

MOST_SENTENCES = 8
"""More would bury the figure that they are read with."""

Sizes = tuple[float, float]
"""Up to which size, and from which on."""

Line = Sequence[tuple[float, Variant]]
"""An implementation's variants by size, the smallest first."""

Pair = tuple[float, Variant, Variant]
"""A size, and two implementations' variants at it."""


def describe_crossovers(param: str, lines: Mapping[str, Line]) -> tuple[str, ...]:
    """A sentence for each place where an order turns, the first MOST_SENTENCES of them.

    Args:
      param: What the sizes are values of.
      lines: By the name of an implementation's variants.
    """
    sentences = (*_overtaken(param, lines, TIME), *_overtaken(param, lines, COMPILING), *_outweighed(param, lines))
    left = len(sentences) - MOST_SENTENCES
    return (*sentences[:MOST_SENTENCES], *([f"+ {left} more"] if left > 0 else []))


def compare(one: Variant, other: Variant, metric: str) -> int:
    """-1 where the one takes less time, 1 where more, 0 where that is not sure."""
    ratio = _divide(one, other, metric)
    if ratio is None or not differs(ratio) or (metric == TIME and doubt_ratio(one, other)):
        return 0
    return -1 if ratio.estimate > 1 else 1


def _divide(one: Variant, other: Variant, metric: str) -> Interval | None:
    """How many times less the one takes: of execution times paired by process, else over processes of their own."""
    if metric == TIME:
        return compare_paired(one, other)
    return divide_readings(other.read(metric), one.read(metric), one.settings)


def find_turn(sides: Sequence[tuple[float, int]]) -> Sizes | None:
    """Up to which size it is -1, and from which on 1; None unless it is -1 at the first size and 1 at the last.

    Args:
      sides: By size, the smallest first; what lies between the two sizes may be anything.
    """
    below = list(takewhile(lambda one: one[1] < 0, sides))
    above = list(takewhile(lambda one: one[1] > 0, reversed(sides)))
    return (below[-1][0], above[-1][0]) if below and above else None


def _overtaken(param: str, lines: Mapping[str, Line], metric: str) -> Iterable[str]:
    """Such as `Execution time: loop:jit is ahead of scan:jit up to n = 100 (5× at 10), behind from 1 000 on (…)`."""
    turns = []
    for ahead, behind in permutations(lines, 2):
        turned = find_turn(
            [(size, compare(one, other, metric)) for size, one, other in _pairs(lines[ahead], lines[behind], metric)]
        )
        if turned is not None:
            turns.append((ahead, behind, turned))
    for leaders, others, (until, since) in _merged(turns):
        are = "is" if len(leaders) == 1 else "are"
        pairs = [_pairs(lines[ahead], lines[behind], metric) for ahead in leaders for behind in others]
        first = _speedups([one[0] for one in pairs], metric)
        last = _speedups([(size, other, one) for size, one, other in (row[-1] for row in pairs)], metric)
        yield (
            f"{METRICS[metric].heading}: {_all(leaders)} {are} ahead of {_all(others)} up to {param} = "
            f"{numbers.number(until)} ({first}), behind from {numbers.number(since)} on ({last})."
        )


def _merged(turns: Sequence[tuple[str, str, Sizes]]) -> list[tuple[list[str], list[str], Sizes]]:
    """Who is ahead of whom: those that turn at the same sizes against the same one together, the shorter way."""
    by_ahead: dict[tuple[str, Sizes], list[str]] = {}
    by_behind: dict[tuple[str, Sizes], list[str]] = {}
    for ahead, behind, turned in turns:
        by_ahead.setdefault((ahead, turned), []).append(behind)
        by_behind.setdefault((behind, turned), []).append(ahead)
    if len(by_behind) < len(by_ahead):
        return [(names, [behind], turned) for (behind, turned), names in by_behind.items()]
    return [([ahead], names, turned) for (ahead, turned), names in by_ahead.items()]


def _pairs(one: Line, other: Line, metric: str) -> list[Pair]:
    """Both variants at every size that both were measured at."""
    others = dict(other)
    return [
        (size, variant, others[size])
        for size, variant in one
        if size in others and all(side.read(metric).interval for side in (variant, others[size]))
    ]


def _speedups(pairs: Iterable[Pair], metric: str) -> str:
    """How many times faster the ones are than the others at some sizes: `1.2× to 3.4× [1.1, 3.6] at 10`.

    The bounds are the outermost of all; an order that turns is sure at its ends, so each has some.
    """
    sizes, ratios = set(), []
    for size, one, other in pairs:
        ratio = _divide(one, other, metric)
        sizes.add(size)
        ratios += [ratio] if ratio is not None else []
    least, most = min(ratio.estimate for ratio in ratios), max(ratio.estimate for ratio in ratios)
    lows, highs = [ratio.low or 0.0 for ratio in ratios], [ratio.high or 0.0 for ratio in ratios]
    _, bounds = numbers.speedup_with_bounds(Interval(min(lows), least, max(highs), len(ratios)))
    ends = dict.fromkeys(map(numbers.speedup, (least, most)))
    return f"{' to '.join(ends)} {bounds} at {', '.join(map(numbers.number, sorted(sizes)))}"


def _outweighed(param: str, lines: Mapping[str, Line]) -> Iterable[str]:
    """Such as `Return is more than half of the execution time up to n = 100, less from 10 000 on: tanh:jit`."""
    alike: dict[Sizes, list[str]] = {}
    for name, line in lines.items():
        turned = find_turn(
            [(size, _against_return(variant)) for size, variant in line if variant.read(RETURN).interval]
        )
        if turned is not None:
            alike.setdefault(turned, []).append(name)
    for (until, since), names in alike.items():
        sizes = f"up to {param} = {numbers.number(until)}, less from {numbers.number(since)} on"
        yield f"Time until return is more than half of the execution time {sizes}: {_all(names)}."


def _against_return(variant: Variant) -> int:
    """-1 where the execution time is less than twice the time until return, 1 where more, 0 where that is not sure."""
    time, until_return = variant.read(TIME).verdict_interval, variant.read(RETURN).verdict_interval
    if time is None or until_return is None or variant.read(TIME).contended:
        return 0
    if time.low is None or time.high is None or until_return.low is None or until_return.high is None:
        return 0
    return (time.low > 2 * until_return.high) - (time.high < 2 * until_return.low)


def _all(names: Sequence[str]) -> str:
    return ", ".join(shorten(name, LONGEST_TERM) for name in names)
