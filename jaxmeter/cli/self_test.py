"""Measure: Measure how often this machine reports differences that do not exist; later runs show it."""

from __future__ import annotations

import json
import secrets
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from jaxmeter.cli.ending import FINE, INCOMPLETE
from jaxmeter.cli.measuring import (
    Json,
    Quiet,
    Runtime,
    choose_machine,
    complain,
    end,
    make_watcher,
    note_warnings,
    say_what_is_not_used,
)
from jaxmeter.cli.request import RunRequest, choose_settings, find_backend, with_request
from jaxmeter.document import terminal
from jaxmeter.document.model import Document, say
from jaxmeter.harness.metrics.aa_test import describe_self_test, make_self_test
from jaxmeter.harness.parent.execution import FEWEST_RUNS, repeat
from jaxmeter.harness.parent.prepare_run import UsageError, describe_suites, make_folder, make_manifest
from jaxmeter.harness.parent.progress import Watcher
from jaxmeter.harness.parent.servers import start_servers
from jaxmeter.harness.plan.cases import add_aa_control, choose_representatives, select
from jaxmeter.harness.record import Manifest, RunFolder, RunRecord
from jaxmeter.harness.record.files import SELF_TESTS
from jaxmeter.harness.record.self_test import keep_self_test

SELF_TEST_BUDGET = "18m"
"""With what comes before and after, within twenty minutes."""


@with_request(
    *("backend", "select", "suites", "budget", "out", "machine", "cores"),
    level="quick",
    probes=("timing",),
    budget=SELF_TEST_BUDGET,
)
def command(request: RunRequest, quiet: Quiet = False, as_json: Json = False, runtime: Runtime = None) -> None:
    """It compares equal programs with each other, in 20 minutes by default."""
    watcher = make_watcher(quiet=quiet, as_json=as_json)
    end(lambda: measure_self_test(request, watcher, as_json=as_json))


def measure_self_test(request: RunRequest, watcher: Watcher, *, as_json: bool) -> int:
    """Measures programs that are equal, says how often they were told apart, and keeps that for later runs."""
    settings, platform = choose_settings(request, "self-test"), find_backend(request.backend)
    say_what_is_not_used()
    with (
        _temporary_folder(request.out) as folder,
        start_servers(folder.path, suites=settings.suites, cores=settings.cores) as servers,
    ):
        server = servers.of(platform)
        description = describe_suites(
            server, settings.suites, platform, request.level, devices=True, cores=settings.cores
        )
        assert description.environment is not None
        environment, machine = description.environment, choose_machine(request, description.environment)
        note_warnings(server, description)
        selected = choose_representatives(select(description.cases, request.select))
        cases = tuple(aa_control for case in selected if (aa_control := add_aa_control(case)) is not None)
        if not cases:
            raise UsageError("no selected case has a program of JAX's that can be timed; select others")

        def plan(number: int) -> Manifest:
            run_id = f"{folder.path.name}-{number}"
            return make_manifest(run_id, platform.name, choose_settings(request, run_id), environment, cases, machine)

        runs = repeat(plan, folder.path, servers, watcher, settings.budget_s)
    return conclude_self_test(machine, runs, request.out, as_json=as_json)


def conclude_self_test(machine: str, runs: Sequence[RunRecord], out: Path, *, as_json: bool) -> int:
    """Keeps what runs of equal programs say, prints it with what was not measured, and returns the exit code."""
    ended = [run for run in runs if not run.lost()]
    code = FINE if len(ended) == len(runs) and all(run.is_complete() for run in ended) else INCOMPLETE
    self_test = make_self_test(machine, ended) if len(ended) >= FEWEST_RUNS else None
    if self_test is None or not self_test.speedups.compared:
        complain(
            f"no self-test: {FEWEST_RUNS} runs are needed that time all cases at least thrice, and {len(ended)} of "
            f"{len(runs)} did; give a larger --budget, or --select fewer cases"
        )
        return INCOMPLETE
    path = keep_self_test(out, self_test)
    if as_json:
        print(json.dumps({"file": str(path), "exit_code": code, "self_test": msgspec.to_builtins(self_test)}))
        return code
    incomplete = "Some cases failed, and are not counted; the lines above say which."
    kept = f"Kept in {path}: later runs of this machine below {out} report the result."
    texts = (*describe_self_test(self_test), incomplete if code == INCOMPLETE else "", kept)
    terminal.show(Document(parts=(say(*texts),)))
    return code


@contextmanager
def _temporary_folder(out: Path) -> Iterator[RunFolder]:
    """A folder below that of the runs, since what holds these has the room, and can be written in a container."""
    folder = make_folder(out / SELF_TESTS, f"{datetime.now(UTC):%Y-%m-%dT%H-%M-%SZ}-{secrets.token_hex(4)[:7]}")
    try:
        yield folder
    finally:
        shutil.rmtree(folder.path, ignore_errors=True)
