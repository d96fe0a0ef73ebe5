import os

import pytest

from jaxmeter.launch import tpu
from jaxmeter.launch.command_line import read_request
from jaxmeter.launch.engines import Engine
from jaxmeter.launch.environments import check, find_problems, find_warnings
from jaxmeter.launch.host import Host
from jaxmeter.launch.observations import Obstacle
from jaxmeter.launch.options import UsageError
from tests.golden_texts import check_golden_scenes

AUTO = {"JAXMETER_RUNTIME": "auto"}
DOCKER = Engine("/usr/bin/docker", "docker", "28.2.2", nvidia_runtime=True)
PODMAN = Engine("/usr/bin/podman", "podman", "5.4.2", cdi=True)
GPU_HOST = Host(driver="580.65.06", gpus=1, cdi_gpu=True)
TPU_HOST = Host(tpu_chips=2, tpu_nodes=("/dev/vfio/0", "/dev/vfio/1", "/dev/vfio/vfio"))


def gpu_problems(host=GPU_HOST, engine=DOCKER, options=()):
    return find_problems("gpu", read_request("gpu", options, AUTO), host, engine)


def tpu_problems(host=TPU_HOST, engine=DOCKER, options=(), *, is_accessible=lambda node: True):
    return tpu.find_problems(read_request("tpu", options, AUTO), host, engine, is_accessible)


@pytest.mark.parametrize("engine", [DOCKER, PODMAN, None])
def test_a_processor_is_always_there(engine):
    assert find_problems("cpu", read_request("cpu", [], AUTO), Host(), engine) == []


@pytest.mark.parametrize("engine", [DOCKER, PODMAN, None])
def test_a_gpu_with_a_new_driver_and_an_engine_that_hands_it_on_is_no_problem(engine):
    assert gpu_problems(engine=engine) == []


@pytest.mark.parametrize(
    ("driver", "options", "fits"),
    [
        ("580.65.06", [], True),
        ("579.99", [], False),
        ("550.54", [], False),
        ("580.65.06", ["--cuda", "12"], True),
        ("525.60.13", ["--cuda", "12"], True),
        ("524.99", ["--cuda", "12"], False),
        ("550.54", ["--image", "mine:1"], True),
        ("470.256.02", ["--image", "mine:1"], True),
    ],
)
def test_a_driver_has_to_be_as_new_as_the_locked_cuda_needs_and_an_image_of_ones_own_has_its_own(driver, options, fits):
    assert (gpu_problems(Host(driver=driver, gpus=1), options=options) == []) == fits


@pytest.mark.parametrize(
    ("kind", "nvidia_runtime", "toolkit", "cdi", "cdi_gpu", "gives"),
    [
        ("docker", True, False, False, False, True),
        ("docker", False, True, False, False, True),
        ("docker", False, False, True, True, True),
        ("docker", False, False, True, False, False),
        ("docker", False, False, False, True, False),
        ("docker", False, False, False, False, False),
        ("nerdctl", False, True, False, False, True),
        ("nerdctl", False, False, False, False, False),
        ("podman", False, False, True, True, True),
        ("podman", False, True, True, False, False),
    ],
)
def test_an_engine_hands_gpus_on_by_nvidias_runtime_or_cdi_and_podman_by_cdi_alone(
    kind, nvidia_runtime, toolkit, cdi, cdi_gpu, gives
):
    engine = Engine(kind, kind, "1", nvidia_runtime=nvidia_runtime, cdi=cdi)

    problems = gpu_problems(Host(driver="580.65.06", gpus=1, toolkit=toolkit, cdi_gpu=cdi_gpu), engine)

    assert (problems == []) == gives
    assert gives or "nvidia-container-toolkit" in problems[0].remedy


OLD, NO_DRIVER = Host(driver="470.256.02", gpus=1), Host()
ROOTLESS = Engine("/usr/bin/podman", "podman", "5.4.2", rootless=True)
CLOSED = {"is_accessible": lambda node: node != "/dev/vfio/1"}

