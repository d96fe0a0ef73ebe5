"""A machine's peaks: kept next to its runs, and refused where they cannot have been measured."""

import msgspec
import pytest

from jaxmeter.harness.record import RecordError
from jaxmeter.harness.record.environment import Peaks, find_peaks, keep_peaks, locate_peaks

PEAKS = Peaks(
    at="2026-11-27T12:00:00+00:00",
    packages={"jax": "0.10.2"},
    flops={"float32": (2e11, 1e11, 3e11), "bfloat16": (1e11, 1e11, 1e11)},
    bytes_per_s=(2e10, 2.2e10, 2.1e10),
)


def test_peaks_are_medians_and_their_source_says_how_far_repeats_differ():
    assert PEAKS.peak_flops == {"float32": 2e11, "bfloat16": 1e11}
    assert PEAKS.peak_bytes_per_s == 2.1e10
    assert "spread at most 100 %" in PEAKS.source


def test_what_is_kept_is_found_again(tmp_path):
    assert find_peaks(tmp_path, "a machine") is None

    keep_peaks(tmp_path, "a machine", PEAKS)

    assert find_peaks(tmp_path, "a machine") == PEAKS
    assert find_peaks(tmp_path, "another") is None


@pytest.mark.parametrize(
    "changes",
    [{"bytes_per_s": ()}, {"bytes_per_s": (0.0,)}, {"flops": {"float32": (1e30,)}}, {"flops": {"float32": ()}}],
)
def test_rates_that_cannot_be_are_refused(tmp_path, changes):
    keep_peaks(tmp_path, "a machine", msgspec.structs.replace(PEAKS, **changes))

    with pytest.raises(RecordError, match="damaged"):
        find_peaks(tmp_path, "a machine")


def test_a_damaged_file_is_refused(tmp_path):
    path = locate_peaks(tmp_path, "a machine")
    path.parent.mkdir()
    path.write_text("{")

    with pytest.raises(RecordError):
        find_peaks(tmp_path, "a machine")
