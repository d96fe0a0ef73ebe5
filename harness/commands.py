"""What the commands do; each returns its exit code. The command line itself is __main__.py."""

from __future__ import annotations

import json
import os
import secrets
import shlex
import shutil
import signal
import sys
import tempfile
import traceback
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from types import FrameType

import msgspec
from rich.console import Console

from harness.declare.catalogue import DEFAULT_SUITES
from harness.listing import catalogue_lines, data_warnings, plan_lines
from harness.machine.disk import is_disk_full
from harness.machine.name import LONGEST_NAME, is_name, name_machine
from harness.machine.platforms import DEFAULT_BACKEND, PLATFORMS, list_unused_variables
from harness.parent.against import Against, choose_suspects, read_against, read_suspects
from harness.parent.execution import execute, find_records
from harness.parent.fork_client import ForkServer, ServerError, ServerLostError
from harness.parent.prepare_run import (
    RunError,
    UsageError,
    begin_folder,
    check_budget,
    check_resumable,
    check_still_there,
    count_left_out,
    count_work,
    describe_suites,
    load_for_resume,
    lock_folder,
    make_folder,
    make_manifest,
)
from harness.parent.progress import Lines, Live, Watcher, printable
from harness.parent.recorded import (
    check_same_baseline,
    choose_data,
    choose_lock_step,
    choose_suites,
    is_own_suite,
    replace_paths,
)
from harness.parent.repeat import FEWEST_RUNS, repeat
from harness.parent.scratch import find_parent
from harness.parent.servers import start_servers
from harness.plan.aa_controls import add_aa_control
from harness.plan.estimate import estimate
from harness.plan.messages import Description
from harness.plan.processes import plan_processes
from harness.plan.selection import SelectionError, choose_representatives, select
from harness.record import Environment, Manifest, RecordError, Run, RunFolder, make_run_id, read_run, write_json
from harness.record.aa_test import make_self_test
from harness.record.layout import SELF_TESTS
from harness.record.self_test import SelfTest, find_self_test, keep_self_test
from harness.record.trust import describe_self_test
from harness.record.wording import counted
from harness.request import (
    DEFAULT_LEVEL,
    RunRequest,
    choose_settings,
    complete_request,
    find_backend,
    find_other_environment,
    read_budget,
)
from harness.results import describe_results, list_results

OK, USAGE, INCOMPLETE, INTERRUPTED = 0, 2, 3, 130


def list_suites(suites: Sequence[str], backend: str, level: str, *, as_json: bool) -> int:
    """Prints the catalogue. It needs no device: the child that imports the suites uses the CPU."""
    platform = find_backend(backend)
    with start_servers(Path(tempfile.gettempdir())) as servers:
        server = servers.of(PLATFORMS[DEFAULT_BACKEND])
        description = describe_suites(server, tuple(suites) or (DEFAULT_SUITES,), platform, level, devices=False)
    _warn(_list_warnings(description))
    if as_json:
        print(msgspec.json.encode(description.suites).decode())
    else:
        print("\n".join(map(printable, catalogue_lines(description))))
    return OK


def dry_run(request: RunRequest, *, as_json: bool) -> int:
    """Prints the plan and its estimated time; measures nothing and needs no device."""
    settings = choose_settings(request, "dry-run")
    with start_servers(Path(tempfile.gettempdir()), settings.data) as servers:
        server = servers.of(PLATFORMS[DEFAULT_BACKEND])
        platform = find_backend(request.backend)
        description = describe_suites(server, settings.suites, platform, request.level, devices=False)
        cases = choose_representatives(select(description.cases, request.select))
        work = count_work(server, settings.suites, platform, request.level, request.select)
    _warn(_list_warnings(description))
    processes = plan_processes(cases, settings)
    if request.budget is not None:
        check_budget(processes, settings, work, settings.budget_s)
    _warn(data_warnings(cases, settings))
    if as_json:
        found = estimate(processes, settings, work)
        names = [case.name for case in cases]
        print(json.dumps({"cases": names, "least_s": found.least_s, "most_s": found.most_s}))
    else:
        print("\n".join(map(printable, plan_lines(cases, processes, settings, work))))
    return OK


