"""A run's folder, private folder, manifest and description: what has to be there before anything is measured."""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from jaxmeter.harness.machine.platforms import Platform
from jaxmeter.harness.parent.fork_client import ForkServer, ServerLostError
from jaxmeter.harness.parent.written import find_last_words
from jaxmeter.harness.plan.cases import is_unchanged
from jaxmeter.harness.plan.messages import Describe, Description, MeasurePeaks, PeaksFound, SuiteProblem
from jaxmeter.harness.plan.processes import PlannedProcess
from jaxmeter.harness.plan.settings import first_round_s
from jaxmeter.harness.record import (
    SCHEMA_VERSION,
    Environment,
    Manifest,
    PlannedCase,
    RecordError,
    RunFolder,
    RunRecord,
    Settings,
    Status,
    TimingDetails,
    UnreadableError,
    now,
    read_manifest,
    read_run,
    write_json,
)
from jaxmeter.harness.record.differences import find_differences, flatten
from jaxmeter.harness.record.environment import OwnPackage, Peaks, find_changed_packages
from jaxmeter.harness.record.self_test import SelfTest
from jaxmeter.harness.record.wording import counted
from jaxmeter.version import __version__

PREFIX = ".jaxmeter-scratch-"
"""`results/*` in a shell is without such a folder, and a container sees it, since it sees the results."""


@dataclass(frozen=True)
class Scratch:
    """What the processes of one run keep for each other."""

    path: Path

    def cache(self, cores: int | None) -> Path:
        """Return the run's private compilation cache of processes on so many cores; None for all.

        XLA splits a CPU program by the number of cores, which the key of JAX's cache lacks. Compiled on two cores and
        loaded on one, squared differences take 1.6 ms under jax 0.4.33; compiled on one, 2.0 ms.
        """
        return self.path / "cache" / ("all" if cores is None else str(cores))

    def inputs(self, case: str) -> Path:
        """Where the processes of a case, by its id, keep its inputs."""
        return self.path / "inputs" / case


def find_parent(run: Path) -> Path:
    """Return the folder around a run, which holds its scratch folder meanwhile: it has the room for it."""
    return Path(os.path.normpath(run / os.pardir))


@contextmanager
def make_scratch(parent: Path) -> Iterator[Path]:
    """A new folder that only this user reads (mode 0700), removed at the end.

    Folders that killed runs have left in `parent` are removed first.
    """
    _remove_abandoned(parent)
    path, lock = _make_locked(parent)
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)
        os.close(lock)


def _make_locked(parent: Path) -> tuple[Path, int]:
    """A new folder and the open file that holds its lock, by which others know that it is in use."""
    while True:
        # mkdtemp makes its path absolute since Python 3.12: messages show it, and a socket's has 107 bytes at most.
        path = parent / Path(tempfile.mkdtemp(dir=parent, prefix=PREFIX)).name
        with suppress(FileNotFoundError):  # another process has taken it for abandoned, before it was locked
            lock = os.open(path, os.O_RDONLY)
            fcntl.flock(lock, fcntl.LOCK_EX)
            if path.exists():
                return path, lock
            os.close(lock)


def _remove_abandoned(parent: Path) -> None:
    """Removes the scratch folders of this user that no process holds."""
    for path in parent.glob(f"{PREFIX}*"):
        with suppress(OSError):  # another user's, a link, in use, or just removed
            lock = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if os.fstat(lock).st_uid == os.geteuid():
                    shutil.rmtree(path, ignore_errors=True)
            finally:
                os.close(lock)


FREE_BYTES = 300 * 2**20
"""Free space that a run needs. A default run of jaxmeter's suites writes about 60 MB, half of it traces, and during the
run also a cache."""

DESCRIBE_LIMIT_S = 300.0
PEAKS_LIMIT_S = 120.0

SURELY_TOO_SMALL = 0.25
"""Share of the first round's estimate. Of 251 cases in examples/, small programs too, none took less than 0.35 of its
own; the checks of `selu` and `matmul[n=128]` took 0.3. Above it the run itself decides."""

_SAME_TO_RESUME = (
    *("python", "packages", "device_kind", "device_count", "processor", "allowed_cores", "cpu_quota", "host"),
    *("variables", "threads", "x64", "matmul_precision", "image"),
)
"""What must be as it was when the run began: two machines or two jaxes do not make one run."""


class UsageError(Exception):
    """What was asked cannot be done; the message says what to do instead. Exit code 2."""


class RunError(Exception):
    """What was begun is not whole; the message says what is kept, and where. Exit code 3."""


