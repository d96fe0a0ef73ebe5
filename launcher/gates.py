"""What `nox -s gate` was asked for: a baseline run, how to measure beside it, and how to judge."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from launcher.options import UsageError, refuse, take_flag, take_option
from launcher.runs import DEFAULT_OUT, MANIFEST

JUDGING = ("--budgets", "--min-effect", "--markdown", "--verdict")
"""Options of the judge; all others are of the measurement."""

FORBIDDEN = {
    "--against": "the baseline is named without an option: nox -s gate -- RUN",
    "--suspects": "the gate finds them by itself",
    "--resume": "a gate measures anew; finish a run with nox -s cpu -- --resume RUN",
    "--run-id": "a gate makes two runs, and names them",
    "--dry-run": "a gate that measures nothing can say nothing",
}

EXACT = ("--probe", "compilation", "--probe", "memory", "--processes", "1")
"""How to measure what follows from programs alone."""


@dataclass(frozen=True)
class GateRequest:
    """A gate.

    Args:
      baseline: Folder of the earlier run.
      measuring: Arguments of the measurement, with those of the launcher.
      judging: Arguments of the judge.
    """

    baseline: Path
    measuring: tuple[str, ...]
    judging: tuple[str, ...]
    exact: bool


def read_gate_request(arguments: Sequence[str]) -> GateRequest:
    """`BASELINE [--budgets FILE] [--markdown FILE] [--verdict FILE] [--min-effect PERCENT] [--exact]`, and measuring's.

    Raises:
      UsageError: No baseline, or what a gate does not take.
    """
    if not arguments or arguments[0].startswith("-"):
        raise UsageError("name the baseline run first: nox -s gate -- results/RUN")
    given, rest = Path(arguments[0]), list(arguments[1:])
    refuse(rest, FORBIDDEN)
    out, _ = take_option(rest, "--out")
    baseline = given if given.is_dir() else Path(out or DEFAULT_OUT) / given
    if not (baseline / MANIFEST).is_file():
        raise UsageError(f"{given}: no run; give a folder that a measurement has written, such as results/RUN")
    exact, rest = take_flag(rest, "--exact")
    judging: list[str] = ["--exact"] if exact else []
    for name in JUDGING:
        value, rest = take_option(rest, name)
        judging += [] if value is None else [name, value]
    return GateRequest(baseline, (*rest, *(EXACT if exact else ())), tuple(judging), exact)
