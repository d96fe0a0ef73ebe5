"""The command line: `python -m harness list`, `run`, `self-test`, `machine` and `schema`.

Exit codes: 0 fine; 2 usage or unusable input; 3 incomplete (a case failed, is wrong, timed out or lost);
130 interrupted (what was measured is kept).
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, NoReturn

import typer

from harness import commands
from harness.arguments import expand
from harness.machine.platforms import BACKENDS, DEFAULT_BACKEND
from harness.parent.prepare_run import UsageError
from harness.parent.progress import printable
from harness.plan.probes import PROBE_NAMES
from harness.record import json_schema
from harness.record.endings import end_program
from harness.request import RunRequest

app = typer.Typer(add_completion=False, no_args_is_help=True, pretty_exceptions_enable=False, help=__doc__)

Suites = Annotated[
    list[str] | None,
    typer.Option("--suites", help="Module, .py file or folder of suites; again for more. Default: jaxmeter's own."),
]
Backend = Annotated[str, typer.Option(help=f"One of {', '.join(BACKENDS)}.")]
Quick = Annotated[bool, typer.Option("--quick", help="The smallest sizes, up to five rounds, within three minutes.")]
Full = Annotated[bool, typer.Option("--full", help="The largest sizes too, within two hours.")]
Json = Annotated[bool, typer.Option("--json", help="Machine-readable output on stdout.")]
Select = Annotated[
    list[str] | None, typer.Option("--select", metavar="GLOB", help="Suite, workload or case name; again for more.")
]
Probe = Annotated[
    list[str] | None, typer.Option(help=f"Only these of {', '.join(PROBE_NAMES)}; numerics and export always run.")
]
Processes = Annotated[int | None, typer.Option(min=1, help="Exactly so many timing processes; intervals need 3.")]
Budget = Annotated[str | None, typer.Option(metavar="TIME", help="For the run, or what is left of it: 90, 10m, 1h30m.")]
SELF_TEST_BUDGET = "18m"
"""With what comes before and after, within twenty minutes."""

Data = Annotated[Path | None, typer.Option(metavar="DIR", help="Your data sets, for suites that read some.")]
Out = Annotated[Path, typer.Option(metavar="DIR", help="Where runs are kept.")]
RunId = Annotated[str | None, typer.Option(metavar="ID", help="The run's folder in DIR; made up by default.")]
Resume = Annotated[str | None, typer.Option(metavar="RUN", help="Finish an interrupted run, by its own settings.")]
Machine = Annotated[
    str | None, typer.Option(metavar="NAME", help="What this machine is called; by default processor, cores, devices.")
]
Cores = Annotated[
    int | None,
    typer.Option(
        min=1, metavar="N", help="Each process on so many of the cores, other ones each round; all by default."
    ),
]
Against = Annotated[
    Path | None,
    typer.Option(
        metavar="RUN",
        help="Run the programs that RUN kept beside today's; what RUN measured, where no options say otherwise.",
    ),
]
SuspectsFile = Annotated[
    Path | None,
    typer.Option(
        "--suspects", metavar="FILE", help="Of those only what `reporting compare` suspects, by 12 to 30 processes."
    ),
]
LockStep = Annotated[
    str | None,
    typer.Option(
        metavar="PYTHON",
        help="With --against: the python of that run's environment, which runs the same variants in turns with this.",
    ),
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Show the plan and how long it takes; measure nothing.")]
Quiet = Annotated[bool, typer.Option("--quiet", help="No progress.")]


@app.command("list")
def list_command(
    suites: Suites = None,
    backend: Backend = DEFAULT_BACKEND,
    quick: Quick = False,
    full: Full = False,
    as_json: Json = False,
) -> None:
    """Shows suites, workloads, params and variants."""
    _exit(lambda: commands.list_suites(suites or (), backend, _level(quick, full), as_json=as_json))


@app.command("run")
def run_command(
    backend: Backend = DEFAULT_BACKEND,
    select: Select = None,
    suites: Suites = None,
    probe: Probe = None,
    quick: Quick = False,
    full: Full = False,
    processes: Processes = None,
    budget: Budget = None,
    data: Data = None,
    out: Out = Path("results"),
    run_id: RunId = None,
    resume: Resume = None,
    machine: Machine = None,
    against: Against = None,
    suspects: SuspectsFile = None,
    lock_step: LockStep = None,
    cores: Cores = None,
    dry_run: DryRun = False,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Measures suites and writes a run into DIR."""
    request = RunRequest(
        backend=backend,
        level=_level(quick, full),
        select=tuple(select or ()),
        suites=tuple(suites or ()),
        probes=tuple(probe or ()),
        processes=processes,
        budget=budget,
        data=data,
        out=out,
        run_id=run_id,
        machine=machine,
        against=against,
        suspects=suspects,
        lock_step=lock_step,
        cores=cores,
    )
    own = (dry_run, select, probe, quick, full, processes, run_id, machine, cores, suspects)
    if suspects is not None and against is None:
        raise typer.BadParameter("--suspects are of a comparison with an earlier run: name it with --against RUN")
    if lock_step is not None and against is None and resume is None:
        raise typer.BadParameter("--lock-step is the environment of an earlier run: name that run with --against RUN")
    if lock_step is not None and cores is not None:
        raise typer.BadParameter("--lock-step has both sides on one core, another one each round; leave out --cores")
    if dry_run and against is not None:
        raise typer.BadParameter("--dry-run plans no replays; leave out --against")
    if resume is not None and any(own):
        raise typer.BadParameter(
            "--resume goes by the run's own settings; of the other options it takes --out and --budget, and the paths "
            "that the run was given: --suites, --data, --against and --lock-step"
        )
    if dry_run:
        _exit(lambda: commands.dry_run(request, as_json=as_json))
    watcher = commands.make_watcher(quiet=quiet, as_json=as_json)
    if resume is not None:
        folder = Path(resume) if Path(resume).is_dir() else out / resume
        _exit(lambda: commands.resume_run(folder, request, watcher, as_json=as_json))
    _exit(lambda: commands.new_run(request, watcher, as_json=as_json))


