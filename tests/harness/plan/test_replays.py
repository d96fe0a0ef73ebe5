import msgspec
import pytest

from harness.machine.places import PLACES
from harness.plan.launches import plan_launches_of
from harness.plan.replays import add_replays, limit_to
from harness.plan.settings import make_settings
from harness.plan.twins import is_unchanged
from harness.record import Artifact, NumericsDetails, Outcome, Replay, Status
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


def test_a_replay_has_the_code_and_the_donations_of_its_own_time():
    before, record = kept("selu:jit")
    old = tuple(msgspec.structs.replace(one, source="old", donates=("x",)) for one in before.variants)
    today = msgspec.structs.replace(before, variants=before.variants)

    planned = add_replays(today, msgspec.structs.replace(before, variants=old), record, "run 1")

    assert (planned.variants[2].source, planned.variants[2].donates) == ("old", ("x",))
    assert (planned.variants[1].source, planned.variants[1].donates) == ("0" * 16, ())


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

    limited = limit_to(planned, {"other:jit", "gone:jit"})

    assert [one.name for one in limited.variants] == ["other:jit", "other:jit before"]
    assert limited.baseline == "other:jit before"
    assert limit_to(planned, {"selu:eager"}) is None


def test_a_case_with_replays_is_still_what_its_suite_declares():
    before, record = kept("selu:jit", "other:jit")
    planned = add_replays(before, before, record, "run 1")

    assert is_unchanged(planned, before)
    assert is_unchanged(limit_to(planned, {"other:jit"}), before)
    edited = tuple(msgspec.structs.replace(one, source="new") for one in before.variants)
    assert not is_unchanged(planned, msgspec.structs.replace(before, variants=edited))
    assert not is_unchanged(planned, msgspec.structs.replace(before, definition="new"))


def test_a_replay_is_checked_and_timed_beside_todays_program_and_nothing_else():
    before, record = kept("selu:jit")
    planned = add_replays(before, before, record, "run 1")
    settings = make_settings("full", suites=(), run_id="x")

    launches = list(plan_launches_of(planned, settings, PLACES["cpu"]))

    looking = {probe for one in launches for probe, names in one.looks.items() if "selu:jit before" in names}
    assert looking == {"numerics", "timing"}
    timing = [one for one in launches if "timing" in one.looks]
    assert all({"selu:jit", "selu:jit before"} <= set(one.variants) for one in timing)
