"""Rates of a capture stand next to the peaks of its device."""

import msgspec
import pytest

from jaxmeter.harness.record.trace_summary import TracedDevice, TraceSummary
from jaxmeter.harness.traces.bound import Roofs, find_rates, find_roofs
from jaxmeter.harness.traces.summary import find_busy_share, list_step_times
from tests import samples


def summary(**fields):
    devices = (TracedDevice(name="0", busy_s=(1e-3, 3e-3, 2e-3)),)
    return TraceSummary(platform="gpu", steps_from="", devices=devices, **fields)


@pytest.mark.parametrize("kind", ["NVIDIA H200", "nvidia h200"])
def test_peaks_are_those_of_the_table_of_devices(kind):
    roofs = find_roofs(summary(device_kind=kind, peak_flops=1.0, peak_bytes_per_s=1.0))

    assert (roofs.flops["bfloat16"], roofs.bytes_per_s) == (989e12, 4.8e12)


@pytest.mark.parametrize(
    ("stated", "roofs"),
    [
        ({"peak_flops": 2.0, "peak_bytes_per_s": 3.0}, Roofs(flops={"": 2.0}, bytes_per_s=3.0, source="the capture")),
        ({"peak_bytes_per_s": 3.0}, Roofs(bytes_per_s=3.0, source="the capture")),
        ({}, Roofs()),
    ],
)
def test_peaks_of_an_unknown_device_are_what_its_capture_states(stated, roofs):
    assert find_roofs(summary(device_kind="TPU v9", **stated)) == roofs


@pytest.mark.parametrize(
    ("known", "source"),
    [
        ({"peak_flops": {"float32": 1.0}, "peaks_source": "measured"}, "measured"),
        ({}, "NVIDIA's data sheet, dense, SXM"),
    ],
)
def test_the_peaks_of_a_run_go_before_those_of_the_table(known, source):
    environment = samples.environment(**{"peak_flops": {}, "peak_bytes_per_s": None, **known})

    assert find_roofs(summary(device_kind="NVIDIA H200"), environment).source == source


@pytest.mark.parametrize(
    ("formats", "shown"),
    [
        (("bfloat16",), ["bfloat16", ""]),
        (("float32",), ["tensorfloat32", "float32", ""]),
        (("float64",), ["bfloat16", "float16", "tensorfloat32", "float32", ""]),
        ((), ["bfloat16", "float16", "tensorfloat32", "float32", ""]),
    ],
)
def test_arithmetic_is_compared_with_each_format_that_its_products_can_be_computed_in(formats, shown):
    traced = summary(device_kind="NVIDIA H200", product_formats=formats, flops=2e9, bytes=4e9)

    rates = find_rates(traced, find_roofs(traced))

    assert [rate.form for rate in rates] == shown
    assert {rate.achieved for rate in rates} == {1e12, 2e12}
    assert rates[-1].share == pytest.approx(2e12 / 4.8e12)


def test_what_is_unknown_of_a_rate_has_no_share():
    without_cost = find_rates(summary(), Roofs(flops={"float32": 1e12}, bytes_per_s=1e10))
    without_peak = find_rates(summary(flops=2e9, bytes=4e9), Roofs())

    found = [(rate.achieved, rate.share) for rate in (*without_cost, *without_peak)]
    assert found == [(None, None), (None, None), (1e12, None), (2e12, None)]
    assert [rate.peak for rate in without_peak] == [None, None]


def test_rates_are_those_of_all_steps_together():
    uneven = summary(flops=2e9, bytes=4e9)  # means of three steps that are busy for 1, 3 and 2 ms

    assert [rate.achieved for rate in find_rates(uneven, Roofs())] == pytest.approx([1e12, 2e12])
    stalled = msgspec.structs.replace(uneven, devices=(TracedDevice(name="0", busy_s=(1e-3, 1e-3, 28e-3)),))
    assert find_rates(stalled, Roofs())[0].achieved == pytest.approx(2e11)


def test_the_share_of_a_device_with_steps_of_its_own_is_of_those():
    devices = tuple(TracedDevice(name=name, busy_s=(2e-3,)) for name in "01")
    own = TraceSummary(platform="tpu", steps_from="", traced_s=(4e-3, 2e-3), devices=devices)
    shared = msgspec.structs.replace(own, traced_s=(4e-3,))

    assert (find_busy_share(own), find_busy_share(shared)) == (0.5, 0.5)
    assert list(list_step_times(own, devices[1])) == [2e-3]
