"""The steps of a nightly run that measure nothing: begin, list suspects, conclude. Each can be repeated."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import msgspec

from jaxmeter.harness.record import Manifest, RecordError, RunFolder, read_manifest
from jaxmeter.reporting.compare.budgets import LimitError
from jaxmeter.reporting.compare.gate import encode_suspects

from ..compare.changes import compare_runs
from ..store.fetch import fetch_whole
from ..store.push import push, reach
from ..store.stores import (
    MARK,
    VERDICTS,
    BrokenOffError,
    Store,
    StoreError,
    describe_excess,
    is_url,
    open_store,
    persist,
)
from .outcome import (
    LAST,
    PINNED,
    Concluded,
    conclude_unfinished,
    keep,
    limits_of,
    make_nightly_verdict,
    pass_gate,
    read_all,
    read_run,
)
from .state import (
    EarlierRun,
    NightlyError,
    NightlyRun,
    end_waiting,
    has_ended,
    let_wait,
    list_waiting,
    read_state,
    remove_state,
    require_state,
    write_confirmation,
    write_state,
    write_steps,
)


@dataclass(frozen=True)
class Begun:
    """A nightly run, and what to say of its beginning.

    Args:
      goes_on: Whether it was begun before, and not ended.
    """

    nightly: NightlyRun
    goes_on: bool
    notes: tuple[str, ...] = ()


def begin(asked: NightlyRun, out: Path, pinned: str | None = None, *, restart: bool = False) -> Begun:
    """Go on with the nightly run in progress, or begin the one that is asked for.

    Without the store, the run is measured all the same; `list_suspects` and the next nightly run try again.

    Args:
      asked: Without runs to compare with.
      pinned: The earlier run that the user pins: its id in the store, a URL or a folder.
      restart: Whether to abandon a nightly run in progress.
    Raises:
      NightlyError, LimitError, StoreError: It cannot be begun as asked.
      BrokenOffError: The store cannot be reached, and what was fetched for the nightly run in progress is gone.
    """
    if not asked.machine.strip():
        raise NightlyError("--machine is empty; name this machine, or leave it out")
    limits_of(asked)
    outage = _find_outage(asked.store)
    nightly = msgspec.structs.replace(asked, pinned=pinned, is_chosen=False, is_alone=True)
    in_progress = read_state(out)
    goes_on = in_progress is not None and not restart and in_progress.continues(asked)
    notes: list[str] = []
    if in_progress is not None and goes_on:
        nightly = msgspec.structs.replace(
            in_progress,
            min_effect=asked.min_effect,
            budgets=asked.budgets,
            with_captures=asked.with_captures,
            pinned=in_progress.pinned if in_progress.is_chosen else pinned,
        )
    elif in_progress is not None and has_ended(out, in_progress.run) and not restart:
        let_wait(out, in_progress)
    elif in_progress is not None:
        remove_state(out)
        notes.append(f"the nightly run of {in_progress.run} is abandoned; what was measured is kept in {out}")
    if outage is None:
        is_alone = nightly.is_alone and RunFolder(out / nightly.run).manifest.exists()
        try:
            nightly = _catch_up(msgspec.structs.replace(nightly, is_alone=is_alone), out, notes.append)
        except BrokenOffError as error:
            outage = error
    if outage is not None:
        if any(not Path(earlier.folder).is_dir() for earlier in nightly.beside):
            raise outage
        notes.append(f"{outage}. Measuring needs no store: the run is sent and judged once the store can be reached")
    write_state(out, nightly)
    write_steps(out, nightly)
    return Begun(nightly, goes_on, tuple(notes))


def list_suspects(out: Path, note: Callable[[str], object] = lambda words: None) -> tuple[EarlierRun, ...]:
    """Push the run, and write what has to be confirmed; return next to which earlier runs that is.

    Args:
      note: Called with what is to be said of nightly runs that waited for the store, and of the store.
    Raises:
      NightlyError, LimitError, StoreError: As for `begin`.
      BrokenOffError: The store cannot be reached; the same command goes on, and the next nightly run.
    """
    nightly = require_state(out)
    if not nightly.is_chosen:
        notes: list[str] = []
        nightly = _catch_up(nightly, out, notes.append)
        write_state(out, nightly)
        for words in notes:
            note(words)
    if not has_ended(out, nightly.run):
        return ()
    push(RunFolder(out / nightly.run), nightly.store, with_captures=nightly.with_captures)
    effect, budgets = limits_of(nightly)
    run = read_run(out / nightly.run)
    suspected = []
    for earlier in nightly.beside:
        changes = compare_runs(read_run(Path(earlier.folder)), run, effect)
        suspects = encode_suspects(changes, budgets, also_changed=earlier is not nightly.interleaved)
        suspected.append((earlier, suspects))
    for earlier, suspects in suspected:
        write_confirmation(out, nightly, earlier, suspects)
    return tuple(earlier for earlier, suspects in suspected if suspects is not None)


def conclude(out: Path) -> Concluded:
    """Push the confirming runs, judge, and store the verdict; one that is there already stays.

    Raises:
      NightlyError, LimitError: There is no nightly run, it was not compared yet, or a run cannot be read.
      StoreError: The store refuses.
      BrokenOffError: It cannot be reached; the same command goes on.
    """
    nightly = require_state(out)
    if not nightly.is_chosen:
        raise NightlyError(f"{out}: the store could not be reached yet; run `jaxmeter night suspects` first")
    return _conclude(nightly, out)


def _conclude(nightly: NightlyRun, out: Path) -> Concluded:
    """Conclude a nightly run, which may be one that waited."""
    run = read_run(out / nightly.run)
    if run.folder.mark.exists():
        pushed = push(run.folder, nightly.store, with_captures=nightly.with_captures)
        results = tuple(pass_gate(nightly, out))
        for again in filter(None, (result.again for result in results)):
            if again.folder.mark.exists():
                push(again.folder, nightly.store, with_captures=nightly.with_captures)
        verdict = make_nightly_verdict(nightly, run, results)
        concluded = Concluded(nightly, run, verdict, results, left_out=pushed.left_out, refused=pushed.refused)
    else:
        concluded = conclude_unfinished(nightly, run)
    if not concluded.is_over:
        return concluded
    return replace(concluded, verdict=keep(open_store(nightly.store), concluded.verdict))


def _find_outage(url: str) -> BrokenOffError | None:
    """Return why a store cannot be reached; None where it can."""
    try:
        reach(url)
    except BrokenOffError as error:
        return error
    return None


def _catch_up(nightly: NightlyRun, out: Path, note: Callable[[str], object]) -> NightlyRun:
    """Do what needs the store: conclude nightly runs that wait for it, and fetch the runs to compare with."""
    for waiting in list_waiting(out):
        of_it = f"the nightly run of {waiting.run}"
        try:
            concluded = _conclude(_fetch_earlier(waiting, note=lambda words: None), out)
        except BrokenOffError as error:
            note(f"{of_it} waits for its store ({error}); its run is kept in {out}")
            break  # a later one must not be stored before it, and become the last good one
        except (NightlyError, LimitError, StoreError) as error:
            note(f"{of_it} cannot be concluded ({error}); its run is kept in {out}")
        else:
            note(f"{of_it} was cut short, and is concluded now: {concluded.verdict.heading}")
        end_waiting(out, waiting)
    return _fetch_earlier(nightly, note)


def _fetch_earlier(nightly: NightlyRun, note: Callable[[str], object]) -> NightlyRun:
    """Fetch the runs that a nightly run is compared with: the chosen ones, or those that are chosen now."""
    store = open_store(nightly.store)
    if nightly.is_chosen:
        fetched = (
            msgspec.structs.replace(earlier, folder=str(_fetch(store, earlier.source, lambda words: None)))
            for earlier in nightly.beside
        )
        return msgspec.structs.replace(nightly, beside=tuple(fetched))
    last, pinned, why_none = _choose_whole(nightly, store, note)
    beside: list[EarlierRun] = []
    for role, source in ((LAST, last), (PINNED, nightly.pinned or pinned)):
        if source is None:
            continue
        folder = _fetch(store, source, note)
        manifest = _read_manifest(folder)
        if manifest.backend != nightly.backend:
            words = f"is of the backend {manifest.backend}, and this is {nightly.backend}"
            raise NightlyError(f"--baseline {source}: {words}")
        if not any(known.run == manifest.run_id for known in beside):
            again = f"{nightly.run}-beside-{role}"
            beside.append(EarlierRun(role=role, run=manifest.run_id, source=source, folder=str(folder), again=again))
    why_alone = "" if beside else why_none
    return msgspec.structs.replace(nightly, beside=tuple(beside), why_alone=why_alone, is_chosen=True)


def _choose_whole(
    nightly: NightlyRun, store: Store, note: Callable[[str], object]
) -> tuple[str | None, str | None, str]:
    """Return the last good and the pinned run of those that the store still has; else why there is none."""
    known = read_all(store)
    for name, why in known.set_aside.items():
        note(f"{store.name(VERDICTS, name)} {why}")
    missing: list[str] = []
    while True:
        last, pinned, why_none = known.choose_baselines(
            backend=nightly.backend, machine=nightly.machine, measuring=nightly.shown, without=missing
        )
        lost = [run for run in (last, pinned) if run and not _is_readable(store, run)]
        if not lost:
            break
        missing += lost
    for run in missing:
        note(f"{store.name(run)} is not whole there any more, and is passed over")
    return last, pinned, why_none


def _is_readable(store: Store, run: str) -> bool:
    """Return whether a store has the commit mark of a run, and it is small enough to be read."""
    there = persist(partial(store.look_up, run, MARK))
    return there is not None and not describe_excess(MARK, there.size_bytes)


def _fetch(store: Store, source: str, note: Callable[[str], object]) -> Path:
    """Return the folder of an earlier run: one that is here, one that a URL names, or one of the store."""
    if is_url(source):
        return fetch_whole(source, note=note)
    if Path(source).is_dir():
        return Path(source).absolute()
    return fetch_whole(store.name(source), note=note)


def _read_manifest(folder: Path) -> Manifest:
    try:
        return read_manifest(RunFolder(folder))
    except RecordError as error:
        raise NightlyError(str(error)) from error
