"""The command line of a hardened container: options, mounted folders, devices. Pure functions without an engine."""

from __future__ import annotations

import csv
import hashlib
import io
import os
import platform
import secrets
import shlex
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from jaxmeter.launch.engines import Ask, Engine
from jaxmeter.launch.host import Host, Observation, Obstacle, read_text
from jaxmeter.launch.options import UsageError, read_options
from jaxmeter.launch.request import Request

if TYPE_CHECKING:
    from jaxmeter.launch.runs import PlannedRun


FORWARDED_PREFIXES = ("JAX_", "XLA_", "TPU_")
FORWARDED = frozenset(
    {
        "CUDA_VISIBLE_DEVICES",
        "LIBTPU_INIT_ARGS",
        "MALLOC_ARENA_MAX",
        "MKL_NUM_THREADS",
        "NO_COLOR",
        "NVIDIA_TF32_OVERRIDE",
        "OMP_NUM_THREADS",
        "OPENBLAS_NUM_THREADS",
        "TF_CPP_MIN_LOG_LEVEL",
    }
)
"""What steers JAX goes in; nothing else of the caller's environment does."""

NOT_FORWARDED = frozenset({"JAX_COMPILATION_CACHE_DIR", "JAX_PLATFORMS", "TPU_LIBRARY_PATH"})
"""The harness decides on the first two; the third is a file of the machine, which the image has itself."""

PROTECTION = ("--cap-drop", "ALL", "--security-opt", "no-new-privileges")

HOST_NAME = "jaxmeter"
"""A container's own id would end up in the names of profiler captures."""

CONTAINER_CODE = Path("/opt/jaxmeter")


@dataclass(frozen=True)
class Caller:
    """The user who runs a container, and where: a container takes these over, so that results belong to the caller.

    Args:
      uid: The caller's user id.
      gid: The caller's group id.
      name: The caller's name; the harness removes it from what it records.
      home: The caller's home folder; the harness records it as `~`.
      folder: The working folder, absolute.
      host: The name that distinguishes this machine from others in records.
      limits: Most open files (`nofile`) and processes (`nproc`) that the caller may have; -1 is no limit.
    """

    uid: int
    gid: int
    name: str
    home: Path
    folder: Path
    host: str
    limits: Mapping[str, int] = field(default_factory=dict)


def caller_here(variables: Mapping[str, str]) -> Caller:
    """The user of this process."""
    return Caller(
        uid=os.getuid(),
        gid=os.getgid(),
        name=variables.get("USER") or variables.get("LOGNAME") or "jaxmeter",
        home=Path.home(),
        folder=Path.cwd(),
        # As the harness would: a hash, since the name itself is nobody else's business.
        host=hashlib.sha256(platform.node().encode()).hexdigest()[:8],
        limits=_limits(),
    )


@dataclass(frozen=True)
class Container:
    """One container to run.

    Args:
      image: Name or id.
      arguments: Arguments of python3.
      name: A unique name, by which it can always be removed, and never a container of another run.
      mounts: Folders that it sees.
      variables: Environment variables, in addition to those of every container.
      devices: Options that give it devices.
      network: The engine's name for it; `none` unless the backend needs one.
      shared_memory: Size of /dev/shm.
      as_root: Run as the container's root, with the right to write into the caller's folders.
      privileged: Take every protection away and hand over every device.
      has_terminal: Whether a person watches it on a terminal.
      reads_input: Whether it reads its standard input, which ends with whoever started it.
    """

    image: str
    arguments: tuple[str, ...]
    name: str = field(default_factory=lambda: f"jaxmeter-{secrets.token_hex(6)}")
    mounts: tuple[Mount, ...] = ()
    variables: Mapping[str, str] = field(default_factory=dict)
    devices: tuple[str, ...] = ()
    network: str = "none"
    shared_memory: str = "1g"
    as_root: bool = False
    privileged: bool = False
    has_terminal: bool = False
    reads_input: bool = False


def run_arguments(engine: Engine, container: Container, caller: Caller) -> list[str]:
    """The command line that runs a container and removes it afterwards.

    Never --cpus: a quota stops a process in the middle of what is timed. `--cpuset-cpus` is the way to fewer cores.
    """
    variables = {
        "HOME": str(caller.home),
        "USER": caller.name,
        "LOGNAME": caller.name,
        "JAXMETER_HOST": caller.host,
        **container.variables,
    }
    return [
        *(engine.client, "run", "--rm", "--init", "--name", container.name, "--hostname", HOST_NAME),
        *(("--interactive",) if container.has_terminal or container.reads_input else ()),
        *(("--tty",) if container.has_terminal else ()),
        *user_arguments(engine, caller, as_root=container.as_root),
        "--read-only",
        *tmpfs_arguments(caller, container.mounts),
        *(("--privileged",) if container.privileged else PROTECTION),
        # Relabelling would change the caller's own files; without a label they can be read as they are.
        *(("--security-opt", "label=disable") if engine.selinux else ()),
        *limit_arguments(engine, caller),
        *("--network", container.network, "--shm-size", container.shared_memory),
        *container.devices,
        *(word for mount in container.mounts for word in ("--mount", mount_value(mount))),
        *("--workdir", str(caller.folder)),
        *(word for name, value in variables.items() for word in ("--env", f"{name}={value}")),
        *("--entrypoint", "python3", container.image),
        *container.arguments,
    ]


