"""Does the time of a variant agree with its speedup, within one process?

A time is the median over blocks, and a speedup the median over passes of the paired ratio: in a pass the baseline
variant and the variant meet the same interference.
"""

from __future__ import annotations

from jaxmeter.harness.notebook.passes import Ratio

MARK = "*"
"""Behind a time that is at odds with a speedup."""


def find_disagreement(
    baseline: str, variant: str, baseline_s: float | None, variant_s: float | None, speedup: Ratio | None
) -> str:
    """Return why two times are at odds with a speedup, for a person; empty where they agree or one is missing."""
    if speedup is None or speedup.low is None or speedup.high is None or not baseline_s or not variant_s:
        return ""
    quotient = baseline_s / variant_s
    if speedup.low <= quotient <= speedup.high:
        return ""
    return (
        f"{MARK} the times of {baseline} and {variant} give {quotient:.3g}x, outside the interval of the speedup "
        f"[{speedup.low:.3g}, {speedup.high:.3g}]: a time is the median over all blocks, a speedup the median over "
        "passes, in which both met the same interference; trust the speedup"
    )
