"""What holds for every workload of every suite."""

import inspect
import re
from dataclasses import replace
from importlib import util

import jax
import pytest

from jaxmeter import Skip
from jaxmeter import workload as declared
from jaxmeter.harness.declare.declaration import call_with
from jaxmeter.harness.machine.platforms import BACKENDS
from jaxmeter.harness.plan.cases import name_case
from jaxmeter.harness.record import NATIVE, Status
from tests.suites.checked import (
    SUITES,
    WORKLOADS,
    checked,
    checked_on_several_devices,
    context_of,
    needs_several_devices,
    numerics,
    unseen,
)

every_workload = pytest.mark.parametrize("workload", WORKLOADS, ids=lambda workload: workload.name)

LEVELS = ("quick", "default", "full")

WITHOUT_COST = {
    "random_split",
    "at_set",
    "at_add",
    "static_arguments",
    "lengths",
    "kinds_of_numbers",
    "queued_calls",
    "sum_first_n",
    "zero_copy",
    "selu_ahead_of_time",
    "toy_epoch",
    "cnn_epoch",
    "loaded_mnist_epoch",
    "input_pipeline",
    "training_habits",
    "generation",
    *(one.name for one in WORKLOADS if one.declaration.reported),
}
"""Whose implementations write different numbers of bytes; or where a rate would say nothing, as the time goes to
dispatch, to compiling, to a loader, or to what an implementation does needlessly; or that are there for a release."""

MOST_CASES = {"quick": 12, "default": 83}
"""That six rounds of are measured in three minutes, and eight in half an hour, on two cores."""


def has_pytorch_peer(workload):
    """Whether one of its peers is `torch`, or something of it as `torch.compile`."""
    return any(item.modes == (NATIVE,) and item.name.split(".")[0] == "torch" for item in workload.implementations)


def marked(workload):
    """The workload as a test's parameter; `nox -s torch` runs those that have a peer in PyTorch."""
    return pytest.param(workload, marks=[pytest.mark.torch] if has_pytorch_peer(workload) else [], id=workload.name)


def smallest_case(workload):
    """The first of the lowest level that it is measured at."""
    return next(cases[0] for level in LEVELS if (cases := list(workload.list_cases(level, "cpu"))))


@every_workload
def test_a_workload_says_what_it_computes_with_shapes_where_it_is_from_and_what_its_implementations_are(workload):
    reference = workload.declaration.reference

    assert re.search(r"\(.*\).* -> ", workload.description), workload.description
    assert "Source: " in inspect.getdoc(workload.function)
    assert [item.name for item in workload.implementations if not item.description] == []
    assert callable(reference) or reference.reason


@every_workload
def test_every_case_declares_its_cost(workload):
    if workload.name in WITHOUT_COST:
        assert workload.declaration.cost is None
        return
    for level in LEVELS:
        for params in workload.list_cases(level, "gpu"):
            cost = call_with(workload.declaration.cost, params)

            counts = [count for count in (cost.flops, cost.bytes) if count is not None]
            assert counts, name_case(workload.name, params, BACKENDS["gpu"])
            assert min(counts) >= 0, name_case(workload.name, params, BACKENDS["gpu"])


def count_cases(suite, level):
    return sum(len(list(workload.list_cases(level, "cpu"))) for workload in suite.workloads)


@pytest.mark.parametrize(("level", "most"), MOST_CASES.items())
def test_a_level_has_as_many_cases_as_its_time_is_for(level, most):
    cases = {suite.name: count_cases(suite, level) for suite in SUITES}

    assert most / 2 < sum(cases.values()) <= most, cases


@pytest.mark.parametrize("suite", SUITES, ids=lambda suite: suite.name)
def test_every_suite_has_a_question_and_a_case_of_a_default_run_that_answers_it(suite):
    (workload,) = [one for one in suite.workloads if one.declaration.answer is not None]
    answer = workload.declaration.answer

    assert answer.question.endswith("?")
    cases = list(workload.list_cases("default", "cpu"))
    assert any(answer.at.items() <= case.items() for case in cases)
    skipped = {
        f"{item.name}:{mode}"
        for item in workload.implementations
        for mode in item.modes
        if item.find_skip({**cases[0], **answer.at}, "cpu") is not None
    }
    assert skipped.isdisjoint(answer.variants)


def test_the_answers_that_come_first_are_ranked_each_for_itself():
    answers = [w.declaration.answer for suite in SUITES for w in suite.workloads if w.declaration.answer is not None]
    ranks = sorted(answer.rank for answer in answers if answer.rank is not None)

    assert ranks == list(range(1, len(ranks) + 1))
    assert {answer.metric for answer in answers if answer.rank is not None} >= {"execution_s", "temp_bytes"}


@every_workload
def test_a_published_figure_has_a_case(workload):
    claimed = [
        claim
        for backend in BACKENDS
        for case in workload.list_cases("full", backend)
        for claim in workload.find_published(case, backend)
    ]

    lost = [claim.source for claim in workload.declaration.published if claim not in claimed]

    assert lost == []


def test_the_workloads_that_nox_runs_with_pytorch_are_those_that_skip_a_peer_without_it(monkeypatch):
    monkeypatch.setattr(util, "find_spec", lambda name: None)
    skips = {
        workload.name
        for workload in WORKLOADS
        for params in workload.list_cases("default", "cpu")
        for item in workload.implementations
        if (skip := item.find_skip(params, "cpu")) is not None and skip.reason.startswith("PyTorch is not installed")
    }

    assert skips == {workload.name for workload in WORKLOADS if has_pytorch_peer(workload)}
    assert "mlp_epoch" in skips


@pytest.mark.suites
@pytest.mark.parametrize("workload", [marked(workload) for workload in WORKLOADS])
def test_every_implementation_is_right_and_each_output_that_is_wrong_is_caught(workload):
    if needs_several_devices(workload):
        found = checked_on_several_devices(workload)
    else:
        found = {workload.name: checked(workload, smallest_case(workload))}

    for case, (right, not_compared, traps) in found.items():
        assert {name: one.status for name, one in right.items()} == dict.fromkeys(right, Status.OK), (case, right)
        assert not_compared == [], case
        assert traps == [], case


def test_an_output_that_nobody_compares_is_told():
    @declared(
        inputs=lambda key: jax.numpy.ones(2),
        reference=lambda x: (x, {"negative": -x}),
        compare=lambda result: (result[0], {"negative": -result[0]}),
    )
    def both(x):
        return x, {"negative": -x}

    context = context_of(both, {})

    assert unseen(context, both.implementations[0]) == ["[1]['negative']"]


def test_listing_5_22_which_begins_its_sum_at_1_is_caught():
    """Sapunov, JAX in Action, listing 5.22: every output is one too high."""
    workload = next(workload for workload in WORKLOADS if workload.name == "cumulative_sum")

    def scan(x):
        def step(total, value):
            total = total + value
            return total, total

        return jax.lax.scan(step, jax.numpy.ones((), x.dtype), x)[1]

    context = context_of(workload, smallest_case(workload))

    found = numerics(context, replace(workload.find_variant("scan:jit")[0], function=scan))

    assert found.status is Status.WRONG


def test_what_is_skipped_on_a_cpu_has_a_reason():
    reasons = [
        item.find_skip(params, "cpu")
        for workload in WORKLOADS
        for params in workload.list_cases("default", "cpu")
        for item in workload.implementations
    ]

    assert all(isinstance(reason, Skip) and reason.reason for reason in reasons if reason is not None)
