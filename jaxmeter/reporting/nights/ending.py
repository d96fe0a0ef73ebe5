"""The last step of a night: what confirmed is pushed, all of it judged, and the verdict kept beside the run."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from jaxmeter.harness.metrics.reading import Run
from jaxmeter.harness.record import Manifest, StopReason
from jaxmeter.harness.record.runs import explain_stop

from ..compare.gate import FINE, REGRESSED, UNDECIDED
from ..store.push import push
from ..store.stores import open_store
from ..text import counted
from ..view.changes import TOLD
from ..view.verdict import make_verdict
from . import verdicts
from .judged import Ended, Judged, judge_night, read_one
from .load_check import find_busy
from .night import Night, NightError, require_night
from .outcome_text import write_outcome
from .verdicts import Verdict


def conclude(out: Path) -> Ended:
    """Pushes, judges, and keeps the verdict; one that is there already stays.

    Raises:
      NightError: There is no nightly run, it was not compared yet, or a run cannot be read.
      StoreError: The store refuses.
      BrokenOffError: It cannot be reached; the same command goes on.
    """
    night = require_night(out)
    if not night.is_chosen:
        raise NightError(f"{out}: the store could not be reached yet; run `jaxmeter night suspects` first")
    return conclude_night(night, out)


def conclude_night(night: Night, out: Path) -> Ended:
    """Concludes a night, which may be one that waited; raises as `conclude` does."""
    run = read_one(out / night.run)
    if not run.folder.mark.exists():
        return _conclude_unfinished(night, run)
    pushed = push(run.folder, night.store, with_captures=night.with_captures)
    judged = tuple(judge_night(night, out))
    for one in judged:
        if one.again is not None and one.again.folder.mark.exists():
            push(one.again.folder, night.store, with_captures=night.with_captures)
    verdict = verdicts.keep(open_store(night.store), make_night_verdict(night, run, judged))
    return Ended(night, run, verdict, judged, left_out=pushed.left_out, refused=pushed.refused)


def make_night_verdict(night: Night, run: Run, judged: Sequence[Judged]) -> Verdict:
    """The verdict on a run that has ended."""
    busy, codes = find_busy(run), {one.judgement.code for one in judged}
    if not judged:
        codes = {UNDECIDED if busy or not run.record.is_complete() else FINE}
    code = REGRESSED if REGRESSED in codes else UNDECIDED if UNDECIDED in codes else FINE
    heading = write_outcome(night, run.record, judged, busy)
    why_not = heading if code else f"the machine was too busy: {busy}" if busy else ""
    found = [{"role": one.beside.role, **make_verdict(one.changes, one.judgement, TOLD)} for one in judged]
    return _make(night, run.manifest, code, heading, why_not, found)


def _conclude_unfinished(night: Night, run: Run) -> Ended:
    """No answer: a run that used up its budget is over; one that was cut short stays under way."""
    stop = run.record.stopped
    is_over = stop is not None and stop.reason is StopReason.BUDGET_USED
    if stop is None or not is_over:
        heading = "No answer: the run was cut short; the same command continues it"
    else:
        lost = counted(len(run.record.lost()), "case")
        heading = f"No answer: {explain_stop(stop)} and {lost} lost; give more --budget, or measure less"
    verdict = _make(night, run.manifest, UNDECIDED, heading, heading)
    if is_over:
        verdict = verdicts.keep(open_store(night.store), verdict)
    return Ended(night, run, verdict, is_over=is_over)


def _make(
    night: Night, manifest: Manifest, code: int, heading: str, why_not: str, found: Sequence[dict[str, Any]] = ()
) -> Verdict:
    return Verdict(
        run=night.run,
        backend=night.backend,
        machine=night.machine,
        measuring=night.shown,
        started=manifest.started,
        exit_code=code,
        heading=heading,
        good=not why_not,
        why_not=why_not,
        baselines=tuple(found),
    )
