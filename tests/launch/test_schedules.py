"""Schedules: every format reads the words that were asked for; what the steps of a template do; what is refused."""

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
from jaxmeter.launch.nightly import ENDING, REFUSED
from jaxmeter.launch.options import UsageError
from jaxmeter.launch.schedule import SCHEDULERS, fill_schedule, read_schedule_request, write_asked_schedule
from jaxmeter.reporting.nightly.outcome import TITLES
from jaxmeter.reporting.nightly.state import FOLDER, MEASURE

NIGHTLY = ("/opt/my python/bin/python3", "-m", "jaxmeter", "nightly")
PLACE = Path("/srv/it's 100% mine")
WHERE = ("--store", "s3://b/n", "--machine", "lab")
IMAGES = ("--image", "r/measure@sha256:1", "--store-image", "r/store@sha256:2")
IN_IMAGES = ("kubernetes", "jobset", "pyxis")
DEVICES = {"kubernetes": "nvidia.com/gpu", "jobset": "google.com/tpu"}
CONFINED = {"allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True, "capabilities": {"drop": ["ALL"]}}

texts = st.text(min_size=1).filter(lambda text: text.isprintable() and text.strip() and not text.startswith("-"))
SYNTAX = ("'", '"', "\\", "$(HOME)", "$HOME", "${HOME}", "${image}", "%h", "`id`", "; id", "#", "&x", "*a", "{}", "\\n")
hostile = st.sampled_from([*SYNTAX, "a: b"])
words = st.one_of(texts, hostile, st.tuples(texts, hostile).map("".join)).filter(lambda word: "${{" not in word)


def list_words(engine, *options):
    return [engine, *WHERE, *(IMAGES if engine in IN_IMAGES else ()), *options]


def fill(engine, *options, program=NIGHTLY, folder=PLACE):
    """Fill a schedule; return the text of its first file."""
    return next(iter(fill_schedule(read_schedule_request(list_words(engine, *options)), program, folder).values()))


def read_pod(text):
    """Return the pod of a filled template, and its containers by name, in their order."""
    filled = yaml.load(text, yaml.CSafeLoader)  # as `safe_load`, in a tenth of the time
    job = filled["spec"]["jobTemplate"] if "jobTemplate" in filled["spec"] else filled["spec"]["replicatedJobs"][0]
    pod = (job if filled["kind"] == "CronJob" else job["template"])["spec"]["template"]["spec"]
    return pod, {step["name"]: step for step in (*pod["initContainers"], *pod["containers"])}


def read_workflow(text):
    return yaml.load(text, yaml.CSafeLoader)["jobs"]["measure"]


def expand(word):
    """Return a word of a pod's command as its node reads it: `$(NAME)` is a variable, and `$$` a dollar."""
    return re.sub(r"\$(\$|\([^)]*\))", lambda found: "$" if found[1] == "$" else "a variable", word)


def read_unit(text):
    """Return the words of a unit's command, as systemd reads them: escapes, specifiers, then variables."""
    (line,) = re.findall(r"^ExecStart=(.*)$", text, re.MULTILINE)
    quoted = re.findall(r'"((?:[^"\\]|\\.)*)"(?: |$)', line)
    assert " ".join(f'"{word}"' for word in quoted) == line
    plain = [re.sub(r"\\(.)", lambda m: m[1] if m[1] in '"\\' else "a character", word) for word in quoted]
    program, *rest = (re.sub("%(.)", lambda m: "%" if m[1] == "%" else "a specifier", word) for word in plain)
    variable = r"\$(\$|\{\w+\}|\w+)"
    return [program, *(re.sub(variable, lambda m: "$" if m[1] == "$" else "a variable", word) for word in rest)]


def read_command(engine, text):
    """Return the command of a nightly run, or of its first step, as the engine reads it."""
    if engine in DEVICES:
        return list(map(expand, read_pod(text)[1]["begin"]["args"]))[4:]
    if engine == "systemd":
        return read_unit(text)
    line = {"pyxis": r"^with_store begin (.*)$", "slurm": r"^(.*) &$", "github": r" -s nightly -- (.*) --markdown "}
    scripts = text if engine != "github" else "\n".join(step.get("run", "") for step in read_workflow(text)["steps"])
    (command,) = re.findall(line[engine], scripts, re.MULTILINE)
    return shlex.split(command)


@settings(max_examples=30, deadline=None)
@given(machine=words, path=words, option=words)
@pytest.mark.parametrize("engine", SCHEDULERS)
def test_every_format_reads_the_words_that_were_asked_for(engine, machine, path, option):
    store = f"s3://b/{path}"

    text = fill(engine, "--store", store, f"--machine={machine}", "--with-captures", "--select", option)

    where = ("--machine", machine, "--backend", SCHEDULERS[engine].backends[0])
    begin = (store, *where, "--out", "/work/results", "--with-captures", "--", "--select", option)
    night = ("--store", store, *where, "--with-captures", "--select", option)
    program = NIGHTLY if engine in ("slurm", "systemd") else ()
    assert tuple(read_command(engine, text)) == (begin if engine in IN_IMAGES else (*program, *night))
    if engine == "github":
        assert read_workflow(text)["runs-on"] == ["self-hosted", machine]
    if engine == "slurm":
        assert re.search(r"^#SBATCH --job-name=[a-z]([a-z0-9-]{0,37}[a-z0-9])?$", text, re.MULTILINE)


@pytest.mark.parametrize("engine", SCHEDULERS)
def test_nothing_is_left_blank_and_a_start_time_is_that_of_the_engine(engine):
    at = "Mon *-*-* 04:30:00" if engine == "systemd" else "30 4 * * 1"
    files = fill_schedule(read_schedule_request(list_words(engine, "--at", at)), NIGHTLY, PLACE)

    text = "\n".join(files.values())
    assert re.findall(r"\$\{[a-z_]+\}", text) == []
    assert at in text


def test_a_nightly_run_starts_in_its_folder():
    assert "WorkingDirectory=/srv/it's 100%% mine" in fill("systemd").splitlines()
    (folder,) = re.findall(r"^cd (.*) \|\| ", fill("slurm"), re.MULTILINE)
    assert shlex.split(folder) == [str(PLACE)]


@pytest.mark.parametrize("folder", ["/ends in \\", "/ends in a space ", "/a\nExecStart=b"])
def test_a_folder_that_a_schedule_cannot_name_is_refused(folder):
    with pytest.raises(UsageError, match="a schedule cannot start in this folder"):
        fill("systemd", folder=Path(folder))


@pytest.mark.parametrize("engine", IN_IMAGES)
def test_templates_call_the_steps_of_a_nightly_run_by_their_names(engine):
    called = r"\.night/([a-z-]+)" if engine != "pyxis" else r"^ *measure ([a-z-]+)"
    assert FOLDER == ".night"
    assert set(re.findall(called, fill(engine), re.MULTILINE)) == {MEASURE, *(f"confirm-{role}" for role in TITLES)}


@pytest.mark.parametrize("engine", DEVICES)
def test_steps_of_a_pod_have_either_the_device_or_the_credentials_and_few_rights(engine):
    pod, steps = read_pod(fill(engine))

    assert pod["securityContext"]["runAsNonRoot"] is True
    assert pod["nodeSelector"] == {"jaxmeter-machine": "jaxmeter-lab"}
    assert list(steps) == ["begin", "measure", "suspects", "confirm-last", "confirm-pinned", "conclude"]
    for name, step in steps.items():
        measures = name in ("measure", "confirm-last", "confirm-pinned")
        assert step["image"] == ("r/measure@sha256:1" if measures else "r/store@sha256:2")
        assert step["resources"].get("limits") == ({DEVICES[engine]: 1} if measures else None)  # and no quota
        assert ("envFrom" in step, "env" in step) == (not measures, not measures)
        assert step["securityContext"] == CONFINED


def write_program(path, text):
    path.write_text(text)
    path.chmod(0o755)
    return str(path)


@pytest.mark.parametrize(("code", "expected"), [(0, 0), (3, 0), (1, 1), (2, 2), (130, 130)])
def test_an_incomplete_measurement_lets_a_pod_go_on_and_no_other_failure_does(tmp_path, code, expected):
    write_program(tmp_path / "python3", f'#!/bin/sh\necho "$@"\nexit {code}\n')
    command = read_pod(fill("kubernetes"))[1]["measure"]["command"]
    (tmp_path / "measure").touch()

    def run(file):
        env = {"PATH": f"{tmp_path}:{os.environ['PATH']}"}
        done = subprocess.run([*command, str(file)], env=env, capture_output=True, text=True, check=False)
        return done.returncode, done.stdout

    assert run(tmp_path / "measure") == (expected, f"-m jaxmeter run @{tmp_path}/measure\n")
    assert run(tmp_path / "nothing") == (0, "")


def run_script(folder, text, **variables):
    """Run a job's script in a folder that is the home, with credentials of a store; return the exit code."""
    credentials = folder / ".config" / "jaxmeter" / "store.env"
    credentials.parent.mkdir(parents=True)
    credentials.write_text("AWS_SECRET_ACCESS_KEY=planted\n")
    (folder / "night.sh").write_text(text)
    environment = {"PATH": f"{folder}:{os.environ['PATH']}", "HOME": str(folder), **variables}
    return subprocess.run(["bash", "night.sh"], cwd=folder, env=environment, timeout=30, check=False).returncode


# Begins nightly runs as the real steps do: with files of arguments next to the runs.
SRUN = """#!/bin/bash
for word in "$@"; do case $word in --container-mounts=*) mount=${word#*=}; esac; done
results=${mount%%:*}
step=$(grep -o -E 'night [a-z]+( --restart)?|run @.*' <<< "$*")
echo "$step ${AWS_SECRET_ACCESS_KEY:-none}" >> "$results/srun.log"
case "$step" in
    "night begin --restart") : > "$results/.night/measure" ;;
    "night begin") mkdir -p "$results/.night"; echo "$BEGUN" > "$results/.night/measure" ;;
    "night suspects") touch "$results/.night/confirm-last" ;;
    run*) grep -q -e --resume "$results/.night/measure" && exit 2; exit "$HARNESS_CODE" ;;
    "night conclude") exit 1 ;;
esac
"""
BEGIN, MEASURING = "night begin planted", "run @/work/results/.night/measure none"
ENDED = ["night suspects planted", "run @/work/results/.night/confirm-last none", "night conclude planted"]


@pytest.mark.parametrize(
    ("begun", "harness_code", "code", "steps"),
    [
        ("", "3", 1, [BEGIN, MEASURING, *ENDED]),
        ("", "2", 2, [BEGIN, MEASURING]),
        ("--resume", "0", 1, [BEGIN, MEASURING, "night begin --restart planted", MEASURING, *ENDED]),
    ],
    ids=["incomplete", "failed", "cannot be continued"],
)
def test_a_job_in_containers_takes_the_steps_and_only_those_with_the_store_have_credentials(
    tmp_path, begun, harness_code, code, steps
):
    write_program(tmp_path / "srun", SRUN)

    assert run_script(tmp_path, fill("pyxis"), BEGUN=begun, HARNESS_CODE=harness_code) == code

    assert (tmp_path / "jaxmeter-results" / "srun.log").read_text().splitlines() == steps


@pytest.mark.parametrize("code", [0, 1, 2, 3])
def test_a_job_ends_with_the_exit_code_of_its_nightly_run_which_has_the_credentials(tmp_path, code):
    text = f'#!/bin/sh\necho "$AWS_SECRET_ACCESS_KEY" > credentials\nexit {code}\n'
    program = [write_program(tmp_path / "a python", text)]

    assert run_script(tmp_path, fill("slurm", program=program, folder=tmp_path)) == code

    assert (tmp_path / "credentials").read_text() == "planted\n"


def test_a_job_requests_gpus_only_if_it_measures_on_them():
    assert "##SBATCH --gres=gpu:1" in fill("slurm").splitlines()
    assert "#SBATCH --gres=gpu:1" in fill("slurm", "--backend", "gpu").splitlines()


NOX = """#!/bin/sh
echo "$@" >> calls
printf '%s' "$VERDICT" > reports/night.json
exit "$CODE"
"""


def test_a_pull_request_is_compared_with_the_last_good_nightly_run_without_credentials(tmp_path):
    text = fill("github", "--baseline", "a", "--with-captures", "--quick")
    workflow, marker = read_workflow(text), f"startsWith('{MARKER}')"
    night, request = (step for step in workflow["steps"] if "nox -s" in step.get("run", ""))
    for place in ("nights", "pull-requests"):
        for folder in ("reports", "results", ".nox/runner/bin"):
            (tmp_path / place / folder).mkdir(parents=True)
        write_program(tmp_path / place / ".nox/runner/bin/nox", NOX)

    def run(step, code=0, **verdict):
        env = {"PATH": os.environ["PATH"], "CODE": str(code), "VERDICT": json.dumps(verdict)}
        place = tmp_path / ("nights" if step is night else "pull-requests")
        return subprocess.run(["bash", "-e", "-c", step["run"]], cwd=place, env=env, check=False).returncode

    assert run(request) == 3
    assert run(night, run="first", good=True) == 0
    assert run(night, run="busy", good=False) == 0
    assert run(night, code=1, run="slower", good=False) == 1
    assert run(request, code=1) == 1

    (call,) = (tmp_path / "pull-requests/calls").read_text().splitlines()
    assert call.startswith("-s gate -- ../nights/results/first --machine lab --backend cpu --quick --markdown")
    assert [step["if"].partition("'")[0] for step in (night, request)] == [
        "github.event_name != ",
        "github.event_name == ",
    ]
    assert ["secrets." in json.dumps(step) for step in (night, request)] == [True, False]
    assert "pull_request.head.repo.full_name == github.repository" in workflow["if"]
    assert marker in text


def test_a_schedule_is_printed_or_written_to_files_of_one_name(tmp_path, capsys):
    write_asked_schedule(list_words("systemd"))
    printed = capsys.readouterr().out
    write_asked_schedule(list_words("systemd", "--to", str(tmp_path / "new folder" / "night.service")))

    service, timer = ((tmp_path / "new folder" / f"night.{kind}").read_text() for kind in ("service", "timer"))
    assert (printed, capsys.readouterr().out) == (f"{service}\n{timer}", "")
    with pytest.raises(UsageError, match="Is a directory; name a file that can be written"):
        write_asked_schedule(list_words("slurm", "--to", str(tmp_path)))


@pytest.fixture
def installed(monkeypatch):
    """Jaxmeter is an installed package."""
    monkeypatch.delenv("JAXMETER_IN_NOX")
    monkeypatch.setattr("jaxmeter.launch.shell.is_checkout", lambda: False)


@pytest.mark.parametrize(
    ("engine", "options", "code"),
    [
        *((engine, (), 2 if engine == "github" else 0) for engine in SCHEDULERS),
        *(("slurm", options, 2) for options in (("--runtime", "container"), ("--torch",), ("--image", "mine:1"))),
    ],
)
def test_an_installed_package_schedules_what_it_can_measure(installed, engine, options, code):
    assert CliRunner().invoke(app, ["schedule", *list_words(engine, *options)]).exit_code == code


@pytest.mark.parametrize(
    ("engine", "options"),
    [
        ("kubernetes", ("--backend", "tpu", "--budgets=/work/budgets/b.toml", "--full")),
        ("github", ("--runtime", "container", "--image", "mine", "--suites=mine.py")),
        ("systemd", ("--store", "file:///a", "--out", "results", "--page=page.html", "--verdict", "verdict.json")),
    ],
)
def test_options_of_nightly_runs_and_measurements_are_taken(engine, options):
    assert read_schedule_request(list_words(engine, *options)).engine == engine


@pytest.mark.parametrize(
    ("words", "fault"),
    [
        ([], "name one first: kubernetes, jobset, slurm, pyxis, github, systemd"),
        (["kubernets", *WHERE], "'kubernets' is no engine"),
        (["slurm", "--machine", "lab"], "required: --store"),
        (["slurm", "--store", "s3://b/n"], "required: --machine"),
        (["pyxis", *WHERE, *IMAGES[:2]], "required: --store-image"),
        (list_words("slurm", "--store", "bucket"), "--store: 'bucket': give s3://…, gs://… or file:///…"),
        (list_words("pyxis", "--store", "file:///a"), "give s3://…, gs://…"),
        (list_words("slurm", "--machine="), "--machine is empty"),
        (list_words("slurm", "--machine=a\nb"), "cannot be printed"),
        (list_words("slurm", "--suites", "a\u2028b"), "cannot be printed"),
        (list_words("github", "--suites", "a${{ secrets.B }}"), "github would evaluate '${{'"),
        (list_words("pyxis", "--image=a$(b)"), "--image: 'a$(b)': give the name of an image"),
        (list_words("slurm", "--at", "daily; id"), "--at: 'daily; id': give a time such as '0 3 * * *'"),
        (list_words("systemd", "--at", "0 3 * * *"), "give a time such as '*-*-* 03:00:00 UTC'"),
        (list_words("slurm", "--backend", "tpu"), "--backend: invalid choice: 'tpu'"),
        (
            list_words("slurm", "--bugdet", "5m"),
            "a nightly run by slurm has no such option; nearest: --budget",
        ),
        (list_words("slurm", "--cuda", "12"), "--cuda belongs to the gpu backend"),
        (list_words("kubernetes", "--runtime", "local"), "--runtime: a nightly run by kubernetes has no such option"),
        *(
            (list_words(engine, f"{name}=a"), f"{name}: ")
            for engine in SCHEDULERS
            for name in (*REFUSED, *(() if engine in ("slurm", "systemd") else ("--out", *ENDING)))
        ),
    ],
)
def test_what_cannot_be_scheduled_is_said(words, fault):
    with pytest.raises(UsageError) as raised:
        read_schedule_request(words)

    assert fault in str(raised.value)
