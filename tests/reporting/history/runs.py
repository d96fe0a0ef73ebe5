"""Made-up runs of one machine, night after nightly run."""

from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec

from jaxmeter.harness.metrics.reading import Run
from jaxmeter.harness.record import NumericsDetails, Outcome, PlannedCase, RunFolder, RunRecord, Status
from jaxmeter.reporting.load import Loaded
from jaxmeter.reporting.view.runs import label_runs
from tests import samples

MACHINE = "sample machine"
CALIBRATION_S = 1e-4
REVISIONS = ("a" * 40, "b" * 40)


def night(number: int, time_s: float, **changes: Any) -> RunRecord:
    """One run; see `case_of_night` for what can be changed of its only case."""
    own = {
        name: changes.pop(name) for name in tuple(changes) if name in ("speed", "program", "peak", "contended", "case")
    }
    planned, record = case_of_night(time_s, **own)
    told = {
        "run_id": f"run-{number:03}",
        "started": f"2026-{1 + number // 28:02}-{1 + number % 28:02}T02:00:00Z",
        "machine": MACHINE,
        "ended": f"2026-{1 + number // 28:02}-{1 + number % 28:02}T02:30:00Z",
        **changes,
    }
    return samples.run((planned, record), **told)


def case_of_night(
    time_s: float,
    *,
    speed: float = 1.0,
    program: str = "p",
    peak: int = 1000,
    contended: int = 0,
    case: PlannedCase | None = None,
) -> tuple[PlannedCase, Any]:
    """A case with one variant.

    Args:
      time_s: Normalised, of a machine whose calibration loop takes CALIBRATION_S.
      speed: How many times faster the machine was that nightly run.
    """
    planned = case or samples.planned_case(variants=("selu:jit",))
    numerics = Outcome(status=Status.OK, values={"max_error": (0.0,)}, details=NumericsDetails(fingerprint=program))
    outcomes = {
        "numerics": numerics,
        "timing": samples.timing(time_s / speed, calibration_s=(CALIBRATION_S / speed,) * 5, contended=contended),
        "memory": samples.memory(peak, 0, 0),
    }
    return planned, samples.record(planned, {"selu:jit": outcomes})


def nights(count: int, time_s: Callable[[int], float], **changes: Callable[[int], Any]) -> list[RunRecord]:
    """Runs whose properties follow from their number; no two take the same time."""
    return [
        night(
            number,
            time_s(number) * (samples.WOBBLE[number % len(samples.WOBBLE)] + 1e-6 * number),
            **{name: make(number) for name, make in changes.items()},
        )
        for number in range(count)
    ]


def environment_of(number: int, at: int, **changes: Any) -> Any:
    """The sample's environment; from a run on with another revision and other changes."""
    later = number >= at
    return samples.environment(git_revision=REVISIONS[later], **(changes if later else {}))


def snapshots(runs: Iterable[RunRecord]) -> list[Run]:
    """As a report takes them."""
    return [replace(run, lent=run.common_speed) for run in label_runs(load_all(runs).runs)]


def load_all(runs: Iterable[RunRecord]) -> Loaded:
    """As if they had been read from folders."""
    return Loaded(tuple(Run(run, RunFolder(Path("results", run.manifest.run_id))) for run in runs), ())


def another_definition(run: RunRecord) -> RunRecord:
    """The run with another definition of its case."""
    cases = tuple(msgspec.structs.replace(case, definition="1" * 16) for case in run.manifest.cases)
    return msgspec.structs.replace(run, manifest=msgspec.structs.replace(run.manifest, cases=cases))
