import itertools
import typing

import pytest

from jaxmeter.harness.record import (
    CacheStateCall,
    CachingDetails,
    CompilationDetails,
    Details,
    MemoryDetails,
    NumericsDetails,
    Outcome,
    Status,
    TimingDetails,
    TraceDetails,
)
from jaxmeter.harness.record.outcomes import join


def ok(*notes: str, details: Details | None = None, **values: float) -> Outcome:
    return Outcome(
        status=Status.OK, values={name: (value,) for name, value in values.items()}, notes=notes, details=details
    )


def test_values_of_several_processes_stand_one_after_the_other():
    outcome = ok("a note", trace_s=1.0)

    assert join(None, outcome) is outcome
    assert join(outcome, ok(trace_s=2.0, lower_s=3.0)).values == {"trace_s": (1.0, 2.0), "lower_s": (3.0,)}


def test_a_note_that_all_processes_made_is_kept_once_in_its_first_place():
    assert join(ok("one", "two"), ok("three", "one")).notes == ("one", "two", "three")


@pytest.mark.parametrize("failed_first", [True, False])
def test_the_worse_status_stands_with_its_reason_beside_what_was_measured(failed_first):
    failed = Outcome(status=Status.FAILED, reason="no luck", stderr="Traceback")
    pair = (failed, ok(trace_s=1.0)) if failed_first else (ok(trace_s=1.0), failed)

    found = join(*pair)

    assert (found.status, found.reason, found.stderr) == (Status.FAILED, "no luck", "Traceback")
    assert found.values == {"trace_s": (1.0,)}


@pytest.mark.parametrize(("better", "worse"), list(itertools.pairwise(Status)), ids=str)
def test_statuses_are_ordered_from_best_to_worst(better, worse):
    one, other = Outcome(status=better, reason="one"), Outcome(status=worse, reason="other")

    assert join(one, other).status == join(other, one).status == worse
    assert join(one, other).reason == join(other, one).reason == "other"


def test_of_two_equal_statuses_the_first_reason_stands():
    first, second = (Outcome(status=Status.FAILED, reason=reason) for reason in ("first", "second"))

    assert join(first, second).reason == "first"


def test_different_programs_are_all_kept_once_and_the_first_explanation_of_a_compilation_stands():
    first, second = (ok(details=CompilationDetails(fingerprints=(name,), explanation=name)) for name in ("aa", "bb"))

    found = join(join(ok(details=CompilationDetails()), first), join(second, first)).details

    assert found == CompilationDetails(fingerprints=("aa", "bb"), explanation="aa")


def test_calls_in_the_cache_states_of_caches_stand_in_the_order_of_their_processes():
    cold, warm = (CacheStateCall(cache_state=name, proven=True) for name in ("cold", "warm"))

    found = join(ok(details=CachingDetails(calls=(cold, warm))), ok(details=CachingDetails(calls=(cold,))))

    assert found.details == CachingDetails(calls=(cold, warm, cold))


@pytest.mark.parametrize(
    "details",
    [
        *(NumericsDetails(outputs=2), MemoryDetails(), TimingDetails(processes=3), TraceDetails(discarded=10)),
        CompilationDetails(explanation="why"),
        CachingDetails(calls=(CacheStateCall(cache_state="cold", proven=False),)),
    ],
    ids=lambda details: type(details).__name__,
)
def test_details_that_only_one_process_has_are_kept(details):
    assert type(details) in typing.get_args(Details)
    assert join(ok(details=details), ok()).details == details
    assert join(ok(), ok(details=details)).details == details


def test_what_all_processes_say_alike_is_said_once():
    outcome = ok(details=NumericsDetails(outputs=2))

    assert join(outcome, outcome).details == outcome.details


def test_details_of_two_probes_are_never_one_outcome():
    with pytest.raises(ValueError, match=r"of two probes, MemoryDetails.* and TraceDetails.*, cannot"):
        join(ok(details=MemoryDetails()), ok(details=TraceDetails()))
