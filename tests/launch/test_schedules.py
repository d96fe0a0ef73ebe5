"""Schedules: that every format reads the words that were asked for, what a night may do in each, what is refused."""

import json
import os
import re
import shlex
import subprocess
from pathlib import Path

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from jaxmeter.cli.app import app
from jaxmeter.document.markdown import MARKER
from jaxmeter.launch.backends import OPTIONS
from jaxmeter.launch.nightly import ENDING, REFUSED
from jaxmeter.launch.options import UsageError
from jaxmeter.launch.schedule import (
    SCHEDULERS,
    Here,
    fill_schedule,
    find_warnings,
    name_objects,
    read_schedule_request,
    write_asked_schedule,
)
from jaxmeter.reporting.nightly.state import FOLDER, MEASURE
from jaxmeter.reporting.nightly.stored import TITLES

CHECKOUT = Path(__file__).parents[2]
HERE = Here("/opt/my python/bin/python3", CHECKOUT, "me")
WHERE = ("--store", "s3://b/n", "--machine", "lab")
IMAGES = ("--image", "r/measure@sha256:1", "--store-image", "r/store@sha256:2")
NODE = ("--node", "accelerator=a")
NEEDED = {"kubernetes": (*IMAGES, *NODE), "jobset": (*IMAGES, *NODE), "pyxis": IMAGES}
"""What an engine has to be given in addition to WHERE."""

IN_CLUSTERS, IN_IMAGES = ("kubernetes", "jobset"), ("kubernetes", "jobset", "pyxis")
MEASURING = ("measure", "confirm-last", "confirm-pinned")
STORING = ("begin", "suspects", "conclude")

texts = st.text(min_size=1).filter(lambda text: text.isprintable() and text.strip() and not text.startswith("-"))
SYNTAX = ("'", '"', "\\", "$(HOME)", "$HOME", "${HOME}", "${image}", "%h", "`id`", "; id", "#", "&x", "*a", "{}", "\\n")
hostile = st.sampled_from([*SYNTAX, "a: b"])
words = st.one_of(texts, hostile, st.tuples(texts, hostile).map("".join)).filter(lambda word: "${{" not in word)


def read(engine, *options):
    return read_schedule_request([engine, *WHERE, *NEEDED.get(engine, ()), *options])


def fill(engine, *options, here=HERE):
    """The texts of a schedule's files, of one that has only one file the text."""
    files = list(fill_schedule(read(engine, *options), here).values())
    return files[0] if len(files) == 1 else files


def read_yaml(text):
    return yaml.load(text, yaml.CSafeLoader)  # as `safe_load`, in a tenth of the time


def read_pod(text):
    """The pod of a filled template."""
    filled = read_yaml(text)
    if filled["kind"] == "CronJob":
        return filled["spec"]["jobTemplate"]["spec"]["template"]["spec"]
    (job,) = filled["spec"]["replicatedJobs"]
    return job["template"]["spec"]["template"]["spec"]


def read_steps(text):
    """Containers by name, in the order in which they run."""
    pod = read_pod(text)
    return {step["name"]: step for step in (*pod["initContainers"], *pod["containers"])}


def expand(word):
    """A word of a pod's command as its node reads it: `$(NAME)` is a variable, and `$$` a dollar."""
    return re.sub(r"\$(\$|\([^)]*\))", lambda found: "$" if found[1] == "$" else "a variable", word)


def read_unit(text):
    """The words of a unit's command, as systemd reads them: escapes, then specifiers, then variables in arguments."""
    (line,) = re.findall(r"^ExecStart=(.*)$", text, re.MULTILINE)
    quoted = re.findall(r'"((?:[^"\\]|\\.)*)"(?: |$)', line)
    assert " ".join(f'"{word}"' for word in quoted) == line
    plain = [re.sub(r"\\(.)", lambda m: m[1] if m[1] in '"\\' else "a character", word) for word in quoted]
    program, *rest = (re.sub("%(.)", lambda m: "%" if m[1] == "%" else "a specifier", word) for word in plain)
    variable = r"\$(\$|\{\w+\}|\w+)"
    return [program, *(re.sub(variable, lambda m: "$" if m[1] == "$" else "a variable", word) for word in rest)]


