from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from jaxmeter.harness.metrics.reading import Run
from jaxmeter.harness.record import Outcome, Status
from jaxmeter.harness.record.runs import CONFIRMING_PROCESSES, MOST_CONFIRMING, Contents
from jaxmeter.reporting.compare.budgets import Allowance, Budgets, make_defaults
from jaxmeter.reporting.compare.changes import find_changes
from jaxmeter.reporting.compare.gate import FINE, REGRESSED, UNDECIDED, judge, judge_alone, list_suspects
from jaxmeter.reporting.compare.ratios import reject_by_holm
from jaxmeter.reporting.compare.verdicts import Verdict, leave_out_times
from tests import samples
from tests.reporting.compare import changed
from tests.reporting.compare.changed import AFTER, BEFORE, compare, counting, plain, replayed

USUAL = Budgets()


def suspects_of(changes, budgets=USUAL):
    return [one.variant for one in list_suspects(changes, budgets).suspects]


BASELINE, SUSPECT = plain(BEFORE), replayed(1.05)
ANOTHER = plain(AFTER, machine="another")
EMPTY = changed.run(AFTER)
EMPTY = structs.replace(EMPTY, manifest=structs.replace(EMPTY.manifest, cases=()), cases=())


def again(ratio, scatter=0.2, *, busy=False):
    """A confirmation by more processes."""
    found = compare(BASELINE, replayed(ratio, processes=12, scatter=scatter))
    doubts = (replace(one, verdict=Verdict.INCONCLUSIVE, reason="busy") for one in found.entries)
    return replace(found, entries=tuple(doubts)) if busy else found


def planned_memory(name, *values, status=Status.OK, **more):
    memory = Outcome(status=status, values={"planned_peak_bytes": values} if values else {})
    return plain(name, probes={"memory": memory}, **more)


def stored(*ratios, scatter=0.2, name=AFTER, definition="0" * 16, program="aa", **more):
    """A run of cases that take so many times as long as before; the scatter may be one for each."""
    pairs = []
    for index, ratio in enumerate(ratios):
        timing = changed.timed(1e-4 * ratio, scatter=scatter if isinstance(scatter, float | int) else scatter[index])
        planned = changed.case(f"w{index}", source=program, definition=definition if index else "0" * 16)
        pairs.append((planned, {f"w{index}:jit": {"numerics": changed.checked(program), "timing": timing}}))
    return changed.run(name, *pairs, **more)


def earlier(*ratios, **more):
    return stored(*(ratios or (1,)), name=BEFORE, **more)


def budget(**allowances):
    """Budgets of all cases: a share of a time, and what may be added to a count."""
    shares = {"execution_s": "share"}
    rules = {name: Allowance(**{shares.get(name, "more"): one}) for name, one in allowances.items()}
    return {"budgets": Budgets((("*", rules),))}


def compare_memory(before, after, **more):
    return compare(planned_memory(BEFORE, before), planned_memory(AFTER, after, **more))


def compare_counts(before, after):
    return compare(counting(BEFORE, **before), counting(AFTER, **after))


def slow_call(timing, _):
    return samples.with_values(timing, execution_s=tuple(1.7 * seconds for seconds in timing.values["execution_s"]))


