import json
import os
from pathlib import Path

import pytest
from typer.testing import CliRunner

from jaxmeter.cli.app import app
from jaxmeter.harness.record.runs import CONFIRMING_PROCESSES
from jaxmeter.reporting.compare.budgets import LimitError, read_effect
from tests import samples
from tests.reporting.compare.changed import AFTER, BEFORE, plain, replayed


@pytest.fixture
def call(tmp_path):
    """Calls a command on runs that are written first; exit code, what it said on stdout and on stderr."""

    def run(command, *runs, options=()):
        folders = [
            str(samples.write_run(tmp_path / f"{index}-{one.manifest.run_id}", one)) for index, one in enumerate(runs)
        ]
        ended = CliRunner().invoke(app, [command, *folders, *map(str, options)])
        return ended.exit_code, ended.stdout, ended.stderr

    return run


@pytest.mark.parametrize(
    ("after", "options", "code"),
    [
        (replayed(1.5), (), 1),
        (replayed(0.5), (), 0),
        (plain(AFTER, 2e-4, fingerprint="bb", source="1"), (), 0),
        (plain(AFTER, 2e-4, fingerprint="bb", source="1"), ("--fail-on", "suspected"), 1),
        (replayed(1.5), ("--min-effect", "60%"), 0),
        (plain(AFTER, environment=samples.environment(x64=True)), (), 3),
    ],
    ids=["slower", "faster", "suspected", "suspicion counts", "below the effect", "not comparable"],
)
def test_compare_ends_with_1_where_something_is_slower(call, after, options, code):
    ended, said, _ = call("compare", plain(BEFORE), after, options=options)

    assert ended == code
    assert said.startswith("No answer: ") is (code == 3)


def test_what_is_beyond_a_budget_is_named_everywhere(call, tmp_path):
    budgets, markdown, verdict = (tmp_path / name for name in ("b.toml", "m.md", "v.json"))
    budgets.write_text('"nothing/*" = { time = "1%" }\n"*" = { fusions = 0, time = "900%" }')
    compiled = {count: samples.compilation(*[0.1] * 4, counts={"hlo_fusions": count}) for count in (4, 7)}
    runs = [
        plain(name, fingerprint=mark, probes={"compilation": compiled[fusions]})
        for name, mark, fusions in ((BEFORE, "aa", 4), (AFTER, "bb", 7))
    ]
    files = ("--budgets", budgets, "--markdown", markdown, "--verdict", verdict)

    code, said, complained = call("compare", *runs, options=files)

    told = json.loads(verdict.read_text())
    assert (code, told["exit_code"]) == (1, 1)
    assert 'the budget of "nothing/*" matches no case' in complained
    assert " ".join(said.split()).count("; beyond its budget") == 1
    assert "**Regressions (1)**" in markdown.read_text()
    assert [one["metric"] for one in told["regressions"]] == ["hlo_fusions"]


def test_an_exact_gate_says_nothing_of_times(call):
    cold = [
        plain(name, time_s, fingerprint=name, probes={"compilation": samples.compilation(s, s, s, s, processes=3)})
        for name, time_s, s in ((BEFORE, 1e-4, 0.1), (AFTER, 2e-4, 0.2))
    ]

    for runs in ([plain(BEFORE), replayed(1.5)], cold):
        code, said, _ = call("gate", *runs, options=("--exact",))
        assert code == 0
        assert said.startswith("Passed: no time, ")
        assert "slower" not in said


def test_the_findings_are_written_for_other_tools(call, tmp_path):
    markdown, verdict, suspects = (tmp_path / name for name in ("m.md", "v.json", "s.json"))

    code, said, _ = call(
        "compare",
        plain(BEFORE),
        replayed(1.5),
        options=("--markdown", markdown, "--verdict", verdict, "--suspects", suspects),
    )

    assert code == 1
    assert said.startswith("Of 1 time interleaved 1 slower (confirmed)")
    told = json.loads(verdict.read_text())
    assert (told["baseline"], told["candidate"], told["exit_code"]) == (BEFORE, AFTER, 1)
    assert [one["finding"] for one in told["changes"] if one["metric"] == "execution_s"] == ["slower"]
    assert "| time: slower | selu" in markdown.read_text()
    assert json.loads(suspects.read_text()) == {
        "baseline": BEFORE,
        "suspects": [{"case": "selu[dtype=float32,n=10000]", "variant": "selu:jit"}],
        "processes": CONFIRMING_PROCESSES,
    }


