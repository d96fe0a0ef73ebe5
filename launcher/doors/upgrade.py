"""An upgrade: an old and a new environment take turns, and are compared."""

from __future__ import annotations

from collections.abc import Sequence

from launcher.command_line import read_backend
from launcher.doors.shell import (
    FINE,
    INTERRUPTED,
    NO_ANSWER,
    USAGE_ERROR,
    Shell,
    prepare_environment,
    run_elsewhere,
    run_program,
    take_given,
)
from launcher.locks import SMALLEST_LOCK
from launcher.runs import new_run_id
from launcher.upgrades import AFTER, BEFORE, read_upgrade_request


def compare_environments(shell: Shell, arguments: Sequence[str]) -> int:
    """Measure in an old and a new environment, their calls in turns; compare and report; the comparison's exit code.

    Raises:
      UsageError: What was asked cannot be done.
    """
    asked = read_upgrade_request(arguments)
    backend, measuring = read_backend(asked.measuring)
    shell.install(SMALLEST_LOCK)
    limits = take_given(asked.judging, "--budgets", "--min-effect")
    if code := run_program(shell, "reporting", "limits", *limits):  # before anything is measured
        return code
    old, new = (prepare_environment(shell, one) for one in (asked.old, asked.new))
    measured = ("run", "--backend", backend, *measuring)
    name = new_run_id(backend)
    before, after = (asked.out / f"{name}-{side}" for side in ("old", "new"))
    codes = [run_elsewhere(shell, old, "harness", *measured, *BEFORE, "--run-id", before.name)]
    if codes[0] in (FINE, NO_ANSWER):
        beside = ("--against", str(before), "--lock-step", str(old))
        codes.append(run_elsewhere(shell, new, "harness", *measured, *AFTER, *beside, "--run-id", after.name))
    if codes[-1] not in (FINE, NO_ANSWER) or len(codes) == 1:
        return codes[-1] if codes[-1] in (USAGE_ERROR, INTERRUPTED) else NO_ANSWER
    code = run_program(shell, "reporting", "compare", str(before), str(after), *asked.judging)
    run_program(shell, "reporting", "report", str(before), str(after), *take_given(asked.judging, "--min-effect"))
    return code or max(codes)  # what was not measured was not compared
