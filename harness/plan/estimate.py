"""How long a plan takes, and how many processes: counted from the list of launches."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from harness.plan.launches import Launch
from harness.plan.probes import COLD_VARIANT_S, PROBES
from harness.record import Settings

PROCESS_S = 0.15
"""Beginning a process: fork, backend, suites, inputs."""


@dataclass(frozen=True)
class Estimate:
    """How long a plan takes, in seconds, and how many processes it starts.

    Args:
      least_s, fewest: Without what is left out where time is short; calls are quick.
      most_s, most: With all of it; slow calls up to the time limits.
    """

    least_s: float
    most_s: float
    fewest: int
    most: int


def estimate(launches: Sequence[Launch], settings: Settings) -> Estimate:
    """From processes and variants; what compiling takes is not known before, and not in it."""
    least = math.fsum(launch_s(launch, settings) for launch in launches if not launch.extra)
    most = math.fsum(launch_s(launch, settings) for launch in launches)
    return Estimate(
        least_s=min(least, settings.budget_s),
        most_s=min(max(least, most), settings.budget_s),
        fewest=sum(not launch.extra for launch in launches),
        most=len(launches),
    )


def launch_s(launch: Launch, settings: Settings) -> float:
    """Seconds of one process, without compiling."""
    of_variant = [PROBES[name].variant_s(settings) for name in launch.probes if PROBES[name].process == launch.process]
    return PROCESS_S + len(launch.variants) * max(of_variant, default=COLD_VARIANT_S)
