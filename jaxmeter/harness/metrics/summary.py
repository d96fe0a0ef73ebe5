"""From the process files of a case to its summary. Pure, no jax: the same while measuring and on reading.

The process files are the record. A summary is derived: one by an older `statistics.VERSION` is made again from them.
"""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from itertools import pairwise

import msgspec

from jaxmeter.harness.metrics.across import DECISIVE_PROBES
from jaxmeter.harness.metrics.statistics import VERSION
from jaxmeter.harness.metrics.within import summarise
from jaxmeter.harness.record.cases import CaseRecord, PlannedCase, VariantRecord
from jaxmeter.harness.record.outcomes import NumericsDetails, Outcome, Status, TimingDetails, join
from jaxmeter.harness.record.processes import ProcessRecord
from jaxmeter.harness.record.settings import Settings
from jaxmeter.harness.record.wording import counted

Outcomes = dict[str, dict[str, Outcome]]
"""By variant and probe."""

TIMING = "timing"
"""The probe whose outcomes are made of samples."""

NOTHING_TO_COMPILE = "a target runs nothing, and without a run there is no result of a variant without a program"

SAME_PROGRAM = "not timed: it is the program that today's code compiles to"
"""Of a replay."""

NOT_REACHED = "the run stopped before"

ANOTHER_PROGRAM = (
    "compiled again when the run was resumed, the program is another: its processes cannot be joined; start a new run"
)


def summarise_case(
    planned: PlannedCase,
    settings: Settings,
    processes: Sequence[ProcessRecord],
    *,
    plan: Mapping[str, Sequence[str]] | None = None,
    begun: str = "",
) -> CaseRecord:
    """Return what the processes of a case say, as far as there are any.

    Args:
      processes: In their order.
      plan: By probe, the variants that it is to look at; what the processes themselves say where it is None.
      begun: When the case began, where it has no process.
    Raises:
      ValueError: The processes are not of one case.
    """
    plan = find_plan(processes) if plan is None else plan
    outcomes = find_outcomes(planned, settings, processes)
    _add_missing(outcomes, plan)
    rounds = group_rounds(processes)
    lost, cold = _find_lost(processes), _count_cold(processes)
    return CaseRecord(
        id=planned.id,
        name=planned.name,
        started=processes[0].started if processes else begun,
        elapsed_s=round(sum(process.elapsed_s for process in processes), 3),
        processes=len(rounds),
        variants=tuple(
            VariantRecord(
                name=name,
                outcomes={
                    probe: _conclude(outcome, settings, lost.get((probe, name)), cold[probe, name])
                    for probe, outcome in sorted(by_probe.items(), key=lambda item: _place(item[0], settings))
                },
            )
            for name, by_probe in outcomes.items()
        ),
        artifacts=tuple(artifact for process in processes for artifact in process.artifacts),
        notes=tuple(dict.fromkeys(note for process in processes for note in process.notes)),
        statistics_version=VERSION,
        files=len(processes),
        process_gap_s=_find_gap_s(rounds),
    )


def find_outcomes(planned: PlannedCase, settings: Settings, processes: Sequence[ProcessRecord]) -> Outcomes:
    """Return how each probe of each variant ended so far, whether or not it was timed often enough."""
    outcomes: Outcomes = {item.name: {} for item in planned.variants}
    for item in planned.variants:
        if item.skip is not None:
            outcomes[item.name]["numerics"] = Outcome(status=Status.SKIPPED, reason=item.skip)
    for process in processes:
        for variant, probe, outcome in _list_outcomes(process):
            if not process.refills and probe != TIMING and outcome.status is not Status.LOST:
                outcomes[variant][probe] = join(outcomes[variant].get(probe), outcome)
    if TIMING not in settings.probes:
        return outcomes
    rounds, ends = group_rounds(processes), _find_ends_of_timing(planned, processes, outcomes)
    looks = max((process.looks for process in processes), default=1)
    replaced = sum(process.replaces for process in processes)
    timed = {item.variant for records in rounds for record in records for item in record.variants}
    for name, by_probe in outcomes.items():
        if name in ends:
            by_probe[TIMING] = ends[name]
        elif name in timed:
            outcome = summarise(rounds, name, planned.baseline)
            assert isinstance(outcome.details, TimingDetails)
            details = msgspec.structs.replace(outcome.details, replaced=replaced, looks=looks)
            by_probe[TIMING] = msgspec.structs.replace(outcome, details=details)
    return outcomes


def group_rounds(processes: Sequence[ProcessRecord]) -> list[list[ProcessRecord]]:
    """Return the processes with samples, round by round."""
    rounds: dict[int, list[ProcessRecord]] = {}
    for process in processes:
        if process.variants:
            rounds.setdefault(process.index, []).append(process)
    return [rounds[index] for index in sorted(rounds)]


def find_plan(processes: Sequence[ProcessRecord]) -> dict[str, tuple[str, ...]]:
    """Return which probe is to look at which variants, as the processes say."""
    return {probe: names for process in processes for probe, names in process.plan.items()}


def find_fingerprint(outcomes: Mapping[str, Outcome]) -> str | None:
    """Return that of the program that was checked, and that timing processes load."""
    details = (outcome.details for outcome in outcomes.values())
    return next((each.fingerprint for each in details if isinstance(each, NumericsDetails)), None)


