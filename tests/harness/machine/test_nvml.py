import sys
from types import SimpleNamespace

import pytest

from jaxmeter.harness.machine.nvml import LIBRARIES, DeviceStates, open_nvml
from jaxmeter.harness.machine.platforms import BACKENDS
from jaxmeter.harness.record.processes import DeviceState

MHZ = 1e6


class RefusedError(Exception):
    """What the made-up library raises."""


class Library:
    """A made-up pynvml: GPUs by where they sit, each with (clock, highest clock, bits of reasons)."""

    NVMLError = RefusedError
    NVML_CLOCK_SM = 1

    def __init__(self, **gpus: tuple[int, int, int]) -> None:
        self._gpus, self.open = gpus, False

    def nvmlInit(self) -> None:  # noqa: N802  NVML's name
        self.open = True

    def nvmlShutdown(self) -> None:  # noqa: N802
        self.open = False

    def nvmlDeviceGetHandleByPciBusId(self, platform: bytes) -> str:  # noqa: N802
        if platform.decode() not in self._gpus:
            raise RefusedError(platform)
        return platform.decode()

    def nvmlDeviceGetClockInfo(self, handle: str, kind: int) -> int:  # noqa: N802
        assert kind == self.NVML_CLOCK_SM
        return self._gpus[handle][0]

    def nvmlDeviceGetMaxClockInfo(self, handle: str, kind: int) -> int:  # noqa: N802
        assert kind == self.NVML_CLOCK_SM
        return self._gpus[handle][1]

    def nvmlDeviceGetCurrentClocksThrottleReasons(self, handle: str) -> int:  # noqa: N802
        return self._gpus[handle][2]


def state_of(library: Library, *ordinals: int, platforms: tuple[str, ...]) -> DeviceState:
    found = open_nvml(ordinals, lambda ordinal: platforms[ordinal].encode(), library)
    assert found is not None
    return found.read(7)


def test_a_gpu_tells_its_clock_the_highest_and_why_it_is_slow():
    found = state_of(Library(a=(1200, 1980, 0x4 | 0x20)), 0, platforms=("a",))

    assert (found.pass_number, found.clock_hz, found.most_clock_hz) == (7, 1200 * MHZ, 1980 * MHZ)
    assert found.throttled == ("sw power cap", "sw thermal slowdown")


def test_it_is_the_gpu_that_cuda_counts_here_and_not_the_one_that_nvml_counts():
    library = Library(a=(1, 1, 0), b=(2, 2, 0))

    assert state_of(library, 0, platforms=("b", "a")).clock_hz == 2 * MHZ


def test_of_several_gpus_the_slowest_counts_and_every_reason():
    library = Library(a=(1980, 1980, 0x8), b=(345, 1980, 0x1))

    found = state_of(library, 0, 1, platforms=("a", "b"))

    assert (found.clock_hz, found.throttled) == (345 * MHZ, ("gpu idle", "hw slowdown"))


def unknown(handle):
    raise RefusedError


@pytest.mark.parametrize(
    ("by_new_name", "reasons"),
    [(lambda handle: 0x80, ("hw power brake slowdown",)), (unknown, ("hw thermal slowdown",))],
    ids=["the new name", "only the old name"],
)
def test_a_driver_is_asked_by_the_name_of_the_reasons_that_it_has(by_new_name, reasons):
    library = Library(a=(1, 1, 0x40))
    library.nvmlDeviceGetCurrentClocksEventReasons = by_new_name

    assert state_of(library, 0, platforms=("a",)).throttled == reasons


def test_what_may_not_be_asked_is_null():
    library = Library(a=(1200, 1980, 0x4))

    def refuse(*args):
        raise RefusedError

    library.nvmlDeviceGetClockInfo = library.nvmlDeviceGetCurrentClocksThrottleReasons = refuse

    assert state_of(library, 0, platforms=("a",)) == DeviceState(pass_number=7, most_clock_hz=1980 * MHZ)


def test_asking_ends_with_the_process_that_times():
    library = Library(a=(1, 1, 0))
    found = open_nvml([0], lambda ordinal: b"a", library)
    assert library.open

    found.close()

    assert not library.open


def test_without_a_driver_or_a_platform_nothing_is_told():
    without_driver = Library()

    def refuse():
        raise RefusedError

    without_driver.nvmlInit = refuse

    assert open_nvml([0], lambda ordinal: b"a", without_driver) is None
    assert open_nvml([0], lambda ordinal: None, Library(a=(1, 1, 0))) is None
    assert open_nvml([0], lambda ordinal: b"elsewhere", Library(a=(1, 1, 0))) is None


def test_without_the_library_nothing_is_told(monkeypatch):
    monkeypatch.setitem(sys.modules, "pynvml", None)

    assert open_nvml([0]) is None


# The states of a process


def test_states_are_taken_as_often_as_asked_for(monkeypatch):
    closed = []
    reader = SimpleNamespace(
        read=lambda pass_number: DeviceState(pass_number=pass_number), close=lambda: closed.append(True)
    )
    monkeypatch.setitem(LIBRARIES, "nvml", lambda ordinals: reader)
    states = DeviceStates("nvml", [0])
    for pass_number in (1, 3):
        states.take(pass_number)
    states.close()

    assert [one.pass_number for one in states.taken] == [1, 3]
    assert closed == [True]


@pytest.mark.parametrize(("library", "ordinals"), [(None, [0]), ("nvml", []), ("nvml", [0])])
def test_a_device_that_nobody_can_ask_has_no_states(monkeypatch, library, ordinals):
    monkeypatch.setitem(LIBRARIES, "nvml", lambda ordinals: None)
    states = DeviceStates(library, ordinals)
    states.take(1)
    states.close()

    assert states.taken == []


def test_devices_are_asked_by_a_library_that_is_known():
    assert {backend.state_library for backend in BACKENDS.values()} - {None} == LIBRARIES.keys()
