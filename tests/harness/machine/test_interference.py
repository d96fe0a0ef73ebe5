import os
import resource
import sys
import threading
import time
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace

import pytest

from jaxmeter.harness.machine import interference
from jaxmeter.harness.machine.interference import CounterReading, Interference
from tests.harness.machine.test_environment import write

linux = pytest.mark.skipif(sys.platform != "linux", reason="only Linux counts run-queue waits")

TICKS_PER_S = 250
"""Of the made-up system, so that no other count is taken for it."""


@pytest.fixture
def system(monkeypatch, tmp_path):
    """A system with these files: /proc/stat, and schedstat of each thread."""

    def make(stat: str, schedstats: dict[str, str]) -> Path:
        (tmp_path / "stat").write_text(stat)
        for thread, text in schedstats.items():
            (tmp_path / "task" / thread).mkdir(parents=True, exist_ok=True)
            (tmp_path / "task" / thread / "schedstat").write_text(text)
        return tmp_path / "task"

    really = interference._open
    monkeypatch.setattr(interference, "TASKS", tmp_path / "task")
    monkeypatch.setattr(
        interference, "_open", lambda path: really(str(tmp_path / "stat") if path == "/proc/stat" else path)
    )
    monkeypatch.setattr(os, "sysconf", {"SC_CLK_TCK": TICKS_PER_S}.__getitem__)
    return make


def read_once() -> CounterReading:
    with closing(Interference()) as read:
        return read()


def is_open(handle: int) -> bool:
    try:
        os.fstat(handle)
    except OSError:
        return False
    return True


STAT = "cpu  1 2 4 8 16 32 64 1000 128 256\ncpu0 1 2 4 8 16 32 64 9000 128 256\n"
"""user, nice, system, idle, iowait, irq, softirq, steal, guest, guest_nice: ticks, first of all cores; man 5 proc."""


def test_time_that_the_hypervisor_took_and_the_machine_ran_is_counted_in_ticks_of_all_cores(system):
    system(STAT, {})

    assert read_once().steal_s == 1000 / TICKS_PER_S
    assert read_once().machine_s == (1 + 2 + 4 + 32 + 64) / TICKS_PER_S


def test_processor_time_of_reading_itself_is_none_of_the_code_that_is_measured(system, monkeypatch):
    files = system(STAT, {"17": "0 1 0"})
    passed = [100.0]

    def list_threads(folder):
        passed[0] += 8.0
        return ["17"] if folder == files else []

    monkeypatch.setattr(os, "listdir", list_threads)
    monkeypatch.setattr(time, "process_time", lambda: passed[0])
    with closing(Interference()) as read:
        before = read()
        passed[0] += 0.5
        after = read()

    assert after.cpu_s - before.cpu_s == 0.5
    assert after.readings_s - before.readings_s == 8.0


def test_time_that_threads_waited_for_a_core_is_counted_in_nanoseconds_and_summed(system):
    system(STAT, {"17": "9000000000 1500000000 77\n", "18": "5000000000 250000000 33\n"})

    assert read_once().wait_s == pytest.approx(1.75, rel=1e-12)


def test_processor_time_and_forced_switches_are_those_of_the_process(system, monkeypatch):
    system(STAT, {})
    asked = []

    def usage(who):
        asked.append(who)
        return SimpleNamespace(ru_nvcsw=5, ru_nivcsw=7)

    monkeypatch.setattr(resource, "getrusage", usage)
    monkeypatch.setattr(time, "process_time", lambda: 2.5)

    found = read_once()

    assert (found.cpu_s, found.involuntary_switches) == (2.5, 7)
    assert asked == [resource.RUSAGE_SELF]


def test_a_reading_is_of_now_though_the_files_stay_open(system):
    system(STAT, {"17": "0 1000000000 0\n"})
    with closing(Interference()) as read:
        first = read()
        system(STAT.replace("1000", "2000"), {"17": "0 3000000000 0\n"})
        last = read()

    assert (last.wait_s - first.wait_s, last.steal_s - first.steal_s) == (2.0, 1000 / TICKS_PER_S)


