"""The options of `jaxmeter run`: each is declared once, as a field of `RunRequest`; and read and checked.

`with_request` makes an option of each declared field, for each verb that measures.
"""

from __future__ import annotations

import inspect
import os
import re
import sys
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from functools import wraps
from pathlib import Path
from typing import Annotated, Any, get_origin, get_type_hints

import typer

from jaxmeter.harness.declare.catalogue import DEFAULT_SUITES
from jaxmeter.harness.machine.environment import make_paths_private, usable_cores
from jaxmeter.harness.machine.interference import can_choose_cores, find_lock_step_cores
from jaxmeter.harness.machine.platforms import BACKENDS, DEFAULT_BACKEND, Backend, list_unused_variables, refuse_ranks
from jaxmeter.harness.metrics.statistics import FEWEST_PROCESSES
from jaxmeter.harness.parent.against import make_environment_private
from jaxmeter.harness.parent.prepare_run import UsageError
from jaxmeter.harness.plan.probes import PROBE_NAMES
from jaxmeter.harness.plan.settings import make_settings
from jaxmeter.harness.record import Manifest, OtherEnvironment, Settings
from jaxmeter.harness.record.runs import CONFIRMING_BLOCKS, CONFIRMING_PROCESSES, Suspects
from jaxmeter.harness.record.wording import counted

DEFAULT_LEVEL = "default"

LEAST_BUDGET_S, MOST_BUDGET_S = 1.0, 30 * 24 * 3600.0
"""Less than one process takes, and more than any run: a slip of the hand."""

_DURATION = re.compile(r"(?:(\d+)h)?(?:(\d+)m)?(?:(\d+(?:\.\d+)?)s)?")
_URL = re.compile(r"[a-z0-9]+:/")
"""As a path reads one: a path has no two slashes in a row."""

ALL_CORES = 0
"""In place of a number of cores: all that are allowed."""

_SECONDS = re.compile(r"\d+(?:\.\d+)?")


def read_cores(text: str) -> int:
    """Return a number of cores; ALL_CORES for `all`."""
    if text == "all":
        return ALL_CORES
    if text.isascii() and text.isdigit() and int(text) > 0:
        return int(text)
    raise typer.BadParameter(f"{text!r} must be an integer ≥ 1, or all")


BackendName = Annotated[str, typer.Option(help=f"One of {', '.join(BACKENDS)}.")]
Suites = Annotated[
    tuple[str, ...],
    typer.Option("--suites", help="Module, .py file or folder of suites; repeatable. Default: jaxmeter's own suites."),
]
Cores = Annotated[
    int | None,
    typer.Option(
        parser=read_cores,
        metavar="N|all",
        help="Run each process on N cores, different ones in each round. Default: all; 1 if two environments or two "
        "checkouts take turns.",
    ),
]


@dataclass(frozen=True, kw_only=True)
class RunRequest:
    """The options of `run`, as given. An annotated field is an option of its name.

    Args:
      cores: How many, or ALL_CORES; None for the default.
    """

    level: str = DEFAULT_LEVEL
    backend: BackendName = DEFAULT_BACKEND
    select: Annotated[
        tuple[str, ...],
        typer.Option(
            metavar="GLOB",
            help="Suite, workload or case to measure; * is any text, ? one character; repeatable. Default: all.",
        ),
    ] = ()
    suites: Suites = ()
    probes: Annotated[
        tuple[str, ...],
        typer.Option(
            "--probe",
            metavar="PROBE",
            help=f"Run only these of {', '.join(PROBE_NAMES)}; repeatable. numerics and export always run.",
        ),
    ] = ()
    processes: Annotated[
        int | None,
        typer.Option(
            min=1, help="Number of timing processes; an interval needs ≥ 3. Default: as many as the time allows."
        ),
    ] = None
    budget: Annotated[
        str | None,
        typer.Option(
            metavar="TIME",
            help="Time limit of the run, or of the rest of a resumed run: 90 (seconds), 10m, 1h30m. "
            "A process in progress gets 10 s or 5 % more.",
        ),
    ] = None
    data: Annotated[Path | None, typer.Option(metavar="DIR", help="Folder of data sets, for suites that read any.")] = (
        None
    )
    out: Annotated[Path, typer.Option(metavar="DIR", help="Folder that holds the folder of each run.")] = Path(
        "results"
    )
    run_id: Annotated[
        str | None,
        typer.Option(
            metavar="ID", help="Name of the run's folder in --out; default: time, backend and a random suffix."
        ),
    ] = None
    machine: Annotated[
        str | None, typer.Option(metavar="NAME", help="Name of this machine; default: processor, cores, devices.")
    ] = None
    against: Annotated[
        Path | None,
        typer.Option(
            metavar="RUN",
            help="Also measure the programs kept by RUN, interleaved with today's. Default suites and cases: those of "
            "RUN.",
        ),
    ] = None
    suspects: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="With --against: measure only the suspected changes of this file, with 12 to 30 processes each.",
        ),
    ] = None
    lock_step: Annotated[
        str | None,
        typer.Option(
            metavar="PYTHON",
            help="With --against: path of the Python of that run's environment, which runs the variants interleaved, "
            "too.",
        ),
    ] = None
    baseline_checkout: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="With --against: time DIR, a checkout of the code that RUN measured, in lock-step with the current "
            "code, including eager code. DIR replaces the current folder.",
        ),
    ] = None
    cores: Cores = None
    fewest_rounds: int | None = None
    fewest_kept: int | None = None
    blocks: int | None = None

    @property
    def has_two_arms(self) -> bool:
        """Whether processes of an earlier run's environment or code take turns with today's."""
        return self.lock_step is not None or self.baseline_checkout is not None


