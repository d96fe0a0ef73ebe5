import json

import pytest

from jaxmeter.launch.engines import EngineAnswer
from jaxmeter.launch.options import UsageError
from jaxmeter.launch.request import choose_engine

ELSEWHERE = ["ssh://cluster", "tcp://10.0.0.5:2375", "tcp://localhost.example.com:2375", "tcp://127.example.com:2375"]
HERE = ["unix:///run/user/1000/docker.sock", "tcp://127.0.0.1:2375", "tcp://localhost:2375", "tcp://[::1]:2375", ""]


def put_client(folder, name):
    client = folder / name
    client.write_text("")
    client.chmod(0o755)


@pytest.fixture
def docker_on_path(tmp_path):
    """A machine with a docker, as environment variables and a way to ask it."""
    put_client(tmp_path, "docker")

    def ask(command):
        info = {"ServerVersion": "20.10.24", "SecurityOptions": ["name=rootless"]}
        answers = {"info": EngineAnswer(0, json.dumps(info)), "version": EngineAnswer(0, "20.10.24")}
        return answers.get(command[1], EngineAnswer(0))

    return {"PATH": str(tmp_path)}, ask


def ask_nobody(command):
    pytest.fail(f"asked {command}")


@pytest.mark.parametrize("runtime", ["auto", "container"])
def test_an_engine_that_is_here_is_used_and_named(docker_on_path, runtime):
    variables, ask = docker_on_path

    engine, line = choose_engine(runtime, variables, ask)

    assert engine.kind == "docker"
    assert line == "measuring in a container of docker 20.10.24 (rootless)"


def test_the_local_environment_is_used_where_asked_and_no_engine_is_bothered(docker_on_path):
    variables, _ = docker_on_path

    engine, line = choose_engine("local", {**variables, "DOCKER_HOST": "ssh://cluster"}, ask_nobody)

    assert engine is None
    assert line == "measuring in a local virtual environment, as asked"
    assert choose_engine("here", variables, ask_nobody) == (None, "measuring in the environment of this command")


def test_without_an_engine_the_local_environment_is_used_or_a_container_that_was_asked_for_is_an_error(tmp_path):
    engine, line = choose_engine("auto", {"PATH": str(tmp_path)}, ask_nobody)

    assert engine is None
    assert "no container engine is installed" in line
    assert "measuring in a local virtual environment instead" in line
    with pytest.raises(UsageError, match=r"no container engine is installed(.|\n)*apt install podman.*--runtime local"):
        choose_engine("container", {"PATH": str(tmp_path)}, ask_nobody)


def test_an_engine_of_another_machine_is_refused_where_it_is_asked_for(docker_on_path):
    variables, ask = docker_on_path
    elsewhere = {**variables, "DOCKER_HOST": "ssh://cluster"}

    with pytest.raises(UsageError, match="its engine is on another machine"):
        choose_engine("container", elsewhere, ask)
    with pytest.raises(UsageError, match="JAXMETER_ENGINE=docker: its engine is on another machine"):
        choose_engine("auto", {**elsewhere, "JAXMETER_ENGINE": "docker"}, ask)


def ask_podman(command):
    return EngineAnswer(0, json.dumps({"version": {"Version": "5.4.2"}}))


def test_another_engine_is_used_while_dockers_variable_names_another_machine_and_the_line_says_so(tmp_path):
    put_client(tmp_path, "docker")
    put_client(tmp_path, "podman")

    engine, line = choose_engine("auto", {"PATH": str(tmp_path), "DOCKER_HOST": "ssh://cluster"}, ask_podman)

    assert engine.kind == "podman"
    assert line.endswith("(1 passed over: nox -s doctor gives the reason)")


@pytest.mark.parametrize("address", [*ELSEWHERE, *HERE])
def test_an_engine_of_another_machine_is_passed_over_since_results_would_stay_there(docker_on_path, address):
    variables, ask = docker_on_path

    engine, line = choose_engine("auto", {**variables, "DOCKER_HOST": address}, ask)

    assert (engine is None) is ("its engine is on another machine" in line) is (address in ELSEWHERE)


def test_a_context_or_podmans_variable_may_name_another_machine_too(docker_on_path, tmp_path):
    variables, ask = docker_on_path

    def ask_of_context(command):
        return EngineAnswer(0, "ssh://cluster\n") if command[1] == "context" else ask(command)

    assert choose_engine("auto", variables, ask_of_context)[0] is None
    (tmp_path / "docker").rename(tmp_path / "podman")
    engine, line = choose_engine(
        "auto", {**variables, "CONTAINER_HOST": "ssh://core@vm:22/run/podman.sock"}, ask_podman
    )
    assert (engine, "its engine is on another machine" in line) == (None, True)
