"""Whether a run passes: what got worse beyond its budget and was confirmed, and what stands in the way of an answer."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

import msgspec

from jaxmeter.harness.metrics.reading import Run
from jaxmeter.harness.metrics.statistics import CONFIDENCE, Interval
from jaxmeter.harness.record.suspects import Suspect, Suspects

from .budgets import Budgets, describe_between_releases
from .chance import plan_processes, reject_by_holm
from .changes import compare_runs
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
    found = [one for one in changes.times if _is_suspect(one, budgets) or one.key in watched]
    replayed = ((one, budgets.find(one.suite, one.case, TIME)) for one in found if one.replayed)
    scattered = [
        (one.effect, allowance.share or 0.0)
        for one, allowance in replayed
        if one.effect is not None and allowance is not None
    ]
    return Suspects(
        baseline=changes.before,
        suspects=tuple(Suspect(case=one.case, variant=one.variant) for one in found),
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
    regressions = [one for one in changes.found if one.metric != TIME and exceeds(one, budgets)]
    looked = {} if confirmed_by is None else {one.key: one for one in confirmed_by.times}
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
    suspects = {one.key: one for one in changes.times if _is_suspect(one, budgets)}
    watched = (_find_changed(changes) if also_changed else {}) | suspects
    again = {key: one for key in watched if (one := looked.get(key)) is not None}
    sure = _list_sure(again, among=_count_family(changes))
    unconfirmed = []
    for key, one in watched.items():
        if key in again and key in sure and exceeds(again[key], budgets):
            regressions.append(again[key])
        elif key in suspects and (key not in again or not _is_refuted(one, again[key], budgets, is_sure=key in sure)):
            unconfirmed.append(again.get(key, one))
    if machine := describe_machine(unconfirmed, among=len(changes.times)):
        obstacles.append(machine)
    return Judgement(tuple(regressions), tuple(unconfirmed), tuple(obstacles), allowed)


def _list_sure(again: Mapping[Key, Change], *, among: int) -> frozenset[Key]:
    """Return the suspects that the second look finds slower: of programs among all times, of calls among the suspects.

    Programs that ran next to each other are confirmed, so that each of the run's times could have been a false one.
    Stored times only withhold an answer.
    """
    found: frozenset[Key] = frozenset()
    for replayed, verdicts, family in (
        (True, (Verdict.SLOWER,), among),
        (False, (Verdict.SLOWER, Verdict.SUSPECTED_SLOWER), len(again)),
    ):
        chances = {
            key: one.chance
            for key, one in again.items()
            if one.replayed is replayed and one.chance is not None and one.verdict in verdicts
        }
        found |= reject_by_holm(chances, among=family, level=1 - CONFIDENCE)
    return found


def describe_machine(unconfirmed: Iterable[Change], *, among: int) -> str:
    """Return that most times have grown by one factor, which no change of a program explains; else an empty text.

    The stored times of peers count, too: nothing of JAX makes another library slower.

    Args:
      unconfirmed: Suspects that are left.
      among: Number of all times.
    """
    factors = [one.effect.estimate for one in unconfirmed if one.effect is not None and not one.replayed]
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
    found = (
        one
        for one in changes.found
        if exceeds(one, budgets) or (count_suspected and one.verdict is Verdict.SUSPECTED_SLOWER)
    )
    return Judgement(tuple(found), (), tuple(_list_missing(changes)), allowed)


def _relax(changes: Changes, budgets: Budgets) -> tuple[Budgets, tuple[Change, ...]]:
    """Return the budgets for the releases of both runs, and the changes that pass only between releases."""
    if not changes.conditions.releases:
        return budgets, ()
    relaxed, names = budgets.relax(), ", ".join(changes.conditions.releases)
    allowed = tuple(
        replace(
            change, reason=f"within the {describe_between_releases(change.metric)} allowed between releases ({names})"
        )
        for change in changes.found
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
        found = [one for one in changes.having(verdict) if one.metric == WHOLE]
        if found:
            yield f"{_name_some(found)} {words}"


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
    decided = sum(one.verdict.is_decided or looked.get(one.key, one).verdict.is_decided for one in changes.times)
    timed = _count_family(changes)
    alone = [
        one
        for one in changes.times
        if one.is_program_alone
        or (one.verdict is Verdict.NOT_COMPARABLE and one.reason != changes.conditions.other_runtime)
    ]
    if alone:
        yield f"the whole call of {_name_some(alone)} was not compared: {alone[0].reason}"
    if not changes.times:
        yield "no time was compared"
    elif decided < FEWEST_DECIDED * timed:
        too_few = f"only {decided} of {timed} times have a verdict: too few to represent the rest"
        yield changes.conditions.other_runtime if len(changes.without_runtimes) < len(changes.found) else too_few


def _group(changes: Changes, budgets: Budgets, verdict: Verdict) -> dict[str, list[Change]]:
    """Return the numbers with a verdict, by metric, if the gate or a budget asks for them."""
    found: dict[str, list[Change]] = {}
    for one in changes.having(verdict):
        if one.metric == PROGRAM or (one.metric and budgets.find(one.suite, one.case, one.metric) is not None):
            found.setdefault(one.metric, []).append(one)
    return found


def _name_some(found: Iterable[Change]) -> str:
    names = [f"{one.case} {one.variant}".strip() for one in found]
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return f"{', '.join(names[:3])}{more}"


def _find_changed(changes: Changes) -> dict[Key, Change]:
    """Times of which two runs tell nothing, of programs that are no longer the same."""
    changed = {one.key for one in changes.found if one.metric == PROGRAM and one.verdict is Verdict.CHANGED}
    open_ones = (one for one in changes.times if one.verdict in (Verdict.INCONCLUSIVE, Verdict.SAME))
    return {one.key: one for one in open_ones if one.key in changed and not one.replayed}


def _is_suspect(one: Change, budgets: Budgets) -> bool:
    if one.call is not None and _is_ratio_beyond(one, one.call, budgets):
        return True
    if one.effect is None or not _is_beyond(one, budgets, part=0.5):
        return False
    if one.verdict in (Verdict.SLOWER, Verdict.SUSPECTED_SLOWER):
        return _is_beyond(one, budgets)
    return one.verdict is Verdict.INCONCLUSIVE and one.replayed


def _is_refuted(first: Change, one: Change, budgets: Budgets, *, is_sure: bool) -> bool:
    """Return whether many processes found no difference beyond the budget.

    Args:
      first: The suspect.
      is_sure: Whether it holds among all suspects that the call is longer.
    """
    if one.call is not None and _is_ratio_beyond(one, one.call, budgets):
        return False
    if not one.replayed:
        return not first.replayed and not (is_sure and _is_beyond(one, budgets)) and _is_nearer_to_1(first, one)
    if one.verdict in (Verdict.SAME, Verdict.FASTER):
        return True
    if one.verdict is Verdict.SLOWER:
        return not _is_beyond(one, budgets)
    if one.verdict is not Verdict.INCONCLUSIVE or one.reason or one.smallest is None:
        return False
    # What it did not find it could have found: else silence says nothing.
    allowance = budgets.find(one.suite, one.case, TIME)
    return allowance is not None and one.smallest <= max(allowance.share or 0.0, LEAST_SURE)


def _is_nearer_to_1(first: Change, second: Change) -> bool:
    """Whether fresh processes took less than half of a difference for it, and could have shown it, or a doubling."""
    was, now_is = first.effect, second.effect
    if was is None or now_is is None or now_is.decisive.high is None or min(was.estimate, now_is.estimate) <= 0:
        return False
    is_less = math.log(now_is.estimate) <= math.log(was.estimate) / 2
    return is_less and now_is.estimate <= LARGE and now_is.decisive.high <= max(was.estimate, LARGE)


def exceeds(one: Change, budgets: Budgets) -> bool:
    """Whether it is surely worse, and beyond its budget."""
    if one.metric == TIME:
        return one.verdict is Verdict.SLOWER and _is_beyond(one, budgets)
    allowance = budgets.find(one.suite, one.case, one.metric)
    if allowance is None or one.before is None or one.after is None:
        return False
    return one.verdict in (Verdict.MORE, Verdict.CHANGED) and allowance.is_exceeded(one.before, one.after)


def _is_beyond(one: Change, budgets: Budgets, *, part: float = 1.0) -> bool:
    """Whether the estimate is beyond a part of the budget."""
    return one.effect is not None and _is_ratio_beyond(one, one.effect, budgets, part=part)


def _is_ratio_beyond(one: Change, ratio: Interval, budgets: Budgets, *, part: float = 1.0) -> bool:
    allowance = budgets.find(one.suite, one.case, TIME)
    return allowance is not None and ratio.estimate > 1 + part * (allowance.share or 0.0)


def encode_suspects(changes: Changes, budgets: Budgets, *, also_changed: bool = False) -> bytes | None:
    """Return what a run should time once more, as `list_suspects` has it; None where there is nothing."""
    suspects = list_suspects(changes, budgets, also_changed=also_changed)
    return msgspec.json.encode(suspects) if suspects.suspects else None
