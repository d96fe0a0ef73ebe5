import os
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from jaxmeter.launch import environments
from jaxmeter.launch.environments import (
    MARK,
    Wanted,
    describe_disk,
    is_made,
    make_environment,
    make_locked_environment,
    read_wanted,
)
from jaxmeter.launch.options import UsageError
from tests.launch.test_pip_messages import CONFLICT, PIP

CHECKOUT = Path(__file__).parents[2]


def test_what_pip_is_given_are_packages_a_requirements_file_or_a_folder_that_it_can_install(tmp_path):
    (tmp_path / "old.txt").write_text("jax==0.10.0\n")
    wanted = read_wanted(str(tmp_path / "old.txt"))

    for others in ("jax==0.4.31", "jax", "jaxtyping==0.2.0", "jax>=0.4.0"):  # not too old
        assert read_wanted(f"{others} 'flax==0.12'").arguments == (others, "flax==0.12")
    assert (wanted.arguments, wanted.contents) == (("--requirement", str(tmp_path / "old.txt")), "jax==0.10.0\n")
    with pytest.raises(UsageError, match=r"a folder without pyproject\.toml"):
        read_wanted(str(tmp_path))
    (tmp_path / "pyproject.toml").write_text("[project]\n")
    assert read_wanted(str(tmp_path)).arguments == ("--editable", str(tmp_path))


TOO_OLD = r"cannot be measured; releases of jax from 0\.4\.31 on can"


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        ("none.txt", "none.txt: no such file; give packages"),
        ("", "an environment without packages"),
        ("--index-url http://a jax", "give packages"),
        ("'jax", "No closing quotation"),
        ("jax[cuda12]==0.3.25", TOO_OLD),
        ("jax===0.4.30", TOO_OLD),
        ("old.txt", TOO_OLD),
    ],
)
def test_what_is_neither_or_cannot_be_measured_is_said(tmp_path, monkeypatch, words, problem):
    monkeypatch.chdir(tmp_path)
    Path("old.txt").write_text("numpy==2.0.0\njax==0.4.30\n")

    with pytest.raises(UsageError, match=problem):
        read_wanted(words)


def test_the_causes_of_a_conflict_are_read_where_pip_prints_them(tmp_path, monkeypatch):
    def fail(command, **options):
        error, _, causes = CONFLICT.partition("\n")
        return subprocess.CompletedProcess(command, "install" in command, causes, error)

    monkeypatch.setattr(environments.subprocess, "run", fail)

    with pytest.raises(UsageError, match=r"numpy==1\.22\.4; jax 0\.4\.31 depends on numpy>=1\.24"):
        make_environment(read_wanted("jax==0.4.31 numpy==1.22.4"), tmp_path, ())


@pytest.fixture
def commands(monkeypatch):
    """What would have been run; an environment then has a python."""
    ran = []

    def run(command, **options):
        ran.append(command)
        if "venv" in command:
            (Path(command[-1]) / "bin").mkdir(parents=True)
        out = "jax==0.10.0\n" if "freeze" in command else ""
        return subprocess.CompletedProcess(command, 1 if "jax==9" in command else 0, out, PIP)

    monkeypatch.setattr(environments.subprocess, "run", run)
    return ran


def test_two_that_need_the_same_environment_make_it_once(tmp_path, commands, monkeypatch):
    """Each of several `nox -s upgrade` at a time would empty the folder that another one fills."""
    wanted = read_wanted("jax==0.10.0")
    run = environments.subprocess.run

    def run_slowly(command, **options):
        time.sleep(0.02)
        return run(command, **options)

    monkeypatch.setattr(environments.subprocess, "run", run_slowly)

    with ThreadPoolExecutor() as pool:
        (python,) = set(pool.map(lambda _: make_environment(wanted, tmp_path, ("rich",)), range(8)))

    assert python.parts[-2:] == ("bin", "python")
    assert [command[-1] for command in commands if "install" in command] == ["jax==0.10.0", "rich"]


def test_using_an_environment_again_is_noted_as_its_last_use_and_one_that_was_interrupted_is_made_anew(
    tmp_path, commands
):
    wanted = read_wanted("jax==0.10.0")
    assert not is_made(wanted, tmp_path, ())
    mark = make_environment(wanted, tmp_path, ()).parents[1] / MARK
    os.utime(mark, (0, 0))

    make_environment(wanted, tmp_path, ())

    assert is_made(wanted, tmp_path, ())
    assert mark.stat().st_mtime > 0
    mark.unlink()
    make_environment(wanted, tmp_path, ())
    assert [command[-1] for command in commands].count("jax==0.10.0") == 2


def test_the_disk_of_all_environments_is_the_sum_of_what_each_took_when_it_was_made(tmp_path, commands):
    place = make_environment(read_wanted("jax==0.10.0"), tmp_path, ()).parents[1]
    files = [path for path in place.rglob("*") if path.name != MARK]
    assert int((place / MARK).read_text()) == sum(path.lstat().st_size for path in files)
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / MARK).write_text("4000000000")
    (tmp_path / "unfinished").mkdir()

    assert describe_disk(tmp_path).startswith("2 environments take 4.0 GB")


