"""Whether a run passes: what got worse beyond its budget and was confirmed, and what stands in the way of an answer."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

import msgspec

from jaxmeter.harness.metrics.reading import Run
from jaxmeter.harness.metrics.statistics import CONFIDENCE, Interval
from jaxmeter.harness.record.runs import Suspect, Suspects

from .budgets import Budgets, describe_between_releases
from .changes import compare_runs
from .ratios import plan_processes, reject_by_holm
from .times import LARGE
from .verdicts import PROGRAM, TIME, WHOLE, Change, Changes, Verdict, leave_out_times, merge

FINE, REGRESSED, UNDECIDED = 0, 1, 3
"""Exit codes: fine; a confirmed regression; no answer that can be relied on."""

LEAST_SURE = 0.05
"""A confirmation that could have found a slowdown of so much, and found none, refutes a suspicion."""

FEWEST_DECIDED = 0.5
"""Share of the times that need a verdict: fewer tell nothing of the rest."""

MOST, FEWEST_MOVED = 0.5, 3
"""Share of the times, and number of them, that move by one factor where the machine has changed."""

ALIKE = 1.25
"""Times that grew by factors within this of their median grew alike. Chosen: twice the usual error of a stored time."""

Key = tuple[str, str, str]


@dataclass(frozen=True)
class Judgement:
    """What a gate says.

    Args:
      regressions: Confirmed, beyond their budget.
      unconfirmed: Suspects that nothing has confirmed or refuted.
      obstacles: Why there is no answer that can be relied on, a sentence each.
      allowed: Changes that pass only by the allowance between releases of jax or jaxlib; their reason names it.
    """

    regressions: tuple[Change, ...]
    unconfirmed: tuple[Change, ...]
    obstacles: tuple[str, ...]
    allowed: tuple[Change, ...] = ()

    @property
    def code(self) -> int:
        """The exit code: a confirmed regression counts, whatever else is in the way."""
        if self.regressions:
            return REGRESSED
        return UNDECIDED if self.unconfirmed or self.obstacles else FINE


def judge_runs(
    before: Run,
    after: Run,
    effect: float,
    budgets: Budgets,
    *,
    confirmed_by: Run | None = None,
    exact: bool = False,
    also_changed: bool = False,
) -> tuple[Changes, Judgement]:
    """Compare two runs, and return what changed and what the gate says of it.

    Args:
      effect: The smallest difference of a time that counts, as a share.
      confirmed_by: A run that timed the suspects of `after` once more; what it says replaces what was suspected.
      exact, also_changed: As for `judge`.
    """
    changes = compare_runs(before, after, effect)
    again = None if confirmed_by is None else compare_runs(before, confirmed_by, effect, explained_by=after)
    if exact:
        changes = leave_out_times(changes)
    judgement = judge(changes, budgets, confirmed_by=again, exact=exact, also_changed=also_changed)
    return (changes if again is None or exact else merge(changes, again)), judgement


def list_suspects(changes: Changes, budgets: Budgets, *, also_changed: bool = False) -> Suspects:
    """Times that may be longer than their budget allows: told so, or so by their estimate and not excluded.

    Args:
      also_changed: Whether also those of programs that are others now: where the earlier run's did not run beside
        today's, stored times would tell a large difference alone.
    """
    watched = _find_changed(changes) if also_changed else {}
    suspected = [change for change in changes.times if _is_suspect(change, budgets) or change.key in watched]
    replayed = ((change, budgets.find(change.suite, change.case, TIME)) for change in suspected if change.replayed)
    scattered = [
        (change.effect, allowance.share or 0.0)
        for change, allowance in replayed
        if change.effect is not None and allowance is not None
    ]
    return Suspects(
        baseline=changes.before,
        suspects=tuple(Suspect(case=change.case, variant=change.variant) for change in suspected),
        processes=plan_processes(scattered, among=_count_family(changes)),
    )


def judge(
    changes: Changes,
    budgets: Budgets,
    *,
    confirmed_by: Changes | None = None,
    exact: bool = False,
    also_changed: bool = False,
) -> Judgement:
    """What a gate says of a comparison.

    Args:
      confirmed_by: The same baseline run beside a run that timed the suspects alone, by many processes.
      exact: Whether only what follows from programs counts, and no time.
      also_changed: As the suspects were listed. Of these nothing stands in the way of an answer.
    """
    budgets, allowed = _relax(changes, budgets)
    regressions = [change for change in changes.entries if change.metric != TIME and exceeds(change, budgets)]
    looked = {} if confirmed_by is None else {change.key: change for change in confirmed_by.times}
    obstacles = list(_list_obstacles(changes, budgets, looked, exact=exact))
    edited = {*changes.edited, *(() if confirmed_by is None else confirmed_by.edited)}
    obstacles += [f"the files of run {name} have changed since it ended" for name in sorted(edited)]
    if not (exact or also_changed) and changes.compared and changes.against != changes.before:
        obstacles.append(
            f"run {changes.after} was measured {f'against {changes.against}' if changes.against else 'alone'}, "
            f"not --against {changes.before}"
        )
    if exact:
        return Judgement(tuple(regressions), (), tuple(obstacles), allowed)
    suspects = {change.key: change for change in changes.times if _is_suspect(change, budgets)}
    watched = (_find_changed(changes) if also_changed else {}) | suspects
    again = {key: change for key in watched if (change := looked.get(key)) is not None}
    sure = _list_sure(again, among=_count_family(changes))
    unconfirmed = []
    for key, change in watched.items():
        if key in again and key in sure and exceeds(again[key], budgets):
            regressions.append(again[key])
        elif key in suspects and (
            key not in again or not _is_refuted(change, again[key], budgets, is_sure=key in sure)
        ):
            unconfirmed.append(again.get(key, change))
    if machine := describe_machine(unconfirmed, among=len(changes.times)):
        obstacles.append(machine)
    return Judgement(tuple(regressions), tuple(unconfirmed), tuple(obstacles), allowed)


def _list_sure(again: Mapping[Key, Change], *, among: int) -> frozenset[Key]:
    """Return the suspects that the second look finds slower: of programs among all times, of calls among the suspects.

    Programs that ran next to each other are confirmed, so that each of the run's times could have been a false one.
    Stored times only withhold an answer.
    """
    sure: frozenset[Key] = frozenset()
    for replayed, verdicts, family in (
        (True, (Verdict.SLOWER,), among),
        (False, (Verdict.SLOWER, Verdict.SUSPECTED_SLOWER), len(again)),
    ):
        chances = {
            key: change.chance
            for key, change in again.items()
            if change.replayed is replayed and change.chance is not None and change.verdict in verdicts
        }
        sure |= reject_by_holm(chances, among=family, level=1 - CONFIDENCE)
    return sure


def describe_machine(unconfirmed: Iterable[Change], *, among: int) -> str:
    """Return that most times have grown by one factor, which no change of a program explains; else an empty text.

    The stored times of peers count, too: nothing of JAX makes another library slower.

    Args:
      unconfirmed: Suspects that are left.
      among: Number of all times.
    """
    factors = [change.effect.estimate for change in unconfirmed if change.effect is not None and not change.replayed]
    if len(factors) < max(FEWEST_MOVED, MOST * among):
        return ""
    middle = statistics.median(factors)
    alike = sum(middle / ALIKE <= factor <= middle * ALIKE for factor in factors)
    if alike < MOST * among:
        return ""
    return (
        f"{alike} of {among} times increased by about the same factor, {middle:.2g}×: the machine or a shared "
        "dependency has changed since the earlier run; measure the earlier run again"
    )


def judge_alone(changes: Changes, budgets: Budgets, *, count_suspected: bool = False) -> Judgement:
    """What two runs say by themselves, where nothing was or will be confirmed by others.

    Args:
      count_suspected: Whether what is suspected to be slower counts, too.
    """
    budgets, allowed = _relax(changes, budgets)
    regressions = (
        change
        for change in changes.entries
        if exceeds(change, budgets) or (count_suspected and change.verdict is Verdict.SUSPECTED_SLOWER)
    )
    return Judgement(tuple(regressions), (), tuple(_list_missing(changes)), allowed)


def _relax(changes: Changes, budgets: Budgets) -> tuple[Budgets, tuple[Change, ...]]:
    """Return the budgets for the releases of both runs, and the changes that pass only between releases."""
    if not changes.conditions.releases:
        return budgets, ()
    relaxed, names = budgets.relax(), ", ".join(changes.conditions.releases)
    allowed = tuple(
        replace(
            change, reason=f"within the {describe_between_releases(change.metric)} allowed between releases ({names})"
        )
        for change in changes.entries
        if change.metric != TIME and exceeds(change, budgets) and not exceeds(change, relaxed)
    )
    return relaxed, allowed


def _count_family(changes: Changes) -> int:
    """How many times may seem slower by chance."""
    return max(changes.timed, len(changes.times))


def _list_missing(changes: Changes) -> Iterator[str]:
    """What should have been compared, and was not."""
    if changes.conditions.incomparable:
        yield f"the two runs cannot be compared: {changes.conditions.incomparable}"
        return
    if not changes.compared:
        yield "nothing was compared: the two runs have no case in common, or nothing of it was measured"
        return
    for verdict, words in ((Verdict.FAILED, "failed"), (Verdict.GONE, "is gone")):
        wholes = [change for change in changes.having(verdict) if change.metric == WHOLE]
        if wholes:
            yield f"{_name_some(wholes)} {words}"


def _list_obstacles(changes: Changes, budgets: Budgets, looked: Mapping[Key, Change], *, exact: bool) -> Iterator[str]:
    yield from _list_missing(changes)
    if not changes.compared:
        return
    for gone in _group(changes, budgets, Verdict.GONE).values():
        yield f"{gone[0].title} is missing for {_name_some(gone)}: {gone[0].reason}"
    for metric, unclear in _group(changes, budgets, Verdict.INCONCLUSIVE).items():
        if metric != TIME:
            yield f"{unclear[0].title} of {_name_some(unclear)} cannot be compared: {unclear[0].reason}"
    if exact:
        if not changes.exact:
            yield "the runs have no exact number in common: planned peak memory, counts of a program, its fingerprint"
        return
    decided = sum(
        change.verdict.is_decided or looked.get(change.key, change).verdict.is_decided for change in changes.times
    )
    timed = _count_family(changes)
    alone = [
        change
        for change in changes.times
        if change.is_program_alone
        or (change.verdict is Verdict.NOT_COMPARABLE and change.reason != changes.conditions.other_runtime)
    ]
    if alone:
        yield f"the whole call of {_name_some(alone)} was not compared: {alone[0].reason}"
    if not changes.times:
        yield "no time was compared"
    elif decided < FEWEST_DECIDED * timed:
        too_few = f"only {decided} of {timed} times have a verdict: too few to represent the rest"
        yield changes.conditions.other_runtime if len(changes.without_runtimes) < len(changes.entries) else too_few


def _group(changes: Changes, budgets: Budgets, verdict: Verdict) -> dict[str, list[Change]]:
    """Return the numbers with a verdict, by metric, if the gate or a budget asks for them."""
    by_metric: dict[str, list[Change]] = {}
    for change in changes.having(verdict):
        if change.metric == PROGRAM or (
            change.metric and budgets.find(change.suite, change.case, change.metric) is not None
        ):
            by_metric.setdefault(change.metric, []).append(change)
    return by_metric


def _name_some(changes: Iterable[Change]) -> str:
    names = [f"{change.case} {change.variant}".strip() for change in changes]
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return f"{', '.join(names[:3])}{more}"


def _find_changed(changes: Changes) -> dict[Key, Change]:
    """Times of which two runs tell nothing, of programs that are no longer the same."""
    changed = {
        change.key for change in changes.entries if change.metric == PROGRAM and change.verdict is Verdict.CHANGED
    }
    open_ones = (change for change in changes.times if change.verdict in (Verdict.INCONCLUSIVE, Verdict.SAME))
    return {change.key: change for change in open_ones if change.key in changed and not change.replayed}


def _is_suspect(change: Change, budgets: Budgets) -> bool:
    if change.call is not None and _is_ratio_beyond(change, change.call, budgets):
        return True
    if change.effect is None or not _is_beyond(change, budgets, part=0.5):
        return False
    if change.verdict in (Verdict.SLOWER, Verdict.SUSPECTED_SLOWER):
        return _is_beyond(change, budgets)
    return change.verdict is Verdict.INCONCLUSIVE and change.replayed


def _is_refuted(first: Change, second: Change, budgets: Budgets, *, is_sure: bool) -> bool:
    """Return whether many processes found no difference beyond the budget.

    Args:
      first: The suspect.
      is_sure: Whether it holds among all suspects that the call is longer.
    """
    if second.call is not None and _is_ratio_beyond(second, second.call, budgets):
        return False
    if not second.replayed:
        return not first.replayed and not (is_sure and _is_beyond(second, budgets)) and _is_nearer_to_1(first, second)
    if second.verdict in (Verdict.SAME, Verdict.FASTER):
        return True
    if second.verdict is Verdict.SLOWER:
        return not _is_beyond(second, budgets)
    if second.verdict is not Verdict.INCONCLUSIVE or second.reason or second.smallest is None:
        return False
    # What it did not find it could have found: else silence says nothing.
    allowance = budgets.find(second.suite, second.case, TIME)
    return allowance is not None and second.smallest <= max(allowance.share or 0.0, LEAST_SURE)


def _is_nearer_to_1(first: Change, second: Change) -> bool:
    """Whether fresh processes took less than half of a difference for it, and could have shown it, or a doubling."""
    was, now_is = first.effect, second.effect
    if was is None or now_is is None or now_is.decisive.high is None or min(was.estimate, now_is.estimate) <= 0:
        return False
    is_less = math.log(now_is.estimate) <= math.log(was.estimate) / 2
    return is_less and now_is.estimate <= LARGE and now_is.decisive.high <= max(was.estimate, LARGE)


def exceeds(change: Change, budgets: Budgets) -> bool:
    """Whether it is surely worse, and beyond its budget."""
    if change.metric == TIME:
        return change.verdict is Verdict.SLOWER and _is_beyond(change, budgets)
    allowance = budgets.find(change.suite, change.case, change.metric)
    if allowance is None or change.before is None or change.after is None:
        return False
    return change.verdict in (Verdict.MORE, Verdict.CHANGED) and allowance.is_exceeded(change.before, change.after)


def _is_beyond(change: Change, budgets: Budgets, *, part: float = 1.0) -> bool:
    """Whether the estimate is beyond a part of the budget."""
    return change.effect is not None and _is_ratio_beyond(change, change.effect, budgets, part=part)


def _is_ratio_beyond(change: Change, ratio: Interval, budgets: Budgets, *, part: float = 1.0) -> bool:
    allowance = budgets.find(change.suite, change.case, TIME)
    return allowance is not None and ratio.estimate > 1 + part * (allowance.share or 0.0)


def encode_suspects(changes: Changes, budgets: Budgets, *, also_changed: bool = False) -> bytes | None:
    """Return what a run should time once more, as `list_suspects` has it; None where there is nothing."""
    suspects = list_suspects(changes, budgets, also_changed=also_changed)
    return msgspec.json.encode(suspects) if suspects.suspects else None
