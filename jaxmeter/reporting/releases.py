"""Which releases changed a case: a walk over all of them by times, or halves by an exact number or a command."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from jaxmeter.document import numbers
from jaxmeter.document.model import Cell, Column, Document, Group, Part, Row, Table, say
from jaxmeter.harness.metrics.metric import Unit
from jaxmeter.harness.metrics.reading import Run
from jaxmeter.harness.metrics.table import METRICS
from jaxmeter.reporting.compare.budgets import NAMES

from .compare.times import has_exact
from .compare.verdicts import COLD, PROGRAM, TIME, WHOLE, Change, Verdict

SKIPPED = 125
"""The exit code of a command that cannot decide, as for `git bisect run`."""

LAST_CODE = 127
"""Largest exit code about the release: larger ones come from the shell or a signal."""


class BisectionAnswer(StrEnum):
    """The judgement of one release, compared with the good one."""

    GOOD = "good"
    BAD = "bad"
    UNDECIDED = "undecided"
    UNUSABLE = "unusable"


@dataclass(frozen=True)
class JudgedRelease:
    """An answer, and why."""

    answer: BisectionAnswer
    why: str


@dataclass(frozen=True)
class Bisected:
    """Between which two releases the change lies.

    Args:
      skipped: Releases between the two that could not be judged, with why.
      judged: Every answer, in the order in which they were asked for.
    """

    last_good: str
    first_bad: str
    skipped: tuple[tuple[str, str], ...] = ()
    judged: tuple[tuple[str, JudgedRelease], ...] = field(default=(), repr=False)


class NoDifferenceError(Exception):
    """The bad release cannot be distinguished from the good one; the message describes the results."""


Judge = Callable[[str], JudgedRelease]
"""Release -> answer."""


def bisect(releases: Sequence[str], judge: Judge, say: Callable[[str], object], *, asks_good: bool = False) -> Bisected:
    """Return the neighbouring releases between which the change is, as precisely as the answers allow.

    Args:
      releases: From the good one to the bad one, at least two.
      say: Receives a line about every answer.
      asks_good: Whether the first release is judged too, because the others are not compared with it.
    Raises:
      NoDifferenceError: The last release is not bad, or the first not good.
    """
    judged: list[tuple[str, JudgedRelease]] = []

    def ask(index: int) -> JudgedRelease:
        verdict = judge(releases[index])
        say(f"{releases[index]} is {verdict.answer}: {verdict.why}")
        judged.append((releases[index], verdict))
        return verdict

    good, bad = 0, len(releases) - 1
    if asks_good and (first := ask(good)).answer is not BisectionAnswer.GOOD:
        raise NoDifferenceError(f"{releases[good]} is {first.answer}, though it is the good release: {first.why}")
    last = ask(bad)
    if last.answer is not BisectionAnswer.BAD:
        raise NoDifferenceError(f"{releases[bad]} is {last.answer}, compared with {releases[good]}: {last.why}")
    skipped: dict[int, str] = {}
    while open_to := [index for index in range(good + 1, bad) if index not in skipped]:
        middle = min(open_to, key=lambda index: (abs(2 * index - good - bad), index))
        verdict = ask(middle)
        if verdict.answer is BisectionAnswer.GOOD:
            good = middle
        elif verdict.answer is BisectionAnswer.BAD:
            bad = middle
        else:
            skipped[middle] = verdict.why
    between = tuple((releases[index], skipped[index]) for index in range(good + 1, bad))
    return Bisected(releases[good], releases[bad], between, tuple(judged))


def describe_bisection(bisected: Bisected) -> list[str]:
    """What was found, a sentence a line."""
    lines = [f"first bad: {bisected.first_bad}; last good: {bisected.last_good}"]
    lines += [f"between them {release} could not be judged: {why}" for release, why in bisected.skipped]
    if bisected.skipped:
        lines.append("so the change came with one of these, or with the first bad one")
    return lines


@dataclass(frozen=True)
class BisectionTarget:
    """The metric of a variant in which the bad release differs."""

    case: str
    variant: str
    metric: str

    @property
    def name(self) -> str:
        """The name for a person."""
        return f"{self.case} {self.variant}"


def find_target(changes: Sequence[Change], metric: str, variant: str) -> BisectionTarget | None:
    """Return the metric in which the bad release differs the most; None if no difference is distinguishable.

    Args:
      metric: `program`, or the name of a metric in budgets.
      variant: The only variant that counts; any if it is empty.
    """
    wanted = PROGRAM if metric == PROGRAM else NAMES[metric]
    own = [
        change
        for change in changes
        if change.metric == wanted and variant in ("", change.variant) and change.verdict.is_exact
    ]
    if not own:
        return None
    worst = max(own, key=lambda change: change.size)
    return BisectionTarget(worst.case, worst.variant, worst.metric)


def has_value(run: Run, target: BisectionTarget) -> bool:
    """Return whether a run has the value of an exact criterion. A comparison lists neither equal nor missing values."""
    return any(
        has_exact(variant, target.metric)
        for case in run.cases
        for variant in case.variants
        if (case.planned.name, variant.planned.name) == (target.case, target.variant)
    )


def judge_by_target(changes: Sequence[Change], target: BisectionTarget) -> JudgedRelease:
    """Return whether a release is closer to the bad one or to the good one."""
    own = [change for change in changes if (change.case, change.variant) == (target.case, target.variant)]
    decisive = [change for change in own if change.metric in (WHOLE, target.metric)]
    failed = next((change for change in decisive if change.verdict.is_failure), None)
    if failed is not None:
        return JudgedRelease(BisectionAnswer.UNUSABLE, f"{target.name} is {failed.verdict}: {failed.reason}")
    change = next((change for change in own if change.metric == target.metric), None)
    if change is None:
        return JudgedRelease(BisectionAnswer.GOOD, "as in the good release")
    if change.verdict is Verdict.INCONCLUSIVE:
        return JudgedRelease(BisectionAnswer.UNDECIDED, change.reason)
    return JudgedRelease(BisectionAnswer.BAD, _describe(change))


def _describe(change: Change) -> str:
    if change.before is None or change.after is None:
        return "another program than the good release's"
    return f"{change.before:g} in the good release, {change.after:g} here"


def judge_by_code(code: int) -> JudgedRelease:
    """Return the judgement of an exit code: 0 is good, 125 is undecided, anything else up to 127 is bad."""
    if code == 0:
        return JudgedRelease(BisectionAnswer.GOOD, "the command ended with 0")
    if code == SKIPPED:
        return JudgedRelease(BisectionAnswer.UNUSABLE, f"the command ended with {SKIPPED}: undecided")
    if 0 < code <= LAST_CODE:
        return JudgedRelease(BisectionAnswer.BAD, f"the command ended with {code}")
    return JudgedRelease(BisectionAnswer.UNUSABLE, f"the command was ended by a signal ({code})")


LARGE_FACTOR = 1.2
"""A step that is inconclusive is measured again if its interval reaches this factor, or one over it. Smaller changes
are rarely why somebody walks over years of releases, and a second attempt takes twice as long as the first one."""

COSTS = tuple(NAMES[name] for name in ("peak_memory", "compiles", "recompiles"))
"""Exact numbers that a user pays for; other ones, such as instructions, only explain a time."""

EXACT = frozenset(name for name in (*NAMES.values(), PROGRAM) if name != TIME)
"""Metrics that follow from programs alone, and which program it is."""

COLUMNS = (
    Column("case and variant"),
    Column("factor", "99 % interval", numeric=True),
    Column("verdict"),
)

Say = Callable[[str], object]

Compare = Callable[[str, str, int], Sequence[Change]]
"""Earlier release, later release and attempt, from 0 -> changes. Raises UnusableError."""


class UnusableError(Exception):
    """A release cannot be installed, measured or compared; the message is the reason."""


@dataclass(frozen=True)
class WalkStep:
    """Two releases that were compared."""

    before: str
    after: str
    changes: Sequence[Change]

    @property
    def times(self) -> list[Change]:
        """The changes of times."""
        return [change for change in self.changes if change.metric == TIME]

    @property
    def change_points(self) -> list[Change]:
        """The times that are confirmed to differ."""
        return [change for change in self.times if change.verdict.is_confirmed]

    @property
    def is_timed(self) -> bool:
        """Whether both releases were timed, at least one variant of them."""
        return any(not change.verdict.is_failure for change in self.times)


@dataclass(frozen=True)
class Walk:
    """The result of a walk.

    Args:
      steps: Neighbours, in order.
      total: The last usable release compared with the first one; None where nothing was compared.
      passed_over: Releases that could not be measured, with the reason.
    """

    steps: Sequence[WalkStep]
    total: WalkStep | None
    passed_over: Sequence[tuple[str, str]]

    @property
    def has_change_point(self) -> bool:
        """Whether a time is confirmed to differ between neighbours."""
        return any(step.change_points for step in self.steps)

    @property
    def most_slower(self) -> tuple[WalkStep, Change] | None:
        """The step between neighbours that is confirmed slower by the largest factor, and its verdict."""
        slower = [(step, change) for step in self.steps for change in filter(_is_slower, step.times)]
        return max(slower, key=lambda pair: pair[1].size, default=None)

    @property
    def first_slower(self) -> WalkStep | None:
        """The first step with a time that is confirmed to be longer."""
        return next((step for step in self.steps if any(map(_is_slower, step.times))), None)


def walk(releases: Sequence[str], compare: Compare, say: Say) -> Walk:
    """Compare each release with the last usable one before it, then the last usable one with the first.

    Args:
      releases: In order; the first one is usable.
      say: Called with the lines of each step when the step ends.
    """
    steps: list[WalkStep] = []
    passed_over: list[tuple[str, str]] = []
    before = releases[0]
    for release in releases[1:]:
        try:
            steps.append(compare_pair(before, release, compare, say))
        except UnusableError as error:
            passed_over.append((release, str(error)))
            say(f"{release} is passed over: {error}")
        else:
            before = release
            _say_all(describe_step(steps[-1]), say)
    total = next(iter(steps), None)
    if len(steps) > 1:
        try:
            total = compare_pair(releases[0], before, compare, say)
        except UnusableError as error:
            total = None
            say(f"{before} cannot be compared with {releases[0]}: {error}")
        else:
            _say_all(describe_step(total), say)
    return Walk(steps, total, passed_over)


def compare_pair(before: str, after: str, compare: Compare, say: Say) -> WalkStep:
    """Compare two releases, a second time where a time stays open that may have changed by much.

    Raises:
      UnusableError: No variant was timed in both releases.
    """
    step = WalkStep(before, after, compare(before, after, 0))
    if not step.is_timed:
        raise UnusableError(next(_list_failures(step), "no time was compared"))
    if undecided := [change for change in step.times if change.replayed and _is_worth_a_second_attempt(change)]:
        names = ", ".join(map(_name, undecided))
        say(f"{after} compared with {before}: not decided for {names}; measured again with twice the processes")
        try:
            again = WalkStep(before, after, compare(before, after, 1))
        except UnusableError as error:
            say(f"the first measurement of {after} counts, since the second one failed: {error}")
        else:
            step = again if again.is_timed else step
    return step


def _say_all(lines: Iterable[str], say: Say) -> None:
    for line in lines:
        say(line)


def describe_step(step: WalkStep) -> Iterator[str]:
    """Write the changes of each variant, a line each."""
    yield f"{step.after} compared with {step.before}{_write_conditions([step])}:"
    for change in (timed for timed in step.times if not timed.verdict.is_failure):
        cause = f"likely cause: {change.cause}" if change.cause else ""
        counts = ", ".join(_write_count(other) for other in step.changes if _is_count(other) and _is_of(other, change))
        parts = (_write_finding(change), change.reason, cause, f"counts: {counts}" if counts else "")
        yield f"  {_name(change)}: {'; '.join(filter(None, parts))}"
    yield from (f"  {line}" for line in _list_failures(step))


def describe_walk(result: Walk) -> Document:
    """Return all change points, the total, and what could not be judged."""
    parts = [_show_change_points(result.steps)]
    if result.total is not None:
        pair = f"in total, {result.total.after} compared with {result.total.before}"
        title = f"{pair}{_write_conditions([result.total])}:"
        parts.append(Part(title, (_make_table({"": result.total.times}),)))
    costs = [(step, change) for step in result.steps for change in step.changes if change.metric in COSTS]
    counts = [f"{step.after}: {_name(change)}: {_write_count(change)}" for step, change in costs if _is_count(change)]
    stages = [
        f"{step.after}: {_name(change)}: {METRICS[change.metric].title} {_write_finding(change)}"
        for step in result.steps
        for change in step.changes
        if change.metric in COLD and change.verdict.is_open
    ]
    unjudged = [f"{release}: passed over: {reason}" for release, reason in result.passed_over]
    for step in result.steps:
        pair = f"{step.after} compared with {step.before}"
        unjudged += [f"{pair}: {line}" for line in (*_list_open(step), *_list_failures(step))]
    for title, lines in (
        ("planned memory and compilations that changed:", counts),
        ("compile times that are suspected to differ, by the times that both runs stored:", stages),
        ("not judged:", unjudged),
    ):
        parts += [say(*lines, title=title)] if lines else []
    return Document(parts=tuple(parts))


def describe_trial(step: WalkStep, trial: WalkStep, setting: str) -> Iterator[str]:
    """Write whether environment variables on the side of the slower release undo the difference.

    Args:
      step: Measured without them.
      trial: The same releases, measured with them.
      setting: The variables, as NAME=VALUE.
    """
    yield f"{step.after} with {setting} compared with {step.before}{_write_conditions([trial])}:"
    for slower in filter(_is_slower, step.times):
        tried = next((change for change in trial.times if _is_of(change, slower)), None)
        finding = "not measured" if tried is None else f"{_judge_trial(slower, tried)}: {_write_finding(tried)}"
        yield f"  {_name(slower)}: {finding}; without it {_write_finding(slower)}"


def _judge_trial(slower: Change, tried: Change) -> str:
    if tried.verdict in (Verdict.SAME, Verdict.FASTER):
        return "undone"
    if tried.verdict is not Verdict.SLOWER:
        return "not decided"
    (low, _), (_, high) = _find_bounds(slower), _find_bounds(tried)
    return "undone in part" if low is not None and high is not None and high < low else "not undone"


def _show_change_points(steps: Sequence[WalkStep]) -> Part:
    """Return a table; without a change point, the difference that the steps could have detected."""
    by_step = ((f"{step.after} compared with {step.before}", step.change_points) for step in steps)
    change_points = {title: changes for title, changes in by_step if changes}
    number = sum(map(len, change_points.values()))
    detectable = [change.smallest for step in steps for change in step.times if change.smallest is not None]
    if change_points:
        title = f"{number} change point{'s' if number > 1 else ''}{_write_conditions(steps)}:"
        return Part(title, (_make_table(change_points),))
    if detectable:
        least = f"{100 * max(detectable):.1f}{numbers.SPACE}%"
        words = f"no change point is confirmed; the steps could detect a difference of {least}"
        return say(f"{words}{_write_conditions(steps)}")
    return say("no change point is confirmed, and no step could be judged")


def _make_table(change_points: Mapping[str, Sequence[Change]]) -> Table:
    """A row for each change, below the two releases."""
    groups = (Group(tuple(map(_make_row, changes)), title) for title, changes in change_points.items())
    return Table("", COLUMNS, tuple(groups))


def _make_row(change: Change) -> Row:
    cause = f"likely cause: {change.cause}" if change.cause else ""
    words = "; ".join(filter(None, (change.verdict, cause)))
    return Row((Cell(_name(change)), Cell(*_write_effect(change)), Cell(words)))


def _list_open(step: WalkStep) -> Iterator[str]:
    """Write the times that are not decided."""
    for change in step.times:
        if change.verdict.is_open:
            yield f"{_name(change)}: {'; '.join(filter(None, (_write_finding(change), change.reason)))}"


def _list_failures(step: WalkStep) -> Iterator[str]:
    """Write what could not be measured in one of both releases."""
    for change in step.changes:
        # A variant is new for a reason where the earlier release could not run it.
        failed_before = change.verdict is Verdict.NEW and change.reason
        is_exact = change.metric in EXACT  # a number that only one release has is no failure
        if (change.verdict.is_failure and not is_exact) or failed_before:
            yield f"{_name(change)}: {': '.join(filter(None, (change.verdict, change.reason)))}"


def _is_slower(change: Change) -> bool:
    return change.verdict is Verdict.SLOWER


def _is_of(change: Change, other: Change) -> bool:
    """Whether two changes are about one variant."""
    return change.key == other.key


def _is_count(change: Change) -> bool:
    """Whether an exact number has changed."""
    is_exact = change.metric in EXACT and change.verdict.is_exact
    return is_exact and None not in (change.before, change.after)


def _name(change: Change) -> str:
    return f"{change.case} {change.variant}".strip()


def _is_worth_a_second_attempt(change: Change) -> bool:
    """Whether a time is not decided, and a suspected or large change is not excluded."""
    if change.verdict is not Verdict.INCONCLUSIVE:
        return change.verdict.is_open
    low, high = _find_bounds(change)
    return low is None or high is None or low <= 1 / LARGE_FACTOR or high >= LARGE_FACTOR


def _find_bounds(change: Change) -> tuple[float | None, float | None]:
    """Return the interval that the verdict goes by."""
    return (None, None) if change.effect is None else (change.effect.decisive.low, change.effect.decisive.high)


def _write_effect(change: Change) -> tuple[str, str]:
    """Write factor and interval; empty where there is none."""
    low, high = _find_bounds(change)
    factor = "" if change.effect is None else f"{change.effect.estimate:.3f}"
    return factor, "" if low is None or high is None else f"{low:.3f} to {high:.3f}"


def _write_finding(change: Change) -> str:
    """`slower, 1.053 times as long (99 % interval 1.041 to 1.066)`."""
    factor, bounds = _write_effect(change)
    finding = f"{change.verdict}, {factor} times as long" if factor else str(change.verdict)
    return f"{finding} (99 % interval {bounds})" if bounds else finding


def _write_conditions(steps: Iterable[WalkStep]) -> str:
    """Write how times were compared: a verdict on one core says nothing about several."""
    cores = {change.cores for step in steps for change in step.times if change.replayed}
    if not cores:
        return ""
    number = cores.pop() if len(cores) == 1 else None
    return f", in lock-step{'' if number is None else ' on one core' if number == 1 else f' on {number} cores'}"


def _write_count(change: Change) -> str:
    """`planned peak memory 1 024 B → 2 048 B`."""
    metric = METRICS[change.metric]
    values = [value for value in (change.before, change.after) if value is not None]
    is_count = metric.unit is Unit.COUNT
    texts = [numbers.count(value) if is_count else numbers.amount_exactly(value, metric.unit) for value in values]
    return f"{metric.title} {' → '.join(texts)}"