def test_what_measuring_needs_changes_nothing_that_the_user_named(tmp_path, commands):
    make_environment(read_wanted("jax==0.10.0"), tmp_path, ("flax",))

    (last,) = [command for command in commands if command[-1] == "flax"]
    named = Path(last[last.index("--constraint") + 1])
    assert named.read_text() == "jax==0.10.0\n"


def test_other_words_contents_or_needs_make_another(tmp_path, commands):
    pythons = {
        make_environment(Wanted("a", ("--requirement", "a"), contents), tmp_path, needed)
        for contents in ("jax==1", "jax==2")
        for needed in (("rich",), ("rich", "typer"))
    }

    assert len(pythons) == 4


PINNED = (
    *("jax[cuda13]==0.10.0 flax===0.12", "'jax == 0.10.0'", "'jax==0.10.0; python_version<\"3.12\"'"),
    "'a @ git+https://host/a@0123456789abcdef0123456789abcdef01234567#egg=a'",
)
NOT_PINNED = ("jax==0.10.0 flax", "'jax>=0.10'", "jax==0.10.*", "'jax==0.10,!=0.10.1'", "git+https://host/a@main")


@pytest.mark.parametrize("words", [*PINNED, *NOT_PINNED])
def test_what_names_one_version_is_pinned(words):
    assert read_wanted(words).is_pinned is (words in PINNED)


@pytest.mark.parametrize(
    ("text", "is_pinned"),
    [
        ("# ours\njax==0.10.0  # the old one\n\nflax==0.12\n-r more.txt\n-r cycle.txt\n", True),
        ("jax==0.10.0 \\\n    --hash=sha256:00 \\\n    --hash=sha256:11\n", True),
        ("jax==0.10.0\nflax\n", False),
        ("--index-url https://host\njax==0.10.0\n", False),
        ("--requirement=more.txt\n-c loose.txt\n", False),
    ],
)
def test_a_requirements_file_is_pinned_if_all_of_it_is(text, is_pinned, tmp_path):
    (tmp_path / "more.txt").write_text("jax==0.10.0\n")
    (tmp_path / "loose.txt").write_text("jax<0.11\n")
    (tmp_path / "cycle.txt").write_text("-r cycle.txt\njax==0.10.0\n")
    (tmp_path / "asked.txt").write_text(text)

    assert read_wanted(str(tmp_path / "asked.txt")).is_pinned is is_pinned


def test_another_text_of_an_included_file_is_another_environment(tmp_path):
    (tmp_path / "all.txt").write_text("-r more.txt\n")
    contents = set()
    for version in ("0.10.0", "0.10.1"):
        (tmp_path / "more.txt").write_text(f"jax=={version}\n")
        contents.add(read_wanted(str(tmp_path / "all.txt")).contents)

    assert len(contents) == 2


def test_a_requirement_that_is_not_pinned_is_asked_for_anew_each_day(tmp_path, commands, monkeypatch):
    now = 1_795_000_000.0
    monkeypatch.setattr(environments.time, "gmtime", lambda: time.struct_time((2026, 11, day, 9, 0, 0, 0, 0, 0)))
    monkeypatch.setattr(environments.time, "time", lambda: now)
    pythons = {}
    for day, later_s in ((20, 0), (20, 60), (21, 23 * 3600), (22, 47 * 3600)):
        now = 1_795_000_000.0 + later_s
        pythons[day] = make_environment(read_wanted("jax"), tmp_path, ())
        os.utime(pythons[day].parents[1] / environments.MARK, (now, now))

    assert len([command for command in commands if command[-1] == "jax"]) == 3
    assert pythons[20] != pythons[21] != pythons[22]
    assert [pythons[day].parents[1].exists() for day in (20, 21, 22)] == [False, True, True]


def test_an_environment_that_cannot_be_made_is_said_and_not_kept(tmp_path, commands):
    (tmp_path / "file").touch()

    with pytest.raises(UsageError, match=r"file: cannot be written: .*; check"):
        make_environment(read_wanted("jax==0.10.0"), tmp_path / "file", ())
    with pytest.raises(UsageError, match=r"jax==9: an environment cannot be made of it: there is no jax==0\.10\.9"):
        make_environment(read_wanted("jax==9"), tmp_path, ())

    assert not [path for path in tmp_path.iterdir() if path.is_dir()]


@pytest.mark.slow
def test_an_environment_of_a_lock_is_made_once_and_one_that_cannot_be_installed_leaves_nothing_behind(tmp_path):
    lock, folder = tmp_path / "stores.txt", tmp_path / "made"
    lock.write_text("no-hash==1\n")
    with pytest.raises(UsageError, match=r"stores\.txt: an environment cannot be made of it"):
        make_locked_environment(lock, folder)
    assert not [path for path in folder.iterdir() if path.is_dir()]
    lock.write_text("")

    python = make_locked_environment(lock, folder)
    (python.parents[1] / "kept").touch()

    assert subprocess.run([python, "-c", ""], check=False).returncode == 0
    assert make_locked_environment(lock, folder) == python
    assert (python.parents[1] / "kept").exists()
