"""What a metric is, what is read of one, and what it is read from."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from typing import TYPE_CHECKING, Protocol

from jaxmeter.harness.metrics.statistics import Interval
from jaxmeter.harness.record.cases import PlannedCase, PlannedVariant
from jaxmeter.harness.record.environment import Environment
from jaxmeter.harness.record.outcomes import Outcome
from jaxmeter.harness.record.settings import Settings

if TYPE_CHECKING:  # it brings scipy.optimize, which each fork server would import: 0.1 s
    from jaxmeter.harness.metrics.moderation import Pool


class Unit(StrEnum):
    """What a metric's numbers count. Records hold these units; scaling happens when shown."""

    SECONDS = "s"
    BYTES = "B"
    COUNT = "count"
    FLOP = "FLOP"
    RATIO = "ratio"
    SHARE = "share"
    RELATIVE_ERROR = "relative error"
    LOG_RATIO = "log ratio"
    EXPONENT = "exponent"
    FLOP_PER_SECOND = "FLOP/s"
    BYTES_PER_SECOND = "B/s"
    ITEMS_PER_SECOND = "items/s"


class Direction(StrEnum):
    """Which way is better."""

    LOWER = "lower"
    HIGHER = "higher"
    NEITHER = "neither"


class Summary(StrEnum):
    """How the values of several processes become one number."""

    TIMING = "mean over timing processes"
    """With a t interval that is widened for every look at the processes: their number follows from what they showed.
    Of ratios and times the geometric mean, of logarithms the mean."""

    PROCESSES = "mean over processes"
    """The same, but their number was fixed beforehand."""

    MEDIAN = "median"
    STEPS = "median over the steps of one process"
    """Without an interval: steps of one process do not vary as processes do."""

    FIRST = "the first"
    """Of what is the same in all processes."""

    LARGEST = "the largest"
    """Of what should be the same in all processes, or should not be at all."""


class Family(StrEnum):
    """Metrics that one table shows together: it has a column for each, in the order of the registry."""

    PROGRAM = "program"
    """What the compiler made of a variant, level by level."""


@dataclass(frozen=True, kw_only=True)
class Metric:
    """A named result: measured by a probe, derived from others, or the growth of another over the values of `n`.

    Args:
      title: Its name in a sentence, such as `first call`.
      column: The heading of its column, if that is not the title: there, the table says more.
      detail: The small text below that heading.
      exact: Whether it is deterministic: it follows from the program alone, so two equal programs have the same value
        in every process.
      budget: Its name in budgets and bisections; two runs are then compared by it. Empty if they are not.
      fails_gate: Whether a gate fails if it grew and no budget allows that.
      in_history: Whether a page keeps it for runs that newer runs have replaced.
      summary: How several processes become one number.
      probe: The probe that measures it.
      derive: The function that derives it from what probes have measured.
      exponent_of: The metric whose exponent over the values of `n` it is; such a metric is of a workload, not of a
        case.
      signed: Whether it may be below 0, such as a saving.
      family: The table that has a column for it because it is here.
      items: The unit that the workload of a throughput counts, in the plural.
    """

    name: str
    title: str
    unit: Unit
    direction: Direction
    definition: str
    exact: bool = False
    budget: str = ""
    fails_gate: bool = False
    in_history: bool = False
    summary: Summary = Summary.FIRST
    probe: str | None = None
    derive: Callable[[Readable], Derived] | None = None
    exponent_of: str | None = None
    column: str = ""
    detail: str = ""
    signed: bool = False
    family: Family | None = None
    items: str = ""

    @property
    def unit_text(self) -> str:
        """Its unit; of a throughput that was read, with what its workload counts, as `tokens/s`."""
        return f"{self.items}/s" if self.items else self.unit.value

    @property
    def heading(self) -> str:
        """The heading of its column."""
        return self.column or f"{self.title[:1].upper()}{self.title[1:]}"


