"""Before anything is downloaded or built: can this machine do what is asked? Each problem with its remedy."""

from __future__ import annotations

from jaxmeter.launch.backends import BACKENDS
from jaxmeter.launch.engines import Engine
from jaxmeter.launch.host import Host
from jaxmeter.launch.observations import Problem
from jaxmeter.launch.options import UsageError
from jaxmeter.launch.request import Request


def check(backend: str, request: Request, host: Host, engine: Engine | None) -> None:
    """Raises UsageError with one line a problem, where the backend's devices cannot be used here."""
    if problems := find_problems(backend, request, host, engine):
        lines = "".join(f"\n  {problem}" for problem in problems)
        raise UsageError(f"{backend} cannot be measured on this machine; nothing was downloaded or built{lines}")


def find_problems(backend: str, request: Request, host: Host, engine: Engine | None) -> list[Problem]:
    """Return the problems that prevent the use of a backend, most fundamental first; empty if there are none."""
    return BACKENDS[backend].devices.find_problems(request, host, engine)


def find_warnings(backend: str, host: Host, *, is_root: bool) -> list[Problem]:
    """What will be missing from the results, though times are right."""
    return BACKENDS[backend].devices.find_warnings(host, is_root)
