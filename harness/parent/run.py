"""A run from its plan to its commit mark: folder, manifest, cases within the budget, run.json. No jax."""

from __future__ import annotations

import fcntl
import os
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from harness.machine.environment import allowed_cores
from harness.machine.places import BACKENDS, process_environment
from harness.parent.case import CaseMeasurement
from harness.parent.fork_client import ForkServer
from harness.parent.progress import Watcher
from harness.plan.cases import shuffled
from harness.plan.messages import Describe, Description, Problem
from harness.record import (
    INCOMPLETE,
    SCHEMA_VERSION,
    CaseRecord,
    Environment,
    Manifest,
    PlannedCase,
    RecordError,
    Run,
    Settings,
    Status,
    Stop,
    read_json,
    read_manifest,
    write_json,
)
from harness.version import __version__

FREE_BYTES = 300 * 2**20
"""A default run of the own suites writes some 60 MB, half of it traces; while it goes on, its cache beside."""

EVEN_SHARE = 0.5
"""Of the time left for each case that is left, what a case may take: some need more for the least that tells
anything, and none shall be lost for them. What they leave comes to the cases after them."""

DESCRIBE_LIMIT_S = 300.0
SCRATCH = "scratch"
STOP = "stopped.json"


_SAME_TO_RESUME = (
    *("python", "packages", "device_kind", "device_count", "processor", "allowed_cores", "cpu_quota", "host"),
    *("variables", "threads", "x64", "matmul_precision", "image"),
)
"""What must be as it was when the run began: two machines or two jaxes do not make one run."""


class UsageError(Exception):
    """What was asked cannot be done; the message says what to do instead. Exit code 2."""


@dataclass(frozen=True)
class Workplace:
    """Where processes run and where the run is written."""

    server: ForkServer
    backend: str
    folder: Path


@contextmanager
def measuring(
    backend: str, scratch: Path, data: str | None = None, suites: tuple[str, ...] = ()
) -> Iterator[ForkServer]:
    """A fork server for a backend.

    Args:
      scratch: Is removed at the end.
      data: The folder that suites may read.
      suites: Are imported only once, for many processes.
    """
    variables = process_environment(BACKENDS[backend], os.environ, allowed_cores=allowed_cores(), data=data)
    try:
        with ForkServer(variables, scratch, suites) as server:
            yield server
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def describe(server: ForkServer, suites: tuple[str, ...], backend: str, level: str, *, devices: bool) -> Description:
    """Catalogue and environment, as a child sees them.

    Raises:
      UsageError: A suite that cannot be used, or no device.
    """
    ended = server.run(
        lambda result: Describe(suites=suites, backend=backend, level=level, devices=devices, result=result),
        stage_limit_s=DESCRIBE_LIMIT_S,
    )
    if isinstance(ended.answer, Description):
        return ended.answer
    if isinstance(ended.answer, Problem):
        raise UsageError(ended.answer.message)
    how = "was silent too long" if ended.timed_out else f"ended by signal {ended.signal} or code {ended.code}"
    raise UsageError(f"the suites cannot be listed: the process that imports them {how}\n{ended.stderr}")


