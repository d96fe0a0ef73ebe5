import msgspec
import pytest

from jaxmeter.harness.machine.platforms import PLATFORMS
from jaxmeter.harness.plan.cases import add_lock_step, add_replays, is_unchanged, limit_to
from jaxmeter.harness.plan.processes import LOCK_STEP_ROUNDS, TURN_S, plan_processes_of
from jaxmeter.harness.plan.settings import make_settings
from jaxmeter.harness.record import Artifact, NumericsDetails, OtherEnvironment, Outcome, Replay, Status
from tests import samples


def kept(*variants):
    """A case that was measured before, with the programs of some variants."""
    planned = samples.planned_case(variants=("selu:eager", "selu:jit", "other:jit"))
    outcomes = {
        name: {"numerics": Outcome(status=Status.OK, details=NumericsDetails(fingerprint=f"print of {name}"))}
        for name in ("selu:jit", "other:jit")
    }
    artifacts = tuple(
        Artifact(kind="jaxexport", variant=name, path="x", size_bytes=1, sha256=f"sha of {name}") for name in variants
    )
    return planned, samples.record(planned, outcomes, artifacts=artifacts)


def test_a_kept_program_stands_after_the_variant_that_it_is_set_beside():
    before, record = kept("selu:jit")

    planned = add_replays(before, before, record, "run 1")

    assert [one.name for one in planned.variants] == ["selu:eager", "selu:jit", "selu:jit before", "other:jit"]
    replay = planned.variants[2]
    assert (replay.mode, replay.same_as) == ("replay", "selu:jit")
    assert replay.replays == Replay(
        run="run 1", variant="selu:jit", sha256="sha of selu:jit", fingerprint="print of selu:jit"
    )


def test_a_replay_has_the_code_the_donations_and_the_compiler_options_of_its_own_time():
    before, record = kept("selu:jit")
    options = {"xla_a": 1}
    old = tuple(
        msgspec.structs.replace(one, source="old", donates=("x",), compiler_options=options) for one in before.variants
    )
    today = msgspec.structs.replace(before, variants=before.variants)

    planned = add_replays(today, msgspec.structs.replace(before, variants=old), record, "run 1")

    assert (planned.variants[2].source, planned.variants[2].donates) == ("old", ("x",))
    assert (planned.variants[1].source, planned.variants[1].donates) == ("0" * 16, ())
    assert [one.compiler_options for one in planned.variants[:3]] == [{}, {}, options]


@pytest.mark.parametrize("lacks", ["case", "record", "definition", "variant", "skip", "raises"])
def test_without_an_equal_case_before_nothing_is_replayed(lacks):
    before, record = kept("selu:jit")
    today = before
    if lacks == "case":
        before = None
    elif lacks == "record":
        record = None
    elif lacks == "definition":
        today = msgspec.structs.replace(today, definition="1" * 16)
    elif lacks == "variant":
        before = msgspec.structs.replace(before, variants=before.variants[:1])
    else:
        changed = (msgspec.structs.replace(one, **{lacks: "no"}) for one in today.variants)
        today = msgspec.structs.replace(today, variants=tuple(changed))

    assert add_replays(today, before, record, "run 1") == today


def test_of_suspects_only_they_and_their_programs_are_left():
    before, record = kept("selu:jit", "other:jit")
    planned = add_replays(before, before, record, "run 1")

    limited, alone = limit_to(planned, {"other:jit", "gone:jit"}), limit_to(planned, {"selu:eager"})

    assert [one.name for one in limited.variants] == ["other:jit", "other:jit before"]
    assert limited.baseline == "other:jit before"
    assert [one.name for one in alone.variants] == [alone.baseline] == ["selu:eager"]
    assert limit_to(planned, {"gone:jit"}) is None


def test_a_case_with_replays_is_still_what_its_suite_declares():
    before, record = kept("selu:jit", "other:jit")
    planned = add_replays(before, before, record, "run 1")

    assert is_unchanged(planned, before)
    assert is_unchanged(limit_to(planned, {"other:jit"}), before)
    edited = tuple(msgspec.structs.replace(one, source="new") for one in before.variants)
    assert not is_unchanged(planned, msgspec.structs.replace(before, variants=edited))
    assert not is_unchanged(planned, msgspec.structs.replace(before, definition="new"))


