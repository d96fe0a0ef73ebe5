from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from jaxmeter.harness.metrics.reading import Run
from jaxmeter.harness.record import Outcome, Status
from jaxmeter.harness.record.runs import Contents
from jaxmeter.harness.record.suspects import CONFIRMING_PROCESSES, MOST_CONFIRMING
from jaxmeter.reporting.compare.budgets import Allowance, Budgets, make_defaults
from jaxmeter.reporting.compare.chance import reject_by_holm
from jaxmeter.reporting.compare.changes import find_changes
from jaxmeter.reporting.compare.gate import FINE, REGRESSED, UNDECIDED, judge, judge_alone, list_suspects
from jaxmeter.reporting.compare.verdicts import Verdict, leave_out_times
from tests import samples
from tests.reporting.compare import changed
from tests.reporting.compare.changed import AFTER, BEFORE, compare, plain, replayed

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


@pytest.mark.parametrize(
    ("first", "confirmed_by", "code"),
    [
        (compare(BASELINE, plain(AFTER)), None, FINE),
        (compare(BASELINE, SUSPECT), again(1.05), REGRESSED),
        (compare(BASELINE, SUSPECT), None, UNDECIDED),
        *((compare(BASELINE, SUSPECT), again(*one), FINE) for one in ((1.001,), (0.9,), (1.01, 3))),
        (compare(BASELINE, SUSPECT), again(1.05, busy=True), UNDECIDED),
        (compare(BASELINE, replayed(1.2, scatter=8)), again(1.02, 25), UNDECIDED),
        (compare(BASELINE, replayed(1.2, scatter=8)), again(1.02, 3), FINE),
        (compare(plain(BEFORE, machine="one"), ANOTHER), None, UNDECIDED),
        (compare(EMPTY, EMPTY), None, UNDECIDED),
        (compare(BASELINE, EMPTY), None, UNDECIDED),
    ],
    ids=[
        *("unchanged", "slower and confirmed", "nothing has confirmed it", "as fast", "faster", "hardly slower"),
        *("a noisy confirmation", "one that could not have found it", "one that could"),
        *("two machines", "two empty runs", "an empty run"),
    ],
)
def test_a_slower_program_fails_once_it_is_confirmed_and_what_cannot_be_told_never_passes(first, confirmed_by, code):
    judgement = judge(first, USUAL, confirmed_by=confirmed_by)

    assert judgement.code == code
    suspects = suspects_of(first)
    assert [one.variant for one in judgement.regressions] == (suspects if code == REGRESSED else [])
    if confirmed_by is None:
        assert [one.variant for one in judgement.unconfirmed] == suspects


def test_what_may_be_slower_is_suspected_though_few_processes_do_not_tell():
    assert suspects_of(compare(plain(BEFORE), replayed(1.05, scatter=8))) == ["selu:jit"]
    assert suspects_of(compare(plain(BEFORE), replayed(0.95, scatter=8))) == []


def test_a_suspect_whose_processes_scatter_is_confirmed_by_more():
    found = [
        list_suspects(compare(plain(BEFORE), replayed(1.05, scatter=scatter)), budgets)
        for scatter, budgets in ((0.2, USUAL), (8, USUAL), (80, USUAL), (8, Budgets(defaults=make_defaults(0.04))))
    ]

    assert [len(one.suspects) for one in found] == [1] * 4
    assert [one.processes for one in found] == [CONFIRMING_PROCESSES, 19, MOST_CONFIRMING, CONFIRMING_PROCESSES]


def test_a_budget_decides_what_counts():
    generous = Budgets((("selu/*", {"execution_s": Allowance(share=0.1)}),))
    first, again = compare(plain(BEFORE), replayed(1.05)), compare(plain(BEFORE), replayed(1.05, processes=12))

    assert suspects_of(first, generous) == []
    assert judge(first, generous, confirmed_by=again).code == FINE


