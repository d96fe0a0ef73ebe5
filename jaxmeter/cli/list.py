"""Measure: Show suites, workloads, params and variants."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path

import msgspec

from jaxmeter.cli.ending import FINE
from jaxmeter.cli.measuring import Full, Json, Quick, choose_level, end, list_warnings, warn
from jaxmeter.cli.request import RunRequest, find_backend, with_request
from jaxmeter.document import terminal
from jaxmeter.harness.declare.catalogue import DEFAULT_SUITES
from jaxmeter.harness.listing import describe_catalogue
from jaxmeter.harness.machine.platforms import DEFAULT_BACKEND, PLATFORMS
from jaxmeter.harness.parent.prepare_run import describe_suites
from jaxmeter.harness.parent.servers import start_servers


@with_request("suites", "backend")
def command(request: RunRequest, quick: Quick = False, full: Full = False, as_json: Json = False) -> None:
    """It needs no device."""
    end(lambda: list_suites(request.suites, request.backend, choose_level(quick, full), as_json=as_json))


def list_suites(suites: Sequence[str], backend: str, level: str, *, as_json: bool) -> int:
    """Prints the catalogue. It needs no device: the child that imports the suites uses the CPU."""
    platform = find_backend(backend)
    with start_servers(Path(tempfile.gettempdir())) as servers:
        server = servers.of(PLATFORMS[DEFAULT_BACKEND])
        description = describe_suites(server, tuple(suites) or (DEFAULT_SUITES,), platform, level, devices=False)
    warn(list_warnings(description))
    if as_json:
        print(msgspec.json.encode(description.suites).decode())
    else:
        terminal.show(describe_catalogue(description))
    return FINE