class Lack(StrEnum):
    """Why a variant has no number of a metric, or one that is not to be relied on."""

    NOT_ASKED = "not asked"
    """The run was not asked for its probe."""

    NOT_LOOKED = "not looked"
    """Its probe did not look at this variant."""

    ENDED = "ended"
    """Its probe, or the variant itself, did not end well."""

    NO_VALUE = "no value"
    """Its probe ended well, but recorded none."""

    NOT_DEFINED = "not defined"
    """A variant like this one has no such metric."""

    NO_DIFFERENCE = "no difference"
    """The two that it compares do not differ."""

    NEVER = "never"
    """The value is beyond any number."""

    WITHHELD = "withheld"
    """The value is measured and not given: the result may differ from the baseline variant's."""

    NOT_NORMALISED = "no calibration loop"
    """No calibration loop shows how fast the machine was meanwhile."""


@dataclass(frozen=True)
class Fault:
    """The reason why a number is missing.

    Args:
      metric: The metric without a number; for a derived metric, the one that it lacks.
      probe: The probe that caused it, or None.
      outcome: How that probe ended, if it did not end well.
      reason: The end of a sentence for a person, if the fields do not say everything.
    """

    lack: Lack
    metric: str
    probe: str | None = None
    outcome: Outcome | None = None
    reason: str = ""


@dataclass(frozen=True)
class Reading:
    """One metric of one variant.

    Args:
      values: By process; None where a process has no plausible value.
      number: The number, with bounds if the processes give some, or the function that makes it; None without a number.
      exact: Whether the number is exact: the metric is, and it was the same in all processes.
      contended: Whether the timing behind it was contended.
      fault: Why there is no number; with a number, what else went wrong.
      doubt: Why it counts as contended, for a person; empty if the variant's own details say it.
      looks: Number of interim analyses of its processes that decided whether to go on.
      shared: Variance of the logarithms that the processes of this run share, and other runs do not.
    """

    metric: Metric
    values: tuple[float | None, ...] = ()
    number: Interval | Callable[[], Interval] | None = None
    exact: bool = False
    contended: bool = False
    fault: Fault | None = None
    doubt: str = ""
    looks: int = 1
    shared: float = 0.0

    @property
    def known(self) -> tuple[float, ...]:
        """The values of the processes that have one."""
        return tuple([value for value in self.values if value is not None])

    @property
    def has_number(self) -> bool:
        """Whether there is one: less work than the number with its bounds."""
        return self.number is not None

    @cached_property
    def interval(self) -> Interval | None:
        """The number with the bounds that are shown; made when it is first asked for, since most never are."""
        return self.number() if callable(self.number) else self.number

    @property
    def estimate(self) -> float | None:
        """The number."""
        return None if self.interval is None else self.interval.estimate

    @property
    def verdict_interval(self) -> Interval | None:
        """The number with the bounds that verdicts go by; `interval` has those that are shown."""
        return None if self.interval is None else self.interval.decisive


@dataclass(frozen=True)
class Derived:
    """What a derived metric has instead of a probe's record: values by process, or why there is none.

    Args:
      interval: The number with its bounds, where these do not follow from the values.
    """

    values: tuple[float | None, ...] = ()
    contended: bool = False
    fault: Fault | None = None
    interval: Interval | None = None
    doubt: str = ""


class Readable(Protocol):
    """A variant of a case, and all that was recorded of it."""

    @property
    def planned_case(self) -> PlannedCase:
        """What was planned of the case."""

    @property
    def planned(self) -> PlannedVariant:
        """What was planned of the variant."""

    @property
    def outcomes(self) -> Mapping[str, Outcome]:
        """By probe; under the empty name of the variant itself, where no probe looked at it."""

    @property
    def environment(self) -> Environment:
        """Where it ran."""

    @property
    def settings(self) -> Settings:
        """How it was measured."""

    @property
    def pool(self) -> Pool:
        """What it shares with the other variants of its run."""

    def read(self, metric: str) -> Reading:
        """A metric of the variant, by name."""

    def find(self, variant: str) -> Readable | None:
        """Another variant of the case, by name; None where the case has none."""
