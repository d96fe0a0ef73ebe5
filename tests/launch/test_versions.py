import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jaxmeter.launch.versions import LONGEST, normalise_version, order_version

PIECES = (*"017.-_+!vVarb", "10", "007", "rc", "RC", "alpha", "post", "rev", "dev", "b7")
SEPARATED = st.lists(st.sampled_from(PIECES), max_size=12).map("".join)


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ("0.10.1", "0.10.1"),
        ("0.10.01", "0.10.1"),
        ("v1.0", "1.0"),
        ("1!2.0RC-1", "1!2.0rc1"),
        ("1.0-3", "1.0.post3"),
        ("0.4.36.dev20240101+a1b2c3", "0.4.36.dev20240101+a1b2c3"),
    ],
)
def test_a_version_has_one_spelling(text, version):
    assert normalise_version(text) == version


@pytest.mark.parametrize(
    "text",
    [
        "",
        "0/../results/evil/pkg",
        "0 @ file:///tmp/pkg",
        "@ file:///tmp/pkg",
        "1.0 --index-url=https://example.org",
        "--editable=/tmp/pkg",
        "1.0;touch x",
        "1.0\n-e .",
        "1.0\n",
        " 1.0",
        "1.*",
        ">=1",
        "1.0,2.0",
        "git+https://example.org/x",
        "~",
        "\u0661.\u0660",
        "1" * (LONGEST + 1),
    ],
)
def test_paths_addresses_options_and_ranges_are_no_versions(text):
    assert normalise_version(text) is None


@pytest.mark.parametrize("text", ["", "none", "3.x", "main"])
def test_a_text_that_is_no_version_is_older_than_all(text):
    assert order_version(text) < order_version("0.0.1.dev1")


def test_a_python_with_changes_of_its_own_is_ordered_by_its_number():
    assert order_version("3.9.2") < order_version("3.13.0+") == order_version("3.13")


@given(SEPARATED)
def test_a_normal_version_stays_as_it_is_and_holds_only_harmless_characters(text):
    found = normalise_version(text)

    assert found is None or re.fullmatch(r"[a-z0-9.+!]+", found)
    assert found is None or normalise_version(found) == found
