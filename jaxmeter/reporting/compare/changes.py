"""What changed from one run to another: cases paired by identity, every pair with a verdict and its reason.

Order of trust: a program that an earlier run kept, run again beside today's in the same processes, confirms a change;
what follows from the program alone, such as planned peak memory, is compared exactly; times that two runs stored only
raise a suspicion, since two runs do not share the state of the machine.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace

from jaxmeter.harness.metrics.reading import Case, Run, Variant, compare_at_one_speed
from jaxmeter.harness.metrics.statistics import MINIMUM_EFFECT
from jaxmeter.harness.record import INCOMPLETE, Outcome, Status
from jaxmeter.harness.record.cases import is_same_problem
from jaxmeter.harness.record.runs import Contents

from ..load import without_collecting
from ..text import visible_record
from .claims import judge_reports
from .conditions import RunPair, VariantPair, compare_conditions, find_status, name_confirming_command, name_variables
from .times import compare_cold, compare_exact, compare_times, count_exact
from .verdicts import TIME, WHOLE, Change, Changes, LoneNote, Verdict, make_change

ANOTHER_CASE = "its inputs, reference, cost, devices or settings of jax have changed: another case of the same name"

_NUMBER = re.compile(r"\d[\d.,]*")


def find_changes(
    before: Run, after: Run, *, minimum_effect: float = MINIMUM_EFFECT, explained_by: Run | None = None
) -> Changes:
    """Every verdict about two runs, case by case, in the order of the later run.

    Args:
      minimum_effect: The smallest difference of a time that is worth a verdict, as a share.
      explained_by: The run that `after` confirms: its probes say what may explain a change.
    """
    before, after = compare_at_one_speed(before, after)
    conditions = compare_conditions(before.manifest, after.manifest)
    runs = RunPair(before, after, conditions, minimum_effect, explained_by)
    pairs = list(_list_pairs(runs))
    changes = tuple(_list_changes(runs))
    return Changes(
        before=before.manifest.run_id,
        after=after.manifest.run_id,
        conditions=runs.conditions,
        minimum_effect=minimum_effect,
        entries=changes,
        reports=tuple(judge_reports(before, after, changes)),
        against=after.manifest.against,
        compared=len(pairs),
        timed=sum(variant.read(TIME).has_number for variant in _list_earlier(runs)),
        exact_counts=count_exact(pairs, changes),
        names=tuple(f"{case.suite}/{case.name}" for case in after.manifest.cases),
        variables=name_variables(before.environment, after.environment),
        notes=tuple(_list_lone_notes(pairs)),
        edited=tuple(run.manifest.run_id for run in (before, after) if run.contents is Contents.CHANGED),
        confirming=_name_confirming(before, after),
    )


def _name_confirming(before: Run, after: Run) -> str:
    """Return the command that confirms a slower call; empty where the earlier code ran in lock-step already."""
    lock_step = after.manifest.settings.lock_step
    if lock_step is not None and lock_step.checkout is not None:
        return ""
    return name_confirming_command(before.manifest, after.manifest, str(before.folder.path))


def _list_changes(runs: RunPair) -> Iterator[Change]:
    confirms = runs.after.manifest.confirms
    for key, new in runs.after.by_key.items():
        old = runs.before.by_key.get(key)
        if old is None:
            yield make_change(new, "", WHOLE, Verdict.NEW)
        else:
            yield from _compare_cases(runs.at(new.planned.platform), old, new)
    for key, old in () if confirms else runs.before.by_key.items():
        if key not in runs.after.by_key:
            yield make_change(old, "", WHOLE, Verdict.GONE)


def _list_pairs(runs: RunPair) -> Iterator[VariantPair]:
    """Every variant that both runs have, of the same cases."""
    for key, new in runs.after.by_key.items():
        old = runs.before.by_key.get(key)
        if old is None or not is_same_problem(old.planned, new.planned):
            continue
        at = runs.at(new.planned.platform)
        if at.conditions.incomparable:
            continue
        for variant in () if old.is_lost or new.is_lost else new.variants:
            if (earlier := old.find(variant.name)) is not None:
                yield VariantPair(at, new, earlier, variant)


def _list_lone_notes(pairs: Iterable[VariantPair]) -> Iterator[LoneNote]:
    """Yield each note that only one run has, with its variants. Notes that differ only in numbers count as equal."""
    notes: dict[tuple[str, bool], dict[str, str]] = {}
    for pair in pairs:
        for probe in filter(pair.new.outcomes.__contains__, pair.old.outcomes):
            old, new = (_read_notes(variant.outcomes[probe]) for variant in (pair.old, pair.new))
            for own, other, is_later in ((old, new, False), (new, old, True)):
                for key in own.keys() - other.keys():
                    notes.setdefault((key, is_later), {})[f"{pair.case.planned.name} {pair.name}"] = own[key]
    for (_, is_later), texts in sorted(notes.items(), key=lambda item: item[0]):
        variant, text = next(iter(texts.items()))
        differ = "" if len(set(texts.values())) == 1 else f" (of {variant}; the others have other numbers)"
        yield LoneNote(text + differ, is_later, tuple(texts))


def _read_notes(outcome: Outcome) -> dict[str, str]:
    """Return the notes of a probe, by their text without numbers."""
    return {_NUMBER.sub("#", note): note for note in outcome.notes}


def _list_earlier(runs: RunPair) -> Iterator[Variant]:
    """The variants of the earlier run; beside a run that confirms, those of its cases."""
    keys = runs.after.by_key if runs.after.manifest.confirms else runs.before.by_key
    for key in keys:
        if key in runs.before.by_key:
            yield from (variant for variant in runs.before.by_key[key].variants if variant.planned.replays is None)


def _compare_cases(runs: RunPair, old: Case, new: Case) -> Iterator[Change]:
    if not is_same_problem(old.planned, new.planned):
        yield make_change(new, "", WHOLE, Verdict.NOT_COMPARABLE, reason=ANOTHER_CASE)
    elif new.record is None:
        yield make_change(new, "", WHOLE, Verdict.FAILED, reason="the later run left no record of it")
    elif old.record is None:
        yield make_change(new, "", WHOLE, Verdict.NEW, reason="the earlier run left no record of it")
    elif runs.conditions.incomparable:
        yield make_change(new, "", WHOLE, Verdict.NOT_COMPARABLE, reason=runs.conditions.incomparable)
    else:
        yield from _compare_all(runs, old, new)


def _compare_all(runs: RunPair, old: Case, new: Case) -> Iterator[Change]:
    """Every variant of a case; what ran beside today's variants is no variant by itself."""
    for variant in new.variants:
        earlier = old.find(variant.name)
        if variant.planned.replays is not None:
            continue
        if earlier is None:
            yield make_change(new, variant.name, WHOLE, Verdict.NEW)
        else:
            yield from _compare_variants(VariantPair(runs, new, earlier, variant))
    for variant in old.variants:
        is_gone = new.find(variant.name) is None and variant.planned.replays is None
        if is_gone and not runs.after.manifest.confirms:
            yield make_change(new, variant.name, WHOLE, Verdict.GONE)