@pytest.mark.parametrize(("after", "code"), [(101, REGRESSED), (100, FINE), (99, FINE)])
def test_more_planned_memory_is_a_regression_by_itself(after, code):
    runs = [
        plain(name, probes={"memory": Outcome(status=Status.OK, values={"planned_peak_bytes": (value,)})})
        for name, value in ((BEFORE, 100), (AFTER, after))
    ]

    assert judge(compare(*runs), USUAL).code == code
    assert judge(compare(*runs), USUAL, exact=True).code == code


NEWER = samples.environment(packages={"jax": "0.10.0", "jaxlib": "0.10.2", "numpy": "2.0.0"})
OTHER_NUMPY = samples.environment(packages={"jax": "0.10.0", "jaxlib": "0.10.0", "numpy": "2.1.0"})
MIB, KIB = 2**20, 2**10


def planning(name, planned, **more):
    values = {metric: (value,) for metric, value in planned.items()}
    probe = "memory" if "planned_peak_bytes" in planned else "compilation"
    return plain(name, probes={probe: Outcome(status=Status.OK, values=values)}, **more)


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
    changes = compare(
        planning(BEFORE, {"planned_peak_bytes": before}),
        planning(AFTER, {"planned_peak_bytes": after}, environment=environment),
    )

    for judgement in (judge(changes, USUAL, exact=True), judge_alone(changes, USUAL)):
        assert judgement.code == code
        is_used = before < after and code == FINE
        assert [one.reason.replace("\u202f", " ") for one in judgement.allowed] == (
            ["within the 1 % + 64 KiB allowed between releases (jaxlib 0.10.0 → 0.10.2)"] if is_used else []
        )


def test_another_release_may_not_compile_more_programs():
    sides = planning(BEFORE, {"compiles": 1}), planning(AFTER, {"compiles": 2}, environment=NEWER)

    judgement = judge(compare(*sides), USUAL, exact=True)

    assert (judgement.code, judgement.allowed) == (REGRESSED, ())


@pytest.mark.parametrize(("more", "code"), [(0, REGRESSED), (KIB, FINE)])
def test_a_budget_of_ones_own_decides_between_releases_too(more, code):
    sides = (
        planning(BEFORE, {"planned_peak_bytes": MIB}),
        planning(AFTER, {"planned_peak_bytes": MIB + KIB}, environment=NEWER),
    )
    budgets = Budgets((("*", {"planned_peak_bytes": Allowance(more=more)}),))

    judgement = judge(compare(*sides), budgets, exact=True)

    assert (judgement.code, judgement.allowed) == (code, ())


def test_counts_of_a_program_are_no_regression_unless_a_budget_says_so():
    runs = [
        plain(name, probes={"compilation": Outcome(status=Status.OK, values={"hlo_fusions": (value,)})})
        for name, value in ((BEFORE, 1), (AFTER, 3))
    ]
    changes = compare(*runs)

    assert judge(changes, USUAL).code == FINE
    for more, code in ((1, REGRESSED), (2, FINE)):
        budgets = Budgets((("*", {"hlo_fusions": Allowance(more=more)}),))
        assert judge(changes, budgets).code == code


def test_a_case_that_failed_or_is_gone_leaves_no_answer():
    failed = changed.run(
        AFTER, (changed.case(), {"selu:jit": {"numerics": Outcome(status=Status.FAILED, reason="no luck")}})
    )
    two = changed.run(
        BEFORE,
        *((changed.case(name), {f"{name}:jit": {"numerics": changed.checked()}}) for name in ("selu", "other")),
    )

    assert judge(compare(plain(BEFORE), failed), USUAL).code == UNDECIDED
    judgement = judge(compare(two, plain(AFTER)), USUAL)
    assert judgement.code == UNDECIDED
    assert any("other" in words and "gone" in words for words in judgement.obstacles)