def read_shell(text, pattern):
    """The words of the line in a script that a pattern is about, as a shell reads them."""
    (command,) = re.findall(pattern, text, re.MULTILINE)
    return shlex.split(command)


def read_runs(text):
    """The lines of a workflow's scripts."""
    steps = read_yaml(text)["jobs"]["measure"]["steps"]
    return "\n".join(step.get("run", "") for step in steps)


def read_command(engine, filled):
    """The command of a night, or of its first step, as the engine reads it."""
    match engine:
        case "kubernetes" | "jobset":
            return list(map(expand, read_steps(filled)["begin"]["args"]))
        case "pyxis":
            return read_shell(filled, r"^with_store begin (.*)$")
        case "slurm":
            return read_shell(filled, r"^(.*) &$")
        case "github":
            return read_shell(read_runs(filled), r"^(.* -s nightly .*)$")
        case "systemd":
            return read_unit(filled[0])


NIGHT = (HERE.python, "-m", "nox", "--noxfile", str(CHECKOUT / "noxfile.py"), "--session", "nightly", "--")
AROUND = {
    **dict.fromkeys(IN_CLUSTERS, (("-m", "jaxmeter", "night", "begin"), ())),
    "pyxis": ((), ()),
    "slurm": (NIGHT, ()),
    "github": (
        (".nox/runner/bin/nox", "-s", "nightly", "--"),
        ("--markdown", "reports/night.md", "--verdict", "reports/night.json"),
    ),
    "systemd": (NIGHT, ()),
}
"""What stands before and after the arguments of a night, or of its first step."""


@settings(max_examples=30, deadline=None)
@given(machine=words, path=words, option=words)
@pytest.mark.parametrize("engine", SCHEDULERS)
def test_every_format_reads_the_words_that_were_asked_for(engine, machine, path, option):
    store = f"s3://b/{path}"

    filled = fill(engine, "--store", store, f"--machine={machine}", "--select", option)

    where = ("--machine", machine, "--backend", SCHEDULERS[engine].backends[0])
    begin = (store, *where, "--out", "/work/results", "--", "--select", option)
    before, after = AROUND[engine]
    asked = begin if engine in IN_IMAGES else ("--store", store, *where, "--select", option)
    assert tuple(read_command(engine, filled)) == (*before, *asked, *after)
    if engine == "github":
        assert read_yaml(filled)["jobs"]["measure"]["runs-on"] == ["self-hosted", machine]


@pytest.mark.parametrize("engine", IN_IMAGES)
def test_steps_in_images_are_told_the_options_of_the_first_one_from_those_of_the_measurement(engine):
    filled = fill(
        engine, "--full", "--min-effect", "2%", "--suites=mine", "--baseline=a", "--budgets", "/work/budgets/b"
    )

    begin = read_command(engine, filled)
    own, measuring = begin[begin.index("--out") + 2 : begin.index("--")], begin[begin.index("--") + 1 :]
    assert own == ["--baseline", "a", "--budgets", "/work/budgets/b", "--min-effect", "2%"]
    assert measuring == ["--full", "--suites=mine"]


@pytest.mark.parametrize("engine", SCHEDULERS)
def test_captures_are_pushed_only_where_that_is_asked_for(engine):
    plain, asked = (read_command(engine, fill(engine, *words, "--full")) for words in ((), ("--with-captures",)))

    assert "--with-captures" not in plain
    assert [word for word in asked if word != "--with-captures"] == plain
    if engine in IN_IMAGES:
        assert "--with-captures" in asked[: asked.index("--")]
    if engine == "github":
        (gate,) = [line for line in read_runs(fill(engine, "--with-captures")).splitlines() if " -s gate " in line]
        assert "--with-captures" not in gate


