"""What continuous integration runs on: the Python that it finds, and README's lines on a clean machine."""

import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from noxfile import OLDEST_PYTHON
from tests.test_locks import PYTHONS

pytestmark = pytest.mark.end_to_end

CHECKOUT = Path(__file__).parents[1]
CI = CHECKOUT / ".ci"
BASH = shutil.which("bash")


def write_program(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!{BASH}\n{text}\n")
    path.chmod(0o755)
    return path


def write_python(path, version):
    """Write a stand-in that knows its version; called for anything else, it prints its arguments."""
    question = version.replace(".", ", ")
    return write_program(
        path,
        f'if [[ $1 != -c ]]; then echo "$0 $*"; elif [[ $2 == *"({question})"* ]]; then echo "$0"; else exit 1; fi',
    )


def find_python(folder, *version):
    """Return exit code, stdout and stderr where only `folder/bin` is on the path."""
    (folder / "bin").mkdir(exist_ok=True)
    if not (folder / "bin" / "sort").exists():
        (folder / "bin" / "sort").symlink_to(shutil.which("sort"))
    done = subprocess.run(
        [BASH, CI / "find-python", *version],
        env={"PATH": f"{folder / 'bin'}"},
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout.strip(), done.stderr


@pytest.mark.parametrize(
    ("pythons", "expected"),
    [
        ({"bin/python3.12": "3.12", "bin/python3.13": "3.13", "bin/python3.14": "3.14"}, "bin/python3.13"),
        ({"bin/python3.12": "3.12", "bin/python3.14": "3.14", "bin/python3.11": "3.11"}, "bin/python3.14"),
        ({"bin/python3": "3.13", "bin/python3.12": "3.12"}, "bin/python3"),
        (
            {"bin/python3.13": "2.7", "pyenv/versions/3.13.0/bin/python3.13": "3.13"},
            "pyenv/versions/3.13.0/bin/python3.13",
        ),
        ({"bin/python3.12": "3.12", "uv/python3.13": "3.13"}, "uv/python3.13"),
    ],
    ids=["3.13 comes first", "then the newest", "by a shorter name", "behind a shim that runs nothing", "uv's"],
)
def test_a_python_that_gets_the_newest_jax_is_found(tmp_path, pythons, expected):
    for path, version in pythons.items():
        write_python(tmp_path / path, version)
    write_program(tmp_path / "bin" / "pyenv", f'[[ $1 == root ]] && echo "{tmp_path}/pyenv"')
    write_program(tmp_path / "bin" / "uv", f'ls=("{tmp_path}"/uv/python"$3"); [[ -x $ls ]] && echo "$ls"')

    code, path, said = find_python(tmp_path)

    assert (code, path) == (0, f"{tmp_path / expected}")
    assert said == f"Python {pythons[expected]}: {tmp_path / expected}\n"


def test_a_version_that_is_asked_for_is_the_only_one_that_will_do(tmp_path):
    for version in ("3.12", "3.13"):
        write_python(tmp_path / "bin" / f"python{version}", version)

    assert find_python(tmp_path, "3.12")[:2] == (0, f"{tmp_path}/bin/python3.12")
    code, path, said = find_python(tmp_path, "3.11")
    assert (code, path) == (1, "")
    assert "found no Python 3.11 " in said
    assert ("apt install" in said, "uv python install 3.11" in said) == (False, True)


def test_pythons_that_are_looked_for_are_locked_and_the_oldest_is_the_first_that_the_project_allows():
    text = (CI / "find-python").read_text(encoding="utf8")
    project = tomllib.loads((CHECKOUT / "pyproject.toml").read_text(encoding="utf8"))["project"]

    versions = re.search(r"^versions=\((.*?)\)", text, re.MULTILINE)[1].split()
    assert sorted(versions) == [python for python in PYTHONS if python != OLDEST_PYTHON]
    assert project["requires-python"] == f">={OLDEST_PYTHON}"


@pytest.fixture
def repository(tmp_path):
    """A repository with README's line for `nox -s tests`, which only shows where it is; a file is not committed."""
    folder = tmp_path / "repository"
    shutil.copytree(CI, folder / ".ci")
    line = "python3 -m venv .venv && pwd && ls -A && echo nox -s tests  # run the tests"
    (folder / "README.md").write_text(f"```sh\n{line}\n```\n")
    identity = ("-c", "user.name=me", "-c", "user.email=me@example.com", "-c", "commit.gpgsign=false")
    for words in (["init"], ["add", "."], ["commit", "--message", "first"]):
        subprocess.run(["git", "-C", folder, *identity, *words], check=True, capture_output=True)
    (folder / "uncommitted").touch()
    write_python(tmp_path / "bin" / "python3.13", "3.13")
    return folder


def run_on_clean_machine(repository, session):
    variables = {**os.environ, "PATH": f"{repository.parent / 'bin'}:{os.environ['PATH']}"}
    command = [repository / ".ci" / "clean-machine", session]
    return subprocess.run(command, env=variables, capture_output=True, text=True, check=False)


def test_a_line_of_readme_runs_in_a_new_clone_by_the_python_that_is_found(repository):
    done = run_on_clean_machine(repository, "tests")

    assert done.returncode == 0, done.stderr
    _, python, folder, *files = done.stdout.splitlines()
    assert python == f"{repository.parent}/bin/python3.13 -m venv .venv"
    assert files == [".ci", ".git", "README.md", "nox -s tests"]
    assert Path(folder).name == "jaxmeter"
    assert not Path(folder).exists()
    refused = run_on_clean_machine(repository, "test")
    assert (refused.returncode, refused.stdout) == (2, "")
    assert "README.md has no line that runs nox -s test\n" in refused.stderr


def test_where_a_clean_debian_can_be_had_the_line_runs_in_it_and_it_is_removed(repository):
    docker = write_program(repository.parent / "docker", f'printf "%s\\n" "$*" >>"{repository.parent}/asked"; exit 3')
    write_program(repository.parent / "shared" / "tools" / "python-today", f'echo "{docker} run --rm -e A=b image"')

    done = run_on_clean_machine(repository, "tests")

    ran, removed = (repository.parent / "asked").read_text().splitlines()
    assert done.returncode == 3
    assert re.fullmatch(
        r"run --name (\S+) --env PYTEST_ADDOPTS --env HYPOTHESIS_PROFILE --rm -e A=b image"
        r" bash -c git clone --quiet \S+/jaxmeter /root/jaxmeter"
        r" && cd /root/jaxmeter && python3 -m venv \.venv && .*# run the tests",
        ran,
    )
    assert removed == f"rm --force {ran.split()[2]}"


MARKED = """
import pytest

absent = pytest.mark.skipif(True, reason="there is none")

@pytest.mark.parametrize("a", [pytest.param(1, marks=absent, id="x - y::z"), 2])
def test_a(a):
    pass
"""
SKIPPING = {
    "__init__.py": "",
    "engines.py": "import pytest\n\ndef find_engine():\n    pytest.skip('there is no engine')\n",
    "test_by_mark.py": MARKED,
    "test_by_helper.py": "from tests.engines import find_engine\n\ndef test_b():\n    find_engine()\n",
    "test_skips_nothing.py": "def test_c():\n    pass\n",
}


def test_files_with_tests_that_a_clean_machine_skips_are_run_again(tmp_path):
    (tmp_path / "tests").mkdir()
    for name, text in SKIPPING.items():
        (tmp_path / "tests" / name).write_text(text)
    options = re.search(r'PYTEST_ADDOPTS="(.*)"', (CI / "clean-machine").read_text(encoding="utf8"))[1]
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *options.split(), "tests"]
    log = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True).stdout
    expression = re.search(r"sed -nE '(.*)' ", (CI / "run").read_text(encoding="utf8"))[1]

    files = subprocess.run(["sed", "-nE", expression], input=log, capture_output=True, text=True, check=True).stdout

    assert sorted(files.split()) == ["tests/test_by_helper.py", "tests/test_by_mark.py"]