def with_request(*names: str, **usual: Any) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Return a decorator that replaces the first parameter of a verb, a `RunRequest`, by its options.

    Args:
      names: Fields that are options of the verb; all that are annotated if none is named.
      usual: Values of other fields, or other defaults of options.
    """
    hints = get_type_hints(RunRequest, include_extras=True)
    options = {
        field.name: usual.get(field.name, field.default)
        for field in fields(RunRequest)
        if get_origin(hints[field.name]) is Annotated and (not names or field.name in names)
    }

    def declare(name: str, default: Any) -> inspect.Parameter:
        annotation = hints[name]
        if get_origin(annotation.__origin__) is tuple:  # repeatable
            annotation, default = Annotated[(list[str] | None, *annotation.__metadata__)], None
        return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)

    def decorate(verb: Callable[..., None]) -> Callable[..., None]:
        _, *own = inspect.signature(verb, eval_str=True).parameters.values()

        @wraps(verb)
        def command(**given: Any) -> None:
            values = {name: value for name in options if (value := given.pop(name)) is not None}
            values = {name: tuple(value) if isinstance(value, list) else value for name, value in values.items()}
            verb(RunRequest(**{**usual, **values}), **given)

        parameters = [declare(name, default) for name, default in options.items()]
        parameters += [parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY) for parameter in own]
        command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        command.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
        return command

    return decorate


def choose_settings(request: RunRequest, run_id: str, before: Manifest | None = None) -> Settings:
    """Return the settings of a run with these options.

    Args:
      before: Manifest of the earlier run that the run is compared with.

    Raises:
      UsageError: An option is invalid: an unknown backend or probe, a missing folder, an impossible budget. Or this
        process is one of several ranks.
    """
    check_ranks()
    find_backend(request.backend)
    if _URL.match(str(request.out)):
        raise UsageError(
            f"--out {request.out}: measuring writes into a folder; `jaxmeter push RUN URL` copies a run "
            "into a store; in a checkout, `jaxmeter run --runtime auto --out URL` does both"
        )
    if request.data is not None and not request.data.is_dir():
        raise UsageError(f"--data '{request.data}' is not a folder; name the one that your data sets are in")
    if request.data is not None and not os.access(request.data, os.R_OK | os.X_OK):
        raise UsageError(f"--data '{request.data}' cannot be read by this user; allow that, or name another")
    if unknown := [name for name in request.probes if name not in PROBE_NAMES]:
        raise UsageError(f"no probe '{unknown[0]}'; probes are {', '.join(PROBE_NAMES)}")
    if request.cores is not None and not can_choose_cores():
        raise UsageError("--cores: this system does not let a process choose its cores; leave it out")
    if request.cores and request.cores > usable_cores():
        raise UsageError(f"--cores {request.cores}: {counted(usable_cores(), 'core')} can be used here; give fewer")
    other = find_other_environment(request, before)
    cores = usable_cores() if request.cores == ALL_CORES else request.cores
    return make_settings(
        request.level,
        probes=request.probes,
        processes=request.processes,
        fewest_rounds=request.fewest_rounds,
        fewest_kept=request.fewest_kept,
        blocks=request.blocks,
        budget_s=read_budget(request.budget),
        select=request.select,
        suites=tuple(map(make_paths_private, request.suites)) or (DEFAULT_SUITES,),
        data=None if request.data is None else make_paths_private(str(request.data.absolute())),
        not_used=list_unused_variables(os.environ),
        cores=(request.cores or None) if other is None else None,
        lock_step=None if other is None else make_environment_private(other),
        lock_step_cores=None if other is None else find_lock_step_cores(find_backend(request.backend), cores),
        run_id=run_id,
    )


def check_ranks() -> None:
    """Check that this process is not one of several ranks.

    Raises:
      UsageError: It is.
    """
    if (problem := refuse_ranks(os.environ)) is not None:
        raise UsageError(problem)


def find_other_environment(request: RunRequest, before: Manifest | None) -> OtherEnvironment | None:
    """The earlier run's, where it, or its code, takes turns with that of this one."""
    checkout = request.baseline_checkout
    if before is None or (request.lock_step is None and checkout is None):
        return None
    here = before.environment
    return OtherEnvironment(
        python=request.lock_step or sys.executable,
        version=here.python,
        packages=here.packages,
        variables=here.variables,
        checkout=None if checkout is None else str(checkout),
    )


