"""Whose time it is where there is too little: what is left out, what is lost, what a budget keeps."""

import pytest

from jaxmeter.harness.parent.rounds import GRACE_S
from jaxmeter.harness.plan.messages import Heartbeat
from jaxmeter.harness.plan.processes import PlannedProcess
from jaxmeter.harness.record import Status
from tests.harness.parent.made_up import CASES, ROUNDS, Told, a_case, dead, settings, timed

SLOW = a_case("selu", "a:eager", "a:jit")


def slow_eager(launched: PlannedProcess) -> float:
    """Seconds of a process: eager code of the slow case takes ten."""
    return 10.0 if launched.kind == "timing" and "a:eager" in launched.variants else 1.0


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
        "left out: a process spends 9.0 s on it, too much for a budget of 20 s; a run with a larger --budget times it"
    )
    assert ("said", f"{SLOW.name}: a:eager: {eager.reason}") in watcher.words
    assert run.cases[0].variants[1].outcomes["timing"].status is Status.OK
    assert run.lost() == ()


def test_once_it_is_left_out_its_time_is_nobody_elses(executed):
    """The forecast of what is left of its case is without it: no other has to go."""
    other = a_case("mlp", "a:eager", "a:jit")

    def seconds(launched):
        slow = launched.case == SLOW.id
        return slow_eager(launched) if slow else 3.0 if launched.kind == "timing" else 1.0

    run, _ = executed(timed(), [SLOW, other], budget_s=4 + 13 + 2 * 4 + 0.5, seconds=seconds, wall_s=wall_of_slow)

    statuses = [case.variants[0].outcomes["timing"].status for case in run.cases]
    assert statuses == [Status.SKIPPED, Status.OK]
    assert [case.processes for case in run.cases] == [3, 3]


@pytest.mark.parametrize(
    ("how", "budget_s", "status"),
    [
        ({}, 33.0, Status.OK),  # the fewest rounds fit
        # They do not fit even then: the run ends, and all of it goes on when it is resumed.
        ({}, 13.0, Status.LOST),
        ({"processes": 3, "fewest_rounds": 3, "most_rounds": 3}, 15.0, Status.LOST),
    ],
    ids=["no need", "in vain", "a fixed number of processes"],
)
def test_nothing_is_left_out_without_need_in_vain_or_of_a_fixed_number_of_processes(executed, how, budget_s, status):
    run, _ = executed(timed(**how), [SLOW], budget_s=budget_s, seconds=slow_eager, wall_s=wall_of_slow)

    assert [item.outcomes["timing"].status for item in run.cases[0].variants] == [status] * 2


def test_what_was_left_out_is_timed_when_a_lost_run_is_resumed(executed):
    def slower(launched):  # than the first round has told
        return slow_eager(launched) * (1 if launched.round == 0 else 4)

    first, _ = executed(timed(), [SLOW, CASES[1]], budget_s=4 + 11 + 2 * 2 + 0.5, seconds=slower, wall_s=wall_of_slow)

    run, _ = executed(timed(), [SLOW, CASES[1]], seconds=slow_eager, wall_s=wall_of_slow)

    assert first.cases[0].variants[0].outcomes["timing"].status is Status.SKIPPED
    assert first.lost()
    assert run.cases[0].variants[0].outcomes["timing"].status is Status.OK


def test_a_budget_is_kept_within_its_grace_also_where_variants_hang(executed, clock):
    hanging = a_case("selu", "a:jit", "b:jit", "c:jit")

    def dies(launched):
        return dead(last=Heartbeat(launched.variants[0], "timing"), timed_out=True) if launched.round == 1 else None

    def seconds(launched):
        return 120.0 if launched.round == 1 else 1.0

    executed(timed(), [hanging], budget_s=10.0, seconds=seconds, dies=dies)

    assert clock.now - 64.0 == 10 + GRACE_S


def test_cold_processes_are_left_out_where_that_is_not_enough(executed):
    watcher = Told()
    cold = settings("compilation", "timing", **ROUNDS, cold_processes=3)

    def seconds(launched):
        return 5.0 if launched.kind == "compilation" else 1.0

    run, server = executed(cold, [CASES[0]], budget_s=8 + 2 + 0.5, seconds=seconds, watcher=watcher)

    assert len(server.asked("compilation")) == 1
    assert run.cases[0].processes == 3
    words = "2 cold processes left out: the budget had no time for more"
    assert (
        "said",
        "2 cold processes left out, since the budget has no time for more; notes say which",
    ) in watcher.words
    assert run.cases[0].variants[0].outcomes["compilation"].notes == (words,)


def slower_each_round(launched: PlannedProcess) -> float:
    """1, 4 and 7 seconds: what nobody foresees."""
    return 1.0 + 3.0 * launched.round


def test_a_budget_that_nobody_gave_is_exceeded_by_the_fewest_rounds(executed):
    watcher = Told()
    own = timed(finishes_fewest=True, budget_s=6.0)

    run, _ = executed(own, [CASES[1]], budget_s=None, seconds=slower_each_round, watcher=watcher)

    assert run.lost() == ()
    assert run.cases[0].processes == 3
    (said,) = [words[0] for kind, *words in watcher.words if kind == "said" and "used up" in words[0]]
    assert said.startswith(
        "the budget of 6 s is used up; the minimum rounds continue for up to 6 s, since without them"
    )


@pytest.mark.parametrize(
    ("how", "budget_s"),
    [
        ({"budget_s": 6.0}, None),
        ({"finishes_fewest": True}, 6.0),
        ({"finishes_fewest": True, "budget_s": 3.0}, None),  # it ends at twice its own budget
    ],
    ids=["given", "given to a resumed run", "twice its own"],
)
def test_a_budget_that_was_given_is_kept(executed, how, budget_s):
    run, _ = executed(timed(**how), [CASES[1]], budget_s=budget_s, seconds=slower_each_round)

    assert len(run.lost()) == 1


def test_processes_whose_number_was_asked_for_take_what_they_take(executed):
    watcher = Told()
    own = timed(finishes_fewest=True, budget_s=1.0, processes=5, fewest_rounds=5, most_rounds=5)

    run, _ = executed(own, [CASES[1]], budget_s=None, seconds=slower_each_round, watcher=watcher)

    assert run.cases[0].processes == 5
    said = [words[0] for kind, *words in watcher.words if kind == "said"]
    assert said == ["round 1 took 3 s: there will be 5 rounds"]  # two checks, and a process


def test_rounds_beyond_the_fewest_do_not_begin_after_it(executed):
    own = timed(finishes_fewest=True, budget_s=300.0)

    run, _ = executed(own, [CASES[1]], budget_s=None, seconds=lambda launched: 300.0 if launched.round == 3 else 1.0)

    assert run.cases[0].processes == 4


def test_beyond_the_budget_a_variant_that_dies_costs_the_others_nothing(executed):
    """Without it, the others of its process would be a process short, and lost."""
    two = a_case("selu", "a:jit", "b:jit")

    def dies(launched):
        is_last = launched.kind == "timing" and launched.round == 2 and "a:jit" in launched.variants
        return dead(last=Heartbeat("a:jit", "timing")) if is_last else None

    run, _ = executed(
        timed(finishes_fewest=True, budget_s=10.0), [two], budget_s=None, seconds=slower_each_round, dies=dies
    )

    assert [item.outcomes["timing"].status for item in run.cases[0].variants] == [Status.FAILED, Status.OK]
