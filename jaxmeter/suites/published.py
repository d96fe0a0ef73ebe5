"""Published figures compared with ours at two sizes: the source's size, and a smaller size for default runs."""

from msgspec.structs import replace


def at_both_sizes(claim, *, whole, short, has, undecided=""):
    """Return a claim for two cases: a shorter case, which states its size, and a case of the source's size.

    Args:
      claim: The published claim; its `at` and `differs` apply to both cases.
      whole: Params of the published size.
      short: Params of the shorter case.
      has: Size of the shorter case relative to the source, in words: `7 of its 468 steps`.
      undecided: Why the shorter case decides nothing; empty if it decides.
    """
    lacking = "; ".join(filter(None, (has, claim.differs)))
    return (
        replace(claim, at={**claim.at, **short}, differs=lacking, undecided=undecided),
        replace(claim, at={**claim.at, **whole}),
    )
