"""The command line of a hardened container, for each engine: pure functions, so tests need no engine."""

from __future__ import annotations

import csv
import hashlib
import io
import os
import platform
import secrets
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from jaxmeter.launch.engines import Engine
from jaxmeter.launch.host import read_text
from jaxmeter.launch.mounts import Mount

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
