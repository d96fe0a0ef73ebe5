"""What the variants of a run share: the speed of its machine, and how much times scatter from process to process."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import cached_property
from typing import Protocol

import numpy

from jaxmeter.harness.metrics.moderation import Prior
from jaxmeter.harness.metrics.statistics import (
    BETWEEN_RUNS,
    LOG_UNLIKE,
    MINIMUM_EFFECT,
    RATIOS_BETWEEN_RUNS,
    Lent,
    PseudoProcess,
)
from jaxmeter.harness.record.cases import NATIVE, PlannedCase, PlannedVariant

RATIO = "speedup"
NORMALISED = "normalised_s"

NO_CALIBRATION = "no calibration loop was timed that times can be divided by"

MIDDLE = 0.9
"""Share of the processes that must agree, and of the blocks that must be at full speed, where a calibration loop counts
as constant: a few are always disturbed."""


class Kind(StrEnum):
    """Whose times scatter alike: peers are timed in processes of their own, with threads of their own."""

    JAX = "JAX's variants"
    PEERS = "peers"


class Planned(Protocol):
    """A variant as it was planned, and the others of its case."""

    @property
    def planned_case(self) -> PlannedCase:
        """What was planned of the case."""

    @property
    def planned(self) -> PlannedVariant:
        """What was planned of the variant."""

    def find(self, variant: str) -> Planned | None:
        """Return another variant of the case, by name; None where the case has none."""


def kind_of(variant: PlannedVariant) -> Kind:
    """Which kind a variant is of."""
    return Kind.PEERS if variant.mode == NATIVE else Kind.JAX


def kind_of_ratio(*sides: Planned) -> Kind:
    """Return the kind of a ratio: `PEERS` if one of the variants is a peer, since peers are not paired."""
    return Kind.PEERS if Kind.PEERS in [kind_of(side.planned) for side in sides] else Kind.JAX


def list_sides(source: Planned) -> tuple[Planned, ...]:
    """Return the variant, and the baseline variant that its ratio refers to."""
    baseline = source.find(source.planned_case.baseline)
    return (source,) if baseline is None else (source, baseline)


@dataclass(frozen=True)
class ReferenceSpeed:
    """The speed of a run's machine: the times of a calibration loop, which is a fixed piece of work.

    Args:
      identity: Identity of the calibration loop; times with different loops cannot be compared.
      processes_s: The loop's time in each process, in ascending order, at least one.
      slow_share: Share of the blocks next to which the core was slow.
      baseline_s: The loop's median in the baseline run, to which times are normalised; None for the run's own median.
      baseline: Name of the baseline run.
    """

    identity: str
    processes_s: tuple[float, ...]
    slow_share: float = 0.0
    baseline_s: float | None = None
    baseline: str = ""

    @cached_property
    def median_s(self) -> float:
        """The calibration loop's median over the run's processes."""
        return float(numpy.median(self.processes_s))

    @property
    def calibration_s(self) -> float:
        """The calibration loop's time to which times are normalised."""
        return self.median_s if self.baseline_s is None else self.baseline_s

    @cached_property
    def is_constant(self) -> bool:
        """Whether the machine had one speed: then dividing by the calibration loop changes no verdict."""
        low, high = numpy.quantile(self.processes_s, [(1 - MIDDLE) / 2, (1 + MIDDLE) / 2])
        return bool(high <= low * (1 + MINIMUM_EFFECT)) and self.slow_share <= 1 - MIDDLE


@dataclass(frozen=True)
class Spread:
    """How a metric's processes scatter, over the variants of one kind.

    Args:
      places: Of each variant in the prior, by case and name.
    """

    prior: Prior
    places: Mapping[tuple[str, str], int]

    @property
    def cases(self) -> int:
        """From how many cases the variants are: only those are independent."""
        return len({case for case, _ in self.places})

    @property
    def deviation(self) -> float:
        """s0: the standard deviation of the logs."""
        return math.sqrt(self.prior.variance)


@dataclass(frozen=True)
class Pool:
    """What a variant's intervals borrow from the run around it; an empty one lends nothing.

    Args:
      reference: None where there is none, and then why.
      spreads: By metric and kind; where one is missing, intervals are ordinary t intervals.
      usual_ratios: By kind, how far a ratio's processes usually deviate: a variance of logs.
    """

    reference: ReferenceSpeed | None = None
    no_reference: str = NO_CALIBRATION
    spreads: Mapping[tuple[str, Kind], Spread] = field(default_factory=dict)
    usual_ratios: Mapping[Kind, float] = field(default_factory=dict)

    def lend(self, metric: str, source: Planned) -> Lent | None:
        """What is known of the scatter of a variant's metric from the others."""
        if metric == RATIO:
            return self.lend_to_ratio(*list_sides(source))
        spread = self.spreads.get((metric, kind_of(source.planned)))
        place = None if spread is None else spread.places.get((source.planned_case.id, source.planned.name))
        return None if spread is None or place is None else spread.prior.lend(place)

    def lend_to_ratio(self, *sides: Planned) -> PseudoProcess | None:
        """What is known of the scatter of a ratio of variants."""
        variance = self.usual_ratios.get(kind_of_ratio(*sides))
        return None if variance is None else PseudoProcess(variance)

    def find_shared(self, metric: str, source: Planned, values: Sequence[float]) -> float:
        """The variance of a metric's logarithms that a run's processes share, and those of another run do not.

        It is known of normalised times and of ratios only.

        Args:
          values: By process, all > 0.
        """
        if metric == RATIO and values:
            return self.find_shared_of_ratio(math.fsum(map(math.log, values)) / len(values), *list_sides(source))
        return BETWEEN_RUNS**2 if metric == NORMALISED and self._has_varied else 0.0

    def find_shared_of_ratio(self, log_ratio: float, *sides: Planned) -> float:
        """The same of a ratio of variants.

        A ratio to a peer has the error of a time. That of an A/A control or a replay to its own variant has none.
        """
        is_to_its_like = len({side.planned.same_as or side.planned.name for side in sides}) == 1
        if not self._has_varied or is_to_its_like:
            return 0.0
        if kind_of_ratio(*sides) is Kind.PEERS:
            return BETWEEN_RUNS**2
        return (RATIOS_BETWEEN_RUNS * min(1.0, abs(log_ratio) / LOG_UNLIKE)) ** 2

    @property
    def _has_varied(self) -> bool:
        """Whether the machine is known to have had more than one speed."""
        return self.reference is not None and not self.reference.is_constant


EMPTY = Pool()
"""Of a case without a run around it."""


def refer_to(own: Pool, baseline: Pool, name: str) -> Pool:
    """Return a run's pool, normalised to a baseline run; not normalised if their calibration loops differ.

    Args:
      baseline: The pool of a run of the same machine, with a calibration loop.
      name: Name of the baseline run.
    """
    here, there = own.reference, baseline.reference
    if here is None or there is None:
        return own
    if here.identity != there.identity:
        return replace(
            own,
            reference=None,
            no_reference=f"its calibration loop is {here.identity}, that of {name} {there.identity}",
        )
    return replace(own, reference=replace(here, baseline_s=there.median_s, baseline=name))
