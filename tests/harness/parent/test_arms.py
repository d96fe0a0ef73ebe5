"""Servers of another container: here of another process, which shares a folder with this one."""

from __future__ import annotations

import os
import platform
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from jaxmeter.harness.machine.platforms import BACKENDS
from jaxmeter.harness.parent import arms
from jaxmeter.harness.parent.arms import ArmServer, choose_steering, exchange_variables
from jaxmeter.harness.parent.fork_client import ServerError, ServerLostError
from jaxmeter.harness.parent.servers import Servers
from jaxmeter.harness.record import OtherEnvironment

CODE = "from jaxmeter.harness.parent.arms import main; main()"
VARIABLES = {**os.environ, "JAX_PLATFORMS": "cpu"}


def wait_for(condition):
    """Until something is so; the test fails by its own time limit."""
    until = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.02)


def start(folder: Path, code: str = CODE) -> subprocess.Popen[bytes]:
    """A process like the one that the launcher starts in another container."""
    return subprocess.Popen([sys.executable, "-c", code, str(folder / "gateway")], stdin=subprocess.PIPE, env=VARIABLES)


@pytest.fixture(scope="module")
def there(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[subprocess.Popen[bytes], OtherEnvironment]]:
    """One for all; the tests that end it come last."""
    folder = tmp_path_factory.mktemp("t")
    with start(folder) as process:
        wait_for((folder / "gateway").is_socket)
        yield process, make(folder / "gateway")
        process.kill()


def make(path: Path | str) -> OtherEnvironment:
    return OtherEnvironment(python=str(path), version=platform.python_version(), packages={}, variables={})


def list_servers(process: subprocess.Popen[bytes]) -> list[int]:
    """Process ids of what it has started, and of what that has."""
    found = [process.pid]
    for one in found:
        for children in Path(f"/proc/{one}/task").glob("*/children"):
            found += map(int, children.read_text().split())
    return found[1:]


def test_a_server_of_another_container_answers_is_started_again_where_it_has_ended_and_ends_with_its_use(there):
    process, environment = there
    with socket.socket(socket.AF_UNIX) as connection:  # one that asks for nothing costs itself alone
        connection.connect(environment.python)
    with ArmServer(environment, VARIABLES) as server:
        assert not list_servers(process)
        started = server.start(0)
        assert not started.is_ready  # it is not waited for until it is reached
        assert server.start(0) is started
        first = Path(server.reach(0))
        assert started.is_ready
        assert first == started.folder / "socket"
        assert first.is_socket()
        assert first.parent.parent == Path(environment.python).parent  # a folder that both see
        assert len(first.parent.name) < 12  # a socket's whole path has 107 bytes at most
        assert list_servers(process)
        assert server.start(0) is started
        assert server.reach(0) == str(first)

        os.kill(list_servers(process)[-1], signal.SIGKILL)
        wait_for(lambda: not started.server.is_alive())
        second = server.reach(0)
        assert second != str(first)
        assert server.reach(1) != second
        assert not Path(second).exists()

    wait_for(lambda: not list_servers(process))
    assert [one.name for one in Path(environment.python).parent.iterdir()] == ["gateway"]


def test_what_starts_servers_ends_with_its_standard_input_and_they_with_it(there):
    process, environment = there
    with ArmServer(environment, VARIABLES) as server:
        server.reach(0)
        servers = list_servers(process)
        assert servers
        process.stdin.close()

        assert process.wait(timeout=10) == 0
        wait_for(lambda: not any(map(is_running, servers)))


def is_running(pid: int) -> bool:
    """Whether it has not ended, or only waits for being noticed."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_what_a_server_there_complains_of_is_said(tmp_path):
    code = f"import sys; sys.executable = {str(make_false_python(tmp_path))!r}; {CODE}"
    with start(tmp_path, code) as process:
        wait_for((tmp_path / "gateway").is_socket)
        with (
            ArmServer(make(tmp_path / "gateway"), VARIABLES) as server,
            pytest.raises(ServerError, match="no module named jax"),
        ):
            server.reach(0)
        process.kill()


@pytest.mark.parametrize(
    ("line", "said"), [("kill -STOP $$", "did not start within 1 s"), ("kill -KILL $$", "was ended by signal 9")]
)
def test_an_interpreter_that_is_stopped_or_ended_is_no_fault_of_what_was_asked(tmp_path, monkeypatch, line, said):
    monkeypatch.setattr(arms, "START_LIMIT_S", 1.0)
    python = make_false_python(tmp_path, line)

    with ArmServer(make(python), VARIABLES) as server, pytest.raises(ServerLostError, match=said):
        server.reach(0)


def make_false_python(folder: Path, line: str = "exit 1") -> Path:
    path = folder / "python"
    path.write_text(f"#!/bin/sh\necho 'no module named jax' >&2\n{line}\n")
    path.chmod(0o755)
    return path


def test_a_container_that_has_ended_is_said(there):
    process, environment = there
    process.kill()
    process.wait()

    with ArmServer(environment, VARIABLES) as server, pytest.raises(ServerError, match="the other container has ended"):
        server.start(0)


def test_another_container_takes_what_steers_jax_and_keeps_its_own_files():
    todays = {"XLA_FLAGS": "--a", "JAX_PLATFORMS": "cpu", "OMP_NUM_THREADS": "2", "JAXMETER_DATA": "/d"}
    here = {**todays, "LD_PRELOAD": "here.so", "PATH": "/here", "PYTHONPATH": "/code", "JAXMETER_IMAGE": "here"}
    own = {"XLA_FLAGS": "--b", "JAX_ENABLE_X64": "1", "LD_PRELOAD": "there.so", "PATH": "/there"}

    assert choose_steering(here) == todays
    assert exchange_variables(own, choose_steering(here)) == {**todays, "LD_PRELOAD": "there.so", "PATH": "/there"}


@pytest.mark.parametrize(("lock_step", "expected"), [(None, "true"), (make("python"), "false")])
def test_two_environments_never_take_a_gpus_memory_ahead(tmp_path, monkeypatch, lock_step, expected):
    monkeypatch.setenv("XLA_PYTHON_CLIENT_PREALLOCATE", "true")
    servers = Servers(ExitStack(), tmp_path, None, (), lock_step, None)

    assert servers._make_variables(BACKENDS["gpu"])["XLA_PYTHON_CLIENT_PREALLOCATE"] == expected
