"""The options of a run, and what an earlier run adds to them."""

import json
import signal
import sys
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest
import typer
from typer.testing import CliRunner

from jaxmeter.cli.app import app
from jaxmeter.cli.request import (
    ALL_CORES,
    RunRequest,
    choose_settings,
    complete_request,
    find_other_environment,
    with_request,
)
from jaxmeter.harness.machine.environment import usable_cores
from jaxmeter.harness.machine.interference import can_choose_cores
from jaxmeter.harness.metrics.statistics import FEWEST_PROCESSES
from jaxmeter.harness.parent.against import read_suspects
from jaxmeter.harness.parent.prepare_run import UsageError
from jaxmeter.harness.plan.processes import TURNS
from jaxmeter.harness.plan.settings import make_settings
from jaxmeter.harness.record import OtherEnvironment
from jaxmeter.harness.record.runs import CONFIRMING_BLOCKS, CONFIRMING_PROCESSES, Suspects
from tests import samples

ASKED = RunRequest()
needs_cores = pytest.mark.skipif(not can_choose_cores(), reason="only Linux lets a process choose its cores")
ELSEWHERE = OtherEnvironment(python="/elsewhere/bin/python", version="3.11.2", packages={}, variables={})
BEFORE = make_settings("quick", suites=("jaxmeter.suites",), run_id="before", select=("mlp",), processes=4)


def call(*words, **usual):
    """Call a verb of two fields and a switch; return what it receives, or its exit code."""
    received = []

    @with_request("select", "budget", "cores", **usual)
    def command(request: RunRequest, quiet: bool = False) -> None:
        received.append((request, quiet))

    app = typer.Typer()
    app.command()(command)
    code = CliRunner().invoke(app, words).exit_code
    return received[0] if received else code


def test_a_field_is_an_option_of_a_verb():
    assert call("--select", "a", "--quiet", "--select", "b*", "--cores", "all") == (
        RunRequest(select=("a", "b*"), cores=ALL_CORES),
        True,
    )
    assert call() == (RunRequest(), False)


