import os
from datetime import UTC, datetime

import pytest
from typer.testing import CliRunner

from jaxmeter.cli.app import app
from jaxmeter.harness.record import RunFolder
from jaxmeter.reporting.store.old import find_old
from jaxmeter.reporting.store.push import NO_CAPTURES, CaptureCount, push
from tests import samples

NOW = datetime(2026, 3, 1, tzinfo=UTC)


def set_time(path, time):
    """Give a file the time at which a file system or a store has received it."""
    os.utime(path, (datetime.fromisoformat(time).timestamp(),) * 2)


def let_age(folder):
    """Give all runs below a folder a time in January."""
    for mark in folder.rglob("run.json"):
        set_time(mark, "2026-01-10T00:00:00Z")


@pytest.fixture
def make_at(make):
    """Writes a run that began at a time, and was written then, too; its folder."""

    def write(name, started, written=None):
        run = make(name, started=started)
        set_time(run.mark, written or started)
        return run.path

    return write


@pytest.fixture
def runs(make_at):
    """One of January and one of February, by name."""
    return {name: make_at(name, f"2026-0{month}-10T00:00:00Z") for name, month in (("b", 1), ("a", 2))}


def names(found):
    return [(one.folder.name, one.stays) for one in found]


def test_runs_are_old_by_when_they_were_made(runs, tmp_path):
    out = tmp_path / "results"

    assert names(find_old(out, 30, NOW)) == [("b", "")]
    assert names(find_old(out, 10, NOW)) == [("b", ""), ("a", "")]
    assert names(find_old(out, 50, NOW)) == []


@pytest.mark.parametrize(
    ("started", "written", "is_old"),
    [
        ("1970-01-01T00:00:10+00:00", "2026-02-20T00:00:00Z", False),  # the clock was behind
        ("2026-01-01T00:00:00+00:00", "2026-02-20T00:00:00Z", False),
        ("2026-02-20T00:00:00+00:00", "1970-01-01T00:00:10Z", False),
        ("1970-01-01T00:00:10+00:00", "2026-01-01T00:00:00Z", True),
        ("2031-01-01T00:00:00+00:00", "2026-02-20T00:00:00Z", False),  # ahead
        ("2031-01-01T00:00:00+00:00", "2026-01-01T00:00:00Z", True),
        ("2026-01-01T10:00:00", "2026-01-01T00:00:00Z", True),  # without a time zone
        ("2026-02-20T10:00:00", "2026-01-01T00:00:00Z", False),
        ("some day", "2026-01-01T00:00:00Z", True),
    ],
)
def test_a_clock_that_was_wrong_makes_no_run_old_at_once_and_keeps_none_for_ever(
    make_at, tmp_path, started, written, is_old
):
    make_at("it", started, written)

    assert [name for name, _ in names(find_old(tmp_path / "results", 30, NOW))] == ["it"] * is_old


def test_a_run_of_which_all_times_are_later_than_now_is_named_with_what_to_do(make_at, tmp_path):
    run = make_at("it", "2031-01-01T00:00:00Z")

    ((_, stays),) = names(find_old(tmp_path / "results", 30, NOW))

    assert stays == f"its times are later than now, 2026-03-01; `touch {run}/run.json` makes it of today"


@pytest.mark.parametrize(
    ("local", "received", "is_old"),
    [("1970", "2026-02-20", False), ("1970", "2026-01-02", True), ("2031", "2026-01-02", True)],
)
def test_the_time_of_the_store_counts_too(make_at, tmp_path, url, local, received, is_old):
    run = make_at("it", f"{local}-01-02T00:00:00Z")
    push(RunFolder(run), url)
    set_time(tmp_path / "store" / "it" / "run.json", f"{received}T00:00:00Z")

    assert names(find_old(tmp_path / "results", 30, NOW, url)) == [("it", "")] * is_old


def test_what_is_no_whole_run_is_not_listed(runs, tmp_path):
    out = tmp_path / "results"
    samples.write_run(out / "unfinished", samples.run(run_id="unfinished"), cut_short=True)
    (out / "b" / "run.json").write_text("{")
    (out / "notes").mkdir()
    (out / "link").symlink_to(out / "a")
    (out / ".night").mkdir()

    assert names(find_old(out, 0, NOW)) == [("a", "")]


def test_what_a_store_does_not_hold_whole_stays(runs, tmp_path, url):
    out = tmp_path / "results"
    for path in runs.values():
        push(RunFolder(path), url)
    let_age(tmp_path / "store")
    assert names(find_old(out, 0, NOW, url)) == [("b", ""), ("a", "")]

    next((tmp_path / "store" / "b").rglob("hlo.txt")).unlink()
    (tmp_path / "store" / "a" / "run.json").write_text("{}")
    let_age(tmp_path / "store")

    assert names(find_old(out, 0, NOW, url)) == [("b", f"not whole in {url}"), ("a", f"not whole in {url}")]


def test_a_run_whose_captures_alone_are_not_in_the_store_is_old_and_says_so(make_captured, tmp_path, url):
    for name, with_captures in (("a", True), ("b", False), ("c", False)):
        run = make_captured(name, started="2026-01-10T00:00:00Z")
        push(run, url, with_captures=with_captures)
    size = sum(path.stat().st_size for path in run.path.rglob("trace/**/*") if path.is_file())
    next((tmp_path / "store" / "c").rglob("hlo.txt")).unlink()
    let_age(tmp_path)

    found = {one.folder.name: one for one in find_old(tmp_path / "results", 0, NOW, url)}
    ended = gc(tmp_path / "results", "--keep-days", 1, "--pushed-to", url, "--delete")

    assert {name: one.stays for name, one in found.items()} == {"a": "", "b": "", "c": f"not whole in {url}"}
    assert (found["a"].only_here, found["b"].only_here) == (NO_CAPTURES, CaptureCount(2, size))
    assert ended.stdout.count("the only copy of 2 captures (") == 1
    assert [path.name for path in (tmp_path / "results").iterdir()] == ["c"]


def gc(*words):
    return CliRunner().invoke(app, ["gc", *map(str, words)])


def test_old_runs_are_listed_and_removed_only_if_that_is_asked_and_the_store_has_them(runs, tmp_path, url):
    out = tmp_path / "results"
    (tmp_path / "store").mkdir()

    for words, kept in ((["--pushed-to", url, "--delete"], ["a", "b"]), ([], ["a", "b"]), (["--delete"], [])):
        assert gc(out, "--keep-days", 1, *words).exit_code == 0
        assert sorted(path.name for path in out.iterdir()) == kept
    assert gc(tmp_path / "nowhere").exit_code == 2