def looking_at_the_earlier(planned):
    """Probes that look at the earlier program, and how timing's processes with today's are made up."""
    processes = list(plan_processes_of(planned, make_settings("full", suites=(), run_id="x"), PLATFORMS["cpu"]))
    looking = {probe for one in processes for probe, names in one.assignments.items() if "selu:jit before" in names}
    return looking, [set(one.variants) for one in processes if "timing" in one.assignments]


def test_a_replay_is_checked_and_timed_beside_todays_program_and_the_earlier_environment_only_tells_times():
    before, record = kept("selu:jit")
    looking, timing = looking_at_the_earlier(add_replays(before, before, record, "run 1"))
    assert looking == {"numerics", "timing"}
    assert all({"selu:jit", "selu:jit before"} <= names for names in timing)

    before, record = checked("selu:eager", "selu:jit")
    looking, timing = looking_at_the_earlier(add_lock_step(before, before, record, "run 1"))
    assert looking == {"timing"}
    assert all({"selu:eager before", "selu:jit before"} <= names for names in timing if "selu:jit" in names)


def checked(*right, wrong=()):
    """A case of every mode that was measured before, some of its variants right."""
    planned = samples.planned_case(
        variants=("selu:eager", "selu:jit", "selu:aot", "other:aot", "numpy:native", "gone:jit")
    )
    outcomes = {name: {"numerics": Outcome(status=Status.OK)} for name in right}
    outcomes |= {name: {"numerics": Outcome(status=Status.WRONG, reason="no")} for name in wrong}
    return planned, samples.record(planned, outcomes)


def test_in_lock_step_everything_of_jax_that_was_right_runs_in_the_earlier_environment_too():
    names = ("selu:eager", "selu:jit", "selu:aot", "other:aot", "numpy:native")
    before, record = checked(*names, wrong=("gone:jit",))

    planned = add_lock_step(before, before, record, "run 1")

    beside = [one for one in planned.variants if one.replays is not None]
    assert [one.same_as for one in beside] == ["selu:eager", "selu:jit", "other:aot"]
    assert [one.name for one in planned.variants][:4] == [
        "selu:eager",
        "selu:eager before",
        "selu:jit",
        "selu:jit before",
    ]
    assert {one.mode for one in beside} == {"lock-step"}
    assert all(one.replays.in_lock_step and one.replays.run == "run 1" for one in beside)
    assert not any(one.replays.from_checkout for one in beside)


def test_a_variant_with_the_code_of_an_earlier_checkout_says_so():
    before, record = checked("selu:eager", "selu:jit")

    planned = add_lock_step(before, before, record, "run 1", from_checkout=True)

    beside = [one for one in planned.variants if one.replays is not None]
    assert [one.name for one in beside] == ["selu:eager before", "selu:jit before"]
    assert all(one.replays.from_checkout and one.replays.in_lock_step for one in beside)
    assert {one.description for one in beside} == {"the code of run run 1"}


@pytest.mark.parametrize("lacks", ["case", "record", "definition"])
def test_without_an_equal_case_before_nothing_runs_in_lock_step(lacks):
    before, record = checked("selu:jit")
    today = msgspec.structs.replace(before, definition="1" * 16) if lacks == "definition" else before

    planned = add_lock_step(today, None if lacks == "case" else before, None if lacks == "record" else record, "run 1")

    assert planned == today


def test_a_run_in_lock_step_has_longer_turns_enough_rounds_and_more_time():
    other = OtherEnvironment(python="python", version="3.11.0", packages={}, variables={})
    plain, beside = (make_settings("quick", suites=(), run_id="x", lock_step=one) for one in (None, other))

    assert (plain.lock_step, beside.lock_step) == (None, other)
    assert beside.block_s == TURN_S > plain.block_s
    assert beside.most_rounds >= LOCK_STEP_ROUNDS
    assert beside.budget_s == 2 * plain.budget_s
    assert make_settings("quick", suites=(), run_id="x", lock_step=other, processes=3, budget_s=7).most_rounds == 3
    assert make_settings("quick", suites=(), run_id="x", lock_step=other, budget_s=7).budget_s == 7
