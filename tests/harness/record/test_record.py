import gzip
import json
import math
import os
import string
import typing
from enum import Enum
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from jaxmeter.harness.record import (
    INCOMPLETE,
    SCHEMA_VERSION,
    CaseRecord,
    Cost,
    Outcome,
    RecordError,
    RunFolder,
    RunRecord,
    Status,
    UnreadableError,
    cases,
    environment,
    files,
    json_schema,
    outcomes,
    processes,
    read_json,
    read_manifest,
    read_run,
    runs,
    settings,
    trace_summary,
    write_bytes,
    write_json,
)
from jaxmeter.harness.record.files import LARGEST_RECORD, read_bytes, read_kept
from tests import samples
from tests.harness.raw import clean, process, variant

MODULES = (cases, environment, processes, outcomes, runs, settings, trace_summary)
STRUCTURES = sorted(
    {
        kind
        for module in MODULES
        for kind in vars(module).values()
        if isinstance(kind, type)
        and issubclass(kind, msgspec.Struct)
        and not kind.__name__.startswith("_")
        and kind is not runs.Suspects  # it has fewer values, and no run has it
    },
    key=lambda kind: kind.__name__,
)

MAY_BE_EMPTY = (Cost,)
"""All their fields have defaults, and no tag tells them apart: an empty object is one."""

# JSON's own numbers: beyond 64 bits other readers lose digits, and NaN is null.
leaves = {
    str: st.text(),
    bool: st.booleans(),
    int: st.integers(-(2**53), 2**53),
    float: st.floats(allow_nan=False, allow_infinity=False),
}


def values_of(kind: type) -> st.SearchStrategy:
    """Any value of a record's structure: a strategy per field, by its declared type."""
    if kind in leaves:
        return leaves[kind]
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        fields = {name: values_of(hint) for name, hint in typing.get_type_hints(kind).items()}
        return st.builds(kind, **fields)
    if isinstance(kind, type) and issubclass(kind, Enum):
        return st.sampled_from(kind)
    arguments = typing.get_args(kind)
    if typing.get_origin(kind) is tuple:
        return st.lists(values_of(arguments[0]), max_size=2).map(tuple)
    if typing.get_origin(kind) is dict:
        return st.dictionaries(*map(values_of, arguments), max_size=2)
    if kind is type(None):
        return st.none()
    return st.one_of(map(values_of, arguments))


records = st.sampled_from(STRUCTURES).flatmap(values_of)
damaged = {"a.json": lambda data: data, "a.json.gz": lambda data: gzip.compress(data, mtime=0)}


def written(path: Path, data: object) -> Path:
    path.write_text(json.dumps(data), encoding="utf8")
    return path


def as_data(value: msgspec.Struct) -> dict:
    return msgspec.json.decode(msgspec.json.encode(value))


@given(value=records, name=st.sampled_from(sorted(damaged)))
def test_whatever_is_written_is_read_back_the_same(value, name):
    with TemporaryDirectory() as folder:
        path = Path(folder) / "new" / name

        write_json(path, value)

        assert read_json(path, type(value)) == value


def test_a_compressed_file_does_not_say_when_it_was_written_so_equal_records_give_equal_files(tmp_path):
    path = tmp_path / "00.json.gz"

    write_json(path, process(variant("a", *clean(1.0))))

    time_field = path.read_bytes()[4:8]  # RFC 1952, section 2.3
    assert time_field == bytes(4)


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf], ids=str)
def test_a_value_that_is_no_number_is_null(tmp_path, value):
    path = tmp_path / "outcome.json"

    write_json(path, Outcome(status=Status.WRONG, values={"max_error": (value,)}))

    assert json.loads(path.read_text())["values"] == {"max_error": [None]}
    assert read_json(path, Outcome).values == {"max_error": (None,)}


