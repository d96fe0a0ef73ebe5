"""The trace probe: calls are captured, the capture is kept without the host's name, and what it shows is recorded."""

import platform as host_platform
import time
from pathlib import Path

import jax
import jax.numpy as jnp
import msgspec
import pytest

from jaxmeter.harness.machine.platforms import BACKENDS
from jaxmeter.harness.probes import Context
from jaxmeter.harness.probes import trace as probe
from jaxmeter.harness.probes.trace import capture
from jaxmeter.harness.programs.capturing import DISCARDED_CALLS, FEWEST_CALLS, KEPT_CALLS
from jaxmeter.harness.programs.modes import Prepared
from jaxmeter.harness.record import CaseFolder, Status
from jaxmeter.harness.record.trace_summary import Finding, Problem, TraceSummary
from jaxmeter.harness.traces.summary import summarise_capture
from jaxmeter.harness.traces.xplane import CaptureError


def captured(tmp_path, call, platform="cpu", stages=None):
    prepared = Prepared(call, (), jax.block_until_ready, stages)
    folder = CaseFolder(tmp_path)
    return capture("a:jit", prepared, Context(None, {}, BACKENDS[platform], (), time.perf_counter, folder)), folder


def test_a_capture_is_kept_without_the_hosts_name_and_what_it_shows_is_recorded(tmp_path):
    product = jax.jit(lambda x: x @ x)
    x = jnp.ones((300, 300))

    outcome, folder = captured(tmp_path, lambda: product(x))

    (kept,) = [path for path in folder.artifacts("trace", "a:jit") if path.name.endswith(".xplane.pb")]
    summary = outcome.details.summary
    assert (outcome.status, outcome.values) == (Status.OK, {"trace_file_bytes": (kept.stat().st_size,)})
    assert FEWEST_CALLS <= len(summary.traced_s) == len(summary.devices[0].busy_s) <= KEPT_CALLS
    assert 1 <= outcome.details.discarded <= DISCARDED_CALLS
    problems = {finding.problem for finding in summary.findings}
    assert (summary.platform, problems - {Problem.LONG_STEP}) == ("cpu", set())  # a busy machine may stop a step
    assert [one.flops for one in summary.operations] == [2 * 300**3]
    assert sum(summary.ledger.values()) == pytest.approx(1, abs=1e-3)
    sources = [one.source for one in summary.operations if one.source]
    assert any(source.startswith("tests/harness/probes/test_trace.py:") for source in sources)
    assert not any(str(Path.cwd()) in source or "~" in source for source in sources)
    assert [path for path in folder.artifacts("trace", "a:jit") if host_platform.node() in path.name] == []


def test_a_capture_without_the_device_of_its_platform_says_so(tmp_path):
    outcome, _ = captured(tmp_path, lambda: jnp.ones(8) + 1, platform="gpu")

    summary = outcome.details.summary
    assert Problem.NO_DEVICE in [finding.problem for finding in summary.findings]
    assert not summary.is_healthy


def test_operations_that_command_buffers_hide_are_captured_again_with_the_program_compiled_without_them(
    tmp_path, monkeypatch
):
    compiled_with, read = [], []
    hidden = Finding(problem=Problem.COMMAND_BUFFERS, text="hidden", is_fatal=False)

    def summarise(path, *args, **options):
        options["has_device"] = None
        read.append(path)
        found = summarise_capture(path, *args, **options)
        return msgspec.structs.replace(found, findings=(hidden,)) if len(read) == 1 else found

    def compile_with(self, variant, options):
        compiled_with.append(options)
        return Prepared(jax.jit(lambda: jnp.ones((64, 64)) @ jnp.ones((64, 64)), compiler_options=options), (), wait)

    wait = jax.block_until_ready
    monkeypatch.setattr(probe, "summarise_capture", summarise)
    monkeypatch.setattr(Context, "prepare_with", compile_with)

    outcome, folder = captured(tmp_path, lambda: jnp.ones(8) + 1, stages=object())

    (finding,) = outcome.details.summary.findings
    assert compiled_with == [{"xla_gpu_enable_command_buffer": ""}]
    assert "second capture" in finding.text
    assert [path.name for path in folder.artifacts("trace", "a:jit") if path.name.endswith("xplane.pb")] == [
        "host.xplane.pb"
    ]


def test_a_program_that_cannot_be_compiled_again_keeps_its_first_capture(tmp_path, monkeypatch):
    hidden = Finding(problem=Problem.COMMAND_BUFFERS, text="hidden", is_fatal=False)
    found = TraceSummary(platform="gpu", steps_from="", findings=(hidden,))
    monkeypatch.setattr(probe, "summarise_capture", lambda *_, **__: found)

    outcome, _ = captured(tmp_path, lambda: jnp.ones(8) + 1, stages=object())  # there is no workload to compile

    assert outcome.details.summary.findings == (hidden,)


def test_where_a_profiler_session_is_running_nothing_is_captured(tmp_path):
    with jax.profiler.trace(tmp_path / "users"):
        outcome, _ = captured(tmp_path / "run", lambda: jnp.ones(8) + 1)

    assert outcome.status is Status.SKIPPED
    assert outcome.reason.startswith("not captured: ")
    assert [*(tmp_path / "users").rglob("*.xplane.pb")]


def test_a_profiler_that_writes_nothing_has_failed(tmp_path, monkeypatch):
    def write_nothing(*_):
        raise CaptureError("the profiler wrote no capture (*.xplane.pb)")

    monkeypatch.setattr(probe, "capture_steps", write_nothing)

    outcome, _ = captured(tmp_path, lambda: None)

    assert (outcome.status, outcome.reason) == (Status.FAILED, "the profiler wrote no capture (*.xplane.pb)")
