"""A gate: a run interleaved with a baseline run in its runtime, made again where needed; confirmation, a judgement."""

from __future__ import annotations

import platform
import re
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from jaxmeter.harness.record import RecordError, RunFolder, make_run_id
from jaxmeter.launch.command_line import REASONS, check_measuring, read_backend, read_request
from jaxmeter.launch.containers import CHECKOUT
from jaxmeter.launch.engines import Engine
from jaxmeter.launch.environments import Wanted
from jaxmeter.launch.execution import say
from jaxmeter.launch.images import OWN_IMAGES, SMALLEST_LOCK, image_id
from jaxmeter.launch.jobs import (
    LIST_PACKAGES,
    PRINT_PYTHON,
    Job,
    ask_packages,
    ask_python,
    list_variables,
    measuring_container,
    offer_environment,
)
from jaxmeter.launch.measuring import plan_job, run_harness
from jaxmeter.launch.options import UsageError, read_options
from jaxmeter.launch.request import Request, choose_engine, name_command
from jaxmeter.launch.runs import DEFAULT_OUT, EXACT, PlannedRun, has_begun, is_store, plan_beside, read_record
from jaxmeter.launch.shell import (
    FINE,
    JAXMETER,
    NO_ANSWER,
    USAGE_ERROR,
    Shell,
    prepare_environment,
    prepare_stores,
    run_jaxmeter,
    write_page,
)
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


JUDGING = ("--budgets", "--min-effect", "--markdown", "--verdict")
"""Options of the judge; all others are of the measurement."""

ARMS = ("--lock-step", CHECKOUT)
"""Options of what takes turns with today's code."""

REFUSED = {name: why for name, why in REASONS.items() if name not in ARMS} | {
    "--against": f"the baseline is named without an option: {name_command('gate', 'RUN')}"
}


@dataclass(frozen=True)
class GateRequest:
    """A gate.

    Args:
      baseline: Folder of the earlier run.
      measuring: Arguments of the measurement, with those of the launcher.
      judging: Arguments of the judge.
    """

    baseline: Path
    measuring: tuple[str, ...]
    judging: tuple[str, ...]
    exact: bool


def read_gate_request(arguments: Sequence[str]) -> GateRequest:
    """Return what `RUN [--budgets FILE] [--min-effect PERCENT] [--markdown FILE] [--verdict FILE] [--exact] …` ask.

    Raises:
      UsageError: No baseline, or what a gate does not take.
    """
    if not arguments or arguments[0].startswith("-"):
        raise UsageError(f"name the baseline run first: {name_command('gate', 'results/RUN')}")
    name, given = Path(arguments[0]), read_options(arguments[1:], *JUDGING, "--out", flags=["--exact"], refused=REFUSED)
    baseline = name if name.is_dir() else Path(given.get("--out") or DEFAULT_OUT) / name
    if not has_begun(baseline):
        raise UsageError(f"{name}: no run; give a folder that a measurement has written, such as results/RUN")
    exact = "--exact" in given
    checkout = read_options(given.rest, CHECKOUT).get(CHECKOUT)
    if checkout is not None and exact:
        raise UsageError(f"{CHECKOUT} times calls in two checkouts, and --exact times no calls; leave out one of them")
    if checkout is not None and not Path(checkout).expanduser().is_dir():
        raise UsageError(f"{CHECKOUT} {checkout}: no such folder; make it: git worktree add {checkout} COMMIT")
    measuring = (*given.rest, *given.list_words("--out"), *(EXACT if exact else ()))
    return GateRequest(baseline, measuring, tuple(given.list_words("--exact", *JUDGING)), exact)


def pass_gate(shell: Shell, arguments: Sequence[str]) -> int:
    """Measure, confirm what is suspected, judge and report; the exit code of the judge, or of what went wrong before.

    Raises:
      UsageError: What was asked cannot be done.
    """
    asked = read_gate_request(_fetch_baseline(shell, arguments))
    backend, measuring = read_backend(asked.measuring)
    request = read_request(backend, measuring, shell.variables)
    check_measuring(request.arguments, "a gate", ("--machine", *ARMS), REFUSED)
    judging = read_options(asked.judging, "--budgets", "--min-effect")
    limits = judging.list_words("--budgets", "--min-effect")
    shell.install(SMALLEST_LOCK)
    if code := run_jaxmeter(shell, "limits", *limits):  # before anything is measured
        return code
    chosen = is_chosen(request)
    followed = follow_baseline(shell, backend, measuring, asked.baseline)
    measuring = [*followed, *measuring]
    with ExitStack() as stack:
        other = None
        if not asked.exact:
            # Where the baseline's runtime is not here, no image is built only to say so.
            here = measuring if chosen or followed else ["--runtime", "local", *measuring]
            planned = _plan_beside(shell, backend, here, asked.baseline)
            ask = partial(run_jaxmeter, shell)
            is_other = is_other_runtime(shell, backend, planned, asked.baseline, ask, is_certain=chosen)
            if is_other and not chosen:
                return NO_ANSWER
            request, run = _plan_beside(shell, backend, measuring, asked.baseline)
            other = stack.enter_context(offer_baseline(shell, backend, request, run, asked.baseline))
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        suspects = Path(folder) / "suspects.json"
        run, code = _measure_beside(shell, backend, measuring, asked.baseline, other=other)
        if not run.has_measured(code):
            return code if code == USAGE_ERROR else NO_ANSWER
        shell.install(SMALLEST_LOCK)
        confirmed: tuple[str, ...] = ()
        if not asked.exact:
            runs = (str(asked.baseline), str(run.folder))
            run_jaxmeter(shell, "compare", *runs, "--suspects", str(suspects), *limits)
            if suspects.is_file():
                again, code = _measure_beside(shell, backend, measuring, asked.baseline, suspects, other)
                if again.has_measured(code):
                    confirmed = ("--confirmed-by", str(again.folder))
                shell.install(SMALLEST_LOCK)
        judged = (str(asked.baseline), str(run.folder), *confirmed)
        code = run_jaxmeter(shell, "gate", *judged, *asked.judging)
        write_page(shell, *judged, *judging.list_words("--min-effect"))
    return code


