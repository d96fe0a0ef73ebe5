"""The same variant in two runs, and what both runs have in common."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from jaxmeter.document import numbers
from jaxmeter.harness.metrics.across import find_worst
from jaxmeter.harness.metrics.reading import Case, Run, Variant
from jaxmeter.harness.metrics.table import METRICS
from jaxmeter.harness.metrics.traced import find_trace
from jaxmeter.harness.record import NATIVE, NumericsDetails, Status
from jaxmeter.harness.record.traps import CALLBACKS, list_all_traps
from jaxmeter.harness.record.wording import counted, visible
from jaxmeter.harness.traces.growth import find_grown
from jaxmeter.harness.traces.typical import find_busy_s

from .conditions import Conditions, compare_conditions, describe_changed_code, describe_changed_packages

TRACE = "trace"
"""The probe that captures."""

LEAST_GROWTH = 0.02
"""Of the device's busy time in a step; captures of equal programs differ by as much."""

NOTHING_KNOWN = "nothing known"
"""A cause where nothing that is recorded has changed."""

MOST_GROWN = 3
"""Operations that a cause names."""

DESCRIBED_BY = {
    "hlo_fusions": "fusion",
    "hlo_custom_calls": "custom call",
    "hlo_collectives": "collective",
    "hlo_instructions": "instruction",
}
"""What a changed program is described by: metrics, and what each counts."""


@dataclass(frozen=True)
class RunPair:
    """Two runs that are compared.

    Args:
      after: Brought to the reference speed of the earlier run.
      minimum_effect: The smallest difference of a time that is worth a verdict, as a share.
      explained_by: The run whose probes explain what the later one confirms; None if the later run explains itself.
    """

    before: Run
    after: Run
    conditions: Conditions
    minimum_effect: float
    explained_by: Run | None = None

    def at(self, platform: str) -> RunPair:
        """Return the comparison of the cases of a platform, under its conditions."""
        if platform == self.after.where:
            return self
        conditions = compare_conditions(self.before.manifest, self.after.manifest, platform)
        return replace(self, conditions=conditions)


