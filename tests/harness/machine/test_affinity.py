import os
import random
import subprocess
import sys

import pytest

from jaxmeter.harness.machine import interference
from tests.end_to_end.conftest import CHECKOUT

SHOW = """
import os, sys, threading
sys.path[:0] = [sys.argv[1]]
from jaxmeter.harness.machine.interference import keep_on_cores
stop = threading.Event()
thread = threading.Thread(target=stop.wait)
thread.start()
keep_on_cores(int(sys.argv[2]), int(sys.argv[3]))
print(sorted({tuple(sorted(os.sched_getaffinity(int(task)))) for task in os.listdir("/proc/self/task")}))
stop.set()
"""


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="only Linux has it")
@pytest.mark.parametrize(("count", "index"), [(1, 1), (1, 7), (2, 2)])
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
    monkeypatch.setattr(interference, "TASKS", tmp_path)
    monkeypatch.setattr("os.sched_getaffinity", lambda process: {7, 3, 1, 5}, raising=False)
    monkeypatch.setattr("os.sched_setaffinity", lambda task, cores: told.append((task, cores)), raising=False)

    interference.keep_on_cores(2, index)

    assert told == [(42, expected)]


def test_a_thread_that_has_ended_meanwhile_is_passed_over(monkeypatch, tmp_path):
    (tmp_path / "42").mkdir()
    (tmp_path / "43").mkdir()
    asked = set()

    def refuse(task, cores):
        asked.add(task)
        raise ProcessLookupError

    monkeypatch.setattr(interference, "TASKS", tmp_path)
    monkeypatch.setattr("os.sched_setaffinity", refuse, raising=False)

    interference.keep_on_cores(1, 0)

    assert asked == {42, 43}


def test_a_system_without_affinity_runs_on_any(monkeypatch):
    monkeypatch.delattr("os.sched_setaffinity", raising=False)

    assert not interference.can_choose_cores()
    assert not interference.has_several_cores()
    interference.keep_on_cores(1, 0)


DRAW = """
import os, random, sys, threading
sys.path[:0] = [sys.argv[1]]
from jaxmeter.harness.machine.interference import on_drawn_cores

def list_masks():
    return {int(task): os.sched_getaffinity(int(task)) for task in os.listdir("/proc/self/task")}

stop = threading.Event()
first = threading.Thread(target=stop.wait)
first.start()
allowed = os.sched_getaffinity(0)
narrow = {min(allowed)}
os.sched_setaffinity(first.native_id, narrow)
before = list_masks()
drawn = set()
for seed in range(64):
    with on_drawn_cores(random.Random(seed)):
        masks = list_masks()
        assert all(len(mask) == 1 for mask in masks.values()), masks
        assert masks[first.native_id] == narrow, "one that is kept on some cores stays on these"
        drawn |= masks[os.getpid()]
        if seed == 0:
            late = threading.Thread(target=stop.wait)
            late.start()
    before.setdefault(late.native_id, allowed)
    assert list_masks() == before, "afterwards all go where they might before"
assert drawn == allowed, drawn
stop.set()
"""


@pytest.mark.skipif(not interference.has_several_cores(), reason="there is one core, or no way to choose")
def test_threads_are_on_a_drawn_core_each_and_afterwards_where_they_may():
    ended = subprocess.run([sys.executable, "-c", DRAW, str(CHECKOUT)], capture_output=True, text=True, check=False)

    assert (ended.returncode, ended.stderr) == (0, "")


@pytest.mark.parametrize(("allowed", "several"), [({3}, False), ({3, 4}, True)])
def test_of_a_single_core_there_is_no_choice(monkeypatch, allowed, several):
    monkeypatch.setattr("os.sched_getaffinity", lambda thread: allowed, raising=False)
    monkeypatch.setattr("os.sched_setaffinity", lambda thread, cores: None, raising=False)

    assert interference.has_several_cores() is several


def test_cores_are_given_back_where_what_runs_on_them_fails(monkeypatch, tmp_path):
    (tmp_path / "42").mkdir()
    told = []
    monkeypatch.setattr(interference, "TASKS", tmp_path)
    monkeypatch.setattr("os.sched_getaffinity", lambda thread: {1, 2}, raising=False)
    monkeypatch.setattr("os.sched_setaffinity", lambda thread, cores: told.append(cores), raising=False)

    with pytest.raises(ValueError, match="no luck"), interference.on_drawn_cores(random.Random(0)):
        raise ValueError("no luck")

    assert len(told[0]) == 1
    assert told[1:] == [{1, 2}]
