"""The environment of a baseline run: made again from the run's record if today's environment differs."""

from __future__ import annotations

import platform
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from jaxmeter.harness.record import RecordError, RunFolder
from jaxmeter.launch.arm_containers import offer_environment
from jaxmeter.launch.environments import Wanted
from jaxmeter.launch.execution import say
from jaxmeter.launch.images import image_id
from jaxmeter.launch.jobs import LIST_PACKAGES, Job, ask_packages, list_variables
from jaxmeter.launch.measuring import plan_job
from jaxmeter.launch.options import UsageError
from jaxmeter.launch.request import Request, choose_engine
from jaxmeter.launch.runs import PlannedRun, read_record
from jaxmeter.launch.shell import Shell, prepare_environment
from jaxmeter.launch.versions import normalise_version


@contextmanager
def offer_baseline(
    shell: Shell, backend: str, request: Request, run: PlannedRun, folder: Path
) -> Iterator[Path | None]:
    """Yield the value of `--lock-step`; None if the environment is today's, or is not available.

    Args:
      run: The run that is compared with the baseline.
      folder: Folder of the baseline run.
    Raises:
      UsageError: The baseline's manifest cannot be read.
    """
    before = read_baseline(folder)
    engine, _ = choose_engine(request.runtime, shell.variables)
    job = None if engine is None else plan_job(shell, backend, request, run)
    changes = _find_changes(shell, job, before)
    if not changes:
        yield None
        return
    difference = f"not as in the baseline: {', '.join(changes)}"
    obstacle = find_obstacle(before, in_container=job is not None, changes=changes)
    if job is not None and not obstacle and not before.image_id:
        obstacle = f"its image {before.image} has no id (sha256:…), by which alone an image is found again"
    if job is not None and not obstacle and image_id(job.engine, before.image_id) is None:
        obstacle = f"its image {before.image} is not here; load it (docker load), or measure a new baseline"
    if obstacle:
        say(f"warning: {difference}; slower times stay suspected: {obstacle}")
        yield None
        return
    say(f"{difference}; its environment takes turns with today's")
    if job is not None:
        with offer_environment(replace(job, request=replace(request, image=before.image_id))) as socket:
            yield socket
        return
    yield _rebuild(shell, before)


def _rebuild(shell: Shell, before: Baseline) -> Path | None:
    try:
        return prepare_environment(shell, before.wanted)
    except UsageError as error:
        say(f"warning: slower times stay suspected: {error}")
        return None


def _find_changes(shell: Shell, job: Job | None, before: Baseline) -> list[str]:
    """What is not as in the baseline, of the session's environment or of the image that would measure."""
    if job is None:
        listed = shell.ask("python", "-c", LIST_PACKAGES)  # an environment may lack pip
        return find_changes(before, read_installed(listed), shell.variables)
    return find_changes(before, read_installed(ask_packages(job)), list_variables(job))


STEERING = ("jax", "jaxlib")
"""Packages that decide on how a compiled program runs; a test holds that the harness names them, too."""

PINNED = (*STEERING, "numpy", "scipy", "ml-dtypes", "flax", "optax")
"""Of the recorded packages those that are installed again. Peers are not compared across versions."""

FLAGS = re.compile(r"(XLA_|JAX_|LIBTPU_)")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_IMAGE_ID = re.compile(r"(?:sha256:)?[0-9a-f]{64}")
_SHOWN = re.compile(r"[\w ./:@+-]{1,200}", flags=re.ASCII)
UNUSED = re.compile(
    "JAX_(PLATFORMS$|DISABLE_JIT|DUMP_IR_TO$|COMPILATION_CACHE_|ENABLE_COMPILATION_CACHE|PERSISTENT_CACHE_|RAISE_PERSISTENT_CACHE_)"
    "|XLA_PYTHON_CLIENT_PREALLOCATE$"
)
"""Flags that the harness sets by the backend, or leaves out: they do not differ between runs. Whether a device's memory
is preallocated does not change a program."""

DUMPS = re.compile(r"--xla\w*_dump_\w+(=\S*)?\s*")
"""Flags of a variable that say what XLA writes down, and where: they steer no program."""


@dataclass(frozen=True)
class Baseline:
    """Where a baseline run was made.

    Args:
      packages, variables: As it recorded them; of packages that are installed again, versions in PEP 440's spelling.
      image: Name and id of the image that it was measured in; empty outside of containers.
    """

    backend: str
    python: str
    packages: Mapping[str, str]
    variables: Mapping[str, str]
    image: str = ""

    @property
    def image_id(self) -> str:
        """By which an engine finds the image, whatever is called so today; empty where the record names no such id."""
        named = self.image.rpartition(" ")[2]
        return named if _IMAGE_ID.fullmatch(named) else ""

    @property
    def wanted(self) -> Wanted:
        """What its environment held."""
        pins = tuple(f"{name}=={self.packages[name]}" for name in PINNED if name in self.packages)
        return Wanted(" ".join(pins), pins, is_pinned=True)


