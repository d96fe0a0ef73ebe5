"""What is fine on this machine, what spoils measurements, and what to do about it."""

from __future__ import annotations

import functools
import itertools
import os
import shutil
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib import metadata
from pathlib import Path

from jaxmeter.launch.backends import BACKENDS, DEFAULT_BACKEND, OPTIONS
from jaxmeter.launch.command_line import OWN, read_request
from jaxmeter.launch.containers import Devices
from jaxmeter.launch.doctor.interferences import Machine, find_interferences, find_other_use
from jaxmeter.launch.doctor.reach import Fetch, fetch, find_proxy, hide_secrets, locate_registry, read_status, start
from jaxmeter.launch.doctor.table import describe_failure, render, run_check
from jaxmeter.launch.engines import Ask, Engine, ask_client, find_engine
from jaxmeter.launch.environments import MARK, find_problems, find_warnings, locate_locked
from jaxmeter.launch.host import GB, Observation, ObservationState, allowed_cores, free_bytes, look_at_host
from jaxmeter.launch.images import DOCKERFILE, LOCKS, WHEELS, Image, image_id, locate_lock
from jaxmeter.launch.index import Index, read_index
from jaxmeter.launch.options import UsageError, read_options
from jaxmeter.launch.request import HERE, LOCAL, Request, choose_engine, is_in_nox, name_command

SHARED_OPTIONS = ("--runtime", "--base-image")
"""Options of every backend that decide whether a measurement can be made here; so do all of `OWN`."""

CANNOT = 2

RESULTS_BYTES = 100 * 10**6
"""A quick run takes 6 MB with its traces and page; longer ones have more processes and samples."""

INSTALL_ENGINE = "to measure in a container, install one (Debian and Ubuntu: apt install podman)"

NEEDS = "What a measurement needs"
INTERFERENCES = "What makes times longer, or makes them vary"


@dataclass(frozen=True)
class Asked:
    """A measurement that somebody wants to make.

    Args:
      backend: A key of BACKENDS.
      options: As they were given, for the command to type.
      request: The same, read.
    """

    backend: str
    options: tuple[str, ...]
    request: Request

    @property
    def devices(self) -> Devices:
        """What is measured on."""
        return BACKENDS[self.backend].devices

    @property
    def command(self) -> str:
        """What would be typed to measure."""
        if is_in_nox():
            return " ".join(("nox", "-s", self.backend, *(("--", *self.options) if self.options else ())))
        return " ".join(("jaxmeter run --backend", self.backend, *self.options))


@dataclass(frozen=True)
class Surroundings:
    """What is examined; the tests have surroundings of their own.

    Args:
      root: Where the machine's file system begins.
      home: The user's folder.
      folder: The working folder, where results go.
      cores: Cores of the machine.
      allowed_cores: Cores that this process may use.
      is_root: Whether the user is root.
      ask: Runs a client that answers at once.
      fetch: Asks a server.
      image_id: The engine's id of an image.
      free_bytes: Free room where a folder is.
    """

    root: Path = Path("/")
    home: Path = field(default_factory=Path.home)
    folder: Path = field(default_factory=Path.cwd)
    cores: int = field(default_factory=lambda: os.cpu_count() or 1)
    allowed_cores: int = field(default_factory=allowed_cores)
    is_root: bool = field(default_factory=lambda: os.getuid() == 0)
    ask: Ask = ask_client
    fetch: Fetch = fetch
    image_id: Callable[[Engine, str], str | None] = image_id
    free_bytes: Callable[[str | None], int | None] = free_bytes


@dataclass(frozen=True)
class Examination:
    """What was found.

    Args:
      engine: The container engine, and those that were passed over.
      own: What each asked measurement needs for itself.
      supplies: What images and environments are made from; needed only where one has to be made.
      results: Where results go.
      interferences: What spoils times.
    """

    engine: tuple[Observation, ...]
    own: Mapping[Asked, tuple[Observation, ...]]
    supplies: tuple[Observation, ...]
    results: tuple[Observation, ...]
    interferences: tuple[Observation, ...]

    def needs(self, asked: Asked) -> tuple[Observation, ...]:
        """Return the rows of everything that a measurement needs. Its own rows show whether supplies are missing."""
        return (*self.engine, *self.own[asked], *self.results)

    def missing(self, asked: Asked) -> list[Observation]:
        """Return the rows that prevent a measurement."""
        return [row for row in self.needs(asked) if row.state is ObservationState.MISSING]


