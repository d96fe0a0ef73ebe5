"""Container or local environment: who runs the harness."""

from __future__ import annotations

from collections.abc import Mapping

from launcher.engines import ENGINE_VARIABLE, Ask, Engine, find_engine
from launcher.index import host_of, is_loopback
from launcher.options import UsageError

ADDRESS_VARIABLES = {"docker": "DOCKER_HOST", "podman": "CONTAINER_HOST"}


def choose_engine(runtime: str, variables: Mapping[str, str], ask: Ask | None = None) -> tuple[Engine | None, str]:
    """The engine to use, None for the local environment, and the line that says so.

    Raises:
      UsageError: A container is asked for, and no engine can be used.
    """
    if runtime == "local":
        return None, "measuring in a local virtual environment, as asked"
    search = find_engine(variables, ask)
    if search.engine is not None:
        _check_same_machine(search.engine, variables)
        return search.engine, f"measuring in a container of {search.engine}"
    if runtime == "container":
        raise UsageError(
            f"{search.why_none()}\n  install one (Debian and Ubuntu: apt install podman), or measure without: "
            "--runtime local; nox -s doctor tells more"
        )
    return None, f"{search.why_none()}\n  measuring in a local virtual environment instead (--runtime local)"


def _check_same_machine(engine: Engine, variables: Mapping[str, str]) -> None:
    """An engine elsewhere has other devices and other folders: its results would not arrive here."""
    name = ADDRESS_VARIABLES.get(engine.kind, "")
    address = variables.get(name, "")
    is_remote = address.startswith("tcp://") and not is_loopback(host_of(address))
    if is_remote or address.startswith("ssh://"):
        raise UsageError(
            f"{name} is an engine of another machine, where neither the folders nor the devices of this one are; "
            f"run jaxmeter there, unset {name}, choose another engine ({ENGINE_VARIABLE}), or use --runtime local"
        )
