import os
from concurrent.futures import ThreadPoolExecutor

import pytest
from msgspec.structs import replace
from typer.testing import CliRunner

from jaxmeter.cli.app import app
from jaxmeter.harness.record import RunFolder
from jaxmeter.reporting.store import push as pushing
from jaxmeter.reporting.store import stores
from jaxmeter.reporting.store.push import list_local, push
from jaxmeter.reporting.store.stores import BrokenOffError, Store, StoreError, TakenError, open_store


def no_wait(seconds):
    """Nobody waits in a test."""


def test_a_run_is_in_the_store_as_it_is_here(make, url):
    run = make()

    pushed = push(run, url)

    store = open_store(url)
    local = list_local(run.path)
    assert store.list_files("a-run") == local
    assert {path: store.read("a-run", *path.split("/")) for path in local} == {
        path: (run.path / path).read_bytes() for path in local
    }
    assert (pushed.url, pushed.files, pushed.size_bytes) == (f"{url}/a-run", len(local), sum(local.values()))
    assert (pushed.sent, push(make(), url).sent) == (len(local) - 2, 0)


def test_a_run_that_has_not_ended_or_has_no_manifest_that_can_be_read_is_refused(make, url):
    run = make()
    run.mark.unlink()
    with pytest.raises(StoreError, match="only a run that has ended is pushed; finish it with --resume"):
        push(run, url)
    run = make()
    run.manifest.unlink()
    os.mkfifo(run.manifest)
    with pytest.raises(StoreError, match="only a run that has ended is pushed"):
        push(run, url)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"started": "2027-01-01T00:00:00Z"}, "another run has this id; nothing was changed there"),
        ({"ended": "2027-01-01T00:00:00Z"}, "the store has another finished run of this id; nothing was changed there"),
    ],
)
def test_another_run_of_the_same_id_or_end_is_refused_and_changes_nothing(make, url, changes, said):
    first, store = make(), open_store(url)
    push(first, url)
    before = {path: store.read("a-run", *path.split("/")) for path in list_local(first.path)}
    with pytest.raises(TakenError, match=said):
        push(make(text="HloModule another, longer", **changes), url)

    assert {path: store.read("a-run", *path.split("/")) for path in store.list_files("a-run")} == before


@pytest.mark.parametrize("run_id", ["..", ".hidden", "a/b", "a b", "", "ä"])
def test_an_id_that_cannot_be_a_folder_is_refused(make, url, run_id, monkeypatch):
    run = make()
    found = pushing.read_run(run)
    renamed = replace(found, manifest=replace(found.manifest, run_id=run_id))
    monkeypatch.setattr(pushing, "read_run", lambda folder: renamed)
    with pytest.raises(StoreError, match="cannot be a folder's name in a store"):
        push(run, url)


def test_links_and_hidden_files_stay_here(make, url, tmp_path):
    run = make()
    (tmp_path / "secret").write_text("mine")
    (run.path / "link").symlink_to(tmp_path / "secret")
    (run.path / ".scratch").mkdir()
    (run.path / ".scratch" / "x").write_text("x")

    push(run, url)

    names = open_store(url).list_files("a-run")
    assert not {name for name in names if "link" in name or "scratch" in name}


def test_a_file_that_is_too_large_is_named_and_stays_here(make, url, monkeypatch):
    run = make()
    local = list_local(run.path)
    most = 2 * max(local.values())
    monkeypatch.setattr(stores, "LARGEST_RECORD", most)
    bomb = run.path / "cases" / "bomb.bin"
    bomb.write_bytes(b"x" * (most + 1))

    ended = CliRunner().invoke(app, ["push", str(run.path), url])

    assert ended.exit_code == 3
    assert ended.stderr.startswith(f"error: {bomb}: has ")
    assert ended.stderr.endswith("; it is not sent\n")
    assert open_store(url).list_files("a-run") == local
    os.truncate(bomb, most)
    assert push(run, url).refused == ()


def test_a_file_of_a_capture_may_be_larger_and_is_named_where_it_would_be_sent(make_captured, url):
    run = make_captured()
    capture = next(run.path.rglob("host.xplane.pb"))
    os.truncate(capture, 3 * 2**30)

    assert push(run, url).refused == ()
    (refused,) = push(run, url, with_captures=True).refused
    assert refused == f"{capture}: has 3.00\u202fGiB, over 2.00\u202fGiB; it is not sent"


def break_off(monkeypatch, after):
    """Lets so many transfers through; the others break off."""
    left = [after]

    def wrap(original):
        def do(store, *arguments):
            left[0] -= 1
            if left[0] < 0:
                raise BrokenOffError("broken off")
            return original(store, *arguments)

        return do

    for name in ("create", "send", "read", "list_files"):
        monkeypatch.setattr(Store, name, wrap(getattr(Store, name)))


TRANSFERS = 6
"""Of a push: manifest, a look at the mark, listing, files, listing, mark."""


@pytest.mark.parametrize("after", range(TRANSFERS))
def test_where_it_breaks_off_there_is_no_mark_and_the_same_command_completes_it(make, url, after, monkeypatch):
    run = make()
    with monkeypatch.context() as patch:
        break_off(patch, after)
        with pytest.raises(BrokenOffError):
            push(run, url, no_wait)
    assert "run.json" not in open_store(url).list_files("a-run")

    push(run, url)

    assert open_store(url).list_files("a-run") == list_local(run.path)


def test_after_a_break_in_the_middle_only_what_is_lacking_is_sent(make, url, monkeypatch):
    run = make()
    for number in range(3):
        (run.path / "cases" / f"file-{number}").write_text("more")
    sent = []
    original = Store.send

    def send_one(store, files):
        first = dict(list(files.items())[:1])
        sent.extend(first)
        original(store, first)
        if len(files) > 1:
            raise BrokenOffError("broken off in the middle")

    monkeypatch.setattr(Store, "send", send_one)

    push(run, url, no_wait)

    assert len(sent) == len(set(sent)) == len(list_local(run.path)) - 2
    assert open_store(url).list_files("a-run") == list_local(run.path)


def test_what_arrived_cut_short_is_sent_again(make, url, monkeypatch):
    run = make()
    original = Store.send

    def cut(store, sent):
        original(store, sent)
        monkeypatch.setattr(Store, "send", original)
        path = next(iter(sent.values()))
        store.files.pipe_file(store.at(*path), b"")

    monkeypatch.setattr(Store, "send", cut)

    push(run, url, no_wait)

    assert open_store(url).list_files("a-run") == list_local(run.path)


def test_of_sixteen_that_push_one_id_at_once_one_wins_and_its_run_is_whole(tmp_path, make):
    url = (tmp_path / "store").as_uri()
    runs = []
    for number in range(16):
        made = make(text=f"HloModule {number:02}", started=f"2026-01-02T03:04:{number:02}Z")
        runs.append(RunFolder(made.path.rename(tmp_path / f"run-{number}")))

    def attempt(run):
        try:
            push(run, url)
        except TakenError:
            return False
        return True

    with ThreadPoolExecutor(16) as pool:
        won = list(pool.map(attempt, runs))

    assert sum(won) == 1
    winner = runs[won.index(True)]
    store = open_store(url)
    assert {path: store.read("a-run", *path.split("/")) for path in list_local(winner.path)} == {
        path: (winner.path / path).read_bytes() for path in list_local(winner.path)
    }