def test_a_missing_value_is_null_and_not_left_out(tmp_path):
    path = tmp_path / "outcome.json"

    write_json(path, Outcome(status=Status.OK, values={"execution_s": (None, 1.0)}))

    missing = {"reason": None, "stderr": None, "notes": [], "details": None}
    assert json.loads(path.read_text()) == {"status": "ok", "values": {"execution_s": [None, 1.0]}, **missing}
    count = Outcome(status=Status.OK, values={"temp_bytes": (2**40,)})
    write_json(path, count)
    assert repr(read_json(path, Outcome).values["temp_bytes"][0]) == str(2**40)  # a count stays a count


# Reading what is damaged


@given(
    data=st.binary(max_size=200),
    pack=st.booleans(),
    name=st.sampled_from(sorted(damaged)),
    kind=st.sampled_from([kind for kind in STRUCTURES if kind not in MAY_BE_EMPTY]),
)
@example(data=b"", pack=False, name="a.json.gz", kind=RunRecord)
@example(data=b"\x1f\x8b", pack=False, name="a.json.gz", kind=RunRecord)
@example(data=b"[" * 200_000, pack=True, name="a.json.gz", kind=RunRecord)
@example(data=b'{"a":' * 50_000, pack=False, name="a.json", kind=RunRecord)
@example(data=b'"\xff"', pack=False, name="a.json", kind=RunRecord)
@example(data=b"{}", pack=False, name="a.json", kind=RunRecord)
@example(data=b"1e999", pack=False, name="a.json", kind=RunRecord)
def test_random_bytes_are_a_record_error_that_names_the_file(data, pack, name, kind):
    with TemporaryDirectory() as folder:
        path = Path(folder) / name
        path.write_bytes(damaged[name](data) if pack else data)

        with pytest.raises(RecordError) as caught:
            read_json(path, kind)

    assert str(caught.value).startswith(f"{path}: ")


@pytest.mark.parametrize("name", sorted(damaged))
@given(cut=st.floats(0, 1, exclude_max=True))
def test_a_file_cut_short_is_a_record_error(name, cut):
    data = damaged[name](msgspec.json.encode(samples.run()))
    with TemporaryDirectory() as folder:
        path = Path(folder) / name
        path.write_bytes(data[: int(cut * len(data))])

        with pytest.raises(RecordError, match=name):
            read_json(path, RunRecord)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(string.printable, max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=5,
)


def places(data: object, path: tuple = ()) -> list[tuple]:
    """Paths of all values inside JSON data."""
    inside = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    return [path, *(place for key, value in inside for place in places(value, (*path, key)))]


def replaced(data: object, path: tuple, value: object) -> object:
    if not path:
        return value
    copy = data.copy()
    copy[path[0]] = replaced(data[path[0]], path[1:], value)
    return copy


@given(drawn=st.data(), value=JSON)
def test_any_json_in_any_place_gives_a_record_or_a_record_error(drawn, value):
    whole = as_data(samples.run())
    place = drawn.draw(st.sampled_from(places(whole)))
    with TemporaryDirectory() as folder:
        path = written(Path(folder) / "run.json", replaced(whole, place, value))

        try:
            assert isinstance(read_json(path, RunRecord), RunRecord)
        except RecordError as caught:
            error = str(caught)
        else:
            error = f"{path}: "
    assert error.startswith(f"{path}: ")


@pytest.mark.parametrize(
    ("field", "value"),
    [("status", "fine"), ("status", None), ("values", {"a": 1.0}), ("values", {"a": ["1"]}), ("notes", "busy")],
)
def test_a_value_of_a_wrong_type_is_named_with_its_place(tmp_path, field, value):
    path = written(tmp_path / "outcome.json", {"status": "ok", field: value})

    with pytest.raises(RecordError, match=rf"outcome\.json: not a record of jaxmeter, or damaged: .*\$\.{field}"):
        read_json(path, Outcome)


def test_a_field_of_a_later_version_is_passed_over(tmp_path):
    path = written(tmp_path / "outcome.json", {"status": "ok", "mood": "good"})

    assert read_json(path, Outcome) == Outcome(status=Status.OK)