def new_folder(out: Path, run_id: str) -> Path:
    """Makes a run's folder.

    Raises:
      UsageError: The id is taken, the place cannot be written, or the disk has too little room.
    """
    if run_id != Path(run_id).name or run_id in ("", ".", ".."):
        raise UsageError(f"--run-id '{run_id}' cannot be a folder's name; use letters, digits, '-', '_' and '.'")
    folder = out / run_id
    try:
        folder.mkdir(parents=True)
    except FileExistsError as error:
        raise UsageError(
            f"the run id '{run_id}' is taken: {folder} exists; choose another, or finish it with --resume {folder}"
        ) from error
    except OSError as error:
        raise UsageError(f"cannot make {folder}: {error.strerror}; choose a writable place with --out DIR") from error
    if (free := shutil.disk_usage(folder).free) < FREE_BYTES:
        folder.rmdir()
        raise UsageError(
            f"{out} has {free / 2**20:.0f} MiB free, a run needs {FREE_BYTES / 2**20:.0f} MiB; "
            f"free some or choose another place with --out DIR"
        )
    return folder


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Holds a run's folder against a second process.

    Raises:
      UsageError: Another process is writing this run.
    """
    handle = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    except BlockingIOError as error:
        raise UsageError(f"another process is writing {folder}; wait for it, or end it") from error
    finally:
        os.close(handle)


def new_manifest(
    run_id: str, backend: str, settings: Settings, environment: Environment, cases: tuple[PlannedCase, ...]
) -> Manifest:
    """What the run sets out to do."""
    return Manifest(
        schema_version=SCHEMA_VERSION,
        run_id=run_id,
        tool_version=__version__,
        started=_now(),
        backend=backend,
        environment=environment,
        settings=settings,
        cases=cases,
    )


def check_resumable(manifest: Manifest, description: Description) -> None:
    """Raises UsageError where going on would put numbers of two different things into one run."""
    if description.environment is None:
        raise ValueError("a description with devices is needed")
    if manifest.tool_version != __version__:
        raise UsageError(f"cannot resume {manifest.run_id}: jaxmeter {manifest.tool_version} began it; start a new run")
    for name in _SAME_TO_RESUME:
        then, now = getattr(manifest.environment, name), getattr(description.environment, name)
        if then != now:
            raise UsageError(
                f"cannot resume {manifest.run_id}: its {name} was {then}, here it is {now}; start a new run"
            )
    today = {case.id: case for case in description.cases}
    for case in manifest.cases:
        if (now := today.get(case.id)) is None or (now.definition, now.variants) != (case.definition, case.variants):
            raise UsageError(f"cannot resume {manifest.run_id}: {case.name} has changed since; start a new run")


def finished_cases(folder: Path, manifest: Manifest) -> dict[str, CaseRecord]:
    """Case records that a run already holds; a damaged one counts as not measured."""
    found = {}
    for case in manifest.cases:
        path = folder / "cases" / case.id / "case.json"
        try:
            found[case.id] = read_json(path, CaseRecord)
        except RecordError:
            continue
    return found


def execute(manifest: Manifest, place: Workplace, watcher: Watcher, budget_s: float | None = None) -> Run:
    """Measures the manifest's cases that have no record yet, and writes the commit mark.

    Every case's record is on disk before the next begins. Interrupted or out of time, it leaves what was measured and
    why it stopped.

    Args:
      budget_s: For what is left of a resumed run; the manifest's own where it is None.
    """
    settings = manifest.settings
    budget_s = settings.budget_s if budget_s is None else budget_s
    used_up = f"the budget of {budget_s:g} s is used up"
    done = finished_cases(place.folder, manifest)
    todo = [case for case in shuffled(manifest.cases, settings.seed) if case.id not in done]
    start = time.monotonic()
    (place.folder / STOP).unlink(missing_ok=True)
    watcher.run_started(manifest, place.folder, len(todo), budget_s)
    try:
        for position, case in enumerate(todo):
            remaining = budget_s - (time.monotonic() - start)
            if remaining <= 0:
                watcher.case_lost(case, f"{used_up}; go on with --resume")
                continue
            watcher.case_started(case)
            left = len(todo) - position
            share = (EVEN_SHARE if left > 1 else 1) * remaining / left
            record = _measurement(case, manifest, place, share, watcher).measure()
            write_json(place.folder / "cases" / case.id / "case.json", record)
            done[case.id] = record
            watcher.case_ended(record, time.monotonic() - start)
    except KeyboardInterrupt:
        with suppress(OSError):  # a full disk must not hide the interruption
            write_json(place.folder / STOP, Stop(at=_now(), reason="it was interrupted"))
        raise
    finally:
        watcher.run_ended()
    run = Run(manifest=manifest, cases=tuple(done[case.id] for case in manifest.cases if case.id in done), ended=_now())
    if run.lost():
        write_json(place.folder / STOP, Stop(at=_now(), reason=used_up))
    else:
        write_json(place.folder / "run.json", run)
    return run


def _measurement(
    case: PlannedCase, manifest: Manifest, place: Workplace, share_s: float, watcher: Watcher
) -> CaseMeasurement:
    return CaseMeasurement(
        case=case,
        settings=manifest.settings,
        backend=manifest.backend,
        server=place.server,
        folder=place.folder / "cases" / case.id,
        cache=place.folder / SCRATCH / "cache",
        share_s=share_s,
        on_beat=watcher.beat,
        on_launch=watcher.launched,
    )


def complete(run: Run) -> bool:
    """Whether every planned case was measured and nothing failed; an empty run is not complete."""
    outcomes = [outcome for case in run.cases for variant in case.variants for outcome in variant.outcomes.values()]
    measured = any(outcome.status is Status.OK for outcome in outcomes)
    return measured and not run.lost() and not any(outcome.status in INCOMPLETE for outcome in outcomes)


def load_for_resume(folder: Path) -> Manifest:
    """The manifest of a run to finish.

    Raises:
      UsageError: There is no such run, or its manifest is damaged.
    """
    try:
        return read_manifest(folder)
    except RecordError as error:
        raise UsageError(f"cannot resume: {error}") from error


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
