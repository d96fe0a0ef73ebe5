"""Real processes, and whether any of them outlives what has started it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from jaxmeter.harness.child import begin

pytestmark = [
    pytest.mark.end_to_end,
    pytest.mark.skipif(sys.platform != "linux", reason="only there does a kernel end what has lost its parent"),
]

CHECKOUT = Path(__file__).parents[3]
BEGIN = Path(begin.__file__)
NOBODY = 2**22 + 1
"""More than any process id of Linux."""

LEAVES = """
import os
import subprocess
from jaxmeter.harness.child import family

def sleeping(detached):
    return subprocess.Popen(["sleep", "600"], start_new_session=detached).pid

family.adopt_orphans()
before = sleeping(False)
own = family.list_children()
told, tells = os.pipe()
pid = os.fork()
if pid == 0:
    os.write(tells, f"{sleeping(False)} {sleeping(True)}".encode())
    os._exit(0)
os.waitpid(pid, 0)
left = map(int, os.read(told, 100).split())
family.end_children(kept=own)
print([os.path.exists(f"/proc/{one}") for one in (*left, before)])
os.kill(before, 9)
"""

RUNS_BEFORE = """
import os
from jaxmeter.harness.child.family import run_before

told, tells = os.pipe()
run_before(lambda: os.write(tells, str(os.getpid()).encode()))
pid = int(os.read(told, 20))
print(pid != os.getpid(), os.path.exists(f"/proc/{pid}"))
try:
    run_before(lambda: os._exit(3))
except ChildProcessError as error:
    print(error)
"""

STARTS_A_SERVER = """
import os
from pathlib import Path
from jaxmeter.harness.machine.platforms import PLATFORMS, make_process_environment
from jaxmeter.harness.parent.fork_client import ForkServer

variables = make_process_environment(PLATFORMS["cpu"], os.environ, allowed_cores=1, data=None)
with ForkServer(variables, Path("scratch"), ("stops.py",)):
    pass
"""

STOPS = """
import os
import pathlib
import signal

pathlib.Path("stopped").write_text(str(os.getpid()))
os.kill(os.getpid(), signal.SIGSTOP)
"""


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """Starts Python in a folder of its own; ends it, and what the file `stopped` there names."""
    begun = []

    def python(*arguments: str) -> subprocess.Popen[str]:
        environment = {**os.environ, "PYTHONPATH": str(CHECKOUT)}
        pipe = subprocess.PIPE
        one = subprocess.Popen([sys.executable, *arguments], cwd=tmp_path, env=environment, stdout=pipe, text=True)
        begun.append(one)
        return one

    yield python
    for one in begun:
        one.kill()
        one.communicate()
    if (stopped := tmp_path / "stopped").exists() and is_there(pid := int(stopped.read_text())):
        os.kill(pid, signal.SIGKILL)


def is_there(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def wait_until(true: Callable[[], bool]) -> None:
    for _ in range(600):
        if true():
            return
        time.sleep(0.05)
    raise AssertionError("not within 30 s")


DIES = "from jaxmeter.harness.child.family import die_with_parent; die_with_parent({}); print(1)"


def test_a_process_that_has_lost_its_parent_already_ends_before_it_imports_jax(start) -> None:
    lost, alive = (start("-c", DIES.format(parent)) for parent in (NOBODY, os.getpid()))
    server = start(str(BEGIN), "", str(NOBODY), "no.such.module")

    assert (lost.communicate(timeout=60)[0], lost.returncode) == ("", -signal.SIGKILL)
    assert (alive.communicate(timeout=60)[0], alive.returncode) == ("1\n", 0)
    assert server.wait(60) == -signal.SIGKILL


def test_what_a_process_detached_from_itself_is_ended_and_what_was_there_before_is_kept(start) -> None:
    ended = start("-c", LEAVES)

    assert ended.communicate(timeout=60)[0] == "[False, False, True]\n"


def test_what_runs_before_has_ended_in_a_process_of_its_own_and_its_failure_is_an_error(start) -> None:
    said = start("-c", RUNS_BEFORE).communicate(timeout=60)[0]

    assert said == "True False\nthe process before it ended with status 3\n"


def test_a_suite_that_stops_its_trial_does_not_outlive_the_run(start, tmp_path: Path) -> None:
    (tmp_path / "stops.py").write_text(STOPS)
    parent = start("-c", STARTS_A_SERVER)
    wait_until((tmp_path / "stopped").exists)
    wait_until(lambda: (tmp_path / "stopped").read_text() != "")
    trial = int((tmp_path / "stopped").read_text())
    assert is_there(trial)

    parent.kill()

    wait_until(lambda: not is_there(trial))
