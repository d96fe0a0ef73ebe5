"""What is compared with a baseline is measured in its runtime, or one sentence says why not."""

from __future__ import annotations

from contextlib import nullcontext

import pytest

from jaxmeter.launch import gate
from jaxmeter.launch.engines import Engine
from jaxmeter.launch.gate import follow_baseline, pass_gate
from jaxmeter.launch.options import UsageError
from tests import samples
from tests.launch.engine_stand_in import Docker

IMAGE_ID = f"sha256:{'1f0c9a7b' * 8}"
OWN = f"jaxmeter:cpu-1f0c9a7b3d52 {IMAGE_ID}"
THEIRS = f"registry:5000/team/jax:1 {IMAGE_ID}"


class NotedShell:
    """Answers what it is asked for Python's version, and notes the programs that it runs."""

    def __init__(self, folder, python="3.11.0", codes=None):
        self.checkout, self.variables = folder, {"PATH": "", "JAXMETER_RUNTIME": "auto"}
        self.runtime, self.environments = "auto", folder
        self.python, self.codes = python, codes or {}
        self.said: list[list[str]] = []

    def install(self, *lock_names):
        pass

    def set_variable(self, name, value):
        pass

    def ask(self, *command):
        return f"{self.python}\n" if "platform" in command[-1] else ""

    def run(self, *command):
        words = list(command[command.index("jaxmeter") :])
        self.said.append(words)
        return self.codes.get(words[1], 0)

    def ran(self, program):
        return [words for words in self.said if words[0] == program]


@pytest.fixture
def engine(tmp_path, monkeypatch):
    """Has an engine be found or not; the stand-in."""
    docker = Docker(tmp_path / "engine")

    def choose(*, is_there):
        client = Engine(str(docker.client), "docker", "20.10.24") if is_there else None

        def choose_engine(runtime, variables):
            if runtime == "container" and client is None:
                raise UsageError("no container engine")
            return (None if runtime == "local" else client), "how"

        monkeypatch.setattr(gate, "choose_engine", choose_engine)
        return docker

    return choose


@pytest.fixture
def baseline(tmp_path):
    """A run of an image, or of none; its folder."""

    def make(image=None):
        return samples.write_run(tmp_path / "base", samples.run(environment=samples.environment(image=image)))

    return make


@pytest.mark.parametrize(
    ("image", "is_there", "options"),
    [
        (None, True, ("--runtime", "local")),
        (None, False, ("--runtime", "local")),
        (OWN, True, ("--runtime", "container")),
        (OWN, False, ()),
        (THEIRS, False, ()),
    ],
)
def test_a_measurement_follows_its_baseline_into_its_runtime(tmp_path, engine, baseline, image, is_there, options):
    engine(is_there=is_there)

    assert follow_baseline(NotedShell(tmp_path), "cpu", ["--quick"], baseline(image)) == options


@pytest.mark.parametrize(("known", "options"), [("registry:5000/team/jax:1", True), (IMAGE_ID, True), ("", False)])
def test_an_image_of_somebodys_own_is_used_where_it_is_here_and_never_pulled(
    tmp_path, engine, baseline, known, options
):
    docker = engine(is_there=True)
    docker.has(known)

    assert follow_baseline(NotedShell(tmp_path), "cpu", [], baseline(THEIRS)) == (("--image", known) if options else ())
    assert docker.calls("pull") == []


@pytest.mark.parametrize("words", [("--runtime", "container"), ("--runtime", "local"), ("--image", "mine")])
def test_what_somebody_has_chosen_wins(tmp_path, engine, baseline, words):
    engine(is_there=True)

    assert follow_baseline(NotedShell(tmp_path), "cpu", words, baseline()) == ()


@pytest.fixture
def passed(tmp_path, monkeypatch, baseline):
    """Passes a gate beside a baseline in this environment; its exit code and the shell."""
    monkeypatch.setattr(gate, "offer_baseline", lambda *words: nullcontext())
    measured = []

    def run_harness(shell, backend, request, run):
        measured.append(request.runtime)
        return 2

    monkeypatch.setattr(gate, "run_harness", run_harness)

    def run(*words, image=None, **shell):
        noted = NotedShell(tmp_path, **shell)
        code = pass_gate(noted, [str(baseline(image)), *words])
        return code, noted, measured

    return run


def test_a_gate_measures_in_the_runtime_of_its_baseline(passed, engine):
    engine(is_there=True)

    _, shell, measured = passed()

    assert measured == ["local"]
    (asked,) = [words for words in shell.ran("jaxmeter") if words[1] == "runtime"]
    assert asked[3:] == ["--python", "3.11.0"]


@pytest.mark.parametrize(("image", "python"), [(OWN, "3.11.0"), (None, "3.13.5")], ids=["no engine", "another Python"])
def test_where_it_cannot_be_had_nothing_is_measured_and_there_is_no_answer(passed, engine, image, python):
    engine(is_there=False)

    code, shell, measured = passed(image=image, python=python, codes={"runtime": 3})

    assert (code, measured) == (3, [])
    last = shell.ran("jaxmeter")[-1]
    assert last[1:] == ["runtime", last[2], "--python", python]


def test_a_runtime_that_was_chosen_is_measured_in_after_the_sentence(passed, engine):
    engine(is_there=True)

    _, shell, measured = passed("--runtime", "local", image=OWN, codes={"runtime": 3})

    assert measured == ["local"]
    assert shell.ran("jaxmeter")[-1][1] == "runtime"


def test_programs_alone_are_compared_whatever_the_runtime(passed, engine):
    engine(is_there=False)

    _, shell, measured = passed("--exact", image=OWN, codes={"runtime": 3})

    assert measured == ["auto"]
    assert not [words for words in shell.ran("jaxmeter") if words[1] == "runtime"]
