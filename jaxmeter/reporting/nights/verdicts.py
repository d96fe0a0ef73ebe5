"""Verdicts on nightly runs, a file each next to the runs of a store: the findings, and whether the run is good."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from jaxmeter.harness.record import write_bytes

from ..store.fetch import find_cache
from ..store.stores import MARK, VERDICTS, Store, StoreError, persist

ACCEPTED = ".accepted"
ENDING = ".json"
AT_ONCE = 100
"""Files that are asked for together."""


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
    """All that a store says of its nightly runs.

    Args:
      accepted: When each run was accepted that was.
      damaged: Names of files that are neither.
    """

    verdicts: tuple[Verdict, ...] = ()
    accepted: dict[str, str] = {}
    damaged: tuple[str, ...] = ()


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
        raise StoreError(f"{store.url}: has no verdict on a run '{acceptance.run}'; name a run of `nox -s nightly`")
    if persist(partial(store.read, acceptance.run, MARK)) is None:
        raise StoreError(f"{store.name(acceptance.run)}: is not whole there; nothing can be compared with it")
    name = f"{acceptance.run}{ACCEPTED}{ENDING}"
    return persist(partial(store.create, encode(acceptance), VERDICTS, name))


def read_all(store: Store, cache: Path | None = None) -> Known:
    """What a store says of its nightly runs; what was read once is read from the cache, since nothing of it changes.

    Raises:
      StoreError, BrokenOffError: The store refuses, or cannot be reached.
    """
    root = (find_cache() if cache is None else cache) / VERDICTS / _key(store)
    names = [name for name in persist(partial(store.list_files, VERDICTS)) if "/" not in name and name.endswith(ENDING)]
    texts = {name: data for name in names if (data := _read_kept(root / name)) is not None}
    wanted = [name for name in names if name not in texts]
    for start in range(0, len(wanted), AT_ONCE):
        paths = [f"{VERDICTS}/{name}" for name in wanted[start : start + AT_ONCE]]
        for path, data in persist(partial(store.read_all, paths)).items():
            name = path.rpartition("/")[2]
            texts[name] = data
            _keep_here(root / name, data)
    return _decode(texts)


def encode(record: msgspec.Struct) -> bytes:
    """As a person can read it, too."""
    return msgspec.json.format(msgspec.json.encode(record), indent=1) + b"\n"


def _decode(texts: dict[str, bytes]) -> Known:
    verdicts: list[Verdict] = []
    accepted: dict[str, str] = {}
    damaged: list[str] = []
    for name, data in sorted(texts.items()):
        try:
            if name.endswith(f"{ACCEPTED}{ENDING}"):
                found = msgspec.json.decode(data, type=Acceptance)
                accepted[found.run] = found.at
            else:
                verdicts.append(msgspec.json.decode(data, type=Verdict))
        except (msgspec.DecodeError, RecursionError):
            damaged.append(name)
    return Known(tuple(verdicts), accepted, tuple(damaged))


def order(verdicts: Sequence[Verdict]) -> list[Verdict]:
    """By the time at which their runs began, the oldest first."""
    return sorted(verdicts, key=lambda one: (one.started, one.run))


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