@dataclass(frozen=True)
class VariantPair:
    """A variant in both runs; `case` is that of the later one."""

    runs: RunPair
    case: Case
    old: Variant
    new: Variant

    @property
    def name(self) -> str:
        """The variant's."""
        return self.new.planned.name

    @property
    def fingerprints(self) -> tuple[str | None, str | None]:
        """Of both programs; None of what has none, or where nobody told."""
        return find_fingerprint(self.old), find_fingerprint(self.new)

    @property
    def is_same_program(self) -> bool:
        """Whether it is the same program, of the same versions on the same device, and calls no Python code."""
        was, now_is = self.fingerprints
        is_equal = was is not None and was == now_is and not self.runs.conditions.weak
        return is_equal and not any(map(calls_back, (self.old, self.new)))

    @property
    def is_same_code(self) -> bool:
        """Whether nothing has changed that is recorded of the code and of what it runs under."""
        conditions = self.runs.conditions
        has_changed = bool(conditions.beside_jax) if self.is_native else conditions.anything
        return self.old.planned.source == self.new.planned.source and not (has_changed or self._changed_packages)

    @property
    def has_same_sources(self) -> bool:
        """Whether both runs recorded the code of the suite and of the user's own packages, and all of it is equal."""
        is_recorded = None not in (self.runs.before.manifest.own_packages, self.runs.after.manifest.own_packages)
        return is_recorded and self.old.planned.source == self.new.planned.source and not self._changed_packages

    @property
    def _changed_packages(self) -> str:
        """What has changed of the user's own packages that the suite imports."""
        return describe_changed_packages(self.runs.before.manifest, self.runs.after.manifest, self.case.planned.suite)

    @property
    def has_another_program(self) -> bool:
        """Whether both are known and differ."""
        return None not in self.fingerprints and len(set(self.fingerprints)) == 2

    @property
    def is_native(self) -> bool:
        """Whether another library runs it, which no version of JAX changes."""
        return self.new.planned.mode == NATIVE

    @property
    def explaining(self) -> VariantPair:
        """The same variant in the run that explains: a run that only confirms has timed it, and nothing else."""
        run = self.runs.explained_by
        case = None if run is None else run.by_key.get((self.case.planned.name, self.case.planned.platform))
        variant = None if case is None else case.find(self.name)
        if run is None or case is None or variant is None:
            return self
        return VariantPair(replace(self.runs, after=run, explained_by=None), case, self.old, variant)

    def explain(self, *, is_slower: bool) -> str:
        """Return what may explain a time that changed, and where the time went."""
        explaining = self.explaining
        return "; ".join(filter(None, (explaining.find_cause(), explaining.describe_grown(is_slower=is_slower))))

    def describe_grown(self, *, is_slower: bool) -> str:
        """Return the operations that take longer, or less long, in the later capture; empty without both captures.

        A difference of captures alone is no verdict: this only explains a time that is told apart.
        """
        before, after = find_trace(self.old), find_trace(self.new)
        if before is None or after is None:
            return ""
        least_s = LEAST_GROWTH * (find_busy_s(before.busiest) or 0.0)
        grown = [
            operation
            for operation in find_grown(before, after)
            if (operation.difference_s > 0) == is_slower
            and abs(operation.difference_s) >= least_s
            and None not in (operation.before_s, operation.after_s)
        ]
        largest = sorted(grown, key=lambda operation: -abs(operation.difference_s))[:MOST_GROWN]
        more = "more" if is_slower else "less"
        words = [
            f"{visible(operation.name)}{f' ({visible(operation.source)})' if operation.source else ''} takes "
            f"{numbers.difference(abs(operation.difference_s))} {more}"
            for operation in largest
        ]
        return f"in their captured steps {', '.join(words)}" if words else ""

    def describe_program(self) -> str:
        """Return `2 fusions fewer, 31 instructions more in its program`; empty if it is the same, or unknown."""
        if not self.has_another_program:
            return ""
        counts = {
            noun: (before, after)
            for metric, noun in DESCRIBED_BY.items()
            for before, after in [tuple(side.read(metric).estimate for side in (self.old, self.new))]
            if before is not None and after is not None
        }
        different = [
            f"{counted(int(abs(after - before)), noun)} {'more' if after > before else 'fewer'}"
            for noun, (before, after) in counts.items()
            if before != after
        ]
        if different:
            return f"{', '.join(different)} in its program"
        return "another program, with as many instructions" if counts else "another program"

    def find_cause(self, *, of_program: bool = False) -> str:
        """Return what may explain a change, likeliest first, and then how the program differs: an effect, no cause.

        Args:
          of_program: Whether it is the program that changed: then nothing is said of how it differs.
        """
        conditions = self.runs.conditions
        if self.is_native:
            others = conditions.describe_beside_jax()
        else:
            others = conditions.describe(everything=None in self.fingerprints)
        causes = (
            describe_changed_code(self.new.planned.implementation, self.old.planned, self.new.planned),
            self._changed_packages,
            others,
        )
        cause = "; ".join(filter(None, causes)) or NOTHING_KNOWN
        return "; ".join(filter(None, (cause, "" if of_program else self.describe_program())))


def find_status(variant: Variant) -> tuple[Status, str]:
    """Return how a variant ended, and why. A capture only explains a time: without one the time still counts."""
    measured = {probe: outcome for probe, outcome in variant.outcomes.items() if probe != TRACE}
    _, worst = find_worst(measured or variant.outcomes)
    return worst.status, worst.reason or ""


def calls_back(variant: Variant) -> bool:
    """Return whether the program is known to call Python code, which its fingerprint does not describe."""
    return any(trap.kind == CALLBACKS for trap in list_all_traps(variant.outcomes))


def find_fingerprint(variant: Variant) -> str | None:
    """Of the program that was checked, and timed."""
    if variant.planned.mode == NATIVE:
        return None
    all_details = (outcome.details for outcome in variant.outcomes.values())
    return next((details.fingerprint for details in all_details if isinstance(details, NumericsDetails)), None)


def read_raw(variant: Variant, metric: str) -> Sequence[float | None]:
    """What a probe recorded of a metric, unchecked."""
    outcome = variant.outcomes.get(METRICS[metric].probe or "")
    return () if outcome is None else outcome.values.get(metric, ())
