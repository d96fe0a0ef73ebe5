"""How often a self-test measures, told by runs that only take time."""

from types import SimpleNamespace

import pytest

from jaxmeter.harness.parent import execution as repeating
from jaxmeter.harness.parent.execution import repeat
from jaxmeter.harness.parent.progress import Watcher
from tests import samples


@pytest.fixture
def repeated(monkeypatch, tmp_path, clock):
    """Repeats runs that take so many seconds each; returns how many there were, and the budget of each."""

    def measure(seconds, *, budget_s, lost=()):
        budgets = []
        clock.now = 64.0  # a clock's beginning means nothing

        def execute(manifest, folder, servers, watcher, budget_s):
            budgets.append(budget_s)
            number = len(budgets)
            clock.advance(seconds[number - 1])
            return SimpleNamespace(lost=lambda: number in lost, folder=folder)

        monkeypatch.setattr(repeating, "execute", execute)
        made = repeat(
            lambda number: samples.manifest([], run_id=f"it-{number}"), tmp_path, None, Watcher(), budget_s, clock
        )
        assert [run.folder.path for run in made] == [tmp_path / f"it-{number + 1}" for number in range(len(made))]
        return len(made), budgets

    return measure


def test_the_first_run_has_half_of_the_time_and_the_second_all_that_is_left(repeated):
    assert repeated([500, 500], budget_s=1000) == (2, [500, 500])
    assert repeated([400, 500], budget_s=1000) == (2, [500, 600])


def test_a_further_run_is_made_where_the_longest_would_fit_once_more_with_some_slack(repeated):
    assert repeated([300, 250, 300], budget_s=1000) == (3, [500, 700, 450])
    assert repeated([300, 370, 300], budget_s=1000) == (2, [500, 700])
    assert repeated([100, 300, 100, 100, 100], budget_s=1000) == (5, [500, 900, 600, 500, 400])


def test_there_are_no_more_than_twelve(repeated):
    assert repeated([1] * 13, budget_s=1000) == (12, [500, *range(999, 988, -1)])


def test_after_a_run_that_has_lost_cases_no_other_is_begun(repeated):
    assert repeated([500, 500], budget_s=1000, lost=(1,)) == (1, [500])
