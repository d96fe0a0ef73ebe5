"""What a killed run keeps, and how a resumed one goes on with it."""

import shutil

import msgspec
import pytest

from jaxmeter.harness.metrics.summary import ANOTHER_PROGRAM
from jaxmeter.harness.plan.messages import Heartbeat
from jaxmeter.harness.plan.probes import CHECK
from jaxmeter.harness.record import NumericsDetails, Outcome, RunFolder, Status, write_json
from tests.harness.parent.made_up import (
    CASES,
    CHECKS,
    FAILED,
    MORE,
    OK,
    WRONG,
    Told,
    a_case,
    dead,
    failing,
    record_of,
    settings,
    timed,
)
from tests.harness.raw import clean, process, variant


def test_a_resumed_run_goes_on_with_the_next_round(executed, interrupted, tmp_path):
    interrupted(timed(most_rounds=4), CASES, before=3 + 2)

    run, server = executed(timed(most_rounds=4), CASES)

    for planned in CASES:
        rounds = [one.round for one in server.launched if one.case == planned.id and one.kind == "timing"]
        assert rounds in ([1, 2, 3], [2, 3])
    assert [case.processes for case in run.cases] == [4] * 3
    for path in tmp_path.iterdir():
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    whole, _ = executed(timed(most_rounds=4), CASES)  # the same run, never interrupted
    assert [one.variants for one in run.cases] == [one.variants for one in whole.cases]


def test_of_a_case_that_is_whole_a_resumed_run_starts_nothing(executed, interrupted):
    first, second = CASES[:2]

    def dies(launched):
        if launched.case == second.id:
            raise KeyboardInterrupt

    interrupted(settings("compilation"), [first, second], dies=dies)
    _, before = executed(settings("compilation"), [first])

    run, server = executed(settings("compilation"), [first, second])

    assert before.launched == []
    assert {one.case for one in server.launched} == {second.id}
    assert not [one for one in server.launched if one.refills]
    assert run.lost() == ()


def test_a_resumed_run_fills_its_compilation_cache_by_a_check_that_counts_for_nothing_else(executed, interrupted):
    interrupted(timed(), [CASES[0]], before=1)

    run, server = executed(timed(), [CASES[0]])

    assert [(one.kind, one.refills) for one in server.launched][:2] == [(CHECK, True), ("timing", False)]
    assert len([one for one in server.launched if one.kind == CHECK]) == 1
    assert run.cases[0].variants[0].outcomes["numerics"].values == OK.values


def of_program(fingerprint: str) -> Outcome:
    return Outcome(status=Status.OK, details=NumericsDetails(fingerprint=fingerprint))


@pytest.mark.parametrize(("again", "status"), [("one", Status.OK), ("other", Status.FAILED)])
def test_a_resumed_run_that_compiles_another_program_does_not_join_its_processes(executed, interrupted, again, status):
    interrupted(timed(), [CASES[0]], before=1, answers=lambda launched, name: of_program("one"))
    answer = {CHECK: of_program(again)}

    run, _ = executed(timed(), [CASES[0]], answers=lambda launched, name: answer.get(launched.kind, OK))

    timing = run.cases[0].variants[0].outcomes["timing"]
    assert timing.status is status
    assert (timing.reason == ANOTHER_PROGRAM) is (status is Status.FAILED)
    assert run.cases[0].variants[0].outcomes["numerics"].details == NumericsDetails(fingerprint="one")


def test_what_failed_before_a_run_was_interrupted_is_not_tried_again(executed, interrupted):
    of_two = a_case("selu", "a:jit", "b:jit")
    interrupted(timed(), [of_two], before=1, answers=failing("b:jit"))

    run, server = executed(timed(), [of_two])

    assert {one.variants for one in server.launched} == {("a:jit",)}
    assert run.cases[0].variants[1].outcomes["numerics"] == FAILED


@pytest.mark.parametrize("sample_s", [None, -1.0, 0.0, 1e300])
def test_a_damaged_process_of_a_whole_round_is_named_and_measured_again(executed, interrupted, tmp_path, sample_s):
    interrupted(timed(), [CASES[0]], before=4)
    path = RunFolder(tmp_path).case(CASES[0].id).processes("timing")[1]
    if sample_s is None:
        path.write_bytes(b"broken")
    else:
        damaged = process(variant("a:jit", *clean(1.0, sample_s, 1.0)), index=1)
        write_json(path, msgspec.structs.replace(damaged, case=CASES[0].id))
    watcher = Told()

    run, server = executed(timed(), [CASES[0]], watcher=watcher)

    assert [(one.kind, one.round) for one in server.launched][:2] == [(CHECK, 1), ("timing", 1)]
    assert run.cases[0].processes == 8
    assert len(run.cases[0].variants[0].outcomes["timing"].values["execution_s"]) == 8
    said = [word[1] for word in watcher.words if word[0] == "said" and str(path) in word[1]]
    assert len(said) == 1
    assert said[0].endswith("; measured again")


