"""`jaxmeter machine`: the name of this machine."""

from __future__ import annotations

import tempfile
from pathlib import Path

from jaxmeter.cli.ending import FINE
from jaxmeter.cli.measuring import Backend, Cores, end
from jaxmeter.harness.machine.name import name_machine
from jaxmeter.harness.machine.platforms import DEFAULT_BACKEND
from jaxmeter.harness.parent.prepare_run import describe_suites
from jaxmeter.harness.parent.servers import start_servers
from jaxmeter.harness.request import DEFAULT_LEVEL, find_backend


def command(backend: Backend = DEFAULT_BACKEND, cores: Cores = None) -> None:
    """Options `--machine` of other commands override this name."""
    end(lambda: print_machine(backend, cores or None))  # ALL_CORES is the default here


def print_machine(backend: str, cores: int | None) -> int:
    """Prints the name that records give to this machine."""
    platform = find_backend(backend)
    with start_servers(Path(tempfile.gettempdir()), cores=cores) as servers:
        server = servers.of(platform)
        description = describe_suites(server, (), platform, DEFAULT_LEVEL, devices=True, cores=cores)
        assert description.environment is not None
        print(name_machine(description.environment))
    return FINE