def examine(
    arguments: Sequence[str], variables: Mapping[str, str], checkout: Path, surroundings: Surroundings | None = None
) -> int:
    """Prints the table; 0 where every asked backend can be measured here, else 2.

    Args:
      arguments: Backends, DEFAULT_BACKEND where none is named, SHARED_OPTIONS and OWN.
      variables: Environment variables.
      checkout: Where jaxmeter's own files are.
      surroundings: What is examined, this machine by default.
    Raises:
      UsageError: A backend or an option that there is not.
    """
    asked = read_asked(arguments, variables)
    examination = look(asked, variables, checkout, surroundings or Surroundings())
    own = itertools.chain.from_iterable(examination.own.values())
    sections = {
        NEEDS: (*examination.engine, *own, *examination.supplies, *examination.results),
        INTERFERENCES: examination.interferences,
    }
    table = render(sections, (conclude(examination, each) for each in asked), shutil.get_terminal_size().columns)
    encoding = sys.stdout.encoding or "utf8"
    print(table.encode(encoding, "replace").decode(encoding))
    return CANNOT if any(map(examination.missing, asked)) else 0


def read_asked(arguments: Sequence[str], variables: Mapping[str, str]) -> tuple[Asked, ...]:
    """The measurements that a command line asks about.

    Raises:
      UsageError: A backend or an option that there is not.
    """
    names = (*SHARED_OPTIONS, *OWN)
    given = read_options(arguments, *names)
    for word in given.rest:
        if word not in BACKENDS:
            kind = "option" if word.startswith("-") else "backend"
            raise UsageError(
                f"{kind} {word!r} is unknown to the doctor; backends: {', '.join(BACKENDS)}; "
                f"options: {', '.join(names)}"
            )
    backends = tuple(dict.fromkeys(given.rest)) or (DEFAULT_BACKEND,)
    for name in OWN:
        owners = [backend for backend in BACKENDS if _has_option(backend, name)]
        if name in given and not set(owners) & set(backends):
            command = name_command("doctor", owners[0], *given.list_words(name))
            raise UsageError(f"{name} belongs to the {owners[0]} backend: {command}")
    asked = []
    for backend in backends:
        options = given.list_words(*SHARED_OPTIONS, *(name for name in OWN if _has_option(backend, name)))
        asked.append(Asked(backend, tuple(options), read_request(backend, options, variables)))
    return tuple(asked)


def _has_option(backend: str, name: str) -> bool:
    return OPTIONS[name] in BACKENDS[backend].options


def look(
    asked: Sequence[Asked], variables: Mapping[str, str], checkout: Path, surroundings: Surroundings
) -> Examination:
    """Examines. What asks the network runs at the same time as what asks the engine."""
    request = asked[0].request  # runtime and base image are the same for all
    index = start(lambda: run_check("package index", lambda: (_check_index(variables, surroundings),)))
    engine, engine_rows = _check_engine(request.runtime, variables, surroundings.ask)
    is_decided = engine_rows[0].state not in (ObservationState.MISSING, ObservationState.UNKNOWN)
    made = {each: _check_made(each, engine, checkout, surroundings) if is_decided else () for each in asked}
    # Without a decision where to measure, supplies count as needed: what is out of reach is shown for what it is.
    are_needed = not is_decided or any(row.state is ObservationState.NOTE for rows in made.values() for row in rows)
    base = (
        run_check(
            "base image", lambda: (_check_base_image(engine, request.base_image, variables, surroundings, are_needed),)
        )
        if engine
        else ()
    )
    supplies = (*base, *(_soften(row, are_needed) for row in index.result()))
    lacking = [row for row in supplies if row.state is ObservationState.MISSING]
    own = {
        each: (
            *(_check_supplies(row, lacking, each, checkout) for row in made[each]),
            *run_check(each.devices.name, functools.partial(_check_devices, each, engine, surroundings)),
        )
        for each in asked
    }
    usable = [each.devices for each in asked if _are_usable(each.devices, own[each])]
    machine = Machine(surroundings.root, surroundings.cores, surroundings.allowed_cores)
    return Examination(
        engine=engine_rows,
        own=own,
        supplies=(*supplies, *run_check("disk of images", lambda: _check_disk_of_images(engine, surroundings))),
        results=run_check("disk of results", lambda: (_check_disk_of_results(surroundings),)),
        interferences=(
            *find_interferences(machine),
            *(row for devices in usable for row in find_other_use(devices, surroundings.ask)),
        ),
    )


