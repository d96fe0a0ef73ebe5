import os
import re

import pytest
from typer.testing import CliRunner

from jaxmeter.cli.app import app
from jaxmeter.reporting.load import load
from jaxmeter.reporting.store import fetch as fetching
from jaxmeter.reporting.store import stores
from jaxmeter.reporting.store.fetch import fetch, fetch_whole, find_cache
from jaxmeter.reporting.store.push import list_local, push
from jaxmeter.reporting.store.stores import Store, StoreError, open_store


@pytest.fixture
def asked(monkeypatch):
    """What is asked of the store, beside listings."""
    found = []
    original = Store.read_all

    def read_all(store, paths):
        found.extend(paths)
        return original(store, paths)

    monkeypatch.setattr(Store, "read_all", read_all)
    return found


def test_all_runs_of_a_store_are_read_as_if_they_were_here(make, url, cache):
    runs = [make(name, started=f"2026-01-0{number}T00:00:00Z") for number, name in enumerate(("a", "b"), 1)]
    for run in runs:
        push(run, url)

    found = fetch(url)

    assert [folder.name for folder in found.folders] == ["a", "b"]
    assert found.warnings == ()
    assert [one.record for one in load(found.folders).runs] == [
        one.record for one in load([run.path for run in runs]).runs
    ]
    assert load(found.folders).warnings == ()


def test_what_was_fetched_once_is_not_asked_for_again(make, url, cache, asked):
    push(make("a"), url)
    fetch(url)
    push(make("b"), url)
    asked.clear()

    assert len(fetch(url).folders) == 2
    assert asked == ["b/run.json"]
    assert [folder.name for folder in fetch(f"{url}/b/").folders] == ["b"]
    fetch_whole(f"{url}/a")
    asked.clear()
    fetch_whole(f"{url}/a")
    assert asked == []


def test_manifests_are_asked_for_once_and_are_no_runs_by_themselves(days, asked):
    fetch(days, last=1)
    asked.clear()

    assert [folder.name for folder in fetch(days, last=2).folders] == ["a", "c"]
    assert asked == ["c/run.json"]
    found = fetch(days, since="2026-01-01")
    assert len(found.folders) == len(load(found.folders).runs) == 3


@pytest.mark.parametrize(
    ("read", "names", "said"),
    [
        (fetch, [], "has no complete run; `jaxmeter push RUN "),
        (fetch_whole, ["a"], r"is a store of runs; name one of them, such as .*/a$"),
    ],
)
def test_what_is_no_run_says_what_to_do(make, url, cache, read, names, said):
    for name in names:
        push(make(name), url)
    if not names:
        open_store(url).create(b"x", "other", "x")
    with pytest.raises(StoreError, match=said):
        read(url)


@pytest.mark.parametrize("name", ["run.json", ".run.json.sha256"])
@pytest.mark.parametrize("damage", [b"", b"{", None])
def test_what_is_damaged_in_the_cache_is_fetched_again(make, url, cache, name, damage):
    run = make("a")
    push(run, url)
    (folder,) = fetch(url).folders
    if damage is None:
        (folder / name).unlink()
    else:
        (folder / name).write_bytes(damage)

    fetch(url)

    assert (folder / "run.json").read_bytes() == run.mark.read_bytes()


def test_what_is_not_finished_or_of_another_tool_is_named_and_left_out(make, url, cache):
    push(make("a"), url)
    others = {
        ("begun", "manifest.json"): b"{}",
        ("foreign", "model.bin"): b"x",
        ("damaged", "run.json"): b"{not json",
        ("deep", "run.json"): b'{"manifest":' + b"[" * 100_000,
        ("folder", "run.json", "x"): b"x",
        ("a*", "run.json"): b"x",
    }
    for path, data in others.items():
        open_store(url).create(data, *path)

    found = fetch(url)

    assert [folder.name for folder in found.folders] == ["a"]
    (said,) = found.warnings
    assert said.startswith(f"{url}: a*, begun, damaged, deep, folder and 1 more are no whole runs, left out")


@pytest.fixture
def days(make, url, cache):
    """A store of three days' runs, whose names say nothing of their order."""
    for name, day in (("b", 1), ("c", 2), ("a", 3)):
        push(make(name, started=f"2026-01-0{day}T10:00:00Z"), url)
    return url


@pytest.mark.parametrize(
    ("wanted", "names", "records"),
    [
        ({"last": 1}, ["a"], ["a/run.json"]),
        ({"last": 2}, ["a", "c"], ["c/run.json", "a/run.json"]),
        ({"last": 3}, ["a", "b", "c"], ["b/run.json", "c/run.json", "a/run.json"]),
        ({"last": 9}, ["a", "b", "c"], ["b/run.json", "c/run.json", "a/run.json"]),
        ({"since": "2026-01-02"}, ["a", "c"], ["c/run.json", "a/run.json"]),
        ({"since": "2026-01-02T10:00:00Z"}, ["a", "c"], ["c/run.json", "a/run.json"]),
        ({"since": "2026-01-02T10:01"}, ["a"], ["a/run.json"]),
        ({"since": "2026-01-02", "last": 1}, ["a"], ["a/run.json"]),
        ({"since": "2027-01-01"}, [], []),
    ],
)
def test_of_older_runs_the_manifest_alone_is_asked_for(days, asked, wanted, names, records):
    found = fetch(days, **wanted)

    assert [folder.name for folder in found.folders] == names
    assert (found.warnings, found.older) == ((), 3 - len(names))
    assert asked == ["a/manifest.json", "b/manifest.json", "c/manifest.json", *records]


