"""What the gate says of a nightly run next to earlier runs: verdicts, a file each in the store; the baselines."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from jaxmeter.document.model import Document, Part, say
from jaxmeter.harness.metrics.reading import Run
from jaxmeter.harness.record import StopReason, write_bytes
from jaxmeter.harness.record.runs import explain_stop
from jaxmeter.harness.record.wording import counted
from jaxmeter.reporting.compare.budgets import Budgets, read_limits
from jaxmeter.reporting.compare.gate import FINE, REGRESSED, UNDECIDED, Judgement, judge_runs

from ..compare.verdicts import TIME, Changes
from ..load import load
from ..store.fetch import fetch_named, find_cache
from ..store.push import NO_CAPTURES, CaptureCount, describe_left_out
from ..store.stores import MARK, SKEW, VERDICTS, Store, StoreError, describe_excess, open_store, persist, read_time
from ..text import hide_home
from ..view import Page, build
from ..view.cells import is_vague
from ..view.changes import TOLD, list_details, make_verdict, write_heading
from .state import EarlierRun, NightlyError, NightlyRun

ACCEPTED = ".accepted"
ENDING = ".json"
OLDEST = datetime.min.replace(tzinfo=UTC)

LAST, PINNED = "last", "pinned"
TITLES = {LAST: "last good", PINNED: "pinned"}
"""Roles of the earlier runs: the last good one, and a pinned one, which detects many small changes."""

MOST_NAMED = 3

R = TypeVar("R", bound=msgspec.Struct)


class NightlyVerdict(msgspec.Struct, frozen=True, kw_only=True):
    """The verdict on a nightly run, as a store keeps it.

    Args:
      measuring: Options of the measurement: nightly runs of others are not compared.
      started: When the run began.
      exit_code: 0 passed, 1 a confirmed regression, 3 no answer.
      good: Whether later nightly runs may be compared with it.
      why_not: Why they may not; empty where they may.
      baselines: What the gate said of each earlier run, as its `--verdict` writes it, and in which role the run stood:
        of times and numbers only those that have changed.
    """

    run: str
    backend: str
    machine: str
    measuring: tuple[str, ...]
    started: str
    exit_code: int
    heading: str
    good: bool
    why_not: str = ""
    baselines: tuple[dict[str, Any], ...] = ()


class Acceptance(msgspec.Struct, frozen=True, kw_only=True):
    """That a person has accepted a run as it is: it is the pinned baseline run from then on."""

    run: str
    why: str
    at: str


class Known(msgspec.Struct, frozen=True):
    """All that a store says of its nightly runs, the oldest first by the store's time: a machine's clock can be wrong.

    Args:
      accepted: The runs that were accepted, the last one last.
      set_aside: Why a file does not count, by its name.
    """

    verdicts: tuple[NightlyVerdict, ...] = ()
    accepted: tuple[str, ...] = ()
    set_aside: dict[str, str] = {}

    def choose_baselines(
        self, *, backend: str, machine: str, measuring: Sequence[str], without: Collection[str] = ()
    ) -> tuple[str | None, str | None, str]:
        """Return the newest good run of the same machine and options; the last accepted one, else the first good one.

        A run is good if it passed, nothing of it is missing and the machine was not too busy, or if a person accepted
        it. A run with both roles stands under the first. The third text is why there is none though there are nightly
        runs: of another machine, or of other options.

        Args:
          without: Runs that the store does not have any more.
        """
        of_machine = [verdict for verdict in self.verdicts if (verdict.backend, verdict.machine) == (backend, machine)]
        same = [verdict for verdict in of_machine if verdict.measuring == tuple(measuring)]
        good = [
            verdict.run
            for verdict in same
            if (verdict.good or verdict.run in self.accepted) and verdict.run not in without
        ]
        if good:
            last, pinned = good[-1], next((run for run in reversed(self.accepted) if run in good), good[0])
            return last, None if pinned == last else pinned, ""
        if same:
            return None, None, f"none of the {len(same)} nightly runs before was good"
        if of_machine:
            return None, None, "the nightly runs before had other options"
        if not self.verdicts:
            return None, None, ""
        names = ", ".join(f"'{name}'" for name in sorted({verdict.machine for verdict in self.verdicts})[:MOST_NAMED])
        return None, None, f"the nightly runs before are of other machines ({names}; this is '{machine}')"


def name_verdict(run_id: str) -> str:
    """Return the name of the file of a run's verdict."""
    return f"{run_id}{ENDING}"


def keep(store: Store, verdict: NightlyVerdict) -> NightlyVerdict:
    """Write a verdict, or return the one that is there: of one nightly run there is one.

    Raises:
      StoreError, BrokenOffError: The store refuses, or cannot be reached.
    """
    name = name_verdict(verdict.run)
    if persist(partial(store.create, encode(verdict), VERDICTS, name)):
        return verdict
    there = find_verdict(store, verdict.run)
    if there is None:
        raise StoreError(f"{store.name(VERDICTS, name)}: something else has this name; remove it, then try again")
    return there


