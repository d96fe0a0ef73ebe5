"""What is asked of the launcher: where and how to run. `command_line` reads it, others act on it."""

from __future__ import annotations

import shlex
from dataclasses import dataclass

RUNTIMES = ("auto", "local", "container")
BASE_IMAGE_VARIABLE = "JAXMETER_BASE_IMAGE"
DEFAULT_BASE_IMAGE = "python:3.13-slim-trixie"


@dataclass(frozen=True)
class Request:
    """Where and how to run.

    Args:
      runtime: One of RUNTIMES; `auto` is a container where an engine is, else the local environment.
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


def format_command(backend: str, request: Request) -> str:
    """The command line of a measurement without the harness' own arguments: how to go on with a run."""
    return shlex.join(["nox", "-s", backend, "--", *request.words])
