"""What the gate says of a nightly run next to each earlier run: one verdict, a document and a page."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jaxmeter.document.model import Document, Part, say
from jaxmeter.harness.metrics.reading import Run
from jaxmeter.harness.record import StopReason
from jaxmeter.harness.record.runs import explain_stop
from jaxmeter.harness.record.wording import counted

from ..compare.budgets import Budgets, read_limits
from ..compare.gate import FINE, REGRESSED, UNDECIDED, Judgement, judge_runs
from ..compare.verdicts import TIME, Changes
from ..load import load
from ..store.captures import NO_CAPTURES, CaptureCount, describe_left_out
from ..store.fetch import fetch_named
from ..store.stores import VERDICTS, open_store
from ..text import hide_home
from ..view import Page, build
from ..view.changes import TOLD, list_details, make_verdict, write_heading
from ..view.doubts import is_vague
from .state import EarlierRun, NightlyError, NightlyRun
from .stored import TITLES, NightlyVerdict, name_verdict, read_all

MOST_VAGUE = 0.5
"""Share of the times that may be vague before the machine counts as too busy. Whether they are contended does not
count: on a shared machine most are, and known to a tenth all the same."""

MOST_RUNS = 30
"""A month of nightly runs: enough to distinguish a change for good from a single bad run."""

NOTHING_BEFORE = "the first nightly run of this machine; it becomes the baseline"


@dataclass(frozen=True)
class GateResult:
    """What the gate says of a nightly run next to one earlier run.

    Args:
      changes: With what was confirmed in place of what was suspected.
      again: The run that confirmed; None where nothing was suspected, or it has left nothing.
    """

    earlier: EarlierRun
    changes: Changes
    judgement: Judgement
    again: Run | None

    @property
    def name(self) -> str:
        """The earlier run and its role."""
        return f"{self.earlier.run} ({TITLES[self.earlier.role]})"


@dataclass(frozen=True)
class Concluded:
    """A nightly run with its verdict.

    Args:
      run: What was measured.
      is_over: Whether nothing of it is left to be done; a run that was cut short can go on.
      left_out: Captures of the run that were not pushed.
      refused: A sentence on each of its files that is too large to be pushed.
    """

    nightly: NightlyRun
    run: Run
    verdict: NightlyVerdict
    results: tuple[GateResult, ...] = ()
    is_over: bool = True
    left_out: CaptureCount = NO_CAPTURES
    refused: tuple[str, ...] = ()


def limits_of(nightly: NightlyRun) -> tuple[float, Budgets]:
    """Return the smallest difference that counts, and what is allowed.

    Raises:
      LimitError: One of them cannot be used.
    """
    return read_limits(nightly.min_effect, None if nightly.budgets is None else Path(nightly.budgets))


def read_run(folder: Path) -> Run:
    """Return the run in a folder.

    Raises:
      NightlyError: It cannot be read.
    """
    loaded = load([folder])
    if not loaded.runs:
        raise NightlyError("; ".join(loaded.warnings) or f"{folder}: no run")
    return loaded.runs[0]


def pass_gate(nightly: NightlyRun, out: Path) -> Iterator[GateResult]:
    """Judge the nightly run as the gate does, next to each earlier one.

    Raises:
      NightlyError, LimitError: A run or the budgets cannot be read.
    """
    effect, budgets = limits_of(nightly)
    run = read_run(out / nightly.run)
    for earlier in nightly.beside:
        folder = out / earlier.again
        again = next(iter(load([folder]).runs), None) if folder.is_dir() else None
        also_changed = earlier is not nightly.interleaved
        before = read_run(Path(earlier.folder))
        judged = judge_runs(before, run, effect, budgets, confirmed_by=again, also_changed=also_changed)
        yield GateResult(earlier, *judged, again)


def make_nightly_verdict(nightly: NightlyRun, run: Run, results: Sequence[GateResult]) -> NightlyVerdict:
    """Return the verdict on a run that has ended: the worst of what the gate says."""
    busy, codes = find_busy(run), {result.judgement.code for result in results}
    if not results:
        codes = {UNDECIDED if busy or not run.record.is_complete() else FINE}
    code = next(worst for worst in (REGRESSED, UNDECIDED, FINE) if worst in codes)
    heading = write_outcome(results, code, busy) if results else _write_alone(nightly, run, busy)
    why_not = heading if code else f"the machine was too busy: {busy}" if busy else ""
    of_gate = [
        {"role": result.earlier.role, **make_verdict(result.changes, result.judgement, TOLD)} for result in results
    ]
    return _make(nightly, run, code, heading, why_not, of_gate)


def conclude_unfinished(nightly: NightlyRun, run: Run) -> Concluded:
    """Return no answer: a run that used up its budget is over; one that was cut short stays in progress."""
    stop = run.record.stopped
    is_over = stop is not None and stop.reason is StopReason.BUDGET_USED
    heading = "No answer: the run was cut short; the same command continues it"
    if stop is not None and is_over:
        lost = counted(len(run.record.lost()), "case")
        heading = f"No answer: {explain_stop(stop)} and {lost} lost; give more --budget, or measure less"
    return Concluded(nightly, run, _make(nightly, run, UNDECIDED, heading, heading), is_over=is_over)


def write_outcome(results: Sequence[GateResult], code: int, busy: str) -> str:
    """Return the gate's words on the first earlier run with this exit code, and with which runs it is the same."""
    alike = [result for result in results if result.judgement.code == code]
    heading = write_heading(alike[0].changes, alike[0].judgement, " and ".join(result.name for result in alike))
    is_no_baseline = f"; too busy for later nightly runs to be compared with it: {busy}" if busy and not code else ""
    return f"{heading}{is_no_baseline}"


