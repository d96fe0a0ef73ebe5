from pathlib import Path

import pytest

from jaxmeter.launch.nightly import CONFIRM, FOLDER, MEASURE, hold, read_nightly_request, read_step
from jaxmeter.launch.options import UsageError
from jaxmeter.reporting.nightly import state

STORE = "s3://bucket/team"


def test_what_begins_and_ends_a_night_is_told_from_what_measures():
    asked = read_nightly_request(
        [
            *("--store", STORE, "--machine", "gpu box", "--with-captures", "--budgets", "b.toml", "--baseline=RUN"),
            *("--min-effect", "2%", "--markdown", "m.md", "--verdict", "v.json", "--runtime", "local", "--out", "here"),
        ]
    )
    by_default = read_nightly_request(["--store", STORE])

    assert (asked.store, asked.machine, asked.out, asked.folder) == (
        STORE,
        "gpu box",
        Path("here"),
        Path("here/.night"),
    )
    assert asked.beginning == ("--baseline", "RUN", "--budgets", "b.toml", "--min-effect", "2%", "--with-captures")
    assert asked.ending == ("--markdown", "m.md", "--verdict", "v.json")
    assert asked.measuring == ("--runtime", "local")
    assert (by_default.machine, by_default.out, by_default.measuring) == (None, Path("results"), ())


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "name a store: --store s3://bucket/folder"),
        (["--store", "results"], "name a store (--store results)"),
        (["--store", STORE, "--out", STORE], "a folder of this machine"),
        (["--store", STORE, "--against", "x"], "with the last good one and with --baseline"),
        (["--store", STORE, "--machine", ""], "--machine is empty"),
    ],
)
def test_what_a_night_does_not_take_is_said(arguments, words):
    with pytest.raises(UsageError) as raised:
        read_nightly_request(arguments)

    assert words in str(raised.value)


def test_the_steps_are_where_the_reporter_writes_them(tmp_path):
    asked = state.NightlyRun(
        store=STORE,
        run="a-run",
        backend="cpu",
        machine="a machine, 2 cores",
        begun="2026-03-01T02:00:00+00:00",
        measuring=("--select", "selu*"),
        min_effect="3%",
    )
    earlier = state.EarlierRun(role="last", run="before", source="before", folder="/cache/before", again="again")

    state.write_state(tmp_path, asked)
    state.write_steps(tmp_path, asked)
    state.write_confirmation(tmp_path, asked, earlier, b"{}")

    folder = tmp_path / FOLDER
    common = ["--backend", "cpu", "--machine", "a machine, 2 cores", "--select", "selu*"]
    assert read_step(folder / MEASURE) == [*common, "--out", str(tmp_path), "--run-id", "a-run"]
    (step,) = folder.glob(CONFIRM)
    assert read_step(step) == [
        *(*common, "--against", "/cache/before", "--suspects", str(folder / "suspects-last.json")),
        *("--out", str(tmp_path), "--run-id", "again"),
    ]


def test_two_nights_do_not_share_a_folder(tmp_path):
    asked = read_nightly_request(["--store", STORE, "--out", str(tmp_path / "results")])
    other = read_nightly_request(["--store", STORE, "--out", str(tmp_path / "others")])

    with hold(asked):
        with pytest.raises(UsageError, match=r"another nightly run is in progress in .*results; wait"), hold(asked):
            pass
        with hold(other):
            pass
    with hold(asked):
        pass


def test_a_folder_that_cannot_be_written_is_said_and_a_fault_of_a_night_is_not_taken_for_one_of_its_folder(tmp_path):
    (tmp_path / "file").touch()

    with pytest.raises(FileNotFoundError), hold(read_nightly_request(["--store", STORE, "--out", str(tmp_path)])):
        raise FileNotFoundError
    unwritable = read_nightly_request(["--store", STORE, "--out", str(tmp_path / "file")])
    with pytest.raises(UsageError, match="cannot be written"), hold(unwritable):
        pass