def test_too_few_times_speak_for_no_others():
    def run_of(name, *undecided):
        pairs = []
        for index, scatter in enumerate(undecided):
            planned = changed.case(f"w{index}", source=name)
            timing = samples.timing(1e-4, spread=scatter, calibration_s=changed.CALIBRATIONS)
            pairs.append((planned, {f"w{index}:jit": {"numerics": changed.checked(name), "timing": timing}}))
        return changed.run(name, *pairs)

    vague, sharp = 9, 0.1
    half = compare(run_of(BEFORE, sharp, vague), run_of(AFTER, sharp, vague))
    fewer = compare(run_of(BEFORE, sharp, vague, vague), run_of(AFTER, sharp, vague, vague))

    assert judge(half, USUAL).code == FINE
    assert judge(fewer, USUAL).code == UNDECIDED


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


def test_the_defaults_allow_the_minimum_effect_and_nothing_more_of_memory():
    defaults = make_defaults(0.02)

    assert defaults["execution_s"] == Allowance(share=0.02)
    assert defaults["planned_peak_bytes"].is_exceeded(100, 101)
    assert not defaults["planned_peak_bytes"].is_exceeded(100, 100)


def test_cases_that_cannot_be_compared_speak_for_none():
    names = ("a", "b", "c")
    outcomes = {name: {f"{name}:jit": {"numerics": changed.checked(), "timing": changed.timed(1e-4)}} for name in names}
    before = changed.run(BEFORE, *((changed.case(name), outcomes[name]) for name in names))
    edited = [changed.case(name, definition="1" * 16) for name in names[1:]]
    pairs = [(changed.case("a"), outcomes["a"]), *((one, outcomes[one.workload]) for one in edited)]

    judgement = judge(compare(before, changed.run(AFTER, *pairs)), USUAL)

    assert judgement.code == UNDECIDED
    assert any("only 1 of 3 times" in words for words in judgement.obstacles)


def unchanged(count):
    """Further cases, whose program and time stay as they are."""
    outcomes = {"numerics": changed.checked(), "timing": changed.timed(1e-4)}
    planned = [changed.case(f"w{index}") for index in range(count)]
    return [(one, samples.record(one, {f"{one.workload}:jit": outcomes})) for one in planned]


def test_a_confirmation_has_to_hold_among_all_times_that_were_looked_at():
    def runs(count):
        before, after = plain(BEFORE), replayed(1.05, scatter=4)
        own, other = ((run.manifest.cases[0], run.cases[0]) for run in (before, after))
        first = samples.run(own, *unchanged(count), run_id=BEFORE, started=before.manifest.started)
        return first, samples.run(other, *unchanged(count), run_id=AFTER, against=BEFORE)

    before, _ = runs(0)
    again = compare(before, replayed(1.05, processes=5, scatter=4))
    chance = changed.time_of(again).chance
    assert 0.01 / 30 < chance < 0.01

    for others, code in ((0, REGRESSED), (30, UNDECIDED)):
        judgement = judge(compare(*runs(others)), USUAL, confirmed_by=again)
        assert judgement.code == code, chance


def test_the_exact_part_needs_at_least_one_exact_number():
    bare = [
        changed.run(name, (changed.case(), {"selu:jit": {"numerics": changed.checked(None)}}))
        for name in (BEFORE, AFTER)
    ]

    assert judge(compare(*bare), USUAL, exact=True).code == UNDECIDED
    assert judge(compare(plain(BEFORE), plain(AFTER)), USUAL, exact=True).code == FINE


def test_budgets_know_the_smallest_time_that_they_ask_for():
    rules = (("a", {"execution_s": Allowance(share=0.01)}), ("b", {"planned_peak_bytes": Allowance(share=0.0)}))

    assert Budgets(rules).least_time(0.03) == 0.01
    assert Budgets().least_time(0.03) == 0.03
    assert Budgets(rules).find_unused(["a", "c"]) == ["b"]