def read_baseline(run: Path) -> Baseline:
    """What a run recorded of where it was made.

    Raises:
      UsageError: Its manifest cannot be read, or holds what no measurement has written.
    """
    path = RunFolder(run).manifest
    try:
        manifest: dict[str, Any] = read_record(path)
        here = manifest["environments"][manifest["backend"]]
        packages, variables = dict(here["packages"]), dict(here["variables"])
        backend, python, image = str(manifest["backend"]), str(here["python"]), str(here.get("image") or "")
    except (RecordError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise UsageError(f"{path}: cannot be read ({type(error).__name__}); measure a new baseline") from error
    # A record is only a file, maybe somebody else's: nothing of it becomes a path, an address or an option.
    pinned = {name: _read_version(path, name, packages[name]) for name in PINNED if name in packages}
    if any(not isinstance(item, str) for pair in variables.items() for item in pair):
        raise UsageError(f"{path}: a variable of its environment is no text; measure a new baseline")
    if image and not _SHOWN.fullmatch(image):
        raise UsageError(f"{path}: its image {image[:200]!r} is no name of an image; measure a new baseline")
    if not _SHOWN.fullmatch(python):
        raise UsageError(f"{path}: its Python {python[:200]!r} is no version; measure a new baseline")
    variables = {name: value for name, value in variables.items() if _VARIABLE.fullmatch(name)}
    return Baseline(backend, python, pinned, variables, image)


def _read_version(path: Path, name: str, recorded: object) -> str:
    """A version as pip takes it.

    Raises:
      UsageError: It is none.
    """
    version = normalise_version(recorded) if isinstance(recorded, str) else None
    if version is None:
        raise UsageError(
            f"{path}: its version of {name} is {str(recorded)[:200]!r}, which PEP 440 does not call a version, so "
            "nothing is installed; measure a new baseline"
        )
    return version


def find_changes(baseline: Baseline, installed: Mapping[str, str], variables: Mapping[str, str]) -> list[str]:
    """`jaxlib 0.10.1 → 0.10.2`: what differs of today's environment that steers compiled programs.

    Args:
      installed: Versions by package.
      variables: Of today's processes.
    """
    versions = [
        f"{name} {was} → {installed[name]}"
        for name in STEERING
        if (was := baseline.packages.get(name)) is not None and name in installed and was != installed[name]
    ]
    arms = [_choose_flags(arm) for arm in (baseline.variables, variables)]
    return versions + [name for name in sorted(arms[0] | arms[1]) if arms[0].get(name) != arms[1].get(name)]


def find_obstacle(baseline: Baseline, *, in_container: bool, changes: Sequence[str] = ()) -> str:
    """Return why the environment cannot be interleaved with today's; empty if it can.

    Args:
      changes: Differences from the baseline, as `find_changes` names them.
    """
    named = next((name for name in changes if re.search(r"[/~\\]", baseline.variables.get(name, ""))), None)
    if named is not None:
        return f"its {named} names a file, which is not taken from a record; set {named} here as it was, if it is yours"
    if in_container and not baseline.image:
        return "it was measured outside of containers; --runtime local can make its environment again"
    if baseline.backend != "cpu":
        return f"two processes that take turns on one {baseline.backend} have never been tried"
    if not in_container and _minor(baseline.python) != _minor(platform.python_version()):
        return f"it was made with Python {baseline.python}, here is {platform.python_version()}"
    return ""


def read_installed(listed: str) -> dict[str, str]:
    """Versions by package, of what `pip list --format=freeze` prints."""
    pairs = (line.strip().partition("==") for line in listed.splitlines())
    return {name.lower().replace("_", "-"): version for name, _, version in pairs if version}


def _choose_flags(variables: Mapping[str, str]) -> dict[str, str]:
    """Those that steer programs, with the user's home as a record has it."""
    home = str(Path.home())
    flags = {name: value for name, value in variables.items() if FLAGS.match(name) and not UNUSED.match(name)}
    shown = {name: DUMPS.sub("", value).strip().replace(home, "~") for name, value in flags.items()}
    return {name: value for name, value in shown.items() if value or not flags[name]}


def _minor(version: str) -> list[str]:
    return version.split(".")[:2]