def user_arguments(engine: Engine, caller: Caller, *, as_root: bool) -> tuple[str, ...]:
    """Options that make results belong to the caller, and not to root."""
    host_users = ("--userns", "host") if engine.remapped else ()
    if as_root:
        return (*host_users, "--user", "0:0", "--cap-add", "DAC_OVERRIDE", "--cap-add", "CHOWN")
    own = f"{caller.uid}:{caller.gid}"
    if engine.rootless and engine.kind == "podman":
        return ("--userns", "keep-id", "--user", own)
    if engine.rootless:
        return ("--user", "0:0")  # the container's root is the caller
    return (*host_users, "--user", own)


def tmpfs_arguments(caller: Caller, mounts: Sequence[Mount]) -> tuple[str, ...]:
    """Return the options for temporary folders, which a container may write. `exec`: compilers load what they wrote."""
    taken = {Path("/"), *(mount.target for mount in mounts)}  # an engine refuses two things in one place
    return tuple(
        word
        for folder in dict.fromkeys((Path("/tmp"), caller.home))
        if folder not in taken
        for word in ("--tmpfs", f"{folder}:rw,exec,nosuid,nodev,mode=1777")
    )


def limit_arguments(engine: Engine, caller: Caller) -> tuple[str, ...]:
    """The caller's limits: podman as root would raise them to defaults, which fails where even root may not."""
    if engine.kind != "podman" or engine.rootless:
        return ()
    return tuple(word for name, value in caller.limits.items() for word in ("--ulimit", f"{name}={value}:{value}"))


def forwarded_variables(variables: Mapping[str, str]) -> dict[str, str]:
    """The caller's variables that go into a container."""
    return {
        name: value
        for name, value in sorted(variables.items())
        if (name in FORWARDED or name.startswith(FORWARDED_PREFIXES)) and name not in NOT_FORWARDED
    }


def own_image_mounts(checkout: Path) -> tuple[Mount, ...]:
    """Return jaxmeter's code, for an image that lacks it."""
    return (Mount(checkout / "jaxmeter", CONTAINER_CODE / "jaxmeter"),)


def mount_value(mount: Mount) -> str:
    """The value of --mount, which engines read as a line of comma-separated values."""
    fields = ["type=bind", f"source={mount.source}", f"target={mount.target}"]
    line = io.StringIO()
    csv.writer(line, lineterminator="").writerow(fields if mount.writable else [*fields, "readonly"])
    return line.getvalue()


def quote_command(command: Sequence[str]) -> str:
    """A command line as it would be typed."""
    return shlex.join(command)


def _limits() -> dict[str, int]:
    """This process' hard limits. Of processes never more than process ids: podman lowers its own to that."""
    import resource  # not on every system that a launcher can run on

    processes = resource.getrlimit(resource.RLIMIT_NPROC)[1]
    ids = read_text(Path("/proc/sys/kernel/pid_max"))
    if ids.isdigit():
        processes = int(ids) if processes == resource.RLIM_INFINITY else min(processes, int(ids))
    return {"nofile": resource.getrlimit(resource.RLIMIT_NOFILE)[1], "nproc": processes}


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


WITHOUT_DEVICE = "without the device, measure on this machine's processor: --backend cpu"


@dataclass(frozen=True)
class Devices:
    """One kind of device. A kind with only a name exists on every machine, and every container can use it.

    Args:
      name: Its name in the doctor's table and in the list of nox sessions.
      describe: Describes the machine's devices of this kind, in a phrase; None if there is nothing to look for.
      find_problems: Finds problems that prevent its use, most fundamental first. The engine is None for a local run.
      find_warnings: Finds what will be missing from the results, though times are right. The second argument is whether
        the run has the rights of root.
      warnings_row: Name of the warnings in the doctor's table.
      find_other_use: Makes rows that show whether something else uses it now.
      other_use_row: Name of these rows in the doctor's table.
      container_arguments: Options that give it to a container.
      container_variables: Environment variables that go with these options.
    """

    name: str
    describe: Callable[[Host], str] | None = None
    find_problems: Callable[[Request, Host, Engine | None], list[Obstacle]] = lambda request, host, engine: []
    find_warnings: Callable[[Host, bool], list[Obstacle]] = lambda host, is_root: []
    warnings_row: str = ""
    find_other_use: Callable[[Ask], list[Observation]] = lambda ask: []
    other_use_row: str = ""
    container_arguments: Callable[[Engine, Request, Host], tuple[str, ...]] = lambda engine, request, host: ()
    container_variables: Mapping[str, str] = field(default_factory=dict)