@app.command("self-test")
def self_test_command(
    backend: Backend = DEFAULT_BACKEND,
    select: Select = None,
    suites: Suites = None,
    budget: Budget = SELF_TEST_BUDGET,
    out: Out = Path("results"),
    machine: Machine = None,
    cores: Cores = None,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Measures how often this machine's numbers err, with programs that are equal; later runs in DIR tell it."""
    request = RunRequest(
        backend=backend,
        level="quick",
        select=tuple(select or ()),
        suites=tuple(suites or ()),
        probes=("timing",),
        processes=None,
        budget=budget,
        data=None,
        out=out,
        run_id=None,
        machine=machine,
        cores=cores,
    )
    watcher = commands.make_watcher(quiet=quiet, as_json=as_json)
    _exit(lambda: commands.self_test(request, watcher, as_json=as_json))


@app.command("machine")
def machine_command(backend: Backend = DEFAULT_BACKEND, cores: Cores = None) -> None:
    """Prints what this machine is called in records, unless --machine names it."""
    _exit(lambda: commands.print_machine(backend, cores))


@app.command("schema")
def schema_command() -> None:
    """Prints the JSON Schema of the record."""
    print(json.dumps(json_schema(), indent=2))


def _level(quick: bool, full: bool) -> str:
    if quick and full:
        raise typer.BadParameter("--quick and --full exclude each other; leave one out")
    return "quick" if quick else "full" if full else "default"


def _exit(command: Callable[[], int]) -> NoReturn:
    raise typer.Exit(commands.run_command(command))


def main() -> NoReturn:
    """Runs a command, perhaps with options from a file; what nobody expected ends with a code that says so."""
    try:
        arguments = expand(sys.argv[1:])
    except UsageError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(commands.USAGE)
    for argument in arguments:
        if not _is_text(argument):
            print(f"error: '{printable(argument)}' is no text in UTF-8; give a name that is", file=sys.stderr)
            sys.exit(commands.USAGE)
    end_program(lambda: app(arguments, prog_name="python -m harness"))


def _is_text(argument: str) -> bool:
    try:
        argument.encode()
    except UnicodeEncodeError:  # bytes that a shell passes on, and no record can hold
        return False
    return True


if __name__ == "__main__":
    main()
