"""A container that offers its environment to a run in another one: processes of both take turns."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from jaxmeter.launch.containers import Mount, make_writable_folders, run_arguments
from jaxmeter.launch.execution import keep_container
from jaxmeter.launch.jobs import Job, measuring_container, prepare_image


@contextmanager
def offer_environment(job: Job) -> Iterator[Path]:
    """For the time of a block: the socket where servers of a job's image are asked for, as `--lock-step` takes it.

    Args:
      job: The run that asks for them, with the image that they are of. It sees the same folders.
    Raises:
      UsageError: The container cannot be started.
    """
    with tempfile.TemporaryDirectory(prefix="jaxmeter-") as name:
        folder = Path(name)
        socket = folder / "gateway"
        measuring = measuring_container(job)
        container = replace(
            measuring,
            arguments=("-m", "jaxmeter.harness.parent.arms", str(socket)),
            mounts=(*measuring.mounts, Mount(folder, folder, writable=True)),
            has_terminal=False,
            reads_input=True,
        )
        make_writable_folders(container.mounts)
        command = run_arguments(job.engine, prepare_image(job, container), job.caller)
        with keep_container(job.engine, command, container.name, is_ready=socket.is_socket):
            yield socket
