"""What `nox -s bisect` was asked for: two releases, and what tells a bad one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from launcher.options import UsageError, refuse, take_option
from launcher.runs import DEFAULT_OUT

TIME, PROGRAM = "time", "program"

METRICS = {
    PROGRAM: "program",
    "peak_memory": "planned_peak_bytes",
    "compiles": "compiles",
    "recompiles": "recompiles",
    "flops": "counted_flops",
    "bytes": "counted_bytes",
    "equations": "jaxpr_equations",
    "operations": "stablehlo_operations",
    "instructions": "hlo_instructions",
    "fusions": "hlo_fusions",
    "custom_calls": "hlo_custom_calls",
    "collectives": "hlo_collectives",
}
"""Criteria that follow from the program alone, with their names in a verdict. `time` is the other one."""

PROCESSES = 8
"""Of a step by time; a step that is undecided is repeated with twice as many."""

FORBIDDEN = {
    "--old": "a bisection has a good release: --good",
    "--new": "a bisection has a bad release: --bad",
    "--against": "the good release is measured anew",
    "--lock-step": "that is the good release: --good",
    "--suspects": "a bisection looks at one case",
    "--resume": "a bisection is begun anew",
    "--run-id": "a bisection makes many runs, and names them",
    "--dry-run": "a bisection that measures nothing can say nothing",
    "--probe": "the criterion decides: --metric",
    "--select": "name one case: --case",
}


@dataclass(frozen=True)
class BisectRequest:
    """A bisection.

    Args:
      case: A pattern, as of `--select`; empty where a command decides.
      variant: Its name; empty where the one that differs the most is meant.
      metric: `time` or one of METRICS.
      command: A shell command that tells; empty where a case does.
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
    measuring: tuple[str, ...]
    out: Path


def read_bisect_request(arguments: Sequence[str]) -> BisectRequest:
    """`--good RELEASE --bad RELEASE --case NAME [--variant NAME] [--metric NAME] [--processes K]`, or `--command`.

    Raises:
      UsageError: Something is missing, contradicts itself, or is what a bisection does not take.
    """
    refuse(arguments, FORBIDDEN)
    given, rest = {}, list(arguments)
    for name in ("good", "bad", "case", "variant", "metric", "command", "processes"):
        value, rest = take_option(rest, f"--{name}")
        given[name] = value or ""
    example = 'nox -s bisect -- --good "jax==0.9.0" --bad "jax==0.10.2" --case "mlp_step[…]"'
    if not given["good"] or not given["bad"]:
        raise UsageError(f"name a good and a bad release: {example}")
    if bool(given["case"]) == bool(given["command"]):
        raise UsageError(
            f"say what tells a bad release, a case or a command: {example}, or --command 'python check.py'"
        )
    metric = given["metric"] or TIME
    if metric != TIME and metric not in METRICS:
        raise UsageError(f"--metric '{metric}' is none; metrics are {', '.join((TIME, *METRICS))}")
    if given["command"] and (given["metric"] or given["variant"]):
        raise UsageError("--command decides by its exit code; leave out --metric and --variant")
    out, _ = take_option(rest, "--out")
    return BisectRequest(
        good=given["good"],
        bad=given["bad"],
        case=given["case"],
        variant=given["variant"],
        metric=metric,
        command=given["command"],
        processes=_read_processes(given["processes"]),
        measuring=tuple(rest),
        out=Path(out or DEFAULT_OUT),
    )


def _read_processes(text: str) -> int:
    if not text:
        return PROCESSES
    if not text.isascii() or not text.isdigit() or int(text) < 3:
        raise UsageError(f"--processes '{text}' is no number from 3 on")
    return int(text)
