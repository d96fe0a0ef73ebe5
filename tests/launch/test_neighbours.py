import json
from pathlib import Path

import pytest

from jaxmeter.launch.bisect import Neighbours, NotMeasuredError
from jaxmeter.launch.options import UsageError

RIGHT = {"numerics": {"status": "ok", "reason": None}}
WRONG = {"numerics": {"status": "failed", "reason": "no attribute x"}}


class Machine:
    """Environments, measurements and comparisons that are only noted; a run that ends well is whole.

    Args:
      codes: By the end of a run's name.
      outcomes: Of the variants of each run, by name.
    """

    def __init__(self, codes=(), outcomes=None):
        self.codes, self.outcomes = dict(codes), outcomes or {"scan:jit": RIGHT}
        self.made, self.ran = [], []

    def make(self, packages):
        if packages == "jax==broken":
            raise UsageError("there is none")
        self.made.append(packages)
        return Path("env", packages, "bin", "python")

    def run(self, python, words, variables):
        self.ran.append((str(python), tuple(words), dict(variables)))
        out = Path(words[words.index("--out") + 1]) if "--out" in words else Path()
        run = out / words[words.index("--resume" if "--resume" in words else "--run-id") + 1]
        code = next((code for name, code in self.codes.items() if run.name.endswith(name)), 0)
        if code in (0, 3, 130):
            run.mkdir(exist_ok=True)
            (run / "manifest.json").touch()
        if code in (0, 3):
            variants = [{"name": name, "outcomes": outcomes} for name, outcomes in self.outcomes.items()]
            (run / "run.json").write_text(json.dumps({"cases": [{"name": "scan", "variants": variants}]}))
        if code == 130:  # as the shell
            raise KeyboardInterrupt
        return code


@pytest.fixture
def begin(tmp_path):
    """Measurements on a machine, of which the first one is done."""

    def measure(machine, *options, variant="", release="jax==0.9.0"):
        measuring = ("--backend", "cpu", *options, "--out", str(tmp_path))
        neighbours = Neighbours(tmp_path / "it", measuring, 6, machine.make, machine.run, variant)
        neighbours.begin(release)
        return neighbours

    return measure


def test_the_first_release_is_measured_by_itself_and_the_next_one_in_lock_step_with_it(begin, tmp_path):
    machine = Machine()

    runs = begin(machine)("jax==0.9.0", "jax==0.9.1", 0)

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
    assert runs == (tmp_path / "it-0.9.0", tmp_path / "it-0.9.1-against-0.9.0")


def test_later_releases_are_compared_with_the_first_run_of_a_release_and_a_second_attempt_has_twice_the_processes(
    begin,
):
    machine = Machine()
    neighbours = begin(machine)

    pairs = (("0", "1", 0), ("0", "1", 1), ("1", "2", 0), ("0", "2", 0))
    compared = [neighbours(f"jax==0.9.{before}", f"jax==0.9.{after}", attempt) for before, after, attempt in pairs]

    assert [tuple(run.name for run in runs) for runs in compared[-2:]] == [
        ("it-0.9.1-against-0.9.0", "it-0.9.2-against-0.9.1"),
        ("it-0.9.0", "it-0.9.2-against-0.9.0"),
    ]
    processes = [words[words.index("--processes") + 1] for _, words, _ in machine.ran[1:]]
    assert processes == ["6", "12", "6", "6"]
    assert machine.made == ["jax==0.9.0", "jax==0.9.1", "jax==0.9.2"]
    steps = ("0.9.1-against-0.9.0", "0.9.1-against-0.9.0-again", "0.9.2-against-0.9.1", "0.9.2-against-0.9.0")
    assert [run.name for run in neighbours.list_runs()] == [f"it-{name}" for name in ("0.9.0", *steps)]


@pytest.mark.parametrize(
    ("release", "reason"), [("jax==0.9.1", "the measurement ended with 77"), ("jax==broken", "there is none")]
)
def test_a_release_that_cannot_be_installed_or_measured_is_said(begin, release, reason):
    with pytest.raises(NotMeasuredError, match=reason):
        begin(Machine({"0.9.1-against-0.9.0": 77}))("jax==0.9.0", release, 0)


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
    with pytest.raises(NotMeasuredError, match=reason):
        begin(machine, variant=variant)


def test_a_variant_that_there_is_not_is_refused_with_those_that_there_are(begin):
    with pytest.raises(UsageError, match="--variant b:jit: there is none of this name; variants: scan:jit"):
        begin(Machine(), variant="b:jit")


# Interrupted


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
    idle = Machine()  # nothing is left to install or to measure
    runs = begin(idle)("jax==0.9.0", "jax==0.9.1", 0)
    assert (idle.made, idle.ran) == ([], [])
    assert [run.name for run in runs] == ["it-0.9.0", "it-0.9.1-against-0.9.0"]


def test_a_release_that_was_passed_over_is_tried_again_and_the_next_one_is_compared_with_it(begin):
    neighbours = begin(Machine({"0.9.1-against-0.9.0": 2}))
    with pytest.raises(NotMeasuredError):
        neighbours("jax==0.9.0", "jax==0.9.1", 0)
    neighbours("jax==0.9.0", "jax==0.9.2", 0)
    machine = Machine()
    neighbours = begin(machine)

    neighbours("jax==0.9.0", "jax==0.9.1", 0)
    neighbours("jax==0.9.1", "jax==0.9.2", 0)

    names = [words[words.index("--run-id") + 1] for _, words, _ in machine.ran]
    assert names == ["it-0.9.1-against-0.9.0", "it-0.9.2-against-0.9.1"]


def test_an_interrupted_run_that_cannot_be_finished_ends_all(begin):
    with pytest.raises(KeyboardInterrupt):
        begin(Machine({"0.9.1-against-0.9.0": 130, "0.9.0": 3}))("jax==0.9.0", "jax==0.9.1", 0)
    neighbours = begin(Machine({"0.9.1-against-0.9.0": 2}))

    with pytest.raises(UsageError, match=r"it-0\.9\.1-against-0\.9\.0 cannot be finished, for the reason above"):
        neighbours("jax==0.9.0", "jax==0.9.1", 0)


# Environment variables


def test_variables_are_set_for_the_later_release_in_a_run_of_their_own(begin):
    machine = Machine()
    neighbours = begin(machine)

    settings = ({}, {"XLA_FLAGS": "--xla_a=1"}, {"XLA_FLAGS": "--xla_a=2"})
    names = [neighbours("jax==0.9.0", "jax==0.9.1", 0, flags)[1].name for flags in settings]

    assert [variables for _, _, variables in machine.ran[1:]] == list(settings)
    assert len(set(names)) == 3
    assert all(name.startswith("it-0.9.1-against-0.9.0-with-") for name in names[1:])
