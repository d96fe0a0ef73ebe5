"""Which calls a capture holds: by a clock that the calls move, and by a profiler that writes files of any size."""

from __future__ import annotations

from pathlib import Path

import jax
import jax.numpy as jnp
import pytest

from jaxmeter.harness.programs import capturing
from jaxmeter.harness.programs.capturing import Captured, ProfilerBusyError, capture_steps
from jaxmeter.harness.traces.summary import summarise_capture
from jaxmeter.harness.traces.xplane import CaptureError


class FakeProfiler:
    """Writes as many bytes as its calls have, and a part that does not depend on them."""

    def __init__(self, monkeypatch, *, call_bytes: int = 10, other_bytes: int = 0, is_old: bool = False) -> None:
        self.call_bytes, self.other_bytes, self.is_old = call_bytes, other_bytes, is_old
        self.sessions: list[tuple[int, int]] = []
        self.outside = self.inside = 0
        for name in ("start_trace", "stop_trace"):
            monkeypatch.setattr(jax.profiler, name, getattr(self, name))
        monkeypatch.setattr(jax.profiler, "StepTraceAnnotation", self.annotate)

    def start_trace(self, folder, profiler_options) -> None:
        session = "2026_11_28_08_10_00" if self.is_old else profiler_options.session_id
        self.folder = Path(folder) / "plugins" / "profile" / session
        self.outside = self.inside = 0
        self.options = profiler_options

    def stop_trace(self) -> None:
        self.sessions.append((self.outside - self.inside, self.inside))
        self.folder.mkdir(parents=True)
        (self.folder / "host.xplane.pb").write_bytes(b"x" * (self.outside * self.call_bytes + self.other_bytes))

    def annotate(self, name, step_num):
        assert step_num == self.inside
        self.inside += 1
        return jax.profiler.TraceAnnotation(name)


@pytest.fixture
def capture(tmp_path, monkeypatch, clock):
    """Captures calls that take some time; how many each session discarded and kept, and what it returned."""

    def run(call_s: float = 0.0, **sizes: int) -> tuple[list[tuple[int, int]], Captured]:
        profiler = FakeProfiler(monkeypatch, **sizes)

        def call() -> None:
            profiler.outside += 1
            clock.advance(call_s)

        captured = capture_steps(call, tmp_path, "step", clock=clock)
        assert (profiler.options.python_tracer_level, profiler.options.host_tracer_level) == (0, 2)
        return profiler.sessions, captured

    return run


@pytest.mark.parametrize(
    ("call_s", "discarded", "kept"),
    [
        (0.0, 10, 50),  # quick calls are counted
        (2**-10, 6, 21),  # about 1 ms: by time
        (2**-7, 1, 3),  # slow ones: the fewest
        (10.0, 1, 3),
    ],
)
def test_calls_are_discarded_and_kept_by_number_or_time(capture, call_s, discarded, kept):
    sessions, captured = capture(call_s)

    assert sessions == [(discarded, kept)]
    assert (captured.discarded, captured.steps) == (discarded, kept)


@pytest.mark.parametrize(
    ("large", "middle", "size"),
    [({"call_bytes": 100_000}, (10, 13), 600_000), ({"other_bytes": 2_000_001}, (10, 39), None)],
    ids=["by its calls", "by its programs, and not forever"],
)
def test_a_capture_that_is_too_large_is_taken_again_with_fewer_steps(capture, large, middle, size):
    sessions, captured = capture(**large)

    assert sessions == [(10, 50), middle, (3, 3)]
    assert captured.steps == 3
    assert size in (None, captured.path.stat().st_size)


def test_what_is_done_before_a_call_is_outside_its_step(tmp_path, monkeypatch):
    profiler = FakeProfiler(monkeypatch)
    done = []

    capture_steps(lambda: done.append("call"), tmp_path, "step", before=lambda: done.append("before"))

    assert done == ["before", "call"] * 61
    assert len(profiler.sessions) == 1


def test_a_profiler_that_writes_nothing_is_an_error(tmp_path, monkeypatch):
    profiler = FakeProfiler(monkeypatch)
    monkeypatch.setattr(jax.profiler, "stop_trace", lambda: profiler.sessions.append((0, 0)))

    with pytest.raises(CaptureError, match="wrote no capture"):
        capture_steps(lambda: None, tmp_path, "step")


# With jax's own profiler


@jax.jit
def double(x):
    return 2 * x


def call_double() -> None:
    double(jnp.arange(1000)).block_until_ready()


def test_the_capture_holds_the_steps_that_were_kept(tmp_path):
    captured = capture_steps(call_double, tmp_path, "double", session_id="mine")
    summary = summarise_capture(captured.path, steps=captured.steps)

    assert captured.path.parent == tmp_path / "plugins" / "profile" / "mine"
    assert len(summary.traced_s) == captured.steps
    assert summary.is_healthy
    assert "jit_double" in {operation.module for operation in summary.operations}


def test_another_capture_in_the_same_folder_takes_its_place(tmp_path):
    capture_steps(call_double, tmp_path, "double")
    captured = capture_steps(call_double, tmp_path, "double")

    assert list(tmp_path.rglob("*.xplane.pb")) == [captured.path]


def test_a_running_session_goes_on_and_is_named(tmp_path):
    with jax.profiler.trace(tmp_path / "own"):
        with pytest.raises(ProfilerBusyError, match="a profiler session is running"):
            capture_steps(call_double, tmp_path, "double")
        call_double()

    assert list((tmp_path / "own").rglob("*.xplane.pb"))


def test_a_session_that_jax_did_not_begin_is_named_and_the_next_capture_works(tmp_path):
    from jax._src.lib import _profiler

    session = _profiler.ProfilerSession(jax.profiler.ProfileOptions())
    with pytest.raises(ProfilerBusyError):
        capture_steps(call_double, tmp_path, "double")
    session.stop()

    assert capture_steps(call_double, tmp_path, "double").steps >= capturing.FEWEST_CALLS


def test_an_error_of_the_call_ends_the_session(tmp_path):
    calls = iter([None, None])

    def fail() -> None:
        if next(calls, "none") == "none":
            raise ValueError("out of luck")

    with pytest.raises(ValueError, match="out of luck"):
        capture_steps(fail, tmp_path, "fail")

    assert capture_steps(call_double, tmp_path, "double").steps >= capturing.FEWEST_CALLS


def test_a_session_that_an_old_release_names_by_its_date_gets_the_name_that_was_asked_for(capture, tmp_path):
    _, captured = capture(is_old=True, call_s=1.0)

    assert captured.path == tmp_path / "plugins" / "profile" / "capture" / "host.xplane.pb"
    assert [path.name for path in (tmp_path / "plugins" / "profile").iterdir()] == ["capture"]
