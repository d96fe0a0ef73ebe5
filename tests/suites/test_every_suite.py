"""What holds for every workload of every suite."""

import inspect
import re
import time
from contextlib import nullcontext

import jax
import numpy as np
import pytest

from harness import Skip
from harness.backends import BACKENDS
from harness.catalogue import find_suites
from harness.implementation import NATIVE
from harness.messages import CHECK
from harness.plan import case_name
from harness.probes import Context
from harness.record import Status
from harness.variants import inputs, outcomes_of
from harness.workload import NoReference

WORKLOADS = [workload for suite in find_suites(("suites",)) for workload in suite.workloads]
every_workload = pytest.mark.parametrize("workload", WORKLOADS, ids=lambda workload: workload.name)

SPOILED_BY = 0.5
"""Of an output's largest entry: beyond every tolerance."""


def quick_cases(workload):
    return list(workload.cases("quick", "cpu"))


def cases_on_one_device(workload):
    """What this process can run; suites of several devices have tests in processes of their own."""
    return [params for params in quick_cases(workload) if workload.needed_devices(params) == 1]


@every_workload
def test_a_workload_says_what_it_computes_with_shapes_and_where_it_is_from(workload):
    assert re.search(r"\(.*\).* -> ", workload.description), workload.description
    assert "Source: " in inspect.getdoc(workload.function)


@every_workload
def test_every_implementation_says_what_it_is(workload):
    assert [item.name for item in workload.implementations if not item.description] == []


@every_workload
def test_a_workload_has_a_reference_or_a_reason(workload):
    assert callable(workload.reference) or workload.reference.reason


@every_workload
def test_every_case_declares_its_cost(workload):
    for level in ("quick", "default", "full"):
        for params in workload.cases(level, "gpu"):
            cost = workload.cost(**{name: params[name] for name in inspect.signature(workload.cost).parameters})

            counts = [count for count in (cost.flops, cost.bytes) if count is not None]
            assert counts, case_name(workload.name, params)
            assert min(counts) >= 0, case_name(workload.name, params)


@every_workload
def test_the_quick_level_is_small(workload):
    assert 1 <= len(quick_cases(workload)) <= 4


@every_workload
def test_a_published_figure_has_a_case_of_the_default_level(workload):
    cases = list(workload.cases("default", "cpu"))

    lost = [claim.source for claim in workload.published if not any(claim in workload.claims(case) for case in cases)]

    assert lost == []


@pytest.mark.parametrize(
    "workload",
    [w for w in WORKLOADS if not isinstance(w.reference, NoReference) and cases_on_one_device(w)],
    ids=lambda workload: workload.name,
)
def test_a_wrong_implementation_is_caught(workload):
    params = cases_on_one_device(workload)[0]
    x64 = workload.settings(params).get("jax_enable_x64", False)
    with jax.enable_x64(True) if x64 else nullcontext():
        arguments = inputs(workload, params)
        name, right, wrong = honest_and_spoiled(workload, params)

        found = [numerics(workload, item, name, params, arguments) for item in (right, wrong)]

    assert [outcome.status for outcome in found] == [Status.OK, Status.WRONG], found


def honest_and_spoiled(workload, params):
    """A variant that runs here, its implementation, and the same with other results."""
    for item in workload.implementations:
        if item.skip(params, "cpu") is None and item.raises is None and item.modes != (NATIVE,):
            mode = "jit" if "jit" in item.modes else item.modes[0]
            return f"{item.name}:{mode}", item, type(item)(**{**vars(item), "function": spoiled(item.function)})
    pytest.fail(f"nothing of {workload.name} runs on a CPU")


def spoiled(function):
    """The same function with every output off by a part of its largest entry."""

    def wrong(*arguments, **params):
        return jax.tree.map(off, function(*arguments, **params))

    wrong.__signature__ = inspect.signature(function)
    return wrong


def off(leaf):
    xp = np if isinstance(leaf, np.ndarray | np.generic | int | float) else jax.numpy
    if jax.numpy.issubdtype(xp.asarray(leaf).dtype, jax.numpy.inexact):
        return (leaf + SPOILED_BY * (xp.abs(xp.asarray(leaf)).max() + 1)).astype(leaf.dtype)
    return ~leaf if leaf.dtype == bool else leaf + 1


def numerics(workload, implementation, variant, params, arguments):
    kept = list(workload.implementations)
    place = next(number for number, item in enumerate(kept) if item.name == implementation.name)
    workload.implementations[place] = implementation
    try:
        context = Context(workload, params, BACKENDS["cpu"], arguments, time.perf_counter, folder=None)
        return outcomes_of(variant, CHECK, ("numerics",), context)["numerics"]
    finally:
        workload.implementations[place] = kept[place]


def test_listing_5_22_which_begins_its_sum_at_1_is_caught():
    """Sapunov, JAX in Action, listing 5.22: every output is one too high."""
    workload = next(workload for workload in WORKLOADS if workload.name == "cumulative_sum")
    params = quick_cases(workload)[0]

    def scan(x):
        def step(total, value):
            total = total + value
            return total, total

        return jax.lax.scan(step, jax.numpy.ones((), x.dtype), x)[1]

    right, _ = workload.variant("scan:jit")
    listed = type(right)(**{**vars(right), "function": scan})

    found = numerics(workload, listed, "scan:jit", params, inputs(workload, params))

    assert found.status is Status.WRONG


def test_what_is_skipped_on_a_cpu_has_a_reason():
    reasons = [
        item.skip(params, "cpu")
        for workload in WORKLOADS
        for params in workload.cases("default", "cpu")
        for item in workload.implementations
    ]

    assert all(isinstance(reason, Skip) and reason.reason for reason in reasons if reason is not None)