@pytest.mark.parametrize("engine", IN_IMAGES)
def test_templates_call_the_steps_of_a_night_as_it_does(engine):
    text = fill(engine)

    names = {MEASURE, *(f"confirm-{role}" for role in TITLES)}
    called = r"\.night/([a-z-]+)" if engine != "pyxis" else r"^ *measure ([a-z-]+)"
    assert set(re.findall(called, text, re.MULTILINE)) == names
    assert FOLDER in text


@given(machine=texts)
def test_a_name_in_a_cluster_is_one_that_clusters_take(machine):
    assert re.fullmatch(r"[a-z]([a-z0-9-]{0,37}[a-z0-9])?", name_objects(machine))


@pytest.mark.parametrize("engine", SCHEDULERS)
def test_nothing_is_left_blank(engine):
    texts = fill(engine)

    assert re.findall(r"\$\{[a-z_]+\}", "".join(texts)) == []


@pytest.mark.parametrize("engine", IN_CLUSTERS)
def test_only_steps_that_measure_have_the_device_and_only_the_others_have_credentials(engine):
    steps = read_steps(fill(engine, "--devices", "4"))

    device = {"kubernetes": "nvidia.com/gpu", "jobset": "google.com/tpu"}[engine]
    assert list(steps) == ["begin", "measure", "suspects", "confirm-last", "confirm-pinned", "conclude"]
    for name in MEASURING:
        assert steps[name]["image"] == "r/measure@sha256:1"
        assert steps[name]["resources"]["limits"] == {device: 4}
        assert "envFrom" not in steps[name]
        assert "env" not in steps[name]
        assert "/dev/shm" in {mount["mountPath"] for mount in steps[name]["volumeMounts"]}
    for name in STORING:
        assert steps[name]["image"] == "r/store@sha256:2"
        assert "limits" not in steps[name]["resources"]
        assert steps[name]["envFrom"] == [{"secretRef": {"name": "jaxmeter-store", "optional": True}}]


