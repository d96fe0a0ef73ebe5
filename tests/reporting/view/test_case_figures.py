"""The view of a case: its cards stand in one order, whatever was measured."""

import pytest

from jaxmeter.harness.record import Answer, RunRecord
from tests import samples
from tests.reporting.views import card_of, page_of

COMPILED = {"compilation": samples.compilation(0.1, 0.2, 0.3, 0.4), "memory": samples.memory(4, 4, 2)}


def make_run(backend: str, outcomes: dict) -> RunRecord:
    settings = samples.settings(probes=("numerics", "timing", "compilation", "memory", "trace"))
    return samples.one_case({"selu:jit": outcomes}, backend=backend, settings=settings)


@pytest.mark.parametrize(
    ("backend", "outcomes", "cards"),
    [
        (
            "gpu",
            {"timing": samples.timing(1e-3), "trace": samples.traced(1e-3), **COMPILED},
            ["speed", "time", "first", "operations", "memory"],
        ),
        ("tpu", COMPILED, ["first", "memory"]),
    ],
    ids=["all", "compiled only"],
)
def test_cards_of_a_case_stand_in_one_order_and_those_without_a_number_are_left_out(
    backend: str, outcomes: dict, cards: list[str]
) -> None:
    (suite,) = page_of(make_run(backend, outcomes)).suites

    assert [card.id for card in suite.cases[0].figures] == cards


def test_the_card_about_speed_tells_of_speed_although_the_suite_asks_for_memory() -> None:
    case = {"answer": Answer("?", "g:jit", "f:jit", metric="temp_bytes")}
    outcomes = {
        "f:jit": {"timing": samples.timing(1e-3), "memory": samples.memory(4, 4, 9)},
        "g:jit": {"timing": samples.timing(5e-4, baseline_s=1e-3), "memory": samples.memory(4, 4, 1)},
    }
    (suite,) = page_of(samples.one_case(outcomes, case)).suites

    (phrase,) = card_of(suite.cases[0].figures, "speed").phrases
    assert phrase.text.startswith("g:jit is 2.0×")
    assert "g:jit 500\u202fµs" in suite.cases[0].heading


def test_the_heading_of_a_case_with_one_variant_has_its_time_alone() -> None:
    (suite,) = page_of(make_run("cpu", {"timing": samples.timing(1e-3)})).suites

    assert suite.cases[0].heading.endswith(": 1.00\u202fms on CPU")
