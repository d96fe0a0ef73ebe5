from dataclasses import replace

import pytest

from jaxmeter.harness.record.environment import OwnPackage
from jaxmeter.reporting.compare.conditions import describe_changed_packages, list_changed_packages
from jaxmeter.reporting.compare.program_diff import Difference, find_changed_code, find_surroundings
from jaxmeter.reporting.compare.programs import Pair
from tests import samples
from tests.reporting.recorded_programs import program


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
        ({"device_count": 8}, {"device_count": 1024}, ("devices", "8", "1\u202f024")),
        ({"x64": True}, {}, ("x64", "on", "off")),
        ({"matmul_precision": None}, {"matmul_precision": "highest"}, ("matmul precision", "default", "highest")),
        ({"processor": "A"}, {"processor": "B"}, ("processor", "A", "B")),
        ({"variables": {"A.B": "1"}}, {"variables": {"A.B": "2"}}, ("variable A.B", "1", "2")),
        ({"variables": {"A": "1"}}, {"variables": {}}, ("variable A", "1", None)),
        ({"packages": {}}, {"packages": {"jax": "0.10.1"}}, ("package jax", None, "0.10.1")),
    ],
    ids=lambda value: value[0] if isinstance(value, tuple) else "",
)
def test_a_fact_is_told_by_its_title_as_one_reads_it(a, b, told):
    assert surroundings(a, b) == (Difference(*told),)


def test_facts_of_the_run_itself_are_told_and_what_no_compiler_reads_is_not():
    for field, title in (("backend", "backend"), ("tool_version", "jaxmeter")):
        manifests = (samples.manifest([], **{field: value}) for value in ("1", "2"))
        assert find_surroundings(*manifests) == (Difference(title, "1", "2"),)
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


def test_a_package_that_nobody_can_judge_is_listed_and_is_no_cause():
    sides = [importing("1", "mine", left_out=2) for _ in range(2)]

    assert len(list_changed_packages(*sides)) == 1
    assert describe_changed_packages(*sides) == ""
    assert list_changed_packages(samples.manifest([]), importing("1", "mine")) == ()


def test_of_many_changed_packages_three_are_named_and_a_cause_is_short_however_long_their_names_are():
    many, long = ([importing(digest, *names) for digest in "12"] for names in ("abcde", ["m" * 10_000]))

    assert describe_changed_packages(*many) == (
        "a: a.py changed; b: a.py changed; c: a.py changed; 2 more packages changed"
    )
    assert len(describe_changed_packages(*long)) == 200
