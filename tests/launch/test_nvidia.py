"""What the launcher knows of NVIDIA GPUs, beside what keeps a run from them (test_preflight)."""

import pytest

from jaxmeter.launch.command_line import read_request
from jaxmeter.launch.engines import Engine, EngineAnswer
from jaxmeter.launch.host import Host
from jaxmeter.launch.nvidia import CUDA_LOCKS, NVIDIA_GPUS
from jaxmeter.launch.observations import Observation, ObservationState

AUTO = {"JAXMETER_RUNTIME": "auto"}
DOCKER = Engine("docker", "docker", "28", nvidia_runtime=True)
PODMAN = Engine("podman", "podman", "5", cdi=True)


def arguments(engine=DOCKER, options=(), host=None):
    return NVIDIA_GPUS.container_arguments(engine, read_request("gpu", options, AUTO), host or Host())


def test_a_container_is_given_all_gpus_and_nothing_else():
    assert arguments() == ("--gpus", "all")
    assert arguments(PODMAN) == ("--device", "nvidia.com/gpu=all")


def test_a_profiler_that_needs_root_is_given_the_one_capability_that_opens_the_counters():
    assert arguments(options=["--profile-privileged"]) == ("--gpus", "all", "--cap-add", "SYS_ADMIN")


def test_nvidias_hook_is_told_by_variables_what_the_container_is_for():
    assert NVIDIA_GPUS.container_variables == {
        "NVIDIA_VISIBLE_DEVICES": "all",
        "NVIDIA_DRIVER_CAPABILITIES": "compute,utility",
    }


@pytest.mark.parametrize("kind", ["docker", "nerdctl", "podman"])
@pytest.mark.parametrize("nvidia_runtime", [True, False])
@pytest.mark.parametrize("toolkit", [True, False])
@pytest.mark.parametrize("cdi", [True, False])
@pytest.mark.parametrize("cdi_gpu", [True, False])
def test_where_nothing_stands_in_the_way_gpus_are_asked_for_in_a_way_that_works(
    kind, nvidia_runtime, toolkit, cdi, cdi_gpu
):
    engine = Engine(kind, kind, "1", nvidia_runtime=nvidia_runtime, cdi=cdi or kind == "podman")
    host = Host(driver="580.65.06", gpus=1, toolkit=toolkit, cdi_gpu=cdi_gpu)

    problems = NVIDIA_GPUS.find_problems(read_request("gpu", [], AUTO), host, engine)

    asked_by_name = arguments(engine, host=host) == ("--device", "nvidia.com/gpu=all")
    name_works, option_works = engine.cdi and cdi_gpu, kind != "podman" and (nvidia_runtime or toolkit)
    assert (problems == []) == (name_works if asked_by_name else option_works)


def test_the_newest_cuda_that_a_driver_can_run_is_the_first_of_its_versions():
    assert list(CUDA_LOCKS) == sorted(CUDA_LOCKS, key=int, reverse=True)


@pytest.mark.parametrize(("cuda", "driver"), [("13", "579.99"), ("12", "524.99")])
def test_a_driver_that_is_too_old_is_told_with_the_cuda_that_was_asked_for(cuda, driver):
    host = Host(driver=driver, gpus=1)

    (problem,) = NVIDIA_GPUS.find_problems(read_request("gpu", ["--cuda", cuda], AUTO), host, DOCKER)

    assert f"which CUDA {cuda} needs" in problem.what


def test_a_driver_that_is_exactly_new_enough_for_an_older_cuda_is_offered_it():
    (problem,) = NVIDIA_GPUS.find_problems(read_request("gpu", [], AUTO), Host(driver="525", gpus=1), DOCKER)

    assert problem.remedy == "use CUDA 12, which this driver can run (--cuda 12), or update the driver"


def test_the_gpus_of_a_machine_are_described_by_their_number_and_driver():
    assert NVIDIA_GPUS.describe(Host(driver="580.65.06", gpus=8)) == "8, with driver 580.65.06"


@pytest.mark.parametrize(
    ("printed", "expected"),
    [
        ("0, 5, 4\n", Observation("GPUs idle", ObservationState.OK, "yes")),
        (
            "0, 5, 4\n1, 6, 700\n",
            Observation(
                "GPUs idle",
                ObservationState.NOISY,
                "GPU 1 is busy (6 %, 700 MiB in use)",
                "see what it is (nvidia-smi), and end it",
            ),
        ),
        (
            "0, 100, 0\n",
            Observation("GPUs idle", ObservationState.OK, "yes"),
        ),
        (
            "0, [N/A], 4\n",
            Observation(
                "GPUs idle",
                ObservationState.UNKNOWN,
                "nvidia-smi does not report how busy they are, as where GPUs are divided",
            ),
        ),
    ],
    ids=["at rest", "one is busy", "just left", "divided"],
)
def test_a_gpu_is_busy_above_five_per_cent_and_named(printed, expected):
    assert NVIDIA_GPUS.find_other_use(lambda command: EngineAnswer(0, printed)) == [expected]