@pytest.mark.parametrize("make", [Path.mkdir, lambda path: None], ids=["a folder", "nothing"])
def test_what_cannot_be_read_is_a_record_error(tmp_path, make):
    path = tmp_path / "run.json"
    make(path)

    with pytest.raises(UnreadableError, match=r"run\.json: cannot be read: "):
        read_json(path, RunRecord)


LARGE = 2**37
"""Bytes; a file system needs none for a file that is nothing but a hole."""


def make_large(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(LARGE)


@pytest.mark.parametrize("name", ["run.json", "00.json.gz"])
@pytest.mark.parametrize(
    ("make", "why"),
    [
        (os.mkfifo, "is no regular file"),
        (lambda path: path.symlink_to("/dev/zero"), "is no regular file"),
        (make_large, f"has {LARGE} bytes, over {LARGEST_RECORD}"),
    ],
    ids=["pipe", "endless device", "larger than memory"],
)
def test_what_would_never_end_is_not_read(tmp_path, name, make, why):
    make(tmp_path / name)

    with pytest.raises(UnreadableError, match=rf"{name}: cannot be read: {why}"):
        read_json(tmp_path / name, RunRecord)
    with pytest.raises(UnreadableError, match=f"{name} (is no regular file|has )"):
        read_kept(tmp_path / name, LARGEST_RECORD)


def test_a_few_bytes_that_unpack_to_too_many_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "LARGEST_RECORD", 1000)
    path = tmp_path / "00.json.gz"
    path.write_bytes(gzip.compress(b" " * 1000))
    assert read_bytes(path) == b" " * 1000

    path.write_bytes(gzip.compress(b" " * 1001))
    with pytest.raises(UnreadableError, match=r"00\.json\.gz: cannot be read: has over 1000 bytes once unpacked"):
        read_bytes(path)


def test_a_file_may_have_as_many_bytes_as_are_allowed_and_no_more(tmp_path):
    path = tmp_path / "hlo.txt"
    path.write_bytes(b"1234")

    assert read_kept(path, 4) == b"1234"
    with pytest.raises(UnreadableError, match=r"hlo\.txt has 4 bytes, over 3"):
        read_kept(path, 3)


def test_a_record_may_be_a_link_and_what_is_kept_beside_it_may_not(tmp_path):
    target = written(tmp_path / "other.json", {"status": "ok"})
    path = tmp_path / "outcome.json"
    path.symlink_to(target)

    assert read_json(path, Outcome) == Outcome(status=Status.OK)
    with pytest.raises(UnreadableError, match="is no regular file"):
        read_kept(path, 100)


def test_a_run_and_its_manifest_are_read_from_their_folder(tmp_path):
    run, folder = samples.run(), RunFolder(tmp_path)
    samples.write_run(tmp_path, run)

    assert read_manifest(folder) == run.manifest
    assert read_run(folder) == run


ADVICE = {1: "it is older than the first release: measure again", SCHEMA_VERSION + 97: "use a newer jaxmeter"}


@pytest.mark.parametrize(("version", "advice"), ADVICE.items(), ids=["older", "newer"])
def test_another_schema_version_says_what_to_do(tmp_path, version, advice):
    # Of another version nothing but the version is understood.
    folder = RunFolder(tmp_path)
    manifest = {"schema_version": version, "cases": 7}
    written(folder.manifest, manifest)
    written(folder.mark, {"manifest": manifest})

    for read, path in ((read_manifest, folder.manifest), (read_run, folder.mark)):
        with pytest.raises(RecordError) as caught:
            read(folder)

        assert str(caught.value) == f"{path}: schema version {version}, this jaxmeter reads {SCHEMA_VERSION}; {advice}"
        assert not isinstance(caught.value, UnreadableError)


