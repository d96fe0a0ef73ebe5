"""How the parent listens to a process, by a pipe and a server that tests write to."""

import itertools
import json
import os
import signal
import socket

import pytest

from jaxmeter.harness.parent import fork_client
from jaxmeter.harness.parent.fork_client import ForkServer, Limits, Overran, Server
from jaxmeter.harness.plan.messages import Heartbeat

ENDED = {"status": signal.SIGSEGV, "peak_kib": 7}


@pytest.fixture
def ends(tmp_path):
    """A server that is listened to: (itself, its side of the talk, the two ends of the heartbeats' pipe)."""
    ours, theirs = socket.socketpair()
    reader, writer = os.pipe()
    server = ForkServer({}, tmp_path)
    server._server = Server(ours)
    yield server, theirs, reader, writer
    for one in (ours, theirs):
        one.close()
    os.close(reader)
    os.close(writer)


def beat(writer: int, variant: str | None, stage: str) -> None:
    os.write(writer, json.dumps([variant, stage]).encode() + b"\n")


def say(arm: socket.socket, **facts: int) -> None:
    arm.sendall(json.dumps(facts).encode() + b"\n")


def test_what_a_process_began_last_is_known_however_soon_it_died(ends):
    server, theirs, reader, writer = ends
    for number in range(500):
        beat(writer, f"variant {number}", "timing")
    say(theirs, **ENDED)

    heard = server._listen(reader, Limits(60.0), lambda beat: None)

    assert heard.last == Heartbeat("variant 499", "timing")
    assert (heard.signal, heard.timed_out, heard.peak_bytes) == (signal.SIGSEGV, False, 7 * 1024)


def test_a_process_that_begins_something_does_not_wake_its_parent(ends, monkeypatch):
    server, theirs, reader, writer = ends
    really, slept = fork_client.select.select, []

    def select(watched, others, errors, wait_s):
        slept.append((watched, wait_s))
        if len(slept) == 3:
            say(theirs, **ENDED)
        beat(writer, "a", "timing")
        return really(watched, others, errors, wait_s)

    monkeypatch.setattr(fork_client.select, "select", select)
    server._listen(reader, Limits(60.0), lambda beat: None)

    assert slept == [([server._server.control], fork_client.LISTEN_S)] * 3


def test_half_a_heartbeat_waits_for_its_other_half(ends, monkeypatch):
    server, theirs, reader, writer = ends
    halves = iter([b'["a", "tim', b'ing"]\n'])
    really, told = fork_client.select.select, []

    def select(watched, others, errors, wait_s):
        if (half := next(halves, None)) is None:
            say(theirs, **ENDED)
        else:
            os.write(writer, half)
        return really(watched, others, errors, wait_s)

    monkeypatch.setattr(fork_client.select, "select", select)
    server._listen(reader, Limits(60.0), told.append)

    assert told == [Heartbeat("a", "timing")]


GARBAGE = [b"\n", b"garbage\n", b"\xff\n", b"[1]\n", b'["a", 3]\n', b'["a", "b", "c"]\n', b"{}\n", b"[" * 9000 + b"\n"]


@pytest.mark.parametrize("garbage", [b"", *GARBAGE])
def test_heartbeats_that_came_together_are_told_as_one_and_what_is_none_is_passed_over(ends, garbage):
    server, theirs, reader, writer = ends
    told = []
    for variant in "aba":
        beat(writer, variant, "timing")
    os.write(writer, garbage)
    say(theirs, **ENDED)

    heard = server._listen(reader, Limits(60.0), told.append)

    assert [heard.last] == told == [Heartbeat("a", "timing")]


def test_a_process_that_floods_its_pipe_does_not_hold_its_parent(ends, monkeypatch):
    server, theirs, reader, writer = ends
    beat(writer, "a", "timing")
    first = os.read(reader, 100)
    floods = itertools.chain([first], itertools.repeat(b"x" * 1000))
    monkeypatch.setattr(fork_client.os, "read", lambda pipe, most: next(floods))
    monkeypatch.setattr(server, "_end_child", lambda: say(theirs, status=signal.SIGKILL))

    heard = server._listen(reader, Limits(0.01), lambda beat: None)

    assert (heard.last, heard.timed_out) == (Heartbeat("a", "timing"), True)


@pytest.mark.parametrize(
    ("variant", "limits", "overran"),
    [
        ("a", Limits(0.01), None),
        ("a", Limits(60.0, stage_share_s=0.01), Overran.STAGE),
        ("a", Limits(60.0, end_s=0.01), Overran.BUDGET),
        (None, Limits(60.0, stage_share_s=0.0, end_s=0.01), Overran.BUDGET),
        ("a", Limits(0.01, stage_share_s=60.0, end_s=60.0), None),
    ],
)
def test_a_process_that_is_silent_for_too_long_is_ended_and_what_it_took_too_much_of_is_known(
    ends, monkeypatch, variant, limits, overran
):
    server, theirs, reader, writer = ends
    beat(writer, variant, "compile")
    monkeypatch.setattr(server, "_end_child", lambda: say(theirs, status=signal.SIGKILL))

    heard = server._listen(reader, limits, lambda beat: None)

    assert (heard.last, heard.timed_out, heard.overran) == (Heartbeat(variant, "compile"), True, overran)


def test_a_process_that_ends_in_time_took_too_much_of_nothing(ends):
    server, theirs, reader, writer = ends
    beat(writer, "a", "compile")
    say(theirs, **ENDED)

    assert server._listen(reader, Limits(60.0, stage_share_s=50.0, end_s=40.0), lambda beat: None).overran is None


def test_a_process_that_never_falls_silent_is_ended_by_the_budget_all_the_same():
    limits = Limits(120.0, stage_share_s=10.0, end_s=30.0)

    assert limits.find_deadline(100.0, 125.0, Heartbeat("a", "timing")) == (130.0, Overran.BUDGET)
