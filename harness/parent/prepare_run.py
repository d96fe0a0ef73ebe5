"""A run's folder, manifest and description: what has to be there before anything is measured, and when it is whole."""

from __future__ import annotations

import fcntl
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from harness.machine.places import Place
from harness.parent.fork_client import ForkServer
from harness.plan.messages import Describe, Description, Problem
from harness.record import (
    INCOMPLETE,
    SCHEMA_VERSION,
    Environment,
    Manifest,
    PlannedCase,
    RecordError,
    Run,
    RunFolder,
    Settings,
    Status,
    now,
    read_manifest,
)
from harness.record.differences import find_differences, flatten
from harness.version import __version__

FREE_BYTES = 300 * 2**20
"""A default run of the own suites writes some 60 MB, half of it traces; while it goes on, its cache beside."""

DESCRIBE_LIMIT_S = 300.0

_SAME_TO_RESUME = (
    *("python", "packages", "device_kind", "device_count", "processor", "allowed_cores", "cpu_quota", "host"),
    *("variables", "threads", "x64", "matmul_precision", "image"),
)
"""What must be as it was when the run began: two machines or two jaxes do not make one run."""


class UsageError(Exception):
    """What was asked cannot be done; the message says what to do instead. Exit code 2."""


def describe_suites(
    server: ForkServer, suites: tuple[str, ...], place: Place, level: str, *, devices: bool
) -> Description:
    """Catalogue and environment, as a child sees them.

    Raises:
      UsageError: A suite that cannot be used, or no device.
    """
    ended = server.run(
        lambda result: Describe(suites=suites, place=place, level=level, devices=devices, result=result),
        stage_limit_s=DESCRIBE_LIMIT_S,
    )
    if isinstance(ended.answer, Description):
        return ended.answer
    if isinstance(ended.answer, Problem):
        raise UsageError(ended.answer.message)
    how = "was silent too long" if ended.timed_out else f"ended by signal {ended.signal} or code {ended.code}"
    raise UsageError(f"the suites cannot be listed: the process that imports them {how}\n{ended.stderr}")


def make_folder(out: Path, run_id: str) -> RunFolder:
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
    return RunFolder(folder)


@contextmanager
def lock_folder(folder: RunFolder) -> Iterator[None]:
    """Holds a run's folder against a second process.

    Raises:
      UsageError: Another process is writing this run.
    """
    handle = os.open(folder.path, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    except BlockingIOError as error:
        raise UsageError(f"another process is writing {folder.path}; wait for it, or end it") from error
    finally:
        os.close(handle)


def make_manifest(
    run_id: str, backend: str, settings: Settings, environment: Environment, cases: tuple[PlannedCase, ...]
) -> Manifest:
    """What the run sets out to do."""
    return Manifest(
        schema_version=SCHEMA_VERSION,
        run_id=run_id,
        tool_version=__version__,
        started=now(),
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
    sides = [flatten(manifest.environment), flatten(description.environment)]
    for name in find_differences(sides, of=_SAME_TO_RESUME):
        was, now_is = (side.get(name) for side in sides)
        raise UsageError(f"cannot resume {manifest.run_id}: its {name} was {was}, here it is {now_is}; start a new run")
    today = {case.id: case for case in description.cases}
    for case in manifest.cases:
        if (now := today.get(case.id)) is None or (now.definition, now.variants) != (case.definition, case.variants):
            raise UsageError(f"cannot resume {manifest.run_id}: {case.name} has changed since; start a new run")


def is_complete(run: Run) -> bool:
    """Whether every planned case was measured and nothing failed; an empty run is not complete."""
    outcomes = [outcome for case in run.cases for variant in case.variants for outcome in variant.outcomes.values()]
    measured = any(outcome.status is Status.OK for outcome in outcomes)
    return measured and not run.lost() and not any(outcome.status in INCOMPLETE for outcome in outcomes)


def load_for_resume(folder: RunFolder) -> Manifest:
    """The manifest of a run to finish.

    Raises:
      UsageError: There is no such run, or its manifest is damaged.
    """
    try:
        return read_manifest(folder)
    except RecordError as error:
        raise UsageError(f"cannot resume: {error}") from error
