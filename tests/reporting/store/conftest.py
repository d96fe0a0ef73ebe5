import hashlib
from pathlib import Path

import pytest
from msgspec.structs import replace

from jaxmeter.harness.record import Artifact, RunFolder
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

    def write(run_id: str = "a-run", text: str = "HloModule a", pairs=(), **changes) -> RunFolder:
        run = samples.run(*pairs, run_id=run_id, **changes)
        folder = Path(samples.write_run(tmp_path / "results" / run_id, run))
        program = folder / "cases" / run.manifest.cases[0].id / "programs" / "selu-jit" / "hlo.txt"
        program.parent.mkdir(parents=True, exist_ok=True)
        program.write_text(text)
        return RunFolder(folder)

    return write


@pytest.fixture
def make_captured(make):
    """Writes a run that has ended, with two captures, each of two files, in the folder and in the record."""

    def write(run_id: str = "a-run", **changes) -> RunFolder:
        planned = samples.planned_case()
        kept = []
        for variant in ("selu:eager", "selu:jit"):
            session = f"trace/{variant.replace(':', '-')}/plugins/profile/capture"
            for name in ("host.xplane.pb", "host.trace.json.gz"):
                data = f"{variant} {name}".encode()
                digest = hashlib.sha256(data).hexdigest()
                path, size = f"{session}/{name}", len(data)
                kept.append((data, Artifact(kind="trace", variant=variant, path=path, size_bytes=size, sha256=digest)))
        record = replace(samples.fast_case(planned), artifacts=tuple(artifact for _, artifact in kept))
        folder = make(run_id, pairs=((planned, record),), **changes)
        for data, artifact in kept:
            path = folder.case(planned.id).path / artifact.path
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
        return folder

    return write
