"""What a capture of the profiler holds. Captures of other devices are kept beside the project; without: skipped."""

import platform as host_platform
import time
from contextlib import nullcontext
from pathlib import Path

import jax
import jax.numpy as jnp
import pytest

from jaxmeter.harness.machine.platforms import BACKENDS
from jaxmeter.harness.probes import Context
from jaxmeter.harness.probes.trace import STEPS, capture, has_activity
from jaxmeter.harness.programs.modes import Prepared
from jaxmeter.harness.record import CaseFolder, Status, TraceDetails

CAPTURES = Path(__file__).parents[4] / "shared" / "traces"

OF_AN_H200 = Path(__file__).parents[1] / "traces" / "captures" / "nvidia_h200_selu.xplane.pb"
"""Five calls of selu of 10^8 numbers in bfloat16, jitted, jax 0.11.2, 2026-11-26."""


@pytest.mark.parametrize(("backend", "expected"), [("gpu", True), ("tpu", False)])
def test_work_on_a_gpu_of_nvidia_is_found(backend, expected):
    assert has_activity(OF_AN_H200, BACKENDS[backend].trace_plane) is expected


@pytest.mark.skipif(not CAPTURES.is_dir(), reason="captures made on devices are kept beside the project")
@pytest.mark.parametrize(
    ("capture", "backend", "expected"),
    [
        ("amd_mi300x_jax_gemm.xplane.pb", "gpu", True),
        ("tpu_v6e4_jax_host_offload.xplane.pb", "tpu", True),
        ("tpu_v6e4_jax_host_offload.xplane.pb", "gpu", False),
    ],
)
def test_work_on_a_device_is_found_on_the_planes_of_its_backend(capture, backend, expected):
    assert has_activity(CAPTURES / capture, BACKENDS[backend].trace_plane) is expected


def test_a_capture_without_a_device_has_no_activity_of_one(tmp_path):
    with jax.profiler.trace(tmp_path):
        (jnp.ones(8) + 1).block_until_ready()
    (capture,) = tmp_path.rglob("*.xplane.pb")

    assert not has_activity(capture, "/device:GPU")
    assert has_activity(capture, "/host:CPU")


@pytest.mark.parametrize(("platform", "activity"), [("cpu", None), ("gpu", False)])
def test_a_capture_is_kept_and_says_whether_its_device_did_anything_where_there_is_one_to_look_for(
    tmp_path, platform, activity
):
    calls = []
    prepared = Prepared(calls.append, (1,), lambda result: result)
    folder = CaseFolder(tmp_path)

    found = capture("a:jit", prepared, Context(None, {}, BACKENDS[platform], (), time.perf_counter, folder))

    kept = folder.artifacts("trace", "a:jit")
    captures = [path for path in kept if path.name.endswith(".xplane.pb")]
    assert (found.status, found.details) == (Status.OK, TraceDetails(device_activity=activity))
    assert found.values == {"trace_file_bytes": (sum(path.stat().st_size for path in captures),)}
    assert captures
    assert len(calls) == 1 + STEPS
    assert [path for path in kept if host_platform.node() in path.name] == []


def test_a_profiler_that_writes_nothing_has_failed(tmp_path, monkeypatch):
    monkeypatch.setattr(jax.profiler, "trace", lambda folder, profiler_options: nullcontext())
    prepared = Prepared(lambda: None, (), lambda result: result)

    found = capture("a:jit", prepared, Context(None, {}, BACKENDS["cpu"], (), time.perf_counter, CaseFolder(tmp_path)))

    assert (found.status, found.reason) == (
        Status.FAILED,
        "the profiler wrote no capture (*.xplane.pb), or an empty one",
    )