def test_in_place_of_a_run_that_is_not_whole_the_next_older_one_counts_and_what_has_no_manifest_too(days):
    store = open_store(days)
    store.create(b'{"run_id": "d", "started": "2026-01-04T10:00:00Z"}', "d", "manifest.json")
    assert [folder.name for folder in fetch(days, last=2).folders] == ["a", "c"]
    store.create(b"x", "foreign", "model.bin")
    store.create(b"{", "damaged", "manifest.json")
    store.create(store.read("b", "run.json") or b"", "marked", "run.json")

    found = fetch(days, last=1)

    assert [folder.name for folder in found.folders] == ["a", "marked"]
    assert found.older == 2
    assert "damaged, foreign, d are no whole runs" in found.warnings[0]


def test_a_cache_that_cannot_be_written_is_said(make, url, tmp_path, monkeypatch):
    push(make("a"), url)
    (tmp_path / "taken").write_text("")
    monkeypatch.setenv("JAXMETER_CACHE", str(tmp_path / "taken"))

    with pytest.raises(StoreError, match=r"cannot be written \(.*\); set \$JAXMETER_CACHE to a folder that can"):
        fetch(url)


def test_one_run_is_fetched_whole_but_its_captures_where_its_programs_are_needed(make_captured, url, cache):
    run = make_captured("a")
    push(run, url, with_captures=True)

    folder = fetch_whole(f"{url}/a")

    files = {path: (run.path / path).read_bytes() for path in list_local(run.path) if "/trace/" not in path}
    assert {path: (folder / path).read_bytes() for path in list_local(folder)} == files
    assert len(open_store(url).list_files("a")) == len(files) + 4


def test_two_stores_do_not_share_a_run_of_one_name(make, tmp_path, cache):
    for number in (1, 2):
        push(make("a", started=f"2026-01-0{number}T00:00:00Z"), (tmp_path / f"store{number}").as_uri())

    folders = [fetch((tmp_path / f"store{number}").as_uri()).folders[0] for number in (1, 2)]

    assert len({(folder / "run.json").read_bytes() for folder in folders}) == 2


@pytest.mark.parametrize(
    ("path", "is_wanted"),
    [
        *((path, False) for path in ("../x", "/x", "a//x", "a/../x", "./x", "")),
        *((path, True) for path in ("run.json", "cases/a=1/processes/00.json.gz", "a/..b")),
    ],
)
def test_a_name_that_leads_out_of_the_cache_is_not_written(path, is_wanted):
    assert fetching._is_wanted(path) is is_wanted


def make_sparse(path, size_bytes=300 * 2**20):
    """A file that takes no room, whatever its size."""
    path.touch()
    os.truncate(path, size_bytes)


def test_a_record_or_manifest_that_is_too_large_is_not_read_and_the_other_runs_are(make, url, cache, asked, tmp_path):
    for name in ("a", "b", "c"):
        push(make(name), url)
    make_sparse(tmp_path / "store" / "b" / "run.json")
    make_sparse(tmp_path / "store" / "a" / "manifest.json")

    found = fetch(url)

    assert [folder.name for folder in found.folders] == ["a", "c"]
    assert found.warnings == (f"{url}/b/run.json: has 300\u202fMiB, over 256\u202fMiB; the run is left out",)
    assert asked == ["a/run.json", "c/run.json"]
    with pytest.raises(StoreError, match=re.escape("b/run.json: has 300\u202fMiB, over 256\u202fMiB")):
        fetch(f"{url}/b")
    asked.clear()
    fetch(url, last=3)
    assert "a/manifest.json" not in asked


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("bomb.bin", "has 300\u202fMiB, over 256\u202fMiB"),
        *((letter, "File name too long") for letter in ("x" * 250, "y" * 255)),
    ],
    ids=["too large", "250 letters", "255 letters"],
)
def test_a_file_that_is_too_large_or_has_no_possible_name_is_named_and_the_others_are_fetched(
    make, url, cache, asked, tmp_path, name, reason
):
    run = make("a")
    push(run, url)
    (tmp_path / "store" / "a" / "cases" / name).touch()
    if name == "bomb.bin":
        make_sparse(tmp_path / "store" / "a" / "cases" / name)
    said = []

    folder = fetch_whole(f"{url}/a", note=said.append)
    ended = CliRunner().invoke(app, ["fetch", f"{url}/a"])

    (words,) = said
    assert words.startswith(f"{url}/a/cases/{name}: ")
    assert reason in words
    assert words.endswith("; it is not fetched")
    assert list_local(folder) == list_local(run.path)
    assert "a/cases/bomb.bin" not in asked
    assert (ended.exit_code, ended.stderr) == (3, f"error: {words}\n")


def test_what_is_read_at_once_is_bounded_by_number_and_by_bytes(url, monkeypatch, asked):
    monkeypatch.setattr(stores, "LARGEST_RECORD", 10)
    monkeypatch.setattr(stores, "AT_ONCE", 3)
    store = open_store(url)
    sizes = dict(zip("abcdefgh", (1, 1, 1, 1, 4, 6, 10, 9), strict=True))
    for name, size in sizes.items():
        store.create(b"x" * size, name)

    found = list(store.read_in_sets(sizes))

    assert [list(one) for one in found] == [["a", "b", "c"], ["d", "e"], ["f"], ["g"], ["h"]]
    assert {name: len(data) for one in found for name, data in one.items()} == sizes


def test_the_cache_is_where_the_user_wants_it(monkeypatch, tmp_path):
    monkeypatch.setenv("JAXMETER_CACHE", str(tmp_path / "here"))
    assert find_cache() == tmp_path / "here"
    monkeypatch.delenv("JAXMETER_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "there"))
    assert find_cache() == tmp_path / "there" / "jaxmeter"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert find_cache() == tmp_path / ".cache" / "jaxmeter"
