"""The history of a machine: series of each number, where they changed for good, and the likely cause."""

from __future__ import annotations

import math
import statistics
import tomllib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy
from numpy.typing import NDArray
from scipy.ndimage import median_filter
from scipy.stats import mannwhitneyu

from jaxmeter.harness.metrics.across import find_timing, is_contended, read_values
from jaxmeter.harness.metrics.moderation import NO_CALIBRATION
from jaxmeter.harness.metrics.plausibility import LONGEST_S, SHORTEST_S, divide_by_calibration
from jaxmeter.harness.metrics.reading import Key, Run, Variant
from jaxmeter.harness.metrics.statistics import MINIMUM_EFFECT
from jaxmeter.harness.metrics.table import METRICS
from jaxmeter.harness.record import Manifest, PlannedCase, RunRecord, Status
from jaxmeter.harness.record.cases import find_nearest, is_same_problem, match_cases
from jaxmeter.harness.record.environment import SHORT_REVISION

from .compare.conditions import NOTHING_KNOWN, RunPair, VariantPair, compare_conditions, find_fingerprint, read_raw
from .compare.times import COUNTED, judge_exact
from .compare.verdicts import PROGRAM, TIME, Verdict
from .load import EXACT

NAMES = ("run", "case", "variant", "why")
NEEDED = ("run", "why")


class KnownError(Exception):
    """A file of known change points that cannot be used; the message says what to write instead."""


@dataclass(frozen=True)
class KnownChangePoint:
    """A change point that somebody has explained.

    Args:
      run: The id of the first run that has it.
      case: A pattern, as of `--select`.
      variant: Its name; empty for all.
    """

    run: str
    why: str
    case: str = "*"
    variant: str = ""

    def means(self, case: PlannedCase, variant: str) -> bool:
        """Whether it is about a variant of a case."""
        return self.variant in ("", variant) and bool(match_cases([case], self.case))


def read_known(path: Path) -> tuple[KnownChangePoint, ...]:
    """The change points in a file.

    Raises:
      KnownError: It cannot be read, or says what nobody understands.
    """
    try:
        entries = tomllib.loads(path.read_text("utf8"))
    except OSError as error:
        raise KnownError(f"{path}: cannot be read: {error.strerror}") from error
    except (ValueError, RecursionError) as error:  # of TOML, of UTF-8
        raise KnownError(f"{path}: is no TOML: {error}") from error
    change_points = entries.pop("change_point", [])
    if entries or not isinstance(change_points, list):
        raise KnownError(
            f'{path}: contains other entries than [[change_point]] tables; write [[change_point]], run = "…", why = "…"'
        )
    return tuple(_read_change_point(path, number, change_point) for number, change_point in enumerate(change_points, 1))


def _read_change_point(path: Path, number: int, change_point: object) -> KnownChangePoint:
    if not isinstance(change_point, dict):
        raise KnownError(f'{path}: change point {number} is not a table; write [[change_point]], run = "…", why = "…"')
    for name, value in change_point.items():
        if name not in NAMES:
            nearest = find_nearest(name, NAMES)
            hint = f", nearest: {nearest}" if nearest else ""
            raise KnownError(f"{path}: change point {number} has no {name!r}{hint}; it may have {', '.join(NAMES)}")
        if not isinstance(value, str) or not value:
            raise KnownError(f'{path}: change point {number}: {name} = {value!r} is not a text; write {name} = "…"')
    for name in NEEDED:
        if name not in change_point:
            raise KnownError(f'{path}: change point {number} lacks {name!r}; write {name} = "…"')
    return KnownChangePoint(**change_point)


LARGEST_P = 1e-3
USUAL_LENGTH = 60
"""Of the rank test, up to that many values; of more, less by the power of 1.5. Since the best splits are chosen among
all, their own p is too small, the more there are to choose from. Chosen by how often series without a change point
have one (docs/history.md)."""

FEWEST_BESIDE = 4
"""Values on either side of a change point."""

FEWEST = 14
"""Values of a series. With 6 and 8 of which all of one side are larger, the rank test's p is 0.0007."""

WINDOW = 7
CLIPPED = 3.0
"""A value that is more standard deviations from the median of its neighbours is moved there: it is an outlier, and
weighs no more than the last that is not. A change point stays, having neighbours on its side."""

MAD_TO_SD = 1.4826
"""Of a normal distribution: its standard deviation over its median absolute deviation."""

Logs = NDArray[numpy.float64]


