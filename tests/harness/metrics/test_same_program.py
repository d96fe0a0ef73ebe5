"""Variants of one program are called that."""

import msgspec
import pytest

from jaxmeter.harness.metrics.plausibility import is_same_program
from jaxmeter.harness.metrics.reading import Run
from jaxmeter.harness.record import CompilationDetails, Trap
from jaxmeter.harness.results import describe_results
from tests import samples

OPTIONS = {"xla_cpu_multi_thread_eigen": False}
CALLBACKS = Trap(kind="callbacks", evidence="pure_callback", count=1, declared=True)


def run_of(first, second, *, options=None, names=("f:jit", "g:jit"), slowdown=1.0):
    """Two variants with these details of their compilation; the second with compiler options."""
    planned = [samples.planned_variant(name) for name in names]
    planned[1] = msgspec.structs.replace(planned[1], compiler_options=options or {})
    case = samples.planned_case(variants=planned)
    outcomes = {
        name: {
            "timing": samples.timing(time_s, baseline_s=1e-3),
            "compilation": msgspec.structs.replace(samples.compilation(0.1, 0.1, 0.1, 0.1), details=details),
        }
        for name, details, time_s in zip(names, (first, second), (1e-3, slowdown * 1e-3), strict=True)
    }
    return samples.run((case, samples.record(case, outcomes)))


def details(*fingerprints, **more):
    return CompilationDetails(fingerprints=fingerprints, **more)


PAIRS = {
    "equal programs of equal options": (details("a"), details("a"), {}, True),
    "other programs": (details("a"), details("b"), {}, False),
    "several programs": (details("a", "b"), details("a", "b"), {}, False),
    "unknown programs": (details(), details(), {}, False),
    "options without an effect": (details("a", code="c"), details("b", code="c"), OPTIONS, True),
    "options with an effect": (details("a", code="c"), details("b", code="d"), OPTIONS, False),
    "options, and unknown machine code": (details("a"), details("a"), OPTIONS, False),
    "programs that call Python": (details("a", traps=(CALLBACKS,)), details("a", traps=(CALLBACKS,)), {}, False),
}


@pytest.mark.parametrize(("first", "second", "options", "is_same"), PAIRS.values(), ids=PAIRS)
def test_equal_code_is_the_same_program(first, second, options, is_same):
    (case,) = Run(run_of(first, second, options=options)).cases

    assert is_same_program(*case.variants) is is_same
    assert is_same_program(*reversed(case.variants)) is is_same


def test_the_modes_of_one_implementation_are_one_program_by_design_which_is_no_answer():
    (case,) = Run(run_of(details("a"), details("a"), names=("f:jit", "f:aot"))).cases

    assert not is_same_program(*case.variants)


SAME = (details("a", code="c"), details("b", code="c"))


def test_a_tie_of_one_program_is_called_that_where_a_difference_is_not_confirmed():
    tie, slower = (run_of(*SAME, options=OPTIONS, slowdown=factor) for factor in (1.0, 2.0))
    other = run_of(details("a", code="c"), details("b", code="d"), options=OPTIONS)

    remarks = [describe_results(run)[0].tables[0].rows[1].cells[-1].text for run in (tie, other, slower)]
    assert remarks == ["the same program", "no confirmed difference", ""]
