"""The first steps of a night: begin, and list suspects. Each may be repeated: what is done already is found."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path

import msgspec

from jaxmeter.harness.record import Manifest, RecordError, RunFolder, read_manifest

from ..store.fetch import fetch_whole
from ..store.push import push, reach
from ..store.stores import MARK, VERDICTS, BrokenOffError, Store, StoreError, is_url, open_store, persist
from . import verdicts
from .baselines import LAST, PINNED, Chosen, choose
from .ending import conclude
from .judged import find_suspects, read_limits
from .night import (
    Beside,
    Night,
    NightError,
    end_night,
    has_ended,
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

    Args:
      asked: Without runs to compare with.
      pinned: The earlier run that the user pins: its id in the store, a URL or a folder.
      restart: Whether to abandon a nightly run in progress.
    Raises:
      NightError, StoreError: It cannot be begun as asked.
      BrokenOffError: The store cannot be reached; the same command goes on.
    """
    if not asked.machine.strip():
        raise NightError("--machine is empty; name this machine, or leave it out")
    read_limits(asked)
    reach(asked.store)
    store = open_store(asked.store)
    under_way = read_night(out)
    if under_way is not None and not restart and under_way.is_same_night(asked):
        refetched = tuple(_fetch_again(store, one) for one in under_way.beside)
        night = msgspec.structs.replace(
            under_way,
            beside=refetched,
            min_effect=asked.min_effect,
            budgets=asked.budgets,
            with_captures=asked.with_captures,
        )
        notes = []
    else:
        notes = [] if under_way is None else [_put_aside(under_way, out, restart=restart)]
        night, more = _choose_earlier(asked, store, pinned)
        notes += more
    write_night(out, night)
    write_steps(out, night)
    return Begun(night, under_way is not None and night.run == under_way.run, tuple(notes))


def _put_aside(night: Night, out: Path, *, restart: bool) -> str:
    """Ends an earlier nightly run with what there is of it; what to say of that."""
    if has_ended(out, night.run) and not restart:
        try:
            refetched = tuple(_fetch_again(open_store(night.store), one) for one in night.beside)
            write_night(out, msgspec.structs.replace(night, beside=refetched))
            ended = conclude(out)
        except (NightError, StoreError, BrokenOffError) as error:
            end_night(out)
            return f"the nightly run of {night.run} cannot be concluded ({error}); its run is kept in {out}"
        end_night(out)
        return f"the nightly run of {night.run} was cut short, and is concluded now: {ended.verdict.heading}"
    end_night(out)
    return f"the nightly run of {night.run} is abandoned; what was measured is kept in {out}"


def list_suspects(out: Path) -> tuple[Beside, ...]:
    """Pushes the run, and writes what has to be confirmed; beside which earlier runs that is.

    Raises:
      NightError, StoreError, BrokenOffError: As for `begin`.
    """
    night = require_night(out)
    if not has_ended(out, night.run):
        return ()
    push(RunFolder(out / night.run), night.store, with_captures=night.with_captures)
    found = {one: find_suspects(night, out, one) for one in night.beside}
    for one, suspects in found.items():
        write_confirmation(out, night, one, suspects)
    return tuple(one for one, suspects in found.items() if suspects is not None)


def _choose_earlier(asked: Night, store: Store, pinned: str | None) -> tuple[Night, list[str]]:
    """The nightly run with the runs that it is compared with, which are fetched; and what is wrong with the store."""
    known = verdicts.read_all(store)
    notes = [f"{store.name(VERDICTS, name)} {why}" for name, why in known.set_aside.items()]
    chosen, missing = _choose_whole(known, asked, store)
    notes += [f"{store.name(run)} is not whole there any more, and is passed over" for run in missing]
    sources = {LAST: chosen.last, PINNED: pinned or chosen.pinned}
    beside: list[Beside] = []
    for role, source in sources.items():
        if source is None:
            continue
        folder = _fetch(store, source)
        manifest = _read_manifest(folder)
        if manifest.backend != asked.backend:
            raise NightError(f"--baseline {source}: is of the backend {manifest.backend}, and this is {asked.backend}")
        if not any(one.run == manifest.run_id for one in beside):
            again = f"{asked.run}-beside-{role}"
            beside.append(Beside(role=role, run=manifest.run_id, source=source, folder=str(folder), again=again))
    alone = "" if beside else chosen.others
    return msgspec.structs.replace(asked, beside=tuple(beside), why_alone=alone), notes


def _choose_whole(known: Known, asked: Night, store: Store) -> tuple[Chosen, list[str]]:
    """What to compare with of the runs that the store still has, and which of them it has not."""
    missing: list[str] = []
    while True:
        chosen = choose(known, backend=asked.backend, machine=asked.machine, measuring=asked.shown, without=missing)
        lost = [run for run in (chosen.last, chosen.pinned) if run and persist(partial(store.read, run, MARK)) is None]
        if not lost:
            return chosen, missing
        missing += lost


def _fetch_again(store: Store, beside: Beside) -> Beside:
    """The earlier run in the cache of today."""
    return msgspec.structs.replace(beside, folder=str(_fetch(store, beside.source)))


def _fetch(store: Store, source: str) -> Path:
    """The folder of an earlier run: one that is here, one that a URL names, or one of the store."""
    if is_url(source):
        return fetch_whole(source)
    if Path(source).is_dir():
        return Path(source).absolute()
    return fetch_whole(store.name(source))


def _read_manifest(folder: Path) -> Manifest:
    try:
        return read_manifest(RunFolder(folder))
    except RecordError as error:
        raise NightError(str(error)) from error
