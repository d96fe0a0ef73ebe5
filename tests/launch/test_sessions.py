"""The steps of the larger sessions, with a shell that writes down what it is asked."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path

import pytest

from jaxmeter.launch import measuring, nightly
from jaxmeter.launch.command_line import read_request
from jaxmeter.launch.images import lock_sha256
from jaxmeter.launch.measuring import measure
from jaxmeter.launch.nightly import run_nightly
from jaxmeter.launch.options import UsageError
from jaxmeter.launch.runs import PlannedRun, plan_run
from tests import samples
from tests.launch.shells import NotedShell, list_words

STORE = "s3://bucket/team"


class NightShell(NotedShell):
    """Answers programs by their words; the steps of a night leave files as the reporter does."""

    def __init__(self, folder: Path, codes: dict[str, int], files: dict[str, list[str]]) -> None:
        super().__init__(folder, codes)
        self.files = files
        self.said: list[str] = []
        self.commands: list[list[str]] = []
        (folder / "docker" / "locks").mkdir(parents=True, exist_ok=True)
        (folder / "docker" / "locks" / "cpu.txt").touch()

    def ask(self, *command):
        return "a machine\n" if "machine" in command else ""

    def run(self, *command):
        words = list_words(command)
        self.commands.append(words)
        name = " ".join(words[:2]) if words[0] == "night" else words[0]
        anew = " anew" if "--restart" in words else ""
        resumed = " resume" if "--resume" in words else ""
        self.said.append(f"{name}{anew}{resumed}")
        night = self.checkout / "results" / ".night"
        if words[:2] == ["night", "begin"]:
            night.mkdir(parents=True, exist_ok=True)
            (night / "measure").write_text("".join(f"{one}\n" for one in self.files.get(f"measure{anew}", ["--quick"])))
        if words[:2] == ["night", "suspects"]:
            for step in self.files.get("confirm", []):
                (night / step).write_text("--quick\n")
        return self.codes.get(f"{name}{anew}{resumed}", 0)


@pytest.fixture
def here(tmp_path, monkeypatch):
    """The working folder, in which stores can be used."""
    monkeypatch.chdir(tmp_path)
    for module in (measuring, nightly):
        monkeypatch.setattr(module, "prepare_stores", lambda shell: tmp_path / "python")
    return tmp_path


@pytest.fixture
def measured(monkeypatch):
    """Requests and runs of measurements that do not take place."""
    asked = []
    for module in (measuring, nightly):
        monkeypatch.setattr(module, "run_harness", lambda *words: asked.append(words[2:]) or 0)
    return asked


@pytest.fixture
def night(here):
    """Passes a night; its exit code, and which programs were called."""

    def run(codes=None, files=None, *options):
        shell = NightShell(here, codes or {}, files or {})
        code = run_nightly(shell, ["--store", STORE, "--runtime", "local", *options])
        return code, shell.said

    return run


def test_a_night_takes_its_steps_in_order_and_ends_with_the_verdict(night):
    code, said = night({"night conclude": 1}, {"confirm": ["confirm-pinned", "confirm-last"]})

    steps = ["night begin", "run", "night suspects", "run", "run", "night conclude"]
    assert (code, said) == (1, steps)


@pytest.mark.parametrize(
    ("start", "taken"),
    [
        ("measure", ["run", "night suspects", "run", "night conclude"]),
        ("suspects", ["night suspects", "run", "night conclude"]),
        ("confirm", ["run", "night conclude"]),
        ("conclude", ["night conclude"]),
    ],
)
def test_a_night_in_progress_can_begin_at_any_step(night, start, taken):
    files = {"confirm": ["confirm-last"]}
    night({"night conclude": 3}, files)

    code, said = night({}, files, "--from", start)

    assert (code, said) == (0, taken)


@pytest.mark.parametrize(
    ("options", "fault"),
    [
        (("suspects", "--baseline=a"), "--baseline has an effect in the step begin only"),
        (("suspects", "--with-captures"), "--with-captures has an effect in the step begin only"),
        (("conclude",), "--from conclude: no nightly run is in progress in results; leave it out"),
        (("end",), "--from 'end' is no step; steps: begin, measure, suspects, confirm, conclude"),
    ],
)
def test_a_step_that_a_night_cannot_begin_at_is_refused(night, options, fault):
    with pytest.raises(UsageError, match=f"^{fault}"):
        night({}, {}, "--from", *options)


@pytest.mark.parametrize(
    ("codes", "code", "last"),
    [
        ({"night begin": 2}, 2, "night begin"),
        ({"run": 2}, 2, "run"),
        ({"run": 3, "night conclude": 1}, 1, "night conclude"),  # an incomplete run is judged all the same
        ({"night suspects": 3}, 3, "night suspects"),
    ],
)
def test_a_step_that_fails_ends_the_night_with_its_code(night, codes, code, last):
    ended, said = night(codes)

    assert (ended, said[-1]) == (code, last)


@pytest.mark.parametrize(("code", "then"), [(2, ["night begin anew", "run"]), (3, [])])
def test_what_cannot_be_gone_on_with_gives_way_to_a_new_night_and_trouble_of_the_machine_does_not(night, code, then):
    said = night({"run resume": code}, {"measure": ["--resume", "results/old"]})[1]

    assert said == ["night begin", "run resume", *then, "night suspects", "night conclude"]


@pytest.mark.parametrize(("harness", "report", "code"), [(0, 0, 0), (3, 2, 3), (0, 2, 2), (2, 0, 2), (130, 0, 130)])
def test_the_harness_decides_the_exit_code_and_the_report_only_where_it_is_content(tmp_path, harness, report, code):
    run = PlannedRun((), samples.write_run(tmp_path / "a-run", samples.run()), is_rehearsal=False)
    shell = NightShell(tmp_path, {"run": harness, "report": report}, {})

    assert measuring.run_harness(shell, "cpu", read_request("cpu", ["--runtime", "local"], {}), run) == code

    assert shell.said == ["run", "report"][: 2 if harness in (0, 3) else 1]
    assert shell.set["JAXMETER_LOCK_SHA256"] == lock_sha256(tmp_path, "cpu")


@pytest.mark.parametrize(
    ("words", "ci", "has_page", "count"),
    [(["--open"], "", True, 1), ([], "", True, 0), (["--open"], "true", True, 0), (["--open"], "", False, 0)],
    ids=["asked for", "not asked for", "in CI", "no page"],
)
def test_the_page_is_opened_in_a_browser_on_request(tmp_path, monkeypatch, words, ci, has_page, count):
    monkeypatch.chdir(tmp_path)
    opened, page = [], tmp_path / "reports" / "report-mine.html"
    monkeypatch.setattr("webbrowser.open", opened.append)
    if has_page:
        page.parent.mkdir()
        page.touch()
    shell = NightShell(tmp_path, {}, {})
    shell.variables["CI"] = ci

    measuring.show_page(shell, read_request("cpu", words, {}), plan_run(["--run-id", "mine"], ""))

    assert opened == [page.as_uri()] * count


@pytest.mark.parametrize("options", [[], ["--with-captures"]])
def test_a_run_is_pushed_with_its_captures_only_where_that_is_asked_for(here, measured, options):
    run = PlannedRun((), samples.write_run(here / "a-run", samples.run()), is_rehearsal=False)
    shell = NightShell(here, {}, {})

    assert measure(shell, "cpu", ["--quick", "--out", STORE, *options], lambda words: run) == 0

    assert shell.commands == [["reach", STORE], ["push", str(run.folder), STORE, *options]]
    assert [request.arguments for request, _ in measured] == [("--quick",)]


def test_the_first_step_of_a_night_says_whether_captures_are_pushed(here):
    shell = NightShell(here, {"night suspects": 2}, {})

    run_nightly(shell, ["--store", STORE, "--runtime", "local", "--machine", "lab", "--with-captures"])

    where = ["--out", "results", "--backend", "cpu", "--machine", "lab"]
    assert shell.commands[0] == ["night", "begin", STORE, *where, "--with-captures", "--"]


@pytest.mark.parametrize("option", ["--against", "--resume"])
def test_a_night_measures_in_the_runtime_of_what_it_is_compared_or_goes_on_with(here, measured, monkeypatch, option):
    monkeypatch.setattr(nightly, "offer_baseline", lambda *words: nullcontext())
    monkeypatch.setattr(nightly, "name_machine", lambda *words: "a machine")
    earlier = samples.write_run(here / "earlier", samples.run())
    shell = NightShell(here, {"runtime": 3}, {"measure": [option, str(earlier)]})

    run_nightly(shell, ["--store", STORE])

    assert [request.runtime for request, _ in measured] == ["local"]
    assert ("runtime" in shell.said) == (option == "--against")
