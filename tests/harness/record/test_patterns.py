import pytest

from jaxmeter.harness.record.cases import find_nearest, match_cases, names_of
from tests import samples

SMALL, LARGE, OTHER = (
    samples.planned_case("selu", params={"n": 1}, suite="activations"),
    samples.planned_case("selu", params={"n": 10}, suite="activations"),
    samples.planned_case("matmul", params={"n": 1}, suite="products"),
)
CASES = (SMALL, LARGE, OTHER)


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("activations", (SMALL, LARGE)),
        ("selu", (SMALL, LARGE)),
        ("selu[n=1]", (SMALL,)),
        ("selu[n=?]", (SMALL,)),
        ("selu[n=??]", (LARGE,)),
        ("*[n=1]", (SMALL, OTHER)),
        ("*u*", CASES),
        ("*", CASES),
        ("s*u", (SMALL, LARGE)),
        ("sel", ()),
        ("elu", ()),
        ("SELU", ()),
        ("", ()),
        ("selu[n=?", ()),
        ("sel[un]", ()),
        ("[!x]elu", ()),
        ("selu[n=1]\n", ()),
    ],
)
def test_a_pattern_means_cases_whose_suite_workload_or_whole_name_it_matches(pattern, expected):
    assert match_cases(CASES, pattern) == expected


def test_a_star_stands_for_line_breaks_too():
    odd = samples.planned_case("two\nlines")

    assert match_cases([odd], "two*lines") == (odd,)


@pytest.mark.parametrize("pattern", ["(", "a{2}", "\\", "^selu$", ".elu", "]", "[", "[]", "[!]", "!"])
def test_no_other_sign_has_a_meaning(pattern):
    odd = samples.planned_case(pattern)

    assert match_cases([*CASES, odd], pattern) == (odd,)


def test_many_stars_cost_no_more_than_one():
    # Going back over what each star has taken would mean some 10^25 steps: this would not end.
    long = samples.planned_case("a" * 200)

    assert match_cases([long], "*a" * 25 + "*b") == ()
    assert match_cases([long], "*a" * 25 + "*") == (long,)


def test_a_case_goes_by_its_suite_its_workload_and_its_whole_name():
    assert names_of(SMALL) == ("activations", "selu", "selu[n=1]")


@pytest.mark.parametrize(
    ("wanted", "nearest"),
    [("matmull", "matmul"), ("selu[n=2]", "selu[n=1]"), ("*matmul?", "matmul"), ("zzz", None), ("", None)],
)
def test_the_nearest_name_is_the_one_most_like_what_was_wanted(wanted, nearest):
    assert find_nearest(wanted, ("matmul", "selu[n=1]", "activations")) == nearest


def test_how_unlike_the_nearest_may_be_is_a_choice():
    # Two of eight letters in common order: a likeness of 2 * 1 / 8.
    assert find_nearest("abcd", ["axyz"], cutoff=0.25) == "axyz"
    assert find_nearest("abcd", ["axyz"], cutoff=0.26) is None
    assert find_nearest("abcd", ["axyz"]) is None
    assert find_nearest("abcde", ["abxyz"]) == "abxyz"
    assert find_nearest("zzz", ["matmul"], cutoff=0.0) == "matmul"


def test_without_names_none_is_near():
    assert find_nearest("selu", [], cutoff=0.0) is None


@pytest.mark.parametrize("part", ["*a", "?", "*?", "a", "[", "[!", "(*", "\n", "\udcff"])
def test_a_pattern_of_any_length_ends_and_so_does_the_search_for_what_is_like_it(part):
    # Squared, 40,000 signs would be minutes.
    assert match_cases(CASES, part * 20_000 + "b") == ()
    assert find_nearest(part * 20_000 + "b", ["selu"]) is None


def test_names_are_read_once_from_any_iterable():
    assert find_nearest("selu", iter(["selu", "selu", "matmul"])) == "selu"
