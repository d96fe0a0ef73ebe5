"""Captures stay where they were measured, unless a push is asked for them; a store without them is whole."""

import gzip
import platform
import re
import runpy
from functools import partial

import jax
import jax.numpy as jnp
import pytest
from typer.testing import CliRunner

from jaxmeter.cli.app import app
from jaxmeter.harness.probes import trace
from jaxmeter.harness.record import Status
from jaxmeter.reporting.load import load
from jaxmeter.reporting.store.fetch import fetch, fetch_whole
from jaxmeter.reporting.store.push import NO_CAPTURES, CaptureCount, count_captures, is_capture, list_local, push
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


def test_a_push_leaves_captures_out_and_says_how_many_variants_have_one(make_captured, url):
    run = make_captured()
    others, captures = split(run)

    pushed = push(run, url)

    assert open_store(url).list_files("a-run") == others
    assert (pushed.files, pushed.size_bytes) == (len(others), sum(others.values()))
    assert pushed.left_out == count_captures(list_local(run.path)) == CaptureCount(2, sum(captures.values()))


def test_captures_are_added_to_a_run_that_was_pushed_without_them_alone_and_not_removed_again(make_captured, url, sent):
    run = make_captured()
    push(run, url)
    sent.clear()

    added, again = push(run, url, with_captures=True), push(run, url)

    _, captures = split(run)
    assert (set(sent), added.sent, added.files) == (set(captures), len(captures), len(list_local(run.path)))
    assert (again.files, again.sent) == (added.files, 0)
    assert added.left_out == again.left_out == NO_CAPTURES
    assert open_store(url).list_files("a-run") == list_local(run.path)


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
    words = (
        CliRunner().invoke(app, ["push", str(run.path), url, *more]).stdout.rstrip()
        for more in ([], ["--with-captures"])
    )

    assert next(words).endswith(f"; {captures} left out; --with-captures sends them")
    assert next(words).endswith("; sent 4 files")


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


def test_a_pushed_capture_holds_neither_the_name_of_the_host_nor_the_home_folder(make, url, tmp_path, monkeypatch):
    home = tmp_path / "home-of-a-user"
    home.mkdir()
    (home / "work.py").write_text("def step(x):\n    return (x @ x).sum()\n")
    monkeypatch.setenv("HOME", str(home))
    step, x = jax.jit(runpy.run_path(str(home / "work.py"))["step"]), jnp.ones((16, 16))
    jax.block_until_ready(step(x))
    run, found = make(), []
    monkeypatch.setattr(trace, "make_capture_private", partial(_remember, found, trace.make_capture_private))

    outcome = trace.capture_and_read(
        lambda: jax.block_until_ready(step(x)), "step:jit", run.case("a-case").trace("step:jit"), has_device=False
    )
    push(run, url, with_captures=True)

    stored = {path.name: path for path in (tmp_path / "store").rglob("*") if "trace" in path.parts and path.is_file()}
    capture, events = stored["host.xplane.pb"].read_bytes(), gzip.decompress(stored["host.trace.json.gz"].read_bytes())
    name = re.compile(rb"(?<![\w.-])" + re.escape(platform.node().encode()) + rb"(?![\w.-])")
    assert outcome.status is Status.OK
    assert str(home).encode() in found[0]
    assert len(capture) == len(found[0])
    assert name.search(events) is None
    assert all(str(home).encode() not in data for data in (capture, events))


def _remember(found, make_private, path, folders):
    """Keep the bytes of a capture, then make it private."""
    found += [path.read_bytes()] if path.name.endswith(".pb") else []
    make_private(path, folders)
