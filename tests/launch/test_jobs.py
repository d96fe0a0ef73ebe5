"""A measurement in a container, with a client that only remembers what it was told."""

import json
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

import pytest

from jaxmeter.launch.command_line import read_request
from jaxmeter.launch.containers import Caller
from jaxmeter.launch.engines import Engine
from jaxmeter.launch.host import Host
from jaxmeter.launch.jobs import Job, measure_in_container
from jaxmeter.launch.options import UsageError
from jaxmeter.launch.runs import plan_run, plan_self_test
from tests.launch.engine_stand_in import Docker

CHECKOUT = Path(__file__).parents[2]


@pytest.fixture
def docker(tmp_path):
    return Docker(tmp_path / "engine")


@pytest.fixture
def job(tmp_path, docker, monkeypatch):
    monkeypatch.setattr("jaxmeter.launch.jobs._is_watched", lambda: False)

    def make(*arguments, backend="cpu", uid=1000, variables=None):
        request = read_request(backend, arguments, {"JAXMETER_RUNTIME": "auto"})
        return Job(
            backend=backend,
            request=request,
            run=plan_run((*request.arguments, "--out", str(docker.folder / "results")), "a-run"),
            engine=Engine(str(docker.client), "docker", "20.10.24"),
            host=Host(driver="580.65.06", gpus=1, toolkit=True),
            caller=Caller(uid, 1000, "ada", Path("/home/ada"), tmp_path, "5bce98f7"),
            checkout=CHECKOUT,
            variables=variables or {},
        )

    return make


def ran(docker, program):
    (words,) = [words for words in docker.calls("run") if program in words]
    return words


def variables(words):
    return dict(words[at + 1].split("=", 1) for at, word in enumerate(words) if word == "--env")


def test_the_run_is_measured_and_then_reported_with_its_folder_read_only(docker, job):
    measure_in_container(job("--quick"))

    harness, report = ran(docker, "--backend"), ran(docker, "report")
    run = f"{docker.folder}/results/a-run"
    assert harness[harness.index("-m") :][:6] == ["-m", "jaxmeter", "run", "--backend", "cpu", "--quick"]
    assert report[-4:] == ["-m", "jaxmeter", "report", run]
    assert f"type=bind,source={run},target={run},readonly" in report


def test_a_self_test_runs_where_a_run_would_and_is_not_reported_on(docker, job):
    out = docker.folder / "results"
    planned = plan_self_test(("--machine", "lab 3", "--out", str(out)))

    code = measure_in_container(replace(job(), run=planned))

    words = ran(docker, "--backend")
    assert code == 0
    assert words[words.index("-m") :][:7] == ["-m", "jaxmeter", "self-test", "--backend", "cpu", "--machine", "lab 3"]
    assert f"type=bind,source={out},target={out}" in words
    assert not [words for words in docker.calls("run") if "report" in words]


def test_a_run_knows_its_image_and_how_it_was_started(docker, job):
    measure_in_container(job("--runtime", "container", "--cuda=12", backend="gpu"))

    told = variables(ran(docker, "--backend"))
    (build,) = docker.calls("build")
    assert told["JAXMETER_IMAGE"] == f"{build[build.index('--tag') + 1]} sha256:{'1f0c9a7b' * 8}"
    assert told["JAXMETER_COMMAND"] == "nox -s gpu -- --runtime container --cuda 12"
    assert told["JAXMETER_HOST"] == "5bce98f7"


@pytest.mark.parametrize(("harness", "report", "code"), [(0, 0, 0), (3, 2, 3), (0, 2, 2), (2, 0, 2), (130, 0, None)])
def test_the_harness_decides_the_exit_code_and_the_report_only_where_it_is_content(docker, job, harness, report, code):
    docker.script(results=str(docker.folder / "results"), **{"harness code": harness, "report code": report})

    with pytest.raises(KeyboardInterrupt) if code is None else nullcontext():
        assert measure_in_container(job()) == code
    assert bool([words for words in docker.calls("run") if "report" in words]) is (harness in (0, 3))


