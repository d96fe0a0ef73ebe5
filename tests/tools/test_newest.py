"""Tests with the newest packages, and the versions of new locks that the tests have not run with."""

import subprocess
from pathlib import Path

import jax
import pytest
from packaging.requirements import Requirement

from jaxmeter.harness.machine.jax_internals import NEWEST_TESTED
from jaxmeter.launch.images import locate_lock
from tests.tools.exports import list_exports
from tests.tools.newest import (
    INTERNALS,
    describe_new_locks,
    list_installed,
    list_requirements,
    read_newest_tested,
    run_newest_tests,
)

CHECKOUT = Path(__file__).parents[2]
LOCK = """
jax==0.10.2 ; python_full_version < '3.12'
jax==0.12.0.1 ; python_full_version >= '3.12'
flax==1
numpy==2
"""
REQUIREMENTS = ("jax>=0.10", "flax")
RESULTS = """<testsuites><testsuite>
<testcase file="tests/test_a.py" name="test_passed" />
<testcase file="tests/test_a.py" name="test_failed[1]"><failure /></testcase>
<testcase classname="" name="tests.test_b"><error /></testcase>
</testsuite></testsuites>"""


def write_checkout(folder, lock=LOCK):
    for name, _ in list_exports():
        path = folder / locate_lock(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(lock, encoding="utf8")
    internals = folder / INTERNALS
    internals.parent.mkdir(parents=True, exist_ok=True)
    internals.write_text('NEWEST_TESTED = "0.12.0.1"\n', encoding="utf8")


@pytest.fixture
def newest(tmp_path, capsys):
    """Runs the tests of some versions under Python 3.13.0; the exit code, pytest's arguments and the lines it said."""
    write_checkout(tmp_path)

    def run(versions, arguments=(), code=0, results=RESULTS):
        tested = []

        def run_pytest(words):
            tested.extend(words)
            (path,) = (word.removeprefix("--junitxml=") for word in words if word.startswith("--junitxml="))
            if results:
                Path(path).write_text(results, encoding="utf8")
            return code

        ended = run_newest_tests(tmp_path, REQUIREMENTS, arguments, versions, "3.13.0", run_pytest)
        return ended, tested, capsys.readouterr().err.splitlines()

    return run


SAME = {"jax": "0.12.0.1", "flax": "1"}


def test_what_is_asked_for_is_what_the_project_its_extras_and_its_tests_need():
    names = {Requirement(line).name for line in list_requirements(CHECKOUT)}

    assert {"jax", "pytest", "hypothesis", "nox"} <= names
    assert {"pandas", "jinja2", "fsspec", "resvg-py", "flax", "optax", "matplotlib"} <= names
    assert "jaxmeter" not in names  # pip would ask an index for it


def test_what_is_installed_is_listed_by_its_canonical_name_without_installers():
    assert read_newest_tested((CHECKOUT / INTERNALS).read_text(encoding="utf8")) == NEWEST_TESTED  # as the harness
    installed = list_installed()

    assert installed["jax"] == jax.__version__
    assert "pip" not in installed


@pytest.mark.parametrize(
    ("arguments", "paths"),
    [(["-k", "scan"], ["-k", "scan", "tests/harness/programs"]), (["docker", "-x"], ["docker", "-x"])],
)
def test_other_arguments_go_to_pytest_and_paths_replace_ours(newest, arguments, paths):
    _, tested, _ = newest(SAME, arguments)

    begin = tested.index(arguments[0])
    assert tested[begin : begin + len(paths)] == paths
    assert ("tests/harness/programs" in tested) == (arguments[0] == "-k")


def test_versions_are_shown_next_to_the_locked_ones_of_this_python(newest):
    _, _, said = newest({"jax": "0.12.0.1", "flax": "2", "new-one": "3", "numpy": "2"})

    assert said[0] == "the newest packages for Python 3.13.0; 1 others have their locked versions"
    assert [line.split() for line in said[1:5]] == [
        ["package", "newest", "locked"],
        ["jax", "0.12.0.1", "the", "same"],
        ["flax", "2", "1"],
        ["new-one", "3", "not"],
    ]


def test_whatever_pytest_ends_with_but_success_is_a_failure_that_names_tests_and_versions(newest):
    ended, _, said = newest({"jax": "0.13.0", "flax": "1"}, code=5)

    assert ended == 1
    versions = "Python 3.13.0, jax 0.13.0 (locked: 0.12.0.1) and the locked versions of all others"
    begin = next(at for at, line in enumerate(said) if line.startswith("error:"))
    assert said[begin : begin + 3] == [
        f"error: 2 of 3 tests failed (pytest ended with 5) with {versions}",
        "  tests/test_a.py::test_failed[1]",
        "  tests.test_b",
    ]
    ended, _, said = newest(SAME, code=4, results="")  # it could not begin
    assert ended == 1
    assert any(line.startswith("error: 0 of 0 tests failed (pytest ended with 4)") for line in said)


@pytest.mark.parametrize(("jax", "is_named"), [("0.12.0.1", False), ("0.12.1", True), ("0.13.0rc1", True)])
def test_a_jax_newer_than_the_newest_tested_is_named_at_the_end(newest, jax, is_named):
    ended, _, said = newest({"jax": jax, "flax": "1"})

    assert ended == 0
    assert said[-1].startswith(f"jax {jax} is newer than 0.12.0.1") == is_named


@pytest.fixture
def committed(tmp_path):
    """A checkout whose locks are committed."""

    def git(*words):
        subprocess.run(["git", "-C", tmp_path, "-c", "user.name=a", "-c", "user.email=a@b", *words], check=True)

    write_checkout(tmp_path)
    git("init", "--quiet")
    git("add", "docker")
    git("commit", "--quiet", "--message", "locks")
    return tmp_path


def test_new_locks_are_compared_with_those_of_the_last_commit(committed):
    assert list(describe_new_locks(committed)) == ["no version is new since the last commit"]
    new = LOCK.replace("0.12.0.1", "0.13.0")
    write_checkout(committed, new)
    (committed / locate_lock("gpu")).write_text(f"{new}cuda==13\n", encoding="utf8")

    said = list(describe_new_locks(committed))

    assert said[:3] == [
        "cuda new → 13; only in gpu",
        "jax 0.12.0.1 → 0.13.0 (Python ≥ 3.12)",
        "the tests have not run with these 2 new versions; run them: nox -s tests newest",
    ]
    assert said[3].startswith("jax 0.13.0 is newer than 0.12.0.1")


def test_without_a_commit_the_locks_are_compared_with_nothing(tmp_path):
    write_checkout(tmp_path)

    compared = ["git has none of the last commit to compare with" in line for line in describe_new_locks(tmp_path)]
    assert compared == [True] * len(list(list_exports()))
