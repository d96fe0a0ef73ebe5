import sys
import threading
from pathlib import Path

import pytest

from harness.machine import disturbance
from harness.machine.disturbance import ProcessConditions

linux = pytest.mark.skipif(sys.platform != "linux", reason="only Linux counts run-queue waits")


@linux
def test_counters_of_a_process_only_grow():
    read = ProcessConditions()

    first, last = read(), read()

    assert first.wait_s <= last.wait_s
    assert first.cpu_s <= last.cpu_s
    assert first.steal_s <= last.steal_s
    assert first.involuntary_switches <= last.involuntary_switches


@linux
def test_a_thread_that_ends_between_two_readings_is_no_trouble():
    read, end = ProcessConditions(), threading.Event()
    thread = threading.Thread(target=end.wait)
    thread.start()

    while_it_runs = read()
    end.set()
    thread.join()
    after = read()

    assert while_it_runs.wait_s >= 0
    assert after.wait_s >= 0


def test_a_system_without_such_counters_gives_null(monkeypatch):
    monkeypatch.setattr(disturbance, "_TASKS", Path("/absent"))
    monkeypatch.setattr(disturbance, "_open", lambda path: None)

    found = ProcessConditions()()

    assert (found.wait_s, found.steal_s) == (None, None)
    assert found.cpu_s > 0