def stored(ratio, count=1, *, scatter=0.2, name=AFTER, fingerprints=("aa",), **more):
    """A run next to the earlier one, whose calls take `ratio` times as long, of programs that are the same or not."""
    pairs = []
    for index in range(count):
        planned = changed.case(f"w{index}", source=fingerprints[index % len(fingerprints)])
        timing = changed.timed(1e-4 * ratio, scatter=scatter)
        checked = changed.checked(fingerprints[index % len(fingerprints)])
        pairs.append((planned, {f"w{index}:jit": {"numerics": checked, "timing": timing}}))
    return changed.run(name, *pairs, **more)


ALONE = stored(1, name=BEFORE)


@pytest.mark.parametrize(
    ("first", "second", "code"),
    [
        (1.5, None, UNDECIDED),
        (1.5, 1.5, UNDECIDED),
        (1.5, 1.0, FINE),
        (1.5, 0.7, FINE),
        (1.5, 1.1, FINE),
        (1.5, 1.4, UNDECIDED),
        (100, 2.1, UNDECIDED),
        (1.01, None, FINE),
    ],
)
def test_a_longer_call_of_the_same_program_is_looked_at_again_and_withholds_an_answer(first, second, code):
    changes = compare(ALONE, stored(first))
    again = None if second is None else compare(ALONE, stored(second))

    judgement = judge(changes, USUAL, confirmed_by=again)

    assert judgement.code == code
    assert suspects_of(changes) == (["w0:jit"] if first > 1.03 else [])
    assert [one.variant for one in judgement.unconfirmed] == (["w0:jit"] if code else [])
    assert not judgement.regressions


def test_a_doubled_call_whose_second_look_scatters_is_not_passed():
    again = compare(ALONE, stored(2.2, scatter=60))

    assert again.times[0].effect.decisive.low < 1
    assert judge(compare(ALONE, stored(4)), USUAL, confirmed_by=again).code == UNDECIDED


def test_a_budget_allows_a_longer_call():
    generous = Budgets((("*", {"execution_s": Allowance(share=1.0)}),))

    assert judge(compare(ALONE, stored(1.5)), generous).code == FINE
    assert judge(compare(ALONE, stored(2.1)), generous).code == UNDECIDED


def test_a_second_look_at_many_calls_is_corrected_for_their_number():
    before, first, second = stored(1, 30, name=BEFORE), stored(1.5, 30), stored(1.2, 30)
    again = compare(before, second)
    (chance,) = {one.chance for one in again.times}
    assert 0.01 / 30 < chance < 0.01

    one = replace(again, entries=tuple(found for found in again.entries if found.case.startswith("w0[")))
    for looked, expected in ((again, 0), (one, 1)):
        judgement = judge(compare(before, first), USUAL, confirmed_by=looked)
        named = [found.case for found in judgement.unconfirmed if found.key in {each.key for each in looked.times}]
        assert len(named) == expected


def test_most_times_that_grow_by_one_factor_name_the_machine():
    before = stored(1, 6, name=BEFORE)

    assert "6 of 6 times" in judge(compare(before, stored(4, 6)), USUAL).obstacles[0]
    spread = changed.run(
        AFTER,
        *(
            (
                changed.case(f"w{i}"),
                {f"w{i}:jit": {"numerics": changed.checked(), "timing": changed.timed(2e-4 * 2**i)}},
            )
            for i in range(6)
        ),
    )
    assert judge(compare(before, spread), USUAL).obstacles == ()
    recovered = compare(before, stored(1, 6))
    assert judge(compare(before, stored(4, 6)), USUAL, confirmed_by=recovered).code == FINE


@pytest.mark.parametrize(("against", "code"), [(BEFORE, FINE), ("another", UNDECIDED), (None, UNDECIDED)])
def test_a_run_that_was_not_measured_against_the_baseline_run_gives_no_answer(against, code):
    changes = compare(ALONE, stored(1, against=against))

    assert judge(changes, USUAL).code == code
    assert judge(changes, USUAL, exact=True).code == FINE
    assert judge(changes, USUAL, also_changed=True).code == FINE


