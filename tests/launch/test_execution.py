"""Starting and stopping containers, with a client that only remembers what it was told."""

import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from jaxmeter.launch.engines import Engine
from jaxmeter.launch.execution import build_image, keep_container
from jaxmeter.launch.images import LOCKS, Build, Image
from jaxmeter.launch.options import UsageError
from tests.end_to_end.conftest import wait_for_file
from tests.launch.engine_stand_in import Docker

CHECKOUT = Path(__file__).parents[2]

RUN = """
import sys
from jaxmeter.launch.engines import Engine
from jaxmeter.launch.execution import run_container
client = sys.argv[1]
try:
    run_container(Engine(client, "docker", "20.10"), [client, "run", "--name", "one"], "one")
except KeyboardInterrupt:
    sys.exit(130)
"""


@pytest.mark.end_to_end
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_is_handed_to_the_container_once(tmp_path, number):
    docker = Docker(tmp_path / "engine", waits=True)
    launcher = subprocess.Popen(
        [sys.executable, "-c", RUN, docker.client], cwd=CHECKOUT, start_new_session=True, stderr=subprocess.PIPE
    )
    wait_for_file(launcher, docker.folder, "running")

    os.killpg(launcher.pid, number)  # as Ctrl-C in a terminal does: the whole group gets it
    launcher.communicate(timeout=30)

    assert launcher.returncode == 130
    assert docker.calls("kill") == [["kill", "--signal", "INT", "one"]]
    assert docker.calls("rm") == [["rm", "--force", "one"]]
    assert not (docker.folder / "interrupted directly").exists()


def keep(docker, is_ready):
    engine = Engine(str(docker.client), "docker", "20.10")
    return keep_container(engine, [str(docker.client), "run", "--name", "one"], "one", is_ready=is_ready)


def test_a_container_is_kept_beside_a_block_and_none_is_left(tmp_path):
    docker = Docker(tmp_path / "engine", waits=True)

    with keep(docker, (docker.folder / "running").exists):
        assert len(docker.calls("run")) == 1
        assert docker.calls("rm") == []

    assert docker.calls("rm") == [["rm", "--force", "one"]]


def test_a_kept_container_that_ends_at_once_says_why(tmp_path, capsys):
    docker = Docker(tmp_path / "engine", **{"other says": "no space left on device", "other code": 125})

    with pytest.raises(UsageError, match="could not run the container"), keep(docker, lambda: False):
        pass

    assert "no space left on device" in capsys.readouterr().err
    assert docker.calls("rm") == [["rm", "--force", "one"]]


def test_a_disk_that_is_too_full_is_refused_before_the_build(tmp_path, monkeypatch):
    docker = Docker(tmp_path / "engine")
    engine = Engine(str(docker.client), "docker", "20.10", storage="/var/lib/docker")

    said = r"/var/lib/docker has 15\.0 GB free, and building the gpu image takes up to 15 GB"
    with monkeypatch.context() as patched:
        patched.setattr("jaxmeter.launch.execution.free_bytes", lambda folder: LOCKS["gpu"].disk_bytes - 1)
        with pytest.raises(UsageError, match=said):
            build_image(engine, Build(Image("gpu", "base", CHECKOUT)))

    assert docker.calls("build") == []
    blind = replace(engine, storage=None)  # room that cannot be known stops no build
    assert build_image(blind, Build(Image("gpu", "base", CHECKOUT))) == f"sha256:{'1f0c9a7b' * 8}"
