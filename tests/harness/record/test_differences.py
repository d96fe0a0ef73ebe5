import msgspec
import pytest

from jaxmeter.harness.record import Environment, Settings
from jaxmeter.harness.record.differences import facts_of, find_differences, flatten
from jaxmeter.harness.record.environment import OwnPackage
from tests import samples


def test_every_field_of_a_run_s_environment_and_settings_is_a_fact():
    facts = facts_of(samples.manifest([]))

    known = {name.partition(".")[0] for name in facts}
    fields = {field.name for kind in (Environment, Settings) for field in msgspec.structs.fields(kind)}
    empty = {"variables", "peak_flops"}
    derived = {"process_cores"}
    peaks = {"peak_flops", "peak_bytes_per_s", "peaks_source"}  # which no measurement depends on

    assert known == {"run id", "started", "jaxmeter", "schema version", "backend"} | fields - empty - peaks | derived


def test_facts_of_the_run_itself_come_first_with_their_values():
    told = {"run_id": "a", "started": "b", "tool_version": "c", "schema_version": 7, "backend": "d"}
    names = ("run id", "started", "jaxmeter", "schema version", "backend")

    facts = facts_of(samples.manifest([], **told))

    assert list(facts.items())[:5] == list(zip(names, told.values(), strict=True))


def test_entries_of_a_mapping_are_facts_by_name_in_order():
    facts = flatten(samples.environment(packages={"numpy": "2.0", "jax": "0.10"}, x64=True, variables={}))

    packages = [item for item in facts.items() if item[0].startswith("packages")]
    assert packages == [("packages.jax", "0.10"), ("packages.numpy", "2.0")]
    assert facts["x64"] is True
    assert not [name for name in facts if name.startswith("variables")]


A = {"backend": "cpu", "packages.jax": "0.10", "packages.numpy": "2.0", "seed": 0}


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, ()),
        ({"seed": 1}, ("seed",)),
        ({"packages.jax": "0.11", "backend": "gpu"}, ("backend", "packages.jax")),
        ({"load": None}, ("load",)),
        ({"backend": None}, ("backend",)),
    ],
    ids=["none", "one", "two, in the first side's order", "only the other has it, as null", "null"],
)
def test_facts_that_are_not_the_same_are_named(changes, expected):
    other = {**A, **changes}

    assert find_differences([A, other]) == expected
    assert set(find_differences([other, A])) == set(expected)


def test_a_fact_that_a_side_lacks_differs_from_any_value():
    assert find_differences([A, {}]) == tuple(A)
    assert find_differences([{}, A]) == tuple(A)
    assert find_differences([{"a": None}, {}]) == ("a",)


def test_one_of_many_sides_makes_a_difference():
    assert find_differences([A, A, {**A, "seed": 2}]) == ("seed",)
    assert find_differences([A, {**A, "seed": 2}, A]) == ("seed",)


@pytest.mark.parametrize("sides", [[], [A], [A, A, A]])
def test_equal_sides_few_sides_and_no_sides_have_no_difference(sides):
    assert find_differences(sides) == ()


@pytest.mark.parametrize(
    ("of", "expected"),
    [
        (["seed"], ("seed",)),
        (["packages"], ("packages.jax", "packages.numpy")),
        (["packages.numpy"], ("packages.numpy",)),
        (iter(["backend", "seed"]), ("backend", "seed")),
        (["jax"], ()),
        ([], ()),
    ],
    ids=["a fact", "a field with its entries", "an entry", "any iterable", "an entry without its field", "nothing"],
)
def test_only_the_asked_facts_or_fields_are_compared(of, expected):
    assert find_differences([A, {}], of=of) == expected


def test_each_package_of_the_users_own_is_a_fact_that_changes_with_its_files():
    sides = [
        facts_of(samples.manifest([], own_packages=(OwnPackage(name="mine", version="1", files={"a.py": digest}),)))
        for digest in "12"
    ]

    assert find_differences(sides) == ("own_packages.mine",)
    assert str(sides[0]["own_packages.mine"]).startswith("version 1, 1 Python file, hash ")
