"""A wheel, built and installed in an environment of its own, in a project whose folders have our old names."""

from __future__ import annotations

import re
import subprocess
import sysconfig
import venv
import zipfile
from importlib import metadata

import pytest

from tests.end_to_end.conftest import build_wheel, run_outside, write_small_suite

pytestmark = [pytest.mark.end_to_end, pytest.mark.slow]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """The wheel of this checkout."""
    return build_wheel(tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def installed(wheel, tmp_path_factory):
    """The folder of programs of an environment with the wheel, and of this one what it depends on."""
    folder = tmp_path_factory.mktemp("environment")
    venv.create(folder, with_pip=True)
    python = folder / "bin" / "python"
    subprocess.run([python, "-m", "pip", "install", "--quiet", "--no-deps", str(wheel)], check=True)
    (packages,) = folder.glob("lib/python*/site-packages")
    (packages / "of_the_tests.pth").write_text(f"{sysconfig.get_path('purelib')}\n")
    return folder / "bin"


@pytest.fixture
def project(tmp_path):
    """A user's project with folders of any name: each breaks whoever imports it in place of ours."""
    for name in ("harness", "suites", "reporting", "launch", "jaxmeter", "cli", "rich", "msgspec"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text(f"raise RuntimeError('{name} of the project')\n")
    write_small_suite(tmp_path)
    return tmp_path


def test_a_wheel_installs_the_package_the_command_and_no_other_name(wheel):
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    (information,) = {name.split("/")[0] for name in names if ".dist-info" in name}

    assert {name.split("/")[0] for name in names} == {"jaxmeter", information}
    assert len(names) == len(set(names))
    assert {"jaxmeter/suites/selu.py", "jaxmeter/reporting/templates/report.html.j2"} <= set(names)


def test_a_project_with_folders_of_any_name_measures_and_reports(installed, project):
    command = installed / "jaxmeter"

    listed = run_outside(project, command, "list")
    measured = run_outside(
        project, command, "run", "--suites", "small.py", "--quick", "--processes", "1", "--run-id", "it"
    )
    reported = run_outside(project, command, "report", "results/it", "--out", "page.html")

    assert (listed.returncode, "selu" in listed.stdout) == (0, True), listed.stderr
    assert measured.returncode == 0, measured.stderr
    assert reported.returncode == 0, reported.stderr
    assert (project / "page.html").stat().st_size > 0


def test_time_of_jaxmeters_own_suites_has_source_lines_where_jaxmeter_is_installed(installed, project):
    options = ("--select", "selu", "--quick", "--processes", "1", "--probe", "trace", "--run-id", "own")
    measured = run_outside(project, installed / "jaxmeter", "run", *options)

    assert measured.returncode == 0, measured.stderr
    text = (project / "results" / "own" / "run.json").read_text("utf8")
    lines = re.findall(r'"by_source":\s*\{\s*"([^"]*)"', text)
    assert lines
    assert all(line.startswith("jaxmeter/suites/selu.py:") for line in lines)


def test_a_module_of_the_project_can_be_a_suite_by_its_name(installed, project):
    listed = run_outside(project, installed / "jaxmeter", "list", "--suites", "small")

    assert (listed.returncode, "increment" in listed.stdout) == (0, True), listed.stderr


def test_the_doctor_examines_the_environment_of_the_command(installed, project):
    ended = run_outside(project, installed / "jaxmeter", "doctor")

    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert f"this one, with jax {metadata.version('jax')} ({installed.parent})" in " ".join(ended.stdout.split())
    assert "jaxmeter run --backend cpu can measure here" in " ".join(ended.stdout.split())


@pytest.mark.parametrize(
    ("words", "what"),
    [
        (("gate", "results/it", "--runtime", "local"), "--runtime local"),
        (("schedule", "github", "--store", "s3://a/b", "--machine", "lab"), "a schedule of github"),
        (("images", "cpu"), "an image"),
    ],
)
def test_what_needs_a_checkout_of_jaxmeter_says_so(installed, project, words, what):
    ended = run_outside(project, installed / "jaxmeter", *words)

    assert ended.returncode == 2
    assert f"error: {what} needs a checkout of jaxmeter" in ended.stderr


def test_a_schedule_of_the_environment_is_written_by_an_installed_package(installed, project):
    ended = run_outside(
        project, installed / "jaxmeter", "schedule", "systemd", "--store", "s3://a/b", "--machine", "lab"
    )

    assert ended.returncode == 0, ended.stderr
    assert f"WorkingDirectory={project}" in ended.stdout.splitlines()
