"""What the launcher knows of TPUs, beside what is said of them in test_preflight."""

import os

import pytest

from jaxmeter.launch.command_line import read_request
from jaxmeter.launch.engines import Engine
from jaxmeter.launch.host import Host
from jaxmeter.launch.tpu import TPUS

AUTO = {"JAXMETER_RUNTIME": "auto"}
DOCKER = Engine("docker", "docker", "28")
ROOTLESS = Engine("podman", "podman", "5", rootless=True)
HOST = Host(tpu_chips=1, tpu_nodes=("/dev/vfio/0", "/dev/vfio/vfio"), tpu_groups=(27, 101))


@pytest.mark.parametrize(
    ("engine", "groups"),
    [
        (DOCKER, ("--group-add", "27", "--group-add", "101")),
        (Engine("docker", "docker", "28", rootless=True), ()),
        (Engine("podman", "podman", "5"), ("--group-add", "27", "--group-add", "101")),
        (ROOTLESS, ("--group-add", "keep-groups")),
    ],
    ids=str,
)
def test_a_container_is_given_the_device_files_their_groups_and_the_right_to_lock_memory(engine, groups):
    given = (*("--device", "/dev/vfio/0", "--device", "/dev/vfio/vfio"), *groups, "--ulimit", "memlock=68719476736")

    assert TPUS.container_arguments(engine, read_request("tpu", [], AUTO), HOST) == given
    assert TPUS.container_arguments(engine, read_request("tpu", ["--privileged"], AUTO), HOST) == ()  # it has all
    assert TPUS.describe(HOST) == "/dev/vfio/0, /dev/vfio/vfio"


@pytest.mark.parametrize(
    ("engine", "mode", "is_open", "is_problem"),
    [
        (None, 0o600, True, False),
        (DOCKER, 0o660, False, False),
        (DOCKER, 0o671, False, False),
        (DOCKER, 0o640, False, True),
        (DOCKER, 0o620, False, True),
        (DOCKER, 0o606, False, True),
        (DOCKER, None, False, True),
        (ROOTLESS, 0o660, False, True),
        (None, 0o660, False, True),
    ],
    ids=str,
)
def test_a_file_that_is_closed_to_the_user_is_open_to_a_root_engines_container_if_its_group_may_read_and_write_it(
    tmp_path, monkeypatch, engine, mode, is_open, is_problem
):
    node, asked = tmp_path / "accel0", []
    if mode is not None:
        node.touch()
        node.chmod(mode)
    monkeypatch.setattr("os.access", lambda path, mode: asked.append((path, mode)) or is_open)

    problems = TPUS.find_problems(read_request("tpu", [], AUTO), Host(tpu_nodes=(str(node),)), engine)

    assert asked == [(str(node), os.R_OK | os.W_OK)]
    assert [problem.what for problem in problems] == ([f"no permission for {node}"] if is_problem else [])
    assert ["--privileged" in problem.remedy for problem in problems] == [engine is DOCKER] * is_problem
