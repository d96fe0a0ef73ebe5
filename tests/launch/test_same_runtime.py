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
from tests.launch.shells import NotedShell, list_words

IMAGE_ID = f"sha256:{'1f0c9a7b' * 8}"
OWN = f"jaxmeter:cpu-1f0c9a7b3d52 {IMAGE_ID}"
THEIRS = f"registry:5000/team/jax:1 {IMAGE_ID}"


class PythonShell(NotedShell):
    """Answers what it is asked for Python's version."""

    python = "3.11.0"

    def ask(self, *command):
        return f"{self.python}\n" if "platform" in command[-1] else ""


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

    assert follow_baseline(PythonShell(tmp_path), "cpu", ["--quick"], baseline(image)) == options


@pytest.mark.parametrize(("known", "options"), [("registry:5000/team/jax:1", True), (IMAGE_ID, True), ("", False)])
def test_an_image_of_somebodys_own_is_used_where_it_is_here_and_never_pulled(
    tmp_path, engine, baseline, known, options
):
    docker = engine(is_there=True)
    docker.has(known)

    found = follow_baseline(PythonShell(tmp_path), "cpu", [], baseline(THEIRS))

    assert found == (("--image", known) if options else ())
    assert docker.calls("pull") == []


@pytest.mark.parametrize("words", [("--runtime", "container"), ("--image", "mine")])
def test_what_somebody_has_chosen_wins(tmp_path, engine, baseline, words):
    engine(is_there=True)

    assert follow_baseline(PythonShell(tmp_path), "cpu", words, baseline()) == ()


@pytest.fixture
def passed(tmp_path, monkeypatch, baseline):
    """Passes a gate beside a baseline in this environment; its exit code and the shell."""
    monkeypatch.setattr(gate, "offer_baseline", lambda *words: nullcontext())
    measured = []
    monkeypatch.setattr(gate, "run_harness", lambda shell, backend, request, run: measured.append(request.runtime) or 2)

    def run(*words, image=None, python=PythonShell.python, code=0):
        shell = PythonShell(tmp_path, {"runtime": code})
        shell.python = python
        ended = pass_gate(shell, [str(baseline(image)), *words])
        return ended, [list_words(command) for command in shell.ran], measured

    return run


def test_a_gate_measures_in_the_runtime_of_its_baseline(passed, engine):
    engine(is_there=True)

    _, said, measured = passed()

    assert measured == ["local"]
    (asked,) = [words for words in said if words[0] == "runtime"]
    assert asked[2:] == ["--python", "3.11.0"]


@pytest.mark.parametrize(("image", "python"), [(OWN, "3.11.0"), (None, "3.13.5")], ids=["no engine", "another Python"])
def test_where_it_cannot_be_had_nothing_is_measured_and_there_is_no_answer(passed, engine, image, python):
    engine(is_there=False)

    code, said, measured = passed(image=image, python=python, code=3)

    assert (code, measured) == (3, [])
    assert said[-1] == ["runtime", said[-1][1], "--python", python]


def test_a_runtime_that_was_chosen_is_measured_in_after_the_sentence(passed, engine):
    engine(is_there=True)

    _, said, measured = passed("--runtime", "local", image=OWN, code=3)

    assert measured == ["local"]
    assert said[-1][0] == "runtime"


def test_programs_alone_are_compared_whatever_the_runtime(passed, engine):
    engine(is_there=False)

    _, said, measured = passed("--exact", image=OWN, code=3)

    assert measured == ["auto"]
    assert "runtime" not in [words[0] for words in said]
