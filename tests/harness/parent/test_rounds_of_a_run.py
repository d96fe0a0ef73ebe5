"""Rounds over all cases: how many there are, what a killed run keeps, and where its time goes."""

from collections.abc import Callable

import msgspec
import pytest

from harness.parent.case import ANOTHER_PROGRAM
from harness.plan.launches import SHAPES, Launch
from harness.plan.messages import Heartbeat
from harness.plan.probes import CHECK
from harness.record import CaseRecord, NumericsDetails, Outcome, RunFolder, Settings, Status, read_json, write_json
from tests import samples
from tests.harness.parent.made_up import FAILED, OK, ONCE, TWICE, Told, case, dead, settings
from tests.harness.raw import clean, launch, variant

ROUNDS = {"fewest_rounds": 3, "most_rounds": 8}


def timed(**changes) -> Settings:
    """Settings of timing alone, in as many rounds as the time allows."""
    return settings("timing", **{**ROUNDS, **changes})


def a_case(name: str, *variants: str, **changes):
    return samples.planned_case(name, variants=variants or ("a:jit",), **changes)


CASES = [a_case("selu"), a_case("matmul"), a_case("mlp")]
CHECKS = 2  # processes before the first timing launch of a case


def record_of(folder, case) -> CaseRecord:
    return read_json(RunFolder(folder).case(case.id).record, CaseRecord)


def stop_before(count: int):
    """Interrupts a run when so many timing launches have begun."""
    begun = []

    def dies(launched):
        if launched.process == "timing":
            begun.append(launched)
            if len(begun) > count:
                raise KeyboardInterrupt

    return dies


@pytest.mark.parametrize(
    ("budget_s", "rounds"),
    [(6 + 3 * 8.0, 8), (6 + 3 * 8.0 - 0.5, 7), (6 + 3 * 5.5, 5), (6 + 3 * 3.0 + 0.5, 3)],
)
def test_as_many_whole_rounds_as_fit_into_the_time_the_same_for_all_cases(executed, budget_s, rounds):
    run, _ = executed(timed(), CASES, budget_s=budget_s)

    assert [case.launches for case in run.cases] == [rounds] * 3
    assert [case.rounds for case in run.cases] == [rounds] * 3


def test_a_budget_is_kept_within_one_launch(executed, clock):
    executed(timed(), CASES, budget_s=10.5)

    assert clock.now - 64.0 == 11.0


def test_timing_of_fewer_launches_than_give_an_interval_is_lost_and_told_as_such(executed):
    run, _ = executed(timed(), CASES, budget_s=6 + 3 * 2.0)

    assert len(run.lost()) == 3
    outcome = run.cases[0].variants[0].outcomes["timing"]
    assert (outcome.status, outcome.reason) == (Status.LOST, "timed by 2 of at least 3 launches")
    assert len(outcome.values["execution_s"]) == 2


def test_a_record_says_how_far_its_launches_lie_apart_whatever_one_round_took(executed):
    def seconds(launched):
        return 50.0 if launched.round == 2 else 4.0

    run, _ = executed(timed(launches=5, fewest_rounds=5, most_rounds=5), [CASES[0]], seconds=seconds)

    assert run.cases[0].launch_gap_s == 4.0


def test_one_launch_lies_apart_from_none(executed):
    run, _ = executed(timed(**ONCE), [CASES[0]])

    assert run.cases[0].launch_gap_s is None


def test_one_launch_that_was_asked_for_is_not_lost(executed):
    run, _ = executed(timed(**ONCE), CASES)

    assert run.lost() == ()


def test_a_record_is_written_after_each_round_and_says_how_many_are_whole(executed, tmp_path):
    with pytest.raises(KeyboardInterrupt):
        executed(timed(), CASES, dies=stop_before(3 + 2))

    found = [record_of(tmp_path, case) for case in CASES]
    assert sorted(record.rounds for record in found) == [1, 2, 2]
    assert [record.launches for record in found] == [record.rounds for record in found]


