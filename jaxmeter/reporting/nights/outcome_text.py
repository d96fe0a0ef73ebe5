"""What a nightly run reports to people: three lines for a log."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from jaxmeter.harness.record import RunRecord

from ..compare.findings import TIME, Change, Finding
from ..numbers import change
from ..store.captures import describe_left_out
from ..store.stores import VERDICTS
from ..text import counted, shorten
from ..view.changes import describe_changes
from .baselines import TITLES
from .judged import Ended, Judged
from .night import Night
from .verdicts import name_verdict

MOST_NAMED = 3
LONGEST_NAME = 80

NOTHING_BEFORE = "the first nightly run of this machine; it becomes the baseline"


def tell_night(ended: Ended, page: Path) -> tuple[str, str, str]:
    """What was measured and where it is; the outcome; the page and the verdict."""
    manifest, store = ended.run.manifest, ended.night.store.rstrip("/")
    is_whole = ended.run.folder.mark.exists()
    where = f"pushed to {store}/{ended.night.run}" if is_whole else f"not pushed: {ended.run.folder.path}"
    left_out = f"; {describe_left_out(ended.left_out)}" if ended.left_out else ""
    left_out += "".join(f"; {words}" for words in ended.refused)
    verdict = f"{store}/{VERDICTS}/{name_verdict(ended.night.run)}" if ended.is_over else "none yet"
    return (
        f"{counted(len(manifest.cases), 'case')} on {ended.night.machine}, {where}{left_out}",
        ended.verdict.heading,
        f"page: {page}; verdict: {verdict}",
    )


def write_outcome(night: Night, run: RunRecord, judged: Sequence[Judged], busy: str) -> str:
    """One sentence: failed, no answer, passed, or nothing to compare with."""
    if not judged:
        return _write_alone(night, run, busy)
    compared = f"compared with {' and '.join(name_beside(one) for one in judged)}"
    worst = list(_unique(change for one in judged for change in one.judgement.regressions))
    if worst:
        return f"Failed, {compared}: {_name_some(worst)}"
    obstacles = [words for one in judged for words in _list_obstacles(one)]
    if obstacles:
        return f"No answer, {compared}: {'; '.join(dict.fromkeys(obstacles))}"
    no_baseline = f"; too busy for later nightly runs to be compared with it: {busy}" if busy else ""
    return f"Passed, {compared}: {describe_changes(judged[0].changes)}{no_baseline}"


def _write_alone(night: Night, run: RunRecord, busy: str) -> str:
    if busy:
        return f"No answer: the machine was too busy: {busy}"
    if not run.is_complete():
        return "No answer: something failed, and there is nothing to compare with yet; the page says what"
    return f"Nothing to compare with yet: {night.why_alone or NOTHING_BEFORE}"


def _list_obstacles(one: Judged) -> Iterable[str]:
    yield from one.judgement.obstacles
    if one.judgement.unconfirmed:
        yield f"neither confirmed nor refuted: {_name_some(one.judgement.unconfirmed)}"


def name_beside(one: Judged) -> str:
    """Return an earlier run and its role."""
    return f"{one.beside.run} ({TITLES[one.beside.role]})"


def _name_some(found: Sequence[Change]) -> str:
    more = f" and {len(found) - MOST_NAMED} more" if len(found) > MOST_NAMED else ""
    return f"{'; '.join(map(_name_change, found[:MOST_NAMED]))}{more}"


def _name_change(one: Change) -> str:
    """`mlp_step[batch=32] mlp_step:jit slower, +12 %`."""
    names = " ".join(filter(None, (shorten(one.case, LONGEST_NAME), shorten(one.variant, LONGEST_NAME))))
    what = one.finding.value if one.metric == TIME or one.finding is Finding.FAILED else one.title
    size = "" if one.effect is None else f", {change(one.effect)[0]}"
    return f"{names} {what}{size}"


def _unique(found: Iterable[Change]) -> list[Change]:
    """One for each number, by the first earlier run that tells it; times before all else."""
    known: dict[tuple[str, ...], Change] = {}
    for one in found:
        known.setdefault((*one.key, one.metric), one)
    return sorted(known.values(), key=lambda one: one.metric != TIME)