@pytest.mark.parametrize(("engine", "backend"), [("kubernetes", "gpu"), ("kubernetes", "tpu"), ("jobset", "tpu")])
def test_a_pod_may_do_little_and_is_never_slowed_down_by_a_quota(engine, backend):
    text = fill(engine, "--backend", backend)

    pod, steps = read_pod(text), read_steps(text)
    assert pod["automountServiceAccountToken"] is False
    assert pod["securityContext"] == {
        "runAsNonRoot": True,
        "runAsUser": 65532,
        "runAsGroup": 65532,
        "fsGroup": 65532,
        "seccompProfile": {"type": "RuntimeDefault"},
    }
    for step in steps.values():
        assert step["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        }
        assert "cpu" in step["resources"]["requests"]
        assert "cpu" not in step["resources"].get("limits", {})


def test_protection_is_given_up_only_where_that_is_asked_for_and_only_by_steps_that_measure():
    steps = read_steps(fill("kubernetes", "--backend", "tpu", "--privileged"))

    assert [name for name, step in steps.items() if step["securityContext"].get("privileged")] == list(MEASURING)


ALONE = ("#SBATCH --exclusive", "#SBATCH --nodes=1", "#SBATCH --no-requeue", "#SBATCH --time=06:00:00")
IN_TIME = ("backoffLimit: 0", "activeDeadlineSeconds: 21600")


@pytest.mark.parametrize(
    ("engine", "lines"),
    [
        ("kubernetes", ('schedule: "0 3 * * *"', "timeZone: Etc/UTC", "concurrencyPolicy: Forbid", *IN_TIME)),
        ("jobset", ("maxRestarts: 0", "replicas: 1", "parallelism: 1", "completions: 1", *IN_TIME)),
        ("slurm", ALONE),
        ("pyxis", ALONE),
        ("github", ('- cron: "0 3 * * *"', "timeout-minutes: 360", "persist-credentials: false")),
        ("systemd", ("User=me", "KillSignal=SIGINT", "NoNewPrivileges=yes", "CapabilityBoundingSet=")),
        ("systemd", ("OnCalendar=*-*-* 03:00:00 UTC", "TimeoutStartSec=6h")),
    ],
)
def test_a_night_is_alone_tried_once_ended_in_time_and_may_do_little(engine, lines):
    filled = fill(engine)
    text = "\n".join(filled) if engine == "systemd" else filled

    assert set(lines) <= {line.partition(" # ")[0].strip() for line in text.splitlines()}
    assert not re.search(r"^(CPUQuota|CPUWeight|Nice|SystemCallFilter)", text, re.MULTILINE)


def write_program(path, text):
    path.write_text(text)
    path.chmod(0o755)
    return path


@pytest.mark.parametrize(("code", "expected"), [(0, 0), (3, 0), (1, 1), (2, 2), (130, 130)])
def test_an_incomplete_measurement_lets_a_pods_night_go_on_and_no_other_failure_does(tmp_path, code, expected):
    write_program(tmp_path / "python3", f'#!/bin/sh\necho "$@"\nexit {code}\n')
    step = read_steps(fill("kubernetes"))["measure"]
    (tmp_path / "measure").touch()

    def run(file):
        words = [*step["command"], str(file)]
        path = f"{tmp_path}:{os.environ['PATH']}"
        return subprocess.run(words, env={"PATH": path}, capture_output=True, text=True, check=False)

    done, absent = run(tmp_path / "measure"), run(tmp_path / "nothing")

    assert (done.returncode, done.stdout) == (expected, f"-m jaxmeter run @{tmp_path}/measure\n")
    assert (absent.returncode, absent.stdout) == (0, "")


# Begins nights as the real steps do: with files of arguments beside the runs.
SRUN = """#!/bin/bash
mount=""
for word in "$@"; do case $word in --container-mounts=*) mount=${word#*=}; esac; done
results=${mount%%:*}
echo "${*##*nothing} | ${AWS_SECRET_ACCESS_KEY:-none}" >> "$results/srun.log"
case "$*" in
    *"night begin --restart"*) : > "$results/.night/measure" ;;
    *"night begin"*) mkdir -p "$results/.night"; echo "$BEGUN" > "$results/.night/measure" ;;
    *"night suspects"*) touch "$results/.night/confirm-last" ;;
    *"jaxmeter run"*) grep -q -e --resume "$results/.night/measure" && exit 2; exit "${HARNESS_CODE:-3}" ;;
    *"night conclude"*) exit 1 ;;
esac
"""


@pytest.fixture
def run_pyxis(tmp_path):
    """Runs the script in a folder with a stand-in for srun; its exit code and the steps that it started."""
    write_program(tmp_path / "srun", SRUN)
    (tmp_path / "night.sh").write_text(fill("pyxis"))
    credentials = tmp_path / ".config" / "jaxmeter" / "store.env"
    credentials.parent.mkdir(parents=True)
    credentials.write_text("AWS_SECRET_ACCESS_KEY=planted\n")

    def run(**variables):
        environment = {"PATH": f"{tmp_path}:{os.environ['PATH']}", "HOME": str(tmp_path), **variables}
        ended = subprocess.run(["bash", "night.sh"], cwd=tmp_path, env=environment, check=False)
        return ended.returncode, (tmp_path / "jaxmeter-results" / "srun.log").read_text().splitlines()

    return run


def test_in_containers_of_slurm_only_steps_with_the_store_have_credentials(run_pyxis):
    code, steps = run_pyxis()

    assert code == 1
    assert [(re.findall(r"night \w+|jaxmeter run", step)[0], step.rpartition(" | ")[2]) for step in steps] == [
        ("night begin", "planted"),
        ("jaxmeter run", "none"),
        ("night suspects", "planted"),
        ("jaxmeter run", "none"),
        ("night conclude", "planted"),
    ]
    assert "@/work/results/.night/measure" in steps[1]
    assert "@/work/results/.night/confirm-last" in steps[3]


def test_in_containers_of_slurm_a_measurement_that_failed_ends_the_night_with_its_code(run_pyxis):
    code, steps = run_pyxis(HARNESS_CODE="2")

    assert (code, len(steps)) == (2, 2)


def test_in_containers_of_slurm_a_night_that_cannot_be_gone_on_with_is_begun_anew(run_pyxis):
    code, steps = run_pyxis(BEGUN="--resume")

    assert code == 1
    assert [re.findall(r"night \w+(?: --restart)?|jaxmeter run", step)[0] for step in steps] == [
        *("night begin", "jaxmeter run", "night begin --restart", "jaxmeter run"),
        *("night suspects", "jaxmeter run", "night conclude"),
    ]


@pytest.mark.parametrize("code", [0, 1, 2, 3])
def test_a_job_ends_with_the_exit_code_of_its_night_which_has_the_credentials(tmp_path, code):
    text = f'#!/bin/sh\necho "$AWS_SECRET_ACCESS_KEY" > {tmp_path}/credentials\nexit {code}\n'
    program = write_program(tmp_path / "a python", text)
    (tmp_path / "night.sh").write_text(fill("slurm", here=Here(str(program), CHECKOUT, "me")))
    credentials = tmp_path / ".config" / "jaxmeter" / "store.env"
    credentials.parent.mkdir(parents=True)
    credentials.write_text("AWS_SECRET_ACCESS_KEY=planted\n")

    environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path)}
    ended = subprocess.run(["bash", "night.sh"], cwd=tmp_path, env=environment, timeout=30, check=False)

    assert ended.returncode == code
    assert (tmp_path / "credentials").read_text() == "planted\n"


