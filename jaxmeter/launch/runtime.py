"""Container or local environment: who runs the harness."""

from __future__ import annotations

from collections.abc import Mapping

from jaxmeter.launch.engines import Ask, Engine, find_engine
from jaxmeter.launch.options import UsageError
from jaxmeter.launch.request import HERE, LOCAL, name_command


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
