"""What the launcher knows of TPUs, beside what is said of them in test_preflight."""

import pytest

from jaxmeter.launch.command_line import read_request
from jaxmeter.launch.engines import Engine
from jaxmeter.launch.host import Host
from jaxmeter.launch.tpu import TPUS

AUTO = {"JAXMETER_RUNTIME": "auto"}
DOCKER = Engine("docker", "docker", "28")
ROOTLESS = Engine("podman", "podman", "5", rootless=True)


def arguments(engine, options=()):
    host = Host(tpu_chips=1, tpu_nodes=("/dev/vfio/0", "/dev/vfio/vfio"), tpu_groups=(27, 101))
    return TPUS.container_arguments(engine, read_request("tpu", options, AUTO), host)


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
    files = ("--device", "/dev/vfio/0", "--device", "/dev/vfio/vfio")

    assert arguments(engine) == (*files, *groups, "--ulimit", "memlock=68719476736")


def test_a_container_that_is_given_everything_is_given_nothing_one_by_one():
    assert arguments(DOCKER, ["--privileged"]) == ()


def test_the_tpus_of_a_machine_are_described_by_their_device_files():
    assert TPUS.describe(Host(tpu_nodes=("/dev/accel0", "/dev/accel1"))) == "/dev/accel0, /dev/accel1"


@pytest.mark.parametrize(
    ("engine", "mode", "is_problem"),
    [
        (DOCKER, 0o660, False),
        (DOCKER, 0o671, False),
        (DOCKER, 0o640, True),
        (DOCKER, 0o620, True),
        (DOCKER, 0o606, True),
        (ROOTLESS, 0o660, True),
        (None, 0o660, True),
    ],
    ids=str,
)
def test_a_file_that_is_closed_to_the_user_is_open_to_a_root_engines_container_if_its_group_may_read_and_write_it(
    tmp_path, monkeypatch, engine, mode, is_problem
):
    node = tmp_path / "accel0"
    node.touch()
    node.chmod(mode)
    monkeypatch.setattr("os.access", lambda path, mode: False)

    problems = TPUS.find_problems(read_request("tpu", [], AUTO), Host(tpu_nodes=(str(node),)), engine)

    assert [problem.what for problem in problems] == ([f"no permission for {node}"] if is_problem else [])


@pytest.mark.parametrize(
    ("engine", "more"),
    [(DOCKER, "; or give the container everything: --privileged"), (ROOTLESS, ""), (None, "")],
    ids=str,
)
def test_giving_the_container_everything_is_a_remedy_only_where_the_engine_has_roots_rights(engine, more):
    host = Host(tpu_nodes=("/dev/not-there",))

    (problem,) = TPUS.find_problems(read_request("tpu", [], AUTO), host, engine)

    assert problem.remedy == f"let a group of your user read and write them, or run as root{more}"
