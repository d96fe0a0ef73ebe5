"""Reports of releases: which lie between two runs, and what the runs say of them."""

import msgspec
import pytest

from jaxmeter.harness.record import Reported
from jaxmeter.reporting.compare.verdicts import Here
from jaxmeter.reporting.view.changes import describe_reports, make_report_table, write_report
from tests import samples
from tests.reporting.compare.changed import BEFORE, compare, in_lock_step, plain

OLD, NEW = "0.4.31", "0.10.2"
REPORT = Reported(source="jax issue 40150", before="0.4.31", after="0.4.33", factor=60.0)


def released(version):
    return samples.environment(packages={"jax": version, "jaxlib": version})


def reported(made, *reports):
    """A run whose case has reports."""
    (planned,) = made.manifest.cases
    cases = (msgspec.structs.replace(planned, reported=reports),)
    return msgspec.structs.replace(made, manifest=msgspec.structs.replace(made.manifest, cases=cases))


def judge(ratio, *reports, old=OLD, new=NEW, **more):
    before = plain(BEFORE, environment=released(old))
    after = reported(in_lock_step(ratio, environment=released(new), **more), *reports)
    return compare(before, after).reports


def verdicts(ratio, factor, **more):
    return [one.here for one in judge(ratio, msgspec.structs.replace(REPORT, factor=factor), **more)]


@pytest.mark.parametrize(
    ("ratio", "factor", "here"),
    [
        (60.0, 60.0, Here.REPRODUCED),
        (45.0, 60.0, Here.REPRODUCED),
        (20.0, 60.0, Here.SAME_DIRECTION),
        (120.0, 60.0, Here.SAME_DIRECTION),
        (0.5, 60.0, Here.OPPOSITE),
        (1.0, 60.0, Here.NOT_HERE),
        (0.5, 0.5, Here.REPRODUCED),
    ],
)
def test_a_report_is_judged_by_the_ratio_of_both_releases(ratio, factor, here):
    assert verdicts(ratio, factor) == [here]


def test_stored_times_and_a_ratio_without_certainty_tell_nothing():
    before = plain(BEFORE, environment=released(OLD))
    (one,) = compare(before, reported(plain("after", 6e-3, environment=released(NEW)), REPORT)).reports

    assert verdicts(1.5, 2.0, processes=2) == [Here.UNDECIDED]
    assert (one.here, one.ours) == (Here.UNDECIDED, None)
    assert one.reason


@pytest.mark.parametrize(
    ("old", "new", "is_between"),
    [
        ("0.4.31", "0.4.33", True),
        ("0.4.30", "0.10.2", True),
        ("0.4.33", "0.10.2", False),
        ("0.4.31", "0.4.31", False),
        ("0.4.31", "0.4.32", False),
        ("0.9.0", "0.10.2", False),
        ("", "0.10.2", False),
        ("0.10.0", "0.10.2", False),
    ],
)
def test_a_report_is_of_two_releases_whose_change_lies_between_them(old, new, is_between):
    assert bool(judge(60.0, REPORT, old=old, new=new)) is is_between


def test_from_a_later_release_to_an_earlier_one_the_factor_is_turned_round():
    (one,) = judge(1 / 60, REPORT, old=NEW, new=OLD)

    assert one.theirs == pytest.approx(1 / 60)
    assert one.here is Here.REPRODUCED


def test_a_time_of_cold_processes_is_compared_over_both_runs():
    report = msgspec.structs.replace(REPORT, metric="trace_s", factor=2.0)

    def with_traces(made, seconds):
        traced = samples.compilation(seconds, 0.01, 0.05, 0.1, processes=9)
        return samples.change_outcomes(
            made, lambda outcomes, name, _: outcomes if name.endswith("before") else {**outcomes, "compilation": traced}
        )

    before = with_traces(plain(BEFORE, environment=released(OLD)), 0.1)
    after = with_traces(reported(in_lock_step(1.0, environment=released(NEW)), report), 0.2)
    (one,) = compare(before, after).reports

    assert one.ours is not None
    assert one.ours.estimate == pytest.approx(2, rel=0.02)
    assert one.here is Here.REPRODUCED


def test_a_report_is_written_with_both_factors():
    found = judge(20.0, REPORT)

    assert (describe_reports(found), describe_reports(())) == ("Of 1 report: 1 same direction", "")
    assert " reported 60×, measured 20× [" in write_report(found[0])
    (group,) = make_report_table(found).groups
    assert [cell.text for cell in group.rows[0].cells][1:5] == ["jax issue 40150", "same direction", "60×", "20×"]
