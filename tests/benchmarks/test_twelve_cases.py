"""The cases that every harness is given."""

from benchmarks.twelve_cases import CASES, FUNCTIONS, find_arguments, find_function


def test_twelve_cases_have_a_jitted_function_and_inputs():
    assert len(CASES) == 12
    for declared, implementation in FUNCTIONS.values():
        assert f"{implementation}:jit" in declared.variants
    assert all(find_arguments(case) for case in CASES)


def test_a_case_s_function_has_its_params_already():
    found = find_function("attention")

    assert found.keywords == {"causal": True}
