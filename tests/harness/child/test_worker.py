"""How a process begins."""

import os

import pytest

from jaxmeter.harness.child.worker import take_memory_ahead
from jaxmeter.harness.machine.platforms import BACKENDS
from jaxmeter.harness.plan.processes import PlannedProcess


@pytest.mark.parametrize(
    ("backend", "probe", "expected"),
    [("gpu", "measured_memory", "true"), ("gpu", "timing", "false"), ("cpu", "measured_memory", "false")],
)
def test_where_what_calls_hold_is_read_a_gpus_memory_is_taken_ahead(monkeypatch, backend, probe, expected):
    monkeypatch.setenv("XLA_PYTHON_CLIENT_PREALLOCATE", "false")

    take_memory_ahead(PlannedProcess(case="c", kind=probe, assignments={probe: ("f:jit",)}), BACKENDS[backend])

    assert os.environ["XLA_PYTHON_CLIENT_PREALLOCATE"] == expected