NEWER = samples.environment(packages={"jax": "0.10.0", "jaxlib": "0.10.2", "numpy": "2.0.0"})
OTHER_NUMPY = samples.environment(packages={"jax": "0.10.0", "jaxlib": "0.10.0", "numpy": "2.1.0"})
MIB, KIB = 2**20, 2**10
EXACT, FIRST = {"exact": True}, compare(BASELINE, SUSPECT)
VAGUE = compare(BASELINE, replayed(1.2, scatter=8))
UNTIMED, UNKNOWN = ({"selu:jit": {"numerics": changed.checked(mark)}} for mark in ("aa", None))
FAILED = {"selu:jit": {"numerics": Outcome(status=Status.FAILED, reason="no luck")}}
ELSEWHERE = compare(plain(BEFORE, machine="lab 1"), replayed(1.001, machine="lab 2"))
LONGER_CALL = compare(BASELINE, samples.change_timings(replayed(1.1), slow_call))
COMPILING = {"probes": {"compilation": Outcome(status=Status.OK, values={"compiles": (2,)})}, "environment": NEWER}
COMPILED_MORE = compare(counting(BEFORE, compiles=1), plain(AFTER, **COMPILING))
COUNT_GONE = compare_counts({"hlo_fusions": 3}, {})
GREW_IN_SOME = compare_counts({"compiles": (1, 1, 1)}, {"compiles": (1, 5, 5)})
TIME_GONE, BARE = compare(BASELINE, changed.run(AFTER, (changed.case(), UNTIMED))), (changed.case(), UNKNOWN)
SCATTERED = compare(earlier(), stored(2.2, scatter=60))
SCATTERS = [compare(earlier(scatter=20), stored(1.9, scatter=scatter)) for scatter in (20, 90)]
RULES = {
    "unchanged": (compare(BASELINE, plain(AFTER)), {}, FINE),
    "slower and confirmed": (FIRST, {"confirmed_by": again(1.05)}, REGRESSED),
    "slower, and nothing has confirmed it": (FIRST, {}, UNDECIDED),
    "as fast": (FIRST, {"confirmed_by": again(1.001)}, FINE),
    "faster": (FIRST, {"confirmed_by": again(0.9)}, FINE),
    "hardly slower": (FIRST, {"confirmed_by": again(1.01, 3)}, FINE),
    "a noisy confirmation": (FIRST, {"confirmed_by": again(1.05, busy=True)}, UNDECIDED),
    "a confirmation that could not have found it": (VAGUE, {"confirmed_by": again(1.02, 25)}, UNDECIDED),
    "a confirmation that could": (VAGUE, {"confirmed_by": again(1.02, 3)}, FINE),
    "a budget that allows it": (FIRST, {"confirmed_by": again(1.05), **budget(execution_s=0.1)}, FINE),
    "two machines": (compare(plain(BEFORE, machine="one"), ANOTHER), {}, UNDECIDED),
    "two empty runs": (compare(EMPTY, EMPTY), {}, UNDECIDED),
    "an empty run": (compare(BASELINE, EMPTY), {}, UNDECIDED),
    "more planned memory": (compare_memory(100, 101), {}, REGRESSED),
    "as much planned memory": (compare_memory(100, 100), {}, FINE),
    "less planned memory": (compare_memory(100, 99), {}, FINE),
    "more compiled programs of another release": (COMPILED_MORE, EXACT, REGRESSED),
    **{
        f"memory of another release beyond a budget of {more} bytes": (
            compare_memory(MIB, MIB + KIB, environment=NEWER),
            {**EXACT, **budget(planned_peak_bytes=more)},
            code,
        )
        for more, code in ((0, REGRESSED), (KIB, FINE))
    },
    **{
        f"2 fusions more, of which a budget allows {more}": (
            compare_counts({"hlo_fusions": 1}, {"hlo_fusions": 3}),
            {} if more is None else budget(hlo_fusions=more),
            code,
        )
        for more, code in ((None, FINE), (1, REGRESSED), (2, FINE))
    },
    "a count that is gone": (COUNT_GONE, EXACT, FINE),
    "a count that is gone and has a budget": (COUNT_GONE, {**EXACT, **budget(hlo_fusions=0)}, UNDECIDED),
    "a fingerprint that is gone": (compare(BASELINE, plain(AFTER, fingerprint=None)), EXACT, UNDECIDED),
    "a count that grew in some processes": (GREW_IN_SOME, EXACT, UNDECIDED),
    "a case that failed": (compare(BASELINE, changed.run(AFTER, (changed.case(), FAILED))), {}, UNDECIDED),
    "a case that is gone": (compare(earlier(1, 1), stored(1)), {}, UNDECIDED),
    **{
        f"{len(scatter) - 1} of {len(scatter)} times vague": (
            compare(*(stored(*[1] * len(scatter), scatter=scatter, name=one, program=one) for one in (BEFORE, AFTER))),
            {},
            code,
        )
        for scatter, code in (((0.1, 9), FINE), ((0.1, 9, 9), UNDECIDED))
    },
    "most cases edited": (compare(earlier(1, 1, 1), stored(1, 1, 1, definition="1" * 16)), {}, UNDECIDED),
    "no exact number": (compare(*(changed.run(name, BARE) for name in (BEFORE, AFTER))), EXACT, UNDECIDED),
    "a time that only the earlier run has": (TIME_GONE, {}, UNDECIDED),
    "the same, of exact numbers alone": (leave_out_times(TIME_GONE), EXACT, FINE),
    "a longer call that a budget allows": (compare(earlier(), stored(1.5)), budget(execution_s=1.0), FINE),
    "a longer call beyond its budget": (compare(earlier(), stored(2.1)), budget(execution_s=1.0), UNDECIDED),
    "longer calls that a budget allows": (compare(earlier(1, 1), stored(1.2, 1.2)), budget(execution_s=0.3), FINE),
    "a budget that allows the program and not its call": (LONGER_CALL, budget(execution_s=0.2), UNDECIDED),
    "the same, confirmed": (LONGER_CALL, {"confirmed_by": LONGER_CALL, **budget(execution_s=0.2)}, UNDECIDED),
    "a second look that scatters": (compare(earlier(), stored(4)), {"confirmed_by": SCATTERED}, UNDECIDED),
    "a second look of two that scatter": (SCATTERS[0], {"confirmed_by": SCATTERS[1]}, UNDECIDED),
    "the same program on another machine": (ELSEWHERE, {}, UNDECIDED),
    "the same, of exact numbers": (ELSEWHERE, EXACT, FINE),
    **{
        f"measured against {against}, {options}": (compare(earlier(), stored(1, against=against)), options, code)
        for against in (BEFORE, "another", None)
        for options, code in (
            ({}, FINE if against == BEFORE else UNDECIDED),
            (EXACT, FINE),
            ({"also_changed": True}, FINE),
        )
    },
}
"""What changed, the options of the gate, and its answer."""


