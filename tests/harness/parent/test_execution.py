"""Which processes a run really starts, told by a server that only takes notes."""

import pytest

from jaxmeter.harness.machine.platforms import PLATFORMS
from jaxmeter.harness.plan.messages import Heartbeat
from jaxmeter.harness.plan.probes import CHECK
from jaxmeter.harness.plan.processes import SHAPES, plan_processes
from jaxmeter.harness.record import Outcome, RunFolder, Settings, Status, Stop, StopReason, read_json
from tests import samples
from tests.harness.parent.made_up import (
    FAILED,
    OK,
    ONCE,
    TWICE,
    VARIANTS,
    WRONG,
    Told,
    case,
    dead,
    dying_with,
    failing,
    settings,
)


def test_a_cache_state_that_fails_costs_the_others_no_round(measured):
    def answers(launched, variant):
        failed = launched.cache_state == "cached"
        return Outcome(status=Status.FAILED, reason="no luck") if failed else OK

    record, server = measured(settings("caching", cold_processes=2), answers=answers, answer=samples.ABOUT_COMPILING)

    asked = [(index, cache_state) for index, cache_state, names in server.asked("caching") if names == ("a:jit",)]
    assert asked == [(0, "cold"), (0, "cached"), (0, "warm"), (1, "cold"), (1, "warm")]
    assert record.variants[1].outcomes["caching"].reason == "no luck"


def test_what_does_not_fit_by_its_shapes_is_not_called(measured):
    too_large = Outcome(status=Status.TOO_LARGE, reason="needs 2 GiB of 1 GiB")

    record, server = measured(settings("memory", "measured_memory"), too_large={"a:eager": too_large})

    assert server.launched[0].kind == SHAPES
    assert [one.kind for one in server.launched if "a:eager" in one.variants] == [SHAPES]
    assert record.variants[0].outcomes["numerics"] == too_large


def test_what_has_failed_once_is_not_tried_in_the_next_round(measured):
    record, server = measured(settings("compilation", cold_processes=3), answers=failing("a:jit", "compilation"))

    assert server.asked("compilation").count((0, "", ("a:jit",))) == 1
    assert (1, "", ("a:jit",)) not in server.asked("compilation")
    assert record.variants[1].outcomes["compilation"].reason == "no luck"
    assert record.variants[2].outcomes["compilation"].status is Status.OK


STATES = ("cold", "cached", "warm")


@pytest.mark.parametrize(
    ("changes", "states", "names"),
    [
        ({"answer": samples.ABOUT_COMPILING, "new_static": {"n": 2}}, (*STATES, "new_static"), ("a:jit", "b:jit")),
        # Without a new static argument one variant stands for its case.
        ({"answer": samples.ABOUT_COMPILING, "new_shape": {"n": 2}}, (*STATES, "new_shape"), ("a:jit",)),
        ({}, (), ()),
    ],
    ids=["a new static argument", "a new shape", "where nothing rests on caching"],
)
def test_cache_states_alternate_within_a_round_and_only_for_what_jit_compiles(measured, changes, states, names):
    _, server = measured(settings("caching", cold_processes=2), **changes)

    assert server.asked("caching") == [
        (index, state, (name,)) for index in (0, 1) for state in states for name in names
    ]


def test_what_gave_no_right_answer_is_looked_at_no_further(measured):
    wrong, probes = failing("a:jit", outcome=WRONG), ("memory", "measured_memory", "compilation", "caching")

    _, server = measured(settings(*probes), answers=wrong, answer=samples.ABOUT_COMPILING)

    later = [one for one in server.launched if one.kind not in (SHAPES, CHECK)]
    assert later
    assert not [one for one in later if "a:jit" in one.variants]


# One list for all


EVERYTHING = ("numerics", "memory", "measured_memory", "compilation", "caching", "timing", "trace")


