"""Change points: what changed for good in a series, since which run, what else changed there, and the cause."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from jaxmeter.harness.metrics.statistics import MINIMUM_EFFECT
from jaxmeter.harness.record.environment import SHORT_REVISION

from ..compare.conditions import compare_conditions
from ..compare.times import judge_exact
from ..compare.variant_pair import NOTHING_KNOWN, RunPair, VariantPair
from ..compare.verdicts import PROGRAM, TIME, Verdict
from .known import KnownChangePoint
from .segmentation import FEWEST, find_splits
from .series import Point, Series

NEAR = 3
"""Runs: a change point of times may be found that far from where it is (docs/history.md); so what else changed is
looked for as far around it."""

MOST_CHANGES = 4
"""Of an exact number in one series. One that changes more often goes to and fro, and only its last change is told."""

FEWEST_TOGETHER = 3
"""Cases whose times change together, and at least half of all, before the machine is held to be the cause."""

THE_MACHINE = "the times of most cases changed together: maybe the machine itself"


@dataclass(frozen=True)
class ChangePoint:
    """A number that changed for good.

    Args:
      metric: As of the series.
      before, after: The medians of the runs since the change point before, and until the next; None of a program.
      last, first: The ids of the last run before it and of the first that has it; of times the likeliest.
      began: When that one began.
      runs: How many runs tell of each side.
      commits: `commit 1234567 → 89abcde` between these two runs, of times within NEAR runs of them; empty without any.
      versions: What else is recorded to have changed there.
      known: Why it is no news, as a file of known change points says; empty otherwise.
    """

    suite: str
    case: str
    platform: str
    variant: str
    metric: str
    verdict: Verdict
    before: float | None
    after: float | None
    last: str
    first: str
    began: str
    runs: tuple[int, int]
    commits: str
    versions: str
    cause: str
    index: int
    known: str = ""

    @property
    def effect(self) -> float | None:
        """The later over the earlier; None of a program, and beside a zero."""
        return self.after / self.before if self.before and self.after is not None else None


def find_change_points(
    all_series: Sequence[Series], known: Sequence[KnownChangePoint] = (), minimum_effect: float = MINIMUM_EFFECT
) -> tuple[ChangePoint, ...]:
    """Every change point of the series of one machine, the newest first.

    Args:
      minimum_effect: The smallest change of a time that counts, as a share.
    """
    points = [point for series in all_series for point in _find_change_points_of(series, known, minimum_effect)]
    cases = (series.case for series in all_series if is_told_by_time(series))
    timed = {(case.suite, case.name, case.platform) for case in cases}
    blamed = (_blame_machine(point, _count_together(point, points), len(timed)) for point in points)
    return tuple(sorted(blamed, key=lambda point: (-point.index, point.suite, point.case, point.variant, point.metric)))


def is_told_by_time(series: Series) -> bool:
    """Whether it is one of times, with so many runs that a change point could be told."""
    return series.metric == TIME and len(series.points) >= FEWEST


def _count_together(change_point: ChangePoint, change_points: Sequence[ChangePoint]) -> int:
    """How many cases have a change point of times like this one within NEAR runs of it."""
    alike = (other for other in change_points if other.metric == TIME and other.verdict is change_point.verdict)
    near = (other for other in alike if abs(other.index - change_point.index) <= NEAR)
    return len({(other.suite, other.case, other.platform) for other in near})


def _find_change_points_of(
    series: Series, known: Sequence[KnownChangePoint], minimum_effect: float
) -> Iterator[ChangePoint]:
    values = [point.value for point in series.points]
    if series.metric == TIME:
        cuts = find_splits([float(value) for value in values], minimum_effect)
    else:
        cuts = tuple(at for at in range(1, len(values)) if values[at] != values[at - 1])
    restless = 0 if series.metric == TIME or len(cuts) <= MOST_CHANGES else len(cuts)
    edges = [0, *cuts, len(values)]
    segments = list(zip(edges, edges[1:], edges[2:], strict=False))
    for before, at, after in segments[-1:] if restless else segments:
        change_point = _make(series, before, at, after, minimum_effect)
        if restless:
            change_point = replace(
                change_point, cause=f"a value that alternates: {restless} changes in {len(values)} runs"
            )
        near = {point.manifest.run_id for point in series.points if abs(point.index - change_point.index) <= NEAR}
        runs = near if series.metric == TIME else {change_point.first}
        reasons = (entry.why for entry in known if entry.run in runs and entry.means(series.case, series.variant))
        yield replace(change_point, known=next(reasons, ""))


def _make(series: Series, start: int, at: int, end: int, minimum_effect: float) -> ChangePoint:
    """The change point at an index of the series, between two levels."""
    before, after = series.points[start:at], series.points[at:end]
    last, first = before[-1], after[0]
    reach = NEAR if series.metric == TIME else 0
    old, new = series.points[max(start, at - 1 - reach)], series.points[min(end - 1, at + reach)]
    levels = [None if series.metric == PROGRAM else statistics.median(map(_number, side)) for side in (before, after)]
    runs = (old.variant.case.run, new.variant.case.run)
    conditions = compare_conditions(old.manifest, new.manifest, series.case.platform)
    sides = VariantPair(RunPair(*runs, conditions, minimum_effect), new.variant.case, old.variant, new.variant)
    return ChangePoint(
        suite=series.case.suite,
        case=series.case.name,
        platform=series.case.platform,
        variant=series.variant,
        metric=series.metric,
        verdict=_name(series.metric, *levels),
        before=levels[0],
        after=levels[1],
        last=last.manifest.run_id,
        first=first.manifest.run_id,
        began=first.manifest.started,
        runs=(len(before), len(after)),
        commits=_describe_commits(old, new),
        versions=conditions.describe(everything=True),
        cause=sides.find_cause(of_program=series.metric == PROGRAM),
        index=first.index,
    )


def _number(point: Point) -> float:
    return float(point.value)


def _name(metric: str, before: float | None, after: float | None) -> Verdict:
    """A change of stored times is suspected, however many runs tell it: no two of them ran beside each other."""
    if metric == TIME and before is not None and after is not None:
        return Verdict.SUSPECTED_SLOWER if after > before else Verdict.SUSPECTED_FASTER
    return judge_exact(metric, before, after)


def _describe_commits(last: Point, first: Point) -> str:
    """`commit 1234567 → 89abcde`; empty where both are one, or nobody told."""
    was, now_is = (point.manifest.environment.git_revision for point in (last, first))
    if was is None or now_is is None or was == now_is:
        return ""
    return f"commit {was[:SHORT_REVISION]} → {now_is[:SHORT_REVISION]}"


def _blame_machine(change_point: ChangePoint, together: int, cases: int) -> ChangePoint:
    """The change point; its cause is the machine where most cases changed and nothing that is recorded did."""
    is_explained = change_point.cause != NOTHING_KNOWN or change_point.commits or change_point.versions
    if change_point.metric != TIME or is_explained or together < max(FEWEST_TOGETHER, cases / 2):
        return change_point
    return replace(change_point, cause=THE_MACHINE)
