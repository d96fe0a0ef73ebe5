"""Clients are empty executables on a PATH of the test's own; what they would say is in a table."""

import json
import os
import sys
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from jaxmeter.launch.engines import Engine, EngineAnswer, Rejected, Search, ask_client, find_engine
from jaxmeter.launch.options import UsageError
from tests.golden_texts import check_golden_scenes

NEVER = EngineAnswer(None, stderr="no answer within 20 s")
BUILDX = EngineAnswer(0, "github.com/docker/buildx v0.24.0 d0e5e86")
UNKNOWN_COMMAND = EngineAnswer(1, stderr="docker: 'buildx' is not a docker command.\nSee 'docker --help'")
DAEMON_DOWN = "Cannot connect to the Docker daemon at unix:///var/run/docker.sock. Is the docker daemon running?"
NO_PERMISSION = (
    "permission denied while trying to connect to the Docker daemon socket at unix:///var/run/docker.sock: "
    'Get "http://%2Fvar%2Frun%2Fdocker.sock/v1.24/info": dial unix /var/run/docker.sock: connect: permission denied'
)
NO_SOCKET = (
    "failed to connect to the docker API at unix:///var/run/docker.sock; check if the path is correct and if the "
    "daemon is running: dial unix /var/run/docker.sock: connect: no such file or directory"
)
TRAITS = ("rootless", "remapped", "selinux", "nvidia_runtime", "cdi")
PODMAN = {
    "host": {"security": {"rootless": False, "selinuxEnabled": False, "seccompEnabled": True}},
    "store": {"graphRoot": "/var/lib/containers/storage"},
    "version": {"APIVersion": "4.3.1", "Version": "4.3.1"},
}


def docker_info(**changes):
    return {
        "ServerVersion": "28.2.2",
        "DockerRootDir": "/var/lib/docker",
        "Runtimes": {"io.containerd.runc.v2": {"path": "runc"}, "runc": {"path": "runc"}},
        "SecurityOptions": ["name=seccomp,profile=builtin", "name=cgroupns"],
        "ClientInfo": {"Debug": False, "Context": "default", "Plugins": [], "Warnings": None},
        **changes,
    }


def docker(info=None, *, version="28.2.2", buildx=BUILDX):
    """What a docker client says, by the beginning of what it is asked."""
    return {
        "--version": EngineAnswer(0, f"Docker version {version}, build e6534b4\n"),
        "info": info if isinstance(info, EngineAnswer) else EngineAnswer(0, json.dumps(info or docker_info())),
        "version": EngineAnswer(0, f"{version}\n"),
        "buildx": buildx,
    }


def podman(info=PODMAN):
    return {
        "--version": EngineAnswer(0, "podman version 4.3.1\n"),
        "info": info if isinstance(info, EngineAnswer) else EngineAnswer(0, json.dumps(info)),
    }


def nerdctl(**changes):
    info = {"ServerVersion": "2.1.2", "SecurityOptions": ["name=seccomp,profile=builtin"], **changes}
    return {"--version": EngineAnswer(0, "nerdctl version 2.1.2\n"), "info": EngineAnswer(0, json.dumps(info))}


def silent(*errors):
    """What a docker 20 prints, and ends with 0, where its daemon gives errors."""
    return EngineAnswer(0, json.dumps({"ServerErrors": errors, "ClientInfo": {"Context": "default"}}))


def emptied(words):
    """What a docker 28 prints, every field empty, and complains of on stderr."""
    return EngineAnswer(1, json.dumps(docker_info(ServerVersion="", DockerRootDir="", Runtimes=None)), words)


REJECTED = {
    "docker 20 without its daemon": docker(silent(DAEMON_DOWN)),
    "docker 28 without its daemon": docker(emptied(DAEMON_DOWN)),
    "docker 29 without its daemon": docker(emptied(NO_SOCKET)),
    "docker without its daemon or any description": docker(EngineAnswer(1, "", DAEMON_DOWN)),
    "docker 20 without permission": docker(silent(NO_PERMISSION)),
    "docker 28 without permission": docker(emptied(NO_PERMISSION)),
    **{
        f"docker that describes itself as {words!r}": docker(EngineAnswer(0, words)) for words in ("not JSON", "[]", "")
    },
    "docker that does not answer": dict.fromkeys(("--version", "info", "version", "buildx"), NEVER),
    "docker without buildx": docker(buildx=UNKNOWN_COMMAND),
    "podman that fails": podman(
        EngineAnswer(125, "", f"Cannot connect to Podman.\nError: unable to connect: {NO_SOCKET}\n")
    ),
    "podman that ends with an error whatever it prints": podman(EngineAnswer(125, json.dumps(PODMAN))),
    "nerdctl without buildkit": nerdctl(),
    "nerdctl without containerd": {
        **nerdctl(),
        "info": EngineAnswer(1, json.dumps({"ServerVersion": ""}), 'level=fatal msg="cannot access containerd socket"'),
    },
}
"""What clients say that cannot be used."""


