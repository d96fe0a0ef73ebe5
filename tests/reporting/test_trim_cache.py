import msgspec
import pytest

from jaxmeter.harness.record import RunFolder
from jaxmeter.reporting.load import load
from jaxmeter.reporting.render import html
from jaxmeter.reporting.store.fetch import fetch
from jaxmeter.reporting.store.push import push
from jaxmeter.reporting.trim import FILE, SEAL, read_cut
from jaxmeter.reporting.view import build
from tests import samples

RUNS = 5


@pytest.fixture
def folders(tmp_path, monkeypatch):
    """Runs of one machine in the cache, the oldest first."""
    monkeypatch.setenv("JAXMETER_CACHE", str(tmp_path / "cache"))
    store = (tmp_path / "store").as_uri()
    for run in make_runs():
        push(RunFolder(samples.write_run(tmp_path / "results" / run.manifest.run_id, run)), store)
    return fetch(store).folders


def make_runs():
    return [samples.run(run_id=f"run-{number}", started=f"2026-01-0{number + 1}T00:00:00Z") for number in range(RUNS)]


def kept(folders):
    return [folder.name for folder in folders if (folder / FILE).exists()]


def test_of_older_runs_in_the_cache_the_times_are_kept_and_read_from_then_on(folders, monkeypatch):
    first = load(folders, only_newest=True)

    # Two are kept whole: the newest, and the one that it is compared with.
    assert kept(folders) == ["run-0", "run-1", "run-2"]
    monkeypatch.setattr("jaxmeter.reporting.load._load_run", only(folders[-2:]))
    again = load(folders, only_newest=True)
    assert [one.record for one in again.runs] == [one.record for one in first.runs]
    assert html.render(build(again)) == html.render(build(first))


def only(allowed):
    """Reading a run whole, which is not wanted of others."""
    from jaxmeter.reporting.load import _load_run

    def read(folder, warnings):
        assert folder.path in allowed
        return _load_run(folder, warnings)

    return read


def test_a_run_of_which_more_is_needed_is_read_whole(folders):
    load(folders, only_newest=True)

    (alone,) = load(folders[:1], only_newest=True).runs

    assert alone.record == load(folders[:1]).runs[0].record


@pytest.mark.parametrize(
    "spoil", [lambda data: b"", lambda data: data[:-3], lambda data: b"0" + data[1:]], ids=["empty", "cut", "older"]
)
def test_a_damaged_file_of_times_is_made_anew_and_one_of_another_record_not_read(folders, spoil):
    first = load(folders, only_newest=True)
    path = folders[0] / FILE
    data = path.read_bytes()
    path.write_bytes(spoil(data))

    assert read_cut(RunFolder(folders[0])) is None
    assert [one.record for one in load(folders, only_newest=True).runs] == [one.record for one in first.runs]
    assert path.read_bytes() == data
    (folders[0] / SEAL).write_text("0" * 64)
    assert read_cut(RunFolder(folders[0])) is None


def test_nothing_is_written_beside_runs_that_are_no_copies(tmp_path):
    own = [samples.write_run(tmp_path / run.manifest.run_id, run) for run in make_runs()]

    load(own, only_newest=True)

    assert kept(own) == []


def test_a_copy_and_its_original_are_one_run(folders, tmp_path):
    load(folders, only_newest=True)

    both = load([*folders, *(tmp_path / "results" / folder.name for folder in folders)], only_newest=True)

    assert len(both.runs) == RUNS
    assert all("counted once" in warning for warning in both.warnings)
    assert len(both.warnings) == RUNS
    assert msgspec.json.encode(both.runs[0].record) == msgspec.json.encode(
        load(folders, only_newest=True).runs[0].record
    )
