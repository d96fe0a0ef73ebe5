import os

import pytest

from launcher import tpu
from launcher.command_line import read_request
from launcher.engines import Engine
from launcher.findings import Problem
from launcher.host import Host
from launcher.options import UsageError
from launcher.preflight import check, find_problems, find_warnings

DOCKER = Engine("/usr/bin/docker", "docker", "28.2.2", nvidia_runtime=True)
PODMAN = Engine("/usr/bin/podman", "podman", "5.4.2", cdi=True)
GPU_HOST = Host(driver="580.65.06", gpus=1, cdi_gpu=True)
TPU_HOST = Host(tpu_chips=2, tpu_nodes=("/dev/vfio/0", "/dev/vfio/1", "/dev/vfio/vfio"))


def gpu_problems(host=GPU_HOST, engine=DOCKER, options=()):
    return find_problems("gpu", read_request("gpu", options, {}), host, engine)


def tpu_problems(host=TPU_HOST, engine=DOCKER, options=(), *, is_accessible=lambda node: True):
    return tpu.find_problems(read_request("tpu", options, {}), host, engine, is_accessible)


@pytest.mark.parametrize("engine", [DOCKER, PODMAN, None])
def test_a_processor_is_always_there(engine):
    assert find_problems("cpu", read_request("cpu", [], {}), Host(), engine) == []


@pytest.mark.parametrize("engine", [DOCKER, PODMAN, None])
def test_a_gpu_with_a_new_driver_and_an_engine_that_hands_it_on_is_no_problem(engine):
    assert gpu_problems(engine=engine) == []


@pytest.mark.parametrize(
    ("options", "wanted"),
    [
        ([], "version 580 or newer"),
        (["--cuda", "12"], "version 525 or newer"),
        (["--image", "mine:1"], "one that your image can use"),
    ],
)
def test_without_a_driver_that_is_the_only_problem(options, wanted):
    (problem,) = gpu_problems(Host(), Engine("docker", "docker", "28"), options)

    assert problem.what == "no NVIDIA driver (looked for /proc/driver/nvidia/version and nvidia-smi)"
    assert wanted in problem.remedy
    assert "nox -s cpu" in problem.remedy


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


def test_a_driver_too_old_for_cuda_13_and_new_enough_for_12_is_offered_that():
    (problem,) = gpu_problems(Host(driver="550.54.15", gpus=1))

    assert problem == Problem(
        "driver 550.54.15 is older than 580, which CUDA 13 needs",
        "use CUDA 12, which this driver can run (--cuda 12), or update the driver",
    )


@pytest.mark.parametrize(("options", "cuda", "needed"), [([], "13", "580"), (["--cuda", "12"], "12", "525")])
def test_a_driver_too_old_for_every_cuda_has_to_be_updated(options, cuda, needed):
    (problem,) = gpu_problems(Host(driver="470.256.02", gpus=1), options=options)

    assert problem.what == f"driver 470.256.02 is older than {needed}, which CUDA {cuda} needs"
    assert problem.remedy.startswith(f"update the driver to {needed} or newer")
    assert "--cuda" not in problem.remedy


def test_a_driver_without_a_gpu_is_a_problem():
    (problem,) = gpu_problems(Host(driver="580.65.06", gpus=0))

    assert problem.what == "the driver names no GPU"
    assert "nvidia-smi" in problem.remedy


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


def test_the_local_environment_needs_no_engine_for_its_gpus():
    assert gpu_problems(Host(driver="580.65.06", gpus=1), engine=None) == []


@pytest.mark.parametrize(("rootless", "count"), [(True, 1), (False, 0)])
def test_profiling_as_root_needs_an_engine_that_is(rootless, count):
    engine = Engine("podman", "podman", "5.4.2", rootless=rootless)

    problems = gpu_problems(engine=engine, options=["--profile-privileged"])

    assert len(problems) == count
    assert all("--profile-privileged needs an engine that runs as root" in problem.what for problem in problems)


def test_a_rootless_engine_is_no_problem_where_nobody_asks_for_root():
    assert gpu_problems(engine=Engine("podman", "podman", "5.4.2", rootless=True)) == []


def test_all_problems_of_a_machine_are_told_at_once_and_the_most_fundamental_first():
    rootless = Engine("docker", "docker", "28", rootless=True)

    problems = gpu_problems(Host(driver="470.256.02", gpus=0), rootless, ["--profile-privileged"])

    beginnings = ["driver 470.256.02 is older", "the driver names no GPU", "docker 28 (rootless) cannot", "--profile-"]
    assert [problem.what[: len(words)] for problem, words in zip(problems, beginnings, strict=True)] == beginnings


def test_a_tpu_whose_device_files_may_be_used_is_no_problem():
    assert tpu_problems() == []


def test_a_machine_without_a_tpu_is_told_what_was_looked_for():
    (problem,) = tpu_problems(Host())

    assert problem.what == "no TPU (looked for /dev/accel*, and for TPUs on the PCI bus with /dev/vfio/*)"
    assert problem.remedy.startswith("run on a TPU VM; ")


def test_chips_without_device_files_are_another_problem_than_no_chips():
    (problem,) = tpu_problems(Host(tpu_chips=4))

    assert problem.what.startswith("4 TPU chips on the PCI bus, and no device file for them")
    assert "driver" in problem.remedy


def test_device_files_are_enough_where_the_bus_cannot_be_seen():
    assert tpu_problems(Host(tpu_nodes=("/dev/accel0",))) == []


def test_device_files_that_are_closed_to_the_user_are_named():
    (problem,) = tpu_problems(is_accessible=lambda node: node != "/dev/vfio/1")

    assert problem.what == "no permission for /dev/vfio/1"
    assert "--privileged" in problem.remedy


def test_a_container_that_is_given_everything_opens_closed_device_files():
    assert tpu_problems(options=["--privileged"], is_accessible=lambda node: False) == []


def test_an_engine_without_roots_rights_opens_nothing_more():
    rootless = Engine("/usr/bin/podman", "podman", "5", rootless=True)
    request = read_request("tpu", ["--privileged"], {})

    (problem,) = tpu.find_problems(request, TPU_HOST, rootless, lambda node: node != "/dev/vfio/1")

    assert problem.what == "no permission for /dev/vfio/1"


def test_a_device_file_has_to_be_open_for_reading_and_writing(monkeypatch):
    asked = []
    monkeypatch.setattr("os.access", lambda path, mode: asked.append((path, mode)) or True)

    find_problems("tpu", read_request("tpu", [], {}), Host(tpu_nodes=("/dev/accel0",)), DOCKER)

    assert asked == [("/dev/accel0", os.R_OK | os.W_OK)]


def test_the_users_own_permission_is_asked_for_by_default(tmp_path):
    node = tmp_path / "accel0"
    request = read_request("tpu", [], {})
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
        check("gpu", read_request("gpu", [], {}), host, DOCKER)

    first, *rest = str(raised.value).splitlines()
    assert first == "nox -s gpu cannot measure on this machine; nothing was downloaded or built"
    assert rest == [f"  {problem}" for problem in gpu_problems(host)]
    assert len(rest) == 2


def test_a_machine_that_can_measure_is_no_error():
    check("gpu", read_request("gpu", [], {}), GPU_HOST, DOCKER)


def test_a_problem_is_shown_with_its_remedy():
    assert str(Problem("it is broken", "mend it")) == "it is broken: mend it"
