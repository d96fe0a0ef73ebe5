"""TPUs: what a run on them needs, and how a container gets them."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from pathlib import Path

from jaxmeter.launch.containers import WITHOUT_DEVICE, Devices
from jaxmeter.launch.engines import Engine
from jaxmeter.launch.host import Host, Obstacle
from jaxmeter.launch.request import Request

LOCKED_MEMORY_BYTES = 64 * 2**30
"""TPUs reach the host's memory directly, and pin it. Source: the TPU container settings that marin settled on."""


def find_problems(
    request: Request, host: Host, engine: Engine | None, is_accessible: Callable[[str], bool] | None = None
) -> list[Obstacle]:
    """Return the problems that prevent the use of the TPUs, most fundamental first.

    Args:
      request: The request.
      host: The machine.
      engine: The engine that runs the container; None for the local environment.
      is_accessible: Returns whether a device file can be used.
    """
    if not host.tpu_nodes and not host.tpu_chips:
        looked = "looked for /dev/accel*, and for TPUs on the PCI bus with /dev/vfio/*"
        return [Obstacle(f"no TPU ({looked})", f"run on a TPU VM; {WITHOUT_DEVICE}")]
    if not host.tpu_nodes:
        return [
            Obstacle(
                f"{host.tpu_chips} TPU chips on the PCI bus, and no device file for them (/dev/accel*, /dev/vfio/*)",
                "load the machine's TPU driver, or create the VM again from a TPU image",
            )
        ]
    is_accessible = is_accessible or partial(_is_accessible, engine)
    closed = [node for node in host.tpu_nodes if not is_accessible(node)]
    has_root = engine is not None and not engine.rootless
    if closed and not (request.privileged and has_root):
        everything = "; or give the container everything: --privileged" if has_root else ""
        remedy = f"let a group of your user read and write them, or run as root{everything}"
        return [Obstacle(f"no permission for {', '.join(closed)}", remedy)]
    return []


def _is_accessible(engine: Engine | None, node: str) -> bool:
    """Whether a device file can be used: by the caller, or by a container, which a root engine puts into its group."""
    if os.access(node, os.R_OK | os.W_OK):
        return True
    try:
        return engine is not None and not engine.rootless and Path(node).stat().st_mode & 0o060 == 0o060
    except OSError:
        return False


def container_arguments(engine: Engine, request: Request, host: Host) -> tuple[str, ...]:
    """Options that hand the device files to a container one by one; with `--privileged` it has them all anyway."""
    if request.privileged:
        return ()
    return (
        *(word for node in host.tpu_nodes for word in ("--device", node)),
        *(word for group in _groups(engine, host) for word in ("--group-add", group)),
        *("--ulimit", f"memlock={LOCKED_MEMORY_BYTES}"),
    )


def _groups(engine: Engine, host: Host) -> tuple[str, ...]:
    """Groups that may use the device files: a container's user has none but its own."""
    if engine.rootless:
        return ("keep-groups",) if engine.kind == "podman" else ()
    return tuple(map(str, host.tpu_groups))


TPUS = Devices(
    name="TPUs",
    describe=lambda host: ", ".join(host.tpu_nodes),
    find_problems=find_problems,
    container_arguments=container_arguments,
)