def _compare_variants(sides: VariantPair) -> Iterator[Change]:
    was, why_before = find_status(sides.old)
    now_is, why = find_status(sides.new)
    reason = f"{now_is.value}: {why}"
    if now_is in INCOMPLETE:
        yield make_change(sides.case, sides.name, WHOLE, Verdict.FAILED, reason=reason)
    elif was in INCOMPLETE:
        before = f"before, it ended as {was.value}: {why_before}"
        yield make_change(sides.case, sides.name, WHOLE, Verdict.NEW, reason=before)
    elif now_is is not Status.OK and was is Status.OK:
        yield make_change(sides.case, sides.name, WHOLE, Verdict.GONE, reason=reason)
    else:
        yield from compare_exact(sides)
        yield from compare_cold(sides)
        time = compare_times(sides)
        if time is not None:
            yield time


def compare_runs(
    before: Run, after: Run, minimum_effect: float = MINIMUM_EFFECT, explained_by: Run | None = None
) -> Changes:
    """Return what changed between two runs, every recorded text visible.

    Args:
      explained_by: As for `find_changes`.
    """
    with without_collecting():
        runs = (before, after) if explained_by is None else (before, after, explained_by)
        first, second, *explaining = (replace(run, record=visible_record(run.record)) for run in runs)
        return find_changes(first, second, minimum_effect=minimum_effect, explained_by=next(iter(explaining), None))
