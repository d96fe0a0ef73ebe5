"""A night: what the reporter's steps say is measured here, in their order, and nothing of it twice."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path

from launcher.command_line import read_backend, read_request
from launcher.execution import say
from launcher.nights import CONFIRM, MEASURE, NightRequest, hold, read_night_request, read_step
from launcher.options import take_option
from launcher.request import Request
from launcher.runs import MANIFEST, Run, new_run_id, plan_run
from launcher.sessions.baseline import offer_baseline
from launcher.sessions.measuring import name_machine, run_harness
from launcher.sessions.same_runtime import follow_baseline, is_other_runtime
from launcher.sessions.shell import FINE, NO_ANSWER, USAGE_ERROR, Shell, prepare_stores, run_elsewhere

FINISH = "the same night, begun again within 12 hours"
"""It finds by itself what is left to do."""


def pass_night(shell: Shell, arguments: Sequence[str]) -> int:
    """Measure, push, confirm, judge and report; the verdict's exit code, or that of what went wrong before.

    Raises:
      UsageError: What was asked cannot be done.
    """
    asked = read_night_request(arguments)
    with hold(asked):
        return _pass_held(shell, asked)


def _pass_held(shell: Shell, asked: NightRequest) -> int:
    backend, measuring = read_backend(asked.measuring)
    request = read_request(backend, measuring, shell.variables)
    python, where = prepare_stores(shell), ("--out", str(asked.out))

    def report(step: str, *words: str) -> int:
        return run_elsewhere(shell, python, "night", step, *words)

    machine = asked.machine or name_machine(shell, backend, request)
    beginning = (asked.store, *where, "--backend", backend, "--machine", machine, *asked.beginning)
    if code := report("begin", *beginning, "--", *request.arguments):
        return code
    step = asked.folder / MEASURE
    goes_on = step.exists() and "--resume" in read_step(step)
    code = _take_step(shell, backend, request, step)
    if goes_on and code == USAGE_ERROR:
        say("what was begun before cannot be gone on with here; a new night begins, and its run stays where it is")
        if code := report("begin", *beginning, "--anew", "--", *request.arguments):
            return code
        code = _take_step(shell, backend, request, step)
    if code not in (FINE, NO_ANSWER):
        return code
    if code := report("suspects", *where):
        return code
    for step in sorted(asked.folder.glob(CONFIRM)):
        code = _take_step(shell, backend, request, step)
        if code not in (FINE, NO_ANSWER):
            return code
    return report("conclude", *where, *asked.ending)


def _take_step(shell: Shell, backend: str, request: Request, step: Path) -> int:
    """Measure what a step of a night says, if there is something left; the harness' exit code."""
    if not step.exists():
        return FINE
    _, words = read_backend(read_step(step))
    against, _ = take_option(words, "--against")
    followed = _follow_earlier(shell, backend, (*request.words, *words), against)
    name = new_run_id(backend)

    def plan(*more: str) -> tuple[Request, Run]:
        asked = read_request(backend, (*request.words, *followed, *words, *more), shell.variables)
        return asked, replace(plan_run(asked.arguments, name), is_reported=False, finish=FINISH)

    with ExitStack() as stack:
        beside: tuple[str, ...] = ()
        if against is not None:
            shell.install(request.lock)
            # Said before it is measured; the verdict says it once more. Later nights are compared with this one.
            ask_reporter = partial(run_elsewhere, shell, prepare_stores(shell))
            is_other_runtime(shell, backend, plan(), Path(against), ask_reporter, is_certain=True)
            other = stack.enter_context(offer_baseline(shell, backend, *plan(), Path(against)))
            beside = () if other is None else ("--lock-step", str(other))
        return run_harness(shell, backend, *plan(*beside))


def _follow_earlier(shell: Shell, backend: str, arguments: Sequence[str], against: str | None) -> tuple[str, ...]:
    """Options that measure in the runtime of the run that this one is compared with, or goes on with."""
    resumed, _ = take_option(arguments, "--resume")
    earlier = against or resumed
    if earlier is None or not Path(earlier, MANIFEST).is_file():
        return ()
    return follow_baseline(shell, backend, arguments, Path(earlier))