def fixed(**changes) -> Settings:
    """Settings of all probes with counts that nothing cuts."""
    counts = {**TWICE, "cold_processes": 2, "everywhere": ("caching", "trace")}
    return samples.settings(probes=EVERYTHING, **{**counts, **changes})


def test_what_is_started_is_the_planned_list_in_its_order(executed):
    settings = fixed()
    cases = [case("selu"), case("matmul", new_shape={"n": 2})]

    _, server = executed(settings, cases)

    assert server.launched == list(plan_processes(cases, settings))


def test_what_cannot_be_checked_again_costs_the_others_no_samples_that_are_there(executed, interrupted):
    twice = settings("timing", **TWICE)
    interrupted(twice, [case("selu")], before=3)

    run, server = executed(twice, [case("selu")], answers=failing("b:jit", CHECK))

    assert server.asked("timing") == [(1, "", ("numpy:native",))]
    statuses = {item.name: item.outcomes["timing"].status for item in run.cases[0].variants}
    assert statuses == {**dict.fromkeys(VARIANTS, Status.OK), "b:jit": Status.FAILED}


def test_what_the_budget_does_not_reach_is_lost_and_the_run_says_why(executed, tmp_path):
    watcher = Told()

    run, server = executed(settings(), [case("selu"), case("matmul")], budget_s=3.0, watcher=watcher)

    assert len(run.lost()) == 1
    assert {launched.case for launched in server.launched} == {run.cases[0].id}
    assert not RunFolder(tmp_path).mark.exists()
    stop = read_json(RunFolder(tmp_path).stop, Stop)
    assert (stop.reason, stop.budget_s) == (StopReason.BUDGET_USED, 3.0)
    lost = [word[2] for word in watcher.words if word[0] == "lost"]
    assert lost == ["the budget of 3 s is used up; continue with --resume"]
    assert len([word for word in watcher.words if word[0] == "ends"]) == 1


def test_a_case_of_which_nothing_can_be_run_has_a_record_all_the_same(executed):
    skipped = samples.planned_variant("a:jit", skip="needs 2 devices, found 1")

    run, server = executed(fixed(), [samples.planned_case(variants=(skipped,))])

    outcome = Outcome(status=Status.SKIPPED, reason="needs 2 devices, found 1")
    assert server.launched == []
    assert run.cases[0].variants[0].outcomes["numerics"] == outcome


# Processes that end badly


def test_a_process_that_dies_costs_the_variant_that_it_was_at_and_is_repeated_without_it(measured):
    record, server = measured(settings("memory"), dies=dying_with("b:jit"))

    of_jax = ("a:eager", "a:jit", "b:jit", "a:aot"), ("a:eager", "a:jit", "a:aot")
    assert server.asked(CHECK) == [(0, "", names) for names in (*of_jax, ("numpy:native",))]
    outcomes = {item.name: item.outcomes for item in record.variants}
    statuses = {name: found["numerics"].status for name, found in outcomes.items()}
    assert statuses == {**dict.fromkeys(VARIANTS, Status.OK), "b:jit": Status.KILLED}
    assert outcomes["b:jit"]["memory"].reason == "ended by SIGSEGV in stage 'compile'"
    assert "memory" not in outcomes["numpy:native"]


@pytest.mark.parametrize(
    ("kind", "how", "asked", "status"),
    [
        (CHECK, {"last": Heartbeat(None, "inputs"), "code": 1}, 2, Status.FAILED),
        (SHAPES, {"signal": 9}, 1, Status.OK),
    ],
    ids=["costs all that it was for", "but at shapes, where the check tells"],
)
def test_a_process_dies_at_no_variant(measured, kind, how, asked, status):
    record, server = measured(settings(), dies=lambda launched: dead(**how) if launched.kind == kind else None)

    assert len(server.asked(kind)) == asked
    assert {item.outcomes["numerics"].status for item in record.variants} == {status}