def test_a_file_of_suspects_that_no_longer_are_is_removed(call, tmp_path):
    suspects = tmp_path / "s.json"
    suspects.write_text("old")

    call("compare", plain(BEFORE), plain(AFTER), options=("--suspects", suspects))

    assert not suspects.exists()


@pytest.mark.parametrize("make", [Path.mkdir, os.mkfifo], ids=["folder", "pipe"])
def test_what_is_no_file_is_not_removed_for_want_of_suspects(call, tmp_path, make):
    suspects = tmp_path / "s.json"
    make(suspects)

    code, _, said = call("compare", plain(BEFORE), plain(AFTER), options=("--suspects", suspects))

    assert code == 2
    assert f"{suspects}: not a regular file" in said
    assert suspects.exists()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--min-effect", "much"), "--min-effect 'much' is not a percentage"),
        (("--min-effect", "0"), "write 3% or 2.5%"),
        (("--budgets", "nowhere.toml"), "nowhere.toml: cannot be read"),
        (("--fail-on", "rumour"), "rumour"),
    ],
)
def test_what_cannot_be_used_is_said(call, options, words):
    code, _, said = call("compare", plain(BEFORE), plain(AFTER), options=options)

    assert code == 2
    assert words in " ".join(said.replace("│", " ").split())
    missing = CliRunner().invoke(app, ["compare", "/none/a", "/none/b"])
    assert (missing.exit_code, "no such folder" in missing.stderr) == (2, True)


@pytest.mark.parametrize("text", ["", "-1%", "0%", "101%", "3x", "nan"])
def test_an_effect_is_a_percentage(text):
    assert [read_effect(share) for share in ("3%", "2.5 %", "100")] == pytest.approx([0.03, 0.025, 1])
    with pytest.raises(LimitError):
        read_effect(text)


def test_limits_are_checked_without_any_run(tmp_path):
    budgets = tmp_path / "b.toml"
    budgets.write_text('"*" = { tme = "5%" }')

    assert CliRunner().invoke(app, ["limits"]).exit_code == 0
    assert CliRunner().invoke(app, ["limits", "--budgets", str(budgets)]).exit_code == 2
    for metric in ("time", "program", "peak_memory", "collectives"):  # as a budget calls them
        assert CliRunner().invoke(app, ["limits", "--metric", metric]).exit_code == 0
    refused = CliRunner().invoke(app, ["limits", "--metric", "speed"])
    assert refused.exit_code == 2
    assert "'speed'" in refused.output
    assert "peak_memory" in refused.output


@pytest.mark.parametrize(
    ("option", "variable", "said"),
    [
        ("--old-env", "MY_FLAG=1", "no run records it"),
        ("--new-env", "JAX_SECRET_TOKEN=abcdefgh", "no run records it"),
        ("--try-env", "JAX_PLATFORMS=cpu", "jaxmeter itself decides on it"),
        ("--new-env", "JAX_COMPILATION_CACHE_DIR=a", "jaxmeter itself decides on it"),
        ("--old-env", "XLA_FLAGS=--xla_gpu_cuda_data_dir=/cuda", "its value may name a file"),
        ("--try-env", "JAX_ENABLE_X64=1", "numbers of two precisions are not compared"),
    ],
)
def test_a_variable_that_no_side_of_an_upgrade_can_have_is_refused_before_anything_is_measured(option, variable, said):
    refused = CliRunner().invoke(app, ["limits", option, variable])

    assert refused.exit_code == 2
    assert f"{option} {variable.partition('=')[0]}: {said}" in refused.output


def test_flags_of_xla_and_other_recorded_variables_may_differ_between_the_sides_of_an_upgrade():
    flags = "XLA_FLAGS=--xla_a=1 --xla_b=false"
    sides = ["--old-env", flags, "--new-env", "XLA_FLAGS=", "--new-env", "OMP_NUM_THREADS=1"]

    assert CliRunner().invoke(app, ["limits", *sides]).exit_code == 0
