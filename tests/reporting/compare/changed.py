"""Two made-up runs, the later one changed."""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from jaxmeter.harness.metrics.reading import Run
from jaxmeter.harness.record import NumericsDetails, Outcome, PlannedCase, Replay, RunRecord, Status
from jaxmeter.reporting.compare.changes import find_changes
from jaxmeter.reporting.compare.verdicts import TIME, Change, Changes, Verdict
from tests import samples

BEFORE, AFTER = "before", "after"
CALIBRATIONS = (1e-3,) * 5


def checked(fingerprint: str | None = "aa", **changes: object) -> Outcome:
    """A correct result of a program."""
    return Outcome(
        status=Status.OK, values={"max_error": (1e-7,)}, details=NumericsDetails(fingerprint=fingerprint), **changes
    )


def timed(
    time_s: float, *, scatter: float = 1.0, calibration_s: Sequence[float] = CALIBRATIONS, **details: object
) -> Outcome:
    """Processes around a time."""
    return samples.timing(time_s, spread=scatter, calibration_s=tuple(calibration_s), **details)


def case(
    name: str = "selu",
    *,
    source: str = "0" * 16,
    replayed: bool = False,
    in_lock_step: bool = False,
    definition: str = "0" * 16,
) -> PlannedCase:
    """A case of one jitted variant, perhaps with the program that the earlier run kept."""
    own = msgspec.structs.replace(samples.planned_variant(f"{name}:jit"), source=source)
    variants = [own]
    if replayed:
        replay = Replay(run=BEFORE, variant=own.name, sha256=None if in_lock_step else "0" * 64)
        mode = "lock-step" if in_lock_step else "replay"
        replay = msgspec.structs.replace(replay, fingerprint=None if in_lock_step else "aa")
        variants.append(
            msgspec.structs.replace(own, name=f"{own.name} before", mode=mode, same_as=own.name, replays=replay)
        )
    return msgspec.structs.replace(samples.planned_case(name, variants=variants), definition=definition)


def run(
    run_id: str, *pairs: tuple[PlannedCase, Mapping[str, Mapping[str, Outcome]] | None], **changes: object
) -> RunRecord:
    """A run with outcomes by variant and probe; None for a case that was lost."""
    started = {BEFORE: "2026-03-01T00:00:00Z"}.get(run_id, "2026-03-02T00:00:00Z")
    made = [(planned, None if outcomes is None else samples.record(planned, outcomes)) for planned, outcomes in pairs]
    changes.setdefault("against", BEFORE if run_id != BEFORE else None)
    return samples.run(*made, run_id=run_id, **{"started": started, **changes})


def plain(
    run_id: str, time_s: float = 1e-4, *, fingerprint: str = "aa", source: str = "0" * 16, **more: object
) -> RunRecord:
    """A run of one case and one jitted variant."""
    probes = {"numerics": checked(fingerprint), "timing": timed(time_s)}
    probes |= more.pop("probes", {})  # type: ignore[arg-type]
    return run(run_id, (case(source=source), {"selu:jit": probes}), **more)


def counting(run_id: str, *, probe: str = "compilation", **values: object) -> RunRecord:
    """A run of one program with exact numbers by metric: one, or a tuple of one for each process."""
    known = {name: number if isinstance(number, tuple) else (number,) for name, number in values.items()}
    return plain(run_id, probes={probe: Outcome(status=Status.OK, values=known)})


def replayed(
    ratio: float,
    *,
    fingerprint: str = "bb",
    of_replay: str = "aa",
    processes: int = 5,
    scatter: float = 0.2,
    contended: int = 0,
    wobble: float = 1,
    name: str = "selu",
    **more: object,
) -> RunRecord:
    """A run that timed the earlier program beside today's, which takes `ratio` times as long."""
    planned, own = case(name, source="1" * 16, replayed=True), f"{name}:jit"
    before = timed(
        1e-4, baseline_s=1e-4 * ratio, processes=processes, scatter=scatter, calibration_s=(1e-3,) * processes
    )
    now = timed(
        1e-4 * ratio, scatter=wobble, processes=processes, calibration_s=(1e-3,) * processes, contended=contended
    )
    outcomes = {
        own: {"numerics": checked(fingerprint), "timing": now},
        f"{own} before": {"numerics": checked(of_replay), "timing": before},
    }
    return run(AFTER, (planned, outcomes), **more)


def in_lock_step(ratio: float, **more: object) -> RunRecord:
    """A run beside which the earlier run's environment ran its own code, which takes 1 / `ratio` of the time."""
    made = replayed(ratio, **{"settings": samples.settings(lock_step_cores=1), **more})
    planned = case(source="1" * 16, replayed=True, in_lock_step=True)
    (record,) = made.cases
    own, before = record.variants
    before = msgspec.structs.replace(before, outcomes={"timing": before.outcomes["timing"]})
    cases = (msgspec.structs.replace(record, variants=(own, before)),)
    return msgspec.structs.replace(made, manifest=msgspec.structs.replace(made.manifest, cases=(planned,)), cases=cases)


def with_fusions(made: RunRecord, count: int) -> RunRecord:
    """The run, the program of its first variant compiled to so many fusions."""
    (record,) = made.cases
    first, *others = record.variants
    compilation = Outcome(status=Status.OK, values={"hlo_fusions": (count,)})
    first = msgspec.structs.replace(first, outcomes={**first.outcomes, "compilation": compilation})
    return msgspec.structs.replace(made, cases=(msgspec.structs.replace(record, variants=(first, *others)),))


def compare(before: RunRecord, after: RunRecord, **options: Any) -> Changes:
    """What changed."""
    return find_changes(Run(before), Run(after), **options)


def time_of(changes: Changes) -> Change:
    """The verdict about the one time."""
    (found,) = changes.times
    return found


def tell(changes: Changes) -> list[tuple[str, str, Verdict]]:
    """Variant, metric and verdict of all but times."""
    return [(one.variant, one.metric, one.verdict) for one in changes.entries if one.metric != TIME]
