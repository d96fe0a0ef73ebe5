"""What a night says of its run beside each earlier one: suspects to confirm, and then a judgement."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from jaxmeter.harness.metrics.reading import Run

from ..compare.budgets import BudgetError, Budgets
from ..compare.changes import compare_runs
from ..compare.findings import Changes, merge
from ..compare.gate import Judgement, encode_suspects, judge
from ..compare.limits import EffectError, choose_budgets, read_effect
from ..load import load
from ..store.captures import NO_CAPTURES, Captures
from .night import Beside, Night, NightError
from .verdicts import Verdict


@dataclass(frozen=True)
class Judged:
    """What is said beside one earlier run.

    Args:
      changes: With what was confirmed in place of what was suspected.
      again: The run that confirmed; None where nothing was suspected, or it has left nothing.
    """

    beside: Beside
    changes: Changes
    judgement: Judgement
    again: Run | None


@dataclass(frozen=True)
class Ended:
    """A night with its verdict.

    Args:
      run: What was measured.
      is_over: Whether nothing of it is left to be done; a run that was cut short can go on.
      left_out: Captures of the run that were not pushed.
      refused: A sentence on each of its files that is too large to be pushed.
    """

    night: Night
    run: Run
    verdict: Verdict
    judged: tuple[Judged, ...] = ()
    is_over: bool = True
    left_out: Captures = NO_CAPTURES
    refused: tuple[str, ...] = ()


def read_limits(night: Night) -> tuple[float, Budgets]:
    """The smallest difference that counts, and what is allowed.

    Raises:
      NightError: One of them cannot be used.
    """
    try:
        effect = read_effect(night.min_effect)
        budgets = choose_budgets(None if night.budgets is None else Path(night.budgets), effect)
    except (EffectError, BudgetError) as error:
        raise NightError(str(error)) from error
    return budgets.least_time(effect), budgets


def read_one(folder: Path) -> Run:
    """The run in a folder.

    Raises:
      NightError: It cannot be read.
    """
    loaded = load([folder])
    if not loaded.runs:
        raise NightError("; ".join(loaded.warnings) or f"{folder}: no run")
    return loaded.runs[0]


def find_suspects(night: Night, out: Path, beside: Beside) -> bytes | None:
    """What has to be timed once more beside an earlier run; None where there is nothing.

    Raises:
      NightError: A run or the budgets cannot be read.
    """
    effect, budgets = read_limits(night)
    changes = compare_runs(read_one(Path(beside.folder)), read_one(out / night.run), effect)
    return encode_suspects(changes, budgets, also_changed=not _ran_beside(night, beside))


def judge_night(night: Night, out: Path) -> Iterator[Judged]:
    """Judge the nightly run beside each earlier one.

    Raises:
      NightError: A run or the budgets cannot be read.
    """
    effect, budgets = read_limits(night)
    run = read_one(out / night.run)
    for beside in night.beside:
        before = read_one(Path(beside.folder))
        changes = compare_runs(before, run, effect)
        again = _read_again(out / beside.again)
        confirmation = None if again is None else compare_runs(before, again, effect, explained_by=run)
        also_changed = not _ran_beside(night, beside)
        judgement = judge(changes, budgets, confirmed_by=confirmation, also_changed=also_changed)
        yield Judged(beside, changes if confirmation is None else merge(changes, confirmation), judgement, again)


def _read_again(folder: Path) -> Run | None:
    """The run that confirms; what it could not finish stays suspected."""
    loaded = load([folder]) if folder.is_dir() else None
    return loaded.runs[0] if loaded is not None and loaded.runs else None


def _ran_beside(night: Night, beside: Beside) -> bool:
    """Whether the nightly run had the programs of the earlier one beside its own: those of the first."""
    return not night.is_alone and beside == night.beside[0]