@dataclass
class Machine:
    """A PATH of folders, and what the clients in them say."""

    path: list[str] = field(default_factory=list)
    clients: dict[str, dict[str, EngineAnswer]] = field(default_factory=dict)
    asked: list[list[str]] = field(default_factory=list)

    def ask(self, command):
        self.asked.append(command)
        answers = self.clients.get(command[0], {})
        return answers.get(command[1], EngineAnswer(None, stderr="it cannot be started: No such file or directory"))

    def find(self, **variables):
        return find_engine({"PATH": os.pathsep.join(self.path), **variables}, self.ask)


@pytest.fixture
def machine(tmp_path):
    return Machine([str(tmp_path / "first"), str(tmp_path / "second")])


@pytest.fixture
def install(machine, tmp_path):
    def put(name, answers, folder="first"):
        (tmp_path / folder).mkdir(exist_ok=True)
        client = tmp_path / folder / name
        client.touch(0o755)
        machine.clients[str(client)] = answers
        return str(client)

    return put


def test_clients_that_cannot_be_used_are_rejected_with_reason_and_remedy_by_their_golden_text(install, machine):
    said = {}
    for number, (name, answers) in enumerate(REJECTED.items()):
        kind = name.partition(" ")[0]
        machine.path = [str(Path(install(kind, answers, folder=str(number))).parent)]
        machine.clients["buildctl"] = {"debug": EngineAnswer(1 if name == "nerdctl without buildkit" else 0)}
        search = machine.find()
        assert search.engine is None
        (rejected,) = search.rejected
        assert Path(rejected.client) == Path(machine.path[0], kind)
        said[name] = (rejected.reason, rejected.remedy)

    check_golden_scenes("engines", said)


NERDCTL = nerdctl(SecurityOptions=["name=rootless"], CDISpecDirs=["/etc/cdi"])


@pytest.mark.parametrize(
    ("name", "answers", "engine"),
    [
        (
            "docker",
            docker(docker_info(CDISpecDirs=["/etc/cdi"])),
            Engine("", "docker", "28.2.2", storage="/var/lib/docker"),
        ),
        ("podman", podman(), Engine("", "podman", "4.3.1", storage="/var/lib/containers/storage")),
        ("docker", podman(), Engine("", "podman", "4.3.1", storage="/var/lib/containers/storage")),
        ("nerdctl", NERDCTL, Engine("", "nerdctl", "2.1.2", rootless=True)),
    ],
    ids=["docker", "podman", "podman under the name of docker", "nerdctl"],
)
def test_a_client_that_answers_and_builds_is_described_by_its_own_words(machine, install, name, answers, engine):
    client = install(name, answers)
    machine.clients["buildctl"] = {"debug": EngineAnswer(0)}

    assert machine.find() == Search(replace(engine, client=client, cdi=True), ())


@pytest.mark.parametrize(
    ("name", "info", "traits"),
    [
        ("docker", docker_info(SecurityOptions=["name=seccomp,profile=builtin", "name=rootless"]), ["rootless"]),
        ("docker", docker_info(SecurityOptions=["name=userns"]), ["remapped"]),
        ("docker", docker_info(SecurityOptions=["name=selinux"]), ["selinux"]),
        ("docker", docker_info(Runtimes={"runc": {}, "nvidia": {"path": "nvidia-runtime"}}), ["nvidia_runtime"]),
        ("docker", docker_info(Runtimes=None, SecurityOptions=None, CDISpecDirs=None), []),
        ("podman", {"host": {"security": {"rootless": True}}}, ["rootless", "cdi"]),
        ("podman", {"host": {"security": {"selinuxEnabled": True}}}, ["selinux", "cdi"]),
        ("podman", {"host": None, "store": None, "version": None}, ["cdi"]),
    ],
)
def test_docker_and_podman_tell_how_they_run_containers(machine, install, name, info, traits):
    install(name, docker(info) if name == "docker" else podman(info))

    engine = machine.find().engine

    assert [trait for trait in TRAITS if getattr(engine, trait)] == traits


def test_a_client_that_does_not_answer_is_rejected_and_the_next_one_is_used(machine, install):
    stuck = install("docker", {})
    machine.clients[stuck] = dict.fromkeys(("--version", "info", "version", "buildx"), NEVER)
    used = install("podman", podman())

    search = machine.find()

    assert search.engine.client == used
    assert search.rejected == (Rejected(stuck, "no answer within 20 s", "see whether `docker info` works"),)


