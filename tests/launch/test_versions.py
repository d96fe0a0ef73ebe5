import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from packaging.version import InvalidVersion, Version

from jaxmeter.launch.versions import LONGEST, normalise_version

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


@given(st.one_of(st.text(max_size=20), SEPARATED))
@example("1.0-a-")
def test_the_rule_is_that_of_packaging(text):
    try:
        expected = str(Version(text)) if text == text.strip() and text.isascii() else None
    except InvalidVersion:
        expected = None

    assert normalise_version(text) == expected


@given(SEPARATED)
def test_a_normal_version_stays_as_it_is_and_holds_only_harmless_characters(text):
    found = normalise_version(text)

    assert found is None or re.fullmatch(r"[a-z0-9.+!]+", found)
    assert found is None or normalise_version(found) == found
