import hashlib
import os
from pathlib import Path

import pytest

from jaxmeter.harness.record import RunFolder
from jaxmeter.reporting.load import SEAL, is_sealed, is_sound, read_sum, seal

RECORD = b'{"a": "record"}'


@pytest.fixture
def copy(tmp_path) -> RunFolder:
    folder = RunFolder(tmp_path)
    folder.mark.write_bytes(RECORD)
    seal(folder, RECORD)
    return folder


def never(path):
    raise AssertionError(f"{path} was read")


def test_its_sum_is_that_of_the_record(copy):
    assert read_sum(copy) == hashlib.sha256(RECORD).hexdigest().encode()
    assert is_sealed(copy)


def test_a_record_that_has_not_changed_is_not_read_again(copy, monkeypatch):
    read = Path.read_bytes
    monkeypatch.setattr(Path, "read_bytes", lambda path: never(path) if path == copy.mark else read(path))

    assert is_sound(copy)


def test_a_record_that_was_copied_is_read_and_sound(copy):
    os.utime(copy.mark, ns=(1, 1))

    assert is_sound(copy)


@pytest.mark.parametrize("data", [b"", RECORD[:-1], RECORD.replace(b"a", b"b"), RECORD + b" "])
def test_a_record_that_has_changed_is_not_sound_and_another_size_is_a_change_whatever_the_time(copy, data):
    time = copy.mark.stat().st_mtime_ns if len(data) > len(RECORD) else 1
    copy.mark.write_bytes(data)
    os.utime(copy.mark, ns=(time, time))

    assert not is_sound(copy)


@pytest.mark.parametrize(
    ("data", "is_right"),
    [
        (hashlib.sha256(RECORD).hexdigest().encode(), True),
        *((data, False) for data in (b"0" * 64, b"", b"\n", b"x y z w")),
    ],
)
def test_a_sum_alone_is_held_against_the_record_and_a_damaged_seal_is_not_sound(copy, data, is_right):
    (copy.path / SEAL).write_bytes(data)

    assert is_sound(copy) is is_right


@pytest.mark.parametrize("lost", [SEAL, "run.json"])
def test_without_record_or_sum_it_is_not_sound(copy, lost):
    (copy.path / lost).unlink()

    assert not is_sound(copy)
    assert is_sealed(copy) == (lost == "run.json")
