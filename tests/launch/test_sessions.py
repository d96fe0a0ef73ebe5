"""The steps of the larger sessions, with a shell that writes down what it is asked."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path

import pytest

from jaxmeter.launch import measuring, nightly
from jaxmeter.launch.measuring import measure
from jaxmeter.launch.nightly import run_nightly
from jaxmeter.launch.options import UsageError
from jaxmeter.launch.runs import PlannedRun
from tests import samples

STORE = "s3://bucket/team"


class NotedShell:
    """Answers programs by their words; the steps of a night leave files as the reporter does."""

    def __init__(self, folder: Path, codes: dict[str, int], files: dict[str, list[str]]) -> None:
        self.checkout, self.variables = folder, {"PATH": "", "JAXMETER_RUNTIME": "auto"}
        self.runtime, self.environments = "auto", folder
        self.codes, self.files = codes, files
        self.said: list[str] = []
        self.commands: list[list[str]] = []
        (folder / "docker" / "locks").mkdir(parents=True, exist_ok=True)
        (folder / "docker" / "locks" / "cpu.txt").touch()

    def install(self, *lock_names):
        pass

    def set_variable(self, name, value):
        pass

    def ask(self, *command):
        return "a machine\n" if "machine" in command else ""

    def run(self, *command):
        words = list(command[command.index("jaxmeter") + 1 :])
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
def night(tmp_path, monkeypatch):
    """Passes a night; its exit code, and which programs were called."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(nightly, "prepare_stores", lambda shell: tmp_path / "python")

    def run(codes=None, files=None, *options):
        shell = NotedShell(tmp_path, codes or {}, files or {})
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


@pytest.mark.parametrize("option", ["--budgets=b.toml", "--baseline=a", "--min-effect=2%", "--with-captures"])
def test_an_option_of_the_first_step_is_refused_where_a_later_step_begins(night, option):
    with pytest.raises(UsageError, match=f"^{option.partition('=')[0]} "):
        night({}, {}, "--from", "suspects", option)


def test_a_step_of_no_night_is_refused(night):
    with pytest.raises(UsageError, match="--from conclude: no nightly run is in progress in results; leave it out"):
        night({}, {}, "--from", "conclude")
    with pytest.raises(UsageError, match="--from 'end' is no step; steps: begin, measure, suspects, confirm, conclude"):
        night({}, {}, "--from", "end")


def test_an_incomplete_run_is_judged_all_the_same(night):
    code, said = night({"run": 3, "night conclude": 3})

    assert (code, said[-1]) == (3, "night conclude")


@pytest.mark.parametrize(
    ("codes", "last"),
    [
        ({"night begin": 2}, "night begin"),
        ({"run": 2}, "run"),
        ({"night suspects": 3}, "night suspects"),
    ],
)
def test_a_step_that_fails_ends_the_night_with_its_code(night, codes, last):
    code, said = night(codes)

    assert (code, said[-1]) == (next(iter(codes.values())), last)


def test_what_cannot_be_gone_on_with_gives_way_to_a_new_night(night):
    code, said = night({"run resume": 2}, {"measure": ["--resume", "results/old"]})

    assert code == 0
    assert said[:4] == ["night begin", "run resume", "night begin anew", "run"]


def test_trouble_of_the_machine_does_not_give_up_a_night_that_goes_on(night):
    code, said = night({"run resume": 3, "night conclude": 3}, {"measure": ["--resume", "results/old"]})

    assert (code, said) == (3, ["night begin", "run resume", "night suspects", "night conclude"])


@pytest.mark.parametrize("options", [[], ["--with-captures"]])
def test_a_run_is_pushed_with_its_captures_only_where_that_is_asked_for(tmp_path, monkeypatch, options):
    monkeypatch.setattr(measuring, "prepare_stores", lambda shell: tmp_path / "python")
    run = PlannedRun((), samples.write_run(tmp_path / "a-run", samples.run()), is_rehearsal=False)
    shell, measured = NotedShell(tmp_path, {}, {}), []

    def run_harness(shell, backend, request, run):
        measured.extend(request.arguments)
        return 0

    monkeypatch.setattr(measuring, "run_harness", run_harness)

    assert measure(shell, "cpu", ["--quick", "--out", STORE, *options], lambda words: run) == 0

    assert shell.commands == [["reach", STORE], ["push", str(run.folder), STORE, *options]]
    assert measured == ["--quick"]


@pytest.mark.parametrize("options", [[], ["--with-captures"]])
def test_the_first_step_of_a_night_says_whether_captures_are_pushed(tmp_path, monkeypatch, options):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(nightly, "prepare_stores", lambda shell: tmp_path / "python")
    shell = NotedShell(tmp_path, {"night suspects": 2}, {})

    run_nightly(shell, ["--store", STORE, "--runtime", "local", "--machine", "lab", *options])

    where = ["--out", "results", "--backend", "cpu", "--machine", "lab"]
    assert shell.commands[0] == ["night", "begin", STORE, *where, *options, "--"]


@pytest.mark.parametrize("option", ["--against", "--resume"])
def test_a_night_measures_in_the_runtime_of_what_it_is_compared_or_goes_on_with(tmp_path, monkeypatch, option):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(nightly, "prepare_stores", lambda shell: tmp_path / "python")
    monkeypatch.setattr(nightly, "offer_baseline", lambda *words: nullcontext())
    earlier = samples.write_run(tmp_path / "earlier", samples.run())
    shell = NotedShell(tmp_path, {"runtime": 3}, {"measure": [option, str(earlier)]})
    measured = []

    def run_harness(shell, backend, request, run):
        measured.append(request.runtime)
        return 0

    monkeypatch.setattr(nightly, "run_harness", run_harness)
    monkeypatch.setattr(nightly, "name_machine", lambda *words: "a machine")

    run_nightly(shell, ["--store", STORE])

    assert measured == ["local"]
    assert ("runtime" in shell.said) == (option == "--against")
