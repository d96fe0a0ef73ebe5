import pytest
from msgspec import structs

from jaxmeter.harness.metrics.write import describe_details
from jaxmeter.harness.record import (
    CachingDetails,
    Conditioning,
    Correctness,
    NumericsDetails,
    TimingDetails,
    TraceDetails,
)
from jaxmeter.harness.record.trace_summary import Finding, Problem, TraceSummary

SOUND = TraceSummary(platform="cpu", steps_from="step annotations")
UNEQUAL = Finding(problem=Problem.UNEQUAL_STEPS, text="its steps are unequal", is_fatal=False)
NO_DEVICE = Finding(problem=Problem.NO_DEVICE, text="it has no plane of the device", remedy="capture again")


@pytest.mark.parametrize(
    ("details", "sentences"),
    [
        (None, ()),
        (CachingDetails(), ()),
        (TimingDetails(processes=5), ()),
        (TimingDetails(processes=5, unsteady=1), ("no steady state within the warm-up in 1 of 5 processes",)),
        (TimingDetails(processes=5, contended=3), ("contended: 3 of 5 processes were contended",)),
        (TimingDetails(processes=5, contended=2), ("set aside: 2 of 5 processes, contended",)),
        (NumericsDetails(outputs=3), ()),
        (NumericsDetails(products="tensorfloat32"), ("float32 matrix products are computed in tensorfloat32",)),
        (NumericsDetails(outputs=3, unchecked=1), ("not checked: 1 of 3 outputs, NaN in both results",)),
        (NumericsDetails(raised="no"), ("raises, as declared: no",)),
        (TraceDetails(), ()),
        (TraceDetails(summary=SOUND), ()),
        (TraceDetails(summary=structs.replace(SOUND, findings=(UNEQUAL,))), ("the capture: its steps are unequal",)),
        (
            TraceDetails(summary=structs.replace(SOUND, findings=(NO_DEVICE,))),
            ("the capture gives no numbers: it has no plane of the device; capture again",),
        ),
    ],
)
def test_details_become_sentences_where_no_section_shows_them(details, sentences):
    assert describe_details(details) == sentences


def test_an_error_that_was_declared_is_named():
    assert describe_details(NumericsDetails(raised="no"), raises="TypeError") == ("raises TypeError, as declared: no",)


@pytest.mark.parametrize(
    ("conditioning", "verdict", "words"),
    [
        (
            Conditioning(beyond=2, worst="['w']", error=1e-4, allowed=2e-3, digits=3.3),
            Correctness.RIGHT_WITHIN_CONDITIONING,
            ("2 of 9 outputs are beyond", "0.0001", "['w']", "0.002", "3.3 digits"),
        ),
        (
            Conditioning(beyond=2, unresolved=1, error=1e-4, allowed=2.0, digits=0.3),
            Correctness.RIGHT_WITHIN_CONDITIONING,
            ("1 cannot be checked",),
        ),
        (
            Conditioning(beyond=1, error=None, allowed=None, digits=0.0),
            Correctness.CANNOT_BE_CHECKED,
            ("1 of 9 outputs is beyond", "0.0 digits"),
        ),
        (Conditioning(beyond=1, error=0.5, is_too_slow=True), Correctness.CANNOT_BE_CHECKED, ("takes too long",)),
    ],
    ids=["rounding", "one unknown", "no digit", "too slow"],
)
def test_what_the_draws_show_is_a_sentence(conditioning, verdict, words):
    details = NumericsDetails(outputs=9, verdict=verdict, conditioning=conditioning)

    (sentence,) = describe_details(details)

    assert sentence.startswith(verdict.value)
    assert [word for word in words if word not in sentence] == []
