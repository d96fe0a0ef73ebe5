import os
import subprocess
import sys

import pytest

from harness.machine import affinity
from tests.end_to_end.conftest import CHECKOUT

SHOW = """
import os, sys, threading
sys.path[:0] = [sys.argv[1]]
from harness.machine.affinity import keep_on_cores
stop = threading.Event()
thread = threading.Thread(target=stop.wait)
thread.start()
keep_on_cores(int(sys.argv[2]), int(sys.argv[3]))
print(sorted({tuple(sorted(os.sched_getaffinity(int(task)))) for task in os.listdir("/proc/self/task")}))
stop.set()
"""


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="only Linux has it")
@pytest.mark.parametrize("index", [0, 1, 2, 7])
@pytest.mark.parametrize("count", [1, 2])
def test_all_threads_run_on_so_many_cores_and_the_index_counts_around(count, index):
    allowed = sorted(os.sched_getaffinity(0))
    wanted = {allowed[(count * index + number) % len(allowed)] for number in range(count)}

    ended = subprocess.run(
        [sys.executable, "-c", SHOW, str(CHECKOUT), str(count), str(index)], capture_output=True, text=True, check=True
    )

    assert ended.stdout.strip() == str([tuple(sorted(wanted))])


@pytest.mark.parametrize(("index", "expected"), [(0, {1, 3}), (1, {5, 7}), (2, {1, 3}), (3, {5, 7})])
def test_the_cores_of_an_index_follow_those_of_the_one_before(monkeypatch, tmp_path, index, expected):
    (tmp_path / "42").mkdir()
    told = []
    monkeypatch.setattr(affinity, "_TASKS", tmp_path)
    monkeypatch.setattr("os.sched_getaffinity", lambda process: {7, 3, 1, 5}, raising=False)
    monkeypatch.setattr("os.sched_setaffinity", lambda task, cores: told.append((task, cores)), raising=False)

    affinity.keep_on_cores(2, index)

    assert told == [(42, expected)]


def test_a_thread_that_has_ended_meanwhile_is_passed_over(monkeypatch, tmp_path):
    (tmp_path / "42").mkdir()
    (tmp_path / "43").mkdir()
    asked = set()

    def refuse(task, cores):
        asked.add(task)
        raise ProcessLookupError

    monkeypatch.setattr(affinity, "_TASKS", tmp_path)
    monkeypatch.setattr("os.sched_setaffinity", refuse, raising=False)

    affinity.keep_on_cores(1, 0)

    assert asked == {42, 43}


def test_a_system_without_affinity_runs_on_any(monkeypatch):
    monkeypatch.delattr("os.sched_setaffinity", raising=False)

    assert not affinity.can_choose_cores()
    affinity.keep_on_cores(1, 0)
