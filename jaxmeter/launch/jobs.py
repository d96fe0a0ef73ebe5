"""One measurement in a container, from the image to the page; containers that take turns."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from jaxmeter.launch.backends import BACKENDS
from jaxmeter.launch.containers import (
    CONTAINER_CODE,
    Caller,
    Container,
    Mount,
    forwarded_variables,
    make_writable_folders,
    mounts_for,
    own_image_mounts,
    quote_command,
    report_mounts,
    run_arguments,
)
from jaxmeter.launch.engines import Engine
from jaxmeter.launch.execution import (
    ask_container,
    build_command,
    build_image,
    keep_container,
    pull_image,
    run_container,
    say,
)
from jaxmeter.launch.host import Host
from jaxmeter.launch.images import (
    SMALLEST_LOCK,
    UNKNOWN,
    Build,
    Image,
    check_buildable,
    image_id,
    image_variables,
    proxies_in,
    revision_of,
)
from jaxmeter.launch.index import host_of, is_loopback, read_index, write_secrets
from jaxmeter.launch.options import UsageError
from jaxmeter.launch.request import Request, format_command, name_command
from jaxmeter.launch.runs import PlannedRun

NEEDED_MODULES = ("jax", "msgspec", "numpy", "rich", "typer")
"""What the harness imports, and a user's own image therefore has to have."""

CHECK_MODULES = """
import importlib.util, sys
print(" ".join(name for name in sys.argv[1:] if importlib.util.find_spec(name) is None))
"""

LIST_PACKAGES = """
from importlib.metadata import distributions
for one in distributions():
    print(f"{one.metadata['Name']}=={one.version}")
"""

PRINT_PYTHON = "import platform; print(platform.python_version())"

GIVE_BACK = """
import os, sys
folder, owner = sys.argv[1], (int(sys.argv[2]), int(sys.argv[3]))
for parent, folders, files in os.walk(folder):
    for name in (".", *folders, *files):
        os.chown(os.path.join(parent, name), *owner, follow_symlinks=False)
"""


@dataclass(frozen=True)
class Job:
    """What to measure, with what, for whom.

    Args:
      backend: A key of BACKENDS.
      request: The launcher's options.
      run: The harness' arguments and the folder of its run.
      engine: The engine.
      host: The machine.
      caller: The user.
      checkout: Where jaxmeter's own files are.
      variables: The user's environment variables.
    """

    backend: str
    request: Request
    run: PlannedRun
    engine: Engine
    host: Host
    caller: Caller
    checkout: Path
    variables: Mapping[str, str]

    def image_of(self, lock: str) -> Image:
        """The image that jaxmeter makes of a lock."""
        return Image(lock, self.request.base_image, self.checkout)


def measure_in_container(job: Job) -> int:
    """Builds the image if need be, measures, and reports; the exit code of the harness, or else of the report.

    Raises:
      UsageError: Something is in the way, and the message says what to do.
    """
    if job.request.image is None or job.run.is_reported or job.run.is_rehearsal:
        check_buildable(job.checkout)  # before anything is measured: the report is made in an image of jaxmeter's own
    container = measuring_container(job)
    if job.run.is_rehearsal:
        return _rehearse(job, container)
    make_writable_folders(container.mounts)
    container = prepare_image(job, container)
    try:
        code = _run(job, container)
    finally:
        if container.as_root and job.caller.uid != 0:
            _run(job, _chowning_container(job, container))
    if not job.run.can_be_reported(code):
        return code
    if job.request.image:  # the user's image need not have what a report needs
        build_images(job.engine, (job.image_of(SMALLEST_LOCK),), job.variables)
    report_code = _run(job, reporting_container(job))  # of an incomplete run too
    return code or report_code


def ask_machine(job: Job) -> str:
    """What the harness calls the machine, in the container that would measure.

    Raises:
      UsageError: It cannot be built or started, or finds no device.
    """
    if job.request.image is None:
        check_buildable(job.checkout)
    container = replace(measuring_container(job), has_terminal=False)
    make_writable_folders(container.mounts)
    container = prepare_image(job, container)
    answer = ask_container(job.engine, run_arguments(job.engine, container, job.caller), container.name)
    if answer.code != 0:
        raise UsageError(answer.complaint)
    return answer.stdout.strip()


def ask_packages(job: Job) -> str:
    """`name==version`, a line each, of what the image that would measure holds.

    Raises:
      UsageError: The image cannot be had, or lacks what measuring needs.
    """
    return _ask_inside(job, LIST_PACKAGES)


def ask_python(job: Job) -> str:
    """The version of Python in the image that would measure.

    Raises:
      UsageError: The image cannot be had, or lacks what measuring needs.
    """
    return _ask_inside(job, PRINT_PYTHON).strip()


def _ask_inside(job: Job, code: str) -> str:
    """What some code of Python prints in the image that would measure."""
    measuring = prepare_image(job, measuring_container(job))
    container = Container(measuring.image, ("-c", code), variables=measuring.variables)
    answer = ask_container(job.engine, run_arguments(job.engine, container, job.caller), container.name)
    if answer.code != 0:
        raise UsageError(answer.complaint)
    return answer.stdout


def list_variables(job: Job) -> dict[str, str]:
    """The environment that the harness would have: the image's own, and what goes in; the image is here."""
    container = measuring_container(job)
    return {**image_variables(job.engine, container.image), **container.variables}


