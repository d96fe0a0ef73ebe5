import subprocess
from dataclasses import replace

import pytest

from jaxmeter.launch import releases
from jaxmeter.launch.environments import read_wanted
from jaxmeter.launch.options import UsageError
from jaxmeter.launch.releases import check_environment, choose_between, find_interpreter, list_releases, read_pin

KNOWN = ("0.8.3", "0.9.0", "0.9.1", "0.9.2rc1", "0.9.2", "0.10.0", "0.10.0.post1", "0.10.2")

ALL = ("0.4.31", "0.4.34", "0.10.2", "0.12.0")
OFFERED = {
    **{(package, python): ALL for package in ("jax", "jaxlib") for python in ("3.12", "3.13")},
    **{(package, "3.11"): ALL[:-1] for package in ("jax", "jaxlib")},
    ("jaxlib", "3.13"): ALL[1:],
}
"""Versions that an index has, by package and Python. jax has no wheels of its own for a Python, jaxlib has."""

THERE = "/kept/python"


@pytest.fixture
def pip(monkeypatch):
    """What pip is asked; it complains of what it is given, or lists what OFFERED has."""
    asked = []

    def answer(complaint=None):
        def run(command, **options):
            asked.append(command)
            package, python = command[-1].partition("==")[0], command[-2]
            known = ", ".join(OFFERED.get((package, python), ())) or "none"
            listed = f"Could not find a version that satisfies the requirement {command[-1]} (from versions: {known})"
            return subprocess.CompletedProcess(command, 1, "", complaint or f"ERROR: {listed}\n")

        monkeypatch.setattr(releases.subprocess, "run", run)
        return asked

    return answer


@pytest.fixture(autouse=True)
def pythons(monkeypatch):
    """Versions of interpreters, by path; this machine has Python 3.12 only."""
    known = {"python3.11": "3.11.7 (main)", "python3.13": "3.13.0 (main)"}
    monkeypatch.setattr(releases, "ask_version", lambda path: known.get(path, "3.12.1 (main)"))
    monkeypatch.setattr(releases, "find_interpreter", lambda version: THERE if version == "3.12" else "")


@pytest.mark.parametrize("words", ["jax", "jax>=0.10", "jax==0.10 flax==0.12", "jax==*", ""])
def test_a_release_is_a_package_with_its_version_and_anything_else_is_none(words):
    assert read_pin(" jax[cuda13]==0.10.0 ") == ("jax[cuda13]", "0.10.0")
    with pytest.raises(UsageError, match=r'is no release; write one package with its version, such as "jax==0.12.0"'):
        read_pin(words)


@pytest.mark.parametrize(
    ("good", "bad", "between"),
    [
        ("0.9.0", "0.10.2", ("0.9.0", "0.9.1", "0.9.2", "0.10.0", "0.10.0.post1", "0.10.2")),
        ("0.9.1", "0.8.3", ("0.9.1", "0.9.0", "0.8.3")),
        ("0.9", "0.9.1.0", ("0.9.0", "0.9.1")),
        ("0.9.2rc1", "0.9.1", ("0.9.2rc1", "0.9.1")),
    ],
    ids=["in order and without candidates", "the bad one is older", "zeros at the end", "a candidate"],
)
def test_releases_between_two_are_told_whatever_these_are(good, bad, between):
    assert choose_between("jax", good, bad, KNOWN) == tuple(f"jax=={version}" for version in between)


@pytest.mark.parametrize(("version", "nearest"), [("0.9.5", "0.4.34"), ("0.13.0", "0.12.0"), ("0.1", "0.4.31")])
def test_one_that_no_python_has_is_named_with_the_nearest(pip, version, nearest):
    pip()
    with pytest.raises(UsageError, match=rf"^there is no jax=={version} for Python 3\.12; nearest: {nearest}$"):
        list_releases("jax==0.4.34", f"jax=={version}", THERE)


def test_pip_is_asked_for_what_cannot_be_and_names_what_there_is(pip, monkeypatch):
    monkeypatch.setattr(releases, "find_pip", lambda: ("/made/bin/python", "-m", "pip"))
    asked = pip()

    found = list_releases("jax[cuda13]==0.4.31", "jax[cuda13]==0.10.2", THERE)

    assert found == tuple(f"jax[cuda13]=={version}" for version in ALL[:-1])
    assert [command[:3] + command[-3:] for command in asked] == [
        ["/made/bin/python", "-m", "pip", "--python-version", "3.12", f"{name}==0.0.0.dev0"]
        for name in ("jax", "jaxlib")
    ]


