"""The first steps of a night: begin, and list suspects. Each may be repeated: what is done already is found."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import msgspec

from jaxmeter.harness.record import Manifest, RecordError, RunFolder, read_manifest

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
from . import verdicts
from .baselines import LAST, PINNED, Chosen, choose
from .ending import conclude_night
from .judged import find_suspects, read_limits
from .night import (
    Beside,
    Night,
    NightError,
    end_night,
    end_waiting,
    has_ended,
    let_wait,
    list_waiting,
    read_night,
    require_night,
    write_confirmation,
    write_night,
    write_steps,
)
from .verdicts import Known


@dataclass(frozen=True)
class Begun:
    """A night, and what to say of its beginning.

    Args:
      goes_on: Whether it was begun before, and not ended.
    """

    night: Night
    goes_on: bool
    notes: tuple[str, ...] = ()


def begin(asked: Night, out: Path, pinned: str | None = None, *, restart: bool = False) -> Begun:
    """Goes on with the nightly run that is under way, or begins the one that is asked for.

    Without the store, the run is measured all the same; `list_suspects` and the next nightly run try again.

    Args:
      asked: Without runs to compare with.
      pinned: The earlier run that the user pins: its id in the store, a URL or a folder.
      restart: Whether to abandon a nightly run in progress.
    Raises:
      NightError, StoreError: It cannot be begun as asked.
      BrokenOffError: The store cannot be reached, and what was fetched for the nightly run under way is gone.
    """
    if not asked.machine.strip():
        raise NightError("--machine is empty; name this machine, or leave it out")
    read_limits(asked)
    lost = _find_fault(asked.store)
    under_way = read_night(out)
    goes_on = under_way is not None and not restart and under_way.is_same_night(asked)
    notes: list[str] = []
    night = msgspec.structs.replace(asked, pinned=pinned, is_chosen=False, is_alone=True)
    if under_way is not None and goes_on:
        night = _go_on(under_way, asked, pinned)
    elif under_way is not None:
        notes += _put_aside(under_way, out, restart=restart)
    if lost is None:
        try:
            night = _catch_up(
                msgspec.structs.replace(night, is_alone=night.is_alone and _has_begun(out, night)), out, notes
            )
        except BrokenOffError as error:
            lost = error
    if lost is not None:
        if any(not Path(one.folder).is_dir() for one in night.beside):
            raise lost
        notes.append(f"{lost}. Measuring needs no store: the run is sent and judged once the store can be reached")
    write_night(out, night)
    write_steps(out, night)
    return Begun(night, goes_on, tuple(notes))


def _find_fault(url: str) -> BrokenOffError | None:
    """Why a store cannot be reached; None where it can."""
    try:
        reach(url)
    except BrokenOffError as error:
        return error
    return None


def _has_begun(out: Path, night: Night) -> bool:
    return RunFolder(out / night.run).manifest.exists()


def _go_on(under_way: Night, asked: Night, pinned: str | None) -> Night:
    """The nightly run that is under way, judged and pushed as it is asked for now."""
    return msgspec.structs.replace(
        under_way,
        min_effect=asked.min_effect,
        budgets=asked.budgets,
        with_captures=asked.with_captures,
        pinned=under_way.pinned if under_way.is_chosen else pinned,
    )


def _put_aside(night: Night, out: Path, *, restart: bool) -> list[str]:
    """Ends an earlier nightly run: one that has ended waits for the store; what to say of another."""
    if has_ended(out, night.run) and not restart:
        let_wait(out, night)
        return []
    end_night(out)
    return [f"the nightly run of {night.run} is abandoned; what was measured is kept in {out}"]


def _catch_up(night: Night, out: Path, notes: list[str]) -> Night:
    """Does what needs the store: concludes nights that wait for it, and chooses or fetches the runs to compare with.

    Raises:
      NightError, StoreError, BrokenOffError: As for `begin`.
    """
    for waiting in list_waiting(out):
        try:
            ended = conclude_night(_fetch_earlier(waiting, []), out)
        except BrokenOffError as error:
            notes.append(f"the nightly run of {waiting.run} waits for its store ({error}); its run is kept in {out}")
            break  # a later one must not be stored before it, and become the last good one
        except (NightError, StoreError) as error:
            notes.append(f"the nightly run of {waiting.run} cannot be concluded ({error}); its run is kept in {out}")
        else:
            words = f"was cut short, and is concluded now: {ended.verdict.heading}"
            notes.append(f"the nightly run of {waiting.run} {words}")
        end_waiting(out, waiting)
    return _fetch_earlier(night, notes)


def _fetch_earlier(night: Night, notes: list[str]) -> Night:
    """A nightly run with the runs to compare it with in the cache: the chosen ones, or those that are chosen now."""
    store = open_store(night.store)
    if night.is_chosen:
        return msgspec.structs.replace(night, beside=tuple(_fetch_again(store, one) for one in night.beside))
    chosen, more = _choose_earlier(night, store)
    notes += more
    return chosen


def list_suspects(out: Path, note: Callable[[str], object] = lambda words: None) -> tuple[Beside, ...]:
    """Pushes the run, and writes what has to be confirmed; beside which earlier runs that is.

    Args:
      note: Called with what is to be said of nights that waited for the store, and of the store.
    Raises:
      NightError, StoreError: As for `begin`.
      BrokenOffError: The store cannot be reached; the same command goes on, and the next nightly run.
    """
    night = require_night(out)
    if not night.is_chosen:
        notes: list[str] = []
        night = _catch_up(night, out, notes)
        write_night(out, night)
        for words in notes:
            note(words)
    if not has_ended(out, night.run):
        return ()
    push(RunFolder(out / night.run), night.store, with_captures=night.with_captures)
    found = {one: find_suspects(night, out, one) for one in night.beside}
    for one, suspects in found.items():
        write_confirmation(out, night, one, suspects)
    return tuple(one for one, suspects in found.items() if suspects is not None)


def _choose_earlier(asked: Night, store: Store) -> tuple[Night, list[str]]:
    """The nightly run with the runs that it is compared with, which are fetched; and what is wrong with the store."""
    known = verdicts.read_all(store)
    notes = [f"{store.name(VERDICTS, name)} {why}" for name, why in known.set_aside.items()]
    chosen, missing = _choose_whole(known, asked, store)
    notes += [f"{store.name(run)} is not whole there any more, and is passed over" for run in missing]
    sources = {LAST: chosen.last, PINNED: asked.pinned or chosen.pinned}
    beside: list[Beside] = []
    for role, source in sources.items():
        if source is None:
            continue
        folder = _fetch(store, source, notes.append)
        manifest = _read_manifest(folder)
        if manifest.backend != asked.backend:
            raise NightError(f"--baseline {source}: is of the backend {manifest.backend}, and this is {asked.backend}")
        if not any(one.run == manifest.run_id for one in beside):
            again = f"{asked.run}-beside-{role}"
            beside.append(Beside(role=role, run=manifest.run_id, source=source, folder=str(folder), again=again))
    alone = "" if beside else chosen.others
    return msgspec.structs.replace(asked, beside=tuple(beside), why_alone=alone, is_chosen=True), notes


def _choose_whole(known: Known, asked: Night, store: Store) -> tuple[Chosen, list[str]]:
    """What to compare with of the runs that the store still has, and which of them it has not."""
    missing: list[str] = []
    while True:
        chosen = choose(known, backend=asked.backend, machine=asked.machine, measuring=asked.shown, without=missing)
        lost = [run for run in (chosen.last, chosen.pinned) if run and not _is_readable(store, run)]
        if not lost:
            return chosen, missing
        missing += lost


def _is_readable(store: Store, run: str) -> bool:
    """Whether a store has the commit mark of a run, and it is small enough to be read."""
    there = persist(partial(store.look_up, run, MARK))
    return there is not None and not describe_excess(MARK, there.size_bytes)


def _fetch_again(store: Store, beside: Beside) -> Beside:
    """The earlier run in the cache of today."""
    return msgspec.structs.replace(beside, folder=str(_fetch(store, beside.source)))


def _fetch(store: Store, source: str, note: Callable[[str], object] = lambda words: None) -> Path:
    """The folder of an earlier run: one that is here, one that a URL names, or one of the store."""
    if is_url(source):
        return fetch_whole(source, note=note)
    if Path(source).is_dir():
        return Path(source).absolute()
    return fetch_whole(store.name(source), note=note)


def _read_manifest(folder: Path) -> Manifest:
    try:
        return read_manifest(RunFolder(folder))
    except RecordError as error:
        raise NightError(str(error)) from error
