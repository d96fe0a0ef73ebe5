import json
import shlex
from pathlib import Path

import pytest

from jaxmeter.launch.options import UsageError
from jaxmeter.launch.sessions import bisect
from jaxmeter.launch.sessions.bisect import PROCESSES, bisect_releases
from jaxmeter.launch.sessions.neighbours import Neighbours
from jaxmeter.launch.walk import UnusableError
from tests.launch.test_walk import time

RIGHT = {"numerics": {"status": "ok", "reason": None}}
WRONG = {"numerics": {"status": "failed", "reason": "no attribute x"}}


class Machine:
    """Environments, measurements and comparisons that are only noted; a run that ends well is whole.

    Args:
      codes: By the end of a run's name.
      outcomes: Of the variants of each run, by name.
      findings: By the end of the later run's name; others are the same.
    """

    def __init__(self, codes=(), outcomes=None, findings=()):
        self.codes, self.outcomes, self.findings = dict(codes), outcomes or {"scan:jit": RIGHT}, dict(findings)
        self.made, self.ran, self.compared = [], [], []

    def make(self, packages):
        if packages == "jax==broken":
            raise UsageError("there is none")
        self.made.append(packages)
        return Path("env", packages, "bin", "python")

    def run(self, python, words, variables):
        self.ran.append((str(python), tuple(words), dict(variables)))
        out = Path(words[words.index("--out") + 1]) if "--out" in words else Path()
        run = (
            Path(words[words.index("--resume") + 1])
            if "--resume" in words
            else out / words[words.index("--run-id") + 1]
        )
        code = next((code for name, code in self.codes.items() if run.name.endswith(name)), 0)
        if code in (0, 3, 130):
            run.mkdir(exist_ok=True)
            (run / "manifest.json").touch()
        if code in (0, 3):
            variants = [{"name": name, "outcomes": outcomes} for name, outcomes in self.outcomes.items()]
            (run / "run.json").write_text(json.dumps({"cases": [{"name": "scan", "variants": variants}]}))
        return code

    def compare(self, words):
        before, after, option, verdict = words
        assert option == "--verdict"
        self.compared.append((Path(before).name, Path(after).name))
        found = next((found for name, found in self.findings.items() if after.endswith(name)), [time("same")])
        Path(verdict).write_text(json.dumps({"changes": found}))
        return next((code for name, code in self.codes.items() if f"{Path(after).name} compared".endswith(name)), 0)


@pytest.fixture
def begin(tmp_path):
    """Measurements on a machine, of which the first one is done."""

    def measure(machine, *options, variant="", release="jax==0.9.0"):
        measuring = ("--backend", "cpu", *options, "--out", str(tmp_path))
        neighbours = Neighbours(tmp_path / "it", measuring, 6, machine.make, machine.run, machine.compare, variant)
        neighbours.begin(release)
        return neighbours

    return measure


def test_the_first_release_is_measured_by_itself_and_the_next_one_in_lock_step_with_it(begin, tmp_path):
    machine = Machine()

    begin(machine)("jax==0.9.0", "jax==0.9.1", 0)

    programs = ("--probe", "compilation", "--probe", "memory", "--probe", "trace")
    common = ("run", "--backend", "cpu", "--out", str(tmp_path))
    assert machine.ran == [
        ("env/jax==0.9.0/bin/python", (*common, *programs, "--run-id", "it-0.9.0"), {}),
        (
            "env/jax==0.9.1/bin/python",
            (
                *(*common, "--probe", "timing", *programs, "--processes", "6"),
                *("--against", str(tmp_path / "it-0.9.0"), "--run-id", "it-0.9.1-against-0.9.0"),
                *("--lock-step", "env/jax==0.9.0/bin/python"),
            ),
            {},
        ),
    ]
    assert machine.compared == [("it-0.9.0", "it-0.9.1-against-0.9.0")]


def test_a_second_attempt_has_twice_the_processes_and_a_run_of_its_own(begin):
    machine = Machine()

    begin(machine)("jax==0.9.0", "jax==0.9.1", 1)

    words = machine.ran[-1][1]
    assert words[words.index("--processes") + 1] == "12"
    assert machine.compared[-1][1] == "it-0.9.1-against-0.9.0-again"


