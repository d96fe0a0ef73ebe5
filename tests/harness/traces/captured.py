"""Captures that profilers made: this project's own, and those of other projects that lie next to the checkout."""

from __future__ import annotations

import json
import os
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from jaxmeter.harness.traces.analysis import Analysis, analyse
from jaxmeter.harness.traces.programs import Programs, list_programs
from jaxmeter.harness.traces.timeline import read_timeline
from jaxmeter.harness.traces.xplane import open_capture

OWN = Path(__file__).parent / "captures"
NAMES = ("cpu_matmul_jit", "cpu_fusion_eager", "cpu_shard_map_two_devices", "nvidia_h200_selu")
AMD, TPU = "amd_mi300x_jax_gemm", "tpu_v6e4_jax_host_offload"

SHARED = Path(os.environ.get("JAXMETER_SHARED", Path(__file__).parents[4] / "shared")) / "traces"
"""Captures of other projects, which are no part of this one."""

with_shared = pytest.mark.skipif(not SHARED.is_dir(), reason="captures of other projects are kept next to the checkout")


def find_capture(name: str) -> Path:
    """The file of a capture."""
    return (OWN if name in NAMES else SHARED) / f"{name}.xplane.pb"


def read_texts(name: str) -> tuple[str, ...]:
    """HLO that is kept next to a capture."""
    path = OWN / f"{name}.hlo.txt"
    return (path.read_text(encoding="utf8"),) if path.is_file() else ()


@cache
def read_expected(name: str) -> dict[str, Any]:
    """What a capture shows, as computed elsewhere."""
    if name in NAMES:
        return json.loads((OWN / "expected.json").read_text(encoding="utf8"))[name]
    return json.loads((SHARED / "reference.json").read_text(encoding="utf8"))[name]


@cache
def analyse_capture(name: str) -> Analysis:
    """What a capture shows, read once for all tests."""
    with open_capture(find_capture(name)) as space:
        programs = Programs(list_programs(space), read_texts(name))
        return analyse(read_timeline(space, programs), programs)
