"""Measure: Measure suites and write a run into a folder."""

from __future__ import annotations

import json
import os
import shlex
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import msgspec
import typer

from jaxmeter.cli.ending import FINE, INCOMPLETE
from jaxmeter.cli.measuring import (
    Full,
    Json,
    Quick,
    Quiet,
    Runtime,
    choose_level,
    choose_machine,
    complain,
    describe_full_disk,
    end,
    explain,
    list_warnings,
    make_watcher,
    note_untested,
    note_warnings,
    say_what_is_not_used,
    warn,
)
from jaxmeter.cli.request import (
    RunRequest,
    check_ranks,
    choose_settings,
    complete_request,
    find_backend,
    find_other_environment,
    read_budget,
    with_request,
)
from jaxmeter.document import terminal
from jaxmeter.document.model import Document, Tone, say
from jaxmeter.harness.listing import data_warnings, describe_plan
from jaxmeter.harness.machine.own_fault import is_disk_full
from jaxmeter.harness.machine.platforms import DEFAULT_BACKEND, PLATFORMS, Platform
from jaxmeter.harness.metrics.reading import read_cases
from jaxmeter.harness.parent.against import (
    Against,
    Checkout,
    check_same_baseline,
    choose_data,
    choose_lock_step,
    choose_suites,
    choose_suspects,
    find_checkout,
    is_own_suite,
    read_against,
    read_suspects,
    replace_paths,
)
from jaxmeter.harness.parent.execution import execute
from jaxmeter.harness.parent.fork_client import ForkServer, ServerError
from jaxmeter.harness.parent.prepare_run import (
    RunError,
    UsageError,
    begin_folder,
    check_budget,
    check_resumable,
    check_still_there,
    count_left_out,
    describe_suites,
    find_parent,
    load_for_resume,
    lock_folder,
    make_manifest,
    measure_peaks,
)
from jaxmeter.harness.parent.progress import Watcher
from jaxmeter.harness.parent.servers import start_servers
from jaxmeter.harness.plan.cases import choose_representatives, select
from jaxmeter.harness.plan.processes import plan_processes
from jaxmeter.harness.plan.settings import estimate
from jaxmeter.harness.record import (
    Environment,
    Manifest,
    RecordError,
    RunFolder,
    RunRecord,
    make_run_id,
    read_run,
    write_json,
)
from jaxmeter.harness.record.environment import Peaks, find_peaks, keep_peaks
from jaxmeter.harness.record.self_test import SelfTest, find_self_test
from jaxmeter.harness.record.wording import counted
from jaxmeter.harness.results import describe_own_faults, describe_precision, describe_results, list_results

Resume = Annotated[str | None, typer.Option(metavar="RUN", help="Finish an interrupted run with its own settings.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Show the plan and its duration; measure nothing.")]


@with_request()
def command(
    request: RunRequest,
    quick: Quick = False,
    full: Full = False,
    resume: Resume = None,
    dry_run: DryRun = False,
    quiet: Quiet = False,
    as_json: Json = False,
    runtime: Runtime = None,
) -> None:
    """Exit code 3: a case failed, is wrong or unknown, timed out or was lost."""
    request = replace(request, level=choose_level(quick, full))
    settings = (request.select, request.probes, request.processes, request.run_id, request.machine, request.suspects)
    if request.suspects is not None and request.against is None:
        raise typer.BadParameter("--suspects are of a comparison with an earlier run: name it with --against RUN")
    is_alone = request.against is None and resume is None
    if request.lock_step is not None and is_alone:
        raise typer.BadParameter("--lock-step is the environment of an earlier run: name that run with --against RUN")
    if request.baseline_checkout is not None and is_alone:
        raise typer.BadParameter(
            "--baseline-checkout loads the code of an earlier run: name that run with --against RUN"
        )
    if dry_run and request.against is not None:
        raise typer.BadParameter("--dry-run plans no replays; leave out --against")
    if resume is not None and (dry_run or quick or full or request.cores is not None or any(settings)):
        raise typer.BadParameter(
            "--resume uses the run's own settings; it accepts only --out, --budget and the paths that the run was "
            "given: --suites, --data, --against, --lock-step and --baseline-checkout"
        )
    if dry_run:
        end(lambda: print_plan(request, as_json=as_json))
    watcher = make_watcher(quiet=quiet, as_json=as_json)
    if resume is not None:
        end(lambda: resume_run(_find_run(Path(resume), request.out), request, watcher, as_json=as_json))
    end(lambda: new_run(request, watcher, as_json=as_json))


