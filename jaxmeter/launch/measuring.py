"""A measurement: in a container or the session's environment, then its page, and its copy in a store."""

from __future__ import annotations

import webbrowser
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from jaxmeter.launch.command_line import read_request
from jaxmeter.launch.containers import caller_here
from jaxmeter.launch.environments import check, find_warnings
from jaxmeter.launch.execution import say
from jaxmeter.launch.host import look_at_host
from jaxmeter.launch.images import lock_sha256
from jaxmeter.launch.jobs import Job, ask_machine, measure_in_container
from jaxmeter.launch.options import UsageError, read_options
from jaxmeter.launch.request import HERE, Request, choose_engine, format_command
from jaxmeter.launch.runs import DEFAULT_OUT, PlannedRun, take_store
from jaxmeter.launch.shell import FINE, JAXMETER, NO_ANSWER, Shell, prepare_stores, run_elsewhere, run_jaxmeter


def measure(shell: Shell, backend: str, arguments: Sequence[str], plan: Callable[[Sequence[str]], PlannedRun]) -> int:
    """Run the harness on `backend` and report on the run that it left, if any; the harness' exit code.

    Raises:
      UsageError: Something is in the way, and the message says what to do.
    """
    store, sent, arguments = take_store(arguments)
    request = read_request(backend, arguments, shell.variables)
    run = plan(request.arguments)
    if store is not None and not run.is_rehearsal and (code := reach(shell, run, store)):
        return code
    code = run_harness(shell, backend, request, run)
    if code not in (FINE, NO_ANSWER):
        return code
    show_page(shell, request, run)
    return (push(shell, run, store, sent) or code) if store is not None and not run.is_rehearsal else code


def run_harness(
    shell: Shell, backend: str, request: Request, run: PlannedRun, variables: Mapping[str, str] | None = None
) -> int:
    """Run the harness, in a container where there is an engine, and report; its exit code, else the report's.

    Args:
      variables: Those that a container may take over, by default the user's.
    Raises:
      UsageError: Something is in the way, and the message says what to do.
    """
    engine, line = choose_engine(request.runtime, shell.variables)
    host, caller = look_at_host(), caller_here(shell.variables)
    if not run.is_rehearsal:
        check(backend, request, host, engine)
    say(line)
    for warning in find_warnings(backend, host, is_root=caller.uid == 0 and engine is None):
        say(f"warning: {warning}")
    if engine is not None:
        own = shell.variables if variables is None else variables
        return measure_in_container(Job(backend, request, run, engine, host, caller, shell.checkout, own))
    shell.set_variable("JAXMETER_COMMAND", format_command(backend, request))
    shell.set_variable("JAXMETER_FINISH", run.finish)
    if request.runtime != HERE:
        shell.install(request.lock)
        shell.set_variable("JAXMETER_LOCK_SHA256", lock_sha256(shell.checkout, request.lock))
    code = run_jaxmeter(shell, run.verb, "--backend", backend, *run.arguments)
    report_code = FINE
    if run.can_be_reported(code):
        report_code = run_jaxmeter(shell, "report", str(run.folder))
    return code or report_code


def plan_job(shell: Shell, backend: str, request: Request, run: PlannedRun) -> Job:
    """A measurement in a container.

    Raises:
      UsageError: There is no engine.
    """
    engine, line = choose_engine("container", shell.variables)
    if engine is None:
        raise UsageError(line)
    host, caller = look_at_host(), caller_here(shell.variables)
    return Job(backend, request, run, engine, host, caller, shell.checkout, shell.variables)


def name_machine(shell: Shell, backend: str, request: Request) -> str:
    """What the harness calls this machine.

    Raises:
      UsageError: It finds no device.
    """
    cores = read_options(request.arguments, "--cores").list_words("--cores")
    run = PlannedRun(tuple(cores), Path(DEFAULT_OUT, "machine"), is_rehearsal=False, verb="machine")
    engine, _ = choose_engine(request.runtime, shell.variables)
    host, caller = look_at_host(), caller_here(shell.variables)
    check(backend, request, host, engine)
    if engine is not None:
        return ask_machine(Job(backend, request, run, engine, host, caller, shell.checkout, shell.variables))
    shell.install(request.lock)
    return shell.ask("python", *JAXMETER, run.verb, "--backend", backend, *run.arguments).strip()


def reach(shell: Shell, run: PlannedRun, store: str) -> int:
    """Whether a store can be written, before anything is measured; an exit code.

    Raises:
      UsageError: What is measured is no run that a store takes.
    """
    if not run.is_reported:
        raise UsageError(f"--out {store}: a self-test stays on its machine; name a folder")
    return run_elsewhere(shell, prepare_stores(shell), "reach", store)


def push(shell: Shell, run: PlannedRun, store: str, options: Sequence[str]) -> int:
    """Copy a run into a store, if it has ended; the exit code."""
    if not run.has_ended():
        say(f"not pushed to {store}: {run.folder} has not ended; finish it with --resume, then push it")
        return NO_ANSWER
    return run_elsewhere(shell, prepare_stores(shell), "push", str(run.folder), store, *options)


def show_page(shell: Shell, request: Request, run: PlannedRun) -> None:
    """Open the run's page in a browser, if that was asked for and there are a page, a person and a browser."""
    if request.opens_page and run.page.is_file() and not shell.variables.get("CI"):
        webbrowser.open(run.page.resolve().as_uri())
