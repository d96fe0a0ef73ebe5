"""Which folders of this machine a container sees. Each has the same path inside, so no argument changes its meaning."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from jaxmeter.launch.options import UsageError, read_options

if TYPE_CHECKING:
    from jaxmeter.launch.runs import PlannedRun

REPORTS = "reports"

CHECKOUT = "--baseline-checkout"
"""The option that names the folder of an earlier run's code."""

CONTAINERS_OWN = tuple(
    map(
        Path, ("/bin", "/dev", "/etc", "/lib", "/lib64", "/opt/jaxmeter", "/opt/venv", "/proc", "/sbin", "/sys", "/usr")
    )
)
SHARED = (Path("/opt"), Path("/tmp"), Path("/var"), Path("/var/tmp"))
"""Folders in which a container has files of its own; other folders can be mounted next to these files."""


@dataclass(frozen=True)
class Mount:
    """A folder or file of this machine, at `target` in the container; read-only unless results go there."""

    source: Path
    target: Path
    writable: bool = False


def mounts_for(arguments: Sequence[str], run: PlannedRun, here: Path) -> tuple[Mount, ...]:
    """What a run reads and writes: results, reports, the user's suites and data.

    Only the command line names folders. A record may come from somebody else, so its own suites and data are not seen.

    Args:
      arguments: The harness' own.
      run: What they ask for.
      here: The working folder, absolute.
    Raises:
      UsageError: A folder that cannot be mounted, is not there or may not be written.
    """
    results = _absolute(run.folder, here).parent
    given = read_options(arguments, "--suites", "--data", "--against", "--suspects", "--lock-step", CHECKOUT)
    data, against, suspects = map(given.get, ("--data", "--against", "--suspects"))
    readable = [path for name in given.values.get("--suites", ()) if (path := _suite_folder(name, here)) is not None]
    readable += [_find_run(against, results, here)] if against else []
    readable += [_absolute(suspects, here)] if suspects else []
    if checkout := given.get(CHECKOUT):
        readable.append(_existing_folder(_absolute(checkout, here), CHECKOUT))
        _check_below(given.values.get("--suites", ()), here)
    if data:
        readable.append(_existing_folder(_absolute(data, here), "--data"))
    _check_mountable(results, "--out")
    writable = dict.fromkeys((results, here / REPORTS))
    lock_step = given.get("--lock-step")
    if lock_step and (socket := _absolute(lock_step, here)).is_socket():  # where another container is asked
        writable[socket.parent] = None
    return (
        *(Mount(path, path) for path in dict.fromkeys(readable) if path not in writable),
        *(Mount(path, path, writable=True) for path in writable),
    )


def _find_run(given: str, results: Path, here: Path) -> Path:
    """A run by its folder, or by its id among the results, as the harness reads it."""
    path = _absolute(given, here)
    return path if path.is_dir() else results / given


def report_mounts(runs: Sequence[Path], here: Path) -> tuple[Mount, ...]:
    """What a report of these runs reads and writes."""
    folders = dict.fromkeys(_absolute(run, here) for run in runs)
    return (*(Mount(path, path) for path in folders), Mount(here / REPORTS, here / REPORTS, writable=True))


def make_writable_folders(mounts: Sequence[Mount]) -> None:
    """Makes the folders that results go to; left to the engine they would belong to root.

    Raises:
      UsageError: One cannot be made or written.
    """
    for mount in mounts:
        if not mount.writable:
            continue
        try:
            mount.source.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryFile(dir=mount.source):
                pass
        except (FileExistsError, NotADirectoryError):
            raise UsageError(f"{mount.source}: a file is in the way; write elsewhere with --out DIR") from None
        except OSError as error:
            raise UsageError(
                f"{mount.source} cannot be written ({error.strerror or error}){_owner(mount.source)}; "
                "write elsewhere with --out DIR, or have its owner give it to you (sudo chown)"
            ) from None


def _owner(folder: Path) -> str:
    """Whose a folder is, or the nearest one around it that is there."""
    try:
        there = next(path for path in (folder, *folder.parents) if path.exists())
        return f": {'it' if there == folder else there} belongs to {there.owner()}"
    except (OSError, KeyError, StopIteration):
        return ""


def _suite_folder(name: str, here: Path) -> Path | None:
    """The folder to mount for one --suites; None where the name is a module of the image."""
    path = _absolute(name, here)
    is_module = all(part.isidentifier() for part in name.split("."))
    if path.suffix == ".py" or path.is_dir() or not is_module:
        if not path.exists():
            raise UsageError(f"--suites {name}: it is not there; --suites takes a module name, a .py file or a folder")
        folder = path if path.is_dir() else path.parent  # a suite may import its neighbours
        _check_mountable(folder, f"--suites {name}")
        return folder
    package = here / name.partition(".")[0]  # python -m finds modules in the working folder
    if package.is_dir():
        return package
    module = package.with_suffix(".py")
    return module if module.is_file() else None


def _check_below(suites: Sequence[str], here: Path) -> None:
    """Check that suites lie below the working folder: a container sees no repository around others."""
    for name in suites:
        if not _absolute(name, here).is_relative_to(here):
            raise UsageError(
                f"--suites {name}: lies outside {here}; with {CHECKOUT}, a container needs suites below the current "
                "folder: start in the folder that holds them, or use --runtime local"
            )


def _existing_folder(path: Path, option: str) -> Path:
    if not path.is_dir():
        raise UsageError(f"{option} {path}: no such folder")
    _check_mountable(path, option)
    return path


def _check_mountable(folder: Path, option: str) -> None:
    """Raises UsageError for a folder that would show all of a home, or hide what the container itself needs."""
    if Path.home().is_relative_to(folder):  # the root folder too
        raise UsageError(f"{option}: the container would see all of {folder}; use a folder of its own")
    if folder in SHARED or any(folder.is_relative_to(taken) for taken in CONTAINERS_OWN):
        raise UsageError(f"{option}: {folder} is where a container has files of its own; use another folder")


def _absolute(path: str | Path, here: Path) -> Path:
    """As the harness will read it: home as ~, relative to the working folder, links left alone."""
    return Path(os.path.abspath(here / Path(path).expanduser()))  # noqa: PTH100  resolve() would follow links