def planned_memory(name, *values, status=Status.OK):
    memory = Outcome(status=status, values={"planned_peak_bytes": values} if values else {})
    return plain(name, probes={"memory": memory})


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


def test_a_count_that_is_gone_is_missed_where_a_budget_names_it():
    def counting(name, *values):
        found = {"hlo_fusions": values} if values else {}
        return plain(name, probes={"compilation": Outcome(status=Status.OK, values=found)})

    changes = compare(counting(BEFORE, 3), counting(AFTER))

    assert judge(changes, USUAL, exact=True).code == FINE
    budgets = Budgets((("*", {"hlo_fusions": Allowance(more=0)}),))
    assert judge(changes, budgets, exact=True).code == UNDECIDED


def test_a_fingerprint_that_is_gone_is_missed():
    assert judge(compare(plain(BEFORE), plain(AFTER, fingerprint=None)), USUAL, exact=True).code == UNDECIDED


def test_a_second_look_that_shows_nothing_refutes_nothing():
    first = compare(stored(1, name=BEFORE, scatter=20), stored(1.9, scatter=20))
    vague = compare(stored(1, name=BEFORE, scatter=20), stored(1.9, scatter=90))
    assert first.times[0].verdict is Verdict.SUSPECTED_SLOWER
    assert vague.times[0].verdict is not Verdict.SUSPECTED_SLOWER

    assert judge(first, USUAL, confirmed_by=vague).code == UNDECIDED


def test_calls_that_all_grew_within_their_budget_name_no_machine():
    generous = Budgets((("*", {"execution_s": Allowance(share=0.3)}),))
    changes = compare(stored(1, 3, name=BEFORE), stored(1.2, 3))
    assert {one.verdict for one in changes.times} == {Verdict.SUSPECTED_SLOWER}

    assert judge(changes, generous).code == FINE


def test_a_program_that_is_the_same_on_another_machine_leaves_no_answer_on_its_call():
    changes = compare(plain(BEFORE, machine="lab 1"), replayed(1.001, machine="lab 2"))

    judgement = judge(changes, USUAL)

    assert judgement.code == UNDECIDED
    assert [words for words in judgement.obstacles if "selu:jit" in words and "lab 2" in words]
    assert judge(changes, USUAL, exact=True).code == FINE


def test_a_time_that_only_the_earlier_run_has_leaves_no_answer():
    untimed = changed.run(AFTER, (changed.case(), {"selu:jit": {"numerics": changed.checked()}}))
    changes = compare(plain(BEFORE), untimed)

    assert judge(changes, USUAL).code == UNDECIDED
    assert judge(leave_out_times(changes), USUAL, exact=True).code == FINE


def test_a_count_that_grew_in_some_processes_leaves_no_answer():
    def compiling(name, *values):
        return plain(name, probes={"compilation": Outcome(status=Status.OK, values={"compiles": values})})

    unclear = compare(compiling(BEFORE, 1, 1, 1), compiling(AFTER, 1, 5, 5))

    assert judge(unclear, USUAL, exact=True).code == UNDECIDED
    assert judge(compare(compiling(BEFORE, 1, 1), compiling(AFTER, 1, 1)), USUAL, exact=True).code == FINE


def test_a_budget_that_allows_the_program_does_not_allow_a_call_that_grew_by_more():
    budgets = Budgets((("*", {"execution_s": Allowance(share=0.2)}),))
    slower = samples.change_timings(
        replayed(1.1),
        lambda timing, _: samples.with_values(
            timing, execution_s=tuple(1.7 * seconds for seconds in timing.values["execution_s"])
        ),
    )
    changes = compare(plain(BEFORE), slower)
    assert changes.times[0].verdict is Verdict.SLOWER

    assert suspects_of(changes, budgets) == ["selu:jit"]
    assert judge(changes, budgets).code == UNDECIDED
    assert judge(changes, budgets, confirmed_by=changes).code == UNDECIDED


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
