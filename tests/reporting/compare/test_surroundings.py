from dataclasses import replace

import pytest

from jaxmeter.harness.record.environment import OwnPackage
from jaxmeter.reporting.compare.conditions import describe_changed_packages, list_changed_packages
from jaxmeter.reporting.compare.program_diff import Difference, find_changed_code, find_surroundings
from jaxmeter.reporting.compare.programs import Pair
from tests import samples
from tests.reporting.recorded_programs import program


def test_what_differs_around_the_programs_may_explain_it():
    machine = samples.environment(variables={"XLA_FLAGS": "--x"}, packages={"jax": "0.10.1"}, x64=True)
    manifests = (samples.manifest([]), samples.manifest([], environment=machine))

    told = {one.what: (one.a, one.b) for one in find_surroundings(*manifests)}

    assert told == {
        "variable XLA_FLAGS": (None, "--x"),
        "package jax": ("0.10.0", "0.10.1"),
        "package jaxlib": ("0.10.0", None),
        "package numpy": ("2.0.0", None),
        "x64": ("off", "on"),
    }


def test_code_that_changed_is_told_by_its_hash():
    pair = Pair("selu[n=1]", "selu:jit", program(), program(source="1", definition="1"))

    assert find_changed_code(pair) == ("the code of selu has changed", "the definition of selu[n=1] has changed")
    assert find_changed_code(Pair("selu[n=1]", "selu:jit", program(), program())) == ()


def test_other_compiler_options_are_told_in_place_of_the_code_whose_hash_has_them_too():
    plain, wide = program(), replace(program(source="1"), compiler_options={"xla_b": 2, "xla_a": True})

    told = find_changed_code(Pair("selu[n=1]", "selu:jit", plain, wide))

    assert told == ("the compiler options of selu have changed: none → xla_a=True, xla_b=2",)


def surroundings(a=None, b=None):
    """What differs between two runs on machines with these changes."""
    return find_surroundings(
        *(samples.manifest([], environment=samples.environment(**(side or {}))) for side in (a, b))
    )


@pytest.mark.parametrize(
    ("a", "b", "told"),
    [
        ({"device_kind": "H100"}, {"device_kind": "H200"}, ("device", "H100", "H200")),
        ({"device_count": 8}, {"device_count": 1024}, ("devices", "8", "1\u202f024")),
        ({"x64": True}, {}, ("x64", "on", "off")),
        ({"matmul_precision": None}, {"matmul_precision": "highest"}, ("matmul precision", "default", "highest")),
        ({"platform_version": None}, {"platform_version": "cuda 13"}, ("platform", "unknown", "cuda 13")),
        ({"python": "3.11"}, {"python": "3.12"}, ("Python", "3.11", "3.12")),
        ({"processor": "A"}, {"processor": "B"}, ("processor", "A", "B")),
        ({"allowed_cores": 2}, {"allowed_cores": 4}, ("allowed cores", "2", "4")),
        ({"variables": {"A.B": "1"}}, {"variables": {"A.B": "2"}}, ("variable A.B", "1", "2")),
        ({"variables": {"A": "1"}}, {"variables": {}}, ("variable A", "1", None)),
    ],
    ids=lambda value: value[0] if isinstance(value, tuple) else "",
)
def test_a_fact_is_told_by_its_title_as_one_reads_it(a, b, told):
    assert surroundings(a, b) == (Difference(*told),)


@pytest.mark.parametrize(("field", "title"), [("backend", "backend"), ("tool_version", "jaxmeter")])
def test_facts_of_the_run_itself_are_told_too(field, title):
    manifests = (samples.manifest([], **{field: value}) for value in ("1", "2"))

    assert find_surroundings(*manifests) == (Difference(title, "1", "2"),)


def test_what_no_compiler_reads_is_not_told():
    assert surroundings({"load_average": 0.1, "host": "a", "cores": 2}, {"load_average": 9.0, "host": "b"}) == ()
    assert find_surroundings(samples.manifest([], run_id="a"), samples.manifest([], run_id="b")) == ()
    assert surroundings({"matmul_precision": None}, {"matmul_precision": "default"}) == ()  # which reads the same


def test_the_likeliest_cause_comes_first():
    a = {"processor": "A", "packages": {"jax": "1", "aqt": "1"}, "x64": True, "device_kind": "A"}
    b = {"processor": "B", "packages": {"jax": "2", "aqt": "2"}, "x64": False, "device_kind": "B"}

    assert [one.what for one in surroundings(a, b)] == ["device", "x64", "package aqt", "package jax", "processor"]


@pytest.mark.parametrize(("variant", "implementation"), [("selu", "selu"), ("selu:jit", "selu"), ("a:b:jit", "a:b")])
def test_code_is_named_by_the_implementation(variant, implementation):
    pair = Pair("selu[n=1]", variant, program(), program(source="1"))

    assert find_changed_code(pair) == (f"the code of {implementation} has changed",)


def importing(digest, *names, suites=(), **more):
    """A run whose suites import packages of one file."""
    packages = tuple(OwnPackage(name=name, files={"a.py": digest}, suites=suites, **more) for name in names)
    return samples.manifest([], own_packages=packages)


def test_a_package_counts_for_the_suites_that_import_it_and_for_all_where_nobody_knows_which():
    before, after = importing("1", "mine", suites=("cnn",)), importing("2", "mine", suites=("cnn",))

    assert describe_changed_packages(before, after, "cnn") == "mine: a.py changed"
    assert describe_changed_packages(before, after, "mlp") == ""
    assert describe_changed_packages(before, after) == "mine: a.py changed"
    assert describe_changed_packages(importing("1", "mine"), importing("2", "mine"), "mlp") == "mine: a.py changed"


def test_of_many_changed_packages_three_are_named():
    sides = [importing(digest, *"abcde") for digest in "12"]

    assert describe_changed_packages(*sides) == (
        "a: a.py changed; b: a.py changed; c: a.py changed; 2 more packages changed"
    )


def test_a_package_that_nobody_can_judge_is_listed_and_is_no_cause():
    sides = [importing("1", "mine", left_out=2) for _ in range(2)]

    assert len(list_changed_packages(*sides)) == 1
    assert describe_changed_packages(*sides) == ""


def test_a_run_that_recorded_no_packages_has_no_changed_ones():
    assert list_changed_packages(samples.manifest([]), importing("1", "mine")) == ()


def test_a_cause_is_short_however_long_the_names_of_a_record_are():
    before, after = (importing(digest, "m" * 10_000) for digest in "12")

    assert len(describe_changed_packages(before, after)) == 200
