import json

import pytest
from typer.testing import CliRunner

from jaxmeter.cli.app import app
from tests import samples
from tests.reporting.history.runs import environment_of, night, nights

AT = 10


def slower(number):
    return 1e-3 * (1.2 if number >= AT else 1)


RUNS = nights(20, slower, environment=lambda number: environment_of(number, AT))


@pytest.fixture
def call(tmp_path):
    """Calls a command on runs that are written first; exit code, what it said on stdout and on stderr."""

    def run(runs, *options, command="history"):
        folders = [str(samples.write_run(tmp_path / one.manifest.run_id, one)) for one in runs]
        ended = CliRunner().invoke(app, [command, *folders, *map(str, options)], env={"COLUMNS": "200"})
        return ended.exit_code, " ".join(ended.stdout.replace("\u202f", " ").split()), ended.stderr

    return run


@pytest.fixture
def known(tmp_path):
    """A file of a change point that is known."""
    file = tmp_path / "known.toml"
    file.write_text('[[change_point]]\nrun = "run-010"\nwhy = "a larger batch"\n')
    return file


def test_a_known_step_is_no_news_and_no_part_of_the_report(call, known, tmp_path):
    assert "1 change point, 1 of them known" in call(RUNS, "--known", known)[1]
    said = call(RUNS, "--out", tmp_path / "page.html", "--known", known, command="report")[1]
    assert "Change points over many runs" not in said


def test_a_known_step_of_a_run_that_nobody_read_is_told_and_a_file_that_is_wrong_is_refused(call, known):
    assert "warning: --known: no run 'run-010' is among these" in call(RUNS[:3], "--known", known)[2]
    known.write_text("[[change_point]]\n")
    for command in ("history", "report"):
        code, _, complained = call(RUNS[:2], "--known", known, command=command)
        assert (code, "change point 1 lacks 'run'" in complained) == (2, True)


def test_json_has_the_steps_with_their_effect(call):
    code, said, _ = call(RUNS, "--json")

    (machine,) = json.loads(said)["machines"]
    (change_point,) = machine["change_points"]
    assert (code, machine["machine"], len(machine["runs"]), machine["series"]) == (0, "sample machine", 20, 3)
    assert (change_point["first"], change_point["finding"], change_point["metric"]) == (
        "run-010",
        "suspected slower",
        "execution_s",
    )
    assert change_point["effect"] == pytest.approx(1.2, rel=0.01)


def test_other_cases_are_left_out_by_their_name(call):
    assert call(RUNS, "--case", "selu*")[1].count("since about run") == 1
    code, _, complained = call(RUNS, "--case", "sel")
    assert (code, "no case matches --case 'sel'; nearest: selu" in complained) == (2, True)


def test_a_smaller_step_than_the_minimum_effect_is_not_told(call):
    assert "0 change points" in call(RUNS, "--min-effect", "30%")[1]


def test_one_run_is_no_history_and_the_error_says_what_is_needed(call):
    code, _, complained = call(RUNS[:1])

    assert code == 2
    assert "no series: a number needs at least two runs" in complained


def test_a_clock_that_went_back_is_told(call):
    back = night(3, 1e-3, against="run-019")

    _, _, complained = call([*RUNS[:3], *RUNS[4:], back])

    assert "run run-003 began before run run-019" in complained