def test_later_releases_are_compared_with_the_first_run_of_a_release(begin, tmp_path):
    machine = Machine()
    neighbours = begin(machine)

    for pair in (("jax==0.9.0", "jax==0.9.1", 0), ("jax==0.9.0", "jax==0.9.1", 1), ("jax==0.9.1", "jax==0.9.2", 0)):
        neighbours(*pair)
    neighbours("jax==0.9.0", "jax==0.9.2", 0)

    assert machine.compared[-2:] == [
        ("it-0.9.1-against-0.9.0", "it-0.9.2-against-0.9.1"),
        ("it-0.9.0", "it-0.9.2-against-0.9.0"),
    ]
    assert machine.made == ["jax==0.9.0", "jax==0.9.1", "jax==0.9.2"]
    assert [run.name for run in neighbours.list_runs()] == [
        "it-0.9.0",
        "it-0.9.1-against-0.9.0",
        "it-0.9.1-against-0.9.0-again",
        "it-0.9.2-against-0.9.1",
        "it-0.9.2-against-0.9.0",
    ]


def test_only_the_variant_that_was_named_counts(begin):
    found = [time("slower", 2.0), time("faster", 0.5, variant="b:jit"), time("failed", variant="", effect=None)]
    machine = Machine(outcomes={"scan:jit": RIGHT, "b:jit": RIGHT}, findings={"0.9.0": found})

    changes = begin(machine, variant="b:jit")("jax==0.9.0", "jax==0.9.1", 0)

    assert changes == json.loads(json.dumps(found[1:]))


@pytest.mark.parametrize(
    ("codes", "reason"),
    [
        ({"0.9.1-against-0.9.0": 2}, "the measurement ended with 2"),
        ({"0.9.1-against-0.9.0": 77}, "the measurement ended with 77"),
        ({"0.9.1-against-0.9.0 compared": 2}, "the comparison ended with 2"),
    ],
)
def test_a_release_that_cannot_be_measured_or_compared_is_unusable(begin, codes, reason):
    neighbours = begin(Machine(codes))

    with pytest.raises(UnusableError, match=reason):
        neighbours("jax==0.9.0", "jax==0.9.1", 0)


def test_a_release_that_cannot_be_installed_is_unusable(begin):
    with pytest.raises(UnusableError, match="there is none"):
        begin(Machine())("jax==0.9.0", "jax==broken", 0)


def test_runs_that_lack_something_are_compared(begin):
    assert begin(Machine({"0.9.0": 3}))("jax==0.9.0", "jax==0.9.1", 0)


@pytest.mark.parametrize(
    ("machine", "variant", "reason"),
    [
        (Machine({"0.9.0": 2}), "", "the measurement ended with 2"),
        (Machine({"0.9.0": 3}, {"scan:jit": WRONG}), "", "no variant has a right result: failed: no attribute x"),
        (Machine({"0.9.0": 3}, {"scan:jit": RIGHT, "b:jit": WRONG}), "b:jit", "no variant has a right result"),
        (Machine({"0.9.0": 3}, {"scan:jit": {}}), "", "no variant has a right result"),
    ],
)
def test_a_first_release_that_nothing_can_be_compared_with_is_unusable(begin, machine, variant, reason):
    with pytest.raises(UnusableError, match=reason):
        begin(machine, variant=variant)


def test_a_variant_that_there_is_not_is_refused_with_those_that_there_are(begin):
    with pytest.raises(UsageError, match="--variant b:jit: there is none of this name; variants: scan:jit"):
        begin(Machine(), variant="b:jit")


# Interrupted


def test_an_interruption_ends_all(begin):
    neighbours = begin(Machine({"0.9.1-against-0.9.0": 130}))

    with pytest.raises(KeyboardInterrupt):
        neighbours("jax==0.9.0", "jax==0.9.1", 0)


def test_whole_runs_are_taken_as_they_are_and_an_interrupted_one_is_finished(begin, tmp_path):
    paths = ("--suites", "mine.py", "--suites", "other.py", "--data", "there")
    with pytest.raises(KeyboardInterrupt):
        begin(Machine({"0.9.1-against-0.9.0": 130}), *paths)("jax==0.9.0", "jax==0.9.1", 0)
    machine = Machine()

    begin(machine, *paths)("jax==0.9.0", "jax==0.9.1", 0)

    ((python, words, _),) = machine.ran
    assert python == "env/jax==0.9.1/bin/python"
    assert words == (
        *("run", "--resume", str(tmp_path / "it-0.9.1-against-0.9.0"), *paths),
        *("--lock-step", "env/jax==0.9.0/bin/python"),
    )


