import pytest

from harness.record import Outcome, Status
from harness.record.outcomes import joined


def ok(*notes: str, **values: float) -> Outcome:
    return Outcome(status=Status.OK, values={name: (value,) for name, value in values.items()}, notes=notes)


def test_values_of_several_processes_stand_one_after_the_other():
    found = joined(joined(None, ok(trace_s=1.0)), ok(trace_s=2.0, lower_s=3.0))

    assert found.values == {"trace_s": (1.0, 2.0), "lower_s": (3.0,)}


def test_a_note_that_all_processes_made_is_kept_once():
    assert joined(ok("cold: 1 traced"), ok("cold: 1 traced", "warm: 0 traced")).notes == (
        "cold: 1 traced",
        "warm: 0 traced",
    )


def test_different_programs_of_different_processes_are_all_kept():
    one, other = (Outcome(status=Status.OK, fingerprints=(name,)) for name in ("aa", "bb"))

    assert joined(joined(one, other), one).fingerprints == ("aa", "bb")


@pytest.mark.parametrize("failed_first", [True, False])
def test_the_worse_status_stands_with_its_reason_beside_what_was_measured(failed_first):
    failed = Outcome(status=Status.FAILED, reason="no luck", stderr="Traceback")
    pair = (failed, ok(trace_s=1.0)) if failed_first else (ok(trace_s=1.0), failed)

    found = joined(*pair)

    assert (found.status, found.reason, found.stderr) == (Status.FAILED, "no luck", "Traceback")
    assert found.values == {"trace_s": (1.0,)}


def test_what_only_one_process_can_do_is_done_and_the_others_reason_is_a_note():
    unsupported = Outcome(status=Status.UNSUPPORTED, reason="eager code has no plan")

    found = joined(unsupported, ok(runtime_peak_bytes=5))

    assert (found.status, found.reason, found.notes) == (Status.OK, None, ("eager code has no plan",))


def test_what_no_process_can_do_stays_unsupported():
    unsupported = Outcome(status=Status.UNSUPPORTED, reason="no plan")

    assert joined(unsupported, unsupported).status is Status.UNSUPPORTED
