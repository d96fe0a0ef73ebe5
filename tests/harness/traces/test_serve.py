"""Captures are served to this machine only; without a name that this depends on nothing is served."""

import json
import socket
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import jax
import pytest

from jaxmeter.harness.traces.captures import Capture
from jaxmeter.harness.traces.serve import ServeError, confine, copy_captures, main
from tests.xprof_server import RUNS, fetch, serve

LISTENING = "0A"
"""The state of a socket in /proc/net/tcp. Source: include/net/tcp_states.h of Linux."""

GRPC_PORT = 50051
"""Where xprof listens for other xprofs unless it is prevented."""


@pytest.fixture
def captures(tmp_path):
    """A folder with a small capture."""
    options = jax.profiler.ProfileOptions()
    options.session_id = "capture"
    folder = tmp_path / "captures"
    with jax.profiler.trace(folder / "case" / "f-jit", profiler_options=options):
        jax.block_until_ready(jax.jit(lambda x: x + 1)(jax.numpy.ones(3)))
    return folder


def read_listening(pid):
    """(table, address, port) of every TCP socket on which a process listens."""
    links = [path.readlink().name for path in Path(f"/proc/{pid}/fd").iterdir() if path.is_symlink()]
    own = {name.removeprefix("socket:[").removesuffix("]") for name in links if name.startswith("socket:[")}
    found = set()
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/{pid}/net/{table}").read_text().splitlines()[1:]:
            _, local, _, state, *_, inode = line.split()[:10]
            if state == LISTENING and inode in own:
                address, _, port = local.partition(":")
                found.add((table, address, int(port, 16)))
    return found


def as_listed(address):
    """An IPv4 address as /proc/net/tcp has it."""
    return f"{int.from_bytes(socket.inet_aton(address), sys.byteorder):08X}"


def list_files(folder):
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}


LINUX = pytest.mark.skipif(not Path("/proc/net/tcp").exists(), reason="only Linux lists a process' sockets in /proc")


@LINUX
def test_xprof_listens_on_this_machine_only_and_writes_below_its_folder_only(captures, tmp_path, monkeypatch):
    pytest.importorskip("xprof")
    (tmp_path / "home").mkdir()
    (tmp_path / "temporary").mkdir()
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("TMPDIR", str(tmp_path / "temporary"))
    before = list_files(captures)

    with serve(captures) as (server, port):
        page, runs = fetch(port, "/"), json.loads(fetch(port, RUNS))
        tool = f"run={runs[0]}&tag=overview_page"
        (host,) = json.loads(fetch(port, f"/data/plugin/profile/hosts?{tool}"))
        shown = json.loads(fetch(port, f"/data/plugin/profile/data?{tool}&host={host['hostname']}"))
        listening = read_listening(server.pid)

    assert b"<html" in page
    assert runs == ["case/f-jit/capture"]
    assert shown
    assert listening == {("tcp", as_listed("127.0.0.1"), port)}
    assert port != GRPC_PORT
    assert list_files(captures) > before
    assert list_files(tmp_path / "home") | list_files(tmp_path / "temporary") == set()


def make_server(**changes):
    """The names of `xprof.server`, with changes; None for a name that is missing."""
    plugin = SimpleNamespace(start_grpc_server=print)
    names = {"start_server": print, "_get_wildcard_address": print, "_pywrap_profiler_plugin": plugin, **changes}
    return SimpleNamespace(**{name: value for name, value in names.items() if value is not None})


@pytest.mark.parametrize(
    ("changes", "missing"),
    [
        ({"start_server": None}, "start_server"),
        ({"_get_wildcard_address": None}, "_get_wildcard_address"),
        ({"_get_wildcard_address": "::"}, "_get_wildcard_address"),
        ({"_pywrap_profiler_plugin": None}, "start_grpc_server"),
        ({"_pywrap_profiler_plugin": SimpleNamespace()}, "start_grpc_server"),
    ],
)
def test_another_version_of_xprof_is_not_started(changes, missing, monkeypatch, capsys, tmp_path):
    started = []
    start = {"start_server": lambda *words, **options: started.append(words)}
    server = make_server(**(start | changes))

    with pytest.raises(ServeError, match=f"this xprof has no {missing} and could listen on every address"):
        confine(server)

    monkeypatch.setitem(sys.modules, "xprof", SimpleNamespace(server=server))
    assert main([str(tmp_path), "--port", "8791"]) == 2
    assert "pip install 'jaxmeter[viewer]'" in capsys.readouterr().err
    assert started == []


