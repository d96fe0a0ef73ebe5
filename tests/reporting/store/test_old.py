from datetime import UTC, datetime

import pytest
from typer.testing import CliRunner

from jaxmeter.cli.app import app
from jaxmeter.harness.record import RunFolder
from jaxmeter.reporting.store.old import find_old, find_time
from jaxmeter.reporting.store.push import push
from tests import samples

NOW = datetime(2026, 3, 1, tzinfo=UTC)


@pytest.fixture
def runs(make):
    """One of January and one of February, by name."""
    return {name: make(name, started=f"2026-0{month}-10T00:00:00Z").path for name, month in (("b", 1), ("a", 2))}


def names(found):
    return [(one.folder.name, one.stays) for one in found]


def test_runs_are_old_by_when_they_began(runs, tmp_path):
    out = tmp_path / "results"

    assert names(find_old(out, find_time(30, NOW))) == [("b", "")]
    assert names(find_old(out, find_time(10, NOW))) == [("b", ""), ("a", "")]
    assert names(find_old(out, datetime(2026, 1, 10, tzinfo=UTC))) == []


def test_what_is_no_whole_run_is_not_listed(runs, tmp_path):
    out = tmp_path / "results"
    samples.write_run(out / "unfinished", samples.run(run_id="unfinished"), cut_short=True)
    (out / "b" / "run.json").write_text("{")
    (out / "notes").mkdir()
    (out / "link").symlink_to(out / "a")
    (out / ".night").mkdir()

    assert names(find_old(out, NOW)) == [("a", "")]


def test_what_a_store_does_not_hold_whole_stays(runs, tmp_path, url):
    out = tmp_path / "results"
    for path in runs.values():
        push(RunFolder(path), url)
    assert names(find_old(out, NOW, url)) == [("b", ""), ("a", "")]

    next((tmp_path / "store" / "b").rglob("hlo.txt")).unlink()
    (tmp_path / "store" / "a" / "run.json").write_text("{}")

    assert names(find_old(out, NOW, url)) == [("b", f"not whole in {url}"), ("a", f"not whole in {url}")]


def gc(*words):
    return CliRunner().invoke(app, ["gc", *map(str, words)])


def test_old_runs_are_listed_and_removed_only_if_that_is_asked(runs, tmp_path):
    out = tmp_path / "results"

    listed = gc(out, "--keep-days", 1)
    assert listed.exit_code == 0
    assert listed.stdout.splitlines()[-1].endswith("older than 1 day; --delete removes them")
    assert sorted(path.name for path in out.iterdir()) == ["a", "b"]

    removed = gc(out, "--keep-days", 1, "--delete")
    assert removed.exit_code == 0
    assert removed.stdout.splitlines()[0].endswith("begun 2026-01-10: removed")
    assert list(out.iterdir()) == []


def test_nothing_that_a_store_lacks_is_removed(runs, tmp_path, url):
    (tmp_path / "store").mkdir()

    ended = gc(tmp_path / "results", "--keep-days", 1, "--pushed-to", url, "--delete")

    assert ended.exit_code == 0
    assert len(list((tmp_path / "results").iterdir())) == 2
    assert ended.stdout.splitlines()[-1].startswith("0 runs, ")


def test_a_folder_that_is_not_there_is_said(tmp_path):
    ended = gc(tmp_path / "nowhere")

    assert (ended.exit_code, ended.stderr) == (2, f"error: {tmp_path / 'nowhere'}: no such folder\n")
