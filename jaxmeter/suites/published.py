"""Published figures beside two sizes of ours: their own, and the smaller one that a default run has time for."""

from msgspec.structs import replace


def at_both_sizes(claim, *, whole, short, has, undecided=""):
    """A claim beside the source's own size, and beside a shorter case, which says what it has of that.

    Args:
      claim: Its `at` and `differs` hold for both.
      whole: Params of the size that was published.
      short: Params of the shorter case.
      has: What that has, in words: `7 of its 468 steps`.
      undecided: Why it decides nothing; empty where it does.
    """
    lacking = "; ".join(filter(None, (has, claim.differs)))
    return (
        replace(claim, at={**claim.at, **short}, differs=lacking, undecided=undecided),
        replace(claim, at={**claim.at, **whole}),
    )