@pytest.mark.parametrize("how", ["missing", "damaged"])
def test_a_summary_that_cannot_be_read_costs_no_process(executed, interrupted, tmp_path, how):
    interrupted(timed(), [CASES[0]], before=4)
    path = RunFolder(tmp_path).case(CASES[0].id).record
    path.unlink()
    if how == "damaged":
        path.write_bytes(b"broken")

    run, server = executed(timed(), [CASES[0]])

    assert [index for index, *_ in server.asked("timing")] == [4, 5, 6, 7]
    assert run.cases[0].processes == 8


def test_artifacts_and_time_of_an_interrupted_run_are_kept(executed, interrupted, tmp_path):
    interrupted(timed(), [CASES[0]], before=2)
    before = record_of(tmp_path, CASES[0])

    run, server = executed(timed(), [CASES[0]])

    assert before.elapsed_s == CHECKS + 2
    assert run.cases[0].elapsed_s == before.elapsed_s + len(server.launched)
    assert run.cases[0].started == before.started


def test_a_resumed_run_does_not_take_a_process_of_the_round_that_was_cut_as_one_of_a_whole_round(
    executed, interrupted, tmp_path
):
    of_two = a_case("selu", "a:jit", "numpy:native")
    interrupted(timed(), [of_two], before=3)  # the second round has one of its two processes

    run, server = executed(timed(), [of_two])

    assert len([one for one in server.launched if one.round == 1 and one.kind == "timing"]) == 1
    values = [item.outcomes["timing"].values["execution_s"] for item in run.cases[0].variants]
    assert [len(found) for found in values] == [8, 8]
    assert [item.outcomes["timing"].details.processes for item in run.cases[0].variants] == [8, 8]


def test_a_resumed_run_remembers_what_was_replaced_and_how_often_it_was_looked_at(executed, interrupted, tmp_path):
    wide = a_case("matmul", "a:jit", "other_one:jit", represents_workload=True)
    interrupted(timed(**MORE), [wide], contended=lambda message: message.process.round == 1, before=3 + 1 + 2)

    run, _ = executed(timed(**MORE), [wide], budget_s=0.5)

    details = run.cases[0].variants[0].outcomes["timing"].details
    assert (details.replaced, details.looks) == (1, 3)  # once before the run was stopped, once since, once at the end


def test_samples_that_are_read_again_tell_nothing_of_the_time_that_others_will_take(executed, interrupted):
    of_two = a_case("selu", "a:jit", "numpy:native")
    interrupted(timed(), [of_two], before=3)

    run, _ = executed(timed(), [of_two], budget_s=1 + 1 + 3 * 2 + 1.8)

    assert run.cases[0].processes == 5  # one was whole, one half, three more: for a sixth there is too little time


@pytest.mark.parametrize("how", ["dies", "is wrong"])
def test_what_cannot_be_checked_again_is_timed_no_more(executed, interrupted, how):
    interrupted(timed(), [CASES[0]], before=1)

    run, server = executed(
        timed(),
        [CASES[0]],
        answers=lambda launched, name: WRONG if how == "is wrong" else OK,
        dies=lambda launched: dead(signal=9) if how == "dies" and launched.refills else None,
    )

    assert server.asked("timing") == []
    timing = run.cases[0].variants[0].outcomes["timing"]
    assert timing.status is (Status.WRONG if how == "is wrong" else Status.KILLED)


def test_of_a_first_round_that_was_cut_only_the_process_that_was_under_way_is_lost(executed, interrupted):
    of_two = a_case("selu", "a:jit", "numpy:native")
    interrupted(timed(), [of_two], before=1)

    _, server = executed(timed(), [of_two])

    assert [(one.kind, one.refills) for one in server.launched][:2] == [(CHECK, True), ("timing", False)]
    assert len([one for one in server.launched if one.round == 0 and one.kind == "timing"]) == 1


def test_a_variant_that_was_not_yet_tried_without_the_one_that_died_is_looked_at(executed, interrupted):
    of_two = a_case("selu", "a:jit", "b:jit")

    def dies(launched):
        if launched.kind == CHECK and launched.variants == ("b:jit",):
            raise KeyboardInterrupt
        return dead(last=Heartbeat("a:jit", "compile"), signal=11) if launched.kind == CHECK else None

    interrupted(timed(), [of_two], dies=dies)

    run, server = executed(timed(), [of_two])

    assert server.asked(CHECK) == [(0, "", ("b:jit",))]
    statuses = [item.outcomes["numerics"].status for item in run.cases[0].variants]
    assert statuses == [Status.KILLED, Status.OK]


def test_a_run_that_is_resumed_twice_fills_its_cache_twice(executed, interrupted):
    for count in (2, 0):
        interrupted(timed(), [CASES[0]], before=count)

    _, server = executed(timed(), [CASES[0]])

    assert [(one.kind, one.round) for one in server.launched][:2] == [(CHECK, 2), ("timing", 2)]
