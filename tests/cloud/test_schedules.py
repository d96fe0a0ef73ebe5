"""Schedules judged by those that they are for: schemas of Kubernetes and GitHub, systemd, and a real SLURM."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import yaml

from jaxmeter.document.markdown import MARKER
from jaxmeter.launch.schedule import Here, fill_schedule, read_cron, read_schedule_request
from jaxmeter.reporting.nightly.stored import find_verdict
from jaxmeter.reporting.store.stores import open_store
from tests.cloud.slurm import ENDED, start_slurm, wait_until
from tests.end_to_end.conftest import CHECKOUT

pytestmark = pytest.mark.cloud

HERE = Here(sys.executable, CHECKOUT, "root")
IMAGES = ("--image", "registry/measure@sha256:1", "--store-image", "registry/store@sha256:2")
CLUSTER = (*IMAGES, "--node", "accelerator=a", "--service-account", "bench")


def write(folder, engine, *options, here=HERE, store="s3://team-bucket/nightly"):
    """Files of a schedule."""
    asked = read_schedule_request([engine, "--store", store, "--machine", "lab 3", *options])
    paths = []
    for name, text in fill_schedule(asked, here).items():
        paths.append(folder / name)
        paths[-1].write_text(text)
    return paths


def run(*command, **options):
    words = list(map(str, command))
    return subprocess.run(words, capture_output=True, text=True, timeout=120, check=False, **options)


def validate_for_cluster(path):
    return run(Path(sys.executable).with_name("kubernetes-validate"), "--strict", path)


def validate_workflow(path):
    schema = ("--builtin-schema", "vendor.github-workflows")
    return run(Path(sys.executable).with_name("check-jsonschema"), *schema, path)


def validate_units(*paths):
    return run("systemd-analyze", "verify", *paths)


@pytest.mark.parametrize("options", [("--backend", "gpu"), ("--backend", "tpu"), ("--backend", "tpu", "--privileged")])
def test_a_cluster_takes_the_cronjob(tmp_path, options):
    (path,) = write(tmp_path, "kubernetes", *CLUSTER, *options)

    judged = validate_for_cluster(path)

    assert judged.returncode == 0, judged.stdout + judged.stderr


def test_a_cluster_takes_the_job_of_the_jobset(tmp_path):
    """The JobSet around it has a schema of its own, which no package brings."""
    (path,) = write(tmp_path, "jobset", *CLUSTER, "--privileged")
    filled = yaml.safe_load(path.read_text())
    (replicated,) = filled["spec"]["replicatedJobs"]
    job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "night"}, **replicated["template"]}
    path.write_text(yaml.safe_dump(job))

    judged = validate_for_cluster(path)

    assert judged.returncode == 0, judged.stdout + judged.stderr


def test_github_takes_the_workflow(tmp_path):
    (path,) = write(tmp_path, "github")

    judged = validate_workflow(path)

    assert judged.returncode == 0, judged.stdout + judged.stderr


# What GitHub's action hands to a script, with its comments in a list.
ACTION = """
const comments = JSON.parse(process.argv[2]);
const done = [];
const github = {
    paginate: async (list, asked) => { done.push(['list', asked]); return comments; },
    rest: { issues: {
        listComments: null,
        updateComment: async (asked) => { done.push(['update', asked]); },
        createComment: async (asked) => { done.push(['create', asked]); },
    } },
};
const context = { repo: { owner: 'team', repo: 'ours' }, issue: { number: 7 } };
const script = require('fs').readFileSync('script.js', 'utf8');
const run = new (async () => {}).constructor('github', 'context', 'require', script);
run(github, context, require).then(() => console.log(JSON.stringify(done)));
"""


@pytest.fixture
def comment(tmp_path):
    """Runs the workflow's script in a folder, on a pull request with some comments; what it asked GitHub for."""
    (path,) = write(tmp_path, "github")
    steps = yaml.safe_load(path.read_text())["jobs"]["measure"]["steps"]
    (script,) = [step["with"]["script"] for step in steps if step.get("name") == "Comment"]
    (tmp_path / "script.js").write_text(script)
    (tmp_path / "action.js").write_text(ACTION)

    def ask(*comments):
        done = run("node", "action.js", json.dumps(comments), cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    return ask


OURS = {"id": 2, "user": {"type": "Bot"}, "body": f"{MARKER}\n## Before"}
OTHERS = (
    {"id": 1, "user": {"type": "User"}, "body": f"{MARKER} quoted by a person"},
    {"id": 3, "user": {"type": "Bot"}, "body": "another bot"},
    {"id": 4, "user": None, "body": "by nobody any more"},
)


def test_a_pull_request_gets_one_comment_which_is_edited(comment, tmp_path):
    reports = tmp_path / "pull-requests" / "reports"
    reports.mkdir(parents=True)
    body = f"{MARKER}\n## Now"
    (reports / "night.md").write_text(body)
    place = {"owner": "team", "repo": "ours"}

    first, later = comment(*OTHERS), comment(*OTHERS, OURS)

    assert first == [["list", {**place, "issue_number": 7}], ["create", {**place, "issue_number": 7, "body": body}]]
    assert later == [["list", {**place, "issue_number": 7}], ["update", {**place, "comment_id": 2, "body": body}]]


def test_a_gate_that_says_nothing_leaves_no_comment(comment):
    assert comment(OURS) == []


def test_systemd_takes_the_service_and_its_timer(tmp_path):
    judged = validate_units(*write(tmp_path, "systemd"))

    assert (judged.returncode, judged.stdout + judged.stderr) == (0, "")


MISTAKES = [
    (validate_for_cluster, "kubernetes", CLUSTER, 0, "backoffLimit:", "backofLimit:"),
    (validate_for_cluster, "kubernetes", CLUSTER, 0, "enableServiceLinks: false", "enableServiceLinks: 3"),
    (validate_for_cluster, "kubernetes", CLUSTER, 0, "drop:", "dropp:"),
    (validate_workflow, "github", (), 0, "runs-on:", "run-on:"),
    (validate_workflow, "github", (), 0, "contents: read", "contents: reed"),
    (validate_units, "systemd", (), 0, "KillMode=mixed", "KillMode=gently"),
    (validate_units, "systemd", (), 0, f'ExecStart="{sys.executable}"', 'ExecStart="nowhere"'),
    (validate_units, "systemd", (), 1, "OnCalendar=*-*-*", "OnCalendar=*-*-*-*"),
]


@pytest.mark.parametrize(("validate", "engine", "options", "number", "right", "wrong"), MISTAKES)
def test_a_file_with_a_mistake_is_not_taken(tmp_path, validate, engine, options, number, right, wrong):
    paths = write(tmp_path, engine, *options)
    text = paths[number].read_text()
    assert right in text
    paths[number].write_text(text.replace(right, wrong))

    judged = validate(*paths)

    says_so = judged.stderr if validate is validate_units else judged.returncode == 1
    assert says_so, judged.stdout + judged.stderr


@pytest.mark.parametrize("text", ["0 3 * * *", "*/20 1-3/2 * 2 *", "30 22 * * 1-5", "0 4 29 2 *", "15 */6 1,15 * *"])
def test_systemd_starts_a_night_when_cron_would(text):
    cron = read_cron(text)
    start = datetime(2026, 11, 20, 12, 0, 30, tzinfo=UTC)

    judged = run(
        *("systemd-analyze", "calendar", "--iterations=4", f"--base-time={start:%Y-%m-%d %H:%M:%S} UTC"),
        cron.to_calendar(),
        env={"PATH": "/usr/bin:/bin", "TZ": "UTC", "LC_ALL": "C"},
    )

    assert judged.returncode == 0, judged.stderr
    found = re.findall(r"(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d) UTC", judged.stdout)
    assert list(dict.fromkeys(found)) == [f"{time:%Y-%m-%d %H:%M:%S}" for time in list_times(cron, start, 4)]


def list_times(cron, start, count):
    """The next minutes that all fields allow, by trying days, then minutes."""
    minutes, hours, days, months, weekdays = cron.values
    times, day = [], start.replace(hour=0, minute=0, second=0)
    while len(times) < count:
        fields = ((day.day, days), (day.month, months), (day.isoweekday() % 7, weekdays))
        if all(allowed is None or value in allowed for value, allowed in fields):
            times += [
                time
                for minute in range(24 * 60)
                if (time := day + timedelta(minutes=minute)) > start
                and (hours is None or time.hour in hours)
                and (minutes is None or time.minute in minutes)
            ]
        day += timedelta(days=1)
    return times[:count]


SCRIPTS = [("slurm", ()), ("slurm", ("--backend", "gpu")), ("pyxis", IMAGES), ("pyxis", (*IMAGES, "--backend", "cpu"))]


@pytest.mark.parametrize(("engine", "options"), SCRIPTS)
def test_a_script_has_no_fault_that_shellcheck_knows(tmp_path, engine, options):
    (path,) = write(tmp_path, engine, *options)

    parsed, checked = run("bash", "-n", path), run("shellcheck", path)

    assert (parsed.returncode, checked.returncode) == (0, 0), parsed.stderr + checked.stdout + checked.stderr


@pytest.fixture(scope="module")
def slurm(tmp_path_factory):
    """A real SLURM of this machine."""
    with start_slurm(tmp_path_factory.mktemp("slurm")) as rig:
        yield rig


@pytest.mark.parametrize(("engine", "options"), SCRIPTS)
def test_slurm_takes_the_script(slurm, tmp_path, engine, options):
    (path,) = write(tmp_path, engine, *options)

    judged = slurm.ask("sbatch", "--test-only", path, cwd=tmp_path)

    assert judged.returncode == 0, judged.stderr
    assert " to start at " in judged.stderr


def test_slurm_does_not_take_a_script_that_asks_for_more_than_there_is(slurm, tmp_path):
    (path,) = write(tmp_path, "slurm", "--backend", "gpu", "--devices", "2")

    assert slurm.ask("sbatch", "--test-only", path, cwd=tmp_path).returncode != 0


# As nox, which waits for the harness when it is interrupted, and has no mind of its own when it is terminated.
NOX = """#!/usr/bin/env python3
import pathlib, subprocess, sys
harness = subprocess.Popen([sys.executable, "harness.py"])
try:
    harness.wait()
except KeyboardInterrupt:
    harness.wait()
pathlib.Path("nox-saw").write_text(str(harness.returncode))
sys.exit(harness.returncode)
"""

HARNESS = """
import pathlib, signal, sys, time
signal.signal(signal.SIGTERM, signal.default_int_handler)
try:
    pathlib.Path("measuring").touch()
    time.sleep(60)
except KeyboardInterrupt:
    time.sleep(1)
    pathlib.Path("kept").touch()
    sys.exit(130)
"""


@pytest.mark.parametrize(
    ("command", "state"),
    [(("scancel",), "CANCELLED"), (("scancel", "--batch", "--signal=USR1"), "FAILED")],
    ids=["cancelled", "told that its time is nearly over"],
)
def test_a_job_that_slurm_ends_has_time_to_keep_what_the_night_has_measured(slurm, tmp_path, command, state):
    program = tmp_path / "python"
    program.write_text(NOX)
    program.chmod(0o755)
    (tmp_path / "harness.py").write_text(HARNESS)
    (path,) = write(tmp_path, "slurm", here=Here(str(program), tmp_path, "root"))
    job = slurm.submit(path, tmp_path)
    wait_until((tmp_path / "measuring").exists, "the night has begun", 60)

    assert slurm.ask(*command, job).returncode == 0

    assert slurm.wait_for(job, *ENDED, limit_s=60)["JobState"] == state
    wait_until((tmp_path / "nox-saw").exists, "nox has seen the end of the harness", 60)
    assert (tmp_path / "kept").exists()
    assert (tmp_path / "nox-saw").read_text() == "130"


SUITE = '''"""Small."""

import jax.numpy as jnp

from jaxmeter import workload


@workload(inputs=lambda key, *, n: jnp.arange(n, dtype="float32"), params={"n": (1000,)}, reference=lambda x: x + 1)
def increment(x):
    """Adds one, (n,) -> (n,)."""
    return x + 1
'''


def assert_passed(exit_code, why_not):
    """A first night passes, unless the machine does too much else for any number."""
    assert exit_code == 0 or (exit_code == 3 and "too busy" in why_not), (exit_code, why_not)


def test_the_steps_of_a_pod_are_a_night_and_those_that_measure_need_no_credentials(tmp_path, bucket, s3):
    """As processes, with this Python for that of the images, and the CPU for the device."""
    suite = tmp_path / "small.py"
    suite.write_text(SUITE)
    python = tmp_path / "python3"
    python.write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    python.chmod(0o755)
    (path,) = write(tmp_path, "kubernetes", *CLUSTER, "--suites", str(suite), "--quick", store=bucket)
    text = path.read_text().replace("/work/results", f"{tmp_path}/results").replace('"gpu"', '"cpu"')
    pod = yaml.safe_load(text)["spec"]["jobTemplate"]["spec"]["template"]["spec"]
    bare = {"PATH": f"{tmp_path}:/usr/bin:/bin", "HOME": str(tmp_path), "PYTHONPATH": str(CHECKOUT)}

    for step in (*pod["initContainers"], *pod["containers"]):
        given = {one["name"]: one["value"] for one in step.get("env", ())}
        words = [word.replace("/tmp/night", f"{tmp_path}/night") for word in step["args"]]
        done = subprocess.run(
            [*step.get("command", ["python3"]), *words],
            cwd=tmp_path,
            env={**bare, **given, **(s3 if "envFrom" in step else {})},
            capture_output=True,
            text=True,
            timeout=600,
            check=False,
        )
        if step["name"] != "conclude":
            assert done.returncode == 0, f"{step['name']}: {done.stdout}{done.stderr}"

    (night,) = [one.name for one in (tmp_path / "results").iterdir() if not one.name.startswith(".")]
    assert "run.json" in open_store(bucket).list_files(night)
    verdict = find_verdict(open_store(bucket), night)
    assert (verdict.machine, done.returncode) == ("lab 3", verdict.exit_code), done.stdout + done.stderr
    assert_passed(verdict.exit_code, verdict.why_not)


def test_a_night_is_measured_pushed_and_judged_as_a_job_of_slurm(slurm, tmp_path):
    suite = tmp_path / "small.py"
    suite.write_text(SUITE)
    store = f"file://{tmp_path}/store"
    (tmp_path / "store").mkdir()
    verdict = tmp_path / "verdict.json"
    places = ("--out", str(tmp_path / "results"), "--page", str(tmp_path / "page.html"), "--verdict", str(verdict))
    options = ("--runtime", "local", "--suites", str(suite), "--quick", *places)
    (path,) = write(tmp_path, "slurm", *options, store=store)

    known = slurm.wait_for(slurm.submit(path, tmp_path), *ENDED, limit_s=1200)

    (log,) = tmp_path.glob("jaxmeter-lab-3-*.log")
    told = json.loads(verdict.read_text())
    assert known["ExitCode"] == f"{told['exit_code']}:0", log.read_text()
    assert_passed(told["exit_code"], told["why_not"])
    assert "run.json" in open_store(store).list_files(told["run"])