def describe_suites(
    server: ForkServer,
    suites: tuple[str, ...],
    platform: Platform,
    level: str,
    *,
    devices: bool,
    cores: int | None = None,
) -> Description:
    """Catalogue and environment, as a child sees them.

    Args:
      cores: On how many it runs; on all by default.
    Raises:
      UsageError: A suite that cannot be used, or no device.
      ServerLostError: Something has ended the process that imports the suites, or it does not end.
    """
    ended = server.run(
        lambda result: Describe(
            suites=suites, platform=platform, level=level, devices=devices, result=result, cores=cores
        ),
        stage_limit_s=DESCRIBE_LIMIT_S,
    )
    if isinstance(ended.answer, Description):
        return ended.answer
    if isinstance(ended.answer, SuiteProblem):
        raise UsageError(ended.answer.message)
    if (last_words := find_last_words(ended.stderr)) is not None:
        raise UsageError(last_words)
    words = "the suites cannot be listed: the process that imports them"
    if ended.timed_out:
        raise ServerLostError(f"{words} was silent for {DESCRIBE_LIMIT_S:.0f} s\n{ended.stderr}")
    if ended.signal is not None:
        raise ServerLostError(f"{words} was ended by signal {ended.signal}\n{ended.stderr}")
    raise UsageError(f"{words} exited with code {ended.code}\n{ended.stderr}")


def measure_peaks(server: ForkServer, platform: Platform, cores: int | None) -> Peaks | None:
    """Return how fast the platform's processor is; None where that process did not end well."""
    ended = server.run(
        lambda result: MeasurePeaks(platform=platform, result=result, cores=cores), stage_limit_s=PEAKS_LIMIT_S
    )
    return ended.answer.peaks if isinstance(ended.answer, PeaksFound) else None


@contextmanager
def begin_folder(out: Path, run_id: str) -> Iterator[RunFolder]:
    """A new run's folder, held against other processes; it is gone at the end where nothing was kept in it.

    Raises:
      UsageError: The id is taken, or the place cannot be written.
      RunError: The disk has too little room, or another process is writing this run.
    """
    folder = make_folder(out, run_id)
    with lock_folder(folder):
        _require_free(folder)  # another process may have begun here since
        for left in folder.path.iterdir():
            shutil.rmtree(left) if left.is_dir() else left.unlink()
        try:
            yield folder
        finally:
            with suppress(OSError):  # it holds something, or it is gone
                folder.path.rmdir()


def check_budget(processes: Sequence[PlannedProcess], settings: Settings, budget_s: float) -> None:
    """Raises UsageError where a budget is far from enough for every case to be looked at once."""
    needed_s = first_round_s(processes, settings)
    if budget_s >= SURELY_TOO_SMALL * needed_s:
        return
    cases = counted(len({process.case for process in processes}), "case")
    raise UsageError(
        f"--budget {budget_s:g}s is less than one round of {cases} takes (about {needed_s:.0f} s); "
        "give more, or select fewer cases"
    )


def make_folder(out: Path, run_id: str) -> RunFolder:
    """Makes a run's folder, or takes over one that a run has left before anything was measured.

    Raises:
      UsageError, RunError: As for `begin_folder`.
    """
    if run_id != Path(run_id).name or run_id in ("", ".", ".."):
        raise UsageError(f"--run-id '{run_id}' cannot be a folder's name; use letters, digits, '-', '_' and '.'")
    folder = RunFolder(out / run_id)
    try:
        folder.path.mkdir(parents=True)
    except FileExistsError:
        _require_free(folder)
    except OSError as error:
        words = f"cannot make {folder.path}: {error.strerror}; choose a writable place with --out DIR"
        raise UsageError(words) from error
    if (free := shutil.disk_usage(folder.path).free) < FREE_BYTES:
        with suppress(OSError):
            folder.path.rmdir()
        raise RunError(
            f"{out} has {free / 2**20:.0f} MiB free, a run needs {FREE_BYTES / 2**20:.0f} MiB; "
            f"free some or choose another folder with --out DIR"
        )
    return folder


def _require_free(folder: RunFolder) -> None:
    """Raises UsageError where a folder holds a run, or anything else."""
    if not _holds_nothing(folder):
        raise UsageError(
            f"the run id '{folder.path.name}' is taken: {folder.path} exists; "
            f"choose another, or finish it with --resume {folder.path}"
        )


def _holds_nothing(folder: RunFolder) -> bool:
    """Whether a folder is empty, but for what a run that was killed before its manifest leaves."""
    unfinished = f".{folder.manifest.name}."  # as write_bytes begins it
    try:
        names = [path.name for path in folder.path.iterdir()]
    except OSError:  # a file, or nothing that can be read
        return False
    return all(name.startswith(unfinished) for name in names)


