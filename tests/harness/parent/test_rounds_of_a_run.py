"""Rounds over all cases: how many there are, what a killed run keeps, and where its time goes."""

from collections.abc import Callable

import pytest

from jaxmeter.harness.metrics.reading import read_process
from jaxmeter.harness.metrics.summary import summarise_case
from jaxmeter.harness.plan.probes import CHECK
from jaxmeter.harness.plan.processes import SHAPES
from jaxmeter.harness.plan.settings import MOST_PROCESSES
from jaxmeter.harness.record import ProcessRecord, RunFolder, Status, read_json
from jaxmeter.harness.record.files import name_replaced
from tests.harness.parent.made_up import (
    CASES,
    CHECKS,
    MORE,
    ONCE,
    ROUNDS,
    TWICE,
    Told,
    a_case,
    dead,
    dying_with,
    record_of,
    settings,
    timed,
)


@pytest.mark.parametrize(
    ("budget_s", "rounds"),
    [(6 + 3 * 8.0, 8), (6 + 3 * 8.0 - 0.5, 7), (6 + 3 * 5.5, 5), (6 + 3 * 3.0 + 0.5, 3)],
)
def test_as_many_whole_rounds_as_fit_into_the_time_the_same_for_all_cases(executed, budget_s, rounds):
    run, _ = executed(timed(), CASES, budget_s=budget_s)

    assert [case.processes for case in run.cases] == [rounds] * 3


def test_a_budget_is_kept_within_one_process(executed, clock):
    executed(timed(), CASES, budget_s=10.5)

    assert clock.now - 64.0 == 11.0


def test_timing_of_fewer_processes_than_give_an_interval_is_lost_and_told_as_such(executed):
    run, _ = executed(timed(), CASES, budget_s=6 + 3 * 2.0)

    assert len(run.lost()) == 3
    outcome = run.cases[0].variants[0].outcomes["timing"]
    assert (outcome.status, outcome.reason) == (Status.LOST, "timed by 2 of at least 3 processes")
    assert len(outcome.values["execution_s"]) == 2


def test_a_confirmation_keeps_what_fewer_processes_than_planned_have_measured(executed):
    run, _ = executed(timed(fewest_rounds=12, most_rounds=12, fewest_kept=3), CASES, budget_s=6 + 3 * 5.0)

    outcome = run.cases[0].variants[0].outcomes["timing"]
    assert not run.lost()
    assert outcome.status is Status.OK
    assert outcome.notes == ("timed by 5 of at least 12 processes",)
    assert len(outcome.values["execution_s"]) == 5


def test_a_record_says_how_far_its_processes_lie_apart_whatever_one_round_took(executed):
    def seconds(launched):
        return 50.0 if launched.round == 2 else 4.0

    run, _ = executed(timed(processes=5, fewest_rounds=5, most_rounds=5), [CASES[0]], seconds=seconds)

    assert run.cases[0].process_gap_s == 4.0


def test_one_process_that_was_asked_for_is_not_lost_and_lies_apart_from_none(executed):
    run, _ = executed(timed(**ONCE), CASES)

    assert run.lost() == ()
    assert run.cases[0].process_gap_s is None


def test_a_summary_is_written_after_each_round_and_says_of_how_many_files_it_is(interrupted, tmp_path):
    interrupted(timed(), CASES, before=3 + 2)

    summaries = [record_of(tmp_path, case) for case in CASES]
    assert sorted(record.processes for record in summaries) == [1, 2, 2]
    assert [record.files for record in summaries] == [CHECKS + record.processes for record in summaries]


def test_every_process_leaves_a_file_that_holds_what_was_planned_and_how_it_ended(executed, tmp_path):
    of_two = a_case("selu", "a:jit", "b:jit")

    executed(timed(**ONCE), [of_two], dies=dying_with("b:jit"))

    folder = RunFolder(tmp_path).case(of_two.id)
    files = [read_json(path, ProcessRecord) for path in folder.processes()]
    assert [path.name for path in folder.processes()] == [
        "0000-shapes.json.gz",
        "0001-check.json.gz",
        "0002-check.json.gz",
        "0003-timing.json.gz",
    ]
    assert [(one.kind, one.index, one.assignments) for one in files[1:]] == [
        (CHECK, 0, {"numerics": ("b:jit",)}),
        (CHECK, 0, {"numerics": ("a:jit",)}),
        ("timing", 0, {"timing": ("a:jit",)}),
    ]
    statuses = [{name: found["numerics"].status for name, found in one.outcomes.items()} for one in files[1:3]]
    assert statuses == [{"b:jit": Status.KILLED}, {"a:jit": Status.OK}]
    assert [item.variant for item in files[3].variants] == ["a:jit"]
    assert [one.elapsed_s for one in files] == [1.0] * 4