def _fetch_baseline(shell: Shell, arguments: Sequence[str]) -> list[str]:
    """Return the arguments of a gate, with the folder in the cache in place of the URL of a baseline run."""
    if not arguments or not is_store(arguments[0]):
        return list(arguments)
    folder = shell.ask(str(prepare_stores(shell)), *JAXMETER, "fetch", arguments[0])
    return [folder.strip(), *arguments[1:]]


def _measure_beside(
    shell: Shell,
    backend: str,
    arguments: Sequence[str],
    baseline: Path,
    suspects: Path | None = None,
    other: Path | None = None,
) -> tuple[PlannedRun, int]:
    """Make a run that is interleaved with an earlier one; return it and the harness's exit code.

    Args:
      other: The earlier run's environment, if its calls take turns with today's: its python, or a socket.
    """
    request, run = _plan_beside(shell, backend, arguments, baseline, suspects, other)
    return run, run_harness(shell, backend, request, run)


def _plan_beside(
    shell: Shell,
    backend: str,
    arguments: Sequence[str],
    baseline: Path,
    suspects: Path | None = None,
    other: Path | None = None,
) -> tuple[Request, PlannedRun]:
    request = read_request(backend, arguments, shell.variables)
    return request, plan_beside(baseline, request.arguments, make_run_id(backend), suspects, other)


AskReporter = Callable[..., int]
"""Exit code of `jaxmeter` with these words."""


def is_chosen(request: Request) -> bool:
    """Whether somebody has said in what to measure."""
    return request.runtime != "auto"


def follow_baseline(shell: Shell, backend: str, arguments: Sequence[str], folder: Path) -> tuple[str, ...]:
    """Return the options that measure in the runtime of a baseline; none where one was chosen or it cannot be had.

    An image of jaxmeter's own is built from today's code: the baseline's holds the code of then.

    Args:
      arguments: Of the measurement, with those of the launcher.
      folder: Of the baseline run.
    Raises:
      UsageError: The baseline's manifest cannot be read, or an option cannot be followed.
    """
    if is_chosen(read_request(backend, arguments, shell.variables)):
        return ()
    options = _list_options(shell, read_baseline(folder))
    if options:
        say(f"measuring in the runtime of the baseline: {' '.join(options)}")
    return options


def is_other_runtime(
    shell: Shell,
    backend: str,
    planned: tuple[Request, PlannedRun],
    folder: Path,
    ask_reporter: AskReporter,
    *,
    is_certain: bool,
) -> bool:
    """Whether a measurement would be of another runtime than its baseline; the reporter says so in one sentence.

    Args:
      planned: The measurement.
      folder: Of the baseline run.
      is_certain: Whether it takes place whatever is said; else the local environment stands for what cannot be had.
    Raises:
      UsageError: What is certain cannot be had.
    """
    try:
        python, image = _look_inside(shell, backend, *planned)
    except UsageError:
        if is_certain:
            raise
        python, image = _ask_locally(shell), ""
    named = ("--image", image) if image else ()
    return ask_reporter("runtime", str(folder), "--python", python, *named) != FINE


def _list_options(shell: Shell, before: Baseline) -> tuple[str, ...]:
    if not before.image:
        return ("--runtime", "local")
    engine, _ = choose_engine("auto", shell.variables)
    if engine is None:
        return ()
    if before.image.startswith(OWN_IMAGES):
        return ("--runtime", "container")
    image = _find_image(engine, before)
    return () if image is None else ("--image", image)


def _find_image(engine: Engine, before: Baseline) -> str | None:
    """A name by which the engine has the very image of the baseline; None where it has none.

    It is not pulled: a record may come from anywhere, and a person names what is run (--image).
    """
    name, wanted = before.image.partition(" ")[0], before.image_id
    if image_id(engine, name) == wanted:
        return name
    return None if image_id(engine, wanted) is None else wanted


def _look_inside(shell: Shell, backend: str, request: Request, run: PlannedRun) -> tuple[str, str]:
    """The Python of what would measure, and the image's name and id; empty of a local environment."""
    engine, _ = choose_engine(request.runtime, shell.variables)
    if engine is None:
        return _ask_locally(shell), ""
    job = plan_job(shell, backend, request, run)
    python, image = ask_python(job), measuring_container(job).image
    return python, f"{image} {image_id(engine, image) or ''}".rstrip()


def _ask_locally(shell: Shell) -> str:
    return shell.ask("python", "-c", PRINT_PYTHON).strip()
