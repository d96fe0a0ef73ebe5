import pytest

from jaxmeter.reporting.history import find_clock_faults
from tests.reporting.history.runs import night


@pytest.mark.parametrize(
    ("runs", "said"),
    [
        ([night(0, 1e-3), night(1, 1e-3, against="run-000")], []),
        ([night(0, 1e-3, ended=None, against="elsewhere")], []),
        ([night(3, 1e-3, ended="2026-01-01T00:00:00Z")], ["run run-003 ended before it began"]),
        ([night(5, 1e-3), night(2, 1e-3, against="run-005")], ["run run-002 began before run run-005"]),
    ],
    ids=["in order", "not ended, of an unknown baseline", "ended too early", "began too early"],
)
def test_a_run_that_ended_or_began_before_it_can_have_is_named(runs, said):
    found = list(find_clock_faults(runs))

    assert [one.startswith(words) for one, words in zip(found, said, strict=True)] == [True] * len(said)