def print_plan(request: RunRequest, *, as_json: bool) -> int:
    """Prints the plan and its estimated time; measures nothing and needs no device."""
    settings = choose_settings(request, "dry-run")
    with start_servers(Path(tempfile.gettempdir()), settings.data) as servers:
        server = servers.of(PLATFORMS[DEFAULT_BACKEND])
        platform = find_backend(request.backend)
        description = describe_suites(server, settings.suites, platform, request.level, devices=False)
        cases = choose_representatives(select(description.cases, request.select))
    warn(list_warnings(description))
    processes = plan_processes(cases, settings)
    if request.budget is not None:
        check_budget(processes, settings, settings.budget_s)
    warn(data_warnings(cases, settings))
    if as_json:
        duration = estimate(processes, settings)
        names = [case.name for case in cases]
        print(json.dumps({"cases": names, "least_s": duration.least_s, "most_s": duration.most_s}))
    else:
        terminal.show(describe_plan(cases, processes, settings))
    return FINE


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
        option = "--lock-step" if request.baseline_checkout is None else "--baseline-checkout"
        raise UsageError(f"{option} times calls in two environments; add --probe timing")
    checkout = _find_checkout(request, request.suites)
    platform = find_backend(request.backend)
    say_what_is_not_used()
    with (
        begin_folder(request.out, run_id) as folder,
        start_servers(
            find_parent(folder.path),
            settings.data,
            settings.suites,
            find_other_environment(request, before),
            cores=settings.cores,
            checkout=checkout,
        ) as servers,
    ):
        servers.arms_of(platform)  # whether it can be had is known before anything is measured
        server = servers.of(platform)
        description = describe_suites(
            server, settings.suites, platform, request.level, devices=True, cores=settings.cores
        )
        assert description.environment is not None
        environment = description.environment
        notes = (*note_untested(environment), *note_warnings(server, description))
        settings = msgspec.structs.replace(settings, notes=notes)
        cases = choose_representatives(select(description.cases, request.select))
        if against is not None and "timing" in settings.probes:
            if settings.lock_step is None:
                cases = against.add_programs(cases)
            else:
                cases = against.add_lock_step(cases, from_checkout=checkout is not None)
            cases = cases if suspects is None else choose_suspects(cases, suspects)
            servers.check_code(platform, cases, against.manifest)
        if request.budget is not None:
            check_budget(plan_processes(cases, settings), settings, settings.budget_s)
        machine = choose_machine(request, environment)
        warn(_find_other_machine(machine, against))
        if platform.measures and platform.is_host and "timing" in settings.probes:
            peaks = _find_or_measure_peaks(machine, request, server, platform)
            environment = _add_peaks(environment, peaks)
        manifest = make_manifest(
            run_id,
            platform.name,
            settings,
            environment,
            cases,
            machine,
            self_test=_self_test_of(machine, request.out),
            against=None if against is None else against.run_id,
            confirms=suspects is not None,
            own_packages=description.own_packages,
        )
        write_json(folder.manifest, manifest)
        if against is not None:
            against.copy_programs(cases, folder)
        warn(data_warnings(cases, settings))
        finish = _how_to_finish(folder.path, request)
        with _say_what_is_kept(folder, manifest, finish):
            run = execute(manifest, folder, servers, watcher)
    return conclude(run, folder.path, finish, as_json=as_json)


def resume_run(path: Path, request: RunRequest, watcher: Watcher, *, as_json: bool) -> int:
    """Measures what an interrupted run still lacks, by that run's own settings, within its budget or a new one.

    Args:
      request: What else was given: a budget, and the paths that are not taken from a record.
    """
    check_ranks()
    budget_s, folder = read_budget(request.budget), RunFolder(path)
    finish = _how_to_finish(path, request)
    manifest = load_for_resume(folder)
    if folder.mark.exists():  # a run that has ended is not written again
        return conclude(_read_ended(folder), path, finish, as_json=as_json)
    check_same_baseline(manifest, request.against and _find_run(request.against, request.out))
    lock_step = choose_lock_step(request.lock_step, manifest, path, request.baseline_checkout)
    suites = choose_suites(request.suites, manifest.settings.suites, path, "--resume")
    data = choose_data(request.data, manifest.settings.data, path, "--resume")
    settings = replace_paths(manifest.settings, suites, data, lock_step)
    checkout = _find_checkout(request, suites)
    manifest = msgspec.structs.replace(manifest, settings=settings)
    platform = find_backend(manifest.backend)
    with (
        lock_folder(folder),
        start_servers(
            find_parent(path), settings.data, settings.suites, lock_step, cores=settings.cores, checkout=checkout
        ) as servers,
    ):
        servers.arms_of(platform)
        server = servers.of(platform)
        description = describe_suites(
            server, settings.suites, platform, settings.level, devices=True, cores=settings.cores
        )
        check_resumable(manifest, description)
        note_warnings(server, description)
        warn(data_warnings(manifest.cases, settings))
        if budget_s is not None:
            begun = {record.id for record in read_cases(folder, manifest)[0]}
            untouched = [case for case in manifest.cases if case.id not in begun]
            check_budget(plan_processes(untouched, settings), settings, budget_s)
        with _say_what_is_kept(folder, manifest, finish):
            run = execute(manifest, folder, servers, watcher, budget_s)
    return conclude(run, path, finish, as_json=as_json)


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
        checkout = request.baseline_checkout
        words += [] if checkout is None else ["--baseline-checkout", str(checkout)]
    own = os.environ.get("JAXMETER_COMMAND") or "jaxmeter run"  # a launcher has a command of its own
    return f"{own} {shlex.join(words)}"


