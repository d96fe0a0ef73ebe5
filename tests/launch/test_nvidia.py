"""What the launcher knows of NVIDIA GPUs, beside what keeps a run from them (test_preflight)."""

import pytest

from jaxmeter.launch.command_line import read_request
from jaxmeter.launch.doctor.interferences import find_other_use
from jaxmeter.launch.engines import Engine, EngineAnswer
from jaxmeter.launch.host import Host, Observation, ObservationState
from jaxmeter.launch.nvidia import NVIDIA_GPUS

BY_OPTION, BY_NAME = ("--gpus", "all"), ("--device", "nvidia.com/gpu=all")


@pytest.mark.parametrize(
    ("kind", "nvidia_runtime", "toolkit", "cdi", "cdi_gpu", "arguments"),
    [
        ("docker", True, False, True, True, BY_OPTION),
        ("docker", False, True, False, False, BY_OPTION),
        ("docker", False, False, True, True, BY_NAME),
        ("docker", False, False, True, False, None),
        ("docker", False, False, False, True, None),
        ("nerdctl", False, True, False, False, BY_OPTION),
        ("nerdctl", False, False, False, False, None),
        ("podman", False, False, True, True, BY_NAME),
        ("podman", True, True, True, True, BY_NAME),
        ("podman", False, True, True, False, None),
    ],
)
def test_an_engine_hands_gpus_on_by_nvidias_runtime_or_cdi_and_podman_by_cdi_alone(
    kind, nvidia_runtime, toolkit, cdi, cdi_gpu, arguments
):
    engine = Engine(kind, kind, "1", nvidia_runtime=nvidia_runtime, cdi=cdi)
    host = Host(driver="580.65.06", gpus=1, toolkit=toolkit, cdi_gpu=cdi_gpu)
    request = read_request("gpu", [], {"JAXMETER_RUNTIME": "auto"})

    problems = NVIDIA_GPUS.find_problems(request, host, engine)

    assert ["nvidia-container-toolkit" in problem.remedy for problem in problems] == [True] * (arguments is None)
    assert arguments in (None, NVIDIA_GPUS.container_arguments(engine, request, host))


BUSY = "GPU 1 is busy (6 %, 700 MiB in use)"


@pytest.mark.parametrize(
    ("answer", "state", "found"),
    [
        (EngineAnswer(0, "0, 5, 4\n1, 0, 700\n"), ObservationState.OK, "yes"),
        (EngineAnswer(0, "0, 5, 4\n1, 6, 700\n"), ObservationState.NOISY, BUSY),
        (EngineAnswer(0, "0, 100, 0\n"), ObservationState.OK, "yes"),  # it has just been left
        (
            EngineAnswer(0, "0, [N/A], 4\n"),
            ObservationState.UNKNOWN,
            "nvidia-smi does not report how busy they are, as where GPUs are",
        ),
        (EngineAnswer(0, "0, [N/A], 4\n1, 6, 700\n"), ObservationState.NOISY, BUSY),
        (EngineAnswer(0, ""), ObservationState.UNKNOWN, "nvidia-smi does not report how busy they are"),
        (EngineAnswer(0, "what?\n"), ObservationState.UNKNOWN, "could not be checked (IndexError"),
        (
            EngineAnswer(9, "", "NVIDIA-SMI has failed"),
            ObservationState.UNKNOWN,
            "nvidia-smi does not report it: NVIDIA-SMI has failed",
        ),
        (
            EngineAnswer(None, "", "it cannot be started"),
            ObservationState.UNKNOWN,
            "nvidia-smi does not report it: it cannot be",
        ),
    ],
)
def test_a_gpu_is_busy_above_five_per_cent_and_named(answer, state, found):
    (row,) = find_other_use(NVIDIA_GPUS, lambda command: answer)

    assert row == Observation("GPUs idle", state, row.finding, row.remedy)
    assert row.finding.startswith(found)
    assert bool(row.remedy) is (state is ObservationState.NOISY)
