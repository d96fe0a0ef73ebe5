import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jaxmeter.launch.versions import LONGEST, normalise_version, order_version

PIECES = (*"017.-_+!vVarb", "10", "007", "rc", "RC", "alpha", "post", "rev", "dev", "b7")
SEPARATED = st.lists(st.sampled_from(PIECES), max_size=12).map("".join)


@pytest.mark.parametrize(
    "text", ["", "0 @ file:///tmp/pkg", "--editable=/tmp/pkg", "1.0\n", " 1.0", ">=1", "\u0661.0", "1" * (LONGEST + 1)]
)
def test_paths_addresses_options_and_ranges_are_no_versions(text):
    assert normalise_version(text) is None
    assert normalise_version("v1.0-RC1") == "1.0rc1"
    assert normalise_version("1" * LONGEST) == "1" * LONGEST


def test_a_text_that_is_no_version_is_older_than_all_and_a_python_with_changes_of_its_own_is_as_its_number():
    assert order_version("main") < order_version("0.0.1.dev1")
    assert order_version("3.9.2") < order_version("3.13.0+") == order_version("3.13")


@given(SEPARATED)
def test_a_normal_version_stays_as_it_is_and_holds_only_harmless_characters(text):
    found = normalise_version(text)

    assert found is None or re.fullmatch(r"[a-z0-9.+!]+", found)
    assert found is None or normalise_version(found) == found
