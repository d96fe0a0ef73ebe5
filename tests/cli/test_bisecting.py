import shlex
import sys
from pathlib import Path

import pytest

from jaxmeter.cli import bisect
from jaxmeter.cli.bisect import CompareReleases, JudgeByCase, JudgeByCommand, bisect_releases, compare_folders
from jaxmeter.launch.bisect import PROCESSES, read_bisect_request
from jaxmeter.launch.options import UsageError
from jaxmeter.reporting.compare.budgets import TIME_BUDGET
from jaxmeter.reporting.releases import BisectionAnswer, BisectionTarget, UnusableError
from tests import samples
from tests.launch.shells import NotedShell, list_words
from tests.launch.test_neighbours import Machine as Measured
from tests.launch.test_neighbours import begin  # noqa: F401  a fixture
from tests.reporting.releases.test_criteria import interval, memory_change
from tests.reporting.releases.test_walk import time

GOOD, BAD = "jax==0.9.0", "jax==0.10.2"
RIGHT = {"numerics": {"status": "ok", "reason": None}}


class Machine:
    """Environments, measurements and comparisons that are only noted.

    Args:
      factors: Of planned peak memory, by release; a release that it lacks has the good one's.
      codes: By the name of a run, or by that and "compared".
    """

    def __init__(self, factors=(), codes=()):
        self.factors, self.codes = dict(factors), dict(codes)
        self.ran = []

    def make(self, packages):
        if packages == "jax==broken":
            raise UsageError("there is none")
        return Path("env", packages, "bin", "python")

    def run(self, python, words, variables):
        self.ran.append((str(python), tuple(words)))
        if (code := self.codes.get(words[-1], 0)) == 130:  # as the shell
            raise KeyboardInterrupt
        return code

    def compare(self, before, after):
        if code := self.codes.get(after.name + " compared", 0):
            raise UnusableError(f"the comparison ended with {code}")
        factor = self.factors.get(after.name.removeprefix("it-"))
        if factor is None:
            return []
        effect = interval(factor, factor, factor)
        return [memory_change(before=100.0, after=100.0 * factor, effect=effect)]


def judge_with(machine, *options):
    metric = options or ("--metric", "peak_memory")
    asked = read_bisect_request(["--good", GOOD, "--bad", BAD, "--case", "selu", *metric], TIME_BUDGET)
    judge = JudgeByCase(asked, "cpu", ("--quick",), "it", machine.make, machine.run, machine.compare)
    judge.begin()
    return judge


def test_programs_are_compared_with_the_good_release_without_timing_anything():
    machine = Machine({"0.10.2": 1.44, "0.10.0": 1.4})

    judge = judge_with(machine)
    answers = [judge(BAD).answer, judge("jax==0.10.0").answer]

    assert answers == [BisectionAnswer.BAD, BisectionAnswer.BAD]
    exact = ("--probe", "compilation", "--probe", "memory", "--processes", "1")
    words = ("run", "--backend", "cpu", "--quick", "--select", "selu", *exact, "--run-id")
    assert machine.ran == [
        ("env/jax==0.9.0/bin/python", (*words, "it-good")),
        ("env/jax==0.10.2/bin/python", (*words, "it-0.10.2")),
        ("env/jax==0.10.0/bin/python", (*words, "it-0.10.0")),
    ]


@pytest.mark.parametrize(
    ("factor", "codes", "answer", "why"),
    [
        (None, {}, BisectionAnswer.UNDECIDED, "no difference of peak_memory is reported"),
        (1.44, {"it-0.10.2": 2}, BisectionAnswer.UNUSABLE, "the measurement ended with 2"),
        (1.44, {"it-0.10.2 compared": 2}, BisectionAnswer.UNUSABLE, "the comparison ended with 2"),
        (1.44, {"it-0.10.2": 3, "it-good": 3}, BisectionAnswer.BAD, "100 in the good release, 144 here"),
    ],
    ids=["not told apart", "not measured", "not compared", "runs that lack something"],
)
def test_a_bad_release_is_judged_where_it_was_measured_and_compared(factor, codes, answer, why):
    judged = judge_with(Machine({} if factor is None else {"0.10.2": factor}, codes))(BAD)

    assert (judged.answer, judged.why) == (answer, why)


