"""Peaks of a processor are rates of real products and copies, each measured several times."""

from jaxmeter.harness.probes import calibration as probe
from jaxmeter.harness.probes.calibration import FORMATS, REPEATS, measure_peaks


def test_peaks_are_measured_several_times_in_each_format(monkeypatch):
    monkeypatch.setattr(probe, "SIZES", (64, 128))
    monkeypatch.setattr(probe, "TRIAD_BYTES", 2**20)

    found = measure_peaks()

    assert set(found.flops) == set(FORMATS)
    assert [len(values) for values in (*found.flops.values(), found.bytes_per_s)] == [REPEATS] * (len(FORMATS) + 1)
    assert found.is_sound
    assert set(found.packages) == {"jax", "jaxlib"}


def test_a_rate_is_work_over_the_median_time_of_its_calls(monkeypatch):
    monkeypatch.setattr(probe, "SIZES", (64,))
    monkeypatch.setattr(probe, "TRIAD_BYTES", 2**20)
    monkeypatch.setattr(probe, "_time", lambda call: 0.5)

    found = measure_peaks()

    assert found.flops["float32"] == (2 * 64**3 / 0.5,) * REPEATS
    assert found.bytes_per_s == (3 * 2**20 / 0.5,) * REPEATS
