"""Where the harness runs: in the local environment or in a container."""

from __future__ import annotations

from collections.abc import Sequence

from launcher.options import UsageError, take_option

RUNTIMES = ("auto", "local", "container")


def local_arguments(arguments: Sequence[str]) -> list[str]:
    """The harness' own arguments, without --runtime; `auto` means local, as there is nothing else yet.

    Raises:
      UsageError: The runtime is unknown, or not part of this version.
    """
    runtime, rest = take_option(arguments, "--runtime")
    if runtime == "container":
        raise UsageError("containers are not part of this version; use --runtime local")
    if runtime is not None and runtime not in RUNTIMES:
        raise UsageError(f"--runtime {runtime!r} is unknown; allowed: {', '.join(RUNTIMES)}")
    return rest
