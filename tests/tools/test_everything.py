"""Continuous integration leaves out tests whose files did not change; everything runs them all."""

import ast
import os
import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.container.conftest import pytest_itemcollected
from tests.tools.everything import EVERYTHING, ONLY_IF_CHANGED, choose, find_base, select_changed

CHECKOUT = Path(__file__).parents[2]
NOON = 1_800_000_000
HOUR_S = 3600


def git(folder, *words, time_s=NOON):
    identity = ("-c", "user.name=me", "-c", "user.email=me@example.com", "-c", "commit.gpgsign=false")
    dates = {"GIT_COMMITTER_DATE": f"@{time_s} +0000", "GIT_AUTHOR_DATE": f"@{time_s} +0000"}
    command = ["git", "-C", folder, *identity, *words]
    done = subprocess.run(command, env={**os.environ, **dates}, check=True, capture_output=True, text=True)
    return done.stdout.strip()


def commit(folder, path, time_s):
    (folder / path).parent.mkdir(parents=True, exist_ok=True)
    (folder / path).write_text(f"{time_s}")
    git(folder, "add", path)
    git(folder, "commit", "--quiet", "--message", path, time_s=time_s)
    return git(folder, "rev-parse", "HEAD")


@pytest.fixture
def history(tmp_path):
    """Commits of three days; the newest is of noon, and the commit before it an hour older."""
    git(tmp_path, "init", "--quiet", "--initial-branch", "main")
    ages = {"jaxmeter/launch/engines.py": 48, "docker/Dockerfile": 25, "README.md": 1, "LICENSE": 0}
    for path, hours in ages.items():
        commit(tmp_path, path, NOON - hours * HOUR_S)
    return tmp_path


def list_sessions():
    """Source of each session of the noxfile, by its name."""
    text = (CHECKOUT / "noxfile.py").read_text(encoding="utf8")
    functions = [node for node in ast.parse(text).body if isinstance(node, ast.FunctionDef) and node.decorator_list]
    return {function.name: ast.get_source_segment(text, function) for function in functions}


def test_everything_is_all_sessions_that_check_jaxmeter():
    tests = {name for name, source in list_sessions().items() if re.search(r'\brun_tests\(|"pytest"', source)}

    assert set(EVERYTHING) == tests | {"lint", "types", "docs"}
    assert len(EVERYTHING) == len(set(EVERYTHING))


@pytest.mark.end_to_end
@pytest.mark.parametrize(
    ("arguments", "code", "printed"), [(["--dry-run"], 0, list(EVERYTHING)), (["tests"], 1, [])], ids=["list", "wrong"]
)
def test_what_everything_runs_is_listed_without_running_it(arguments, code, printed):
    command = [sys.executable, "-m", "nox", "-s", "everything", "--", *arguments]
    listed = subprocess.run(command, cwd=CHECKOUT, capture_output=True, text=True, timeout=60, check=False)

    assert (listed.returncode, listed.stdout.split()) == (code, printed)


@pytest.mark.parametrize(
    ("changed", "selected"),
    [
        (["README.md", "jaxmeter/reporting/load.py", "jaxmeter/launch/nightly.py"], []),
        (["jaxmeter/suites/mlp_in_torch.py"], ["torch"]),
        (["docker/locks/cpu-torch.txt"], ["torch", "podman"]),
        (["tests/container/deeper/test_a.py", "README.md"], ["podman"]),
        (["jaxmeter/launch/upgrade.py"], ["releases"]),
        (["pyproject.toml"], ["releases", "oldest"]),
        (None, list(ONLY_IF_CHANGED)),
    ],
    ids=["other files", "a peer", "a lock", "tests of containers", "a walk", "dependencies", "unknown"],
)
def test_a_change_of_their_files_calls_for_tests(changed, selected):
    assert select_changed(changed) == selected


@pytest.mark.parametrize(
    ("mark", "folders", "word"),
    [
        ("torch", ("jaxmeter/suites", "tests/suites"), r"import torch|needs_torch|_in_torch|mark\.torch"),
        ("podman", ("jaxmeter/launch", "tests/container"), r'kind [!=]= "podman"|\bEngine\b'),
    ],
)
def test_files_that_use_what_is_left_out_call_for_its_tests(mark, folders, word):
    files = [path for folder in folders for path in (CHECKOUT / folder).rglob("*.py")]
    using = [path.relative_to(CHECKOUT).as_posix() for path in files if re.search(word, path.read_text("utf8"))]

    assert len(using) > 5
    assert [path for path in using if mark not in select_changed([path])] == []


def test_every_pattern_names_files_that_exist():
    patterns = [pattern for patterns in ONLY_IF_CHANGED.values() for pattern in patterns]

    assert [pattern for pattern in patterns if not list(CHECKOUT.glob(pattern))] == []


UNKNOWN = (list(ONLY_IF_CHANGED), "the history does not show what changed")


def test_on_main_changes_count_that_are_less_than_a_day_older_than_its_head_and_so_do_those_not_committed(history):
    assert find_base(history) == git(history, "rev-parse", "HEAD~2")
    assert choose(history)[0] == []
    (history / "jaxmeter" / "launch" / "engines.py").write_text("changed")
    assert choose(history)[0] == ["podman"]

    commit(history, "docker/locks/cpu-torch.txt", NOON + 30 * HOUR_S)

    assert find_base(history) == git(history, "rev-parse", "HEAD~1")
    assert choose(history)[0] == ["torch", "podman"]


def test_on_a_branch_changes_count_since_it_left_main(history):
    git(history, "update-ref", "refs/remotes/origin/main", "HEAD~3")
    assert find_base(history) == git(history, "rev-parse", "HEAD~3")
    assert choose(history)[0] == ["podman"]

    git(history, "update-ref", "refs/remotes/origin/main", "HEAD")

    assert find_base(history) == git(history, "rev-parse", "HEAD~2")


def test_without_the_history_or_main_of_the_remote_everything_is_called_for(history, tmp_path_factory):
    shallow, empty = (tmp_path_factory.mktemp(name) for name in ("shallow", "empty"))
    git(shallow, "clone", "--quiet", "--depth", "1", f"file://{history}", ".")

    assert (choose(shallow), choose(empty)) == (UNKNOWN, UNKNOWN)
    for switch in (("--create", "change"), ("--detach",)):
        git(history, "switch", "--quiet", *switch)
        assert choose(history) == UNKNOWN


@pytest.mark.parametrize(
    ("fixtures", "params", "marks"),
    [
        (["image", "engine"], {}, []),
        (["small_podman", "podman"], {}, ["podman"]),
        (["each_engine"], {"each_engine": "podman", "signal": 2}, ["podman"]),
        (["each_engine"], {"each_engine": "engine"}, []),
    ],
)
def test_tests_of_containers_that_need_the_second_engine_are_marked(fixtures, params, marks):
    added = []

    pytest_itemcollected(
        SimpleNamespace(fixturenames=fixtures, callspec=SimpleNamespace(params=params), add_marker=added.append)
    )

    assert added == marks