def test_a_thread_that_ended_counts_no_more_and_its_file_is_closed(system):
    files = system(STAT, {"17": "0 1000000000 0\n", "18": "0 3000000000 0\n"})
    with closing(Interference()) as read:
        both, handle = read().wait_s, read._schedstat["18"]
        (files / "18" / "schedstat").write_text("")
        one = read().wait_s

    assert (both, one) == (4.0, 1.0)
    assert not is_open(handle)


@pytest.mark.parametrize(
    ("files", "throttled_s"),
    [
        (
            {
                "proc/self/cgroup": "0::/a/b",
                "sys/fs/cgroup/a/cpu.max": "150000 100000",
                "sys/fs/cgroup/a/cpu.stat": "usage_usec 9000000\nnr_throttled 3\nthrottled_usec 1500000\n",
                "sys/fs/cgroup/a/b/cpu.max": "max 100000",
                "sys/fs/cgroup/a/b/cpu.stat": "usage_usec 1\nthrottled_usec 7000000\n",
            },
            1.5,
        ),
        (
            {
                "proc/self/cgroup": "4:cpu,cpuacct:/a",
                "sys/fs/cgroup/cpu/a/cpu.cfs_quota_us": "150000",
                "sys/fs/cgroup/cpu/a/cpu.cfs_period_us": "100000",
                "sys/fs/cgroup/cpu/a/cpu.stat": "nr_periods 9\nnr_throttled 3\nthrottled_time 250000000\n",
            },
            0.25,
        ),
        ({"proc/self/cgroup": "0::/", "sys/fs/cgroup/cpu.stat": "throttled_usec 1\n"}, None),
    ],
    ids=["version 2", "version 1", "no quota"],
)
def test_time_that_a_quota_took_is_that_of_the_groups_that_have_one(tmp_path, files, throttled_s):
    write(tmp_path, files)

    with closing(Interference(tmp_path)) as read:
        assert read().throttled_s == throttled_s


@pytest.mark.parametrize(
    ("stat", "steal_s"), [("cpu 1 2 4 8 16 32 64 500\n", 2.0), ("cpu 1 2 4 8 16 32 64\n", None)], ids=["last", "none"]
)
def test_a_kernel_that_does_not_count_what_the_hypervisor_took_gives_null(system, stat, steal_s):
    system(stat, {})

    assert read_once().steal_s == steal_s


def test_without_a_thread_whose_wait_is_told_the_wait_is_null(system):
    system(STAT, {}).mkdir()

    assert read_once().wait_s is None


def test_closing_closes_every_file(system, tmp_path):
    system(STAT, {"17": "0 1 0\n", "18": "0 1 0\n"})
    (tmp_path / "sys/fs/cgroup").mkdir(parents=True)
    (tmp_path / "sys/fs/cgroup/cpu.max").write_text("1 2")
    (tmp_path / "sys/fs/cgroup/cpu.stat").write_text("")
    read = Interference(tmp_path)
    read()
    handles = [read._stat, *read._limited, *read._schedstat.values()]

    read.close()

    assert [is_open(handle) for handle in handles] == [False] * 4


@linux
def test_counters_of_a_process_only_grow():
    with closing(Interference()) as read:
        first, last = read(), read()

    assert first.wait_s <= last.wait_s
    assert first.cpu_s <= last.cpu_s
    assert first.steal_s <= last.steal_s
    assert first.involuntary_switches <= last.involuntary_switches


@linux
def test_a_thread_that_ends_between_two_readings_is_no_trouble():
    end = threading.Event()
    thread = threading.Thread(target=end.wait)
    with closing(Interference()) as read:
        thread.start()
        while_it_runs = read()
        end.set()
        thread.join()
        after = read()

    assert while_it_runs.wait_s >= 0
    assert after.wait_s >= 0


def test_a_system_without_such_counters_gives_null(monkeypatch):
    monkeypatch.setattr(interference, "TASKS", Path("/absent"))
    monkeypatch.setattr(interference, "_open", lambda path: None)

    found = Interference()()

    assert (found.wait_s, found.steal_s) == (None, None)
    assert found.cpu_s > 0