def find_splits(values: Sequence[float], minimum_effect: float = MINIMUM_EFFECT) -> tuple[int, ...]:
    """Indices of the values that a new level begins with; empty where there are too few values.

    Args:
      values: In the order of time, each > 0.
      minimum_effect: The smallest difference of two levels that counts, as a share.
    """
    if len(values) < FEWEST:
        return ()
    logs = numpy.log(numpy.asarray(values, dtype=numpy.float64))
    clipped = _clip(logs)
    kept = _keep_steps(logs, _split(clipped, 0), minimum_effect)
    return _keep_steps(logs, _move(clipped, kept), minimum_effect)


def _clip(logs: Logs) -> Logs:
    """The logs without outliers."""
    middle = median_filter(logs, size=WINDOW, mode="nearest")
    off = logs - middle
    reach = CLIPPED * MAD_TO_SD * float(numpy.median(numpy.abs(off)))
    clipped: Logs = middle + numpy.clip(off, -reach, reach)
    return clipped


def _split(logs: Logs, start: int) -> list[int]:
    """Every split of a stretch that begins at an index of the series, down to the shortest parts."""
    at = _find_split(logs)
    return [] if at is None else [*_split(logs[:at], start), start + at, *_split(logs[at:], start + at)]


def _move(logs: Logs, splits: Sequence[int]) -> list[int]:
    """Each split at the best place between its neighbours: it was found in a stretch that others have left since."""
    edges = [0, *splits, len(logs)]
    for index in range(1, len(edges) - 1):
        before, _, after = edges[index - 1 : index + 2]
        at = _find_split(logs[before:after])
        edges[index] = edges[index] if at is None else before + at
    return edges[1:-1]


def _find_split(logs: Logs) -> int | None:
    """Where both sides are farthest apart; None where one would be too short."""
    count = len(logs)
    if count < 2 * FEWEST_BESIDE:
        return None
    apart = numpy.abs(logs[:, None] - logs[None, :]).cumsum(0).cumsum(1)
    left = numpy.arange(FEWEST_BESIDE, count - FEWEST_BESIDE + 1)
    right = count - left
    within_left = apart[left - 1, left - 1]
    within_right = apart[-1, -1] - apart[left - 1, -1] - apart[-1, left - 1] + within_left
    between = apart[left - 1, -1] - within_left
    energy = 2 * between / (left * right) - within_left / left**2 - within_right / right**2
    return int(left[numpy.argmax(left * right / count * energy)])


def _keep_steps(logs: Logs, splits: Sequence[int], minimum_effect: float) -> tuple[int, ...]:
    """The splits that are change points, once the least sure have been taken back one by one."""
    edges = [0, *splits, len(logs)]
    largest_p = LARGEST_P * min(1.0, USUAL_LENGTH / len(logs)) ** 1.5

    def doubt(index: int) -> tuple[float, float]:
        before, at, after = edges[index - 1 : index + 2]
        return _doubt(logs[before:at], logs[at:after], minimum_effect)

    doubts = {index: doubt(index) for index in range(1, len(edges) - 1)}
    while doubts and max(doubts.values())[0] > largest_p:
        least_sure = max(doubts, key=doubts.__getitem__)
        del edges[least_sure]
        rest = [doubts[index] for index in doubts if index != least_sure]
        doubts = dict(enumerate(rest, 1))
        doubts |= {index: doubt(index) for index in (least_sure - 1, least_sure) if index in doubts}
    return tuple(edges[1:-1])


def _doubt(before: Logs, after: Logs, minimum_effect: float) -> tuple[float, float]:
    """How little two levels differ: the p-value of their being one, then how near they are.

    1 where so few values can tell nothing, and 2 where the levels differ by less than the minimum effect.
    """
    apart = abs(float(numpy.median(after) - numpy.median(before)))
    if apart < math.log1p(minimum_effect):
        return 2.0, -apart
    if 2 / math.comb(len(before) + len(after), len(before)) > LARGEST_P:
        return 1.0, -apart
    return float(mannwhitneyu(before, after).pvalue), -apart


SERIES = tuple(metric for metric in EXACT if metric not in COUNTED)
"""Exact numbers with change points of their own; counts of a program only explain others."""


@dataclass(frozen=True)
class Point:
    """A number of one run.

    Args:
      index: Of the run among those of its machine.
      value: In the metric's unit; of a program its fingerprint.
    """

    index: int
    variant: Variant
    value: float | str

    @property
    def manifest(self) -> Manifest:
        """Of its run."""
        return self.variant.case.run.manifest


