from pathlib import Path

import pytest
from typer.testing import CliRunner

from jaxmeter.cli.app import app
from jaxmeter.cli.inputs import name_report
from jaxmeter.harness.metrics.reading import Run
from jaxmeter.harness.record import RunFolder
from jaxmeter.reporting.load import choose_folders
from tests import samples


def invoke(*arguments):
    return CliRunner().invoke(app, ["report", *map(str, arguments)])


def test_a_report_is_written_and_its_path_is_the_last_line(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    folder = samples.write_run(tmp_path / "results" / "a", samples.run())

    ended = invoke(folder, "--markdown", tmp_path / "page.md")

    name = "reports/report-2026-01-02T03-04-05Z-cpu-0000000.html"
    assert ended.exit_code == 0
    assert ended.stdout.splitlines()[-1] == name
    page = (tmp_path / name).read_bytes()
    assert page.startswith(b"<!DOCTYPE html>")
    assert (tmp_path / "page.md").read_text().startswith("<!-- jaxmeter report -->")
    # A second one replaces the first with equal bytes.
    assert invoke(folder).exit_code == 0
    assert (tmp_path / name).read_bytes() == page


def test_incomplete_runs_and_foreign_files_are_warnings_not_errors(tmp_path):
    folder = samples.write_run(tmp_path / "a", samples.troubled_run(), cut_short=True)
    (tmp_path / "notes.txt").write_text("notes")

    ended = invoke(folder, tmp_path / "notes.txt", "--out", tmp_path / "page.html")

    assert ended.exit_code == 0
    assert "Data warnings (3)" in ended.stdout


def test_without_a_usable_run_nothing_is_written_and_the_message_says_what_to_do(tmp_path):
    ended = invoke(tmp_path / "none", "--out", tmp_path / "page.html")

    assert ended.exit_code == 2
    assert "no such folder" in ended.stderr
    assert "no usable run; give folders" in ended.stderr
    assert invoke().exit_code == 2
    assert not (tmp_path / "page.html").exists()


def test_a_report_of_many_runs_is_named_by_the_first_and_the_last():
    runs = [Run(samples.run(run_id=run_id), RunFolder(Path(run_id))) for run_id in ("a", "b", "../../etc/x y\x00")]

    assert name_report(runs) == "a...._.._etc_x_y_"  # no id leads out of the folder


def test_figures_are_written_on_request_named_after_what_they_show(tmp_path, monkeypatch):
    folder = samples.write_run(tmp_path / "a", samples.sweep_run())
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("jaxmeter.cli.report.figures.draw", lambda figure, *how: " ".join(how).encode())

    ended = invoke(folder, "--figures", "slides", "--dark")

    assert ended.exit_code == 0
    names = {path.name for path in (tmp_path / "slides").iterdir()}
    stems = {name.partition(".")[0] for name in names}
    assert f"{len(stems)} figures in slides" in ended.output
    assert names == {f"{stem}.{form}" for stem in stems for form in ("png", "svg")}
    assert {(path.suffix, path.read_text()) for path in (tmp_path / "slides").iterdir()} == {
        (".png", "png dark"),
        (".svg", "svg dark"),
    }
    assert stems > {"overview-cumulative_sum", "suite-cumulative_sum-speed"}
    assert stems > {"case-cumulative_sum-cumulative_sum_n_16-growth_n"}
    planned = samples.planned_case()
    untimed = samples.write_run(tmp_path / "b", samples.run((planned, samples.record(planned, {}))))
    assert "0 figures in none" in invoke(untimed, "--figures", "none").output


@pytest.fixture
def history(tmp_path):
    """Folders of four runs of four days, and one that is none."""
    days = {f"day-{day}": samples.run(run_id=f"day-{day}", started=f"2026-01-0{day}T10:00:00Z") for day in (4, 3, 2, 1)}
    return [*(samples.write_run(tmp_path / name, run) for name, run in days.items()), tmp_path / "gone"]


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"since": "2026-01-03"}, ["day-4", "day-3", "gone"]),
        ({"since": "2026-01-03T10:00"}, ["day-4", "day-3", "gone"]),
        ({"since": "2026-01-03T10:01"}, ["day-4", "gone"]),
        ({"since": "2026-01-02", "last": 2}, ["day-4", "day-3", "gone"]),
        ({"last": 9}, ["day-4", "day-3", "day-2", "day-1", "gone"]),
    ],
)
def test_runs_are_chosen_by_when_they_began(options, expected, history):
    assert [folder.name for folder in choose_folders(history, **options)] == expected


def test_only_the_newest_run_is_reported_and_what_cannot_be_read_is_named(history, tmp_path):
    ended = invoke(*history, "--last", "1", "--out", tmp_path / "page.html", "--markdown", tmp_path / "page.md")

    assert ended.exit_code == 0
    assert "no such folder" in " ".join(ended.stdout.split())
    assert "not compared" not in (tmp_path / "page.md").read_text()
    assert "2026-01-04" in (tmp_path / "page.md").read_text()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--since", "yesterday"), "--since 'yesterday' is not a date; write 2026-11-22"),
        (("--since", "2027-01-01"), "none of 4 runs began on 2027-01-01 or later"),
        (("--last", "0"), "greater than or equal to 1"),
        (("--out", "file/page.html"), "cannot be written"),
        (("--out", "a" * 300), "cannot be written"),
        (("--out", "-"), "error: -: "),
        (("--out", "/dev/null"), "error: /dev/null: "),
        (("--markdown", "folder"), "error: folder: "),
    ],
    ids=["no date", "too late", "none", "in a file", "long", "standard output", "a device", "a folder"],
)
def test_a_choice_that_leaves_nothing_and_an_output_that_is_no_file_are_errors(
    words, message, history, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").touch()
    (tmp_path / "folder").mkdir()

    ended = invoke(*history[:4], *words)

    assert ended.exit_code == 2
    assert message in " ".join(ended.output.split())
    assert not (tmp_path / "-").exists()
    assert Path("/dev/null").is_char_device()


def test_a_large_page_is_refused_unless_it_is_allowed(tmp_path, monkeypatch):
    folder, out = samples.write_run(tmp_path / "a", samples.run()), tmp_path / "page.html"
    monkeypatch.setattr("jaxmeter.cli.report.LARGEST_PAGE", 2**10)

    refused = invoke(folder, "--out", out)

    assert refused.exit_code == 2
    assert "--allow-large" in refused.output
    assert not out.exists()
    assert invoke(folder, "--out", out, "--allow-large").exit_code == 0
    assert out.exists()


@pytest.mark.parametrize(("words", "ci", "opened"), [((), "", 0), (("--open",), "", 1), (("--open",), "true", 0)])
def test_a_browser_opens_the_page_where_that_is_asked_for_but_not_in_ci(words, ci, opened, tmp_path, monkeypatch):
    folder, pages = samples.write_run(tmp_path / "a", samples.run()), []
    monkeypatch.setenv("CI", ci)
    monkeypatch.setattr("webbrowser.open", pages.append)

    assert invoke(folder, "--out", tmp_path / "page.html", *words).exit_code == 0
    assert pages == [(tmp_path / "page.html").as_uri()] * opened
