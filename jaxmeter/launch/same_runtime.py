"""A measurement in the runtime of its baseline: the same image, or the local environment, and the same Python."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from jaxmeter.launch.baseline_environment import Baseline, read_baseline
from jaxmeter.launch.command_line import read_request
from jaxmeter.launch.engines import Engine
from jaxmeter.launch.execution import say
from jaxmeter.launch.images import OWN_IMAGES, image_id
from jaxmeter.launch.jobs import PRINT_PYTHON, ask_python, measuring_container
from jaxmeter.launch.measuring import plan_job
from jaxmeter.launch.options import UsageError
from jaxmeter.launch.request import Request
from jaxmeter.launch.runs import PlannedRun
from jaxmeter.launch.runtime import choose_engine
from jaxmeter.launch.shell import FINE, Shell

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
    found = _find_image(engine, before)
    return () if found is None else ("--image", found)


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
