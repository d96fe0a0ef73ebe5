"""The view of a case: its cards stand in one order, whatever was measured."""

from __future__ import annotations

import pytest

from jaxmeter.harness.record import RunRecord
from tests import samples
from tests.reporting.views import page_of

ORDER = ("speed", "time", "first", "operations", "memory", "history")

COMPILED = {"compilation": samples.compilation(0.1, 0.2, 0.3, 0.4), "memory": samples.memory(4, 4, 2)}


def make_run(backend: str, outcomes: dict) -> RunRecord:
    planned = samples.planned_case(variants=("selu:jit",))
    probes = ("numerics", "timing", "compilation", "memory", "trace")
    return samples.run(
        (planned, samples.record(planned, {"selu:jit": outcomes})),
        backend=backend,
        settings=samples.settings(probes=probes),
    )


@pytest.mark.parametrize(
    ("backend", "outcomes", "cards"),
    [
        (
            "cpu",
            {"timing": samples.timing(1e-3), "trace": samples.traced(1e-3), **COMPILED},
            ["speed", "time", "first", "operations", "memory"],
        ),
        (
            "gpu",
            {"timing": samples.timing(1e-3), "trace": samples.traced(1e-3), **COMPILED},
            ["speed", "time", "first", "operations", "memory"],
        ),
        ("tpu", COMPILED, ["first", "memory"]),
    ],
    ids=["on a CPU", "on a GPU", "compiled only"],
)
def test_cards_of_a_case_stand_in_one_order_and_those_without_a_number_are_left_out(
    backend: str, outcomes: dict, cards: list[str]
) -> None:
    (suite,) = page_of(make_run(backend, outcomes)).suites

    shown = [card.id for card in suite.cases[0].figures]

    assert shown == cards
    assert shown == sorted(shown, key=ORDER.index)