def test_a_job_asks_for_gpus_only_if_it_measures_on_them():
    assert "--gres" not in fill("slurm")
    assert "#SBATCH --gres=gpu:2" in fill("slurm", "--backend", "gpu", "--devices", "2").splitlines()


def test_a_workflow_may_do_little_and_runs_no_code_of_strangers_on_the_machine():
    workflow = read_yaml(fill("github"))

    job = workflow["jobs"]["measure"]
    assert workflow["permissions"] == {"contents": "read", "pull-requests": "write"}
    assert "pull_request.head.repo.full_name == github.repository" in job["if"]
    assert set(workflow[True]) == {"schedule", "workflow_dispatch", "pull_request"}  # YAML reads `on` as true


def test_a_pull_request_is_judged_by_the_gate_without_credentials_and_is_no_night():
    steps = read_yaml(fill("github", "--baseline", "a", "--quick"))["jobs"]["measure"]["steps"]

    night, request = (step for step in steps if "nox -s" in step.get("run", ""))
    assert (night["if"], "secrets." in json.dumps(night)) == ("github.event_name != 'pull_request'", True)
    assert (request["if"], "secrets." in json.dumps(request)) == ("github.event_name == 'pull_request'", False)
    last = request["run"].splitlines()[-1]
    assert shlex.split(last)[:4] == [".nox/runner/bin/nox", "-s", "gate", "--"]
    assert "--machine lab --backend cpu --quick --markdown" in last


NOX = """#!/bin/sh
echo "$@" >> calls
printf '%s' "$VERDICT" > reports/night.json
exit "$CODE"
"""


@pytest.fixture
def run_step(tmp_path):
    """Runs a step of the workflow as GitHub does, in its folder, with a stand-in for nox; its exit code."""
    for place in ("nights", "pull-requests"):
        for folder in ("reports", "results", ".nox/runner/bin"):
            (tmp_path / place / folder).mkdir(parents=True)
        write_program(tmp_path / place / ".nox" / "runner" / "bin" / "nox", NOX)
    steps = {step.get("name"): step for step in read_yaml(fill("github"))["jobs"]["measure"]["steps"]}

    def run(name, code=0, **verdict):
        environment = {"PATH": os.environ["PATH"], "CODE": str(code), "VERDICT": json.dumps(verdict)}
        command = ["bash", "-e", "-c", steps[name]["run"]]
        place = tmp_path / ("pull-requests" if "pull request" in name else "nights")
        return subprocess.run(command, cwd=place, env=environment, check=False).returncode

    return run