@contextmanager
def lock_folder(folder: RunFolder) -> Iterator[None]:
    """Holds a run's folder against a second process.

    Raises:
      RunError: Another process is writing this run, or has just removed its folder. At the end: the folder was moved
        or removed meanwhile.
    """
    handle = os.open(folder.path, os.O_RDONLY)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise RunError(f"another process is writing {folder.path}; wait for it, or end it") from error
        if not _is_at(handle, folder.path):
            raise RunError(f"another process has removed {folder.path}; try again")
        moved = RunError(
            f"{folder.path} was moved or removed while the run went on: what was written before is where it is now, "
            f"what was written since is in a new folder of the old name"
        )
        try:
            yield
        except (OSError, RunError) as error:
            if _is_at(handle, folder.path):
                raise
            raise moved from error
        if not _is_at(handle, folder.path):
            raise moved
    finally:
        os.close(handle)


def _is_at(handle: int, path: Path) -> bool:
    """Whether an open folder is still the one at a path."""
    try:
        return os.path.samestat(os.fstat(handle), path.stat())
    except OSError:
        return False


def check_still_there(folder: RunFolder, manifest: Manifest) -> None:
    """Writes the manifest again where somebody has removed it: without it a run cannot be finished.

    Raises:
      RunError: The whole folder is gone.
    """
    if not folder.path.is_dir():
        raise RunError(f"{folder.path} was moved or removed while the run went on; nothing more is written there")
    if not folder.manifest.exists():
        write_json(folder.manifest, manifest)


def make_manifest(
    run_id: str,
    backend: str,
    settings: Settings,
    environment: Environment,
    cases: tuple[PlannedCase, ...],
    machine: str,
    *,
    self_test: SelfTest | None = None,
    against: str | None = None,
    confirms: bool = False,
    own_packages: tuple[OwnPackage, ...] | None = None,
) -> Manifest:
    """Return what the run sets out to do."""
    return Manifest(
        schema_version=SCHEMA_VERSION,
        run_id=run_id,
        tool_version=__version__,
        started=now(),
        backend=backend,
        environments={backend: environment},
        settings=settings,
        cases=cases,
        machine=machine,
        self_test=self_test,
        against=against,
        confirms=confirms,
        own_packages=own_packages,
    )


def check_resumable(manifest: Manifest, description: Description) -> None:
    """Raises UsageError where going on would put numbers of two different things into one run."""
    if description.environment is None:
        raise ValueError("a description with devices is needed")
    if manifest.tool_version != __version__:
        by = f"jaxmeter {manifest.tool_version}"
        raise UsageError(f"cannot resume {manifest.run_id}: {by} began it; start a new run")
    arms = [flatten(manifest.environment), flatten(description.environment)]
    for name in find_differences(arms, of=_SAME_TO_RESUME):
        was, now_is = (arm.get(name) for arm in arms)
        raise UsageError(f"cannot resume {manifest.run_id}: its {name} was {was}, here it is {now_is}; start a new run")
    for changed in find_changed_packages(manifest.own_packages, description.own_packages):
        if changed.is_known:
            raise UsageError(f"cannot resume {manifest.run_id}: {changed.describe()}; start a new run")
    today = {case.id: case for case in description.cases}
    for case in manifest.cases:
        if case.id not in today or not is_unchanged(case, today[case.id]):
            raise UsageError(f"cannot resume {manifest.run_id}: {case.name} has changed since; start a new run")


def count_left_out(run: RunRecord) -> int:
    """How many variants were not timed, or not any more, since they were too slow for the budget."""
    outcomes = [outcome for case in run.cases for variant in case.variants for outcome in variant.outcomes.values()]
    return sum(outcome.status is Status.SKIPPED and isinstance(outcome.details, TimingDetails) for outcome in outcomes)


def load_for_resume(folder: RunFolder) -> Manifest:
    """The manifest of a run to finish; the one in the commit mark where it has no other.

    Raises:
      UsageError: There is no such run, it was killed before anything was measured, or its manifest is damaged.
    """
    try:
        try:
            return read_manifest(folder)
        except UnreadableError:
            if not folder.mark.exists():
                raise
            return read_run(folder).manifest
    except RecordError as error:
        if _holds_nothing(folder):
            again = f"start it again with --run-id {folder.path.name}, by its own options"
            raise UsageError(f"cannot resume: nothing was measured in {folder.path}; {again}") from error
        raise UsageError(f"cannot resume: {error}") from error