@pytest.mark.parametrize(
    ("python", "good", "bad", "said"),
    [
        ("3.11", "0.10.2", "0.12.0", "0.12.0 for Python 3.11; nearest: 0.10.2; Python 3.12 and 3.13 have 0.10.2 and "),
        ("3.13", "0.4.31", "0.12.0", "0.4.31 for Python 3.13; nearest: 0.4.34; Python 3.12 has 0.4.31 and "),
        ("3.11", "0.12.0", "0.9.5", "0.12.0 for Python 3.11; nearest: 0.10.2"),
    ],
    ids=["jax dropped it", "jaxlib has no wheel for it", "no Python has both"],
)
def test_the_pythons_that_have_both_releases_are_named_with_the_option(pip, python, good, bad, said):
    pip()
    with pytest.raises(UsageError) as caught:
        list_releases(f"jax=={good}", f"jax=={bad}", f"python{python}")

    advice = "0.12.0: add --python PATH, such as /kept/python" if "Python 3.12" in said else ""
    assert str(caught.value) == f"there is no jax=={said}{advice}"


def test_only_jax_goes_by_the_wheels_of_jaxlib(pip, monkeypatch):
    pip()
    monkeypatch.setitem(OFFERED, ("flax", "3.13"), ("0.4.0", "0.5.0"))

    assert releases.list_offered("flax", "3.13") == ("0.4.0", "0.5.0")
    assert releases.list_offered("jax[cuda13]", "3.13") == ("0.4.34", "0.10.2", "0.12.0")


@pytest.mark.parametrize("words", ["flax==0.12.0 jax==0.12.0", "jax[cuda13]==0.12.0"])
def test_an_environment_that_python_cannot_have_is_refused_with_its_option(pip, words):
    pip()
    wanted = replace(read_wanted(words), python="python3.11")

    with pytest.raises(UsageError, match=r"0 for Python 3\.11; .* have 0\.12\.0: add --new-python PATH"):
        check_environment(wanted, "--new-python")
    check_environment(replace(wanted, python=THERE), "--new-python")


def test_an_environment_without_a_release_of_jax_asks_nothing(pip):
    asked = pip()

    check_environment(read_wanted("jax flax==0.12.0"), "--new-python")

    assert asked == []


INDEXES = ("--extra-index-url https://a/simple/", "-i https://a/simple/", "--find-links=wheels", "--no-index")


@pytest.mark.parametrize("line", INDEXES)
def test_a_requirements_file_with_an_index_of_its_own_is_left_to_pip(pip, tmp_path, line):
    asked, python = pip(), "python3.11"
    (tmp_path / "index.txt").write_text(f"{line}\n")
    (tmp_path / "new.txt").write_text("jax==0.12.0\n")
    with pytest.raises(UsageError, match="there is no jax==0"):
        check_environment(replace(read_wanted(str(tmp_path / "new.txt")), python=python), "--new-python")
    asked.clear()

    (tmp_path / "new.txt").write_text("-r index.txt\njax==0.12.0\n")
    check_environment(replace(read_wanted(str(tmp_path / "new.txt")), python=python), "--new-python")

    assert asked == []


def test_a_pre_release_that_pip_lists_is_installed(pip, monkeypatch):
    asked, version = pip(), "0.13.0.dev20260401"
    for package in ("jax", "jaxlib"):
        monkeypatch.setitem(OFFERED, (package, "3.12"), ("0.12.0", version))

    check_environment(replace(read_wanted(f"jax=={version}"), python=THERE), "--new-python")

    assert asked


@pytest.mark.parametrize(
    ("complaint", "good", "bad", "said"),
    [
        ("ERROR: no network\n", "jax==0.9.0", "jax==0.10.0", "no release of jax can be found: no network"),
        (None, "jaxx==0.9.0", "jaxx==0.10.0", r"jaxx can be found: the package index has no jaxx for Python 3\.12"),
        (None, "jax==0.9.0", "jaxlib==0.10.0", "--good is a release of jax, --bad one of jaxlib"),
        (None, "jax==0.9.0", "jax==0.9.0", "--good and --bad are both jax==0.9.0"),
    ],
)
def test_two_releases_of_one_package_that_pip_finds_are_needed(pip, complaint, good, bad, said):
    pip(complaint)

    with pytest.raises(UsageError, match=said):
        list_releases(good, bad)


@pytest.mark.parametrize("root", ["", "elsewhere"])
def test_an_interpreter_counts_only_if_it_has_the_version_that_its_name_says(tmp_path, monkeypatch, root):
    shim = tmp_path / "shims" / "python3.12"
    kept = tmp_path / (root or ".pyenv") / "versions" / "3.12.1" / "bin" / "python"
    for path in (shim, kept):
        path.parent.mkdir(parents=True)
        path.touch(0o755)
    monkeypatch.setenv("PATH", str(shim.parent))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("PYENV_ROOT", str(tmp_path / root) if root else "")

    def ask(path):
        if path == str(shim):
            raise UsageError("python3.12: command not found")
        return "3.12.1 (main)"

    monkeypatch.setattr(releases, "ask_version", ask)

    assert find_interpreter("3.12") == str(kept)
    assert find_interpreter("3.11") == ""
