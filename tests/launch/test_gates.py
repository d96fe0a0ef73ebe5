from pathlib import Path

import pytest

from jaxmeter.launch.command_line import check_measuring
from jaxmeter.launch.containers import Mount, mounts_for
from jaxmeter.launch.gate import ARMS, REFUSED, read_gate_request
from jaxmeter.launch.options import UsageError
from jaxmeter.launch.runs import EXACT, plan_beside


@pytest.fixture
def baseline(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "results" / "base"
    folder.mkdir(parents=True)
    (folder / "manifest.json").write_text('{"settings": {"suites": ["mine"], "data": null}}')
    return folder


def test_what_judges_is_told_from_what_measures(baseline):
    request = read_gate_request(
        [str(baseline), "--suites", "mine", "--budgets", "b.toml", "--markdown=m.md", "--verdict", "v.json"]
    )

    assert (request.baseline, request.measuring, request.exact) == (baseline, ("--suites", "mine"), False)
    assert request.judging == ("--budgets", "b.toml", "--markdown", "m.md", "--verdict", "v.json")
    by_id = read_gate_request(["base", "--exact", "--min-effect=-3%"])  # which measures no times
    assert (by_id.baseline, by_id.measuring, by_id.exact) == (Path("results/base"), EXACT, True)
    assert by_id.judging == ("--exact", "--min-effect=-3%")
    assert read_gate_request(["base", "--out", str(baseline.parent)]).baseline == baseline


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "name the baseline run first"),
        (["--budgets", "b.toml"], "name the baseline run first"),
        (["nowhere"], "nowhere: no run"),
        (["base", "--against", "x"], "the baseline is named without an option"),
        (["base", "--resume=x"], "starts a new measurement"),
        (["base", "--baseline-checkout", "gone"], "gone: no such folder; make it: git worktree add gone COMMIT"),
        (["base", "--baseline-checkout=.", "--exact"], "leave out one of them"),
    ],
)
def test_what_a_gate_does_not_take_is_said(baseline, arguments, words):
    with pytest.raises(UsageError) as raised:
        read_gate_request(arguments)

    assert words in str(raised.value)


def test_a_run_beside_another_reports_not_by_itself(baseline):
    run = plan_beside(baseline, ["--quick"], "new")

    assert run.arguments == ("--quick", "--against", str(baseline), "--run-id", "new")
    (baseline.parent / "new").mkdir()
    (baseline.parent / "new" / "manifest.json").touch()
    assert run.folder == Path("results/new")
    assert run.has_measured(0)
    assert not run.can_be_reported(0)
    assert not run.has_measured(2)


def test_both_measurements_of_a_gate_take_the_earlier_checkout(baseline, tmp_path):
    checkout = ("--baseline-checkout", str(tmp_path))
    request = read_gate_request(["base", *checkout])

    assert request.measuring == checkout
    check_measuring(request.measuring, "a gate", ARMS, REFUSED)


def test_a_container_sees_the_earlier_run_the_suspects_and_the_suites_that_a_person_names(baseline, tmp_path):
    elsewhere = tmp_path / "elsewhere" / "base"
    elsewhere.parent.mkdir()
    baseline.rename(elsewhere)
    (tmp_path / "mine.py").touch()
    suspects = tmp_path / "suspects.json"
    run = plan_beside(elsewhere, ["--suites", "mine.py"], "new", suspects)

    mounts = mounts_for(run.arguments, run, tmp_path)

    assert {Mount(path, path) for path in (elsewhere, suspects, tmp_path)} <= set(mounts)
