"""Real processes that end badly: one costs its own variant, and never the others."""

import errno
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from jaxmeter.harness.machine.platforms import PLATFORMS
from jaxmeter.harness.parent import fork_client, prepare_run
from jaxmeter.harness.parent.fork_client import STDERR_KEPT, ForkServer, ServerError, ServerLostError
from jaxmeter.harness.parent.prepare_run import UsageError, describe_suites
from jaxmeter.harness.plan.messages import Describe, Description, Heartbeat, Measure, SuiteProblem
from jaxmeter.harness.plan.processes import plan_processes
from jaxmeter.harness.plan.settings import make_settings
from jaxmeter.harness.record import CaseRecord, Outcome, RunRecord, Status, read_json

pytestmark = pytest.mark.end_to_end

CHECKOUT = Path(__file__).parents[3]

SUITE = '''"""Troubles: every way in which a process can end."""

import os
import signal
import subprocess
import time
from pathlib import Path

import jax.numpy as jnp

from jaxmeter import workload

NOTES = Path(__file__).parent


def ones(key):
    return jnp.ones(4)


def plus_one(x):
    return x + 1


@workload(inputs=ones, reference=plus_one, modes=("eager",))
def sound(x):
    return x + 1


@sound.implementation
def exits(x):
    print("good bye")
    os._exit(7)


@sound.implementation
def is_killed(x):
    os.kill(os.getpid(), signal.SIGKILL)


@sound.implementation
def crashes(x):
    os.kill(os.getpid(), signal.SIGSEGV)


@sound.implementation
def ends_the_server(x):
    os.kill(os.getppid(), signal.SIGKILL)
    time.sleep(60)


@sound.implementation
def dies_when_timed(x):
    # The check calls and traces it; a timing process calls it many times.
    global calls
    calls += 1
    if calls > 4:
        os._exit(9)
    return x + 1


calls = 0


@workload(inputs=ones, reference=plus_one, modes=("eager",), time_limit_s=3)
def sound_too(x):
    return x + 1


@sound_too.implementation
def hangs(x):
    while True:
        time.sleep(1)


@sound_too.implementation
def leaves_processes_behind(x):
    children = [subprocess.Popen(["sleep", "600"], start_new_session=detached) for detached in (False, True)]
    with (NOTES / "left.txt").open("a") as file:
        print(*(child.pid for child in children), file=file)
    os._exit(8)
'''


