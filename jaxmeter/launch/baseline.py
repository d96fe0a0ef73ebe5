"""The environment of a baseline run, interleaved with today's if jax, jaxlib or flags differ."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from jaxmeter.launch.arm_containers import offer_environment
from jaxmeter.launch.baseline_environment import Baseline, find_changes, find_obstacle, read_baseline, read_installed
from jaxmeter.launch.execution import say
from jaxmeter.launch.images import image_id
from jaxmeter.launch.jobs import LIST_PACKAGES, Job, ask_packages, list_variables
from jaxmeter.launch.measuring import plan_job
from jaxmeter.launch.options import UsageError
from jaxmeter.launch.request import Request
from jaxmeter.launch.runs import PlannedRun
from jaxmeter.launch.runtime import choose_engine
from jaxmeter.launch.shell import Shell, prepare_environment


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
    told = f"not as in the baseline: {', '.join(changes)}"
    obstacle = find_obstacle(before, in_container=job is not None, changes=changes)
    if job is not None and not obstacle and not before.image_id:
        obstacle = f"its image {before.image} has no id (sha256:…), by which alone an image is found again"
    if job is not None and not obstacle and image_id(job.engine, before.image_id) is None:
        obstacle = f"its image {before.image} is not here; load it (docker load), or measure a new baseline"
    if obstacle:
        say(f"warning: {told}; slower times stay suspected: {obstacle}")
        yield None
        return
    say(f"{told}; its environment takes turns with today's")
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
