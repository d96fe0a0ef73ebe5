"""How long a plan takes, and how many processes: each process takes what the rows of its probes say.

That calls are short is assumed: how long a function takes is not known before it runs.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from jaxmeter.harness.plan.probes import PROBES
from jaxmeter.harness.plan.processes import AROUND_BLOCK_S, SHAPES, PlannedProcess, share_passes
from jaxmeter.harness.plan.settings import find_longest_s
from jaxmeter.harness.record import Settings

PROCESS_S = 0.15
"""Every process: fork, backend, suites, inputs (`python -m benchmarks.process_overhead`)."""


@dataclass(frozen=True)
class PlanEstimate:
    """How long a plan takes, in seconds, and how many processes it starts.

    Args:
      least_s, fewest: Without what is left out where time is short.
      most_s, most: With all of it.
    """

    least_s: float
    most_s: float
    fewest: int
    most: int


def estimate(processes: Sequence[PlannedProcess], settings: Settings) -> PlanEstimate:
    """Return an estimate within the budget: what does not fit is left out, or lost.

    A default budget may be exceeded for the fewest rounds.
    """
    times = [(process, process_s(process, settings)) for process in processes]
    least_s = math.fsum(seconds for process, seconds in times if not process.extra)
    most_s = math.fsum(seconds for _, seconds in times)
    longest_s = find_longest_s(settings)
    return PlanEstimate(
        least_s=min(least_s, longest_s),
        most_s=min(most_s, max(settings.budget_s, min(least_s, longest_s))),
        fewest=sum(not process.extra for process in processes),
        most=len(processes),
    )


def first_round_s(processes: Sequence[PlannedProcess], settings: Settings) -> float:
    """Return the seconds until every case has been looked at once."""
    return math.fsum(process_s(process, settings) for process in processes if process.round == 0)


def process_s(process: PlannedProcess, settings: Settings) -> float:
    """Return the seconds of one process; of SHAPES, whose probes only trace, those of its beginning."""
    begun_s = PROCESS_S + process.begins_s
    if process.kind == SHAPES:
        return begun_s
    assigned = [(PROBES[name], len(variants)) for name, variants in process.assignments.items()]
    before_s = begun_s + math.fsum(variants * probe.variant_s for probe, variants in assigned)
    every_s = (passes_s(variants, before_s, settings) for probe, variants in assigned if probe.keeps_samples)
    return before_s + math.fsum(every_s)


def passes_s(variants: int, before_s: float, settings: Settings) -> float:
    """Return the seconds of all passes of a process whose blocks have the shortest length.

    Args:
      before_s: Seconds from the start of the process to its first pass.
    """
    blocks_s = [settings.block_s] * variants
    passes = min(settings.blocks, share_passes(blocks_s, before_s))
    return passes * variants * (settings.block_s + AROUND_BLOCK_S)
