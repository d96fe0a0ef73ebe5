"""Verdicts on nightly runs, a file each next to the runs of a store: the findings, and whether the run is good."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from jaxmeter.harness.record import write_bytes

from ..store.fetch import find_cache
from ..store.stores import MARK, SKEW, VERDICTS, Store, StoreError, describe_excess, persist, read_time

ACCEPTED = ".accepted"
ENDING = ".json"
OLDEST = datetime.min.replace(tzinfo=UTC)


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """What a night has found.

    Args:
      measuring: Options of the measurement: nightly runs of others are not compared.
      started: When the run began.
      exit_code: 0 passed, 1 a confirmed regression, 3 no answer.
      good: Whether later nightly runs may be compared with it.
      why_not: Why they may not; empty where they may.
      baselines: What was found beside each earlier run, as `--verdict` of a gate writes it, and in which role the run
        stood: of times and numbers only those that have changed.
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

    verdicts: tuple[Verdict, ...] = ()
    accepted: tuple[str, ...] = ()
    set_aside: dict[str, str] = {}


def name_verdict(run_id: str) -> str:
    """The file of a run's verdict."""
    return f"{run_id}{ENDING}"


def keep(store: Store, verdict: Verdict) -> Verdict:
    """Writes a verdict, or finds the one that is there: of one nightly run there is one.

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


def find_verdict(store: Store, run_id: str) -> Verdict | None:
    """The verdict on a run; None where there is none that can be read."""
    data = persist(partial(store.read, VERDICTS, name_verdict(run_id)))
    try:
        return None if data is None else msgspec.json.decode(data, type=Verdict)
    except (msgspec.DecodeError, RecursionError):
        return None


def accept(store: Store, acceptance: Acceptance) -> bool:
    """Pins a run; false where it was accepted before.

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


def read_all(store: Store, cache: Path | None = None) -> Known:
    """What a store says of its nightly runs; what was read once is read from the cache, since nothing of it changes.

    Raises:
      StoreError, BrokenOffError: The store refuses, or cannot be reached.
    """
    root = (find_cache() if cache is None else cache) / VERDICTS / _key(store)
    found = persist(partial(store.find, VERDICTS))
    received = {name: one.changed for name, one in found.items() if "/" not in name and name.endswith(ENDING)}
    texts = {name: data for name in received if (data := _read_kept(root / name)) is not None}
    sizes = {name: found[name].size_bytes for name in received if name not in texts}
    excess = {name: words for name, size in sizes.items() if (words := describe_excess(name, size))}
    for data_of in store.read_in_sets({f"{VERDICTS}/{name}": sizes[name] for name in sizes if name not in excess}):
        for path, data in data_of.items():
            name = path.rpartition("/")[2]
            texts[name] = data
            _keep_here(root / name, data)
    known = _decode(texts, received, store.read_clock() if received else None)
    too_large = {name: f"{words}; it is not counted" for name, words in excess.items()}
    return msgspec.structs.replace(known, set_aside={**known.set_aside, **too_large})


def encode(record: msgspec.Struct) -> bytes:
    """As a person can read it, too."""
    return msgspec.json.format(msgspec.json.encode(record), indent=1) + b"\n"


def _decode(texts: Mapping[str, bytes], received: Mapping[str, datetime | None], clock: datetime | None) -> Known:
    """What the files say, and which of them do not count.

    Args:
      received: When the store received each; None where it does not say.
      clock: The store's own; None of a bucket.
    """
    verdicts: list[tuple[datetime, str, Verdict]] = []
    accepted: list[tuple[datetime, str, str]] = []
    set_aside: dict[str, str] = {}
    for name, data in sorted(texts.items()):
        try:
            record = _decode_one(name, data)
        except (msgspec.DecodeError, RecursionError):
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


def _decode_one(name: str, data: bytes) -> Acceptance | Verdict:
    if name.endswith(f"{ACCEPTED}{ENDING}"):
        return msgspec.json.decode(data, type=Acceptance)
    return msgspec.json.decode(data, type=Verdict)


def _key(store: Store) -> str:
    return hashlib.sha256(store.url.rstrip("/").encode()).hexdigest()[:16]


def _read_kept(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except OSError:
        return None


def _keep_here(path: Path, data: bytes) -> None:
    """A file of the cache; without room for it, it is asked for again."""
    try:
        write_bytes(path, data, lasting=False)
    except OSError:
        return