def test_a_variant_that_cannot_be_timed_is_left_out_and_the_process_is_repeated(measured):
    record, server = measured(settings("timing", **TWICE), answers=failing("a:jit", "timing"))

    of_jax = [(index, names) for index, _, names in server.asked("timing") if names != ("numpy:native",)]
    whole, rest = ("a:eager", "a:jit", "b:jit", "a:aot"), ("a:eager", "b:jit", "a:aot")
    assert of_jax == [(0, whole), (0, rest), (1, rest)]
    assert record.variants[1].outcomes["timing"] == FAILED
    assert len(record.variants[0].outcomes["timing"].values["execution_s"]) == 2


@pytest.mark.parametrize(("probes", "left_out"), [(("timing", "trace"), ("a:jit",)), (("trace",), ())])
def test_what_could_not_be_timed_is_not_traced_unless_nothing_is_timed(measured, probes, left_out):
    failed = failing("a:jit", "timing")

    _, server = measured(settings(*probes, **ONCE), answers=failed, represents_workload=True)

    names = ("a:eager", "a:jit", "b:jit", "a:aot")
    assert server.asked("trace") == [(0, "", tuple(name for name in names if name not in left_out))]


# Only compiled

TARGET = samples.target()


def test_a_case_on_a_target_is_compiled_without_a_check_and_never_called(executed):
    compiled = case("selu", platform=TARGET.name)

    run, server = executed(fixed(), [compiled], platforms={**PLATFORMS, TARGET.name: TARGET})

    assert {launched.kind for launched in server.launched} == {CHECK, "compilation"}
    assert {launched.probes for launched in server.launched} == {("memory",), ("compilation",)}
    assert {message.platform for message in server.messages} == {TARGET}
    assert "numpy:native" not in {name for launched in server.launched for name in launched.variants}
    assert run.cases[0].status is Status.OK


def test_cases_of_several_platforms_make_one_run(executed):
    here, compiled = case("selu"), case("matmul", platform=TARGET.name)

    run, server = executed(fixed(), [here, compiled], platforms={**PLATFORMS, TARGET.name: TARGET})

    platforms = {message.case.id: message.platform.name for message in server.messages}
    assert platforms == {here.id: "cpu", compiled.id: TARGET.name}
    assert run.lost() == ()


# What a case's record says of the case


def test_a_case_takes_the_time_of_its_processes(measured):
    record, server = measured(settings("timing", **TWICE))

    assert record.elapsed_s == len(server.messages) == 3 + 2 * 2


@pytest.mark.parametrize(("own_s", "expected_s"), [(None, 90.0), (7.0, 7.0)])
def test_a_stage_may_take_as_long_as_the_workload_says_else_as_the_run(measured, own_s, expected_s):
    _, server = measured(settings(stage_limit_s=90.0), time_limit_s=own_s)

    assert set(server.limits_s) == {expected_s}


@pytest.mark.parametrize(
    ("config", "noted"),
    [({"jax_debug_nans": True}, ["jax_debug_nans is True"]), ({"jax_enable_x64": True}, []), ({}, [])],
    ids=["a setting that changes what is timed", "one that is the program", "none"],
)
def test_a_case_that_declares_a_setting_that_changes_what_is_timed_has_a_note(measured, config, noted):
    record, _ = measured(settings(), config=config)

    assert [note.partition(":")[0] for note in record.notes] == noted


@pytest.mark.parametrize(("arms", "on_timing"), [(None, None), (("before", "now"), 1)])
def test_processes_on_fewer_cores_share_no_compiled_program_with_the_others(executed, arms, on_timing):
    """XLA compiles for the number of cores, which the key of JAX's cache lacks."""
    _, server = executed(settings("compilation", "timing", lock_step_cores=1, **ONCE), [case("a")], arms=arms)

    cores = {one.process.kind: one.cores for one in server.messages}
    caches = {one.process.kind: one.cache for one in server.messages}
    assert (cores["compilation"], cores["timing"]) == (None, on_timing)
    assert (caches["compilation"] == caches["timing"]) is (on_timing is None)
