"""Cases with one variant twice."""

import msgspec
import pytest

from harness.machine.places import PLACES
from harness.plan.launches import plan_launches_of
from harness.plan.settings import make_settings
from harness.plan.twins import add_twin, is_unchanged
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
def test_the_first_jitted_variant_that_can_be_timed_has_a_twin_else_the_first_of_jaxs(variants, first):
    case = samples.planned_case(variants=variants)

    planned = add_twin(case)

    assert planned is not None
    assert [(one.name, one.same_as) for one in planned.variants] == [(first, None), (f"{first} again", first)]
    assert planned.baseline == first


def test_twins_are_equal_but_for_their_names():
    planned = add_twin(samples.planned_case())

    assert planned is not None
    first, twin = planned.variants
    assert msgspec.structs.replace(twin, name=first.name, same_as=None) == first


def test_a_case_without_a_program_of_jaxs_has_none():
    assert (
        add_twin(samples.planned_case(variants=("numpy:native", samples.planned_variant("f:jit", skip="no")))) is None
    )


def test_twins_are_checked_once_and_timed_beside_each_other_in_every_launch():
    planned = add_twin(samples.planned_case())
    settings = make_settings("quick", probes=("timing",), suites=(), run_id="a")
    assert planned is not None

    launches = list(plan_launches_of(planned, settings, PLACES["cpu"]))

    both = ("selu:jit", "selu:jit again")
    assert [(one.kind, one.round) for one in launches] == [
        ("shapes", 0),
        ("check", 0),
        *(("timing", index) for index in range(5)),
    ]
    assert {one.variants for one in launches} == {both}


# What was planned, and what a suite declares since


@pytest.mark.parametrize("plan", [lambda case: case, add_twin], ids=["as declared", "with a twin"])
def test_a_case_is_unchanged_as_long_as_its_definition_and_variants_are(plan):
    declared = samples.planned_case()
    edited = [msgspec.structs.replace(item, source="1" * 16) for item in declared.variants]

    planned = plan(declared)

    assert is_unchanged(planned, declared)
    assert not is_unchanged(planned, msgspec.structs.replace(declared, definition="1" * 16))
    assert not is_unchanged(planned, msgspec.structs.replace(declared, variants=tuple(edited)))
    assert not is_unchanged(planned, msgspec.structs.replace(declared, variants=()))


def test_what_else_of_a_suite_changes_does_not_touch_a_twins_case():
    declared = samples.planned_case()
    planned = add_twin(declared)
    assert planned is not None

    assert is_unchanged(planned, msgspec.structs.replace(declared, variants=declared.variants[1:]))
    assert not is_unchanged(declared, msgspec.structs.replace(declared, variants=declared.variants[1:]))
