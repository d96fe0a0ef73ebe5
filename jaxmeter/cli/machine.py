"""Measure: Print the name that records give to this machine."""

from __future__ import annotations

import tempfile
from pathlib import Path

from jaxmeter.cli.ending import FINE
from jaxmeter.cli.measuring import end
from jaxmeter.cli.request import DEFAULT_LEVEL, RunRequest, find_backend, with_request
from jaxmeter.harness.machine.environment import name_machine
from jaxmeter.harness.parent.prepare_run import describe_suites
from jaxmeter.harness.parent.servers import start_servers


@with_request("backend", "cores")
def command(request: RunRequest) -> None:
    """Options `--machine` of other commands override this name."""
    end(lambda: print_machine(request.backend, request.cores or None))  # ALL_CORES is the default here


def print_machine(backend: str, cores: int | None) -> int:
    """Prints the name that records give to this machine."""
    platform = find_backend(backend)
    with start_servers(Path(tempfile.gettempdir()), cores=cores) as servers:
        server = servers.of(platform)
        description = describe_suites(server, (), platform, DEFAULT_LEVEL, devices=True, cores=cores)
        assert description.environment is not None
        print(name_machine(description.environment))
    return FINE
