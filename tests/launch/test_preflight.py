import pytest

from jaxmeter.launch import tpu
from jaxmeter.launch.command_line import read_request
from jaxmeter.launch.engines import Engine
from jaxmeter.launch.environments import check, find_problems, find_warnings
from jaxmeter.launch.host import Host
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


@pytest.mark.parametrize(
    ("driver", "options", "remedy"),
    [
        ("580.65.06", [], ""),
        ("579.99", [], "use CUDA 12, which this driver can run (--cuda 12)"),
        ("525", [], "use CUDA 12"),
        ("524.99", [], "update the driver to 580"),
        ("525.60.13", ["--cuda", "12"], ""),
        ("524.99", ["--cuda", "12"], "update the driver to 525"),
        ("470.256.02", ["--image", "mine:1"], ""),
    ],
)
def test_a_driver_has_to_be_as_new_as_the_locked_cuda_needs_and_an_image_of_ones_own_has_its_own(
    driver, options, remedy
):
    problems = gpu_problems(Host(driver=driver, gpus=1), options=options)

    assert [problem.remedy[: len(remedy)] for problem in problems] == [remedy] * bool(remedy)


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
    "a processor": find_problems("cpu", read_request("cpu", [], AUTO), Host(), DOCKER),
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

    check("gpu", read_request("gpu", [], AUTO), GPU_HOST, DOCKER)
    with pytest.raises(UsageError) as raised:
        check("gpu", read_request("gpu", [], AUTO), host, DOCKER)

    first, *rest = str(raised.value).splitlines()
    assert first == "gpu cannot be measured on this machine; nothing was downloaded or built"
    assert rest == [f"  {problem}" for problem in gpu_problems(host)]
    assert len(rest) == 2
