"""What a bisection of releases is asked, and the environments of the releases."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from jaxmeter.launch.command_line import REASONS
from jaxmeter.launch.environments import ask_version, read_wanted
from jaxmeter.launch.options import UsageError, read_options
from jaxmeter.launch.runs import DEFAULT_OUT
from jaxmeter.launch.shell import Shell, prepare_environment
from jaxmeter.launch.upgrade import read_variables

OWN = ("--good", "--bad", "--case", "--variant", "--metric", "--command", "--processes", "--resume", "--python")

TRY = "--try-env"

OF_TIMES = ("--processes", "--resume", TRY)
"""Options of a walk alone."""

REFUSED = {name: why for name, why in REASONS.items() if name != "--resume"} | {
    "--old": "a bisection has a good release: --good",
    "--new": "a bisection has a bad release: --bad",
    "--lock-step": "a walk measures each release in lock-step with the one before it",
    "--probe": "the criterion decides: --metric",
    "--select": "name one case: --case",
}

PROCESSES = 5
"""Of each step of a walk. A step with a time that is not decided is measured again with twice as many."""


@dataclass(frozen=True)
class BisectRequest:
    """A bisection.

    Args:
      case: A pattern, as of `--select`; empty if a command decides.
      variant: Its name; if it is empty, all variants of a walk, else the one that differs the most.
      metric: `program`, or the name of a metric in budgets.
      command: A shell command that decides; empty if a case decides.
      is_walk: Whether times decide: then there may be several change points, and halving would miss some.
      resumed: The name of an interrupted walk; empty for a new one.
      python: The interpreter that all environments are made with.
      variables: Environment variables that may undo the first step that is slower.
      measuring: Arguments of every measurement.
      out: Where runs are kept.
    """

    good: str
    bad: str
    case: str
    variant: str
    metric: str
    command: str
    processes: int
    is_walk: bool
    resumed: str
    python: str
    variables: Mapping[str, str]
    measuring: tuple[str, ...]
    out: Path


def read_bisect_request(arguments: Sequence[str], time: str) -> BisectRequest:
    """Return what `--good RELEASE --bad RELEASE --case NAME [--variant NAME] [--metric NAME] …`, or `--command`, asks.

    Args:
      time: The metric of a walk, and the default.
    Raises:
      UsageError: Something is missing, contradicts itself, or is what a bisection does not take.
    """
    given = read_options(arguments, *OWN, TRY, "--out", refused=REFUSED)
    good, bad, case, variant, metric, command, processes, resumed, python = (given.get(name) or "" for name in OWN)
    example = '--good "jax==0.9.0" --bad "jax==0.12.0.1" --case "mlp_step[…]"'
    if not good or not bad:
        raise UsageError(f"name a good and a bad release: {example}")
    if bool(case) == bool(command):
        raise UsageError(
            f"give what identifies a bad release, a case or a command: {example}, or --command 'python check.py'"
        )
    if command and (metric or variant):
        raise UsageError("--command decides by its exit code; leave out --metric and --variant")
    of_times = next((name for name in OF_TIMES if name in given), None)
    if of_times is not None and (command or metric not in ("", time)):
        raise UsageError(f"{of_times} is about times; leave it out, or leave out --metric and --command")
    out = Path(given.get("--out") or DEFAULT_OUT)
    if resumed and (resumed != Path(resumed).name or not any(_list_runs(out, resumed))):
        raise UsageError(f"--resume {resumed}: no run in {out} has a name that begins with it")
    if python:
        ask_version(python)
    return BisectRequest(
        good=good,
        bad=bad,
        case=case,
        variant=variant,
        metric=metric or time,
        command=command,
        processes=_read_processes(processes),
        is_walk=metric in ("", time) and not command,
        resumed=resumed,
        python=python or sys.executable,
        variables=read_variables(TRY, given.values.get(TRY, ())),
        measuring=(*given.rest, *given.list_words("--out")),
        out=out,
    )


def make_environment_of(shell: Shell, packages: str, python: str) -> Path:
    """The python of an environment of a release.

    Raises:
      UsageError: pip cannot install it.
    """
    return prepare_environment(shell, replace(read_wanted(packages), python=python))


def _list_runs(out: Path, name: str) -> list[str]:
    """Return the names of the runs of a walk."""
    return [path.name for path in out.iterdir() if path.name.startswith(f"{name}-")] if out.is_dir() else []


def _read_processes(text: str) -> int:
    if not text:
        return PROCESSES
    if not text.isascii() or not text.isdigit() or int(text) < 3:
        raise UsageError(f"--processes '{text}' must be an integer ≥ 3")
    return int(text)
