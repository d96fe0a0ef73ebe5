import platform as host_platform

import jax
import numpy
import pytest

from jaxmeter.harness.machine.platforms import BACKENDS
from jaxmeter.harness.probes.calibration import (
    ALU_STEPS,
    Calibrations,
    CalibrationWork,
    find_slower,
    make_alu,
    make_calibrations,
    make_copy,
    make_device_loop,
    take_none,
)
from tests.harness.conftest import FakeClock

CPU, GPU = BACKENDS["cpu"], BACKENDS["gpu"]


def work(clock: FakeClock, *durations_s: float, before_s: float = 0.0) -> CalibrationWork:
    """A calibration loop whose runs take these times."""
    times = iter(durations_s)
    return CalibrationWork(
        name="alu",
        identity="alu 1",
        run=lambda: clock.advance(next(times)),
        before=lambda: clock.advance(before_s),
    )


def names(platform, **of_process) -> list[str]:
    return [one.name for one in make_calibrations(platform, FakeClock(), **of_process).record()]


def test_a_calibration_is_called_once_untimed_then_every_time_is_kept(clock):
    calibrations = Calibrations([work(clock, 8.0, 1.0, 2.0)], None, clock)
    calibrations.take_between()
    calibrations.take_between()

    (recorded,) = calibrations.record()
    assert recorded.samples_s == (1.0, 2.0)
    assert (recorded.name, recorded.identity) == ("alu", "alu 1")


def test_the_one_beside_the_blocks_tells_its_time_and_keeps_it(clock):
    calibrations = Calibrations([work(clock, 8.0)], work(clock, 8.0, 1.0, 2.0), clock)

    assert [calibrations.take_beside(), calibrations.take_beside()] == [1.0, 2.0]
    assert [one.samples_s for one in calibrations.record()] == [(), (1.0, 2.0)]


def test_where_none_stands_beside_the_blocks_nothing_is_told(clock):
    assert Calibrations([work(clock, 8.0)], None, clock).take_beside() is None
    assert take_none() is None


@pytest.mark.parametrize(
    ("before_s", "after_s", "expected"), [(1.0, 2.0, 2.0), (2.0, 1.0, 2.0), (None, 1.0, None), (1.0, None, None)]
)
def test_of_both_sides_of_a_block_the_slower_one_counts(before_s, after_s, expected):
    assert find_slower(before_s, after_s) == expected


def test_what_takes_the_caches_back_is_not_timed(clock):
    calibrations = Calibrations([work(clock, 8.0, 1.0, before_s=4.0)], None, clock)
    calibrations.take_between()

    assert calibrations.record()[0].samples_s == (1.0,)


def test_the_copy_stands_between_the_passes_and_the_loop_beside_the_blocks():
    calibrations = make_calibrations(CPU, FakeClock(), alone=False, on_device=True)
    calibrations.take_between()
    calibrations.take_beside()
    calibrations.take_beside()

    assert {one.name: len(one.samples_s) for one in calibrations.record()} == {"copy": 1, "alu": 2}


@pytest.mark.parametrize(
    ("platform", "alone", "on_device", "expected"),
    [
        (CPU, True, True, ["alu"]),
        (GPU, False, True, ["copy", "device"]),
        (GPU, True, True, ["device"]),
        (GPU, True, False, []),
    ],
)
def test_caches_are_washed_between_variants_and_a_device_has_a_calibration_of_its_own(
    platform, alone, on_device, expected
):
    assert names(platform, alone=alone, on_device=on_device) == expected


@pytest.mark.parametrize(
    ("made", "expected"),
    [
        (make_alu, f"alu 2: {ALU_STEPS} steps of a Python loop, CPython {host_platform.python_version()}"),
        (make_copy, f"copy 1: 4 MiB copied, NumPy {numpy.__version__}"),
        (make_device_loop, f"device 1: 2048 xorshifts of 262144 integers, jaxlib {jax.lib.__version__}, cpu"),
    ],
    ids=["alu", "copy", "device"],
)
def test_an_identity_says_what_it_does_and_which_versions_decide_how_fast(made, expected):
    assert made().identity == expected


def test_the_loop_of_a_device_is_compiled_before_it_is_called():
    made = make_device_loop()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(jax, "jit", None)
        numbers = made.run()

    assert (numbers.shape, numbers.dtype) == ((262_144,), "uint32")
    assert len(numpy.unique(numbers)) == 262_144  # xorshift takes no two numbers to one
