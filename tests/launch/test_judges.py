import json
import sys
from pathlib import Path

import pytest

from jaxmeter.launch.bisection import Answer
from jaxmeter.launch.options import UsageError
from jaxmeter.launch.predicates import Target
from jaxmeter.launch.sessions.bisect import JudgeByCase, JudgeByCommand, read_bisect_request
from tests.launch.test_predicates import interval, memory_change

GOOD, BAD = "jax==0.9.0", "jax==0.10.2"


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
        return self.codes.get(words[-1], 0)

    def compare(self, words):
        _, after, option, verdict = words
        assert option == "--verdict"
        factor = self.factors.get(Path(after).name.removeprefix("it-"))
        changes = []
        if factor is not None:
            effect = interval(factor, factor, factor)
            changes = [memory_change(finding="more", before=100.0, after=100.0 * factor, effect=effect)]
        Path(verdict).write_text(json.dumps({"changes": changes}))
        return self.codes.get(Path(after).name + " compared", 0)


def judge_with(machine, *options):
    metric = options or ("--metric", "peak_memory")
    asked = read_bisect_request(["--good", GOOD, "--bad", BAD, "--case", "selu", *metric])
    judge = JudgeByCase(asked, "cpu", ("--quick",), "it", machine.make, machine.run, machine.compare)
    judge.begin()
    return judge


def test_programs_are_compared_with_the_good_release_without_timing_anything():
    machine = Machine({"0.10.2": 1.44, "0.10.0": 1.4})

    judge = judge_with(machine)
    answers = [judge(BAD).answer, judge("jax==0.10.0").answer]

    assert answers == [Answer.BAD, Answer.BAD]
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
        (None, {}, Answer.UNDECIDED, "no difference of peak_memory is reported"),
        (1.44, {"it-0.10.2": 2}, Answer.UNUSABLE, "the measurement ended with 2"),
        (1.44, {"it-0.10.2 compared": 2}, Answer.UNUSABLE, "the comparison ended with 2"),
        (1.44, {"it-0.10.2": 3, "it-good": 3}, Answer.BAD, "100 in the good release, 144 here"),
    ],
    ids=["not told apart", "not measured", "not compared", "runs that lack something"],
)
def test_a_bad_release_is_judged_where_it_was_measured_and_compared(factor, codes, answer, why):
    judged = judge_with(Machine({} if factor is None else {"0.10.2": factor}, codes))(BAD)

    assert (judged.answer, judged.why) == (answer, why)


def test_a_release_that_lacks_the_number_is_not_good(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    judge = judge_with(Machine())
    judge.target = Target("selu", "selu:jit", "planned_peak_bytes")

    judged = judge("jax==0.10.0")

    assert (judged.answer, judged.why) == (Answer.UNUSABLE, "it has no peak_memory of selu selu:jit")


def test_a_release_that_cannot_be_installed_is_unusable():
    judged = judge_with(Machine())("jax==broken")

    assert (judged.answer, judged.why) == (Answer.UNUSABLE, "there is none")
    assert JudgeByCommand("exit 0", Machine().make)("jax==broken").answer is Answer.UNUSABLE


@pytest.mark.parametrize("code", [1, 2, 77])
def test_a_good_release_that_cannot_be_measured_is_said(code):
    with pytest.raises(UsageError, match=f"jax==0.9.0 cannot be measured: the measurement ended with {code}"):
        judge_with(Machine({}, {"it-good": code}))


@pytest.mark.parametrize("name", ["it-good", "it-0.10.2"])
def test_an_interruption_ends_all(name):
    with pytest.raises(KeyboardInterrupt):
        judge_with(Machine({}, {name: 130}))(BAD)


@pytest.mark.parametrize(
    ("command", "answer"), [("exit 0", Answer.GOOD), ("exit 1", Answer.BAD), ("exit 125", Answer.UNUSABLE)]
)
def test_a_command_decides_by_its_exit_code(command, answer):
    assert JudgeByCommand(command, Machine().make)(BAD).answer is answer


def test_a_command_finds_the_python_of_the_release_first(tmp_path):
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "python").symlink_to(sys.executable)

    judge = JudgeByCommand(
        f'test "$(command -v python)" = "{tmp_path}/bin/python"', lambda words: tmp_path / "bin" / "python"
    )

    assert judge(BAD).answer is Answer.GOOD