@pytest.mark.parametrize(
    ("version", "has_buildx", "can_build"),
    [("22.0.0+dfsg1", False, True), ("23.0.0", False, False), ("23.0.0", True, True), ("", False, False)],
)
def test_docker_builds_by_itself_before_version_23_and_with_buildx_since(
    machine, install, version, has_buildx, can_build
):
    install("docker", docker(version=version, buildx=EngineAnswer(0) if has_buildx else UNKNOWN_COMMAND))

    assert (machine.find().engine is not None) == can_build


def test_a_second_docker_on_path_is_used_where_the_first_cannot_build_and_one_that_is_there_twice_is_asked_once(
    machine, install, tmp_path
):
    first = install("docker", docker(buildx=UNKNOWN_COMMAND), folder="first")
    second = install("docker", docker(version="20.10.24", buildx=UNKNOWN_COMMAND), folder="third")
    (tmp_path / "second").symlink_to(tmp_path / "first")
    machine.path.append(str(tmp_path / "third"))

    search = machine.find()

    assert search.engine.client == second
    assert [rejected.client for rejected in search.rejected] == [first]


def test_docker_is_tried_before_podman_before_nerdctl_and_one_that_can_be_used_ends_the_search(machine, install):
    for name in ("nerdctl", "podman", "docker"):
        install(name, {})
    assert [Path(rejected.client).name for rejected in machine.find().rejected] == ["docker", "podman", "nerdctl"]
    machine.asked.clear()

    docker_client = install("docker", docker())

    assert machine.find().engine.client == docker_client
    assert {command[0] for command in machine.asked} == {docker_client}


@pytest.mark.parametrize(
    ("named", "used"),
    [("podman", "podman"), ("docker-28", "docker-28"), ("", "docker"), ("by its path", "elsewhere")],
)
def test_the_engine_that_the_user_names_is_used_alone(machine, install, named, used):
    clients = {name: install(name, docker()) for name in ("docker", "docker-28")}
    clients |= {"podman": install("podman", podman()), "elsewhere": install("podman", podman(), folder="elsewhere")}

    engine = machine.find(JAXMETER_ENGINE=clients["elsewhere"] if named == "by its path" else named).engine

    assert (engine.client, engine.kind) == (clients[used], "docker" if "docker" in used else "podman")


@pytest.mark.parametrize(
    ("named", "message"),
    [
        ("nerdctl", r"nerdctl is not there or not executable.*--runtime local"),
        ("lxc", "lxc is of no known kind; known are docker, podman, nerdctl"),
        ("docker", "docker: Cannot connect .*; start the daemon"),
    ],
)
def test_an_engine_that_was_named_and_cannot_be_used_is_an_error_and_no_other_one_takes_its_place(
    machine, install, named, message
):
    for name, answers in {"docker": docker(EngineAnswer(1, "", DAEMON_DOWN)), "podman": podman(), "lxc": {}}.items():
        install(name, answers)

    with pytest.raises(UsageError, match=f"^JAXMETER_ENGINE={message}"):
        machine.find(JAXMETER_ENGINE=named)


def test_without_an_engine_the_search_says_what_it_looked_for_and_why_each_client_cannot_be_used(machine):
    search = machine.find()
    rejected = (Rejected("/a/docker", "is down", "start it"), Rejected("/b/podman", "is broken", "mend it"))

    assert search == Search(None, ())
    assert search.why_none() == "no container engine is installed (looked for docker, podman, nerdctl on PATH)"
    assert Search(None, rejected).why_none() == (
        "no container engine can be used:\n  /a/docker: is down; start it\n  /b/podman: is broken; mend it"
    )


def test_a_clients_answer_has_its_exit_code_and_both_of_its_streams_or_says_why_there_is_none(tmp_path):
    code, waits = "import sys; print('out'); print('err', file=sys.stderr); sys.exit(3)", "import time; time.sleep(30)"
    not_started = EngineAnswer(None, stderr="it cannot be started: No such file or directory")

    assert ask_client([sys.executable, "-c", code]) == EngineAnswer(3, "out\n", "err\n")
    assert ask_client([str(tmp_path / "docker")]) == not_started
    assert ask_client([sys.executable, "-c", waits], timeout_s=0.05) == EngineAnswer(
        None, stderr="no answer within 0.05 s"
    )


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (EngineAnswer(1, "out", "a\nlast\n"), "last"),
        (EngineAnswer(1, "a\nout\n"), "out"),
        (EngineAnswer(7), "it ended with exit code 7"),
    ],
)
def test_a_clients_complaint_is_the_last_line_that_it_printed(answer, words):
    assert answer.complaint == words


def test_real_clients_on_path_are_found_and_asked(tmp_path):
    client = tmp_path / "podman"
    client.write_text(f"#!/bin/sh\necho '{json.dumps(PODMAN)}'\n")
    client.chmod(0o755)

    assert find_engine({"PATH": str(tmp_path)}).engine.client == str(client)