def new_run(request: RunRequest, watcher: Watcher, *, as_json: bool) -> int:
    """Measures a new run."""
    run_id = request.run_id or make_run_id(request.backend)
    against = None if request.against is None else read_against(_find_run(request.against, request.out))
    suspects = None if request.suspects is None else read_suspects(request.suspects)
    if against is not None:
        path, before_it = against.folder.path, against.manifest.settings
        suites = choose_suites(request.suites, before_it.suites, path, "--against")
        data = choose_data(request.data, before_it.data, path, "--against")
        request = complete_request(replace(request, suites=suites, data=data), before_it, suspects)
    before = None if against is None else against.manifest
    settings = choose_settings(request, run_id, before)
    if settings.lock_step is not None and "timing" not in settings.probes:
        raise UsageError("--lock-step times calls in two environments; add --probe timing")
    platform = find_backend(request.backend)
    _say_what_is_not_used()
    with (
        begin_folder(request.out, run_id) as folder,
        start_servers(
            find_parent(folder.path),
            settings.data,
            settings.suites,
            find_other_environment(request, before),
            cores=settings.cores,
        ) as servers,
    ):
        servers.arms_of(platform)  # whether it can be had is known before anything is measured
        server = servers.of(platform)
        description = describe_suites(
            server, settings.suites, platform, request.level, devices=True, cores=settings.cores
        )
        assert description.environment is not None
        settings = msgspec.structs.replace(settings, notes=_notes_on(server, description))
        cases = choose_representatives(select(description.cases, request.select))
        if against is not None and "timing" in settings.probes:
            cases = against.add_programs(cases) if settings.lock_step is None else against.add_lock_step(cases)
            cases = cases if suspects is None else choose_suspects(cases, suspects)
        if request.budget is not None:
            work = count_work(server, settings.suites, platform, request.level, request.select)
            check_budget(plan_processes(cases, settings), settings, work, settings.budget_s)
        machine = _machine(request, description.environment)
        earlier = None if against is None else against.run_id
        _warn(_find_other_machine(machine, against))
        manifest = make_manifest(run_id, platform.name, settings, description.environment, cases, machine, earlier)
        tested = _self_test_of(machine, request.out)
        manifest = msgspec.structs.replace(manifest, self_test=tested, confirms=suspects is not None)
        write_json(folder.manifest, manifest)
        if against is not None:
            against.copy_programs(cases, folder)
        _warn(data_warnings(cases, settings))
        finish = _how_to_finish(folder.path, request)
        with _say_what_is_kept(folder, manifest, finish):
            run = execute(manifest, folder, servers, watcher)
    return conclude(run, folder.path, finish, as_json=as_json)


def resume_run(path: Path, request: RunRequest, watcher: Watcher, *, as_json: bool) -> int:
    """Measures what an interrupted run still lacks, by that run's own settings, within its budget or a new one.

    Args:
      request: What else was given: a budget, and the paths that are not taken from a record.
    """
    budget_s, folder = read_budget(request.budget), RunFolder(path)
    finish = _how_to_finish(path, request)
    manifest = load_for_resume(folder)
    if folder.mark.exists():  # a run that has ended is not written again
        return conclude(_read_ended(folder), path, finish, as_json=as_json)
    check_same_baseline(manifest, request.against and _find_run(request.against, request.out))
    lock_step = choose_lock_step(request.lock_step, manifest, path)
    suites = choose_suites(request.suites, manifest.settings.suites, path, "--resume")
    data = choose_data(request.data, manifest.settings.data, path, "--resume")
    settings = replace_paths(manifest.settings, suites, data, lock_step)
    manifest = msgspec.structs.replace(manifest, settings=settings)
    platform = find_backend(manifest.backend)
    with (
        lock_folder(folder),
        start_servers(find_parent(path), settings.data, settings.suites, lock_step, cores=settings.cores) as servers,
    ):
        servers.arms_of(platform)
        server = servers.of(platform)
        description = describe_suites(
            server, settings.suites, platform, settings.level, devices=True, cores=settings.cores
        )
        check_resumable(manifest, description)
        _notes_on(server, description)
        _warn(data_warnings(manifest.cases, settings))
        if budget_s is not None:
            begun = find_records(folder, manifest)
            untouched = [case for case in manifest.cases if case.id not in begun]
            check_budget(plan_processes(untouched, settings), settings, {}, budget_s)
        with _say_what_is_kept(folder, manifest, finish):
            run = execute(manifest, folder, servers, watcher, budget_s)
    return conclude(run, path, finish, as_json=as_json)


