"""A budget that ends says which process, variant and stage held it, and keeps what was measured."""

import pytest

from jaxmeter.harness.parent.rounds import GRACE, GRACE_S, STAGE_FLOOR_S, ProcessAllowance
from jaxmeter.harness.plan.messages import Heartbeat
from jaxmeter.harness.plan.probes import CHECK
from jaxmeter.harness.record import RunFolder, Status, Stop, read_json
from jaxmeter.harness.record.processes import Holder
from tests.harness.parent.made_up import CASES, ROUNDS, Told, a_case, settings, timed

SLOW = a_case("selu", "a:eager", "a:jit")


def compiles_for_minutes(launched) -> float:
    return 1000.0 if launched.kind == CHECK and "a:jit" in launched.variants and launched.case == SLOW.id else 1.0


def at_its_compile(launched) -> Heartbeat:
    return Heartbeat("a:jit", "compile") if compiles_for_minutes(launched) > 1 else Heartbeat(None, "start")


HANGS = {"seconds": compiles_for_minutes, "at": at_its_compile}


def test_a_variant_that_holds_the_budget_costs_the_other_cases_nothing(executed, tmp_path):
    run, _ = executed(timed(), [SLOW, *CASES[1:]], budget_s=60.0, **HANGS)

    slow, *others = run.cases
    held = slow.variants[1].outcomes["numerics"]
    assert held.status is Status.TIMED_OUT
    assert held.reason.startswith("process 'check' had been at variant 'a:jit', stage 'compile' for ")
    assert "the budget of 60 s" in held.reason
    assert slow.variants[0].outcomes["timing"].status is Status.OK
    assert [case.variants[0].outcomes["timing"].status for case in others] == [Status.OK, Status.OK]
    assert run.lost() == ()
    assert RunFolder(tmp_path).mark.exists()


def test_where_no_other_case_waits_it_is_ended_soon_after_the_budget_and_may_be_resumed(executed, clock, tmp_path):
    watcher = Told()

    run, _ = executed(timed(), [SLOW], budget_s=60.0, watcher=watcher, **HANGS)

    assert clock.now - 64.0 == 60 + GRACE_S
    eager, jitted = run.cases[0].variants
    assert (eager.outcomes["numerics"].status, jitted.outcomes["numerics"].status) == (Status.LOST, Status.LOST)
    assert jitted.outcomes["numerics"].reason == (
        "process 'check' had been at variant 'a:jit', stage 'compile' for 69 s when the budget of 60 s had been used "
        "up for 10 s, so it was ended; continue with --resume, or give a larger --budget"
    )
    assert eager.outcomes["numerics"].reason == "the budget ended before"
    stop = read_json(RunFolder(tmp_path).stop, Stop)
    assert stop.held == Holder(case=SLOW.name, process="check", variant="a:jit", stage="compile", seconds=69.0)
    (said,) = [words[0] for kind, *words in watcher.words if kind == "said" and "used up" in words[0]]
    assert said == (
        "the budget of 60 s is used up; the most of it, 69 s, went to "
        f"variant 'a:jit' of {SLOW.name} (process 'check', stage 'compile')"
    )


def test_what_was_measured_before_the_budget_ended_is_kept(executed):
    probes = settings("compilation", "timing", **ROUNDS)

    def seconds(launched):
        return 1000.0 if launched.kind == "compilation" and launched.variants == ("a:jit",) else 1.0

    run, _ = executed(probes, [SLOW], budget_s=60.0, seconds=seconds)

    eager, jitted = run.cases[0].variants
    assert eager.outcomes["compilation"].values == {"trace_s": (1.0,)}
    assert jitted.outcomes["numerics"].status is Status.OK
    assert jitted.outcomes["compilation"].status is Status.LOST
    assert jitted.outcomes["timing"].status is Status.LOST
    assert run.lost() == (SLOW,)


def test_of_a_first_round_that_was_cut_what_is_left_is_measured_when_the_run_is_resumed(executed):
    probes = settings("compilation", "timing", **ROUNDS)
    _, before = executed(probes, [SLOW], budget_s=3.0)

    run, server = executed(probes, [SLOW])

    assert run.lost() == ()
    assert [before.asked("compilation"), server.asked("compilation")] == [
        [(0, "", ("a:eager",))],
        [(0, "", ("a:jit",))],
    ]
    assert run.cases[0].variants[0].outcomes["compilation"].values == {"trace_s": (1.0,)}


def test_a_later_round_that_was_cut_keeps_what_it_has_and_only_the_rest_is_measured(executed):
    probes = settings("compilation", "timing", **ROUNDS, cold_processes=3)

    def seconds(launched):
        return 1000.0 if launched.round == 1 and launched.kind == "timing" else 1.0

    cut, _ = executed(probes, [SLOW], budget_s=60.0, seconds=seconds, at=lambda launched: Heartbeat("a:jit", "timing"))
    run, server = executed(probes, [SLOW])

    assert cut.cases[0].processes == 1
    assert cut.cases[0].variants[1].outcomes["compilation"].values == {"trace_s": (1.0,) * 2}
    assert [index for index, *_ in server.asked("compilation")] == [2, 2]
    reason = cut.cases[0].variants[1].outcomes["timing"].reason
    assert reason.startswith("timed by 1 of at least 3 processes; process 'timing' had been at variant 'a:jit', stage ")
    assert run.lost() == ()
    assert run.cases[0].variants[1].outcomes["compilation"].values == {"trace_s": (1.0,) * 3}


def test_a_round_beyond_the_fewest_that_the_budget_cuts_costs_no_time_that_was_measured(executed):
    def seconds(launched):
        return 1000.0 if launched.round == 3 else 1.0

    run, _ = executed(timed(), [SLOW], budget_s=60.0, seconds=seconds)

    assert [item.outcomes["timing"].status for item in run.cases[0].variants] == [Status.OK, Status.OK]
    assert run.cases[0].processes == 3
    assert run.lost() == ()


def test_without_a_budget_a_process_takes_what_it_takes(executed):
    fixed = timed(finishes_fewest=True, budget_s=1.0, processes=3, fewest_rounds=3, most_rounds=3)

    run, server = executed(fixed, [SLOW, CASES[1]], budget_s=None, **HANGS)

    assert run.lost() == ()
    assert [one.case for one in server.launched].count(SLOW.id) == 2 + 3


@pytest.mark.parametrize(
    ("budget_s", "left_s", "end_s"), [(60.0, 60.0, 60 + GRACE_S), (1800.0, 600.0, 600 + 1800 * GRACE), (60.0, -5.0, 10)]
)
def test_a_process_has_the_grace_beyond_what_is_left(budget_s, left_s, end_s):
    assert ProcessAllowance(budget_s, lambda: left_s).find_end_s() == end_s


@pytest.mark.parametrize(("left_s", "stage_s"), [(90.0, 30.0), (6.0, STAGE_FLOOR_S), (-6.0, STAGE_FLOOR_S)])
def test_a_stage_has_a_share_of_what_is_left_but_never_less_than_its_floor(left_s, stage_s):
    assert ProcessAllowance(90.0, lambda: left_s, others_wait=True).find_stage_s() == stage_s