def test_where_all_runs_are_whole_nothing_is_installed_or_measured(begin):
    begin(Machine())("jax==0.9.0", "jax==0.9.1", 0)
    machine = Machine()

    begin(machine)("jax==0.9.0", "jax==0.9.1", 0)

    assert (machine.made, machine.ran) == ([], [])
    assert machine.compared == [("it-0.9.0", "it-0.9.1-against-0.9.0")]


def test_a_release_that_was_passed_over_is_tried_again_and_the_next_one_is_compared_with_it(begin):
    neighbours = begin(Machine({"0.9.1-against-0.9.0": 2}))
    with pytest.raises(UnusableError):
        neighbours("jax==0.9.0", "jax==0.9.1", 0)
    neighbours("jax==0.9.0", "jax==0.9.2", 0)
    machine = Machine()
    neighbours = begin(machine)

    neighbours("jax==0.9.0", "jax==0.9.1", 0)
    neighbours("jax==0.9.1", "jax==0.9.2", 0)

    assert [words[words.index("--run-id") + 1] for _, words, _ in machine.ran] == [
        "it-0.9.1-against-0.9.0",
        "it-0.9.2-against-0.9.1",
    ]


def test_an_interrupted_run_that_cannot_be_finished_ends_all(begin):
    with pytest.raises(KeyboardInterrupt):
        begin(Machine({"0.9.1-against-0.9.0": 130}))("jax==0.9.0", "jax==0.9.1", 0)
    neighbours = begin(Machine({"0.9.1-against-0.9.0": 2}))

    with pytest.raises(UsageError, match=r"it-0\.9\.1-against-0\.9\.0 cannot be finished, for the reason above"):
        neighbours("jax==0.9.0", "jax==0.9.1", 0)


# Environment variables


def test_variables_are_set_for_the_later_release_in_a_run_of_their_own(begin):
    machine = Machine()
    neighbours = begin(machine)

    for flags in ({}, {"XLA_FLAGS": "--xla_a=1"}, {"XLA_FLAGS": "--xla_a=2"}):
        neighbours("jax==0.9.0", "jax==0.9.1", 0, flags)

    assert [variables for _, _, variables in machine.ran[1:]] == [
        {},
        {"XLA_FLAGS": "--xla_a=1"},
        {"XLA_FLAGS": "--xla_a=2"},
    ]
    names = [after for _, after in machine.compared]
    assert len(set(names)) == 3
    assert all(name.startswith("it-0.9.1-against-0.9.0-with-") for name in names[1:])


# The session


class NotedShell:
    """Hands the programs of a session to a machine."""

    def __init__(self, checkout, machine):
        self.checkout, self.machine, self.ran = checkout, machine, []

    def install(self, *lock_names):
        pass

    def run(self, *command):
        self.ran.append(command)
        words = command[command.index("jaxmeter") + 1 :]
        variables = dict(word.split("=", 1) for word in command[1 : command.index("-m") - 1])
        if words[0] == "run":
            return self.machine.run(command[command.index("-m") - 1], words, variables)
        return self.machine.compare(words[1:]) if words[0] == "compare" else 0


@pytest.fixture
def bisected(tmp_path, monkeypatch, capsys):
    """Bisects three releases by time on a machine, with options; (exit code, the shell, what it said)."""
    monkeypatch.setattr(bisect, "list_releases", lambda good, bad, python: ("jax==0.9.0", "jax==0.9.1", "jax==0.9.2"))
    monkeypatch.setattr(bisect, "new_run_id", lambda backend: "it")
    monkeypatch.setattr(bisect, "check_names", lambda *_: None)
    monkeypatch.setattr(bisect, "check_selection", lambda *_: None)

    def call(machine, *options):
        monkeypatch.setattr(bisect, "prepare_environment", lambda shell, wanted: machine.make(wanted.words))
        shell = NotedShell(tmp_path, machine)
        both = ("--good", "jax==0.9.0", "--bad", "jax==0.9.2", "--case", "scan", "--out", str(tmp_path))
        return bisect_releases(shell, [*both, *options]), shell, capsys.readouterr().err

    return call


def test_commands_about_the_largest_slowdown_name_the_runs_of_its_two_releases(bisected, tmp_path):
    machine = Machine(findings={"0.9.1": [time("slower", 1.5)], "0.9.2": [time("slower", 2.0)]})

    _, _, said = bisected(machine)

    earlier, later = str(tmp_path / "it-0.9.1-against-0.9.0"), str(tmp_path / "it-0.9.2-against-0.9.1")
    variant = ["--case", "scan", "--variant", "scan:jit"]
    assert read_command(said, "diff") == [earlier, later, *variant]
    assert read_command(said, "reproduce") == [later, "--before", earlier, *variant]