def _find_checkout(request: RunRequest, suites: Sequence[str]) -> Checkout | None:
    """Return where the earlier run's code comes from; None where both arms load today's suites."""
    return None if request.baseline_checkout is None else find_checkout(request.baseline_checkout, suites)


def _find_other_machine(machine: str, against: Against | None) -> Iterator[str]:
    """That an earlier run was made elsewhere, if it was."""
    if against is not None and (named := against.manifest.machine) != machine:
        yield (
            f"the earlier run was made on '{named}', and this is '{machine}': what differs is suspected at most; if it "
            f"is the same machine, give --machine '{named}'"
        )


def _find_run(given: Path, out: Path) -> Path:
    """A run by its folder, or by its id among the runs."""
    return given if given.is_dir() else out / given


def _self_test_of(machine: str, out: Path) -> SelfTest | None:
    """What is known of the machine; a file that cannot be used is told, and no more."""
    try:
        return find_self_test(out, machine)
    except RecordError as error:
        warn([f"{error}; the run continues without a self-test; repeat it with: jaxmeter self-test"])
        return None


def _find_or_measure_peaks(machine: str, request: RunRequest, server: ForkServer, platform: Platform) -> Peaks | None:
    """Return how fast the machine's processor is, measured in its first run.

    A run of few processes (`--processes`) measures nothing else than it was asked for; one on some of the cores, whose
    speed is another, measures those.
    """
    is_measured = request.processes is None
    if request.cores:
        return measure_peaks(server, platform, request.cores) if is_measured else None
    try:
        peaks = find_peaks(request.out, machine)
    except RecordError as error:
        warn([f"{error}; remove it, and the next run measures it again"])
        return None
    if peaks is None and is_measured and (peaks := measure_peaks(server, platform, None)) is not None:
        keep_peaks(request.out, machine, peaks)
    return peaks


def _add_peaks(environment: Environment, peaks: Peaks | None) -> Environment:
    if peaks is None:
        return environment
    return msgspec.structs.replace(
        environment,
        peak_flops=peaks.peak_flops,
        peak_bytes_per_s=peaks.peak_bytes_per_s,
        peaks_source=peaks.source,
    )


def _read_ended(folder: RunFolder) -> RunRecord:
    try:
        return read_run(folder)
    except RecordError as error:
        raise UsageError(f"cannot resume: {error}; remove that file to measure what is missing") from error


@contextmanager
def _say_what_is_kept(folder: RunFolder, manifest: Manifest, finish: str) -> Iterator[None]:
    """Says what a run has kept that was interrupted, or that its machine has stopped, and how to finish it."""

    def kept() -> str:
        done = sum(not record.is_lost for record in read_cases(folder, manifest)[0])
        return f"what was measured is kept ({done} of {counted(len(manifest.cases), 'case')} can be reported)"

    try:
        yield
        check_still_there(folder, manifest)
    except KeyboardInterrupt:
        check_still_there(folder, manifest)
        complain(f"interrupted: {kept()}; finish with: {finish}")
        raise
    except ServerError as error:
        raise RunError(f"{error}\n{kept()}; continue with: {finish}") from error
    except OSError as error:
        what, remedy = f"the disk is full ({describe_full_disk(error)})", "free some room"
        if not is_disk_full(error):
            what, remedy = explain(error), "fix that"
        raise RunError(f"{what}: {kept()}; {remedy}, then continue with: {finish}") from error


def conclude(run: RunRecord, folder: Path, finish: str = "", *, as_json: bool) -> int:
    """Prints how a run ended, and how to finish it if it is not; returns its exit code.

    Args:
      finish: The command that goes on with it.
    """
    code = FINE if run.is_complete() else INCOMPLETE
    counts = Counter(case.status.value for case in run.cases if not case.is_lost)
    if lost := len(run.lost()):
        counts["lost"] += lost
    if as_json:
        ending = {"run_id": run.manifest.run_id, "folder": str(folder), "exit_code": code, "cases": dict(counts)}
        own = (*run.manifest.settings.notes, *describe_own_faults(run))
        warnings = [*({"text": text, "processes": None} for text in own), *msgspec.to_builtins(run.warnings)]
        print(json.dumps({**ending, "results": list_results(run), "warnings": warnings}))
        return code
    processes = (
        f"warning in {counted(warning.processes, 'process', 'processes')}: {warning.text}" for warning in run.warnings
    )
    faults = (f"warning: {line}" for line in describe_own_faults(run))
    words = ", ".join(f"{count} {status}" for status, count in sorted(counts.items())) or "no cases"
    left_out = count_left_out(run)
    ended = (
        f"{counted(len(run.manifest.cases), 'case')}: {words}; {folder}",
        f"{counted(left_out, 'variant')} left out for want of time; a run with a larger --budget times more"
        if left_out
        else "",
    )
    remarks = (say(*describe_precision(run)), say(*processes, *faults, tone=Tone.WARN), say(*ended))
    terminal.show(Document(parts=(*describe_results(run), *remarks)))
    if lost:
        print(f"finish it with: {finish or _how_to_finish(folder)}")
    if run.cases and "JAXMETER_COMMAND" not in os.environ:  # else the report follows by itself
        print(f"report on it with: jaxmeter report {folder}")
    return code