def test_the_summary_of_a_run_follows_from_its_process_files(executed, tmp_path):
    peer = a_case("selu", "a:jit", "b:jit", "numpy:native", represents_workload=True)
    everything = settings("memory", "compilation", "timing", "trace", **ROUNDS, cold_processes=3)

    run, _ = executed(everything, [peer], contended=lambda message: message.process.round == 1)

    files = RunFolder(tmp_path).case(peer.id).processes()
    assert summarise_case(peer, everything, [read_process(path, peer) for path in files]) == run.cases[0]


# More processes


def test_time_that_is_left_goes_to_the_widest_interval_of_a_case_that_matters(executed):
    wide = a_case("matmul", "a:jit", "other_one:jit", represents_workload=True)
    narrow = a_case("selu", "a:jit", "b:jit", represents_workload=True)  # equal in every process
    unimportant = a_case("mlp", "a:jit", "other_one:jit")

    run, server = executed(timed(**MORE), [wide, narrow, unimportant], budget_s=6 + 3 * 3 + 4.5)

    assert [case.processes for case in run.cases] == [7, 3, 3]  # four more, a second each
    more = [one for one in server.launched if one.round > 2]
    assert [(one.case, one.round) for one in more] == [(wide.id, index) for index in (3, 4, 5, 6)]
    looks = [case.variants[0].outcomes["timing"].details.looks for case in run.cases]
    assert looks == [2, 1, 1]


@pytest.mark.parametrize(
    ("how", "budget_s", "rounds"),
    [(MORE, None, MOST_PROCESSES["default"]), ({"most_rounds": 5}, 1000.0, 5), ({"most_rounds": 5}, 2 + 4.5, 4)],
    ids=["a default run", "a quick run", "a quick run whose budget ends"],
)
def test_a_case_has_no_more_than_the_most_processes(executed, how, budget_s, rounds):
    wide = a_case("matmul", "a:jit", "other_one:jit", represents_workload=True)
    budget = {} if budget_s is None else {"budget_s": budget_s}

    run, _ = executed(timed(**how), [wide], **budget)

    assert run.cases[0].processes == rounds


# Contended processes


def test_a_contended_process_is_replaced_by_a_fresh_process_once(executed, tmp_path):
    def contended(message):
        return message.process.round == 1  # and the one that replaces it, too

    run, server = executed(timed(**TWICE), [CASES[0]], contended=contended)

    assert [one.round for one in server.launched if one.kind == "timing"] == [0, 1, 1]
    seeds = [message.seed for message in server.messages if message.process.kind == "timing"]
    assert len(set(seeds)) == 3
    details = run.cases[0].variants[0].outcomes["timing"].details
    assert (details.processes, details.contended, details.replaced) == (2, 1, 1)
    folder = RunFolder(tmp_path).case(CASES[0].id)
    first, second = folder.processes("timing")
    assert name_replaced(second).exists()
    assert [read_json(path, ProcessRecord).replaces for path in (first, second)] == [False, True]
    assert not read_json(name_replaced(second), ProcessRecord).replaces


def seeds_that_are_contended(first: Callable[[int], bool], again: Callable[[int], bool]):
    """By the round, of the first process and of the one that replaces it, which has another seed."""
    return lambda message: (again if message.seed >= 1000 else first)(message.process.round)


def test_of_a_case_only_one_process_a_round_is_replaced(executed):
    with_peer = a_case("selu", "a:jit", "numpy:native")

    run, server = executed(
        timed(**TWICE), [with_peer], contended=seeds_that_are_contended(lambda index: True, lambda index: False)
    )

    assert len(server.asked("timing")) == 2 * (2 + 1)
    replaced = [item.outcomes["timing"].details.replaced for item in run.cases[0].variants]
    assert max(replaced) == 2


def test_where_the_fresh_process_is_contended_too_later_processes_are_not_replaced(executed):
    contended = seeds_that_are_contended(lambda index: index != 1, lambda index: index >= 2)

    run, server = executed(timed(processes=6, fewest_rounds=6, most_rounds=6), [CASES[0]], contended=contended)

    # Well in the first round, not needed in the second, in vain in the third, and no more after that.
    assert [one.round for one in server.launched if one.kind == "timing"] == [0, 0, 1, 2, 2, 3, 4, 5]
    details = run.cases[0].variants[0].outcomes["timing"].details
    assert (details.replaced, details.contended) == (2, 4)


