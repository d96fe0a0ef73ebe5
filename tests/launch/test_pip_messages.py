"""What pip prints becomes words that say what to do."""

import pytest

from jaxmeter.launch.pip import explain, find_nearest_version

PIP = """ERROR: Ignored the following versions that require a different python version: 0.11.0 Requires-Python >=3.12
ERROR: Could not find a version that satisfies the requirement jax==0.10.9 (from versions: 0.9.2, 0.10.0, 0.10.2)
ERROR: No matching distribution found for jax==0.10.9
"""

CONFLICT = """ERROR: Cannot install jax==0.4.31 and numpy==1.22.4 because of conflicts.

The conflict is caused by:
    The user requested numpy==1.22.4
    jax 0.4.31 depends on numpy>=1.24

To fix this you could try to:
1. loosen the range of package versions you've specified

ERROR: ResolutionImpossible: for help visit an address
"""


@pytest.mark.parametrize(
    ("printed", "said"),
    [
        (PIP, "there is no jax==0.10.9 for this Python; nearest: 0.10.2"),
        (
            PIP.replace("0.9.2, 0.10.0, 0.10.2", "none"),
            "the package index has no jax==0.10.9 for this Python; check the name, and that pip reaches the index",
        ),
        (
            "WARNING: Retrying (…) after connection broken by 'NewConnectionError(…)'\n"
            + PIP.replace("0.9.2, 0.10.0, 0.10.2", "none"),
            "the package index cannot be reached to find jax==0.10.9; check the network, pip's index and proxy",
        ),
        ("noise\nERROR: No space left\nERROR: Sorry\n", "No space left; Sorry"),
        (f"killed{'!' * 600}", f"killed{'!' * 594}"),
        (
            CONFLICT,
            (
                "these requirements exclude one another: The user requested numpy==1.22.4; jax 0.4.31 depends on "
                "numpy>=1.24; leave out or change one of the versions"
            ),
        ),
    ],
)
def test_a_version_that_does_not_exist_names_the_nearest_and_other_complaints_are_pips_own(printed, said):
    assert explain(printed) == said


@pytest.mark.parametrize(
    ("requirement", "nearest"),
    [("jax==1", "0.10.2"), ("jax==0", "0.9.2"), ("jax", "0.9.2"), ("jaxlib<=0.10.0,>=0.10.0", "0.9.2")],
)
def test_the_nearest_version_is_the_newest_before_a_missing_one_or_the_oldest(requirement, nearest):
    assert find_nearest_version(requirement, ["0.9.2", "0.10.0", "0.10.2"]) == nearest
