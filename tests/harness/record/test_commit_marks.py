import json

import msgspec
import pytest

from jaxmeter.harness.record import RunFolder, read_run
from jaxmeter.harness.record.runs import Contents, check_contents, write_mark
from tests import samples


@pytest.fixture
def folder(tmp_path):
    """A run with two process files and its commit mark."""
    made = RunFolder(tmp_path / "run")
    run = samples.run(run_id="run")
    own = made.case(run.manifest.cases[0].id)
    for kind in ("cold", "timing"):
        path = own.next_process(kind)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(kind.encode())
    write_mark(run, made)
    return made


def check(folder):
    return check_contents(read_run(folder), folder)


def test_the_files_of_a_run_are_known_again(folder):
    assert check(folder) is Contents.AS_WRITTEN
    assert len(read_run(folder).contents) == 64


def edit_number(folder):
    text = folder.mark.read_text()
    folder.mark.write_text(text.replace('"seed": 0', '"seed": 7'))
    assert folder.mark.read_text() != text


def edit_process(folder):
    folder.list_processes()[0].write_bytes(b"other")


def rename_process(folder):
    path = folder.list_processes()[1]
    path.rename(path.with_name("0007-timing.json.gz"))


def remove_process(folder):
    folder.list_processes()[0].unlink()


def swap_processes(folder):
    first, second = (path.read_bytes() for path in folder.list_processes())
    for path, data in zip(folder.list_processes(), (second, first), strict=True):
        path.write_bytes(data)


@pytest.mark.parametrize("change", [edit_number, edit_process, rename_process, remove_process, swap_processes])
def test_what_was_changed_afterwards_is_noticed(folder, change):
    change(folder)

    assert check(folder) is Contents.CHANGED


def test_a_record_without_process_files_has_summaries_only(folder):
    for path in folder.list_processes():
        path.unlink()

    assert check(folder) is Contents.SUMMARIES


def test_of_an_older_record_with_process_files_nothing_is_known(folder):
    made = json.loads(folder.mark.read_text())
    del made["contents"]
    folder.mark.write_text(json.dumps(made))

    assert check(folder) is Contents.UNKNOWN


def test_zeros_elsewhere_in_a_record_stay_zeros(folder):
    zeros = "0" * 64
    run = read_run(folder)
    planned = msgspec.structs.replace(run.manifest.cases[0], definition=zeros)
    run = msgspec.structs.replace(run, manifest=msgspec.structs.replace(run.manifest, cases=(planned,)))

    write_mark(run, folder)

    assert read_run(folder).manifest.cases[0].definition == zeros
    assert check(folder) is Contents.AS_WRITTEN
