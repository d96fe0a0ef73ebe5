import math

import pytest

from jaxmeter.harness.machine.platforms import DEVICE_KINDS, find_device


@pytest.mark.parametrize("device", DEVICE_KINDS.values(), ids=DEVICE_KINDS)
def test_a_row_has_peaks_in_base_units_and_who_says_so(device):
    rates = (*device.peak_flops.values(), device.peak_bytes_per_s)

    assert all(math.isfinite(rate) and 1e11 < rate < 1e17 for rate in rates)
    assert 1e9 < device.memory_bytes < 1e13
    assert device.peak_flops["bfloat16"] == max(device.peak_flops.values())
    assert device.source


def test_an_unknown_kind_has_no_row():
    assert find_device("cpu") is None
    assert find_device("TPU v6 lite").peak_bytes_per_s == 1.64e12