def read_command(said, verb):
    """The arguments of the only `nox -s report -- VERB …` among the lines."""
    (found,) = [line.partition(f"nox -s report -- {verb} ")[2] for line in said.splitlines() if f"-- {verb} " in line]
    return shlex.split(found)


def test_without_a_slower_step_there_is_nothing_to_report(bisected):
    _, _, said = bisected(Machine(findings={"0.9.1": [time("faster", 0.5)]}))

    assert "reproduce" not in said
    assert "-- diff" not in said


def test_a_change_point_ends_with_0_and_names_the_page_of_all_runs(bisected, tmp_path):
    code, shell, said = bisected(Machine(findings={"0.9.1": [time("slower", 2.0)]}), "--quick")

    assert code == 0
    assert "1 change point, in lock-step on one core:" in said
    assert "--resume it" in said
    runs = [
        f"{tmp_path}/it-{name}"
        for name in ("0.9.0", "0.9.1-against-0.9.0", "0.9.2-against-0.9.1", "0.9.2-against-0.9.0")
    ]
    assert f"nox -s report -- {' '.join(runs)}\n" in said
    measured = [command for command in shell.ran if "run" in command]
    assert all(command[command.index("--select") :][:2] == ("--select", "scan") for command in measured)


def test_without_a_change_point_it_ends_with_3(bisected):
    code, _, said = bisected(Machine())

    assert code == 3
    assert "no change point is confirmed; the steps could detect a difference of 3.0 %" in said


def test_a_walk_goes_on_where_it_stopped(bisected):
    with pytest.raises(KeyboardInterrupt):
        bisected(Machine({"0.9.2-against-0.9.1": 130}))
    machine = Machine()

    bisected(machine, "--resume", "it")

    assert machine.made == ["jax==0.9.2", "jax==0.9.1", "jax==0.9.0"]
    assert [words[1] for _, words, _ in machine.ran] == ["--resume", "--backend"]


def test_a_good_release_that_cannot_be_measured_is_refused(bisected):
    with pytest.raises(UsageError, match=r"jax==0\.9\.0 cannot be measured: the measurement ended with 2"):
        bisected(Machine({"0.9.0": 2}))


def test_variables_are_tried_on_the_first_slower_release_and_checked_before_anything_is_measured(bisected):
    machine = Machine(findings={"0.9.2-against-0.9.1": [time("slower", 2.0)]})

    _, shell, said = bisected(machine, "--try-env", "XLA_FLAGS=--xla_a=1 --xla_b=2")

    assert shell.ran[0][-2:] == ("--try-env", "XLA_FLAGS=--xla_a=1 --xla_b=2")
    python, words, variables = machine.ran[-1]
    assert (python, variables) == ("env/jax==0.9.2/bin/python", {"XLA_FLAGS": "--xla_a=1 --xla_b=2"})
    assert words[-1] == "env/jax==0.9.1/bin/python"
    assert "jax==0.9.2 with XLA_FLAGS=--xla_a=1 --xla_b=2 compared with jax==0.9.1" in said
    assert "scan scan:jit: undone: same" in said
    assert "-with-" not in said.splitlines()[-1]


def test_variables_whose_effect_is_not_decided_are_tried_with_twice_the_processes(bisected):
    findings = {"0.9.2-against-0.9.1": [time("slower", 2.0)], "again": [time("slower", 1.5)]}
    machine = Machine(findings=findings)
    compare = machine.compare

    def leave_open(words):
        is_first = "-with-" in words[1] and not words[1].endswith("-again")
        machine.findings = {"": [time("inconclusive", 1.5, 0.6)]} if is_first else findings
        return compare(words)

    machine.compare = leave_open

    _, _, said = bisected(machine, "--try-env", "XLA_FLAGS=--xla_a=1")

    processes = [int(words[words.index("--processes") + 1]) for _, words, _ in machine.ran[-2:]]
    assert processes == [PROCESSES, 2 * PROCESSES]
    assert "scan scan:jit: undone in part: slower, 1.500" in said


def test_variables_are_not_tried_where_nothing_is_slower(bisected):
    machine = Machine()

    _, _, said = bisected(machine, "--try-env", "XLA_FLAGS=--xla_a=1")

    assert len(machine.ran) == 4
    assert "XLA_FLAGS=--xla_a=1 was not tried: no step is confirmed slower" in said