def conclude(examination: Examination, asked: Asked) -> str:
    """Whether a measurement can be made, and if not, why."""
    if missing := examination.missing(asked):
        return f"{asked.command} cannot measure here: {'; '.join(row.finding for row in missing)}."
    if unknown := [row.name for row in examination.needs(asked) if row.state is ObservationState.UNKNOWN]:
        return f"{asked.command} may be able to measure here; not known: {', '.join(unknown)}."
    if noisy := [row.name for row in examination.interferences if row.state is ObservationState.NOISY]:
        return f"{asked.command} can measure here. For better times, first see to: {', '.join(noisy)}."
    return f"{asked.command} can measure here."


def _check_engine(
    runtime: str, variables: Mapping[str, str], ask: Ask
) -> tuple[Engine | None, tuple[Observation, ...]]:
    """The engine that a measurement would use, and what was passed over on the way to it."""
    name = "container engine"
    if runtime in (HERE, LOCAL):
        return None, (Observation(name, ObservationState.OK, f"not used: {choose_engine(runtime, variables)[1]}"),)
    # An engine that hangs is waited for once, though two functions ask it.
    remembered = functools.cache(lambda *command: ask(list(command)))
    try:
        engine, _ = choose_engine(runtime, variables, lambda command: remembered(*command))
        rejected = find_engine(variables, lambda command: remembered(*command)).rejected
    except UsageError as error:
        return None, (Observation(name, ObservationState.MISSING, *_split_message(error)),)
    except Exception as error:  # noqa: BLE001  as `run_check`, which cannot hand on the engine
        return None, (describe_failure(name, error),)
    passed_over = tuple(
        Observation("passed over", ObservationState.NOTE, f"{r.client}: {r.reason}", r.remedy) for r in rejected
    )
    if engine is None:
        remedy = "" if rejected else INSTALL_ENGINE
        return None, (
            Observation(name, ObservationState.NOTE, "none, so a local virtual environment is used", remedy),
            *passed_over,
        )
    return engine, (Observation(name, ObservationState.OK, f"{engine} ({engine.client})"), *passed_over)


def _split_message(error: UsageError) -> tuple[str, str]:
    """The parts of a message, which puts what to do last."""
    what, line, remedy = str(error).rpartition("\n")
    if not line:
        what, _, remedy = str(error).partition("; ")
    return what, remedy


def _check_made(
    asked: Asked, engine: Engine | None, checkout: Path, surroundings: Surroundings
) -> tuple[Observation, ...]:
    """The image or environment to measure in: OK where it is there, a note where it has to be made first."""
    name = f"{asked.backend} environment" if engine is None else f"{asked.request.lock} image"
    runtime = asked.request.runtime
    if runtime != HERE and not (checkout / DOCKERFILE).is_file():
        what = f"--runtime {runtime} needs a checkout of jaxmeter, with its locks and docker/"
        return (Observation(name, ObservationState.MISSING, what, "leave --runtime out, or clone jaxmeter"),)
    if engine is None:
        return run_check(name, lambda: (_check_environment(name, asked, checkout, surroundings),))
    return run_check(name, lambda: (_check_image(name, asked, engine, checkout, surroundings),))


