import os
import subprocess
import sys

import pytest

from tests.end_to_end.conftest import CHECKOUT

SHOW = """
import os, sys, threading
sys.path[:0] = [sys.argv[1]]
from harness.machine.affinity import keep_on_one_core
stop = threading.Event()
thread = threading.Thread(target=stop.wait)
thread.start()
keep_on_one_core(int(sys.argv[2]))
print(sorted({tuple(sorted(os.sched_getaffinity(int(task)))) for task in os.listdir("/proc/self/task")}))
stop.set()
"""


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="only Linux has it")
@pytest.mark.parametrize("index", [0, 1, 2, 7])
def test_all_threads_run_on_one_core_and_the_index_counts_around(index):
    cores = sorted(os.sched_getaffinity(0))

    ended = subprocess.run(
        [sys.executable, "-c", SHOW, str(CHECKOUT), str(index)], capture_output=True, text=True, check=True
    )

    assert ended.stdout.strip() == str([(cores[index % len(cores)],)])