@pytest.mark.parametrize("data", [b"{}", b'{"manifest": {}}', b'{"schema_version": "2"}', b"[", b"\xff", b"null"])
def test_a_file_that_tells_no_version_is_damaged(tmp_path, data):
    folder = RunFolder(tmp_path)
    for read, path in ((read_manifest, folder.manifest), (read_run, folder.mark)):
        path.write_bytes(data)

        with pytest.raises(UnreadableError, match=rf"{path.name}: not a record of jaxmeter, or damaged"):
            read(folder)


# Writing whole or not at all


@pytest.mark.parametrize(
    ("of", "name", "error"),
    [
        (os, "fsync", OSError(28, "No space left on device")),
        (Path, "replace", OSError(28, "No space left on device")),
        (os, "fsync", KeyboardInterrupt()),
    ],
    ids=["while writing", "while replacing", "interrupted"],
)
def test_a_write_that_fails_leaves_the_old_file_and_no_temporary(tmp_path, monkeypatch, of, name, error):
    path = tmp_path / "run.json"
    path.write_text("old")

    def fail(*_: object) -> None:
        raise error

    monkeypatch.setattr(of, name, fail)
    with pytest.raises(type(error)):
        write_bytes(path, b"new")

    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_until_a_file_is_whole_readers_see_the_old_one(tmp_path, monkeypatch):
    path = tmp_path / "run.json"
    path.write_text("old")
    seen = []
    monkeypatch.setattr(os, "fsync", lambda handle: seen.append(path.read_text()))

    write_bytes(path, b"new")

    assert seen == ["old"]
    assert path.read_text() == "new"
    assert list(tmp_path.iterdir()) == [path]


def test_a_file_has_the_rights_that_the_umask_gives(tmp_path):
    mask = os.umask(0o027)
    try:
        write_bytes(tmp_path / "a", b"")
    finally:
        os.umask(mask)

    assert (tmp_path / "a").stat().st_mode & 0o777 == 0o640


# What a record says


def case_with(*statuses: Status) -> CaseRecord:
    outcomes = {f"probe{number}": Outcome(status=status) for number, status in enumerate(statuses)}
    return samples.record(samples.planned_case(), {"a:jit": outcomes})


@pytest.mark.parametrize(
    ("statuses", "expected"),
    [
        ((Status.OK, Status.OK), Status.OK),
        ((Status.OK, Status.SKIPPED), Status.OK),
        ((Status.UNSUPPORTED, Status.OK), Status.OK),
        ((Status.SKIPPED, Status.SKIPPED), Status.SKIPPED),
        ((Status.SKIPPED, Status.UNSUPPORTED), Status.UNSUPPORTED),
        ((Status.OK, Status.FAILED), Status.FAILED),
        ((Status.TIMED_OUT, Status.KILLED, Status.OK), Status.KILLED),
        ((Status.WRONG, Status.FAILED), Status.WRONG),
        ((), Status.LOST),
    ],
    ids=lambda value: "+".join(value) if isinstance(value, tuple) else value.value,
)
def test_a_cases_status_is_its_worst_and_ok_if_nothing_went_wrong(statuses, expected):
    assert case_with(*statuses).status is expected


@given(statuses=st.lists(st.sampled_from(Status), min_size=1, max_size=6))
def test_a_case_is_incomplete_exactly_where_any_of_its_outcomes_is(statuses):
    assert (case_with(*statuses).status in INCOMPLETE) is any(status in INCOMPLETE for status in statuses)


def test_planned_cases_without_a_record_are_lost():
    done, missing = samples.planned_case("done"), samples.planned_case("missing")

    run = samples.run((done, samples.fast_case(done)), (missing, None))

    assert run.lost() == (missing,)


def test_the_published_schema_is_the_one_that_the_code_has():
    published = Path(__file__).parents[3] / "docs" / "record.schema.json"

    expected = json.loads(json.dumps(json_schema()))
    assert json.loads(published.read_text()) == expected, "make it again: jaxmeter schema > docs/record.schema.json"
