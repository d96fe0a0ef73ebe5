"""Container or local environment: who runs the harness."""

from __future__ import annotations

from collections.abc import Mapping

from jaxmeter.launch.engines import Ask, Engine, find_engine
from jaxmeter.launch.options import UsageError


def choose_engine(runtime: str, variables: Mapping[str, str], ask: Ask | None = None) -> tuple[Engine | None, str]:
    """The engine to use, None for the local environment, and the line that says so.

    Raises:
      UsageError: A container is asked for, and no engine can be used.
    """
    if runtime == "local":
        return None, "measuring in a local virtual environment, as asked"
    search = find_engine(variables, ask)
    if search.engine is not None:
        passed = f" ({len(search.rejected)} passed over: nox -s doctor gives the reason)" if search.rejected else ""
        return search.engine, f"measuring in a container of {search.engine}{passed}"
    if runtime == "container":
        raise UsageError(
            f"{search.why_none()}\n  install one (Debian and Ubuntu: apt install podman), or measure without: "
            "--runtime local; nox -s doctor has details"
        )
    return None, f"{search.why_none()}\n  measuring in a local virtual environment instead (--runtime local)"
