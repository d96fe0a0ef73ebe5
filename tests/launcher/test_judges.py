import json
import sys
from pathlib import Path

import pytest

from launcher.bisection import Answer
from launcher.options import UsageError
from launcher.predicates import Target
from launcher.sessions.bisect import JudgeByCase, JudgeByCommand, read_bisect_request
from tests.launcher.test_predicates import timed

GOOD, BAD = "jax==0.9.0", "jax==0.10.2"


class Machine:
    """Environments, measurements and comparisons that are only noted."""

    def __init__(self, effects, codes=()):
        self.effects, self.codes = dict(effects), dict(codes)
        self.ran = []

    def make(self, packages):
        if packages == "jax==broken":
            raise UsageError("there is none")
        return Path("env", packages, "bin", "python")

    def run(self, python, words):
        self.ran.append((str(python), tuple(words)))
        return self.codes.get(words[-1], 0)

    def compare(self, words):
        _, after, option, verdict = words
        assert option == "--verdict"
        release = Path(after).name.removeprefix("it-").partition("-")[0]
        effect = self.effects.get(release)
        changes = []
        if effect is not None:
            changes = [timed(effect * 0.99, effect, effect * 1.01, finding="slower" if effect > 1.03 else "same")]
        Path(verdict).write_text(json.dumps({"changes": changes}))
        return self.codes.get(Path(after).name + " compared", 0)


def judge_with(machine, *options):
    asked = read_bisect_request(["--good", GOOD, "--bad", BAD, "--case", "selu", *options])
    judge = JudgeByCase(asked, "cpu", ("--quick",), "it", machine.make, machine.run, machine.compare)
    judge.begin()
    return judge


def test_the_good_release_is_measured_once_and_others_run_in_turns_with_it():
    machine = Machine({"0.10.2": 1.44, "0.10.0": 1.4})

    judge = judge_with(machine)
    answers = [judge(BAD, 0), judge("jax==0.10.0", 0)]

    assert [one.answer for one in answers] == [Answer.BAD, Answer.BAD]
    (first, *_), (python, words) = (machine.ran[0], machine.ran[1])
    assert first == "env/jax==0.9.0/bin/python"
    assert machine.ran[0][1] == (
        *("run", "--backend", "cpu", "--quick", "--select", "selu"),
        *("--probe", "memory", "--run-id", "it-good"),
    )
    assert python == "env/jax==0.10.2/bin/python"
    assert words[6:] == (
        *("--probe", "timing", "--against", "results/it-good", "--lock-step", "env/jax==0.9.0/bin/python"),
        *("--processes", "8", "--run-id", "it-0.10.2"),
    )


def test_a_second_attempt_has_twice_the_processes_and_a_run_of_its_own():
    machine = Machine({"0.10.2": 1.44})

    judge_with(machine)(BAD, 1)

    assert machine.ran[-1][1][-4:] == ("--processes", "16", "--run-id", "it-0.10.2-2")


def test_releases_in_the_middle_are_held_against_what_the_bad_one_differs_in():
    judge = judge_with(Machine({"0.10.2": 1.44, "0.10.0": 1.1, "0.10.1": 1.3}))

    assert [judge(f"jax=={version}", 0).answer for version in ("0.10.2", "0.10.0", "0.10.1")] == [
        Answer.BAD,
        Answer.GOOD,
        Answer.BAD,
    ]


@pytest.mark.parametrize(
    ("effect", "codes", "answer", "why"),
    [
        (1.0, {}, Answer.UNDECIDED, "no difference of time is told"),
        (1.44, {"it-0.10.2": 2}, Answer.UNUSABLE, "the measurement ended with 2"),
        (1.44, {"it-0.10.2 compared": 2}, Answer.UNUSABLE, "the comparison ended with 2"),
        (1.44, {"it-0.10.2": 3, "it-good": 3}, Answer.BAD, None),
    ],
    ids=["not told apart", "not measured", "not compared", "runs that lack something"],
)
def test_a_bad_release_is_judged_where_it_was_measured_and_compared(effect, codes, answer, why):
    judged = judge_with(Machine({"0.10.2": effect}, codes))(BAD, 0)

    assert judged.answer is answer
    assert why in (None, judged.why)


def test_programs_are_compared_without_timing_anything():
    machine = Machine({})

    judge_with(machine, "--metric", "program")(BAD, 0)

    exact = ("--probe", "compilation", "--probe", "memory", "--processes", "1")
    assert [words[6:-2] for _, words in machine.ran] == [exact, exact]


def test_a_release_that_lacks_the_number_is_not_good(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    machine = Machine({})
    judge = judge_with(machine, "--metric", "peak_memory")
    judge.target = Target("selu", "selu:jit", "planned_peak_bytes")

    judged = judge("jax==0.10.0", 0)

    assert (judged.answer, judged.why) == (Answer.UNUSABLE, "it tells no peak_memory of selu selu:jit")


def test_a_release_that_cannot_be_installed_is_unusable():
    judged = judge_with(Machine({}))("jax==broken", 0)

    assert (judged.answer, judged.why) == (Answer.UNUSABLE, "there is none")
    assert JudgeByCommand("exit 0", Machine({}).make)("jax==broken", 0).answer is Answer.UNUSABLE


@pytest.mark.parametrize("code", [1, 2, 77])
def test_a_good_release_that_cannot_be_measured_is_said(code):
    with pytest.raises(UsageError, match=f"jax==0.9.0 cannot be measured: the measurement ended with {code}"):
        judge_with(Machine({}, {"it-good": code}))


@pytest.mark.parametrize("name", ["it-good", "it-0.10.2"])
def test_an_interruption_ends_all(name):
    with pytest.raises(KeyboardInterrupt):
        judge_with(Machine({}, {name: 130}))(BAD, 0)


@pytest.mark.parametrize(
    ("command", "answer"), [("exit 0", Answer.GOOD), ("exit 1", Answer.BAD), ("exit 125", Answer.UNUSABLE)]
)
def test_a_command_decides_by_its_exit_code(command, answer):
    assert JudgeByCommand(command, Machine({}).make)(BAD, 0).answer is answer


def test_a_command_finds_the_python_of_the_release_first(tmp_path):
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "python").symlink_to(sys.executable)

    judge = JudgeByCommand(
        f'test "$(command -v python)" = "{tmp_path}/bin/python"', lambda words: tmp_path / "bin" / "python"
    )

    assert judge(BAD, 0).answer is Answer.GOOD
