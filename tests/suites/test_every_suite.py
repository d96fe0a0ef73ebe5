"""What holds for every workload of every suite."""

import inspect
import re
import time
from contextlib import nullcontext
from dataclasses import replace

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

SUITES = find_suites(("suites",))
WORKLOADS = [workload for suite in SUITES for workload in suite.workloads]
every_workload = pytest.mark.parametrize("workload", WORKLOADS, ids=lambda workload: workload.name)

LEVELS = ("quick", "default", "full")

MOST_QUICK = 32
"""Cases that a quick run measures within its five minutes."""

SPOILED_BY = 0.5
"""Of an output's largest entry: beyond every tolerance."""


def smallest_cases(workload):
    """Those of the lowest level that it is measured at."""
    return next(cases for level in LEVELS if (cases := list(workload.cases(level, "cpu"))))


def cases_on_one_device(workload):
    """What this process can run; what needs more than one device has tests in processes of its own."""
    return [
        params
        for params in smallest_cases(workload)
        if workload.needed_devices(params) == 1 and "jax_num_cpu_devices" not in workload.settings(params)
    ]


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
    for level in LEVELS:
        for params in workload.cases(level, "gpu"):
            cost = workload.cost(**{name: params[name] for name in inspect.signature(workload.cost).parameters})

            counts = [count for count in (cost.flops, cost.bytes) if count is not None]
            assert counts, case_name(workload.name, params)
            assert min(counts) >= 0, case_name(workload.name, params)


def test_every_suite_has_a_quick_case_and_all_together_are_few():
    quick = {suite.name: sum(len(list(w.cases("quick", "cpu"))) for w in suite.workloads) for suite in SUITES}

    assert min(quick.values()) >= 1, quick
    assert sum(quick.values()) <= MOST_QUICK, quick


@every_workload
def test_a_published_figure_has_a_case_of_the_default_level(workload):
    claimed = [
        claim
        for backend in BACKENDS
        for case in workload.cases("default", backend)
        for claim in workload.claims(case, backend)
    ]

    lost = [claim.source for claim in workload.published if claim not in claimed]

    assert lost == []


@pytest.mark.suites
@pytest.mark.parametrize(
    "workload", [w for w in WORKLOADS if cases_on_one_device(w)], ids=lambda workload: workload.name
)
def test_every_implementation_is_right_and_a_wrong_one_is_caught(workload):
    params = cases_on_one_device(workload)[0]
    x64 = workload.settings(params).get("jax_enable_x64", False)
    with jax.enable_x64(True) if x64 else nullcontext():
        context = Context(workload, params, BACKENDS["cpu"], inputs(workload, params), time.perf_counter, folder=None)
        here = [item for item in workload.implementations if item.skip(params, "cpu") is None]

        right = {item.name: numerics(context, item) for item in here}
        wrong = numerics(context, replace(first_of(here), function=spoiled(first_of(here).function)))

    assert {name: outcome.status for name, outcome in right.items()} == dict.fromkeys(right, Status.OK), right
    assert isinstance(workload.reference, NoReference) or wrong.status is Status.WRONG, wrong


def first_of(implementations):
    """The first that computes something in JAX."""
    return next(item for item in implementations if item.raises is None and item.modes != (NATIVE,))


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
    # Half of it: random bits with one more are random bits.
    return ~leaf if leaf.dtype == bool else leaf // 2 + 12_345


def numerics(context, implementation):
    """What the check says of an implementation in the place of the one of its name, jitted if it may be."""
    all_of_them = context.workload.implementations
    place = next(number for number, item in enumerate(all_of_them) if item.name == implementation.name)
    declared, all_of_them[place] = all_of_them[place], implementation
    mode = "jit" if "jit" in implementation.modes else implementation.modes[0]
    try:
        return outcomes_of(f"{implementation.name}:{mode}", CHECK, ("numerics",), context)["numerics"]
    finally:
        all_of_them[place] = declared


def test_listing_5_22_which_begins_its_sum_at_1_is_caught():
    """Sapunov, JAX in Action, listing 5.22: every output is one too high."""
    workload = next(workload for workload in WORKLOADS if workload.name == "cumulative_sum")
    params = smallest_cases(workload)[0]

    def scan(x):
        def step(total, value):
            total = total + value
            return total, total

        return jax.lax.scan(step, jax.numpy.ones((), x.dtype), x)[1]

    context = Context(workload, params, BACKENDS["cpu"], inputs(workload, params), time.perf_counter, folder=None)

    found = numerics(context, replace(workload.variant("scan:jit")[0], function=scan))

    assert found.status is Status.WRONG


def test_what_is_skipped_on_a_cpu_has_a_reason():
    reasons = [
        item.skip(params, "cpu")
        for workload in WORKLOADS
        for params in workload.cases("default", "cpu")
        for item in workload.implementations
    ]

    assert all(isinstance(reason, Skip) and reason.reason for reason in reasons if reason is not None)