def complete_request(request: RunRequest, settings: Settings, suspects: Suspects | None = None) -> RunRequest:
    """The request, with what an earlier run measured where it says nothing of its own; without paths of that run.

    Args:
      suspects: What alone it times, by as many processes as confirm something. That takes the time that it takes,
        unless a budget was given for it, and fewer processes count, too.
    """
    given = request.budget
    usual = make_settings(settings.level, suites=(), run_id="")
    asked = () if set(settings.probes) == set(usual.probes) else settings.probes
    request = replace(
        request,
        level=settings.level if request.level == DEFAULT_LEVEL else request.level,
        select=request.select or settings.select,
        probes=request.probes or tuple(name for name in asked if name in PROBE_NAMES),
        processes=request.processes or settings.processes,
        cores=settings.cores if request.cores is None and not request.has_two_arms else request.cores,
        budget=request.budget or _find_given_budget(settings, usual),
    )
    if suspects is None:
        return request
    return replace(
        request,
        probes=("timing",),
        processes=suspects.processes,
        budget=given,
        fewest_rounds=CONFIRMING_PROCESSES,
        fewest_kept=FEWEST_PROCESSES,
        blocks=CONFIRMING_BLOCKS,
    )


def _find_given_budget(settings: Settings, usual: Settings) -> str | None:
    """Return the budget that a user gave an earlier run. In older records, it is any budget but the level's own."""
    if settings.finishes_fewest or settings.budget_s == usual.budget_s:
        return None
    return f"{settings.budget_s:.0f}"


def find_backend(name: str) -> Backend:
    """The backend of a name.

    Raises:
      UsageError: There is none.
    """
    if name not in BACKENDS:
        raise UsageError(f"no backend '{name}'; backends are {', '.join(BACKENDS)}")
    return BACKENDS[name]


def read_duration(text: str) -> float:
    """Seconds of `90`, `90s`, `10m`, `1h30m`.

    Raises:
      UsageError: Anything else.
    """
    if _SECONDS.fullmatch(text.strip()):
        return float(text)
    match = _DURATION.fullmatch(text.strip())
    if match is None or not any(match.groups()):
        raise UsageError(f"--budget '{text}' is not a time; write 90, 90s, 10m or 1h30m")
    hours, minutes, seconds = (float(part or 0) for part in match.groups())
    return 3600 * hours + 60 * minutes + seconds


def read_budget(text: str | None) -> float | None:
    """Seconds of `--budget`.

    Raises:
      UsageError: No time, or none that anything can be measured in.
    """
    if text is None:
        return None
    budget_s = read_duration(text)
    if not LEAST_BUDGET_S <= budget_s <= MOST_BUDGET_S:
        raise UsageError(f"--budget '{text}' is not between 1 s and 30 days; write 90s, 10m or 1h30m")
    return budget_s