def harness(folder: Path, *arguments: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-m", "jaxmeter", "run", *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(CHECKOUT)},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


@pytest.fixture(scope="module")
def troubled(tmp_path_factory) -> Path:
    """The folder of a suite and its run."""
    folder = tmp_path_factory.mktemp("troubles")
    (folder / "troubles.py").write_text(SUITE)
    options = ("--quick", "--processes", "3", "--probe", "timing", "--out", ".", "--run-id", "run")
    ended = harness(folder, "--suites", "troubles.py", *options)
    (folder / "code.txt").write_text(str(ended.returncode))
    (folder / "said.txt").write_text(ended.stdout + ended.stderr)
    return folder


@pytest.fixture(scope="module")
def run(troubled) -> RunRecord:
    return read_json(troubled / "run" / "run.json", RunRecord)


@pytest.fixture(scope="module")
def outcomes(run) -> dict[str, dict[str, Outcome]]:
    """By implementation and probe."""
    return {variant.name.partition(":")[0]: variant.outcomes for case in run.cases for variant in case.variants}


def test_a_run_with_troubles_is_whole_and_says_so_by_its_code(troubled, run):
    assert (troubled / "code.txt").read_text() == "3"
    assert run.lost() == ()
    assert "Traceback" not in (troubled / "said.txt").read_text()


@pytest.mark.parametrize("name", ["sound", "sound_too"])
def test_what_works_is_measured_beside_what_does_not(outcomes, name):
    timing = outcomes[name]["timing"]

    assert outcomes[name]["numerics"].status is Status.OK
    assert timing.status is Status.OK
    assert len(timing.values["execution_s"]) == 3
    assert all(value > 0 for value in timing.values["execution_s"])


@pytest.mark.parametrize(
    ("name", "status", "reason"),
    [
        ("exits", Status.FAILED, "exited with code 7 in stage 'numerics'"),
        ("is_killed", Status.KILLED, "ended by SIGKILL in stage 'numerics', which the harness did not send; "),
        ("crashes", Status.KILLED, "ended by SIGSEGV in stage 'numerics'"),
        ("ends_the_server", Status.KILLED, "ended by SIGKILL in stage 'numerics'"),
        ("hangs", Status.TIMED_OUT, "no progress for 3 s in stage 'numerics', so it was ended; "),
        ("leaves_processes_behind", Status.FAILED, "exited with code 8 in stage 'numerics'"),
    ],
)
def test_a_process_that_ends_badly_costs_its_variant_and_says_why(outcomes, name, status, reason):
    found = outcomes[name]["numerics"]

    assert found.status is status
    assert found.reason.startswith(reason)
    assert "timing" not in outcomes[name]


def test_what_the_process_wrote_is_kept(outcomes):
    assert outcomes["exits"]["numerics"].stderr == "good bye"


def test_a_variant_that_only_fails_when_timed_is_right_and_has_no_time(outcomes):
    checked, timing = outcomes["dies_when_timed"]["numerics"], outcomes["dies_when_timed"]["timing"]

    assert checked.status is Status.OK
    assert (timing.status, timing.values) == (Status.FAILED, {})
    assert timing.reason == "exited with code 9 in stage 'warm-up'"


def test_what_a_process_left_behind_is_ended(troubled):
    pids = (troubled / "left.txt").read_text().split()

    assert len(pids) == 2
    assert not [pid for pid in pids if Path(f"/proc/{pid}").exists() and "Z" not in state(pid)]


def state(pid: str) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


def test_the_cases_on_disk_are_those_of_the_run_and_nothing_else_is_left_in_the_folder(troubled, run):
    for case in run.cases:
        assert read_json(troubled / "run" / "cases" / case.id / "case.json", CaseRecord) == case
    assert {path.name for path in (troubled / "run").iterdir()} == {"manifest.json", "cases", "run.json"}


# The server itself


VARIABLES = {**os.environ, "PYTHONPATH": str(CHECKOUT), "JAX_PLATFORMS": "cpu"}


@pytest.fixture(scope="module")
def scratch(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("server") / "scratch"


@pytest.fixture(scope="module")
def server(scratch):
    """A server for all tests that leave it as it is: jax is imported once."""
    with ForkServer(VARIABLES, scratch) as started:
        yield started


@pytest.fixture
def own_server(tmp_path):
    with ForkServer(VARIABLES, tmp_path / "scratch") as started:
        yield started


def describe(server: ForkServer, suite: str, **options):
    asked = {"suites": (suite,), "platform": PLATFORMS["cpu"], "level": "quick", "devices": False}
    return server.run(lambda result: Describe(**asked, result=result), **{"stage_limit_s": 60.0, **options})


def test_every_process_is_a_fresh_one_that_answers_and_leaves_no_files(server, scratch, tmp_path):
    path = tmp_path / "a.py"
    path.write_text(SUITE)
    first = describe(server, str(path))
    path.write_text(SUITE.replace("Troubles:", "Other troubles:"))
    second = describe(server, str(path))

    assert isinstance(first.answer, Description)
    assert (first.code, first.signal, first.timed_out) == (0, None, False)
    assert first.peak_bytes > 0
    assert first.answer.suites[0].description == "Troubles: every way in which a process can end."
    assert second.answer.suites[0].description == "Other troubles: every way in which a process can end."
    assert [path.name for path in scratch.iterdir()] == ["server.stderr"]


def test_a_suite_that_cannot_be_used_is_an_answer(server):
    ended = describe(server, "absent.py")

    assert isinstance(ended.answer, SuiteProblem)
    assert ended.answer.message.startswith("no suite module or file 'absent.py'")


def test_a_suite_that_exits_is_an_answer_and_one_that_ends_its_process_is_told_with_code_and_words(server, tmp_path):
    path = tmp_path / "a.py"
    path.write_text("import sys\nsys.exit(5)\n")
    exited = describe(server, str(path))
    path.write_text("import os, sys\nprint('enough', file=sys.stderr, flush=True)\nos._exit(5)\n")
    ended = describe(server, str(path))

    assert isinstance(exited.answer, SuiteProblem)
    assert "a.py:2: SystemExit: 5" in exited.answer.message
    assert ended.answer is None
    assert ended.code == 5
    assert ended.stderr == "enough"
    assert ended.last == Heartbeat(None, "start")


def test_a_process_that_meets_a_full_disk_is_no_result_and_its_words_are_told(server, tmp_path):
    path = tmp_path / "a.py"
    path.write_text(SUITE.replace("return jnp.ones(4)", "raise OSError(28, 'No space left on device', 'it.npy')"))
    (case,) = describe(server, str(path)).answer.cases[:1]
    settings = make_settings("quick", suites=(str(path),), run_id="it")
    (process, *_) = [one for one in plan_processes([case], settings) if one.kind == "check"]

    told = {"process": process, "case": case, "platform": PLATFORMS["cpu"], "settings": settings}
    folders = {"cache": str(tmp_path / "cache"), "inputs": str(tmp_path / "inputs"), "folder": str(tmp_path / "case")}

    with pytest.raises(OSError, match=r"No space left on device: 'it\.npy'") as caught:
        server.run(
            lambda result: Measure(**told, **folders, seed=0, cores=None, result=result),
            stage_limit_s=60.0,
        )

    assert caught.value.errno == errno.ENOSPC


@pytest.mark.parametrize(
    ("code", "kind", "said"),
    [
        ("raise RuntimeError('broken install')", ServerError, "broken install"),
        (
            "import os\nos.kill(os.getpid(), 9)",
            ServerLostError,
            "was ended by signal 9 while it started, which the harness did not send",
        ),
        (
            "import os, signal\nos.kill(os.getpid(), signal.SIGSTOP)",
            ServerLostError,
            "did not start within 2 s: something has stopped it",
        ),
    ],
    ids=["cannot start", "is ended", "is stopped"],
)
def test_a_server_that_does_not_start_says_why_and_its_end_is_no_fault_of_what_was_asked(
    tmp_path, monkeypatch, code, kind, said
):
    if "SIGSTOP" in code:
        monkeypatch.setattr(fork_client, "START_LIMIT_S", 2.0)
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "jaxmeter").mkdir()
    (tmp_path / "jaxmeter" / "__init__.py").write_text(code)

    with pytest.raises(kind, match=said), ForkServer(os.environ, tmp_path / "scratch"):
        pass


@pytest.mark.skipif(sys.platform != "linux", reason="only there can a process's state be read")
def test_a_server_that_somebody_stopped_is_named_and_not_its_process(own_server, tmp_path, monkeypatch):
    monkeypatch.setattr(fork_client, "START_LIMIT_S", 1.0)
    path = tmp_path / "a.py"
    path.write_text("import os, signal, time\nos.kill(os.getppid(), signal.SIGSTOP)\ntime.sleep(60)\n")

    with pytest.raises(ServerLostError, match=r"the fork server \(process \d+\) has not answered for 1 s: it was"):
        describe(own_server, str(path), stage_limit_s=0.5)


def test_a_server_that_is_stopped_between_processes_is_replaced(own_server, tmp_path, monkeypatch):
    (tmp_path / "a.py").write_text(SUITE)
    original, limit_s = own_server._start, fork_client.START_LIMIT_S

    def start():
        monkeypatch.setattr(fork_client, "START_LIMIT_S", limit_s)
        original()

    monkeypatch.setattr(own_server, "_start", start)
    monkeypatch.setattr(fork_client, "START_LIMIT_S", 1.0)
    os.kill(own_server._server.process.pid, signal.SIGSTOP)

    assert isinstance(describe(own_server, str(tmp_path / "a.py")).answer, Description)


@pytest.mark.parametrize(
    ("line", "kind", "said"),
    [
        ("os.kill(os.getpid(), 9)", ServerLostError, "was ended by signal 9"),
        ("os.kill(os.getpid(), 11)", ServerLostError, "was ended by signal 11"),
        ("os._exit(7)", UsageError, "exited with code 7"),
    ],
)
def test_what_ends_the_process_that_imports_the_suites_is_told_from_what_a_suite_does(
    server, tmp_path, line, kind, said
):
    path = tmp_path / "a.py"
    path.write_text(f"import os\n{line}\n")

    with pytest.raises(kind, match=f"the suites cannot be listed: the process that imports them {said}"):
        describe_suites(server, (str(path),), PLATFORMS["cpu"], "quick", devices=False)


def test_a_process_that_is_silent_while_it_imports_the_suites_is_no_fault_of_what_was_asked(
    server, tmp_path, monkeypatch
):
    monkeypatch.setattr(prepare_run, "DESCRIBE_LIMIT_S", 1.0)
    monkeypatch.setattr(fork_client, "START_LIMIT_S", 1.0)
    path = tmp_path / "a.py"
    path.write_text("import time\ntime.sleep(600)\n")

    with pytest.raises(ServerLostError, match="was silent for 1 s"):
        describe_suites(server, (str(path),), PLATFORMS["cpu"], "quick", devices=False)


def test_of_what_a_process_wrote_the_end_is_read_however_much_that_is(server, tmp_path):
    path = tmp_path / "a.py"
    path.write_text("import os\nos.truncate(2, 2**37)\nos.lseek(2, 0, 2)\nos.write(2, b'enough')\nos._exit(5)\n")

    ended = describe(server, str(path))

    assert ended.stderr.endswith("enough")
    assert len(ended.stderr) <= STDERR_KEPT


@pytest.mark.skipif(sys.platform != "linux", reason="only there can threads be counted")
def test_suites_are_imported_once_where_that_begins_no_threads(tmp_path):
    path, count = tmp_path / "a.py", tmp_path / "count"
    counting = f"\nwith open({str(count)!r}, 'a') as file:\n    file.write('x')\n"

    def imports(text: str) -> tuple[int, str]:
        path.write_text(text)
        count.write_text("")
        with ForkServer(VARIABLES, tmp_path / "scratch", (str(path),)) as started:
            for _ in range(3):
                assert isinstance(describe(started, str(path)).answer, Description)
            return len(count.read_text()), started.alone

    assert imports(SUITE + counting) == (2, ""), "one to try it, one for all"
    assert imports(SUITE + counting + "import jax.numpy\njax.numpy.ones(3)\n") == (
        4,
        "importing them begins threads, as making an array does; make arrays in functions, such as inputs()",
    ), "one to try it, one for each"


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere suites are not imported once for all")
@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("raise OSError('no\\nfile')\n", "a trial of importing them failed: suite '{path}' fails to import: "),
        ("import os\nos._exit(0)\n", "a trial of importing them ended its process; the top of a suite runs more than"),
        ("import os\nos.abort()\n", "a trial of importing them ended its process; the top of a suite runs more than"),
        ("import os, signal\nos.kill(os.getpid(), signal.SIGALRM)\n", "importing them takes longer than 50 s; "),
    ],
    ids=["raises", "exits", "crashes", "takes too long"],
)
def test_why_suites_cannot_be_imported_once_for_all_is_said(tmp_path, text, reason):
    path = tmp_path / "a.py"
    path.write_text(text)

    with ForkServer(VARIABLES, tmp_path / "scratch", (str(path),)) as started:
        assert started.alone.startswith(reason.format(path=path))


def test_a_suite_that_cannot_be_imported_once_for_all_is_an_answer_of_the_process_that_needs_it(tmp_path):
    path = tmp_path / "a.py"
    path.write_text("import os\nos._exit(5)\n")

    with ForkServer(VARIABLES, tmp_path / "scratch", (str(path), "absent.py")) as started:
        assert describe(started, str(path)).code == 5
        assert isinstance(describe(started, "absent.py").answer, SuiteProblem)
