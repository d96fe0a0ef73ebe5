"""Runs whose processes are made up."""

from __future__ import annotations

from types import SimpleNamespace

import msgspec
import pytest

from jaxmeter.harness.machine.platforms import PLATFORMS
from jaxmeter.harness.parent import execution
from jaxmeter.harness.parent.execution import execute
from jaxmeter.harness.parent.progress import Watcher
from jaxmeter.harness.record import RunFolder, Settings
from tests import samples
from tests.harness.parent.made_up import OK, VARIANTS, NoteTaker, stop_before


@pytest.fixture
def executed(clock, monkeypatch, tmp_path):
    """Executes a run of cases that are made up; returns the run and the server."""
    monkeypatch.setattr(execution, "time", SimpleNamespace(monotonic=clock))

    def run(settings: Settings, cases, *, budget_s: float | None = 1000.0, platforms=PLATFORMS, watcher=None, **server):
        clock.now = 64.0  # a clock's beginning means nothing
        taker = NoteTaker(clock, **server)
        manifest = msgspec.structs.replace(samples.manifest(cases, settings=settings), cases=tuple(cases))
        folder = RunFolder(tmp_path)
        return execute(manifest, folder, taker, watcher or Watcher(), budget_s, platforms), taker

    return run


@pytest.fixture
def interrupted(executed):
    """Executes a run that is interrupted, by default before so many timing processes."""

    def run(settings: Settings, cases, *, before: int | None = None, **server) -> None:
        if before is not None:
            server["dies"] = stop_before(before)
        with pytest.raises(KeyboardInterrupt):
            executed(settings, cases, **server)

    return run


@pytest.fixture
def measured(executed):
    """Measures one made-up case, whose share is the run's whole budget; returns its record and the server."""

    def measure(
        settings: Settings,
        *,
        share_s: float = 1000.0,
        answers=lambda launched, variant: OK,
        too_large=None,
        dies=lambda launched: None,
        **changes,
    ):
        case = msgspec.structs.replace(samples.planned_case(variants=VARIANTS), **changes)
        run, server = executed(
            settings, [case], budget_s=share_s, answers=answers, too_large=too_large or {}, dies=dies
        )
        return run.cases[0], server

    return measure
