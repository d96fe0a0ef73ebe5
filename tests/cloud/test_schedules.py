"""Schedules judged by those that they are for: schemas of Kubernetes and GitHub, systemd, and a real SLURM."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from jaxmeter.document.markdown import MARKER
from jaxmeter.launch.schedule import fill_schedule, read_schedule_request
from jaxmeter.reporting.nightly.outcome import find_verdict
from jaxmeter.reporting.store.stores import open_store
from tests.cloud.slurm import ENDED, start_slurm, wait_until
from tests.end_to_end.conftest import CHECKOUT

pytestmark = pytest.mark.cloud

IMAGES = ("--image", "registry/measure@sha256:1", "--store-image", "registry/store@sha256:2")
NOX_NIGHTLY = (sys.executable, "-m", "nox", "--noxfile", str(CHECKOUT / "noxfile.py"), "--session", "nightly", "--")


def write(folder, engine, *options, program=NOX_NIGHTLY, start=CHECKOUT, store="s3://team-bucket/nightly"):
    """Write the files of a schedule."""
    images = IMAGES if engine in ("kubernetes", "jobset", "pyxis") else ()
    asked = read_schedule_request([engine, "--store", store, "--machine", "lab 3", *images, *options])
    paths = []
    for name, text in fill_schedule(asked, program, start).items():
        paths.append(folder / name)
        paths[-1].write_text(text)
    return paths


def run(*command, **options):
    words = list(map(str, command))
    return subprocess.run(words, capture_output=True, text=True, timeout=120, check=False, **options)


def judge(engine, paths):
    """Return what the tools of an engine say about the files of a schedule; nothing if they accept them."""
    tools = Path(sys.executable).parent
    if engine == "jobset":  # the JobSet around its job has a schema of its own, which no package brings
        (replicated,) = yaml.safe_load(paths[0].read_text())["spec"]["replicatedJobs"]
        job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "night"}, **replicated["template"]}
        paths[0].write_text(yaml.safe_dump(job))
    of_clusters, of_scripts = (tools / "kubernetes-validate", "--strict"), ("shellcheck",)
    tool = {
        "kubernetes": of_clusters,
        "jobset": of_clusters,
        "github": (tools / "check-jsonschema", "--builtin-schema", "vendor.github-workflows"),
        "systemd": ("systemd-analyze", "verify"),
        "slurm": of_scripts,
        "pyxis": of_scripts,
    }
    judged = run(*tool[engine], *paths)
    said = judged.stdout + judged.stderr
    return said if judged.returncode or engine == "systemd" else ""


@pytest.mark.parametrize(
    ("engine", "options"),
    [
        ("kubernetes", ("--backend", "gpu")),
        ("kubernetes", ("--backend", "tpu")),
        *((engine, ()) for engine in ("jobset", "github", "systemd", "slurm", "pyxis")),
        ("slurm", ("--backend", "gpu")),
        ("pyxis", ("--backend", "cpu")),
    ],
)
def test_the_tools_of_an_engine_accept_its_files(tmp_path, engine, options):
    assert judge(engine, write(tmp_path, engine, *options)) == ""


def judge_edited(folder, engine, edits, *options):
    """Return what the tools of an engine say about its files after some edits."""
    paths = write(folder, engine, *options)
    text = "\0".join(path.read_text() for path in paths)
    for before, after in edits:
        assert before in text
        text = text.replace(before, after)
    for path, edited in zip(paths, text.split("\0"), strict=True):
        path.write_text(edited)
    return judge(engine, paths)


def test_a_cluster_accepts_the_edits_that_comments_describe(tmp_path):
    confined = "{allowPrivilegeEscalation: false, readOnlyRootFilesystem: true, capabilities: {drop: [ALL]}}"
    edits = [
        ("# serviceAccountName: NAME #", "serviceAccountName: bench #"),
        (f"&measuring\n{' ' * 18}{confined}", "&measuring {privileged: true, runAsNonRoot: false, runAsUser: 0}"),
        ("{jaxmeter-machine: jaxmeter-lab-3}", "{cloud.google.com/gke-tpu-topology: 1x1}"),
        ("limits: {google.com/tpu: 1}", "limits: {google.com/tpu: 4}"),
    ]
    assert judge_edited(tmp_path, "kubernetes", edits, "--backend", "tpu") == ""


@pytest.mark.parametrize(
    ("engine", "right", "wrong"),
    [
        ("kubernetes", "backoffLimit:", "backofLimit:"),
        ("kubernetes", "enableServiceLinks: false", "enableServiceLinks: 3"),
        ("github", "contents: read", "contents: reed"),
        ("systemd", "KillMode=mixed", "KillMode=gently"),
        ("systemd", "OnCalendar=*-*-*", "OnCalendar=*-*-*-*"),
        ("pyxis", '"$results" "$reports"', "$results $reports"),
    ],
)
def test_a_file_with_a_mistake_is_not_accepted(tmp_path, engine, right, wrong):
    assert judge_edited(tmp_path, engine, [(right, wrong)]) != ""


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


def test_a_pull_request_gets_one_comment_which_is_edited_and_none_without_a_report(tmp_path):
    (path,) = write(tmp_path, "github")
    steps = yaml.safe_load(path.read_text())["jobs"]["measure"]["steps"]
    (script,) = [step["with"]["script"] for step in steps if step.get("name") == "Comment"]
    (tmp_path / "script.js").write_text(script)
    (tmp_path / "action.js").write_text(ACTION)
    ours = {"id": 2, "user": {"type": "Bot"}, "body": f"{MARKER}\n## Before"}
    others = [
        {"id": 1, "user": {"type": "User"}, "body": f"{MARKER} quoted by a person"},
        {"id": 3, "user": {"type": "Bot"}, "body": "another bot"},
        {"id": 4, "user": None, "body": "by nobody any more"},
    ]

    def comment(*comments):
        done = run("node", "action.js", json.dumps(comments), cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    assert comment(ours) == []
    report = tmp_path / "pull-requests" / "reports" / "night.md"
    report.parent.mkdir(parents=True)
    report.write_text(f"{MARKER}\n## Now")
    asked = {"owner": "team", "repo": "ours"}
    listed, body = ["list", {**asked, "issue_number": 7}], report.read_text()
    assert comment(*others) == [listed, ["create", {**asked, "issue_number": 7, "body": body}]]
    assert comment(*others, ours) == [listed, ["update", {**asked, "comment_id": 2, "body": body}]]


@pytest.fixture(scope="module")
def slurm(tmp_path_factory):
    """A real SLURM of this machine."""
    with start_slurm(tmp_path_factory.mktemp("slurm")) as rig:
        yield rig


@pytest.mark.parametrize(
    ("engine", "backend"), [("slurm", "cpu"), ("slurm", "gpu"), ("pyxis", "cpu"), ("pyxis", "gpu")]
)
def test_slurm_takes_the_script_unless_it_asks_for_more_than_there_is(slurm, tmp_path, engine, backend):
    (path,) = write(tmp_path, engine, "--backend", backend)

    judged = slurm.ask("sbatch", "--test-only", path, cwd=tmp_path)
    path.write_text(path.read_text().replace("--gres=gpu:1", "--gres=gpu:2"))
    too_much = slurm.ask("sbatch", "--test-only", path, cwd=tmp_path)

    assert judged.returncode == 0, judged.stderr
    assert " to start at " in judged.stderr
    assert (too_much.returncode == 0) is (backend == "cpu")  # whose line is a comment


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
    (path,) = write(tmp_path, "slurm", program=[str(program)], start=tmp_path)
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
    (path,) = write(tmp_path, "kubernetes", "--suites", str(suite), "--quick", store=bucket)
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