def test_a_pull_request_is_compared_with_the_last_good_night(run_step, tmp_path):
    night, request = "Measure and judge the night", "Measure and judge the pull request"
    assert run_step(request) == 3

    assert run_step(night, run="first", good=True) == 0
    assert run_step(night, run="busy", good=False) == 0
    assert run_step(night, code=1, run="slower", good=False) == 1
    assert run_step(request, code=1) == 1

    assert len((tmp_path / "nights" / "calls").read_text().splitlines()) == 3
    (call,) = (tmp_path / "pull-requests" / "calls").read_text().splitlines()
    assert call.startswith("-s gate -- ../nights/results/first --machine lab ")


def test_pull_requests_have_a_folder_of_their_own():
    job = read_yaml(fill("github"))["jobs"]["measure"]
    places = {step["uses"].partition("@")[0]: step["with"] for step in job["steps"] if "uses" in step}

    assert job["defaults"]["run"]["working-directory"] == job["env"]["FOLDER"]
    assert job["env"]["FOLDER"] == "${{ github.event_name == 'pull_request' && 'pull-requests' || 'nights' }}"
    assert places["actions/checkout"]["path"] == "${{ env.FOLDER }}"
    assert places["actions/upload-artifact"]["path"] == "${{ env.FOLDER }}/reports"


def test_the_bot_finds_its_comment_by_the_marker_that_the_page_begins_with():
    assert f"startsWith('{MARKER}')" in fill("github")


@pytest.fixture
def installed(monkeypatch, tmp_path):
    """Jaxmeter is an installed package, called in a folder."""
    monkeypatch.delenv("JAXMETER_IN_NOX")
    monkeypatch.setattr("jaxmeter.launch.shell.is_checkout", lambda: False)
    folder = tmp_path / "100% mine"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder


def call(engine, *options):
    return CliRunner().invoke(app, ["schedule", engine, *WHERE, *NEEDED.get(engine, ()), *options])


@pytest.mark.parametrize("engine", SCHEDULERS)
def test_an_installed_package_writes_every_schedule_that_calls_no_session_of_a_checkout(installed, engine):
    assert call(engine).exit_code == (2 if engine == "github" else 0)


@pytest.mark.parametrize("engine", ["slurm", "systemd"])
@pytest.mark.parametrize(
    "options", [("--runtime", "container"), ("--runtime=local",), ("--torch",), ("--image", "mine:1")]
)
def test_an_installed_package_schedules_no_measurement_that_it_cannot_make(installed, engine, options):
    assert call(engine, *options).exit_code == 2


def test_a_nightly_run_starts_in_the_folder_where_its_schedule_was_written(installed):
    unit, job = call("systemd").stdout, call("slurm").stdout

    (folder,) = re.findall(r"^WorkingDirectory=(.*)$", unit, re.MULTILINE)
    assert folder.replace("%%", "%") == str(installed)
    assert read_shell(job, r"^cd (.*) \|\| ") == [str(installed)]


def test_a_nightly_run_of_nox_starts_in_its_checkout():
    assert f"WorkingDirectory={CHECKOUT}" in fill("systemd")[0].splitlines()


@pytest.mark.parametrize("name", ["ends in \\", "ends in a space "])
def test_a_folder_that_systemd_would_change_is_refused(name):
    with pytest.raises(UsageError, match="systemd cannot start in this folder"):
        fill("systemd", here=Here("python3", Path("/", name), "me"))


