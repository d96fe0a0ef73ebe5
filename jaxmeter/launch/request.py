"""What is asked of the launcher: where and how to run. `command_line` reads it, others act on it."""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.util import find_spec

from jaxmeter.launch.engines import Ask, Engine, find_engine
from jaxmeter.launch.options import UsageError

HERE = "here"
"""The environment of this process."""

LOCAL = "local"
"""An environment of a lock."""

RUNTIMES = (HERE, "auto", LOCAL, "container")
RUNTIME_VARIABLE = "JAXMETER_RUNTIME"
"""The runtime where no option names one. The noxfile sets it to `auto`."""

NOX_VARIABLE = "JAXMETER_IN_NOX"
"""Set by the noxfile."""

VERBS_OF_REPORT: Mapping[str, tuple[str, ...]] = {
    verb: ("report", verb) for verb in ("diff", "export", "gc", "history", "push", "reproduce", "trace")
}
"""Nox sessions of verbs that have none of their own."""

BASE_IMAGE_VARIABLE = "JAXMETER_BASE_IMAGE"
DEFAULT_BASE_IMAGE = "python:3.13-slim-trixie"


@dataclass(frozen=True)
class Request:
    """Where and how to run.

    Args:
      runtime: One of RUNTIMES; `local` is an environment of a lock, `auto` a container where an engine is, else local.
      lock: What to install: a key of `locks.LOCKS`.
      image: The user's own image to measure in, instead of jaxmeter's.
      base_image: What jaxmeter's image is built on.
      privileged: Give the container all of the machine, where single devices do not do.
      profile_privileged: Run the container as root with SYS_ADMIN, for drivers that keep counters to themselves.
      arguments: What is left, for the harness.
      words: What was taken, as it has to be given again to go on with a run.
      opens_page: Show the page in a browser when all is done.
    """

    runtime: str
    lock: str
    image: str | None
    base_image: str
    privileged: bool
    profile_privileged: bool
    arguments: tuple[str, ...]
    words: tuple[str, ...] = ()
    opens_page: bool = False


def choose_runtime(given: str | None, variables: Mapping[str, str]) -> str:
    """Return the runtime that an option or a variable names; else that of this process.

    Raises:
      UsageError: There is no such runtime; or it is that of a nox session, which has no jax.
    """
    runtime = given or variables.get(RUNTIME_VARIABLE) or HERE
    if runtime not in RUNTIMES:
        raise UsageError(f"--runtime {runtime!r} is unknown; allowed: {', '.join(RUNTIMES)}")
    if runtime == HERE and lacks_jax():
        raise UsageError(f"--runtime {HERE}: the environment of a nox session has no jax; allowed: --runtime {LOCAL}")
    return runtime


def format_command(backend: str, request: Request) -> str:
    """Return the command line of a measurement without the harness' own arguments: how to go on with a run."""
    if is_in_nox():
        return shlex.join(["nox", "-s", backend, "--", *request.words])
    return shlex.join(["jaxmeter", "run", "--backend", backend, *request.words])


def name_command(verb: str, *words: str) -> str:
    """Return the command line of a verb as the user calls this program, such as `nox -s compare -- A B`."""
    if is_in_nox():
        session, *others = (*VERBS_OF_REPORT.get(verb, (verb,)), *words)
        return shlex.join(("nox", "-s", session, *(("--", *others) if others else ())))
    return shlex.join(("jaxmeter", verb, *words))


def lacks_jax() -> bool:
    """Return whether this is the environment of a nox session, which measures in others."""
    return is_in_nox() and find_spec("jax") is None


def is_in_nox() -> bool:
    """Return whether a nox session calls this program."""
    return bool(os.environ.get(NOX_VARIABLE))


def choose_engine(runtime: str, variables: Mapping[str, str], ask: Ask | None = None) -> tuple[Engine | None, str]:
    """The engine to use, None without a container, and the line that says so.

    Raises:
      UsageError: A container is asked for, and no engine can be used.
    """
    if runtime == HERE:
        return None, "measuring in the environment of this command"
    if runtime == LOCAL:
        return None, "measuring in a local virtual environment, as asked"
    search = find_engine(variables, ask)
    if search.engine is not None:
        why = f" ({len(search.rejected)} passed over: {name_command('doctor')} gives the reason)"
        return search.engine, f"measuring in a container of {search.engine}{why if search.rejected else ''}"
    if runtime == "container":
        raise UsageError(
            f"{search.why_none()}\n  install one (Debian and Ubuntu: apt install podman), or measure without: "
            f"--runtime local; {name_command('doctor')} has details"
        )
    return None, f"{search.why_none()}\n  measuring in a local virtual environment instead (--runtime local)"
