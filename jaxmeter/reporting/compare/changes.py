"""What changed from one run to another: cases paired by identity, every pair with a finding and its reason.

Order of trust: a program that an earlier run kept, run again beside today's in the same processes, confirms a change;
what follows from the program alone, such as planned peak memory, is compared exactly; times that two runs stored only
raise a suspicion, since two runs do not share the state of the machine.
"""

from __future__ import annotations

from collections.abc import Iterator

from jaxmeter.harness.metrics.metric import Readable
from jaxmeter.harness.metrics.statistics import MINIMUM_EFFECT
from jaxmeter.harness.record import INCOMPLETE, Status
from jaxmeter.harness.record.cases import is_same_problem

from .conditions import compare_conditions
from .exact import compare_exact, count_exact
from .findings import TIME, WHOLE, Change, Changes, Finding, make_change
from .snapshot import ComparedCase, Snapshot
from .times import compare_cold, compare_times
from .variant_pair import Comparison, VariantPair, find_status

ANOTHER_CASE = "its inputs, reference, cost, devices or settings of jax have changed: another case of the same name"


def find_changes(before: Snapshot, after: Snapshot, *, minimum_effect: float = MINIMUM_EFFECT) -> Changes:
    """Every finding about two runs, case by case, in the order of the later run.

    Args:
      after: Brought to the reference speed of the earlier run.
      minimum_effect: The smallest difference of a time that is worth a finding, as a share.
    """
    runs = Comparison(before, after, compare_conditions(before.manifest, after.manifest), minimum_effect)
    pairs = list(_list_pairs(runs))
    return Changes(
        before=before.manifest.run_id,
        after=after.manifest.run_id,
        conditions=runs.conditions,
        minimum_effect=minimum_effect,
        found=tuple(_list_changes(runs)),
        compared=len(pairs),
        timed=sum(one.read(TIME).has_number for one in _list_earlier(runs)),
        exact=sum(map(count_exact, pairs)),
        names=tuple(f"{case.suite}/{case.name}" for case in after.manifest.cases),
    )


def _list_changes(runs: Comparison) -> Iterator[Change]:
    confirms = runs.after.manifest.confirms
    for key, new in runs.after.cases.items():
        old = runs.before.cases.get(key)
        if old is None:
            yield make_change(new, "", WHOLE, Finding.NEW)
        else:
            yield from _compare_cases(runs, old, new)
    for key, old in () if confirms else runs.before.cases.items():
        if key not in runs.after.cases:
            yield make_change(old, "", WHOLE, Finding.GONE)


def _list_pairs(runs: Comparison) -> Iterator[VariantPair]:
    """Every variant that both runs have, of the same cases."""
    for key, new in runs.after.cases.items():
        old = runs.before.cases.get(key)
        if old is not None and not runs.conditions.incomparable and is_same_problem(old.planned, new.planned):
            for name in new.variants:
                if name in old.variants:
                    yield VariantPair(runs, new, old.variants[name], new.variants[name])


def _list_earlier(runs: Comparison) -> Iterator[Readable]:
    """The variants of the earlier run; beside a run that confirms, those of its cases."""
    keys = runs.after.cases if runs.after.manifest.confirms else runs.before.cases
    for key in keys:
        if key in runs.before.cases:
            yield from (one for one in runs.before.cases[key].variants.values() if one.planned.replays is None)


def _compare_cases(runs: Comparison, old: ComparedCase, new: ComparedCase) -> Iterator[Change]:
    if not is_same_problem(old.planned, new.planned):
        yield make_change(new, "", WHOLE, Finding.NOT_COMPARABLE, reason=ANOTHER_CASE)
    elif new.record is None:
        yield make_change(new, "", WHOLE, Finding.FAILED, reason="the later run left no record of it")
    elif old.record is None:
        yield make_change(new, "", WHOLE, Finding.NEW, reason="the earlier run left no record of it")
    elif runs.conditions.incomparable:
        yield make_change(new, "", WHOLE, Finding.NOT_COMPARABLE, reason=runs.conditions.incomparable)
    else:
        yield from _compare_all(runs, old, new)


def _compare_all(runs: Comparison, old: ComparedCase, new: ComparedCase) -> Iterator[Change]:
    """Every variant of a case; what ran beside today's variants is no variant by itself."""
    for name, variant in new.variants.items():
        earlier = old.variants.get(name)
        if variant.planned.replays is not None:
            continue
        if earlier is None:
            yield make_change(new, name, WHOLE, Finding.NEW)
        else:
            yield from _compare_variants(VariantPair(runs, new, earlier, variant))
    for name, variant in old.variants.items():
        if name not in new.variants and variant.planned.replays is None and not runs.after.manifest.confirms:
            yield make_change(new, name, WHOLE, Finding.GONE)


def _compare_variants(sides: VariantPair) -> Iterator[Change]:
    was, why_before = find_status(sides.old)
    now_is, why = find_status(sides.new)
    reason = f"{now_is.value}: {why}"
    if now_is in INCOMPLETE:
        yield make_change(sides.case, sides.name, WHOLE, Finding.FAILED, reason=reason)
    elif was in INCOMPLETE:
        before = f"before, it ended as {was.value}: {why_before}"
        yield make_change(sides.case, sides.name, WHOLE, Finding.NEW, reason=before)
    elif now_is is not Status.OK and was is Status.OK:
        yield make_change(sides.case, sides.name, WHOLE, Finding.GONE, reason=reason)
    else:
        yield from compare_exact(sides)
        yield from compare_cold(sides)
        time = compare_times(sides)
        if time is not None:
            yield time
