"""A gate: measured beside a baseline run, suspects confirmed by fresh processes, then judged."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path

from launcher.command_line import read_backend, read_request
from launcher.doors.measuring import run_harness
from launcher.doors.shell import (
    INTERRUPTED,
    NO_ANSWER,
    USAGE_ERROR,
    Shell,
    prepare_environment,
    prepare_stores,
    run_program,
    take_given,
)
from launcher.execution import say
from launcher.gates import read_gate_request
from launcher.locks import SMALLEST_LOCK
from launcher.options import UsageError
from launcher.rebuilt import find_changes, find_obstacle, read_baseline, read_installed
from launcher.request import Request
from launcher.runs import Run, is_store, new_run_id, plan_beside
from launcher.runtime import choose_engine


def pass_gate(shell: Shell, arguments: Sequence[str]) -> int:
    """Measure, confirm what is suspected, judge and report; the exit code of the judge, or of what went wrong before.

    Raises:
      UsageError: What was asked cannot be done.
    """
    asked = read_gate_request(_fetch_baseline(shell, arguments))
    backend, measuring = read_backend(asked.measuring)
    limits = take_given(asked.judging, "--budgets", "--min-effect")
    shell.install(SMALLEST_LOCK)
    if code := run_program(shell, "reporting", "limits", *limits):  # before anything is measured
        return code
    other = None
    if not asked.exact:
        other = rebuild_baseline(shell, read_request(backend, measuring, shell.variables), asked.baseline)
    with tempfile.TemporaryDirectory() as folder:
        suspects = Path(folder) / "suspects.json"
        run, code = _measure_beside(shell, backend, measuring, asked.baseline, other=other)
        if not run.has_measured(code):
            return code if code in (USAGE_ERROR, INTERRUPTED) else NO_ANSWER
        shell.install(SMALLEST_LOCK)
        confirmed: tuple[str, ...] = ()
        if not asked.exact:
            runs = (str(asked.baseline), str(run.folder))
            run_program(shell, "reporting", "compare", *runs, "--suspects", str(suspects), *limits)
            if suspects.is_file():
                again, code = _measure_beside(shell, backend, measuring, asked.baseline, suspects, other)
                if again.has_measured(code):
                    confirmed = ("--confirmed-by", str(again.folder))
                shell.install(SMALLEST_LOCK)
        judged = (str(asked.baseline), str(run.folder), *confirmed)
        code = run_program(shell, "reporting", "gate", *judged, *asked.judging)
        run_program(shell, "reporting", "report", *judged, *take_given(asked.judging, "--min-effect"))
    return code


def rebuild_baseline(shell: Shell, request: Request, baseline: Path) -> Path | None:
    """The python of the baseline's environment where the session's is another; None where it is not, or cannot be had.

    Raises:
      UsageError: The baseline's manifest cannot be read.
    """
    before = read_baseline(baseline)
    listed = shell.ask("python", "-m", "pip", "list", "--format=freeze")
    changes = find_changes(before, read_installed(listed), shell.variables)
    if not changes:
        return None
    engine, _ = choose_engine(request.runtime, shell.variables)
    told = f"not as in the baseline: {', '.join(changes)}"
    if obstacle := find_obstacle(before, in_container=engine is not None):
        say(f"warning: {told}; slower times stay suspected: {obstacle}")
        return None
    say(f"{told}; its environment takes turns with today's")
    try:
        return prepare_environment(shell, before.wanted)
    except UsageError as error:
        say(f"warning: slower times stay suspected: {error}")
        return None


def _fetch_baseline(shell: Shell, arguments: Sequence[str]) -> list[str]:
    """The arguments of a gate, with the folder in the cache in place of the URL of a baseline run."""
    if not arguments or not is_store(arguments[0]):
        return list(arguments)
    folder = shell.ask(str(prepare_stores(shell)), "-m", "reporting", "fetch", arguments[0])
    return [folder.strip(), *arguments[1:]]


def _measure_beside(
    shell: Shell,
    backend: str,
    arguments: Sequence[str],
    baseline: Path,
    suspects: Path | None = None,
    other: Path | None = None,
) -> tuple[Run, int]:
    """A run beside an earlier one, and the harness' exit code.

    Args:
      other: The python of the earlier run's environment, where its calls and today's take turns.
    """
    request = read_request(backend, arguments, shell.variables)
    run = plan_beside(baseline, request.arguments, new_run_id(backend), suspects, other)
    return run, run_harness(shell, backend, request, run)