@pytest.mark.parametrize(("changes", "options", "code"), RULES.values(), ids=RULES)
def test_a_slower_program_fails_once_it_is_confirmed_and_what_cannot_be_told_never_passes(changes, options, code):
    judgement = judge(changes, **{"budgets": USUAL, **options})

    assert judgement.code == code
    assert bool(judgement.obstacles or judgement.unconfirmed) >= (code == UNDECIDED)
    if changes is FIRST and "budgets" not in options:
        assert [one.variant for one in judgement.regressions] == ["selu:jit"] * (code == REGRESSED)
        assert [one.variant for one in judgement.unconfirmed] == ["selu:jit"] * (code == UNDECIDED)


def test_what_leaves_no_answer_is_named():
    def obstacles(rule):
        changes, options, _ = RULES[rule]
        return " ".join(judge(changes, USUAL, **options).obstacles)

    before, spread = earlier(*[1] * 6), stored(*(2 * 2**index for index in range(6)))
    assert "w1" in obstacles("a case that is gone")
    assert "only 1 of 3 times" in obstacles("most cases edited")
    assert "selu:jit" in obstacles("the same program on another machine")
    assert "6 of 6 times" in judge(compare(before, stored(*[4] * 6)), USUAL).obstacles[0]
    assert judge(compare(before, spread), USUAL).obstacles == ()
    assert judge(compare(before, stored(*[4] * 6)), USUAL, confirmed_by=compare(before, stored(*[1] * 6))).code == FINE


def test_what_may_be_slower_is_suspected_and_confirmed_by_more_processes_the_more_they_scatter():
    found = [
        list_suspects(compare(BASELINE, replayed(1.05, scatter=scatter)), budgets)
        for scatter, budgets in ((0.2, USUAL), (8, USUAL), (80, USUAL), (8, Budgets(defaults=make_defaults(0.04))))
    ]

    assert suspects_of(compare(BASELINE, replayed(0.95, scatter=8))) == []
    assert [len(one.suspects) for one in found] == [1] * 4
    assert [one.processes for one in found] == [CONFIRMING_PROCESSES, 19, MOST_CONFIRMING, CONFIRMING_PROCESSES]


@pytest.mark.parametrize(
    ("before", "after", "environment", "code"),
    [
        (100 * MIB, 101 * MIB + 64 * KIB, NEWER, FINE),
        (100 * MIB, 101 * MIB + 64 * KIB + 1, NEWER, REGRESSED),
        (1 * KIB, 64 * KIB, NEWER, FINE),
        (100 * MIB, 100 * MIB + 1, OTHER_NUMPY, REGRESSED),
        (100 * MIB, 99 * MIB, NEWER, FINE),
    ],
    ids=["the most", "a byte more", "a small program", "another numpy", "less"],
)
def test_another_release_may_plan_one_percent_and_64_kib_more(before, after, environment, code):
    changes = compare(planned_memory(BEFORE, before), planned_memory(AFTER, after, environment=environment))

    for judgement in (judge(changes, USUAL, exact=True), judge_alone(changes, USUAL)):
        assert judgement.code == code
        is_used = before < after and code == FINE
        assert [one.reason.replace("\u202f", " ") for one in judgement.allowed] == (
            ["within the 1 % + 64 KiB allowed between releases (jaxlib 0.10.0 → 0.10.2)"] if is_used else []
        )


def test_holm_asks_more_of_one_among_many():
    assert reject_by_holm({"a": 0.004}, among=1, level=0.01) == {"a"}
    assert reject_by_holm({"a": 0.004}, among=3, level=0.01) == frozenset()
    assert reject_by_holm({"a": 0.003, "b": 0.005, "c": 0.009}, among=3, level=0.01) == {"a", "b", "c"}
    assert reject_by_holm({"a": 0.001, "b": 0.006, "c": 0.007}, among=3, level=0.01) == {"a"}