def test_a_contended_process_stays_where_the_budget_is_used_up(executed):
    run, server = executed(timed(**ONCE), [CASES[0]], contended=lambda message: True, budget_s=3.0)

    assert len(server.asked("timing")) == 1
    assert run.cases[0].variants[0].outcomes["timing"].details.replaced == 0


def test_a_replacement_that_dies_replaces_nothing(executed):
    begun = []

    def dies(launched):
        begun.extend([launched] if launched.kind == "timing" else [])
        return dead(signal=9) if launched.kind == "timing" and len(begun) == 2 else None

    run, _ = executed(timed(**ONCE), [CASES[0]], contended=lambda message: True, dies=dies)

    details = run.cases[0].variants[0].outcomes["timing"].details
    assert (details.processes, details.replaced) == (1, 0)


def test_a_resumed_run_tells_the_rounds_that_are_left(executed, interrupted):
    interrupted(timed(most_rounds=4), [CASES[0]], before=2)
    watcher = Told()

    executed(timed(most_rounds=4), [CASES[0]], watcher=watcher)

    assert [word for word in watcher.words if word[0] == "round"] == [("round", 3, 4, 3), ("round", 4, 4, 1)]
    assert ("said", "round 3 took 2 s of 1000 s: there will be 4 rounds") in watcher.words


def test_processes_of_rounds_that_will_not_be_are_not_counted_as_left(executed):
    watcher = Told()

    executed(timed(), CASES, budget_s=6 + 3 * 4.0, watcher=watcher)

    rounds = [word[1:] for word in watcher.words if word[0] == "round"]
    assert rounds == [(1, 8, 6 + 3 * 8), (2, 4, 9), (3, 4, 6), (4, 4, 3)]


def test_a_run_of_one_round_has_nothing_to_say_of_those_to_come(executed):
    watcher = Told()

    executed(timed(**ONCE), [CASES[0]], watcher=watcher)

    assert not [word for word in watcher.words if word[0] == "said"]


# What is told


def test_a_watcher_is_told_of_rounds_processes_cases_and_the_budget_that_is_used(executed):
    watcher = Told()

    executed(timed(**TWICE), [CASES[0]], watcher=watcher)

    ran = {kind: [("starts", kind), ("ended", kind, used_s)] for kind, used_s in ((SHAPES, 1.0), (CHECK, 2.0))}
    assert watcher.words == [
        *[("run", 4, 1000.0), ("round", 1, 2, 4), *ran[SHAPES], *ran[CHECK]],
        *[("starts", "timing"), ("ended", "timing", 3.0)],
        ("said", "round 1 took 3 s of 1000 s: there will be 2 rounds"),
        *[("round", 2, 2, 1), ("starts", "timing"), ("ended", "timing", 4.0)],
        *[("ends", "selu", 4.0), ("over",)],
    ]


@pytest.mark.parametrize(
    ("changes", "budget_s", "ends_s"),
    [
        # What the plan says at first; then what the rounds that fit will take.
        ({"most_rounds": 4}, 100.0, [None, 6.0, 6.0, 6.0]),
        # The time that rounds leave goes to more processes, of one second each: 21 after three rounds.
        ({"most_rounds": 3, "level": "default"}, 100.0, [None, 26.0, 26.0]),
        ({"most_rounds": 3, "level": "default"}, 20.0, [None, 20.0, 20.0]),
        # Nothing is known of a first round that takes what it takes.
        ({"processes": 3, "fewest_rounds": 3, "finishes_fewest": True}, None, [None, 5.0, 5.0]),
    ],
    ids=["quick", "default", "default, out of time", "a number of processes"],
)
def test_a_watcher_is_told_when_the_run_will_end(executed, changes, budget_s, ends_s):
    watcher = Told()
    most = {"most_rounds": changes.get("processes", 3)}

    wide = a_case("matmul", "a:jit", "other_one:jit", represents_workload=True)

    executed(timed(**{**most, **changes}), [wide], budget_s=budget_s, watcher=watcher)

    assert watcher.ends_s[1 : len(ends_s)] == ends_s[1:]
    assert (watcher.ends_s[0] is None) is (budget_s is None)
