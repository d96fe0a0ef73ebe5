import re

import pytest

from jaxmeter.reporting.compare.verdicts import TIME, Verdict
from jaxmeter.reporting.view.changes import describe_changes, make_change_table, order_changes, write_change
from tests import samples
from tests.reporting.compare import changed
from tests.reporting.compare.changed import AFTER, BEFORE, compare, in_lock_step, plain, replayed
from tests.reporting.views import case_view, page_of

NAME = "selu[dtype=float32,n=10000]"


def spaced(text):
    return re.sub("[\u202f ]", " ", text)


@pytest.mark.parametrize(
    ("ratio", "text"),
    [(1.021, "+2.1 %"), (0.9, "−10 %"), (1.99, "+99 %"), (2.5, "2.5×"), (0.4, "−60 %"), (0.004, "0.0040×")],
)
def test_a_change_is_a_percentage_below_a_factor_of_two(ratio, text):
    (one,) = compare(plain(BEFORE), replayed(ratio, scatter=0.01)).times

    assert f", {text} [" in spaced(write_change(one))


def test_the_worst_and_the_largest_come_first():
    def both(name, factor):
        pairs = []
        for case, ratio in (("a", 1.0 + 0.5 * factor), ("b", 1.0 + 2 * factor), ("c", 1.0 - 0.5 * factor)):
            outcomes = {"numerics": changed.checked(name), "timing": changed.timed(1e-4 * ratio)}
            pairs.append((changed.case(case, source=name), {f"{case}:jit": outcomes}))
        return changed.run(name, *pairs)

    found = order_changes(compare(both(BEFORE, 0), both(AFTER, 1)).entries)

    told = [(one.variant, one.verdict) for one in found if one.metric == TIME]
    assert told == [
        ("b:jit", Verdict.SUSPECTED_SLOWER),
        ("a:jit", Verdict.SUSPECTED_SLOWER),
        ("c:jit", Verdict.SUSPECTED_FASTER),
    ]


def test_the_page_of_two_runs_says_what_changed_first_in_the_matrix_and_in_the_case_and_shows_no_replay():
    before, page = page_of(plain(BEFORE)), page_of(plain(BEFORE), replayed(1.5))

    view = case_view(page, NAME)
    assert [item.label for item in page.changed] == ["slower", "changed"]
    assert page.changed[0].target == f"case=selu/{NAME}"
    assert "selu:jit slower, +50" in page.matrix.rows[0].cells[1].detail
    assert page.matrix.rows[0].cells[1].tone is before.matrix.rows[0].cells[1].tone
    assert view.sections[0].id == "changed"
    assert [result.variant for result in view.results] == ["selu:jit"]


def test_a_run_that_only_confirms_replaces_first_findings():
    from jaxmeter.reporting.load import Loaded
    from jaxmeter.reporting.view import build
    from tests.reporting.views import kept

    runs = kept(plain(BEFORE), replayed(1.05, scatter=8))
    (confirmation,) = kept(replayed(1.05, processes=12))

    assert "1 inconclusive" in build(Loaded(tuple(runs), ())).finding
    assert "1 slower (confirmed)" in build(Loaded(tuple(runs), ()), confirmation).finding


@pytest.mark.parametrize(("cores", "words"), [(1, "on one core"), (2, "on 2 cores"), (None, "")])
def test_a_verdict_of_lock_step_says_on_how_many_cores_wherever_it_stands(cores, words):
    changes = compare(plain(BEFORE), in_lock_step(1.5, settings=samples.settings(lock_step_cores=cores)))

    (row,) = make_change_table(changes.times).rows
    told = (describe_changes(changes), write_change(changes.times[0]), row.cells[-1].text)

    assert [text.count(words) if words else text.count(" core") for text in told] == [1 if words else 0] * 3
