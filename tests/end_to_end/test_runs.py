"""Whole runs of the own suites, and what they leave."""

from __future__ import annotations

import gzip
import hashlib
import json
import os
from pathlib import Path

import jax
import pytest

from jaxmeter.harness.declare.catalogue import DEFAULT_SUITES, Suite, find_suites
from jaxmeter.harness.machine.environment import make_private
from jaxmeter.harness.machine.platforms import PLATFORMS
from jaxmeter.harness.plan.cases import name_case
from jaxmeter.harness.programs.capturing import FEWEST_CALLS, KEPT_CALLS
from jaxmeter.harness.record import ProcessRecord, RunFolder, RunRecord, Status, read_json
from tests.end_to_end.conftest import run_program, write_small_suite

READER = """
'''Adds one to data.'''

import jax.numpy as jnp

from jaxmeter import data_folder, workload


@workload(inputs=lambda key: jnp.array([*map(float, (data_folder() / "numbers.txt").read_text().split())]),
          reference=lambda x: x + 1, modes=("jit",))
def increment(x):
    return x + 1
"""


STREAMS = ("static_arguments[values=12]",)
"""Cases whose variants have no one program."""

pytestmark = pytest.mark.end_to_end


def first_case(suite: Suite) -> str:
    """The name of the first case that a quick run measures, or a default run where that has none."""
    levels = ("quick", "default")
    cases = (
        (one.name, params) for level in levels for one in suite.workloads for params in one.list_cases(level, "cpu")
    )
    name, params = next(cases)
    return name_case(name, params, PLATFORMS["cpu"])


@pytest.mark.suites
@pytest.mark.parametrize("half", [0, 1])
def test_the_smallest_case_of_every_suite_is_measured_whole_and_right(harness, tmp_path, half):
    smallest = [first_case(suite) for suite in find_suites((DEFAULT_SUITES,))][half::2]
    selection = [word for name in smallest for word in ("--select", name)]
    probes = [word for name in ("memory", "compilation", "timing", "trace") for word in ("--probe", name)]

    ended = harness("run", "--processes", "1", "--run-id", "it", *selection, *probes)

    assert ended.returncode == 0, ended.stdout + ended.stderr
    run = read_json(tmp_path / "results" / "it" / "run.json", RunRecord)
    assert {case.name for case in run.cases} == set(smallest)
    assert run.lost() == ()
    for planned, case in zip(run.manifest.cases, run.cases, strict=True):
        assert case.status is Status.OK
        for variant, record in zip(planned.variants, case.variants, strict=True):
            if variant.skip is None:
                assert record.outcomes["numerics"].status is Status.OK
            if variant.skip is None and variant.raises is None:
                assert len(record.outcomes["timing"].values["execution_s"]) == 1
            if variant.skip is None and variant.raises is None and variant.mode in ("jit", "aot"):
                called = {"measured_memory", "export"} if variant.mode == "jit" else set()
                assert set(record.outcomes) == {"numerics", "memory", "compilation", "timing", "trace"} | called
                if case.name not in STREAMS:
                    assert record.outcomes["memory"].values["argument_bytes"][0]


def test_a_capture_lies_where_xprof_looks_and_holds_the_steps(harness, tmp_path, suite):
    one_case = ("--suites", suite, "--select", "increment[n=1]")
    ended = harness("run", "--quick", *one_case, "--probe", "trace", "--run-id", "it")

    assert ended.returncode == 0, ended.stderr
    (case,) = read_json(tmp_path / "results" / "it" / "run.json", RunRecord).cases
    case_folder = tmp_path / "results" / "it" / "cases" / case.id
    for artifact in case.artifacts:
        data = (case_folder / artifact.path).read_bytes()
        assert (len(data), hashlib.sha256(data).hexdigest()) == (artifact.size_bytes, artifact.sha256)
    capture = case_folder / "trace" / "increment-jit" / "plugins" / "profile" / "capture" / "host.xplane.pb"
    assert str(capture.relative_to(case_folder)) in {artifact.path for artifact in case.artifacts}
    profile = jax.profiler.ProfileData.from_file(str(capture))
    events = [event.name for plane in profile.planes for line in plane.lines for event in line.events]
    assert FEWEST_CALLS <= events.count("increment:jit") <= KEPT_CALLS