def test_all_names_are_replaced_before_the_server_starts(monkeypatch, tmp_path):
    started = []

    def start_server(folder, port, worker_service_address):
        server._pywrap_profiler_plugin.start_grpc_server(GRPC_PORT, 1)
        started.append((folder, port, server._get_wildcard_address(port), worker_service_address))

    def start_grpc_server(port, count):
        raise AssertionError("a gRPC server")

    server = make_server(
        start_server=start_server, _pywrap_profiler_plugin=SimpleNamespace(start_grpc_server=start_grpc_server)
    )
    monkeypatch.setitem(sys.modules, "xprof", SimpleNamespace(server=server))

    assert main([str(tmp_path), "--port", "80"]) == 0
    assert started == [(str(tmp_path), 80, "127.0.0.1", "127.0.0.1:1")]


def test_without_xprof_the_extra_to_install_is_named(monkeypatch, capsys, tmp_path):
    monkeypatch.setitem(sys.modules, "xprof", None)

    assert main([str(tmp_path)]) == 2
    assert "pip install 'jaxmeter[viewer]'" in capsys.readouterr().err


def test_a_port_that_is_taken_is_an_error_that_names_the_option(captures):
    pytest.importorskip("xprof")

    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        command = [sys.executable, "-m", "jaxmeter.harness.traces.serve", str(captures), "--port", port]
        ended = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)

    assert ended.returncode == 2
    assert ended.stderr.splitlines()[-1].startswith(f"error: xprof cannot listen on 127.0.0.1:{port}: ")
    assert ended.stderr.endswith("; choose another --port\n")


def test_captures_are_copied_with_all_files_of_their_session_and_their_run_stays_as_it_is(tmp_path):
    run, captures = tmp_path / "run", []
    for case, variant in (("selu[n=1]", "f:jit"), ("selu[n=1]", "f:eager"), ("../x", "g:jit")):
        session = run / "cases" / f"{len(captures)}" / "plugins" / "profile" / "now"
        session.mkdir(parents=True)
        for host in ("a", "b"):
            (session / f"{host}.xplane.pb").write_bytes(variant.encode())
            captures.append(Capture(session / f"{host}.xplane.pb", host, case=case, variant=variant))
    before = list_files(run)

    assert copy_captures(captures, tmp_path / "copies") == 3

    names = {"selu-n=1/f-jit", "selu-n=1/f-eager", "x/g-jit"}
    copied = {f"{name}/plugins/profile/now/{host}.xplane.pb" for name in names for host in ("a", "b")}
    assert list_files(tmp_path / "copies") == copied
    assert list_files(run) == before


def test_captures_of_one_case_in_several_runs_have_different_names(tmp_path):
    captures = []
    for place, source in (("a", "first"), ("b", "second"), ("copy of b", "second")):
        session = tmp_path / place / "plugins" / "profile" / "capture"
        session.mkdir(parents=True)
        (session / "host.xplane.pb").write_bytes(place.encode())
        captures.append(Capture(session / "host.xplane.pb", "host", case="selu", variant="jit", source=source))

    assert copy_captures(captures, tmp_path / "copies") == 3

    copied = sorted((tmp_path / "copies").rglob("*.pb"))
    names = [path.relative_to(tmp_path / "copies").as_posix().partition("/plugins")[0] for path in copied]
    assert names == ["first/selu/jit", "second/selu/jit", "second/selu/jit-2"]
    assert {path.read_bytes() for path in copied} == {b"a", b"b", b"copy of b"}


def test_a_capture_of_another_profiler_has_the_name_of_its_session(tmp_path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "host.xplane.pb").touch()

    copy_captures([Capture(tmp_path / "mine" / "host.xplane.pb", "host", session="mine")], tmp_path / "copies")

    assert list_files(tmp_path / "copies") == {"mine/plugins/profile/mine/host.xplane.pb"}
