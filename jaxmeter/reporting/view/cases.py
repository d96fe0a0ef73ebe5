"""Every planned case of every run, and what the page says of a variant's probes."""

from __future__ import annotations

from collections.abc import Sequence

from jaxmeter.harness.metrics.details_text import describe_details
from jaxmeter.harness.metrics.reading import Case, Run, Variant
from jaxmeter.harness.plan.probes import PROBES
from jaxmeter.harness.record import Outcome

SPEED = "speed"
"""The section of probes without one of their own."""


def gather_cases(runs: Sequence[Run]) -> tuple[Case, ...]:
    """Return every planned case of every run, by suite and workload, then by run."""
    cases = [case for run in runs for case in run.cases]
    return tuple(sorted(cases, key=lambda case: (case.planned.suite, case.planned.workload)))


def label_case(case: Case) -> str:
    """Return the case and where it ran."""
    return f"{case.planned.name} · {case.run.label}"


def group_alike(variant: Variant) -> tuple[tuple[tuple[str, ...], Outcome], ...]:
    """Return probes that ended for the same reason, with one outcome to stand for them."""
    groups: dict[tuple[object, ...], tuple[tuple[str, ...], Outcome]] = {}
    for probe, outcome in variant.outcomes.items():
        key = (outcome.status, outcome.reason, outcome.stderr)
        probes, first = groups.get(key, ((), outcome))
        groups[key] = ((*probes, probe), first)
    return tuple(groups.values())


def list_notes(variant: Variant) -> tuple[str, ...]:
    """Return what was noted next to the time and the result, each once."""
    own = {probe.name for probe in PROBES.values() if probe.section != SPEED}
    probes = [probe for probe in variant.outcomes if probe not in own]
    return tuple(dict.fromkeys(note for probe in probes for note in list_notes_of(variant, probe)))


def list_notes_of(variant: Variant, probe: str) -> tuple[str, ...]:
    """Return what one probe noted next to its numbers, and what its details say."""
    outcome = variant.outcomes.get(probe)
    if outcome is None:
        return ()
    return (*describe_details(outcome.details, raises=variant.planned.raises), *outcome.notes)
