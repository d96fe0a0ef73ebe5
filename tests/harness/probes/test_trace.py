"""What a capture of the profiler holds. Captures of other devices are kept beside the project; without: skipped."""

from pathlib import Path

import jax
import jax.numpy as jnp
import pytest

from harness.machine.places import BACKENDS
from harness.probes.trace import has_activity

CAPTURES = Path(__file__).parents[4] / "shared" / "traces"


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
