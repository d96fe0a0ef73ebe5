from pathlib import Path

import msgspec
import pytest

from jaxmeter.harness.metrics.write import describe_details
from jaxmeter.harness.record import CompilationDetails, NumericsDetails, Outcome, Status, Trap
from jaxmeter.harness.record.outcomes import (
    KINDS,
    NO_INPUT,
    describe_trap,
    find_no_input_objection,
    find_traps,
    join,
    name_trap,
)

CHECKOUT = Path(__file__).parents[3]

DEAD = Trap(kind="dead_work", evidence="98 % of the traced FLOPs", sources=("jaxmeter/suites/a.py:3",), share=0.98)
CALLBACK = Trap(kind="callbacks", evidence="debug_print", count=1, declared=True)


def constant(share):
    return Trap(kind="no_input", evidence="the whole result", share=share, count=1)


def outcomes(*traps):
    details = CompilationDetails(traps=traps)
    return {
        "numerics": Outcome(status=Status.OK, details=NumericsDetails()),
        "compilation": Outcome(status=Status.OK, details=details),
    }


@pytest.mark.parametrize("kind", KINDS)
def test_a_trap_is_one_sentence_with_its_evidence_and_its_page(kind):
    sentence = describe_trap(Trap(kind=kind, evidence="{what was found}", sources=("a/b.py:1", "a/b.py:2")))

    assert "{what was found}" in sentence
    assert "a/b.py:1, a/b.py:2" in sentence
    assert sentence.endswith(KINDS[kind].address)


@pytest.mark.parametrize("kind", KINDS)
def test_the_page_of_traps_has_a_heading_for_each_kind_and_its_name_in_suites(kind):
    page, _, anchor = KINDS[kind].address.partition("#")
    lines = (CHECKOUT / page).read_text().splitlines()

    assert anchor in [line.removeprefix("## ").lower().replace(" ", "-") for line in lines if line.startswith("## ")]
    assert any(f"`{kind}`" in line for line in lines)


def test_a_trap_of_a_later_version_shows_its_evidence():
    trap = Trap(kind="of tomorrow", evidence="so")

    assert "so" in describe_trap(trap)
    assert name_trap(trap) == "of tomorrow"
    assert find_traps(outcomes(trap)) == (trap,)


def test_a_declared_trap_is_described_and_is_no_warning():
    assert describe_trap(CALLBACK).startswith("declared: ")
    assert find_traps(outcomes(CALLBACK, DEAD)) == (DEAD,)


def test_traps_come_in_the_order_of_the_table():
    unrolled = Trap(kind="unrolled", evidence="1,000 equations")

    assert find_traps(outcomes(unrolled, DEAD)) == (DEAD, unrolled)


def test_the_details_of_a_compilation_name_its_traps():
    assert describe_details(CompilationDetails(traps=(DEAD, CALLBACK))) == (
        describe_trap(DEAD),
        describe_trap(CALLBACK),
    )
    assert describe_details(CompilationDetails(fingerprints=("a",))) == ()


def test_two_processes_give_each_trap_once():
    first, second = (outcomes(*traps)["compilation"] for traps in ((DEAD,), (DEAD, CALLBACK)))

    assert join(first, second).details.traps == (DEAD, CALLBACK)


def test_where_the_dependence_on_arguments_is_unknown_there_is_no_speedup():
    unknown, another = (
        Outcome(status=Status.OK, details=CompilationDetails(unknown_traps=(kind,))) for kind in (NO_INPUT, "dead_work")
    )

    assert "unknown whether its result depends on an argument" in find_no_input_objection({"compilation": unknown})
    assert find_no_input_objection({"compilation": another}) == ""
    assert join(unknown, another).details.unknown_traps == (NO_INPUT, "dead_work")


@pytest.mark.parametrize(
    ("traps", "has_speedup"),
    [
        ((DEAD, constant(1.0)), False),
        ((DEAD, msgspec.structs.replace(constant(1.0), declared=True)), False),
        *((others, True) for others in ((), (DEAD, CALLBACK), (constant(0.5),))),
    ],
)
def test_only_a_result_of_which_all_depends_on_no_argument_has_no_speedup(traps, has_speedup):
    assert (find_no_input_objection(outcomes(*traps)) == "") is has_speedup


def test_without_a_record_there_is_no_trap():
    assert find_traps({}) == ()
    assert find_no_input_objection({"": Outcome(status=Status.LOST)}) == ""