def test_a_release_that_cannot_be_installed_or_lacks_the_number_is_unusable(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    judge = judge_with(Machine())
    judge.target = BisectionTarget("selu", "selu:jit", "planned_peak_bytes")
    reasons = {"jax==0.10.0": "it has no peak_memory of selu selu:jit", "jax==broken": "there is none"}

    for release, why in reasons.items():
        judged = judge(release)
        assert (judged.answer, judged.why) == (BisectionAnswer.UNUSABLE, why)
    assert JudgeByCommand("exit 0", Machine().make)("jax==broken").answer is BisectionAnswer.UNUSABLE


def test_a_good_release_that_cannot_be_measured_is_said(bisected):
    said = r"jax==0\.9\.0 cannot be measured: the measurement ended with 77"
    with pytest.raises(UsageError, match=said):
        judge_with(Machine({}, {"it-good": 77}))
    with pytest.raises(UsageError, match=said):
        bisected(Measured({"0.9.0": 77}))


@pytest.mark.parametrize("name", ["it-good", "it-0.10.2"])
def test_an_interruption_ends_all(name):
    with pytest.raises(KeyboardInterrupt):
        judge_with(Machine({}, {name: 130}))(BAD)


@pytest.mark.parametrize(
    ("command", "answer"),
    [("exit 0", BisectionAnswer.GOOD), ("exit 1", BisectionAnswer.BAD), ("exit 125", BisectionAnswer.UNUSABLE)],
)
def test_a_command_decides_by_its_exit_code(command, answer):
    assert JudgeByCommand(command, Machine().make)(BAD).answer is answer


def test_a_command_finds_the_python_of_the_release_first(tmp_path):
    python = tmp_path / "bin" / "python"
    python.parent.mkdir()
    python.symlink_to(sys.executable)

    assert (
        JudgeByCommand(f'test "$(command -v python)" = "{python}"', lambda words: python)(BAD).answer
        is BisectionAnswer.GOOD
    )


def test_the_findings_of_two_folders_are_those_of_a_comparison(tmp_path):
    folders = [samples.write_run(tmp_path / name, samples.run()) for name in ("before", "after")]

    assert {change.variant for change in compare_folders(*folders)} >= {"selu:jit"}
    with pytest.raises(UnusableError, match=r"the comparison failed: .*none"):
        compare_folders(folders[0], tmp_path / "none")


def test_only_the_variant_that_was_named_counts(begin):  # noqa: F811
    found = [time("slower", 2.0), time("faster", 0.5, variant="b:jit"), time("failed", variant="", effect=None)]
    neighbours = begin(Measured(outcomes=dict.fromkeys(("scan:jit", "b:jit"), RIGHT)), variant="b:jit")

    changes = CompareReleases(neighbours, lambda before, after: found)("jax==0.9.0", "jax==0.9.1", 0)

    assert changes == found[1:]
    with pytest.raises(UnusableError, match="there is none"):
        CompareReleases(neighbours, lambda before, after: [])("jax==0.9.0", "jax==broken", 0)


# The verb


class MachineShell(NotedShell):
    """Hands the programs of a verb to a machine."""

    def __init__(self, folder, machine):
        super().__init__(folder)
        self.machine = machine

    def run(self, *command):
        self.ran.append(command)
        words = list_words(command)
        variables = dict(word.split("=", 1) for word in command[1 : command.index("-P") - 1])
        return self.machine.run(command[command.index("-P") - 1], words, variables) if words[0] == "run" else 0


def find(findings):
    """What is found of two runs, by the end of the later one's name; others are the same."""
    return lambda before, after: next((found for name, found in findings.items() if after.name.endswith(name)), [SAME])


SAME = time("same")


@pytest.fixture
def bisected(tmp_path, monkeypatch, capsys):
    """Bisects three releases by time on a machine, with options; (exit code, the shell, what it said)."""
    releases = ("jax==0.9.0", "jax==0.9.1", "jax==0.9.2")
    monkeypatch.setenv("JAXMETER_IN_NOX", sys.executable)
    monkeypatch.setattr(bisect, "list_releases", lambda good, bad, python: releases)
    monkeypatch.setattr(bisect, "make_run_id", lambda backend: "it")
    monkeypatch.setattr(bisect, "check_names", lambda *_: None)
    monkeypatch.setattr(bisect, "check_selection", lambda *_: None)

    def call(machine, *options, found=lambda before, after: [SAME]):
        monkeypatch.setattr(bisect, "make_environment_of", lambda shell, packages, python: machine.make(packages))
        monkeypatch.setattr(bisect, "compare_folders", found)
        shell = MachineShell(tmp_path, machine)
        both = ("--good", "jax==0.9.0", "--bad", "jax==0.9.2", "--case", "scan", "--out", str(tmp_path))
        return bisect_releases(shell, [*both, *options]), shell, capsys.readouterr().err

    return call


def test_commands_about_the_largest_slowdown_name_the_runs_of_its_two_releases(bisected, tmp_path):
    machine, found = Measured(), find({"0.9.1": [time("slower", 1.5)], "0.9.2": [time("slower", 2.0)]})

    _, _, said = bisected(machine, found=found)

    earlier, later = str(tmp_path / "it-0.9.1-against-0.9.0"), str(tmp_path / "it-0.9.2-against-0.9.1")
    variant = ["--case", "scan", "--variant", "scan:jit"]
    assert read_command(said, "diff") == [earlier, later, *variant]
    assert read_command(said, "reproduce") == [later, "--before", earlier, *variant]
    said = bisected(Measured(), found=find({"0.9.1": [time("faster", 0.5)]}))[2]  # nothing to report
    assert ("reproduce" in said, "-- diff" in said) == (False, False)


def read_command(said, verb):
    """The arguments of the only `nox -s report -- VERB …` among the lines."""
    (found,) = [line.partition(f"nox -s report -- {verb} ")[2] for line in said.splitlines() if f"-- {verb} " in line]
    return shlex.split(found)


def test_a_change_point_ends_with_0_and_names_the_page_of_all_runs(bisected, tmp_path):
    code, shell, said = bisected(Measured(), "--quick", found=find({"0.9.1": [time("slower", 2.0)]}))

    assert code == 0
    assert "1 change point, in lock-step on one core:" in said
    assert "--resume it" in said
    names = ("0.9.0", "0.9.1-against-0.9.0", "0.9.2-against-0.9.1", "0.9.2-against-0.9.0")
    assert f"nox -s report -- {' '.join(f'{tmp_path}/it-{name}' for name in names)}\n" in said
    measured = [command for command in shell.ran if "run" in command]
    assert all(command[command.index("--select") :][:2] == ("--select", "scan") for command in measured)


def test_without_a_change_point_it_ends_with_3_and_tries_no_variables(bisected):
    machine = Measured()

    code, _, said = bisected(machine, "--try-env", "XLA_FLAGS=--xla_a=1")

    assert (code, len(machine.ran)) == (3, 4)
    assert "no change point is confirmed; the steps could detect a difference of 3.0\u202f%" in said
    assert "XLA_FLAGS=--xla_a=1 was not tried: no step is confirmed slower" in said


def test_a_walk_goes_on_where_it_stopped(bisected):
    with pytest.raises(KeyboardInterrupt):
        bisected(Measured({"0.9.2-against-0.9.1": 130}))
    machine = Measured()

    bisected(machine, "--resume", "it")

    assert machine.made == ["jax==0.9.2", "jax==0.9.1", "jax==0.9.0"]
    assert [words[1] for _, words, _ in machine.ran] == ["--resume", "--backend"]


def test_variables_are_tried_on_the_first_slower_release_and_checked_before_anything_is_measured(bisected):
    machine, found = Measured(), find({"0.9.2-against-0.9.1": [time("slower", 2.0)]})

    _, shell, said = bisected(machine, "--try-env", "XLA_FLAGS=--xla_a=1 --xla_b=2", found=found)

    assert shell.ran[0][-2:] == ("--try-env", "XLA_FLAGS=--xla_a=1 --xla_b=2")
    python, words, variables = machine.ran[-1]
    assert (python, variables) == ("env/jax==0.9.2/bin/python", {"XLA_FLAGS": "--xla_a=1 --xla_b=2"})
    assert words[-1] == "env/jax==0.9.1/bin/python"
    assert "jax==0.9.2 with XLA_FLAGS=--xla_a=1 --xla_b=2 compared with jax==0.9.1" in said
    assert "scan scan:jit: undone: same" in said
    assert "-with-" not in said.splitlines()[-1]


def test_variables_whose_effect_is_not_decided_are_tried_with_twice_the_processes(bisected):
    findings = {"0.9.2-against-0.9.1": [time("slower", 2.0)], "again": [time("slower", 1.5)]}
    machine, found = Measured(), find(findings)

    def leave_open(before, after):
        is_first = "-with-" in after.name and not after.name.endswith("-again")
        return [time("inconclusive", 1.5, 0.6)] if is_first else found(before, after)

    _, _, said = bisected(machine, "--try-env", "XLA_FLAGS=--xla_a=1", found=leave_open)

    processes = [int(words[words.index("--processes") + 1]) for _, words, _ in machine.ran[-2:]]
    assert processes == [PROCESSES, 2 * PROCESSES]
    assert "scan scan:jit: undone in part: slower, 1.500" in said