@dataclass(frozen=True)
class Series:
    """A number of one variant, run after run.

    Args:
      case: As the newest run has planned it.
      metric: `execution_s` stands for the normalised time where there is a calibration loop.
      calibration: The identity of what such times are divided by; empty without one.
      contended: How many runs are left out since the time was contended.
    """

    case: PlannedCase
    variant: str
    metric: str
    points: tuple[Point, ...]
    calibration: str = ""
    contended: int = 0


def gather_series(runs: Sequence[Run]) -> tuple[Series, ...]:
    """Every series that at least two runs have.

    Args:
      runs: Those of one machine, from the oldest to the newest, at the reference speed of the first of them
        that has the same calibration loop.
    """
    newest: dict[Key, PlannedCase] = {}
    for run in runs:
        newest |= {key: case.planned for key, case in run.by_key.items()}
    return tuple(series for key, case in newest.items() for series in _list_series(runs, key, case))


def _list_series(runs: Sequence[Run], key: Key, case: PlannedCase) -> Iterator[Series]:
    """Those of a case. What an older run planned under its name with other inputs is another case."""
    same = [
        (index, own)
        for index, run in enumerate(runs)
        if (own := run.by_key.get(key)) is not None and is_same_problem(own.planned, case)
    ]
    for planned in case.variants:
        if planned.replays is not None:
            continue
        measured = [
            (index, variant)
            for index, own in same
            if (variant := own.find(planned.name)) is not None and variant.status is Status.OK
        ]
        yield from _list_times(case, planned.name, measured)
        for metric in (PROGRAM, *SERIES):
            points = tuple(
                Point(index, variant, value)
                for index, variant in measured
                if (value := _read_exact(variant, metric)) is not None
            )
            if len(points) > 1:
                yield Series(case, planned.name, metric, points)


def _list_times(case: PlannedCase, name: str, measured: Sequence[tuple[int, Variant]]) -> Iterator[Series]:
    """A series for each calibration loop: times over one cannot be joined with times over another."""
    clean: dict[str, list[Point]] = {}
    contended: dict[str, int] = {}
    for index, variant in measured:
        reference = variant.pool.reference
        calibration = "" if reference is None else reference.identity
        value = _read_time(variant)
        if value is None:
            continue
        own = clean.setdefault(calibration, [])
        if is_contended(variant.outcomes.get("timing")):
            contended[calibration] = contended.get(calibration, 0) + 1
        else:
            own.append(Point(index, variant, value))
    for calibration, points in clean.items():
        if len(points) > 1:
            yield Series(case, name, TIME, tuple(points), calibration, contended.get(calibration, 0))


def _read_time(variant: Variant) -> float | None:
    """The geometric mean over processes, normalised; None where the run has another calibration loop."""
    reference = variant.pool.reference
    times = read_values(variant, METRICS[TIME])
    if reference is None:
        known = [value for value in times if value is not None] if variant.pool.no_reference == NO_CALIBRATION else []
    else:
        details = find_timing(variant)
        if details is None or details.calibration != reference.identity:
            return None
        ratios, calibrations = (read_values(variant, METRICS[name]) for name in ("over_calibration", "calibration_s"))
        normalised = divide_by_calibration(ratios, times, calibrations)
        known = [ratio * reference.calibration_s for ratio in normalised if ratio is not None]
        known = [value for value in known if SHORTEST_S <= value <= LONGEST_S]
    return math.exp(statistics.fmean(map(math.log, known))) if known and min(known) > 0 else None


def _read_exact(variant: Variant, metric: str) -> float | str | None:
    """A number that all processes of a run agree on, or a fingerprint."""
    if metric == PROGRAM:
        return find_fingerprint(variant)
    known = {value for value in read_raw(variant, metric) if value is not None}
    return float(known.pop()) if len(known) == 1 else None


WENT_BACK = "a clock went back, and its place in a series may be wrong"


def find_clock_faults(runs: Iterable[RunRecord]) -> Iterator[str]:
    """A sentence for each run whose times contradict themselves, or those of the run that it was measured against."""
    runs = list(runs)
    began = {run.manifest.run_id: run.manifest.started for run in runs}
    for run in runs:
        manifest = run.manifest
        if run.ended is not None and run.ended < manifest.started:
            yield f"run {manifest.run_id} ended before it began: {WENT_BACK}"
        elif manifest.against is not None and began.get(manifest.against, "") > manifest.started:
            baseline = f"run {manifest.against}, which it was measured against"
            yield f"run {manifest.run_id} began before {baseline}: {WENT_BACK}"


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