def test_a_resumed_run_goes_on_with_the_next_round(executed, tmp_path):
    with pytest.raises(KeyboardInterrupt):
        executed(timed(most_rounds=4), CASES, dies=stop_before(3 + 2))

    run, server = executed(timed(most_rounds=4), CASES)

    for planned in CASES:
        rounds = [one.round for one in server.launched if one.case == planned.id and one.process == "timing"]
        assert rounds in ([1, 2, 3], [2, 3])
    assert [case.launches for case in run.cases] == [4] * 3
    whole, _ = executed_elsewhere(executed, timed(most_rounds=4), tmp_path)
    assert [one.variants for one in run.cases] == [one.variants for one in whole.cases]


def executed_elsewhere(executed, how, tmp_path):
    """The same run, never interrupted."""
    for path in sorted(tmp_path.rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()
    return executed(how, CASES)


def test_a_resumed_run_fills_its_compilation_cache_by_a_check_that_counts_for_nothing_else(executed):
    with pytest.raises(KeyboardInterrupt):
        executed(timed(), [CASES[0]], dies=stop_before(1))

    run, server = executed(timed(), [CASES[0]])

    assert [(one.process, one.refills) for one in server.launched][:2] == [(CHECK, True), ("timing", False)]
    assert len([one for one in server.launched if one.process == CHECK]) == 1
    assert run.cases[0].variants[0].outcomes["numerics"].values == OK.values


def of_program(fingerprint: str) -> Outcome:
    return Outcome(status=Status.OK, details=NumericsDetails(fingerprint=fingerprint))


@pytest.mark.parametrize(("again", "status"), [("one", Status.OK), ("other", Status.FAILED)])
def test_a_resumed_run_that_compiles_another_program_does_not_join_its_launches(executed, again, status):
    with pytest.raises(KeyboardInterrupt):
        executed(timed(), [CASES[0]], dies=stop_before(1), answers=lambda launched, name: of_program("one"))
    answer = {CHECK: of_program(again)}

    run, _ = executed(timed(), [CASES[0]], answers=lambda launched, name: answer.get(launched.process, OK))

    timing = run.cases[0].variants[0].outcomes["timing"]
    assert timing.status is status
    assert (timing.reason == ANOTHER_PROGRAM) is (status is Status.FAILED)
    assert run.cases[0].variants[0].outcomes["numerics"].details == NumericsDetails(fingerprint="one")


def test_what_failed_before_a_run_was_interrupted_is_not_tried_again(executed):
    failing = a_case("selu", "a:jit", "b:jit")

    def answers(launched, name):
        return FAILED if name == "b:jit" else OK

    with pytest.raises(KeyboardInterrupt):
        executed(timed(), [failing], dies=stop_before(1), answers=answers)

    run, server = executed(timed(), [failing])

    assert {one.variants for one in server.launched} == {("a:jit",)}
    assert run.cases[0].variants[1].outcomes["numerics"] == FAILED


@pytest.mark.parametrize("sample_s", [None, -1.0, 0.0, 1e300])
def test_a_damaged_launch_of_a_whole_round_is_named_and_measured_again(executed, tmp_path, sample_s):
    with pytest.raises(KeyboardInterrupt):
        executed(timed(), [CASES[0]], dies=stop_before(4))
    path = RunFolder(tmp_path).case(CASES[0].id).launch(1)
    if sample_s is None:
        path.write_bytes(b"broken")
    else:
        write_json(path, launch(variant("a:jit", *clean(1.0, sample_s, 1.0)), index=1))
    watcher = Told()

    run, server = executed(timed(), [CASES[0]], watcher=watcher)

    assert [(one.process, one.round) for one in server.launched][:2] == [(CHECK, 1), ("timing", 1)]
    assert (run.cases[0].rounds, run.cases[0].launches) == (8, 8)
    assert len(run.cases[0].variants[0].outcomes["timing"].values["execution_s"]) == 8
    said = [word[1] for word in watcher.words if word[0] == "said" and str(path) in word[1]]
    assert len(said) == 1
    assert said[0].endswith("; measured again")


def test_impossible_rounds_of_a_damaged_record_are_none(executed, tmp_path):
    with pytest.raises(KeyboardInterrupt):
        executed(timed(), [CASES[0]], dies=stop_before(4))
    path = RunFolder(tmp_path).case(CASES[0].id).record
    write_json(path, msgspec.structs.replace(read_json(path, CaseRecord), rounds=-3))

    run, _ = executed(timed(), [CASES[0]])

    assert run.cases[0].rounds == 8


def test_artifacts_and_time_of_an_interrupted_run_are_kept(executed, tmp_path):
    with pytest.raises(KeyboardInterrupt):
        executed(timed(), [CASES[0]], dies=stop_before(2))
    before = record_of(tmp_path, CASES[0])

    run, server = executed(timed(), [CASES[0]])

    assert before.elapsed_s == CHECKS + 2
    assert run.cases[0].elapsed_s == before.elapsed_s + len(server.launched)
    assert run.cases[0].started == before.started


def test_a_resumed_run_does_not_take_a_launch_of_the_round_that_was_cut_as_one_of_a_whole_round(executed, tmp_path):
    of_two = a_case("selu", "a:jit", "numpy:native")
    with pytest.raises(KeyboardInterrupt):
        executed(timed(), [of_two], dies=stop_before(3))  # the second round has one of its two processes

    run, server = executed(timed(), [of_two])

    assert len([one for one in server.launched if one.round == 1 and one.process == "timing"]) == 1
    values = [item.outcomes["timing"].values["execution_s"] for item in run.cases[0].variants]
    assert [len(found) for found in values] == [8, 8]
    assert [item.outcomes["timing"].details.launches for item in run.cases[0].variants] == [8, 8]


def test_a_resumed_run_remembers_what_was_replaced_and_how_often_it_was_looked_at(executed, tmp_path):
    wide = a_case("matmul", "a:jit", "other_one:jit", represents_workload=True)
    with pytest.raises(KeyboardInterrupt):
        executed(
            timed(**MORE),
            [wide],
            contended=lambda message: message.launch.round == 1,
            dies=stop_before(3 + 1 + 2),
        )

    run, _ = executed(timed(**MORE), [wide], budget_s=0.5)

    details = run.cases[0].variants[0].outcomes["timing"].details
    assert (details.replaced, details.looks) == (1, 2)


def test_samples_that_are_read_again_tell_nothing_of_the_time_that_others_will_take(executed):
    of_two = a_case("selu", "a:jit", "numpy:native")
    with pytest.raises(KeyboardInterrupt):
        executed(timed(), [of_two], dies=stop_before(3))

    run, _ = executed(timed(), [of_two], budget_s=1 + 1 + 3 * 2 + 1.8)

    assert run.cases[0].rounds == 5  # one was whole, one half, three more: for a sixth there is too little time


def test_more_launches_of_a_resumed_run_come_after_a_check_too(executed):
    wide = a_case("matmul", "a:jit", "other_one:jit", represents_workload=True)
    with pytest.raises(KeyboardInterrupt):
        executed(timed(**MORE), [wide], dies=stop_before(3 + 1))

    _, server = executed(timed(**MORE), [wide])

    assert [(one.process, one.refills) for one in server.launched][:3] == [
        (CHECK, True),
        ("timing", False),
        ("timing", False),
    ]


@pytest.mark.parametrize("how", ["dies", "is wrong"])
def test_what_cannot_be_checked_again_is_timed_no_more(executed, how):
    with pytest.raises(KeyboardInterrupt):
        executed(timed(), [CASES[0]], dies=stop_before(1))
    wrong = Outcome(status=Status.WRONG, reason="off by one")

    run, server = executed(
        timed(),
        [CASES[0]],
        answers=lambda launched, name: wrong if how == "is wrong" else OK,
        dies=lambda launched: dead(signal=9) if how == "dies" and launched.refills else None,
    )

    assert server.asked("timing") == []
    timing = run.cases[0].variants[0].outcomes["timing"]
    assert timing.status is (Status.WRONG if how == "is wrong" else Status.KILLED)


def test_samples_of_a_first_round_that_was_cut_are_taken_again(executed):
    """Without a record nothing tells whether the programs are the same, compiled again."""
    of_two = a_case("selu", "a:jit", "numpy:native")
    with pytest.raises(KeyboardInterrupt):
        executed(timed(), [of_two], dies=stop_before(1))

    _, server = executed(timed(), [of_two])

    assert len([one for one in server.launched if one.round == 0 and one.process == "timing"]) == 2


def test_what_was_replaced_in_a_round_that_was_cut_counts(executed):
    of_two = a_case("selu", "a:jit", "numpy:native")

    def contended(message):
        return message.launch.round == 1

    with pytest.raises(KeyboardInterrupt):
        executed(timed(), [of_two], contended=contended, dies=stop_before(2 + 2))

    run, _ = executed(timed(), [of_two])

    assert run.cases[0].variants[0].outcomes["timing"].details.replaced == 1


# Too little time


SLOW = a_case("selu", "a:eager", "a:jit")


def slow_eager(launched: Launch) -> float:
    """Seconds of a process: eager code of the slow case takes ten."""
    return 10.0 if launched.process == "timing" and "a:eager" in launched.variants else 1.0


def wall_of_slow(name: str) -> float:
    """Nine tenths of them are its blocks'."""
    return 2.25 if name == "a:eager" else 0.25


def test_a_slow_eager_variant_is_left_out_before_anything_else_and_told(executed):
    watcher = Told()

    run, _ = executed(
        timed(), [SLOW, CASES[1]], budget_s=20.0, seconds=slow_eager, wall_s=wall_of_slow, watcher=watcher
    )

    eager = run.cases[0].variants[0].outcomes["timing"]
    assert eager.status is Status.SKIPPED
    assert eager.reason == (
        "left out: a launch spends 9.0 s on it, too much for a budget of 20 s; a run with a larger --budget times it"
    )
    assert ("said", f"{SLOW.name}: a:eager: {eager.reason}") in watcher.words
    assert run.cases[0].variants[1].outcomes["timing"].status is Status.OK
    assert run.lost() == ()


def test_once_it_is_left_out_its_time_is_nobody_elses(executed):
    """The forecast of what is left of its case is without it: no other has to go."""
    other = a_case("mlp", "a:eager", "a:jit")

    def seconds(launched):
        slow = launched.case == SLOW.id
        return slow_eager(launched) if slow else 3.0 if launched.process == "timing" else 1.0

    run, _ = executed(timed(), [SLOW, other], budget_s=4 + 13 + 2 * 4 + 0.5, seconds=seconds, wall_s=wall_of_slow)

    statuses = [case.variants[0].outcomes["timing"].status for case in run.cases]
    assert statuses == [Status.SKIPPED, Status.OK]
    assert [case.rounds for case in run.cases] == [3, 3]


def test_nothing_is_left_out_where_the_fewest_rounds_fit(executed):
    run, _ = executed(timed(), [SLOW], budget_s=33.0, seconds=slow_eager, wall_s=wall_of_slow)

    assert run.cases[0].variants[0].outcomes["timing"].status is Status.OK
    assert run.cases[0].rounds == 3


def test_nothing_is_left_out_in_vain(executed):
    """Where the fewest rounds do not fit even then, the run ends, and all of it goes on when it is resumed."""
    run, _ = executed(timed(), [SLOW], budget_s=13.0, seconds=slow_eager, wall_s=wall_of_slow)

    assert [item.outcomes["timing"].status for item in run.cases[0].variants] == [Status.LOST] * 2


def test_what_was_left_out_is_timed_when_a_lost_run_is_resumed(executed):
    def slower(launched):  # than the first round has told
        return slow_eager(launched) * (1 if launched.round == 0 else 4)

    first, _ = executed(timed(), [SLOW, CASES[1]], budget_s=4 + 11 + 2 * 2 + 0.5, seconds=slower, wall_s=wall_of_slow)

    run, _ = executed(timed(), [SLOW, CASES[1]], seconds=slow_eager, wall_s=wall_of_slow)

    assert first.cases[0].variants[0].outcomes["timing"].status is Status.SKIPPED
    assert first.lost()
    assert run.cases[0].variants[0].outcomes["timing"].status is Status.OK


def test_a_budget_is_kept_within_one_launch_also_where_variants_hang(executed, clock):
    hanging = a_case("selu", "a:jit", "b:jit", "c:jit")

    def dies(launched):
        return dead(last=Heartbeat(launched.variants[0], "timing"), timed_out=True) if launched.round == 1 else None

    def seconds(launched):
        return 120.0 if launched.round == 1 else 1.0

    executed(timed(), [hanging], budget_s=10.0, seconds=seconds, dies=dies)

    assert clock.now - 64.0 == 3 + 120


def test_what_a_fixed_number_of_launches_looks_at_is_never_left_out(executed):
    fixed_number = timed(launches=3, fewest_rounds=3, most_rounds=3)

    run, _ = executed(fixed_number, [SLOW], budget_s=15.0, seconds=slow_eager, wall_s=wall_of_slow)

    assert run.cases[0].variants[0].outcomes["timing"].status is Status.LOST


def test_cold_processes_are_left_out_where_that_is_not_enough(executed):
    watcher = Told()
    cold = settings("compilation", "timing", **ROUNDS, cold_launches=3)

    def seconds(launched):
        return 5.0 if launched.process == "compilation" else 1.0

    run, server = executed(cold, [CASES[0]], budget_s=8 + 2 + 0.5, seconds=seconds, watcher=watcher)

    assert len(server.asked("compilation")) == 1
    assert run.cases[0].launches == 3
    words = "2 cold processes left out: the budget had no time for more"
    assert (
        "said",
        "2 cold processes left out, since the budget has no time for more; notes say which",
    ) in watcher.words
    assert run.cases[0].variants[0].outcomes["compilation"].notes == (words,)


# More launches


MORE = {"level": "default", "most_rounds": 3}


def test_time_that_is_left_goes_to_the_widest_interval_of_a_case_that_matters(executed):
    wide = a_case("matmul", "a:jit", "other_one:jit", represents_workload=True)
    narrow = a_case("selu", "a:jit", "b:jit", represents_workload=True)  # equal in every launch
    unimportant = a_case("mlp", "a:jit", "other_one:jit")

    run, server = executed(timed(**MORE), [wide, narrow, unimportant], budget_s=6 + 3 * 3 + 4.5)

    assert [case.launches for case in run.cases] == [7, 3, 3]  # four more, a second each
    more = [one for one in server.launched if one.round > 2]
    assert [(one.case, one.round) for one in more] == [(wide.id, index) for index in (3, 4, 5, 6)]
    looks = [case.variants[0].outcomes["timing"].details.looks for case in run.cases]
    assert looks == [2, 1, 1]


def test_a_case_has_no_more_than_a_dozen_launches(executed):
    wide = a_case("matmul", "a:jit", "other_one:jit", represents_workload=True)

    run, _ = executed(timed(**MORE), [wide])

    assert run.cases[0].launches == 12


@pytest.mark.parametrize(("budget_s", "rounds"), [(1000.0, 5), (2 + 4.5, 4)])
def test_a_quick_run_ends_when_its_rounds_have(executed, budget_s, rounds):
    wide = a_case("matmul", "a:jit", "other_one:jit", represents_workload=True)

    run, _ = executed(timed(most_rounds=5), [wide], budget_s=budget_s)

    assert run.cases[0].launches == rounds


# Contended launches


def test_a_contended_launch_is_replaced_by_a_fresh_process_once(executed, tmp_path):
    def contended(message):
        return message.launch.round == 1  # and the one that replaces it, too

    run, server = executed(timed(**TWICE), [CASES[0]], contended=contended)

    assert [one.round for one in server.launched if one.process == "timing"] == [0, 1, 1]
    seeds = [message.seed for message in server.messages if message.launch.process == "timing"]
    assert len(set(seeds)) == 3
    details = run.cases[0].variants[0].outcomes["timing"].details
    assert (details.launches, details.contended, details.replaced) == (2, 1, 1)
    folder = RunFolder(tmp_path).case(CASES[0].id)
    assert folder.launch(1, replaced=True).exists()
    assert folder.launches() == [folder.launch(0), folder.launch(1)]


def seeds_that_are_contended(first: Callable[[int], bool], again: Callable[[int], bool]):
    """By the round, of the first process of a launch and of the one that replaces it, which has another seed."""
    return lambda message: (again if message.seed >= 1000 else first)(message.launch.round)


def test_of_a_case_only_one_process_a_round_is_replaced(executed):
    with_peer = a_case("selu", "a:jit", "numpy:native")

    run, server = executed(
        timed(**TWICE), [with_peer], contended=seeds_that_are_contended(lambda index: True, lambda index: False)
    )

    assert len(server.asked("timing")) == 2 * (2 + 1)
    replaced = [item.outcomes["timing"].details.replaced for item in run.cases[0].variants]
    assert max(replaced) == 2


def test_where_the_fresh_process_is_contended_too_later_launches_are_not_replaced(executed):
    contended = seeds_that_are_contended(lambda index: index != 1, lambda index: index >= 2)

    run, server = executed(timed(launches=6, fewest_rounds=6, most_rounds=6), [CASES[0]], contended=contended)

    # Well in the first round, not needed in the second, in vain in the third, and no more after that.
    assert [one.round for one in server.launched if one.process == "timing"] == [0, 0, 1, 2, 2, 3, 4, 5]
    details = run.cases[0].variants[0].outcomes["timing"].details
    assert (details.replaced, details.contended) == (2, 4)


def test_a_contended_launch_stays_where_the_budget_is_used_up(executed):
    run, server = executed(timed(**ONCE), [CASES[0]], contended=lambda message: True, budget_s=3.0)

    assert len(server.asked("timing")) == 1
    assert run.cases[0].variants[0].outcomes["timing"].details.replaced == 0


def test_a_replacement_that_dies_replaces_nothing(executed):
    begun = []

    def dies(launched):
        begun.extend([launched] if launched.process == "timing" else [])
        return dead(signal=9) if launched.process == "timing" and len(begun) == 2 else None

    run, _ = executed(timed(**ONCE), [CASES[0]], contended=lambda message: True, dies=dies)

    details = run.cases[0].variants[0].outcomes["timing"].details
    assert (details.launches, details.replaced) == (1, 0)


def test_a_resumed_run_tells_the_rounds_that_are_left(executed):
    with pytest.raises(KeyboardInterrupt):
        executed(timed(most_rounds=4), [CASES[0]], dies=stop_before(2))
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

    assert watcher.words == [
        ("run", 4, 1000.0),
        ("round", 1, 2, 4),
        ("starts", SHAPES),
        ("ended", SHAPES, 1.0),
        ("starts", CHECK),
        ("ended", CHECK, 2.0),
        ("starts", "timing"),
        ("ended", "timing", 3.0),
        ("said", "round 1 took 3 s of 1000 s: there will be 2 rounds"),
        ("round", 2, 2, 1),
        ("starts", "timing"),
        ("ended", "timing", 4.0),
        ("ends", "selu", 4.0),
        ("over",),
    ]


def test_a_case_at_whose_turn_the_budget_is_just_used_up_is_lost(executed):
    watcher = Told()

    executed(settings(), [case("selu"), case("matmul")], budget_s=3.0, watcher=watcher)

    lost = [word for word in watcher.words if word[0] == "lost"]
    assert [word[2] for word in lost] == ["the budget of 3 s is used up; go on with --resume"]
    assert len([word for word in watcher.words if word[0] == "ends"]) == 1
