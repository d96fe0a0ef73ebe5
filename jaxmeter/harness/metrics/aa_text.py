"""A self-test in words, for terminals and pages: what was found, and what it means."""

from __future__ import annotations

from collections.abc import Iterator

from jaxmeter.document.numbers import SPACE
from jaxmeter.harness.metrics.rates import BOUNDS_CONFIDENCE, bound_rate, hold_another
from jaxmeter.harness.metrics.statistics import FEWEST_PROCESSES
from jaxmeter.harness.record.self_test import FOUND, LADDER, SelfTest, Tally
from jaxmeter.harness.record.wording import counted

NONE = "The false-positive rate of this machine is unknown; jaxmeter self-test measures it"
DAMAGED = "The self-test of this machine is damaged: run jaxmeter self-test"

MANY_DEGREES = 1e6
"""Of a variance that is as good as known."""


def describe_in_short(found: SelfTest | None) -> str:
    """Return one sentence for a first screen: how far a machine's numbers can be trusted."""
    if found is None or not found.is_sound:
        return f"{DAMAGED if found else NONE}."
    level = write_share(found.shown_confidence)
    between = "" if found.times is None else f" Between runs: {_shorten(found.times, level, 'the other time')}."
    return (
        f"On this machine ({found.machine}) the self-test of {found.at[:10]} found of equal programs: "
        f"{_shorten(found.speedups, level, 'the truth')}.{between}"
    )


def _shorten(tally: Tally, level: str, truth: str) -> str:
    """Return errors, coverage and the smallest difference, as counts: the totals show how precise they are."""
    return (
        f"{tally.differ} of {tally.compared} different, {level} intervals hold {truth} in {tally.held_shown} of "
        f"{tally.intervals}, {_write_smallest(tally)}"
    )


def describe_self_test(found: SelfTest | None) -> tuple[str, ...]:
    """Return the results of the self-test, in one or two sentences each."""
    if found is None or not found.is_sound:
        return (f"{DAMAGED if found else NONE}.",)
    versions = ", ".join(f"{name} {version}" for name, version in sorted(found.packages.items()))
    cases, runs = counted(found.cases, "case"), counted(found.runs, "run")
    counts = counted(found.processes, "timing process", "timing processes")
    made = f"Self-test of {found.machine}, {found.at[:10]}, by jaxmeter {found.tool_version} with {versions}"
    return (
        f"{made}: one program twice in each of {cases}, {runs}, {counts}.",
        *_describe_speedups(found.speedups, found),
        *_describe_times(found.times, found),
    )


def _describe_speedups(speedups: Tally, found: SelfTest) -> Iterator[str]:
    yield from _describe_errors("Equal programs interleaved in one run", speedups, found)
    yield f"Their {_describe_held('the true ratio, 1,', speedups, found)}."
    yield _describe_smallest(speedups)


def _describe_times(times: Tally | None, found: SelfTest) -> Iterator[str]:
    if times is None:
        yield "Times of two runs were not compared: they have no calibration loop in common."
        return
    yield from _describe_errors("One program's normalised time in two runs", times, found)
    honest = [100 * hold_another(found.shown_confidence, degrees) for degrees in (MANY_DEGREES, FEWEST_PROCESSES - 1)]
    level = write_share(found.shown_confidence)
    held = _describe_held("the other's time", times, found)
    yield f"One run's {held}."
    correct = f"{honest[0]:.0f} to {honest[1]:.0f}{SPACE}%"
    yield f"Correct intervals of {level} do so in {correct}, since both times have an error."
    yield _describe_smallest(times)


def _describe_errors(what: str, tally: Tally, found: SelfTest) -> Iterator[str]:
    """Yield how many equal programs were called different, and a warning if the rate is above the allowed one."""
    by = f"by {write_share(found.confidence)} intervals, beyond {write_share(found.minimum_effect)}"
    yield f"{what}: {_write_rate(tally.differ, tally.compared)} are falsely called different, {by}."
    allowed = 1 - found.confidence
    if tally.compared and bound_rate(tally.differ, tally.compared)[0] > allowed:
        yield f"That is beyond the {write_share(allowed)} that verdicts allow for: doubt what differs by little."


def _describe_held(what: str, tally: Tally, found: SelfTest) -> str:
    """Return how often the intervals of both confidence levels contain the true value."""
    shown, decisive = write_share(found.shown_confidence), write_share(found.confidence)
    return (
        f"{shown} intervals hold {what} in {_write_rate(tally.held_shown, tally.intervals)}, "
        f"those of {decisive} in {_write_rate(tally.held_decisive, tally.intervals)}"
    )


def _describe_smallest(tally: Tally) -> str:
    words = _write_smallest(tally)
    return f"{words[0].upper()}{words[1:]}."


def _write_smallest(tally: Tally) -> str:
    smallest, found = tally.smallest_difference, f"is found in {write_share(FOUND)} of cases"
    if smallest is None:
        return f"no difference up to {write_share(LADDER[-1])} {found}"
    return f"a difference of {write_share(smallest)} {found}"


def _write_rate(count: int, of: int) -> str:
    """Return `1 of 48 (95 % bounds 0.1 to 11.1 %)`; without bounds if there is no trial."""
    if not of:
        return f"{count} of {of}"
    low, high = bound_rate(count, of)
    return f"{count} of {of} ({write_share(BOUNDS_CONFIDENCE)} bounds {100 * low:.1f} to {100 * high:.1f}{SPACE}%)"


def write_share(share: float) -> str:
    """Return a share as `95 %` or `0.5 %`: with at most one decimal."""
    return f"{100 * share:.1f}".removesuffix(".0") + f"{SPACE}%"
