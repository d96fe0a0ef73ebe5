"""What an earlier run adds to a request."""

import json
from pathlib import Path

import pytest

from harness.parent.against import read_suspects
from harness.parent.prepare_run import UsageError
from harness.plan.settings import make_settings
from harness.record.suspects import CONFIRMING_LAUNCHES, Suspects
from harness.request import RunRequest, choose_settings, complete_request

ASKED = RunRequest(
    backend="cpu",
    level="default",
    select=(),
    suites=(),
    probes=(),
    launches=None,
    budget=None,
    data=None,
    out=Path("results"),
    run_id=None,
)
BEFORE = make_settings("quick", suites=("suites",), run_id="before", select=("mlp",), launches=4)


def settings_beside(suspects):
    return choose_settings(complete_request(ASKED, BEFORE, suspects), "after")


def test_a_run_beside_another_is_as_that_one():
    settings = settings_beside(None)

    assert (settings.level, settings.select) == ("quick", ("mlp",))
    assert (settings.launches, settings.fewest_rounds, settings.most_rounds) == (4, 4, 4)


@pytest.mark.parametrize("launches", [12, 20])
def test_a_run_that_confirms_has_twelve_launches_anyway_and_more_if_the_time_is_there(launches):
    settings = settings_beside(Suspects(baseline="before", suspects=(), launches=launches))

    assert (settings.fewest_rounds, settings.most_rounds) == (CONFIRMING_LAUNCHES, launches)
    assert "timing" in settings.probes
    assert "tracing" not in settings.probes


def test_suspects_of_an_earlier_version_are_confirmed_by_the_usual_number(tmp_path):
    (tmp_path / "a.json").write_text('{"baseline": "before", "suspects": []}')

    assert read_suspects(tmp_path / "a.json").launches == CONFIRMING_LAUNCHES


@pytest.mark.parametrize("launches", [0, 11, 31, 10**12, "12"])
def test_launches_that_no_comparison_asks_for_are_refused(launches, tmp_path):
    (tmp_path / "a.json").write_text(json.dumps({"baseline": "before", "suspects": [], "launches": launches}))

    with pytest.raises(UsageError, match="--suspects: "):
        read_suspects(tmp_path / "a.json")