def test_a_verb_has_the_options_that_it_names_with_defaults_of_its_own():
    assert call("--processes", "3") == 2
    assert call("--cores", "0") == 2
    usual = {"level": "quick", "probes": ("timing",), "budget": "18m"}
    assert call(**usual) == (RunRequest(**usual), False)
    assert call("--budget", "2m", **usual) == (RunRequest(**{**usual, "budget": "2m"}), False)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--probe", "speed"), "no probe 'speed'; probes are numerics"),
        (("--backend", "npu"), "no backend 'npu'; backends are cpu, gpu, tpu"),
        (("--cores", "some"), "'some' must be an integer ≥ 1, or all"),
        (("--budget", "0s"), "--budget '0s' is not between 1 s and 30 days"),
        (("--resume", "absent"), "cannot resume: results/absent/manifest.json"),
        (("--data", "absent"), "--data 'absent' is not a folder"),
        (("--run-id", "../up"), "--run-id '../up' cannot be a folder's name"),
        (("--out", "s3://bucket/runs"), "measuring writes into a folder; `jaxmeter push RUN URL` copies"),
        (("--out", "/proc/no"), "choose a writable place with --out DIR"),
        (("--resume", "absent", "--quick"), "--resume uses the run's own settings"),
        (("--quick", "--full"), "exclude each other"),
        (("--suspects", "none.json"), "name it with --against RUN"),
        (("--lock-step", "python"), "name that run with --against RUN"),
        (("--baseline-checkout", "../base"), "name that run with --against RUN"),
        (("--against", "nowhere"), "--against: "),
        (("--against", "before", "--dry-run"), "leave out --against"),
    ],
)
def test_an_option_that_cannot_be_used_is_named_before_anything_is_measured(words, said, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(signal, "signal", lambda number, handler: None)

    ended = CliRunner().invoke(app, ["run", *words])

    assert ended.exit_code == 2
    assert said in " ".join(ended.stderr.replace("│", " ").split())
    assert list(tmp_path.rglob("*/*/*")) == []


def settings_beside(suspects):
    return choose_settings(complete_request(ASKED, BEFORE, suspects), "after")


def test_a_run_beside_another_is_as_that_one():
    settings = settings_beside(None)

    assert (settings.level, settings.select) == ("quick", ("mlp",))
    assert (settings.processes, settings.fewest_rounds, settings.most_rounds) == (4, 4, 4)


@pytest.mark.parametrize(
    ("budget_s", "lock_step", "finishes"),
    [(None, None, True), (None, ELSEWHERE, True), (100.0, None, False), (400.0, ELSEWHERE, False)],
)
def test_a_budget_counts_as_given_only_where_somebody_gave_it(budget_s, lock_step, finishes):
    before = make_settings("quick", suites=(), run_id="before", budget_s=budget_s, lock_step=lock_step)

    settings = choose_settings(complete_request(ASKED, before), "after")

    assert settings.finishes_fewest == finishes
    assert settings.budget_s == (budget_s or 180)
    if lock_step is None:
        old = msgspec.structs.replace(before, finishes_fewest=False)  # of a run that did not record it
        assert choose_settings(complete_request(ASKED, old), "after") == settings


@pytest.mark.parametrize("processes", [12, 20])
def test_a_run_that_confirms_has_twelve_processes_anyway_and_more_if_the_time_is_there(processes):
    settings = settings_beside(Suspects(baseline="before", suspects=(), processes=processes))

    assert (settings.fewest_rounds, settings.most_rounds) == (CONFIRMING_PROCESSES, processes)
    assert settings.blocks == CONFIRMING_BLOCKS
    assert "timing" in settings.probes
    assert "tracing" not in settings.probes


def test_a_run_that_confirms_has_no_budget_of_the_earlier_run_and_keeps_what_fewer_processes_measured():
    before = make_settings("quick", suites=(), run_id="before", budget_s=7.0)
    suspects = Suspects(baseline="before", suspects=())

    settings = choose_settings(complete_request(ASKED, before, suspects), "after")
    given = choose_settings(complete_request(replace(ASKED, budget="9"), before, suspects), "after")

    assert (settings.finishes_fewest, settings.fewest_kept) == (True, FEWEST_PROCESSES)
    assert (given.finishes_fewest, given.budget_s) == (False, 9)
    assert choose_settings(complete_request(ASKED, before), "after").fewest_kept is None


def test_turns_of_two_environments_are_no_fewer_where_they_confirm():
    settings = make_settings("quick", suites=(), run_id="", lock_step=ELSEWHERE, blocks=CONFIRMING_BLOCKS)

    assert settings.blocks == TURNS


@pytest.mark.parametrize("processes", [11, 31, "12"])
def test_processes_that_no_comparison_asks_for_are_refused_and_earlier_versions_asked_for_the_usual(
    processes, tmp_path
):
    (tmp_path / "a.json").write_text('{"baseline": "before", "suspects": []}')
    assert read_suspects(tmp_path / "a.json").processes == CONFIRMING_PROCESSES
    (tmp_path / "a.json").write_text(json.dumps({"baseline": "before", "suspects": [], "processes": processes}))

    with pytest.raises(UsageError, match="--suspects: "):
        read_suspects(tmp_path / "a.json")


@pytest.mark.parametrize(("backend", "cores"), [("cpu", 1), ("gpu", None)])
def test_a_run_in_lock_step_records_that_a_cpus_two_environments_run_on_one_core(backend, cores):
    beside = replace(ASKED, backend=backend, lock_step="/elsewhere/bin/python")

    assert choose_settings(beside, "after", samples.manifest(())).lock_step_cores == cores
    assert choose_settings(replace(ASKED, backend=backend), "after", samples.manifest(())).lock_step_cores is None


def test_a_run_next_to_another_checkout_takes_turns_with_it_under_the_same_python():
    beside = replace(ASKED, baseline_checkout=Path("~/base"))
    both = replace(beside, lock_step="/elsewhere/bin/python")

    found = choose_settings(beside, "after", samples.manifest(())).lock_step

    assert find_other_environment(beside, samples.manifest(())).python == sys.executable
    assert found.checkout == "~/base"
    assert find_other_environment(both, samples.manifest(())).python == "/elsewhere/bin/python"
    assert find_other_environment(ASKED, samples.manifest(())) is None


@needs_cores
@pytest.mark.parametrize("backend", ["cpu", "gpu"])
@pytest.mark.parametrize(("cores", "of_a_process"), [(1, 1), (ALL_CORES, None)])
def test_a_given_number_of_cores_holds_for_every_process_and_in_lock_step_for_both_environments(
    backend, cores, of_a_process
):
    asked = replace(ASKED, backend=backend, cores=cores)

    alone = choose_settings(asked, "after", samples.manifest(()))
    beside = choose_settings(replace(asked, lock_step="/elsewhere/bin/python"), "after", samples.manifest(()))

    with pytest.raises(UsageError, match="can be used here; give fewer"):
        choose_settings(replace(asked, cores=usable_cores() + 1), "after")
    assert (alone.cores, alone.lock_step_cores) == (of_a_process, None)
    assert (beside.cores, beside.lock_step_cores) == (None, of_a_process or usable_cores())
