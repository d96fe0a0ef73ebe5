"""Cases with one variant twice."""

import msgspec
import pytest

from jaxmeter.harness.machine.platforms import PLATFORMS
from jaxmeter.harness.plan.cases import add_aa_control, is_unchanged
from jaxmeter.harness.plan.processes import plan_processes_of
from jaxmeter.harness.plan.settings import MOST_ROUNDS, make_settings
from tests import samples


@pytest.mark.parametrize(
    ("variants", "first"),
    [
        (("f:eager", "f:jit", "g:jit", "numpy:native"), "f:jit"),
        (("numpy:native", "f:eager", "f:aot"), "f:eager"),
        ((samples.planned_variant("f:jit", skip="no"), "g:jit"), "g:jit"),
        ((msgspec.structs.replace(samples.planned_variant("f:jit"), raises="TypeError"), "f:aot"), "f:aot"),
    ],
    ids=["jitted", "not jitted", "skipped", "raises"],
)
def test_the_first_jitted_variant_that_can_be_timed_has_a_aa_control_else_the_first_of_jaxs(variants, first):
    case = samples.planned_case(variants=variants)

    planned = add_aa_control(case)

    assert planned is not None
    assert [(one.name, one.same_as) for one in planned.variants] == [(first, None), (f"{first} again", first)]
    assert planned.baseline == first


def test_aa_controls_are_equal_but_for_their_names():
    planned = add_aa_control(samples.planned_case())

    assert planned is not None
    first, aa_control = planned.variants
    assert msgspec.structs.replace(aa_control, name=first.name, same_as=None) == first


def test_a_case_without_a_program_of_jaxs_has_none():
    assert (
        add_aa_control(samples.planned_case(variants=("numpy:native", samples.planned_variant("f:jit", skip="no"))))
        is None
    )


def test_aa_controls_are_checked_once_and_timed_beside_each_other_in_every_process():
    planned = add_aa_control(samples.planned_case())
    settings = make_settings("quick", probes=("timing",), suites=(), run_id="a")
    assert planned is not None

    processes = list(plan_processes_of(planned, settings, PLATFORMS["cpu"]))

    both = ("selu:jit", "selu:jit again")
    assert [(one.kind, one.round) for one in processes] == [
        ("shapes", 0),
        ("check", 0),
        *(("timing", index) for index in range(MOST_ROUNDS["quick"])),
    ]
    assert {one.variants for one in processes} == {both}


# What was planned, and what a suite declares since


@pytest.mark.parametrize("plan", [lambda case: case, add_aa_control], ids=["as declared", "with an A/A control"])
def test_a_case_is_unchanged_as_long_as_its_definition_and_variants_are(plan):
    declared = samples.planned_case()
    edited = [msgspec.structs.replace(item, source="1" * 16) for item in declared.variants]

    planned = plan(declared)

    assert is_unchanged(planned, declared)
    assert not is_unchanged(planned, msgspec.structs.replace(declared, definition="1" * 16))
    assert not is_unchanged(planned, msgspec.structs.replace(declared, variants=tuple(edited)))
    assert not is_unchanged(planned, msgspec.structs.replace(declared, variants=()))


def test_what_else_of_a_suite_changes_does_not_touch_a_aa_controls_case():
    declared = samples.planned_case()
    planned = add_aa_control(declared)
    assert planned is not None

    assert is_unchanged(planned, msgspec.structs.replace(declared, variants=declared.variants[1:]))
    assert not is_unchanged(declared, msgspec.structs.replace(declared, variants=declared.variants[1:]))