PROBLEMS = {
    "no driver": gpu_problems(NO_DRIVER),
    "no driver, for CUDA 12": gpu_problems(NO_DRIVER, options=["--cuda", "12"]),
    "no driver, for an image of one's own": gpu_problems(NO_DRIVER, options=["--image", "mine:1"]),
    "a driver too old for CUDA 13": gpu_problems(Host(driver="550.54.15", gpus=1)),
    "a driver too old for every CUDA": gpu_problems(OLD),
    "a driver too old for CUDA 12": gpu_problems(OLD, options=["--cuda", "12"]),
    "a driver without a GPU": gpu_problems(Host(driver="580.65.06", gpus=0)),
    "profiling as root, and an engine without its rights": gpu_problems(
        engine=ROOTLESS, options=["--profile-privileged"]
    ),
    "all at once": gpu_problems(
        Host(driver="470.256.02", gpus=0),
        Engine("docker", "docker", "28", rootless=True),
        ["--profile-privileged"],
    ),
    "no TPU": tpu_problems(Host()),
    "chips without device files": tpu_problems(Host(tpu_chips=4)),
    "device files that are closed": tpu_problems(**CLOSED),
    "device files that an engine without root's rights cannot open": tpu_problems(
        engine=ROOTLESS, options=["--privileged"], **CLOSED
    ),
}
NO_PROBLEMS = {
    "no engine, in the local environment": gpu_problems(Host(driver="580.65.06", gpus=1), engine=None),
    "profiling as root": gpu_problems(engine=PODMAN, options=["--profile-privileged"]),
    "an engine without root's rights": gpu_problems(engine=ROOTLESS),
    "a TPU": tpu_problems(),
    "device files where the bus cannot be seen": tpu_problems(Host(tpu_nodes=("/dev/accel0",))),
    "closed device files in a container that is given everything": tpu_problems(
        options=["--privileged"], is_accessible=lambda node: False
    ),
}


def test_problems_read_as_their_golden_text_and_the_most_fundamental_comes_first():
    check_golden_scenes("preflight", {rule: list(map(str, problems)) for rule, problems in PROBLEMS.items()})


@pytest.mark.parametrize("problems", NO_PROBLEMS.values(), ids=NO_PROBLEMS)
def test_what_can_be_used_is_no_problem(problems):
    assert problems == []


def test_a_device_file_has_to_be_open_for_reading_and_writing(monkeypatch):
    asked = []
    monkeypatch.setattr("os.access", lambda path, mode: asked.append((path, mode)) or True)

    find_problems("tpu", read_request("tpu", [], AUTO), Host(tpu_nodes=("/dev/accel0",)), DOCKER)

    assert asked == [("/dev/accel0", os.R_OK | os.W_OK)]


def test_the_users_own_permission_is_asked_for_by_default(tmp_path):
    node = tmp_path / "accel0"
    request = read_request("tpu", [], AUTO)
    host = Host(tpu_nodes=(str(node),))

    missing = find_problems("tpu", request, host, DOCKER)
    node.touch()

    assert [problem.what for problem in missing] == [f"no permission for {node}"]
    assert find_problems("tpu", request, host, DOCKER) == []


@pytest.mark.parametrize(
    ("backend", "restricted", "is_root", "count"),
    [
        ("gpu", True, False, 1),
        ("gpu", True, True, 0),
        ("gpu", False, False, 0),
        ("gpu", None, False, 0),
        ("cpu", True, False, 0),
    ],
)
def test_counters_that_are_kept_from_the_user_are_a_warning_and_no_problem(backend, restricted, is_root, count):
    host = Host(driver="580.65.06", gpus=1, cdi_gpu=True, profiling_restricted=restricted)

    warnings = find_warnings(backend, host, is_root=is_root)

    assert len(warnings) == count
    assert all("times are not affected" in warning.what for warning in warnings)
    assert all("--profile-privileged" in warning.remedy for warning in warnings)
    assert gpu_problems(host) == []


def test_a_machine_that_cannot_measure_is_an_error_with_a_line_a_problem_before_anything_is_built():
    host = Host(driver="550.54.15", gpus=0)

    with pytest.raises(UsageError) as raised:
        check("gpu", read_request("gpu", [], AUTO), host, DOCKER)

    first, *rest = str(raised.value).splitlines()
    assert first == "gpu cannot be measured on this machine; nothing was downloaded or built"
    assert rest == [f"  {problem}" for problem in gpu_problems(host)]
    assert len(rest) == 2


def test_a_machine_that_can_measure_is_no_error():
    check("gpu", read_request("gpu", [], AUTO), GPU_HOST, DOCKER)


def test_a_problem_is_shown_with_its_remedy():
    assert str(Obstacle("it is broken", "mend it")) == "it is broken: mend it"
