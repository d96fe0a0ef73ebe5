"""A run looks up how fast the machine's processor is, and measures that in the first run on a machine alone."""

from types import SimpleNamespace

import pytest

from jaxmeter.cli.run import _add_peaks, _find_or_measure_peaks
from jaxmeter.harness.machine.platforms import PLATFORMS
from jaxmeter.harness.plan.messages import MeasurePeaks, PeaksFound
from jaxmeter.harness.record.environment import Peaks, keep_peaks, locate_peaks
from tests import samples

PEAKS = Peaks(at="2026-11-27T12:00:00+00:00", packages={}, flops={"float32": (2e11,) * 3}, bytes_per_s=(2e10,) * 3)
CPU = PLATFORMS["cpu"]


class Server:
    """Answers with the peaks, and keeps what it was asked."""

    def __init__(self):
        self.asked = []

    def run(self, make, *, stage_limit_s):
        self.asked.append(make("result"))
        return SimpleNamespace(answer=PeaksFound(peaks=PEAKS))


def request(out, **changes):
    return SimpleNamespace(**{"out": out, "processes": None, "cores": None, **changes})


def test_the_first_run_on_a_machine_measures_and_the_next_one_reads(tmp_path):
    server = Server()

    first, second = (_find_or_measure_peaks("a machine", request(tmp_path), server, CPU) for _ in range(2))

    assert (first, second) == (PEAKS, PEAKS)
    assert server.asked == [MeasurePeaks(platform=CPU, result="result")]


@pytest.mark.parametrize(("kept", "found"), [(False, None), (True, PEAKS)])
def test_a_run_of_few_processes_reads_and_does_not_measure(tmp_path, kept, found):
    server = Server()
    if kept:
        keep_peaks(tmp_path, "a machine", PEAKS)

    assert _find_or_measure_peaks("a machine", request(tmp_path, processes=3), server, CPU) == found
    assert server.asked == []


def test_a_part_of_the_cores_is_measured_and_not_kept(tmp_path):
    server = Server()

    assert _find_or_measure_peaks("a machine", request(tmp_path, cores=1), server, CPU) == PEAKS
    assert [asked.cores for asked in server.asked] == [1]
    assert not locate_peaks(tmp_path, "a machine").exists()


def test_a_damaged_file_is_a_warning_and_the_run_goes_on_without(tmp_path, capsys):
    path = locate_peaks(tmp_path, "a machine")
    path.parent.mkdir()
    path.write_text("{")
    server = Server()

    assert _find_or_measure_peaks("a machine", request(tmp_path), server, CPU) is None
    assert server.asked == []
    assert str(path.name) in capsys.readouterr().err


def test_an_environment_has_the_medians_and_who_says_so():
    environment = samples.environment()

    added = _add_peaks(environment, PEAKS)

    assert (added.peak_flops, added.peak_bytes_per_s) == ({"float32": 2e11}, 2e10)
    assert added.peaks_source == PEAKS.source
    assert _add_peaks(environment, None) is environment