@given(st.dictionaries(st.integers(), st.floats(0, 1), max_size=8), st.integers(8, 100), st.floats(0.001, 0.2))
def test_holm_rejects_the_smallest_first_and_no_more_than_without_correction(chances, among, level):
    rejected = reject_by_holm(chances, among=among, level=level)

    assert all(chances[key] <= level for key in rejected)
    left = [chances[key] for key in chances if key not in rejected]
    assert not rejected or not left or max(chances[key] for key in rejected) <= min(left)
    bonferroni = {key for key, chance in chances.items() if chance <= level / among}
    assert bonferroni <= rejected


def test_a_confirmation_has_to_hold_among_all_times_that_were_looked_at():
    def among(others):
        sides = plain(BEFORE), replayed(1.05, scatter=4)
        unchanged = stored(*[1] * (others + 1))
        more = list(zip(unchanged.manifest.cases, unchanged.cases, strict=True))[1:]
        first, second = ([(run.manifest.cases[0], run.cases[0]), *more] for run in sides)
        return compare(samples.run(*first, run_id=BEFORE), samples.run(*second, run_id=AFTER, against=BEFORE))

    again = compare(BASELINE, replayed(1.05, processes=5, scatter=4))
    assert 0.01 / 30 < changed.time_of(again).chance < 0.01
    for others, code in ((0, REGRESSED), (30, UNDECIDED)):
        assert judge(among(others), USUAL, confirmed_by=again).code == code


@pytest.mark.parametrize(
    ("first", "second", "code"),
    [
        *((1.5, None, UNDECIDED), (1.5, 1.5, UNDECIDED), (1.5, 1.0, FINE), (1.5, 0.7, FINE), (1.5, 1.1, FINE)),
        *((1.5, 1.4, UNDECIDED), (100, 2.1, UNDECIDED), (1.01, None, FINE)),
    ],
)
def test_a_longer_call_of_the_same_program_is_looked_at_again_and_withholds_an_answer(first, second, code):
    changes = compare(earlier(), stored(first))
    again = None if second is None else compare(earlier(), stored(second))

    judgement = judge(changes, USUAL, confirmed_by=again)

    assert judgement.code == code
    assert suspects_of(changes) == (["w0:jit"] if first > 1.03 else [])
    assert [one.variant for one in judgement.unconfirmed] == (["w0:jit"] if code else [])
    assert not judgement.regressions


def test_a_second_look_at_many_calls_is_corrected_for_their_number():
    before, first, second = earlier(*[1] * 30), stored(*[1.5] * 30), stored(*[1.2] * 30)
    again = compare(before, second)
    (chance,) = {one.chance for one in again.times}
    assert 0.01 / 30 < chance < 0.01

    one = replace(again, entries=tuple(found for found in again.entries if found.case.startswith("w0[")))
    for looked, expected in ((again, 0), (one, 1)):
        judgement = judge(compare(before, first), USUAL, confirmed_by=looked)
        named = [found.case for found in judgement.unconfirmed if found.key in {each.key for each in looked.times}]
        assert len(named) == expected


@pytest.mark.parametrize(
    "later",
    [planned_memory(AFTER, status=Status.UNSUPPORTED), plain(AFTER)],
    ids=["not told any more", "not asked for any more"],
)
def test_an_exact_number_that_only_the_earlier_run_has_leaves_no_answer(later):
    changes = compare(planned_memory(BEFORE, 100), later)

    for exact in (True, False):
        judgement = judge(changes, USUAL, exact=exact)
        assert judgement.code == UNDECIDED
        assert [words for words in judgement.obstacles if "selu:jit" in words]
    assert judge(compare(later, planned_memory(AFTER, 100)), USUAL, exact=True).code == FINE
    confirming = structs.replace(later, manifest=structs.replace(later.manifest, confirms=True))
    assert not compare(planned_memory(BEFORE, 100), confirming).having(Verdict.GONE)


@pytest.mark.parametrize("which", [0, 1])
def test_a_run_whose_files_have_changed_leaves_no_answer(which):
    sides = [Run(plain(BEFORE)), Run(plain(AFTER))]
    sides[which] = replace(sides[which], contents=Contents.CHANGED)
    summaries = [replace(side, contents=Contents.SUMMARIES) for side in sides]

    for exact in (True, False):
        assert judge(find_changes(*sides), USUAL, exact=exact).code == UNDECIDED
        assert judge(find_changes(*summaries), USUAL, exact=exact).code == FINE
    edited = find_changes(*sides)
    assert judge(compare(BASELINE, SUSPECT), USUAL, confirmed_by=edited).obstacles