def _check_environment(name: str, asked: Asked, checkout: Path, surroundings: Surroundings) -> Observation:
    if asked.request.runtime == HERE:
        return _check_this_environment(name)
    folder = locate_locked(checkout / locate_lock(asked.request.lock), checkout / ".nox" / "environments")
    if (folder / MARK).is_file():
        return Observation(name, ObservationState.OK, f"made by an earlier run ({folder})")
    free = surroundings.free_bytes(str(checkout))
    return Observation(
        name, ObservationState.NOTE, f"not made yet; the first {asked.command} makes it ({_write_cost(asked, free)})"
    )


def _check_this_environment(name: str) -> Observation:
    try:
        return Observation(name, ObservationState.OK, f"this one, with jax {metadata.version('jax')} ({sys.prefix})")
    except metadata.PackageNotFoundError:
        return Observation(
            name, ObservationState.MISSING, f"no jax in this environment ({sys.prefix})", "pip install jax"
        )


def _check_image(name: str, asked: Asked, engine: Engine, checkout: Path, surroundings: Surroundings) -> Observation:
    image = Image(asked.request.lock, asked.request.base_image, checkout)
    if surroundings.image_id(engine, image.name):
        return Observation(name, ObservationState.OK, f"built ({image.name})")
    free = surroundings.free_bytes(engine.storage)
    needed = LOCKS[asked.request.lock].disk_bytes
    if free is not None and free < needed:
        return Observation(
            name,
            ObservationState.MISSING,
            f"the {asked.request.lock} image is not built, and {_write_cost(asked, free)} in {engine.storage}",
            f"free some room (`{engine.client} system df` shows what takes it), or measure without: --runtime local",
        )
    return Observation(
        name, ObservationState.NOTE, f"not built yet; the first {asked.command} builds it ({_write_cost(asked, free)})"
    )


def _write_cost(asked: Asked, free: int | None) -> str:
    lock = LOCKS[asked.request.lock]
    download = f"downloads {lock.download_bytes / GB:.1f} GB, " if lock.download_bytes else ""
    room = f", {free / GB:.1f} GB are free" if free is not None else ""
    return f"{download}takes up to {lock.disk_bytes / GB:.0f} GB{room}"


def _check_supplies(row: Observation, lacking: Iterable[Observation], asked: Asked, checkout: Path) -> Observation:
    """The row of what has to be made; it is missing where a supply that it is made from is."""
    names = [f"the {supply.name}" for supply in lacking]
    if row.state is not ObservationState.NOTE or not names:
        return row
    verb = "built" if row.name.endswith("image") else "made"
    remedy = "see below"
    if verb == "built" and any((checkout / WHEELS).glob("*.whl")):
        remedy = f"build it from docker/wheels: {name_command('images', '--offline', asked.request.lock)}"
    what = f"the {row.name} is not {verb} yet, and cannot be without {' and '.join(names)}"
    return replace(row, state=ObservationState.MISSING, finding=what, remedy=remedy)


def _soften(row: Observation, are_needed: bool) -> Observation:
    """The row of a supply, which is not missing while nobody needs it."""
    if row.state is ObservationState.MISSING and not are_needed:
        return Observation(row.name, ObservationState.NOTE, f"{row.finding}; not needed now, as nothing has to be made")
    return row


def _check_base_image(
    engine: Engine, image: str, variables: Mapping[str, str], surroundings: Surroundings, are_needed: bool
) -> Observation:
    name = "base image"
    if surroundings.image_id(engine, image):
        return Observation(name, ObservationState.OK, f"{image} is here")
    if not are_needed:
        return Observation(
            name, ObservationState.NOTE, f"{image} is not here; not needed now, as nothing has to be made"
        )
    url = locate_registry(image)
    load = (
        f"load it from a machine that has it (`{engine.client} save` there, `{engine.client} load` here), "
        f"name one that is here (--base-image IMAGE), or measure without: --runtime local. Where the engine has a "
        f"mirror or proxy of its own, try: {engine.client} pull {image}"
    )
    status = _ask(url, Index({}), variables, surroundings)
    if isinstance(status, str):
        return Observation(
            name, ObservationState.MISSING, f"{image} is not here, and its registry gives {status}", load
        )
    return Observation(name, ObservationState.OK, f"{image} is not here yet; its registry answers ({url})")