def self_test(request: RunRequest, watcher: Watcher, *, as_json: bool) -> int:
    """Measures programs that are equal, says how often they were told apart, and keeps that for later runs."""
    settings, platform = choose_settings(request, "self-test"), find_backend(request.backend)
    _say_what_is_not_used()
    with (
        _temporary_folder(request.out) as folder,
        start_servers(folder.path, suites=settings.suites, cores=settings.cores) as servers,
    ):
        server = servers.of(platform)
        description = describe_suites(
            server, settings.suites, platform, request.level, devices=True, cores=settings.cores
        )
        assert description.environment is not None
        environment, machine = description.environment, _machine(request, description.environment)
        _notes_on(server, description)
        selected = choose_representatives(select(description.cases, request.select))
        cases = tuple(aa_control for case in selected if (aa_control := add_aa_control(case)) is not None)
        if not cases:
            raise UsageError("no selected case has a program of JAX's that can be timed; select others")

        def plan(number: int) -> Manifest:
            run_id = f"{folder.path.name}-{number}"
            return make_manifest(run_id, platform.name, choose_settings(request, run_id), environment, cases, machine)

        runs = repeat(plan, folder.path, servers, watcher, settings.budget_s)
    return conclude_self_test(machine, runs, request.out, as_json=as_json)


def conclude_self_test(machine: str, runs: Sequence[Run], out: Path, *, as_json: bool) -> int:
    """Keeps what runs of equal programs say, prints it with what was not measured, and returns the exit code."""
    ended = [run for run in runs if not run.lost()]
    code = OK if len(ended) == len(runs) and all(run.is_complete() for run in ended) else INCOMPLETE
    found = make_self_test(machine, ended) if len(ended) >= FEWEST_RUNS else None
    if found is None or not found.speedups.compared:
        _complain(
            f"no self-test: {FEWEST_RUNS} runs are needed that time all cases at least thrice, and {len(ended)} of "
            f"{len(runs)} did; give a larger --budget, or --select fewer cases"
        )
        return INCOMPLETE
    path = keep_self_test(out, found)
    if as_json:
        print(json.dumps({"file": str(path), "exit_code": code, "self_test": msgspec.to_builtins(found)}))
        return code
    print("\n".join(map(printable, describe_self_test(found))))
    if code == INCOMPLETE:
        print("Some cases failed, and are not counted; the lines above say which.")
    print(f"Kept in {path}: runs of this machine below {out} tell it from now on.")
    return code


def print_machine(backend: str, cores: int | None) -> int:
    """Prints the name that records give to this machine."""
    platform = find_backend(backend)
    with start_servers(Path(tempfile.gettempdir()), cores=cores) as servers:
        server = servers.of(platform)
        description = describe_suites(server, (), platform, DEFAULT_LEVEL, devices=True, cores=cores)
        assert description.environment is not None
        print(name_machine(description.environment))
    return OK


def make_watcher(*, quiet: bool, as_json: bool) -> Watcher:
    """Nothing, a live bar on a terminal, or plain lines; on stderr where stdout is for JSON."""
    if quiet:
        return Watcher()
    console = Console(stderr=as_json)
    return Live(console) if console.is_terminal else Lines(sys.stderr if as_json else sys.stdout)