def test_an_image_of_the_user_s_needs_no_checkout_unless_a_report_is_made(docker, job, tmp_path):
    docker.has("mine:1")
    docker.script(results=str(docker.folder / "results"))
    asked = replace(job("--image", "mine:1"), checkout=tmp_path)

    with pytest.raises(UsageError, match="built from a checkout"):
        measure_in_container(asked)
    assert docker.calls("run") == []

    assert measure_in_container(replace(asked, run=replace(asked.run, is_reported=False))) == 0


def test_no_container_is_left_behind_and_a_second_start_of_the_run_never_touches_those_of_the_first(docker, job):
    removed = []
    for _ in range(2):
        measure_in_container(job("--run-id", "aa_control"))
        started = {words[words.index("--name") + 1] for words in docker.calls("run")}
        removed.append({words[-1] for words in docker.calls("rm")} - set().union(*removed))
        assert started == set().union(*removed)

    assert [len(names) for names in removed] == [2, 2]
    assert len(docker.calls("build")) == 1


@pytest.mark.parametrize(("backend", "devices"), [("cpu", None), ("gpu", "all")])
def test_only_a_gpus_container_is_for_nvidias_hook(docker, job, backend, devices):
    measure_in_container(job(backend=backend))

    assert variables(ran(docker, "--backend")).get("NVIDIA_VISIBLE_DEVICES") == devices


def test_a_dry_run_prints_the_commands_and_starts_nothing(docker, job, capsys):
    code = measure_in_container(job("--dry-run", "--quick"))

    build, harness, report = capsys.readouterr().out.splitlines()
    assert code == 0
    assert " build " in build
    assert harness.endswith(f"-m jaxmeter run --backend cpu --quick --out {docker.folder}/results --run-id a-run")
    assert report.endswith(f"-m jaxmeter report {docker.folder}/results/a-run")
    assert docker.calls("run") == docker.calls("build") == []


def test_a_dry_run_shows_the_plan_too_where_the_image_is_there(docker, job):
    measure_in_container(job())
    before = len(docker.calls("run"))

    measure_in_container(job("--dry-run"))

    assert len(docker.calls("build")) == 1
    (plan,) = docker.calls("run")[before:]
    assert "--dry-run" in plan
    assert not any("results" in word for word in plan if word.startswith("type=bind"))


@pytest.mark.parametrize(
    ("script", "message"),
    [
        (
            {"build fails": True, "build says": "OSError: [Errno 28] No space left on device"},
            "could not be built: the disk is full where the engine keeps its images",
        ),
        (
            {"harness code": 125, "harness says": 'could not select device driver "" with capabilities: [[gpu]]'},
            r"exit code 125\): the engine cannot hand GPUs to a container",
        ),
    ],
    ids=["a build that failed", "a container that never ran"],
)
def test_what_the_engine_could_not_do_is_explained_and_no_result(docker, job, script, message):
    docker.script(results=str(docker.folder / "results"), **script)

    with pytest.raises(UsageError, match=message):
        measure_in_container(job(backend="gpu"))

    assert bool(docker.calls("run")) is ("harness code" in script)


def test_an_image_of_ones_own_is_given_the_harness_and_reported_in_jaxmeters(docker, job):
    docker.has("mine@sha256:00")

    measure_in_container(job("--image", "mine@sha256:00"))

    harness, report = ran(docker, "--backend"), ran(docker, "report")
    code = f"type=bind,source={CHECKOUT}/jaxmeter,target=/opt/jaxmeter/jaxmeter,readonly"
    assert code in harness
    assert variables(harness)["PYTHONPATH"] == "/opt/jaxmeter"
    assert variables(harness)["JAXMETER_IMAGE"] == f"mine@sha256:00 sha256:{'1f0c9a7b' * 8}"
    assert "mine@sha256:00" not in report
    assert any(word.startswith("jaxmeter:cpu-") for word in report)


def test_what_root_has_written_in_the_container_is_given_back_to_the_caller(docker, job):
    measure_in_container(job("--profile-privileged", backend="gpu"))

    (given,) = [words for words in docker.calls("run") if "os.chown" in " ".join(words)]
    assert given[-3:] == [f"{docker.folder}/results/a-run", "1000", "1000"]
    assert "--gpus" not in given
    measure_in_container(job("--profile-privileged", backend="gpu", uid=0))  # a caller who is root needs nothing
    assert json.dumps(docker.calls("run")).count("os.chown") == json.dumps(given).count("os.chown")
