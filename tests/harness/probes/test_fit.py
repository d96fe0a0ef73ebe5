import time
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import pytest

from jaxmeter.harness.machine import jax_internals as internals
from jaxmeter.harness.machine.own_fault import OwnFaultError
from jaxmeter.harness.machine.platforms import BACKENDS
from jaxmeter.harness.probes import Context
from jaxmeter.harness.probes.fit import compare_with_capacity, planned_peak_bytes
from jaxmeter.harness.programs.modes import Prepared
from tests.harness.probes.made_up import plan

GIB = 2**30


# The peak of a program


@pytest.mark.parametrize(
    ("backend", "peak", "expected"),
    [("gpu", 35, 35), ("tpu", 35, 35), ("cpu", 24, 16 + 8 + 4 - 2), ("gpu", 0, 16 + 8 + 4 - 2)],
)
def test_a_peak_is_the_compilers_unless_it_leaves_temporaries_out_or_is_zero(backend, peak, expected):
    compiled = plan(argument=16, output=8, temp=4, alias=2, peak_memory_in_bytes=peak)

    assert planned_peak_bytes(compiled, BACKENDS[backend]) == expected


def test_a_release_that_reports_no_peak_has_what_the_plan_adds_up_to_and_any_other_is_our_own_fault(monkeypatch):
    compiled = plan(argument=16, output=8, temp=4, alias=2)

    with pytest.raises(OwnFaultError):
        planned_peak_bytes(compiled, BACKENDS["gpu"])
    monkeypatch.setattr(internals, "version", lambda name: "0.6.2")
    assert planned_peak_bytes(compiled, BACKENDS["gpu"]) == 16 + 8 + 4 - 2
    assert planned_peak_bytes(SimpleNamespace(memory_analysis=lambda: None), BACKENDS["cpu"]) is None


# Against what there is


@pytest.mark.parametrize(("needed", "capacity"), [(GIB, GIB), (GIB - 1, GIB), (None, GIB), (GIB, None), (None, None)])
def test_what_a_device_can_hold_or_nobody_knows_is_no_excess(needed, capacity):
    assert compare_with_capacity(needed, capacity) is None


def test_what_is_larger_than_its_device_says_both_sizes():
    assert compare_with_capacity(3 * GIB, 2 * GIB) == "needs 3 GiB of 2 GiB"
    assert compare_with_capacity(GIB + GIB // 8, GIB) == "needs 1.12 GiB of 1 GiB"
    assert compare_with_capacity(GIB + 1, GIB) is not None


# Whether a variant can be called


def excess_of(planned_bytes: int | None, *, capacity_bytes: int | None, too_large: str | None = None) -> str | None:
    """Of a variant whose program needs so much; None for a variant without a program."""
    stages = None if planned_bytes is None else SimpleNamespace(compiled=plan(argument=planned_bytes))
    prepared = Prepared(jnp.sin, (), jax.block_until_ready, stages=stages)
    context = Context(
        None, {}, BACKENDS["cpu"], (), time.perf_counter, None, capacity_bytes=capacity_bytes, too_large=too_large
    )
    return context.find_excess(prepared)


ARGUMENTS = "needs 3 GiB of 2 GiB"
"""What their shapes alone have told."""


@pytest.mark.parametrize("capacity_bytes", [2 * GIB, None], ids=["fits", "nobody knows"])
@pytest.mark.parametrize("planned_bytes", [GIB, None], ids=["a program", "no program"])
def test_what_fits_or_nobody_knows_can_be_called(planned_bytes, capacity_bytes):
    assert excess_of(planned_bytes, capacity_bytes=capacity_bytes) is None


def test_a_plan_knows_better_than_the_arguments_alone():
    assert excess_of(4 * GIB, capacity_bytes=2 * GIB, too_large=ARGUMENTS) == "needs 4 GiB of 2 GiB"


@pytest.mark.parametrize("planned_bytes", [GIB, None], ids=["a program that does not use them", "no program"])
def test_arguments_that_cannot_be_made_are_an_excess_by_themselves(planned_bytes):
    found = excess_of(planned_bytes, capacity_bytes=2 * GIB, too_large=ARGUMENTS)

    assert found == "needs 3 GiB of 2 GiB for its arguments alone"