def _check_index(variables: Mapping[str, str], surroundings: Surroundings) -> Observation:
    name = "package index"
    index = read_index(variables, home=surroundings.home, root=surroundings.root)
    url = f"{hide_secrets(index.url).rstrip('/')}/pip/"  # a small page that every index has
    proxy = find_proxy(url, index, variables)
    way = [f"through the proxy {hide_secrets(proxy)}"] if proxy else []
    way += [f"trusting {index.ca_bundle}"] if index.ca_bundle else []
    what = hide_secrets(index.url) + (f" ({', '.join(way)})" if way else "")
    status = _ask(url, index, variables, surroundings)
    if isinstance(status, int) and (status < 400 or status in (401, 403)):  # pip may have credentials
        return Observation(name, ObservationState.OK, f"{what} answers")
    remedy = (
        "check its address, the network, the proxy (export HTTPS_PROXY=http://HOST:PORT, or proxy in pip.conf) and the "
        "certificates (export PIP_CERT=/path/to/ca.pem); or name an index that can be reached (export "
        "PIP_INDEX_URL=…), or bring wheels: `wheels` elsewhere, then `images --offline`"
    )
    fault = status if isinstance(status, str) else f"HTTP {status}"
    return Observation(name, ObservationState.MISSING, f"{what}: {fault}", remedy)


def _ask(url: str, index: Index, variables: Mapping[str, str], surroundings: Surroundings) -> int | str:
    """Return the HTTP status of a server's answer, or why there is none."""
    return read_status(start(lambda: surroundings.fetch(url, index, find_proxy(url, index, variables))))


def _check_disk_of_images(engine: Engine | None, surroundings: Surroundings) -> tuple[Observation, ...]:
    if engine is None:
        return ()
    free = surroundings.free_bytes(engine.storage)
    if free is None:
        return (
            Observation(
                "disk of images", ObservationState.UNKNOWN, f"{engine} keeps images where this system cannot look"
            ),
        )
    return (Observation("disk of images", ObservationState.OK, f"{free / GB:.1f} GB free in {engine.storage}"),)


def _check_disk_of_results(surroundings: Surroundings) -> Observation:
    name, folder = "disk of results", surroundings.folder
    free = surroundings.free_bytes(str(folder))
    if free is None:
        return Observation(name, ObservationState.UNKNOWN, f"the system does not report how much is free in {folder}")
    finding = f"{free / GB:.1f} GB free in {folder}"
    if free < RESULTS_BYTES:
        return Observation(
            name, ObservationState.MISSING, finding, "free some room, or measure elsewhere: --out FOLDER"
        )
    return Observation(name, ObservationState.OK, finding)


def _check_devices(asked: Asked, engine: Engine | None, surroundings: Surroundings) -> list[Observation]:
    devices = asked.devices
    if devices.describe is None:
        return []
    host = look_at_host(surroundings.root)
    problems = find_problems(asked.backend, asked.request, host, engine)
    warnings = find_warnings(asked.backend, host, is_root=surroundings.is_root and engine is None)
    return [
        *(Observation(devices.name, ObservationState.MISSING, problem.what, problem.remedy) for problem in problems),
        *([] if problems else [Observation(devices.name, ObservationState.OK, devices.describe(host))]),
        *(
            Observation(devices.warnings_row, ObservationState.NOTE, warning.what, warning.remedy)
            for warning in warnings
        ),
    ]


def _are_usable(devices: Devices, rows: Iterable[Observation]) -> bool:
    """Return whether the rows of a measurement include its devices, and nothing is wrong with them."""
    states = {row.state for row in rows if row.name == devices.name}
    return states == {ObservationState.OK}
