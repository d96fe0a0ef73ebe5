from pathlib import Path

from typer.testing import CliRunner

from harness.record import RunFolder
from reporting.commands import app, name_report
from reporting.load import LoadedRun
from tests import samples


def loaded(run_id):
    return LoadedRun(samples.run(run_id=run_id), RunFolder(Path(run_id)))


def invoke(*arguments):
    return CliRunner().invoke(app, ["report", *map(str, arguments)])


def test_a_report_is_written_and_its_path_is_the_last_line(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    folder = samples.write_run(tmp_path / "results" / "a", samples.run())

    ended = invoke(folder)

    name = "reports/report-2026-01-02T03-04-05Z-cpu-0000000.html"
    assert ended.exit_code == 0
    assert ended.stdout.splitlines()[-1] == name
    assert (tmp_path / name).read_text().startswith("<!DOCTYPE html>")


def test_a_second_report_replaces_the_first_with_equal_bytes(tmp_path):
    folder, out = samples.write_run(tmp_path / "a", samples.run()), tmp_path / "page.html"
    invoke(folder, "--out", out)
    first = out.read_bytes()

    assert invoke(folder, "--out", out).exit_code == 0
    assert out.read_bytes() == first


def test_markdown_is_written_on_request(tmp_path):
    folder = samples.write_run(tmp_path / "a", samples.run())

    ended = invoke(folder, "--out", tmp_path / "page.html", "--markdown", tmp_path / "page.md")

    assert ended.exit_code == 0
    assert (tmp_path / "page.md").read_text().startswith("<!-- jaxmeter report -->")


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
    assert not (tmp_path / "page.html").exists()


def test_a_call_without_runs_is_a_usage_error():
    assert invoke().exit_code == 2


def test_an_output_that_cannot_be_written_is_named(tmp_path):
    folder = samples.write_run(tmp_path / "a", samples.run())
    (tmp_path / "file").write_text("")

    ended = invoke(folder, "--out", tmp_path / "file" / "page.html")

    assert ended.exit_code == 2
    assert "cannot be written" in ended.stderr
    assert "--out" in ended.stderr


def test_a_report_of_many_runs_is_named_by_the_first_and_the_last():
    assert name_report([loaded("a"), loaded("b"), loaded("c")]) == "a..c"


def test_no_run_id_leads_out_of_the_folder():
    assert name_report([loaded("../../etc/x y\x00")]) == ".._.._etc_x_y_"


def test_figures_are_written_on_request_named_after_what_they_show(tmp_path, monkeypatch):
    folder = samples.write_run(tmp_path / "a", samples.sweep_run())
    monkeypatch.chdir(tmp_path)

    ended = CliRunner().invoke(app, ["report", str(folder), "--figures", "slides"])

    assert ended.exit_code == 0
    assert "1 figure in slides" in ended.output
    assert [path.name for path in sorted((tmp_path / "slides").iterdir())] == [
        "01-cumulative_sum_over_n_cpu.png",
        "01-cumulative_sum_over_n_cpu.svg",
    ]


def test_a_run_without_a_sweep_has_no_figure(tmp_path, monkeypatch):
    folder = samples.write_run(tmp_path / "a", samples.run())
    monkeypatch.chdir(tmp_path)

    ended = CliRunner().invoke(app, ["report", str(folder), "--figures", "slides"])

    assert (ended.exit_code, "0 figures in slides" in ended.output) == (0, True)