@pytest.mark.parametrize("user", ["", "a b", "a\nExecStart=b", "%h"])
def test_a_unit_of_a_user_whom_systemd_cannot_name_is_refused(user):
    with pytest.raises(UsageError, match="systemd cannot run it as"):
        fill("systemd", here=Here("python3", CHECKOUT, user))


def test_a_schedule_is_printed_or_written_to_a_file_with_what_belongs_beside_it(tmp_path, capsys):
    write_asked_schedule(["systemd", *WHERE], HERE)
    printed = capsys.readouterr().out

    write_asked_schedule(["systemd", *WHERE, "--to", str(tmp_path / "new folder" / "night.service")], HERE)

    service, timer = ((tmp_path / "new folder" / f"night.{kind}").read_text() for kind in ("service", "timer"))
    assert printed == f"{service}\n{timer}"
    assert capsys.readouterr().out == ""


def test_a_file_that_cannot_be_written_is_named(tmp_path):
    (tmp_path / "file").touch()

    with pytest.raises(UsageError, match=r"file/night\.sh: File exists"):
        write_asked_schedule(["slurm", *WHERE, "--to", str(tmp_path / "file/night.sh")], HERE)


@pytest.mark.parametrize("engine", SCHEDULERS)
def test_the_least_that_an_engine_needs_is_enough(engine):
    asked = read(engine)

    assert (asked.store, asked.machine, asked.at.text) == ("s3://b/n", "lab", "0 3 * * *")
    assert (asked.backend, asked.rest) == (SCHEDULERS[engine].backends[0], [])


def test_what_is_asked_of_a_cluster_is_told_from_what_is_asked_of_the_night():
    night = ["--suites", "mine", "--full", "--budgets=/work/budgets/b.toml"]
    own = ("--node=zone=b", "--devices", "4", "--service-account", "bench", "--backend", "tpu", "--privileged")

    asked = read("kubernetes", *own, "--at", "0 1 * * 1", "--to", "a.yaml", *night)

    assert asked.rest == night
    assert (asked.node, asked.devices, asked.service_account) == (["accelerator=a", "zone=b"], "4", "bench")
    assert (asked.backend, asked.privileged) == ("tpu", True)
    assert (asked.at.text, asked.to) == ("0 1 * * 1", Path("a.yaml"))


PLACES = ["--out", "results", "--page=page.html", "--verdict", "verdict.json"]


@pytest.mark.parametrize("engine", ["slurm", "github", "systemd"])
def test_a_night_in_a_checkout_takes_the_options_of_a_measurement_its_container_and_its_places(engine):
    places = [] if engine == "github" else PLACES  # whose checkout is not its own
    night = ["--runtime", "container", "--image", "mine", "--suites=mine.py", "--quick", *places]

    assert read(engine, *night).rest == night


