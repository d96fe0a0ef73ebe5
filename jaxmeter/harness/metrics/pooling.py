"""The pool that the variants of a run share, from all of its cases. It is built once for each run."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Sequence

from jaxmeter.harness.metrics.across import find_timing, read_values
from jaxmeter.harness.metrics.metric import Readable
from jaxmeter.harness.metrics.moderation import (
    FEWEST_POOLED,
    NO_CALIBRATION,
    RATIO,
    Pool,
    PoolKind,
    ReferenceSpeed,
    Spread,
    fit_prior,
    kind_of,
)
from jaxmeter.harness.metrics.plausibility import keep_between
from jaxmeter.harness.metrics.statistics import FEWEST_PROCESSES, find_variance
from jaxmeter.harness.metrics.table import METRICS
from jaxmeter.harness.record.runs import RunRecord

POOLED = ("execution_s", "normalised_s")
"""Metrics whose intervals are moderated. The variances of ratios differ too much: their prior has about one degree of
freedom, and may only widen their intervals."""


SHORTEST_GAP_S = 60.0
"""Between processes of a case that meet several states of the machine: the speed of such a machine's cores changes for
seconds to minutes."""


def gather_pool(variants: Iterable[Readable], alone: Pool) -> Pool:
    """Return the run's calibration loop times, and how the times of each kind of variant scatter.

    Args:
      variants: The run's recorded variants, read with `alone` as their pool: their values do not depend on the scatter.
      alone: What `find_reference` returns.
    """
    by_kind: dict[PoolKind, list[Readable]] = {kind: [] for kind in PoolKind}
    for variant in variants:
        by_kind[kind_of(variant.planned)].append(variant)
    spreads = {
        (metric, kind): spread
        for metric in POOLED
        for kind, own in by_kind.items()
        if (spread := _fit(metric, own)) is not None
    }
    usual = {kind: variance for kind, own in by_kind.items() if (variance := _find_usual_ratio(own)) is not None}
    return Pool(alone.reference, alone.no_reference, spreads, usual)


def find_reference(variants: Iterable[Readable]) -> Pool:
    """Return a pool with only the calibration loop's times, or with the reason why there are none."""
    calibrations_s: dict[tuple[str, str, int], float] = {}
    identities: set[str] = set()
    slow: list[float] = []
    for variant in variants:
        details = find_timing(variant)
        if details is None or details.calibration is None:
            continue
        identities.add(details.calibration)
        slow += [] if (share := keep_between(details.slow_share, 0.0, 1.0)) is None else [share]
        # JAX's variants of a round share a process, and its calibration loop; a peer has its own.
        peer = variant.planned.name if kind_of(variant.planned) is PoolKind.PEERS else ""
        for index, calibration_s in enumerate(read_values(variant, METRICS["calibration_s"])):
            if calibration_s is not None:
                calibrations_s.setdefault((variant.planned_case.id, peer, index), calibration_s)
    if len(identities) > 1:
        return Pool(
            no_reference=f"processes of this run timed different calibration loops: {'; '.join(sorted(identities))}"
        )
    if not calibrations_s:
        return Pool(no_reference="no calibration loop has a time that can be" if identities else NO_CALIBRATION)
    slow_share = statistics.fmean(slow) if slow else 0.0
    return Pool(ReferenceSpeed(identities.pop(), tuple(sorted(calibrations_s.values())), slow_share))


def _find_usual_ratio(variants: Sequence[Readable]) -> float | None:
    """Return the median variance of the ratios' logs from process to process; None if too few cases have one."""
    logs = [(variant.planned_case.id, [math.log(value) for value in variant.read(RATIO).known]) for variant in variants]
    enough = [(case, own) for case, own in logs if len(own) >= FEWEST_PROCESSES]
    if len({case for case, _ in enough}) < FEWEST_POOLED:
        return None
    return statistics.median(find_variance(own) for _, own in enough)


def _fit(metric: str, variants: Sequence[Readable]) -> Spread | None:
    """Return how the metric's processes scatter; None if too few cases have values.

    Variants of a case share processes and so the state of the machine: they are many variances of fewer independent
    draws. So cases are counted, and the degrees of freedom are limited to those of the cases.
    """
    logs = {
        (variant.planned_case.id, variant.planned.name): [math.log(value) for value in known]
        for variant in variants
        if len(known := variant.read(metric).known) >= FEWEST_PROCESSES
    }
    degrees = {key: len(values) - 1 for key, values in logs.items()}
    of_cases: dict[str, int] = {}
    for (case, _), own in degrees.items():
        of_cases[case] = max(own, of_cases.get(case, 0))
    if len(of_cases) < FEWEST_POOLED:
        return None
    variances = [find_variance(values) for values in logs.values()]
    prior = fit_prior(variances, list(degrees.values()), most_degrees=sum(of_cases.values()))
    return None if prior is None else Spread(prior, {key: place for place, key in enumerate(logs)})


def find_process_gap(run: RunRecord) -> float | None:
    """Return the seconds from one timing process of a case to its next: the median over the cases that record it."""
    gaps = [record.process_gap_s for record in run.cases if record.process_gap_s is not None]
    return statistics.median(gaps) if gaps else None
