"""Captures stay where they were measured, unless a push is asked for them; a store without them is whole."""

import gzip
import platform
import re
import runpy
from pathlib import Path

import jax
import jax.numpy as jnp
import pytest
from typer.testing import CliRunner

from jaxmeter.cli.app import app
from jaxmeter.harness.probes import trace
from jaxmeter.harness.record import Status
from jaxmeter.reporting.load import load
from jaxmeter.reporting.store.captures import NO_CAPTURES, CaptureCount, count_captures, is_capture
from jaxmeter.reporting.store.fetch import fetch, fetch_whole
from jaxmeter.reporting.store.push import list_local, push
from jaxmeter.reporting.store.stores import Store, open_store


def split(run):
    """Sizes of a run's files: without its captures, and of its captures alone."""
    files = list_local(run.path)
    captures = {path: size for path, size in files.items() if "/trace/" in path}
    return {path: size for path, size in files.items() if path not in captures}, captures


@pytest.fixture
def sent(monkeypatch):
    """The paths of all files that are sent to a store."""
    paths = []
    original = Store.send

    def send(store, files):
        paths.extend("/".join(parts[1:]) for parts in files.values())
        original(store, files)

    monkeypatch.setattr(Store, "send", send)
    return paths


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("cases/selu/trace/selu-jit/plugins/profile/capture/host.xplane.pb", True),
        ("cases/selu/trace/selu-jit/plugins/profile/capture/host.trace.json.gz", True),
        ("cases/selu/trace/selu-jit/plugins/profile/capture/ALL_HOSTS.op_stats_v2.pb", True),
        ("cases/trace/programs/selu-jit/hlo.txt", False),
        ("cases/selu/processes/0007-trace.json.gz", False),
        ("trace/selu/trace/selu-jit/host.xplane.pb", False),
        ("run.json", False),
    ],
)
def test_a_capture_is_known_by_its_path(path, expected):
    assert is_capture(path) is expected


def test_captures_are_counted_by_variant_as_they_are_when_they_are_shown(make_captured):
    run = make_captured()

    _, captures = split(run)

    shown = [path for path in run.path.glob("cases/*/trace/*") if path.is_dir()]
    assert count_captures(list_local(run.path)) == CaptureCount(len(shown), sum(captures.values()))


def test_a_push_leaves_captures_out_and_says_how_many(make_captured, url):
    run = make_captured()
    others, captures = split(run)

    pushed = push(run, url)

    assert open_store(url).list_files("a-run") == others
    assert (pushed.files, pushed.size_bytes) == (len(others), sum(others.values()))
    assert pushed.left_out == CaptureCount(2, sum(captures.values()))


def test_a_push_sends_captures_that_are_asked_for(make_captured, url):
    run = make_captured()

    pushed = push(run, url, with_captures=True)

    assert open_store(url).list_files("a-run") == list_local(run.path)
    assert (pushed.files, pushed.left_out) == (len(list_local(run.path)), NO_CAPTURES)


def test_captures_are_added_to_a_run_that_was_pushed_without_them_and_nothing_else_is_sent_again(
    make_captured, url, sent
):
    run = make_captured()
    push(run, url)
    sent.clear()

    pushed = push(run, url, with_captures=True)

    _, captures = split(run)
    assert (set(sent), pushed.sent) == (set(captures), len(captures))
    assert open_store(url).list_files("a-run") == list_local(run.path)


def test_a_push_without_captures_removes_none(make_captured, url):
    run = make_captured()
    push(run, url, with_captures=True)

    again = push(run, url)

    assert open_store(url).list_files("a-run") == list_local(run.path)
    assert (again.files, again.sent, again.left_out) == (len(list_local(run.path)), 0, NO_CAPTURES)


def test_a_capture_of_which_a_file_is_lacking_was_left_out(make_captured, url, tmp_path):
    run = make_captured()
    push(run, url, with_captures=True)
    lost = next((tmp_path / "store").rglob("host.xplane.pb"))
    size = lost.stat().st_size
    lost.unlink()

    assert push(run, url).left_out == CaptureCount(1, size)


def test_the_command_names_what_was_left_out_and_the_option(make_captured, url):
    run = make_captured()
    captures = CaptureCount(2, sum(split(run)[1].values()))

    def call(*words):
        return CliRunner().invoke(app, ["push", str(run.path), url, *words]).stdout.rstrip()

    assert call().endswith(f"; {captures} left out; --with-captures sends them")
    assert call("--with-captures").endswith("; sent 4 files")
    assert call().endswith("; was there already")


def test_a_run_without_its_captures_is_fetched_read_and_shown_as_whole(make_captured, url, cache, tmp_path):
    run = make_captured()
    push(run, url)

    found = fetch(url)
    folder = fetch_whole(f"{url}/a-run")

    assert found.warnings == load(found.folders).warnings == ()
    assert list_local(folder) == split(run)[0]
    (record,) = [one.record for one in load([folder]).runs]
    assert [artifact.kind for artifact in record.cases[0].artifacts] == ["trace"] * 4
    shown = CliRunner().invoke(app, ["report", url, "--out", str(tmp_path / "page.html")])
    assert (shown.exit_code, shown.stderr) == (0, "")


def holds_text(data, text):
    """Whether a protocol buffer has a text of its own that is no other: short names are letters of many words."""
    tags = bytes(field << 3 | 2 for field in range(1, 9))
    return re.search(b"[" + re.escape(tags) + b"]" + re.escape(bytes([len(text)]) + text), data) is not None


@pytest.fixture
def home(tmp_path, monkeypatch):
    """A user's home folder."""
    folder = tmp_path / "home-of-a-user"
    folder.mkdir()
    monkeypatch.setenv("HOME", str(folder))
    return folder


def test_a_pushed_capture_holds_neither_the_name_of_the_host_nor_the_home_folder(
    make, url, tmp_path, home, monkeypatch
):
    (home / "work.py").write_text("def step(x):\n    return (x @ x).sum()\n")
    step = jax.jit(runpy.run_path(str(home / "work.py"))["step"])
    run, before = make(), {}
    original = trace.make_capture_private

    def remember(path, folders):
        before[path.name] = path.read_bytes()
        original(path, folders)

    monkeypatch.setattr(trace, "make_capture_private", remember)
    x = jnp.ones((16, 16))
    jax.block_until_ready(step(x))

    found = trace.capture_and_read(
        lambda: jax.block_until_ready(step(x)),
        "step:jit",
        run.case("a-case").trace("step:jit"),
        has_device=False,
    )
    push(run, url, with_captures=True)

    assert found.status is Status.OK
    name, folder = platform.node().encode(), str(home).encode()
    assert holds_text(before["host.xplane.pb"], name)
    assert folder in before["host.xplane.pb"]
    stored = {path.name: path for path in (tmp_path / "store").rglob("*") if "trace" in path.parts and path.is_file()}
    assert stored.keys() == {"host.xplane.pb", "host.trace.json.gz"}
    capture = stored["host.xplane.pb"].read_bytes()
    events = gzip.decompress(stored["host.trace.json.gz"].read_bytes())
    assert len(capture) == len(before["host.xplane.pb"])
    assert not holds_text(capture, name)
    assert re.search(rb"(?<![\w.-])" + re.escape(name) + rb"(?![\w.-])", events) is None
    for data in (capture, events):
        assert folder not in data
        assert str(Path.home()).encode() not in data