def find_verdict(store: Store, run_id: str) -> NightlyVerdict | None:
    """Return the verdict on a run; None where there is none that can be read."""
    return _decode(persist(partial(store.read, VERDICTS, name_verdict(run_id))), NightlyVerdict)


def _decode(data: bytes | None, kind: type[R]) -> R | None:
    try:
        return None if data is None else msgspec.json.decode(data, type=kind)
    except (msgspec.DecodeError, RecursionError):
        return None


def accept(store: Store, acceptance: Acceptance) -> bool:
    """Pin a run; false where it was accepted before.

    Raises:
      StoreError: There is no verdict on it, it is not whole there, or no reason is given.
      BrokenOffError: The store cannot be reached.
    """
    if not acceptance.why.strip():
        raise StoreError("--why is empty; give a reason")
    if find_verdict(store, acceptance.run) is None:
        raise StoreError(f"{store.url}: has no verdict on a run '{acceptance.run}'; name a run of `jaxmeter nightly`")
    if persist(partial(store.look_up, acceptance.run, MARK)) is None:
        raise StoreError(f"{store.name(acceptance.run)}: is not whole there; nothing can be compared with it")
    name = f"{acceptance.run}{ACCEPTED}{ENDING}"
    return persist(partial(store.create, encode(acceptance), VERDICTS, name))


def encode(record: msgspec.Struct) -> bytes:
    """Return JSON that a person can read, too."""
    return msgspec.json.format(msgspec.json.encode(record), indent=1) + b"\n"


def read_all(store: Store, cache: Path | None = None) -> Known:
    """Return what a store says of its nightly runs. The cache keeps what was read, since none of it changes.

    Raises:
      StoreError, BrokenOffError: The store refuses, or cannot be reached.
    """
    key = hashlib.sha256(store.url.rstrip("/").encode()).hexdigest()[:16]
    root = (find_cache() if cache is None else cache) / VERDICTS / key
    files = persist(partial(store.find, VERDICTS))
    received = {name: file.changed for name, file in files.items() if "/" not in name and name.endswith(ENDING)}
    texts = {name: data for name in received if (data := _read_cached(root / name)) is not None}
    sizes = {name: files[name].size_bytes for name in received if name not in texts}
    excess = {name: words for name, size in sizes.items() if (words := describe_excess(name, size))}
    for data_of in store.read_in_sets({f"{VERDICTS}/{name}": sizes[name] for name in sizes if name not in excess}):
        for path, data in data_of.items():
            name = path.rpartition("/")[2]
            texts[name] = data
            _write_cached(root / name, data)
    known = _gather(texts, received, store.read_clock() if received else None)
    too_large = {name: f"{words}; it is not counted" for name, words in excess.items()}
    return msgspec.structs.replace(known, set_aside={**known.set_aside, **too_large})


def _gather(texts: Mapping[str, bytes], received: Mapping[str, datetime | None], clock: datetime | None) -> Known:
    """Return what the files say, and which of them do not count.

    Args:
      received: When the store received each; None where it does not say.
      clock: The store's own; None of a bucket.
    """
    verdicts: list[tuple[datetime, str, NightlyVerdict]] = []
    accepted: list[tuple[datetime, str, str]] = []
    set_aside: dict[str, str] = {}
    for name, data in sorted(texts.items()):
        is_acceptance = name.endswith(f"{ACCEPTED}{ENDING}")
        record = _decode(data, Acceptance) if is_acceptance else _decode(data, NightlyVerdict)
        if record is None:
            set_aside[name] = "is not a verdict, and is not counted"
            continue
        at = record.at if isinstance(record, Acceptance) else record.started
        began = read_time(at)
        time = received[name] or began or OLDEST
        if clock is not None and time > clock + SKEW:
            set_aside[name] = f"is of {time:%Y-%m-%d}, later than the store's time, {clock:%Y-%m-%d}; it is not counted"
        elif isinstance(record, Acceptance):
            accepted.append((time, at, record.run))
        elif began is not None and began > time + SKEW:
            set_aside[name] = (
                f"is of a run that began on {began:%Y-%m-%d}, later than the store's time, {time:%Y-%m-%d}; it is not "
                f"counted: correct the clock of '{record.machine}'"
            )
        else:
            verdicts.append((time, at, record))
    ordered = sorted(verdicts, key=lambda entry: (entry[0], entry[1], entry[2].run))
    return Known(tuple(entry[2] for entry in ordered), tuple(run for _, _, run in sorted(accepted)), set_aside)


def _read_cached(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except OSError:
        return None


def _write_cached(path: Path, data: bytes) -> None:
    """Write a file of the cache; without room for it, it is asked for again."""
    try:
        write_bytes(path, data, lasting=False)
    except OSError:
        return


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
