"""Claims beside which the suites' figures stand."""

from jaxmeter import Figure, Published
from jaxmeter.suites.published import at_both_sizes


def test_a_claim_stands_beside_its_own_size_and_beside_a_shorter_case_that_says_what_it_lacks():
    told = {"source": "a book", "device": "a GPU", "timed": "an epoch", "differs": "a loader"}
    claim = Published(**told, figure=Figure("f:jit", 1.0), at={"network": "a"})
    sizes = {"whole": {"n": 100}, "short": {"n": 7}}

    short, whole = at_both_sizes(claim, **sizes, has="7 of its 100 steps", undecided="too short")

    lacks = "7 of its 100 steps; a loader"
    assert (short.at, short.differs, short.undecided) == ({"network": "a", "n": 7}, lacks, "too short")
    assert (whole.at, whole.differs, whole.undecided) == ({"network": "a", "n": 100}, "a loader", "")
