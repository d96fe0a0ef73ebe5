from __future__ import annotations

from pathlib import Path

import pytest

from jaxmeter.harness.record import RunFolder
from tests import samples


@pytest.fixture
def url(tmp_path):
    """An empty store."""
    return (tmp_path / "store").as_uri()


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """A cache of this test alone."""
    monkeypatch.setenv("JAXMETER_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def make(tmp_path):
    """Writes a run that has ended, with a text of a program beside its record."""

    def write(run_id: str = "a-run", text: str = "HloModule a", **changes) -> RunFolder:
        run = samples.run(run_id=run_id, **changes)
        folder = Path(samples.write_run(tmp_path / "results" / run_id, run))
        program = folder / "cases" / run.manifest.cases[0].id / "programs" / "selu-jit" / "hlo.txt"
        program.parent.mkdir(parents=True, exist_ok=True)
        program.write_text(text)
        return RunFolder(folder)

    return write