def test_a_suite_reads_the_folder_of_data_that_the_run_was_given_and_the_record_names_it(harness, tmp_path):
    (tmp_path / "sets").mkdir()
    (tmp_path / "sets" / "numbers.txt").write_text("1 2 3")
    (tmp_path / "reader.py").write_text(READER)

    chosen = ("--suites", "reader.py", "--quick", "--probe", "numerics")
    ended = harness("run", *chosen, "--data", "sets", "--run-id", "it")

    assert ended.returncode == 0, ended.stderr
    run = read_json(tmp_path / "results" / "it" / "run.json", RunRecord)
    assert run.manifest.settings.data == make_private(str(tmp_path / "sets"))


@pytest.fixture(scope="module")
def measured(tmp_path_factory):
    """A run of the small suite; its folder."""
    folder = tmp_path_factory.mktemp("measured")
    options = ("--quick", "--processes", "3", "--probe", "timing", "--run-id", "it")
    ended = run_program(folder, "run", "--suites", write_small_suite(folder), *options)
    assert ended.returncode == 0, ended.stderr
    return folder / "results" / "it"


def test_every_sample_is_kept_and_the_run_remembers_where_it_was_made(measured):
    run = read_json(measured / "run.json", RunRecord)
    processes = RunFolder(measured).case(run.cases[0].id).processes()
    kinds = [path.name.removesuffix(".json.gz").partition("-")[2] for path in processes]
    assert kinds == ["shapes", "check", "timing", "timing", "timing"]
    for path in processes[2:]:
        for variant in read_json(path, ProcessRecord).variants:
            assert len(variant.blocks) >= run.manifest.settings.blocks
            assert all(block.samples_s for block in variant.blocks)
    assert run.manifest.settings.notes == ()
    environment = run.manifest.environment
    assert environment.packages["jax"] == jax.__version__
    assert environment.variables["JAX_PLATFORMS"] == "cpu"
    assert environment.threads["OPENBLAS_NUM_THREADS"] == environment.allowed_cores


WHERE_IT_RAN = '''"""Small."""

import os
from pathlib import Path

import jax.numpy as jnp

from jaxmeter import workload

SEEN = Path("seen")


@workload(inputs=lambda key: jnp.arange(3.0), reference=lambda x: x + 1, modes=("eager",))
def increment(x):
    """Adds one, (n,) -> (n,)."""
    with SEEN.open("a") as lines:
        lines.write(f"{sorted(os.sched_getaffinity(0))}\\n")
    return x + 1
'''


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="only Linux lets a process choose its cores")
def test_processes_run_on_one_core_where_that_is_asked_and_processes_on_another_each_round(harness, tmp_path):
    (tmp_path / "small.py").write_text(WHERE_IT_RAN)

    options = ("--quick", "--processes", "3", "--probe", "timing", "--cores", "1", "--run-id", "it")
    harness("run", "--suites", "small.py", *options)

    run = read_json(tmp_path / "results" / "it" / "run.json", RunRecord)
    assert run.manifest.settings.cores == 1
    assert run.manifest.environment.allowed_cores == 1
    assert run.manifest.environment.threads["OPENBLAS_NUM_THREADS"] == 1
    for path in RunFolder(tmp_path / "results" / "it").case(run.cases[0].id).processes("timing"):
        assert [one.cores for one in read_json(path, ProcessRecord).variants] == [1]
    allowed = sorted(os.sched_getaffinity(0))
    assert set((tmp_path / "seen").read_text().splitlines()) == {str([core]) for core in allowed[:3]}


def test_what_a_machine_is_called_is_told_without_a_run(harness):
    ended = harness("machine", "--cores", "1")

    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.endswith(", 1 core, 1 x cpu\n")
    assert harness("machine", "--cores", "all").stdout == harness("machine").stdout != ""
    assert harness("machine", "--backend", "cuda").returncode == 2


def test_nothing_in_a_run_names_the_user_or_the_checkout(measured):
    for path in measured.rglob("*.json*"):
        data = path.read_bytes()
        text = (gzip.decompress(data) if path.suffix == ".gz" else data).decode()
        assert str(Path.home()) not in json.dumps(json.loads(text)) or str(Path.home()) == "/"


def test_a_finished_run_is_not_written_again_by_resume(harness, measured):
    before = (measured / "run.json").read_bytes()

    ended = harness("run", "--resume", measured)

    assert ended.returncode == 0
    assert "3 cases: 3 ok" in ended.stdout
    assert (measured / "run.json").read_bytes() == before
