"""Numbers that cannot be right: damaged, contradicting each other, of one program, or of another result."""

from __future__ import annotations

import statistics as summaries
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from itertools import zip_longest

from jaxmeter.harness.metrics.metric import Readable
from jaxmeter.harness.metrics.statistics import Interval
from jaxmeter.harness.record.outcomes import (
    OWN_FAULT,
    CompilationDetails,
    Correctness,
    Number,
    NumericsDetails,
    Outcome,
    Status,
    find_no_input_objection,
    list_own_faults,
)
from jaxmeter.harness.record.processes import ProcessRecord
from jaxmeter.harness.record.settings import Settings

SHORTEST_S, LONGEST_S = 1e-12, 1e9
LARGEST_LOG_RATIO = 50.0
LARGEST_COUNT = 2.0**62
"""Beyond these a value is a damaged file, not a measurement: a picosecond, thirty years, 10^21 times, an exbibyte."""

LARGEST = 1e300
"""Of what is computed from others; beyond it, the next step could overflow."""


def at_both_levels(settings: Settings, find: Callable[[float], Interval]) -> Interval:
    """The interval that is shown, with the one that verdicts go by where that is another.

    Args:
      find: What makes an interval of a confidence.
    """
    decisive = find(settings.confidence)
    if settings.shown_confidence is None:
        return decisive
    return replace(find(settings.shown_confidence), verdict=decisive)


MOST_LOOKS = 100
"""At a case's intervals; there is one for each further process, of which there are 24. With millions an interval is
infinite."""


def bound(mean: Callable[..., Interval], values: Sequence[float], settings: Settings, *, looks: int) -> Interval:
    """The mean with its bounds; without them where values differ by more than a float can hold."""
    try:
        return at_both_levels(settings, lambda confidence: mean(values, confidence=confidence, looks=looks))
    except OverflowError:
        return mean([summaries.median(values)])


def keep_between(value: Number | None, low: float, high: float) -> float | None:
    """The value, or None where it lies outside: no measurement."""
    # Compared before it is converted, since a count in a damaged file may be larger than any float.
    return float(value) if value is not None and low <= value <= high else None


def divide_by_calibration(
    ratios: Sequence[float | None], times_s: Sequence[float | None], calibrations_s: Sequence[float | None]
) -> tuple[float | None, ...]:
    """Return by process a time over the calibration loop's time.

    Args:
      ratios: The ratios that processes have recorded. Older records have none; then `times_s` is divided by
        `calibrations_s`.
    """
    pairs = zip_longest(times_s, (ratios or calibrations_s)[: len(times_s)])
    if ratios:
        return tuple([None if own_s is None else ratio for own_s, ratio in pairs])
    return tuple(
        [None if own_s is None or calibration_s is None else own_s / calibration_s for own_s, calibration_s in pairs]
    )


def usable_size(value: Number | None) -> float | None:
    """A size or count as it may have been recorded, else None: of what is no metric, such as a buffer."""
    return keep_between(value, 0.0, LARGEST_COUNT)


def is_sound(process: ProcessRecord) -> bool:
    """Whether all that times are made of can have been measured; else the file is damaged."""
    times = (
        value
        for item in process.variants
        for values in (
            *(block.samples_s for block in item.blocks),
            item.return_s,
            item.isolated_s,
            item.waited_s,
            item.queued_s,
        )
        for value in values
    )
    walls = (block.wall_s for item in process.variants for block in item.blocks)
    sampled = all(item.blocks and all(block.samples_s for block in item.blocks) for item in process.variants)
    possible = all(SHORTEST_S <= value <= LONGEST_S for value in (*times, *walls))
    return sampled and possible and process.looks <= MOST_LOOKS and _is_moment(process.started)


def _is_moment(text: str) -> bool:
    """Whether a text is a time of some time zone."""
    try:
        return datetime.fromisoformat(text).tzinfo is not None
    except ValueError:
        return False


TIMES = ("execution_s", "normalised_s")
"""Metrics that are shown as the time of a variant."""

OF_PROCESSES = "it compares both variants in the same processes"
OF_PASSES = "it compares both variants in the same passes"
"""Why a speedup is more reliable than two times: across processes, and within one."""


