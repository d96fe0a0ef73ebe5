"""An upgrade: an old and a new environment take turns, and are compared."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from launcher.arm_containers import offer_environment
from launcher.command_line import read_backend, read_request
from launcher.environments import Wanted
from launcher.locks import SMALLEST_LOCK
from launcher.measurements import check_images, check_packages
from launcher.request import Request
from launcher.runs import Run, new_run_id, plan_run
from launcher.sessions.measuring import plan_job, run_harness
from launcher.sessions.shell import (
    FINE,
    INTERRUPTED,
    NO_ANSWER,
    USAGE_ERROR,
    Shell,
    prepare_environment,
    run_elsewhere,
    run_jaxmeter,
    take_given,
)
from launcher.upgrades import AFTER, BEFORE, read_upgrade_request


def compare_environments(shell: Shell, arguments: Sequence[str]) -> int:
    """Measure in an old and a new environment, their calls in turns; compare and report; the comparison's exit code.

    Raises:
      UsageError: What was asked cannot be done.
    """
    asked = read_upgrade_request(arguments)
    backend, measuring = read_backend(asked.measuring)
    if isinstance(asked.old, Wanted):
        measuring = check_packages(measuring, "an upgrade")
    else:
        check_images(backend, ("--image", str(asked.old), *measuring), "an upgrade")
    shell.install(SMALLEST_LOCK)
    limits = take_given(asked.judging, "--budgets", "--min-effect")
    if code := run_jaxmeter(shell, "limits", *limits):  # before anything is measured
        return code
    name = new_run_id(backend)
    before, after = (asked.out / f"{name}-{arm}" for arm in ("old", "new"))
    if isinstance(asked.old, Wanted) and isinstance(asked.new, Wanted):
        codes = _measure_packages(shell, backend, measuring, (asked.old, asked.new), (before, after))
    else:
        codes = _measure_images(shell, backend, measuring, (str(asked.old), str(asked.new)), (before, after))
    if codes[-1] not in (FINE, NO_ANSWER) or len(codes) == 1:
        return codes[-1] if codes[-1] in (USAGE_ERROR, INTERRUPTED) else NO_ANSWER
    code = run_jaxmeter(shell, "compare", str(before), str(after), *asked.judging)
    run_jaxmeter(shell, "report", str(before), str(after), *take_given(asked.judging, "--min-effect"))
    return code or max(codes)  # what was not measured was not compared


def _measure_packages(
    shell: Shell, backend: str, measuring: Sequence[str], arms: tuple[Wanted, Wanted], runs: tuple[Path, Path]
) -> list[int]:
    """The harness' exit codes in two environments of packages, each made here.

    Raises:
      UsageError: pip cannot install them.
    """
    old, new = (prepare_environment(shell, one) for one in arms)
    measured = ("run", "--backend", backend, *measuring)
    codes = [run_elsewhere(shell, old, *measured, *BEFORE, "--run-id", runs[0].name)]
    if codes[0] in (FINE, NO_ANSWER):
        beside = ("--against", str(runs[0]), "--lock-step", str(old))
        codes.append(run_elsewhere(shell, new, *measured, *AFTER, *beside, "--run-id", runs[1].name))
    return codes


def _measure_images(
    shell: Shell, backend: str, measuring: Sequence[str], arms: tuple[str, str], runs: tuple[Path, Path]
) -> list[int]:
    """The harness' exit codes in containers of two images.

    Raises:
      UsageError: There is no engine or image, or it cannot measure.
    """

    def plan(image: str, *words: str) -> tuple[Request, Run]:
        request = read_request(backend, ("--image", image, *measuring, *words), shell.variables)
        return request, replace(plan_run(request.arguments, ""), is_reported=False)

    codes = [run_harness(shell, backend, *plan(arms[0], *BEFORE, "--run-id", runs[0].name))]
    if codes[0] in (FINE, NO_ANSWER):
        beside = (*AFTER, "--against", str(runs[0]), "--run-id", runs[1].name)
        with offer_environment(plan_job(shell, backend, *plan(arms[0], *beside))) as socket:
            codes.append(run_harness(shell, backend, *plan(arms[1], *beside, "--lock-step", str(socket))))
    return codes
