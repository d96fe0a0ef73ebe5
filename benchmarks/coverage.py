"""Do the intervals miss as often as they say? Simulated processes under the rules in use, and under others.

    python -m benchmarks.coverage [--cases 200000]

The first table has ordinary t intervals, as ratios have them but for what two runs differ by, and what a second look
costs.

Forty cases are launched K times. The third of them with the widest intervals gets up to three processes more, chosen
once by these widths. An interval that misses has the true value outside. Its error is shared by the looks that it has
had (the rule in use), by two in all cases, or not at all. Processes are independent, their log ratios normal, with one
scatter for all cases or with those that this project's cases have.

The second table has times: a process is as slow for all variants of its case, and each has a noise of
its own. Their intervals are moderated, by a prior from all variants of a run, beside ordinary ones. No look is taken.
"""

from __future__ import annotations

import argparse
import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtrit
from scipy.stats import t

from benchmarks.here import describe_here
from jaxmeter.harness.metrics.moderation import fit_prior

SEED = 20261122
CASES = 200_000
"""A miss rate of 1 % is then known to 0.02 %."""

CASES_OF_RUN = 40
FIRST_PROCESSES = (3, 5, 8)
WIDEST = 1 / 3
MOST_EXTRA = 3
CONFIDENCES = (0.95, 0.99)

SPREADS = {"equal": 0.0, "unequal": 1.12}
"""Standard deviation of the log of a case's scatter. The second: JAX ratios scattered by 1.3 to 23 % between processes
(10 to 90 % of 41 variants), and ln(23 / 1.3) / 2.56 = 1.12."""

LOOKS = {"by looks taken": (1, 2), "by 2 in all cases": (2, 2), "not": (1, 1)}
"""By how many an interval's error is divided: in a case that was left alone, in one that got more processes."""

MODERATED_CASES = 10_000
"""Of each row of the second table: its miss rate of 1 % is known to 0.1 %, as the variants of a case err alike."""

SIZES_OF_RUN = (10, 30, 108)
"""Cases of a run: the fewest that have a prior, a quick run and a default one."""

VARIANTS = 3
SHARED, OWN = 0.2, 0.03
"""Standard deviations of log times between processes, as measured: what the variants of a process share, as do the
times of 41 variants (10 to 90 % of them 15 to 30 %), and what each has by itself, as do their ratios (median 3.9 %)."""

TIME_SPREADS = {"equal": 0.0, "as measured": 0.27, "more unequal": 1.12}
"""Standard deviation of the log of a case's scatter: ln(30 / 15) / 2.56 of times; the third is that of ratios."""

WORST = 0.1
"""Share of the cases, those of the largest true scatter, whose rates stand apart: moderation is paid for by them."""

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]


@dataclass(frozen=True)
class Launched:
    """Cases after their processes: shape (cases,) each.

    Args:
      errors: Mean of a case's processes minus its true value, over the standard error of that mean.
      processes: How many a case had.
      extended: Whether it was given more of them for its width.
    """

    errors: Floats
    processes: NDArray[np.int_]
    extended: Flags