def _list_outcomes(process: ProcessRecord) -> Iterator[tuple[str, str, Outcome]]:
    """Variant, probe and outcome."""
    for variant, by_probe in process.outcomes.items():
        for probe, outcome in by_probe.items():
            yield variant, probe, outcome


def _find_ends_of_timing(
    planned: PlannedCase, processes: Sequence[ProcessRecord], outcomes: Outcomes
) -> dict[str, Outcome]:
    """Return by variant why it is no longer timed; this outcome replaces that of its processes."""
    ends = {}
    for item in planned.variants:
        if item.replays is not None and item.same_as is not None and item.same_as in outcomes:
            programs = [find_fingerprint(outcomes[name]) for name in (item.name, item.same_as)]
            if None not in programs and programs[0] == programs[1]:
                ends[item.name] = Outcome(status=Status.SKIPPED, reason=SAME_PROGRAM)
    for process in processes:
        if process.refills:
            ends |= _compare_programs(process, outcomes)
        elif process.left_out is not None:
            for name in process.assignments.get(TIMING, ()):
                timed = sum(item.variant == name for record in processes for item in record.variants)
                details = TimingDetails(processes=timed)
                ends[name] = Outcome(status=Status.SKIPPED, reason=process.left_out, details=details)
        else:
            failed = ((name, outcome) for name, probe, outcome in _list_outcomes(process) if probe == TIMING)
            ends |= {name: outcome for name, outcome in failed if outcome.status is not Status.LOST}
    return ends


def _compare_programs(refill: ProcessRecord, outcomes: Outcomes) -> dict[str, Outcome]:
    """By variant, why it is timed no more: it has another program since the run was resumed, or none any more."""
    ends = {}
    for variant, again in refill.outcomes.items():
        failed = next((outcome for outcome in again.values() if outcome.status not in (Status.OK, Status.LOST)), None)
        programs = [find_fingerprint(by_probe) for by_probe in (outcomes[variant], again)]
        if failed is not None:
            ends[variant] = failed
        elif None not in programs and programs[0] != programs[1]:
            ends[variant] = Outcome(status=Status.FAILED, reason=ANOTHER_PROGRAM)
    return ends


def _add_missing(outcomes: Outcomes, plan: Mapping[str, Sequence[str]]) -> None:
    """Add the outcomes that no process has: lost, if they were planned and no decisive probe has failed."""
    for name in outcomes.keys() - {name for names in plan.values() for name in names}:
        outcomes[name].setdefault("numerics", Outcome(status=Status.UNSUPPORTED, reason=NOTHING_TO_COMPILE))
    for name, by_probe in outcomes.items():
        if all(outcome.status is Status.OK for probe, outcome in by_probe.items() if probe in DECISIVE_PROBES):
            missing = [probe for probe, names in plan.items() if name in names and probe not in by_probe]
            by_probe.update(dict.fromkeys(missing, Outcome(status=Status.LOST)))


def _conclude(outcome: Outcome, settings: Settings, lost: str | None, cold: int) -> Outcome:
    """Return the outcome as it is recorded.

    Args:
      lost: Why the budget has ended a process of it.
      cold: How many cold processes of it were left out.
    """
    details, fewest = outcome.details, settings.fewest_rounds
    kept = settings.fewest_kept or fewest
    if outcome.status is Status.LOST:
        return msgspec.structs.replace(outcome, reason=lost or NOT_REACHED)
    if isinstance(details, TimingDetails) and outcome.status is Status.OK and details.processes < fewest:
        why = "" if lost is None else f"; {lost}"
        reason = f"timed by {details.processes} of at least {fewest} processes{why}"
        if details.processes >= kept:
            return msgspec.structs.replace(outcome, notes=(*outcome.notes, reason))
        return msgspec.structs.replace(outcome, status=Status.LOST, reason=reason)
    if cold:
        note = f"{counted(cold, 'cold process', 'cold processes')} left out: the budget had no time for more"
        return msgspec.structs.replace(outcome, notes=(*outcome.notes, note))
    return outcome


def _find_lost(processes: Sequence[ProcessRecord]) -> dict[tuple[str, str], str]:
    """By probe and variant, why the budget has ended the last process that was at it."""
    return {
        (probe, name): outcome.reason or NOT_REACHED
        for process in processes
        for name, probe, outcome in _list_outcomes(process)
        if outcome.status is Status.LOST
    }


def _count_cold(processes: Sequence[ProcessRecord]) -> Counter[tuple[str, str]]:
    """By probe and variant, how many processes were left out, timing apart."""
    return Counter(
        (probe, name)
        for process in processes
        if process.left_out is not None
        for probe, names in process.assignments.items()
        for name in names
        if probe != TIMING
    )


def _place(probe: str, settings: Settings) -> int:
    return settings.probes.index(probe) if probe in settings.probes else len(settings.probes)


def _find_gap_s(rounds: Sequence[Sequence[ProcessRecord]]) -> float | None:
    """Seconds from the start of one timing process to that of the next, their median; None of a single one."""
    moments = sorted(datetime.fromisoformat(min(record.started for record in records)) for records in rounds)
    gaps = [(after - before).total_seconds() for before, after in pairwise(moments)]
    return statistics.median(gaps) if gaps else None