@pytest.mark.parametrize(
    ("arguments", "fault"),
    [
        ([], "one of kubernetes, jobset, slurm, pyxis, github, systemd"),
        (["--store", "s3://b"], "name an engine first"),
        (["kubernets", *WHERE], "'kubernets'; nearest: 'kubernetes'; engines: kubernetes, "),
        (["", *WHERE], "no engine ''"),
        (["slurm", "--machine", "lab"], "required: --store"),
        (["slurm", "--store", "s3://b/n"], "required: --machine"),
        (["slurm", "--store"], "--store: expected one argument"),
        (["slurm", "--store", "bucket", "--machine", "a"], "--store: 'bucket': give s3://…, gs://…, file:///…"),
        (["pyxis", *WHERE, *IMAGES, "--store", "file:///a"], "give s3://…, gs://…; a folder in a container"),
        (["slurm", *WHERE, "--machine="], "--machine is empty"),
        (["slurm", *WHERE, "--machine=--full"], "--machine: '--full'"),
        (["slurm", *WHERE, "--machine=a\nb"], "cannot be printed"),
        (["slurm", *WHERE, "--suites", "a\u2028b"], "cannot be printed"),
        (["slurm", *WHERE, "--at", "daily"], "give five fields"),
        (["slurm", *WHERE, "--bugdet", "5m"], "--bugdet: a nightly run by slurm has no such option; nearest: --budget"),
        (["kubernetes", *WHERE, *IMAGES, *NODE, "--qiuck"], "nearest: --quick"),
        (["slurm", *WHERE, "--backend", "cpu", "--cuda", "12"], "--cuda belongs to the gpu backend"),
        (["slurm", *WHERE, "--backend", "tpu"], "--backend: invalid choice: 'tpu'"),
        (["kubernetes", *WHERE, *IMAGES, *NODE, "--backend", "cpu"], "--backend: invalid choice: 'cpu'"),
        (["kubernetes", *WHERE], "required: --image, --store-image, --node"),
        (["pyxis", *WHERE, *IMAGES[:2]], "required: --store-image"),
        (["slurm", *WHERE, "--node", "a=b"], "--node: only for kubernetes, jobset"),
        (["systemd", *WHERE, "--devices=2"], "--devices: only for kubernetes, jobset, slurm, pyxis"),
        (["pyxis", *WHERE, *IMAGES, "--privileged"], "--privileged: only for kubernetes, jobset"),
        (["kubernetes", *WHERE, *IMAGES, *NODE, "--privileged"], "--privileged: NVIDIA GPUs need none"),
        (["slurm", *WHERE, "--devices", "2"], "--devices: the CPU has none to count"),
        (["slurm", *WHERE, "--backend=gpu", "--devices=0"], "--devices: '0' is not a count"),
        (["jobset", *WHERE, *IMAGES, "--node", "zone"], "--node: 'zone' is not LABEL=VALUE"),
        (["pyxis", *WHERE, *IMAGES, "--image=a b"], "--image: 'a b'"),
        (["jobset", *WHERE, *IMAGES, *NODE, "--service-account=A"], "--service-account: 'A'"),
        (["jobset", *WHERE, *IMAGES, *NODE, "--budgets", "b.toml"], "give /work/budgets/FILE"),
        (["github", *WHERE, "--suites", "a${{ secrets.B }}"], "github would evaluate '${{'"),
        (["systemd", *WHERE, "--to", "a.timer"], "--to: 'a.timer': give a name that ends in .service"),
    ],
)
def test_what_cannot_be_scheduled_is_said(arguments, fault):
    with pytest.raises(UsageError) as raised:
        read_schedule_request(arguments)

    assert fault in str(raised.value)


OF_CHECKOUTS = ("--runtime", "--base-image", "--open", *(name for name in OPTIONS if name != "--privileged"))


@pytest.mark.parametrize("engine", SCHEDULERS)
def test_an_option_that_would_break_the_night_is_refused_before_it(engine):
    places = () if engine in ("slurm", "systemd") else ("--out", *ENDING)

    for name in (*REFUSED, *places, *(OF_CHECKOUTS if engine in IN_IMAGES else ())):
        with pytest.raises(UsageError, match=f"^{name}: "):
            read(engine, f"{name}=a")


def test_an_image_by_a_tag_is_warned_of_since_a_tag_may_name_another_image_tomorrow():
    assert find_warnings(read("pyxis")) == find_warnings(read("pyxis", "--image", "/images/jaxmeter.sqsh")) == []
    (warning,) = find_warnings(read("pyxis", "--image", "registry/jaxmeter:gpu"))
    assert warning.startswith("--image registry/jaxmeter:gpu is no digest")


@pytest.mark.parametrize(("engine", "warns"), [("slurm", True), ("pyxis", False)])
def test_budgets_of_a_checkout_that_are_not_there_yet_are_told(engine, warns, tmp_path):
    path = tmp_path / "budgets.toml" if engine == "slurm" else "/work/budgets/b.toml"
    assert bool(find_warnings(read(engine, "--budgets", str(path)))) is warns

    (tmp_path / "budgets.toml").touch()
    assert find_warnings(read(engine, "--budgets", str(path))) == []