def run_command(command: Callable[[], int]) -> int:
    """Runs a command; errors that a person can act on become a line on stderr and an exit code."""
    signal.signal(signal.SIGTERM, _interrupt)
    try:
        return command()
    except (RunError, ServerLostError) as error:
        _complain(str(error))
        return INCOMPLETE
    except (UsageError, SelectionError, ServerError) as error:
        _complain(str(error))
        return USAGE
    except OSError as error:
        if is_disk_full(error):
            _complain(f"the disk is full ({_platform_of(error)}); free some room, then go on with --resume RUN")
            return INCOMPLETE
        _complain(_explain(error))
        return USAGE
    except KeyboardInterrupt:
        return INTERRUPTED
    except Exception:  # noqa: BLE001  Python's own exit code would be 1, which means a confirmed regression
        traceback.print_exc()
        _complain("this is a fault of jaxmeter; what was measured is kept")
        return INCOMPLETE


def _interrupt(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def _complain(text: str) -> None:
    lines = [printable(line) for line in text.splitlines()]  # a suite's own words must not steer the terminal
    print("error: " + "\n".join(lines), file=sys.stderr)


def _say_what_is_not_used() -> None:
    if names := list_unused_variables(os.environ):
        are = "is" if len(names) == 1 else "are"
        print(
            f"note: {', '.join(names)} {are} not used: what is compiled and what is cached is for the run to decide",
            file=sys.stderr,
        )


def _notes_on(server: ForkServer, description: Description) -> tuple[str, ...]:
    """What readers of the record must know of suites and processes. Prints what a person must know."""
    notes = _list_warnings(description)
    _warn(notes)
    if not server.alone:
        return notes
    cost = "until then a process takes longer to begin, and editing a suite while the run goes on fails its cases"
    _warn([f"every process imports the suites itself: {server.alone}; {cost}"])
    return (*notes, f"every process imported the suites itself: {server.alone}")


def _list_warnings(description: Description) -> tuple[str, ...]:
    return tuple(warning for suite in description.suites for warning in suite.warnings)


def _warn(texts: Iterable[str]) -> None:
    for text in texts:
        print(f"warning: {printable(text)}", file=sys.stderr)


def _own_command() -> str:
    """How this program was called, which its own arguments do not tell where a launcher has called it."""
    return os.environ.get("JAXMETER_COMMAND") or "python -m harness run"


def _how_to_finish(folder: Path, request: RunRequest | None = None) -> str:
    """What goes on with a run that did not end.

    Args:
      request: Its paths have to be given again: none is taken from a record.
    """
    if given := os.environ.get("JAXMETER_FINISH"):
        return given
    words = ["--resume", str(folder)]
    if request is not None:
        words += [word for name in request.suites if not is_own_suite(name) for word in ("--suites", name)]
        words += [] if request.data is None else ["--data", str(request.data)]
        words += [] if request.lock_step is None else ["--lock-step", request.lock_step]
    return f"{_own_command()} {shlex.join(words)}"


def _find_other_machine(machine: str, against: Against | None) -> Iterator[str]:
    """That an earlier run was made elsewhere, if it was."""
    if against is not None and against.manifest.machine not in (None, machine):
        named = against.manifest.machine
        yield (
            f"the earlier run was made on '{named}', and this is '{machine}': what differs is suspected at most; if it "
            f"is the same machine, give --machine '{named}'"
        )


def _find_run(given: Path, out: Path) -> Path:
    """A run by its folder, or by its id among the runs."""
    return given if given.is_dir() else out / given


def _machine(request: RunRequest, environment: Environment) -> str:
    """What the machine is called.

    Raises:
      UsageError: A name that none can have was given.
    """
    if request.machine is None:
        return name_machine(environment)
    if not is_name(request.machine):
        raise UsageError(f"--machine '{request.machine}' is no name; give 1 to {LONGEST_NAME} printable characters")
    return request.machine.strip()


def _self_test_of(machine: str, out: Path) -> SelfTest | None:
    """What is known of the machine; a file that cannot be used is told, and no more."""
    try:
        return find_self_test(out, machine)
    except RecordError as error:
        _warn([f"{error}; the run goes on without a self-test; make it anew: nox -s self-test"])
        return None


@contextmanager
def _temporary_folder(out: Path) -> Iterator[RunFolder]:
    """A folder below that of the runs, since what holds these has the room, and can be written in a container."""
    folder = make_folder(out / SELF_TESTS, f"{datetime.now(UTC):%Y-%m-%dT%H-%M-%SZ}-{secrets.token_hex(4)[:7]}")
    try:
        yield folder
    finally:
        shutil.rmtree(folder.path, ignore_errors=True)


def _read_ended(folder: RunFolder) -> Run:
    try:
        return read_run(folder)
    except RecordError as error:
        raise UsageError(f"cannot resume: {error}; remove that file to measure what is missing") from error


@contextmanager
def _say_what_is_kept(folder: RunFolder, manifest: Manifest, finish: str) -> Iterator[None]:
    """Says what a run has kept that was interrupted, or that its machine has stopped, and how to finish it."""

    def kept() -> str:
        done = sum(not record.is_lost for record in find_records(folder, manifest).values())
        return f"what was measured is kept ({done} of {counted(len(manifest.cases), 'case')} can be reported)"

    try:
        yield
        check_still_there(folder, manifest)
    except KeyboardInterrupt:
        check_still_there(folder, manifest)
        _complain(f"interrupted: {kept()}; finish with: {finish}")
        raise
    except ServerError as error:
        raise RunError(f"{error}\n{kept()}; go on with: {finish}") from error
    except OSError as error:
        what, mend = f"the disk is full ({_platform_of(error)})", "free some room"
        if not is_disk_full(error):
            what, mend = _explain(error), "mend that"
        raise RunError(f"{what}: {kept()}; {mend}, then go on with: {finish}") from error


def _explain(error: OSError) -> str:
    return f"{error.filename or 'the run'} cannot be read or written: {error.strerror or error}"


def _platform_of(error: OSError) -> str:
    """Where the disk is full, and what a process said of it."""
    words = "" if error.strerror in (None, os.strerror(error.errno or 0)) else f": {error.strerror}"
    return f"{error.filename or 'while writing the run'}{words}"


def conclude(run: Run, folder: Path, finish: str = "", *, as_json: bool) -> int:
    """Prints how a run ended, and how to finish it if it is not; returns its exit code.

    Args:
      finish: The command that goes on with it.
    """
    code = OK if run.is_complete() else INCOMPLETE
    counts = Counter(case.status.value for case in run.cases if not case.is_lost)
    if lost := len(run.lost()):
        counts["lost"] += lost
    if as_json:
        told = {"run_id": run.manifest.run_id, "folder": str(folder), "exit_code": code, "cases": dict(counts)}
        warnings = msgspec.to_builtins(run.warnings)
        print(json.dumps({**told, "results": list_results(run), "warnings": warnings}))
        return code
    for line in describe_results(run):
        print(printable(line))
    for warning in run.warnings:
        print(printable(f"warning in {counted(warning.processes, 'process', 'processes')}: {warning.text}"))
    words = ", ".join(f"{count} {status}" for status, count in sorted(counts.items())) or "no cases"
    print(f"{counted(len(run.manifest.cases), 'case')}: {words}; {folder}")
    if left_out := count_left_out(run):
        print(f"{counted(left_out, 'variant')} left out for want of time; a run with a larger --budget times more")
    if lost:
        print(f"finish it with: {finish or _how_to_finish(folder)}")
    if run.cases and "JAXMETER_COMMAND" not in os.environ:  # else the report follows by itself
        print(f"report on it with: python -m reporting report {folder}")
    return code
