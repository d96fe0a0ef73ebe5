"""Compare: Find the first run in which a number changed."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Annotated

import msgspec
import typer

from jaxmeter.cli.complaints import complain, give_up
from jaxmeter.cli.inputs import LONGEST_NAME, KnownFile, Last, MinEffect, Runs, Since, load_any, load_known, read_limits
from jaxmeter.document import terminal
from jaxmeter.harness.record.wording import counted, shorten, visible
from jaxmeter.reporting.compare.verdicts import encode_fields
from jaxmeter.reporting.load import leave_out_confirming
from jaxmeter.reporting.view.comparisons import (
    MachineChanges,
    describe_history,
    explain_nothing,
    find_history,
    find_unused,
    list_faults,
)


def command(
    runs: Runs,
    case: Annotated[str, typer.Option(help="Name of a suite, workload or case; * is any text, ? one character.")] = "*",
    known_file: KnownFile = None,
    min_effect: MinEffect = "3%",
    since: Since = "",
    last: Last = None,
    as_json: Annotated[bool, typer.Option("--json", help="Write JSON to stdout.")] = False,
) -> None:
    """It also lists what else changed in that run, and the likely cause."""
    effect, _ = read_limits(min_effect, None)
    known = load_known(known_file)
    read = load_any(runs, since, last)
    loaded = leave_out_confirming(read)
    if left_out := len(read.runs) - len(loaded.runs):
        complain(f"{counted(left_out, 'run')} left out: they time suspects of a gate only", "warning")
    by_machine = find_history(loaded, known, case, effect)
    faults = [*loaded.warnings, *map(visible, list_faults(loaded))]
    for warning in faults:
        complain(warning, "warning")
    for run in find_unused(known, loaded):
        complain(f"--known: no run '{shorten(run, LONGEST_NAME)}' is among these", "warning")
    if not any(changes.series for changes in by_machine):
        give_up(explain_nothing(loaded, case))
    if as_json:
        sys.stdout.buffer.write(_encode(by_machine, faults))
    else:
        terminal.show(describe_history(by_machine))


def _encode(by_machine: Sequence[MachineChanges], faults: Sequence[str]) -> bytes:
    """All change points as JSON, with the effect as a ratio."""
    machines = [
        {
            "name": changes.machine.name,
            "machine": changes.machine.newest.manifest.machine,
            "runs": [run.name for run in changes.machine.runs],
            "series": len(changes.series),
            "change_points": [
                {**encode_fields(change_point), "effect": change_point.effect} for change_point in changes.change_points
            ],
        }
        for changes in by_machine
    ]
    return msgspec.json.format(msgspec.json.encode({"machines": machines, "warnings": list(faults)}), indent=2) + b"\n"
