import platform

import jax
import numpy
import pytest

from harness.machine.places import BACKENDS
from harness.probes.canary import ALU_STEPS, Canaries, Work, make_alu, make_copy, make_device_loop, make_works
from tests.harness.conftest import FakeClock

CPU, GPU = BACKENDS["cpu"], BACKENDS["gpu"]


def work(clock: FakeClock, *durations_s: float, before_s: float = 0.0) -> Work:
    """A canary whose runs take these times."""
    times = iter(durations_s)
    return Work(
        name="alu",
        identity="alu 1",
        run=lambda: clock.advance(next(times)),
        before=lambda: clock.advance(before_s),
    )


def names(**of_process) -> list[str]:
    return [one.name for one in make_works(**of_process)]


def test_a_canary_is_called_once_untimed_then_every_time_is_kept(clock):
    canaries = Canaries([work(clock, 8.0, 1.0, 2.0)], clock)
    canaries.take()
    canaries.take()

    (recorded,) = canaries.record()
    assert recorded.samples_s == (1.0, 2.0)
    assert (recorded.name, recorded.identity) == ("alu", "alu 1")


def test_what_takes_the_caches_back_is_not_timed(clock):
    canaries = Canaries([work(clock, 8.0, 1.0, before_s=4.0)], clock)
    canaries.take()

    assert canaries.record()[0].samples_s == (1.0,)


def test_the_loop_comes_last_since_it_leaves_the_caches_alone():
    assert names(place=CPU, alone=False, on_device=True) == ["copy", "alu"]


def test_beside_a_lone_variant_nothing_washes_the_caches():
    assert names(place=CPU, alone=True, on_device=True) == ["alu"]


def test_a_device_of_its_own_has_a_canary_of_its_own_where_the_process_uses_it():
    assert names(place=GPU, alone=False, on_device=True) == ["copy", "device"]
    assert names(place=GPU, alone=True, on_device=True) == ["device"]


def test_beside_a_device_of_its_own_no_time_is_brought_to_the_speed_of_the_host():
    assert names(place=GPU, alone=True, on_device=False) == []


def test_only_the_processor_is_the_host_itself():
    assert [name for name, backend in BACKENDS.items() if backend.is_host] == ["cpu"]


@pytest.mark.parametrize(
    ("made", "expected"),
    [
        (make_alu, f"alu 1: {ALU_STEPS} steps of a Python loop, CPython {platform.python_version()}"),
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