def measuring_container(job: Job) -> Container:
    """The container that the harness runs in."""
    request, needs = job.request, BACKENDS[job.backend]
    mounts = mounts_for(job.run.arguments, job.run, job.caller.folder)
    revision = revision_of(job.caller.folder)
    return Container(
        image=request.image or job.image_of(request.lock).name,
        arguments=("-m", "jaxmeter", job.run.verb, "--backend", job.backend, *job.run.arguments),
        mounts=(*mounts, *(own_image_mounts(job.checkout) if request.image else ())),
        variables={
            "JAXMETER_COMMAND": format_command(job.backend, request),
            **({"JAXMETER_FINISH": job.run.finish} if job.run.finish else {}),
            **needs.devices.container_variables,
            **forwarded_variables(job.variables),
            **({"PYTHONDONTWRITEBYTECODE": "1"} if request.image else {}),
            **({"JAXMETER_REVISION": revision} if revision != UNKNOWN else {}),
            **({} if request.image else {"JAXMETER_LOCK_SHA256": job.image_of(request.lock).lock_sha256}),
        },
        devices=needs.devices.container_arguments(job.engine, request, job.host),
        network=needs.network,
        shared_memory=needs.shared_memory,
        as_root=request.privileged or request.profile_privileged,
        privileged=request.privileged,
        has_terminal=_is_watched(),
    )


def reporting_container(job: Job) -> Container:
    """The container that makes the page; it needs no device."""
    return Container(
        image=job.image_of(SMALLEST_LOCK if job.request.image else job.request.lock).name,
        arguments=("-m", "jaxmeter", "report", str(job.run.folder)),
        mounts=report_mounts((job.run.folder,), job.caller.folder),
        variables=forwarded_variables(job.variables),
        has_terminal=_is_watched(),
    )


@contextmanager
def prepare_build(image: Image, variables: Mapping[str, str], *, offline: bool = False) -> Iterator[Build]:
    """A build with what pip on this machine knows of indexes, proxies and certificates."""
    index = read_index(variables, home=Path.home())
    with write_secrets(index) as secrets:
        proxies = proxies_in(variables)
        yield Build(
            image,
            secrets=secrets,
            offline=offline,
            proxies=proxies,
            on_host_network=index.is_on_loopback or any(is_loopback(host_of(variables[name])) for name in proxies),
        )


def build_images(
    engine: Engine, images: Sequence[Image], variables: Mapping[str, str], *, offline: bool = False
) -> list[str]:
    """Builds the images that the engine lacks; the ids of all.

    Raises:
      UsageError: One cannot be built.
    """
    ids = []
    for image in images:
        check_buildable(image.checkout)
        with prepare_build(image, variables, offline=offline) as build:
            ids.append(build_image(engine, build))
    return ids


def prepare_image(job: Job, container: Container) -> Container:
    """The container with its image, which is then here, and what is to be recorded of it.

    Raises:
      UsageError: The image cannot be had, or lacks what measuring needs.
    """
    own = job.request.image
    if own is None:
        (identity,) = build_images(job.engine, (job.image_of(job.request.lock),), job.variables)
    else:
        identity = image_id(job.engine, own) or pull_image(job.engine, own)
        path = ":".join(filter(None, (str(CONTAINER_CODE), image_variables(job.engine, own).get("PYTHONPATH"))))
        container = replace(container, variables={**container.variables, "PYTHONPATH": path})
        _check_modules(job, container)
    return replace(container, variables={**container.variables, "JAXMETER_IMAGE": f"{container.image} {identity}"})


def _check_modules(job: Job, container: Container) -> None:
    """Raises UsageError where a user's image lacks what the harness needs, before it fails with a traceback."""
    check = Container(container.image, ("-c", CHECK_MODULES, *NEEDED_MODULES), variables=container.variables)
    answer = ask_container(job.engine, run_arguments(job.engine, check, job.caller), check.name)
    if answer.code != 0:
        raise UsageError(f"--image {container.image}: python3 does not run in it: {answer.complaint}")
    if missing := answer.stdout.split():
        raise UsageError(
            f"--image {container.image} lacks {', '.join(missing)}, which measuring needs; add to its Dockerfile: "
            f"RUN pip install {' '.join(missing)}"
        )


def _rehearse(job: Job, container: Container) -> int:
    """Prints the command lines; and the plan too, where the image for it is there already."""
    identity = image_id(job.engine, container.image)
    if identity is not None:
        variables = {**container.variables, "JAXMETER_IMAGE": f"{container.image} {identity}"}
        container = replace(container, variables=variables)
    elif job.request.image is None:
        with prepare_build(job.image_of(job.request.lock), job.variables) as build:
            print(quote_command(build_command(job.engine, build)))
    real = replace(container, arguments=tuple(word for word in container.arguments if word != "--dry-run"))
    for shown in (real, reporting_container(job)):
        print(quote_command(run_arguments(job.engine, replace(shown, has_terminal=False), job.caller)), flush=True)
    if identity is None:
        say(f"the plan is shown once the image is there: {name_command('images', job.request.lock)}")
        return 0
    mounts = tuple(mount for mount in container.mounts if not mount.writable)
    return _run(job, replace(container, mounts=mounts, devices=(), network="none", as_root=False, privileged=False))


def _chowning_container(job: Job, container: Container) -> Container:
    """A container that makes the caller the owner of a run that root has written."""
    owner = (str(job.caller.uid), str(job.caller.gid))
    return replace(
        container,
        name=f"{container.name}-owner",
        arguments=("-c", GIVE_BACK, str(job.caller.folder / job.run.folder), *owner),
        devices=(),
        network="none",
        privileged=False,
        has_terminal=False,
    )


def _run(job: Job, container: Container) -> int:
    command = run_arguments(job.engine, container, job.caller)
    return run_container(job.engine, command, container.name, has_terminal=container.has_terminal)


def _is_watched() -> bool:
    return all(stream.isatty() for stream in (sys.stdin, sys.stdout, sys.stderr))


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