def main() -> None:
    """Prints nominal and simulated miss rates."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", type=int, default=CASES)
    given = parser.parse_args()
    print(f"{given.cases} simulated cases, seed {SEED}; {describe_here('numpy', 'scipy')}")
    print(f"{'scatter':>8} {'K':>2} {'error is shared':>18} {'nominal':>8} {'all':>7} {'extended':>9} {'others':>7}")
    for (scatter, spread), first in itertools.product(SPREADS.items(), FIRST_PROCESSES):
        plain = process(np.random.default_rng(SEED), given.cases, first, spread, widest=0.0)
        launched = process(np.random.default_rng(SEED), given.cases, first, spread)
        rows = [("no look", plain, (1, 1)), *((name, launched, looks) for name, looks in LOOKS.items())]
        for (name, cases, looks), confidence in itertools.product(rows, CONFIDENCES):
            rates = "  ".join(f"{100 * rate:6.2f} %" for rate in miss_rates(cases, looks, confidence))
            print(f"{scatter:>8} {first:>2} {name:>18} {100 * (1 - confidence):>6.0f} %  {rates}")
    print(f"\ntimes of {MODERATED_CASES} cases; worst: moderated, the {WORST:.0%} of the cases that scatter most")
    print(f"{'scatter':>12} {'run of':>6} {'K':>2} {'nominal':>8} {'ordinary':>9} {'moderated':>10} {'worst':>8}")
    for (scatter, spread), size, first in itertools.product(TIME_SPREADS.items(), SIZES_OF_RUN, FIRST_PROCESSES):
        timed = time_cases(np.random.default_rng(SEED), MODERATED_CASES // size, size, first, spread)
        for confidence in CONFIDENCES:
            rates = "  ".join(f"{100 * rate:6.2f} %" for rate in moderated_miss_rates(timed, confidence))
            print(f"{scatter:>12} {size:>6} {first:>2} {100 * (1 - confidence):>6.0f} %  {rates}")


def process(random: np.random.Generator, cases: int, first: int, spread: float, *, widest: float = WIDEST) -> Launched:
    """Simulates cases, in runs of CASES_OF_RUN; the share `widest` of each run gets more processes."""
    runs = max(1, cases // CASES_OF_RUN)
    scatter = np.exp(spread * random.standard_normal((runs, CASES_OF_RUN)))
    values = scatter[..., None] * random.standard_normal((runs, CASES_OF_RUN, first + MOST_EXTRA))
    # A case's rank by width: of equally many processes, its standard deviation alone decides.
    ranks = np.argsort(np.argsort(-values[..., :first].std(axis=-1, ddof=1), axis=-1), axis=-1)
    extra = count_extra(ranks, round(widest * CASES_OF_RUN))
    processes = first + extra
    own = np.arange(first + MOST_EXTRA) < processes[..., None]
    means = values.mean(axis=-1, where=own)
    errors = means / (values.std(axis=-1, ddof=1, where=own) / np.sqrt(processes))
    return Launched(errors.ravel(), processes.ravel(), extra.ravel() > 0)


def count_extra(ranks: NDArray[np.int_], extended: int) -> NDArray[np.int_]:
    """More processes by rank: of the widest cases the first third gets three, the next two, the last one."""
    share = ranks / max(1, extended)
    return np.where(ranks < extended, np.ceil(MOST_EXTRA * (1 - share)).astype(int), 0)


def miss_rates(launched: Launched, looks: tuple[int, int], confidence: float) -> Iterator[float]:
    """Share of intervals without the true value: of all cases, of the extended, of the others (nan where none are)."""
    divided_by = np.where(launched.extended, looks[1], looks[0])
    missed = np.abs(launched.errors) > t.isf((1 - confidence) / divided_by / 2, launched.processes - 1)
    for chosen in (np.ones_like(missed), launched.extended, ~launched.extended):
        yield float(missed[chosen].mean()) if chosen.any() else float("nan")


@dataclass(frozen=True)
class Timed:
    """Variants after their processes: shape (variants,) each.

    Args:
      errors: Mean of a variant's log times minus its true value.
      ordinary, moderated: Standard errors of that mean, each with its degrees of freedom.
      worst: Whether its case is among those of the largest true scatter.
    """

    errors: Floats
    ordinary: tuple[Floats, Floats]
    moderated: tuple[Floats, Floats]
    worst: Flags


def time_cases(random: np.random.Generator, runs: int, size: int, processes: int, spread: float) -> Timed:
    """Simulates runs of so many cases: process by process a case's variants share one deviation, and have one each."""
    scatter = SHARED * np.exp(spread * random.standard_normal((runs, size)))
    shared = scatter[..., None, None] * random.standard_normal((runs, size, 1, processes))
    times = (shared + OWN * random.standard_normal((runs, size, VARIANTS, processes))).reshape(runs, -1, processes)
    variances = times.var(axis=-1, ddof=1)
    moderated = np.array([moderate(run, processes - 1.0) for run in variances])
    worst = scatter >= np.quantile(scatter, 1 - WORST) if spread > 0 else np.zeros_like(scatter, bool)
    return Timed(
        errors=times.mean(axis=-1).ravel(),
        ordinary=(np.sqrt(variances / processes).ravel(), np.full(variances.size, processes - 1.0)),
        moderated=(np.sqrt(moderated[:, 0] / processes).ravel(), moderated[:, 1].ravel()),
        worst=np.repeat(worst.ravel(), VARIANTS),
    )


def moderate(variances: Floats, degrees: float) -> tuple[Floats, Floats]:
    """The variances of one run and their degrees, moderated as the harness does; as they are without a prior."""
    own = np.full(len(variances), degrees)
    prior = fit_prior(variances.tolist(), own.tolist())
    if prior is None:
        return variances, own
    # The variants of a case share its processes: all together have the degrees of the cases.
    prior = replace(prior, pooled_degrees=degrees * len(variances) / VARIANTS)
    pairs = [prior.lend(place).moderate(float(variance), degrees) for place, variance in enumerate(variances)]
    return np.array([pair[0] for pair in pairs]), np.array([pair[1] for pair in pairs])


def moderated_miss_rates(timed: Timed, confidence: float) -> Iterator[float]:
    """Share of intervals without the true value: ordinary, moderated, and moderated of the worst (nan for none)."""
    everything = np.ones_like(timed.worst)
    for (errors, degrees), chosen in (
        (timed.ordinary, everything),
        (timed.moderated, everything),
        (timed.moderated, timed.worst),
    ):
        missed = np.abs(timed.errors) > -stdtrit(degrees, (1 - confidence) / 2) * errors
        yield float(missed[chosen].mean()) if chosen.any() else math.nan


if __name__ == "__main__":
    main()
