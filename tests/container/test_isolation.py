"""What a program sees from inside a container: its results, its device, and nothing else of the machine."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from jaxmeter.launch.command_line import read_request
from jaxmeter.launch.containers import forwarded_variables
from jaxmeter.launch.host import look_at_host
from jaxmeter.launch.nvidia import NVIDIA_GPUS
from tests.container.conftest import run_inside

pytestmark = pytest.mark.container

LOOK = """
import errno, json, os, pathlib, socket

def status(name):
    lines = pathlib.Path("/proc/self/status").read_text().splitlines()
    return next(line.split()[1] for line in lines if line.startswith(name + ":"))

def text(path):
    try:
        return pathlib.Path(path).read_text().strip()
    except OSError:
        return ""

def writes(folder):
    try:
        pathlib.Path(folder, "x").write_text("x")
        return "yes"
    except OSError as error:
        return errno.errorcode[error.errno]

shared = os.statvfs("/dev/shm")
print(json.dumps({
    "user": [os.getuid(), os.getgid()],
    "root": writes("/"),
    "code": writes("/opt/jaxmeter"),
    "tmp": writes("/tmp"),
    "home": writes(os.environ["HOME"]),
    "networks": [name for _, name in socket.if_nameindex()],
    "capabilities": [int(status(name), 16) for name in ("CapEff", "CapPrm", "CapInh")],
    "no_new_privileges": status("NoNewPrivs"),
    "shared_memory_bytes": shared.f_blocks * shared.f_frsize,
    "quotas": [text("/sys/fs/cgroup/cpu.max"), text("/sys/fs/cgroup/cpu/cpu.cfs_quota_us")],
    "first_process": text("/proc/1/cmdline").split("\\0")[0],
    "own_number": os.getpid(),
    "host_name": socket.gethostname(),
    "variables": dict(os.environ),
}))
"""


def test_a_container_sees_its_caller_and_nothing_of_the_machine(each_engine, image, caller):
    name = image(each_engine, "cpu")
    variables = forwarded_variables({"XLA_FLAGS": "--xla_cpu_enable_fast_math=false", "MY_PASSWORD": "secret"})

    done = run_inside(each_engine, caller, name, "-c", LOOK, variables=variables)

    assert done.returncode == 0, done.stderr
    seen = json.loads(done.stdout)
    assert seen["user"] == [caller.uid, caller.gid]
    assert (seen["root"], seen["code"]) == ("EROFS", "EROFS")
    assert (seen["tmp"], seen["home"]) == ("yes", "yes")
    assert seen["networks"] == ["lo"]
    assert seen["capabilities"] == [0, 0, 0]
    assert seen["no_new_privileges"] == "1"
    assert seen["shared_memory_bytes"] == 2**30
    assert all(quota in ("", "-1") or quota.startswith("max") for quota in seen["quotas"])
    assert "init" in Path(seen["first_process"]).name or "catatonit" in seen["first_process"]
    assert seen["own_number"] != 1
    assert seen["host_name"] == "jaxmeter"
    assert seen["variables"]["XLA_FLAGS"] == "--xla_cpu_enable_fast_math=false"
    assert seen["variables"]["HOME"] == str(caller.home)
    assert "MY_PASSWORD" not in seen["variables"]


CDI_FILE = Path("/etc/cdi/jaxmeter-test.json")


@pytest.fixture
def described_gpu():
    """A CDI file such as nvidia-ctk writes; its device is a variable."""
    if os.getuid() != 0:
        pytest.skip(f"only root may write {CDI_FILE}")
    if look_at_host().cdi_gpu:
        pytest.skip("this machine has a CDI file for real GPUs, which a second one would contradict")
    folder_was_there = CDI_FILE.parent.is_dir()
    CDI_FILE.parent.mkdir(exist_ok=True)
    device = {"name": "all", "containerEdits": {"env": ["DESCRIBED_GPU=here"]}}
    description = {"cdiVersion": "0.3.0", "kind": "nvidia.com/gpu", "devices": [device]}
    CDI_FILE.write_text(json.dumps(description), encoding="utf8")
    yield
    CDI_FILE.unlink()
    if not folder_was_there:
        CDI_FILE.parent.rmdir()


@pytest.mark.usefixtures("described_gpu")
def test_podman_hands_over_the_gpus_that_a_cdi_file_describes(podman, image, caller):
    name = image(podman, "cpu")
    host = look_at_host()

    devices = NVIDIA_GPUS.container_arguments(podman, read_request("gpu", (), {}), host)
    done = run_inside(podman, caller, name, "-c", "import os; print(os.environ.get('DESCRIBED_GPU'))", devices=devices)

    assert host.cdi_gpu
    assert (done.returncode, done.stdout.strip()) == (0, "here"), done.stderr
