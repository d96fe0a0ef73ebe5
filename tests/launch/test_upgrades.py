from contextlib import nullcontext
from pathlib import Path

import pytest

from jaxmeter.launch import upgrade
from jaxmeter.launch.options import UsageError
from jaxmeter.launch.upgrade import compare_environments, read_upgrade_request
from tests.launch.shells import NotedShell

BOTH = ("--old", "jax==0.10.0", "--new=jax==0.10.2")


def test_both_environments_and_what_to_measure_are_read():
    measuring = ("--quick", "--suites", "mine.py", "--out", "there")

    asked = read_upgrade_request([*BOTH, *measuring, "--min-effect", "2%", "--markdown=a.md"])

    assert (asked.old.words, asked.new.words) == ("jax==0.10.0", "jax==0.10.2")
    assert (asked.measuring, asked.out) == (measuring, Path("there"))
    assert asked.judging == ("--min-effect", "2%", "--markdown", "a.md")
    assert read_upgrade_request(BOTH).out == Path("results")
    with pytest.raises(UsageError, match="--probe: an upgrade looks at times"):
        read_upgrade_request([*BOTH, "--probe", "trace"])


@pytest.mark.parametrize("given", [("--old", "jax"), ("--new", "jax")])
def test_without_both_an_example_is_given(given):
    with pytest.raises(UsageError, match=r'name both environments: --old "jax==0\.11\.2"'):
        read_upgrade_request(given)


IMAGES = (f"registry.example/a/b@sha256:{'0' * 64}", f"sha256:{'a1' * 32}")


def test_two_images_are_read_by_their_digests():
    asked = read_upgrade_request(["--old", IMAGES[0], "--new", IMAGES[1], "--quick"])

    assert (asked.old, asked.new) == IMAGES
    assert asked.measuring == ("--quick",)


@pytest.mark.parametrize(
    ("arm", "fault"),
    [
        ("jax==0.10.2", "one of the two is an image; give two images"),
        *(
            (word, "no image; a digest is sha256: and 64 digits")
            for word in ("sha256:12", "a/b@sha256:" + "g" * 64, IMAGES[1] + "0")
        ),
    ],
)
def test_an_image_beside_what_is_none_is_refused(arm, fault):
    with pytest.raises(UsageError, match=fault):
        read_upgrade_request(["--old", arm, "--new", IMAGES[1]])


# Environment variables of one side


def test_each_side_may_have_variables_of_its_own():
    sides = ["--old-env", "XLA_FLAGS=--xla_a=1 --xla_b=2", "--new-env=XLA_FLAGS=", "--new-env", "OMP_NUM_THREADS=1"]

    asked = read_upgrade_request([*BOTH, *sides, "--quick"])

    assert asked.variables == ({"XLA_FLAGS": "--xla_a=1 --xla_b=2"}, {"XLA_FLAGS": "", "OMP_NUM_THREADS": "1"})
    assert asked.measuring == ("--quick",)


def test_a_release_that_this_python_lacks_is_refused_before_any_environment_is_made(tmp_path, monkeypatch):
    made = []
    monkeypatch.setattr(upgrade, "prepare_environment", lambda shell, wanted: made.append(wanted))
    monkeypatch.setattr(upgrade, "has_environment", lambda shell, wanted: wanted.words == "jax==0.10.0")

    def refuse(wanted, option):
        raise UsageError(f"{option}: there is no {wanted.words}")

    monkeypatch.setattr(upgrade, "check_environment", refuse)

    with pytest.raises(UsageError, match=r"--new-python: there is no jax==0\.10\.2"):
        compare_environments(NotedShell(tmp_path), BOTH)
    assert made == []


@pytest.mark.parametrize("word", ["XLA_FLAGS", "=1", "A B=1", "1A=2"])
def test_what_is_no_variable_is_refused_with_an_example_and_one_is_given_once(word):
    with pytest.raises(UsageError, match=f"--new-env '{word}' is not NAME=VALUE; write --new-env XLA_FLAGS=--xla"):
        read_upgrade_request([*BOTH, f"--new-env={word}"])
    with pytest.raises(UsageError, match="--old-env: XLA_FLAGS is given twice; write one value"):
        read_upgrade_request([*BOTH, *(f"--old-env=XLA_FLAGS=--xla_{name}=1" for name in "ab")])


@pytest.fixture
def same_release(tmp_path, monkeypatch):
    """Compares one release with itself, with options; (exit code, the shell)."""
    monkeypatch.setattr(upgrade, "prepare_environment", lambda shell, wanted: tmp_path / "python")
    monkeypatch.setattr(upgrade, "has_environment", lambda shell, wanted: True)

    def compare(*options, codes=None):
        shell = NotedShell(tmp_path, codes)
        return compare_environments(shell, ["--old", "jax==0.10.2", "--new", "jax==0.10.2", *options]), shell

    return compare


def test_the_same_release_is_measured_under_the_variables_of_each_side(same_release, tmp_path, capsys):
    code, shell = same_release("--new-env", "XLA_FLAGS=--xla_a=1 --xla_b=2")

    limits, old, new, *_ = shell.ran
    python = str(tmp_path / "python")
    assert code == 0
    assert limits[-3:] == ("limits", "--new-env", "XLA_FLAGS=--xla_a=1 --xla_b=2")
    assert old[:5] == (python, "-P", "-m", "jaxmeter", "run")
    assert new[:6] == ("/usr/bin/env", "XLA_FLAGS=--xla_a=1 --xla_b=2", python, "-P", "-m", "jaxmeter")
    assert ("--lock-step", python) == new[new.index("--lock-step") :][:2]
    said = capsys.readouterr().err
    assert "old: jax==0.10.2 with no variable of its own" in said
    assert "new: jax==0.10.2 with XLA_FLAGS=--xla_a=1 --xla_b=2" in said


def test_a_variable_that_a_side_cannot_have_ends_it_before_anything_is_measured_or_shown(same_release, capsys):
    code, shell = same_release("--old-env", "MY_TOKEN=secret", codes={"limits": 2})

    assert (code, len(shell.ran), "secret" in capsys.readouterr().err) == (2, 1, False)


def test_images_take_the_variables_of_their_side_beside_the_users(tmp_path, monkeypatch):
    given = []
    monkeypatch.setattr(upgrade, "run_harness", lambda *words: given.append(words[-1]) or 0)
    monkeypatch.setattr(upgrade, "plan_job", lambda *_: None)
    monkeypatch.setattr(upgrade, "offer_environment", lambda job: nullcontext(tmp_path / "socket"))

    sides = ["--old-env", "XLA_FLAGS=--xla_a=1", "--new-env", "XLA_FLAGS="]
    shell = NotedShell(tmp_path)
    code = compare_environments(shell, ["--old", IMAGES[0], "--new", IMAGES[1], *sides])

    assert code == 0
    assert given == [{**shell.variables, "XLA_FLAGS": "--xla_a=1"}, {**shell.variables, "XLA_FLAGS": ""}]