def find_disagreement(source: Readable, metric: str) -> str:
    """Return why a variant's time is at odds with a speedup, for a person; empty where the two agree.

    They disagree where the baseline variant's time over the variant's lies outside the 95 % confidence interval of the
    speedup. Then both times have the reason, the baseline variant's for the first variant that it disagrees with.

    Args:
      metric: One of `TIMES`.
    """
    case = source.planned_case
    if source.planned.name != case.baseline:
        return _compare(source.find(case.baseline), source, metric)
    others = (source.find(variant.name) for variant in case.variants if variant.name != case.baseline)
    return next(filter(None, (_compare(source, other, metric) for other in others)), "")


def _compare(baseline: Readable | None, variant: Readable | None, metric: str) -> str:
    if baseline is None or variant is None or (speedup := variant.read("speedup").interval) is None:
        return ""
    names = baseline.planned.name, variant.planned.name
    times_s = baseline.read(metric).estimate, variant.read(metric).estimate
    return describe_disagreement(names, times_s, (speedup.low, speedup.high), OF_PROCESSES)


def describe_disagreement(
    names: Sequence[str], times_s: Sequence[float | None], speedup: Sequence[float | None], why: str
) -> str:
    """Return the reason for two times whose quotient lies outside the interval of the speedup, for a person.

    It is empty where the times agree with the speedup, and where a time or a bound is missing.

    Args:
      names, times_s: Of the baseline variant and of the variant.
      speedup: The bounds of its interval.
      why: Why the speedup is more reliable.
    """
    (baseline_s, variant_s), (low, high) = times_s, speedup
    if low is None or high is None or not baseline_s or not variant_s:
        return ""
    quotient = baseline_s / variant_s
    if low <= quotient <= high:
        return ""
    return (
        f"the times of {names[0]} and {names[1]} give {quotient:.3g}×, outside the speedup's interval "
        f"[{low:.3g}, {high:.3g}]; trust the speedup: {why}"
    )


NO_EFFECT = "the compiler options that differ have no effect on it"


def is_same_program(variant: Readable, other: Readable) -> bool:
    """Return whether two implementations of a case were compiled to the same program.

    That jit and aot of one implementation are the same program is by design, so it is no answer here. Equal HLO of
    unequal compiler options is not enough: options can change the machine code alone. Nor do programs count that call
    Python, which their HLO does not hold.
    """
    if variant.planned.name.rpartition(":")[0] == other.planned.name.rpartition(":")[0]:
        return False
    first, second = _find_details(variant), _find_details(other)
    if first is None or second is None or any(trap.kind == "callbacks" for trap in (*first.traps, *second.traps)):
        return False
    if _has_equal_options(variant, other):
        return len(first.fingerprints) == 1 and first.fingerprints == second.fingerprints
    return first.code is not None and first.code == second.code


def explain_same_program(variant: Readable, other: Readable) -> str:
    """Return why two variants are the same program although they were declared as two; empty if nobody asks."""
    return "" if _has_equal_options(variant, other) else NO_EFFECT


def _has_equal_options(variant: Readable, other: Readable) -> bool:
    return variant.planned.compiler_options == other.planned.compiler_options


def _find_details(source: Readable) -> CompilationDetails | None:
    details = (outcome.details for outcome in source.outcomes.values())
    return next((each for each in details if isinstance(each, CompilationDetails)), None)


def find_objection(outcomes: Mapping[str, Outcome]) -> str:
    """Return why a variant has no speedup, whatever its times are; empty if there is no objection.

    Args:
      outcomes: The variant's own, by probe.
    """
    if objection := _object_to_result(outcomes.get("numerics")):
        return objection
    needs_nothing = find_no_input_objection(outcomes)
    return f"no speedup: {needs_nothing}" if needs_nothing else ""


def _object_to_result(numerics: Outcome | None) -> str:
    if numerics is None:
        return ""
    details = numerics.details if isinstance(numerics.details, NumericsDetails) else NumericsDetails()
    if numerics.status is Status.WRONG:
        is_chance = details.verdict is Correctness.NOT_DETERMINISTIC
        return "no speedup: its result is not deterministic" if is_chance else "no speedup: its result is wrong"
    if details.verdict is Correctness.DIFFERS:
        return "no speedup: its result differs from that of the baseline variant"
    if details.conditioning is not None and details.conditioning.is_too_slow:
        return "no speedup: an output is beyond its tolerance, and the draws that would judge it take too long"
    if details.verdict is Correctness.CANNOT_BE_CHECKED and list_own_faults([numerics]):
        return f"no speedup: {OWN_FAULT} leaves it unknown whether its result is right"
    return ""
