"""Do the intervals miss as often as they say? Simulated launches under the rules in use, and under two others.

    python -m benchmarks.coverage [--cases 200000]

Forty cases are launched K times. The third of them with the widest intervals gets up to three launches more, chosen
once by these widths. An interval that misses has the true value outside. Its error is shared by the looks that it has
had (the rule in use), by two in all cases, or not at all. Launches are independent, their log ratios normal, with one
scatter for all cases or with those that this project's cases have.
"""

from __future__ import annotations

import argparse
import itertools
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.stats import t

from benchmarks.here import describe_here

SEED = 20261122
CASES = 200_000
"""A miss rate of 1 % is then known to 0.02 %."""

CASES_OF_RUN = 40
FIRST_LAUNCHES = (3, 5, 8)
WIDEST = 1 / 3
MOST_EXTRA = 3
CONFIDENCES = (0.95, 0.99)

SPREADS = {"equal": 0.0, "unequal": 1.12}
"""Standard deviation of the log of a case's scatter. The second: JAX ratios scattered by 1.3 to 23 % between launches
(10 to 90 % of 41 variants), and ln(23 / 1.3) / 2.56 = 1.12."""

LOOKS = {"by looks taken": (1, 2), "by 2 in all cases": (2, 2), "not": (1, 1)}
"""By how many an interval's error is divided: in a case that was left alone, in one that got more launches."""

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]


@dataclass(frozen=True)
class Launched:
    """Cases after their launches: shape (cases,) each.

    Args:
      errors: Mean of a case's launches minus its true value, over the standard error of that mean.
      launches: How many a case had.
      extended: Whether it was given more of them for its width.
    """

    errors: Floats
    launches: NDArray[np.int_]
    extended: Flags


def main() -> None:
    """Prints nominal and simulated miss rates."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", type=int, default=CASES)
    given = parser.parse_args()
    print(f"{given.cases} simulated cases, seed {SEED}; {describe_here('numpy', 'scipy')}")
    print(f"{'scatter':>8} {'K':>2} {'error is shared':>18} {'nominal':>8} {'all':>7} {'extended':>9} {'others':>7}")
    for (scatter, spread), first in itertools.product(SPREADS.items(), FIRST_LAUNCHES):
        plain = launch(np.random.default_rng(SEED), given.cases, first, spread, widest=0.0)
        launched = launch(np.random.default_rng(SEED), given.cases, first, spread)
        rows = [("no look", plain, (1, 1)), *((name, launched, looks) for name, looks in LOOKS.items())]
        for (name, cases, looks), confidence in itertools.product(rows, CONFIDENCES):
            rates = "  ".join(f"{100 * rate:6.2f} %" for rate in miss_rates(cases, looks, confidence))
            print(f"{scatter:>8} {first:>2} {name:>18} {100 * (1 - confidence):>6.0f} %  {rates}")


def launch(random: np.random.Generator, cases: int, first: int, spread: float, *, widest: float = WIDEST) -> Launched:
    """Simulates cases, in runs of CASES_OF_RUN; the share `widest` of each run gets more launches."""
    runs = max(1, cases // CASES_OF_RUN)
    scatter = np.exp(spread * random.standard_normal((runs, CASES_OF_RUN)))
    values = scatter[..., None] * random.standard_normal((runs, CASES_OF_RUN, first + MOST_EXTRA))
    # A case's rank by width: of equally many launches, its standard deviation alone decides.
    ranks = np.argsort(np.argsort(-values[..., :first].std(axis=-1, ddof=1), axis=-1), axis=-1)
    extra = count_extra(ranks, round(widest * CASES_OF_RUN))
    launches = first + extra
    own = np.arange(first + MOST_EXTRA) < launches[..., None]
    means = values.mean(axis=-1, where=own)
    errors = means / (values.std(axis=-1, ddof=1, where=own) / np.sqrt(launches))
    return Launched(errors.ravel(), launches.ravel(), extra.ravel() > 0)


def count_extra(ranks: NDArray[np.int_], extended: int) -> NDArray[np.int_]:
    """More launches by rank: of the widest cases the first third gets three, the next two, the last one."""
    share = ranks / max(1, extended)
    return np.where(ranks < extended, np.ceil(MOST_EXTRA * (1 - share)).astype(int), 0)


def miss_rates(launched: Launched, looks: tuple[int, int], confidence: float) -> Iterator[float]:
    """Share of intervals without the true value: of all cases, of the extended, of the others (nan where none are)."""
    divided_by = np.where(launched.extended, looks[1], looks[0])
    missed = np.abs(launched.errors) > t.isf((1 - confidence) / divided_by / 2, launched.launches - 1)
    for chosen in (np.ones_like(missed), launched.extended, ~launched.extended):
        yield float(missed[chosen].mean()) if chosen.any() else float("nan")


if __name__ == "__main__":
    main()
