import os
from datetime import UTC, datetime, timedelta

import pytest
from typer.testing import CliRunner

from jaxmeter.cli.app import app
from jaxmeter.launch import environments
from jaxmeter.reporting.store.old import COMPLETE as MARK
from jaxmeter.reporting.store.old import NAMED, find_unused

NOW = datetime.now(UTC)


@pytest.fixture
def make(tmp_path):
    """An environment of a release of jax that something used some days ago."""

    def make_one(name, days, release="0.9.0"):
        place = tmp_path / name
        (place / "lib").mkdir(parents=True)
        (place / "lib" / "module.py").write_text("x" * 1000)
        (place / NAMED).write_text(f"flax==0.12.0\njax=={release}\njaxlib=={release}\n")
        (place / MARK).touch()
        used = (NOW - timedelta(days=days)).timestamp()
        os.utime(place / MARK, (used, used))
        return place

    return make_one


def gc(*words):
    return CliRunner().invoke(app, ["gc", *map(str, words)])


def test_environments_that_nothing_used_since_are_found_the_longest_unused_first(make, tmp_path):
    make("a", 40, "0.8.0"), make("b", 50, "0.4.31"), make("c", 1)

    found = list(find_unused(tmp_path, NOW - timedelta(days=30)))

    assert [(one.folder.name, one.packages) for one in found] == [
        ("b", "jax==0.4.31 jaxlib==0.4.31"),
        ("a", "jax==0.8.0 jaxlib==0.8.0"),
    ]
    assert all(one.size_bytes > 1000 for one in found)


def test_links_and_what_is_not_whole_are_left_alone(make, tmp_path):
    assert environments.MARK == MARK
    (tmp_path / "environments").mkdir()
    (tmp_path / "environments" / "link").symlink_to(make("a", 40))
    (make("environments/b", 40) / MARK).unlink()

    assert list(find_unused(tmp_path / "environments", NOW)) == []


def test_environments_are_removed_only_if_that_is_asked(make, tmp_path):
    make("a", 40), make("b", 1)

    listed = gc("--environments", tmp_path)
    assert (listed.exit_code, len(list(tmp_path.iterdir()))) == (0, 2)
    assert "jax==0.9.0" in listed.stdout

    removed = gc("--environments", tmp_path, "--delete")
    assert (removed.exit_code, [path.name for path in tmp_path.iterdir()]) == (0, ["b"])
    assert gc("--environments", tmp_path / "nowhere").exit_code == 2
