"""Verdicts on nightly runs, a file each next to the runs of a store, and the earlier runs that they make baselines."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from jaxmeter.harness.record import write_bytes

from ..store.fetch import find_cache
from ..store.stores import MARK, SKEW, VERDICTS, Store, StoreError, describe_excess, persist, read_time

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
