import pytest

from harness.record import CachingDetails, NumericsDetails, TimingDetails, TraceDetails
from harness.record.sentences import NO_DEVICE_ACTIVITY, describe_details


@pytest.mark.parametrize(
    ("details", "sentences"),
    [
        (None, ()),
        (CachingDetails(), ()),
        (TimingDetails(launches=5), ()),
        (
            TimingDetails(launches=5, contended=3, unsteady=1),
            (
                "contended: 3 of 5 launches were too disturbed",
                "no steady state within the warm-up in 1 of 5 launches",
            ),
        ),
        (TimingDetails(launches=5, contended=2), ("set aside: 2 of 5 launches, too disturbed",)),
        (NumericsDetails(outputs=3), ()),
        (
            NumericsDetails(products="tensorfloat32", outputs=3, unchecked=1),
            (
                "float32 matrix products are computed in tensorfloat32",
                "not checked: 1 of 3 outputs, NaN in the reference too",
            ),
        ),
        (NumericsDetails(raised="no"), ("raises, as declared: no",)),
        (TraceDetails(), ()),
        (TraceDetails(device_activity=True), ()),
        (TraceDetails(device_activity=False), (NO_DEVICE_ACTIVITY,)),
    ],
)
def test_details_become_sentences_where_no_section_shows_them(details, sentences):
    assert describe_details(details) == sentences


def test_an_error_that_was_declared_is_named():
    assert describe_details(NumericsDetails(raised="no"), raises="TypeError") == ("raises TypeError, as declared: no",)
