"""The page of a night: its run among those of the weeks before, from the store alone."""

from __future__ import annotations

from pathlib import Path

from ..load import load
from ..store.fetch import fetch_named
from ..store.stores import open_store
from ..view import Page, build
from . import verdicts
from .judged import Ended, read_limits

MOST_RUNS = 30
"""A month of nightly runs: enough to tell a step from a single bad one."""


def build_night_page(ended: Ended) -> Page:
    """The page of a nightly run, of the runs that it was compared with, and of the machine's nightly runs before.

    Raises:
      NightError, StoreError, BrokenOffError: As for the steps of a night.
    """
    night = ended.night
    known = verdicts.read_all(open_store(night.store)).verdicts
    same = [one.run for one in known if (one.backend, one.machine) == (night.backend, night.machine)]
    before = [one for one in same if one != night.run][-MOST_RUNS:]
    folders = [*fetch_named(night.store, before), *(Path(one.folder) for one in night.beside), ended.run.folder.path]
    effect, _ = read_limits(night)
    again = ended.judged[0].again if ended.judged else None
    unique = {folder.name: folder for folder in folders}
    return build(load(unique.values(), only_newest=True), again, effect)