def _write_alone(nightly: NightlyRun, run: Run, busy: str) -> str:
    if busy:
        return f"No answer: the machine was too busy: {busy}"
    if not run.record.is_complete():
        return "No answer: something failed, and there is nothing to compare with yet; the page says what"
    return f"Nothing to compare with yet: {nightly.why_alone or NOTHING_BEFORE}"


def find_busy(run: Run) -> str:
    """Return how many of a run's times are vague, in words; empty where these are at most half."""
    variants = (variant for case in run.cases for variant in case.variants if variant.planned.replays is None)
    known = [interval for variant in variants if (interval := variant.read(TIME).interval) is not None]
    vague = sum(map(is_vague, known))
    if vague <= MOST_VAGUE * len(known):
        return ""
    return f"{vague} of {len(known)} times are known to no better than a factor of two"


def _make(
    nightly: NightlyRun, run: Run, code: int, heading: str, why_not: str, of_gate: Sequence[dict[str, Any]] = ()
) -> NightlyVerdict:
    return NightlyVerdict(
        run=nightly.run,
        backend=nightly.backend,
        machine=nightly.machine,
        measuring=nightly.shown,
        started=run.manifest.started,
        exit_code=code,
        heading=heading,
        good=not why_not,
        why_not=why_not,
        baselines=tuple(of_gate),
    )


def build_nightly_page(concluded: Concluded) -> Page:
    """Return the page of a nightly run, of the runs that it was compared with, and of the machine's runs before.

    Raises:
      LimitError, StoreError, BrokenOffError: As for the steps.
    """
    nightly = concluded.nightly
    same = [
        verdict.run
        for verdict in read_all(open_store(nightly.store)).verdicts
        if (verdict.backend, verdict.machine) == (nightly.backend, nightly.machine) and verdict.run != nightly.run
    ]
    earlier = (Path(run.folder) for run in nightly.beside)
    folders = [*fetch_named(nightly.store, same[-MOST_RUNS:]), *earlier, concluded.run.folder.path]
    effect, _ = limits_of(nightly)
    again = concluded.results[0].again if concluded.results else None
    unique = {folder.name: folder for folder in folders}
    return build(load(unique.values(), only_newest=True), again, effect)


def describe_nightly(concluded: Concluded, page: Path, *, in_full: bool = False) -> Document:
    """Return what was measured, where it is, and what the gate says: `in_full` also where the run passes."""
    parts: list[Part] = []
    for result in concluded.results:
        if in_full or result.judgement.code:
            parts.append(say(write_heading(result.changes, result.judgement), title=result.name))
            parts += list_details(result.changes, result.judgement, in_full=in_full)
    return Document(concluded.verdict.heading, (say(*_describe_run(concluded, page)), *parts))


def _describe_run(concluded: Concluded, page: Path) -> tuple[str, str]:
    nightly, run, store = concluded.nightly, concluded.run, concluded.nightly.store.rstrip("/")
    where = f"pushed to {store}/{nightly.run}" if run.folder.mark.exists() else f"not pushed: {run.folder.path}"
    left_out = (describe_left_out(concluded.left_out),) if concluded.left_out else ()
    measured = f"{counted(len(run.manifest.cases), 'case')} on {nightly.machine}, {where}"
    verdict = f"{store}/{VERDICTS}/{name_verdict(nightly.run)}" if concluded.is_over else "none yet"
    return (
        hide_home("; ".join((measured, *left_out, *concluded.refused))),
        hide_home(f"page: {page}; verdict: {verdict}"),
    )
