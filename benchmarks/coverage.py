"""Do the intervals miss as often as they say? Simulated processes under the rules in use, and under others.

    python -m benchmarks.coverage [--cases 20000]

The first table has ordinary t intervals, as ratios have them but for what two runs differ by, and what a second look
costs.

Forty cases have K processes each. Then some get more, up to 24, as `share_out` of jaxmeter decides once by their widths
and costs. An interval that misses has the true value outside. Its error is shared by the looks that it has had (the
rule in use), by two in all cases, or not at all. Processes are independent, their log ratios normal, with one scatter
for all cases or with those that this project's cases have.

The second table has times: a process is as slow for all variants of its case, and each has a noise of
its own. Their intervals are moderated, by a prior from all variants of a run, beside ordinary ones. No look is taken.
"""

from __future__ import annotations

import argparse
import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtrit
from scipy.stats import t

from benchmarks.here import describe_here
from jaxmeter.harness.metrics.moderation import fit_prior
from jaxmeter.harness.parent.rounds import measure_width, share_out
from jaxmeter.harness.plan.settings import MOST_PROCESSES, make_settings
from jaxmeter.harness.record import Outcome, PlannedCase, Status

SEED = 20261122
CASES = 20_000
"""A miss rate of 1 % is then known to 0.07 %."""

CASES_OF_RUN = 40
FIRST_PROCESSES = (3, 5, 10)
SETTINGS = make_settings("default", suites=(), run_id="coverage")
MOST = MOST_PROCESSES["default"]
USUAL = 0.06
"""Standard deviation of log ratios between processes, as in default runs."""

EXTRA_S, COST = 120.0, 0.8
"""Seconds for more processes of a run, and the standard deviation of the log of what one takes; its median is 1 s."""

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

NOTHING_ELSE: dict[str, Any] = {
    **dict.fromkeys(("name", "suite", "workload", "platform", "description", "definition", "baseline"), ""),
    "params": {},
    "variants": (),
    "cost": None,
}
"""Of a planned case: only its id counts here."""

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
        plain = process(np.random.default_rng(SEED), given.cases, first, spread, extra_s=0.0)
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


def process(
    random: np.random.Generator, cases: int, first: int, spread: float, *, extra_s: float = EXTRA_S
) -> Launched:
    """Simulates cases, in runs of CASES_OF_RUN, each of which has so many seconds for more processes."""
    runs = max(1, cases // CASES_OF_RUN)
    scatter = USUAL * np.exp(spread * random.standard_normal((runs, CASES_OF_RUN)))
    values = scatter[..., None] * random.standard_normal((runs, CASES_OF_RUN, MOST))
    seconds = np.exp(COST * random.standard_normal((runs, CASES_OF_RUN)))
    extra = np.array([count_extra(values[run, :, :first], seconds[run], extra_s) for run in range(runs)])
    processes = first + extra
    own = np.arange(MOST) < processes[..., None]
    means = values.mean(axis=-1, where=own)
    errors = means / (values.std(axis=-1, ddof=1, where=own) / np.sqrt(processes))
    return Launched(errors.ravel(), processes.ravel(), extra.ravel() > 0)


def count_extra(values: Floats, seconds: Floats, extra_s: float) -> list[int]:
    """How many more processes each case of a run gets, by what is in use."""
    planned = [PlannedCase(id=str(place), **NOTHING_ELSE) for place in range(len(values))]
    timings = [Outcome(status=Status.OK, values={"log_ratio": tuple(own)}) for own in values]
    widths = [measure_width(case, [timing], SETTINGS) for case, timing in zip(planned, timings, strict=True)]
    known = {case.id: float(own) for case, own in zip(planned, seconds, strict=True)}
    given = share_out([width for width in widths if width is not None], known, extra_s, SETTINGS)
    return [given.get(case.id, 0) for case in planned]


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
