import errno
import os

import pytest

from jaxmeter.reporting.store.stores import ATTEMPTS, BrokenOffError, StoreError, open_store, persist, translate_errors


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("s4://bucket/a", "s4://bucket/a: nothing reads 's4://'; nearest: s3://, or a folder's path"),
        ("https://host/a", "nothing reads 'https://'"),
        ("s3://", "s3://: names no bucket; write s3://bucket/folder"),
        ("s3:///", "s3:///: names no bucket"),
        ("file://here/a", "file://here/a: names no bucket; write file:///folder"),
        ("memory://a/b", "nothing reads 'memory://'"),
        ("s3://bucket/*", "s3://bucket/*: a store's path has none of * ? [ ] ::"),
        ("file:///a/b[1]", "a store's path has none of"),
        ("file:///a::b", "a store's path has none of"),
        ("s3://AKIA:secret@bucket/a", "s3://…: a URL with a password"),
    ],
)
def test_what_is_no_store_is_said_with_the_nearest(url, said):
    with pytest.raises(StoreError) as caught:
        open_store(url)

    assert said in str(caught.value)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    ("url", "package", "extra"),
    [("s3://b/a", "s3fs", "s3"), ("gs://b/a", "gcsfs", "gcs"), ("gcs://b/a", "gcsfs", "gcs")],
)
def test_what_reads_it_is_named_where_it_is_not_installed(url, package, extra, monkeypatch):
    def refuse(url, **options):
        raise ImportError(f"Install {package}") from ModuleNotFoundError(f"No module {package}", name=package)

    monkeypatch.setattr("fsspec.core.url_to_fs", refuse)

    with pytest.raises(StoreError, match=rf"{url}: .*pip install 'jaxmeter\[{extra}\]'"):
        open_store(url)


def test_a_file_is_created_once_and_never_written_again_and_nothing_else_is_left(url):
    store = open_store(url)

    assert store.create(b"one", "a", "b.json")
    assert not store.create(b"other", "a", "b.json")
    assert store.read("a", "b.json") == b"one"
    assert store.list_files("a") == {"b.json": 3}


def test_files_are_read_at_once_by_their_very_names_and_what_is_no_file_is_none(url):
    store = open_store(url)
    for name in ("a*", "a[1]", "ab"):
        store.create(name.encode(), "run", name)
    store.create(b"", "run", "run.json", "x")  # a folder in place of a file

    found = store.read_all([*(f"run/{name}" for name in ("a*", "a[1]", "ab", "run.json")), "c/x"])

    assert found == {"run/a*": b"a*", "run/a[1]": b"a[1]", "run/ab": b"ab"}
    assert store.read("run", "run.json") is store.read("c", "b.json") is None
    assert (store.list_files("c"), store.read_all([])) == ({}, {})


def test_files_are_sent_over_what_is_there(url, tmp_path):
    (tmp_path / "f").write_bytes(b"new")
    store = open_store(url)
    store.create(b"old one", "a", "deep", "f")

    store.send({tmp_path / "f": ("a", "deep", "f")})

    assert store.list_files("a") == {"deep/f": 3}


def test_folders_are_listed_by_name_without_hidden_ones(url):
    store = open_store(url)
    for name in ("b", "a", ".self-tests"):
        store.create(b"", name, "x")
    store.create(b"", "file")

    assert store.list_folders() == ("a", "b")


def test_a_store_that_is_not_there_is_said(tmp_path):
    with pytest.raises(StoreError, match="none: no such bucket or folder"):
        open_store((tmp_path / "none").as_uri()).list_folders()


def of_clouds(name, module="builtins"):
    """An error as of a library of clouds."""
    return type(name, (Exception,), {"__module__": module})("AKIA-secret")


@pytest.mark.parametrize(
    ("error", "kind", "said"),
    [
        (of_clouds("ParamValidationError"), StoreError, "s3://b: no name that a bucket can have"),
        (PermissionError("AKIA-secret"), StoreError, "s3://b: no access; check the credentials"),
        (of_clouds("NoCredentialsError"), StoreError, "s3://b: no usable credentials (NoCredentialsError)"),
        (of_clouds("E", "botocore.exceptions"), BrokenOffError, "s3://b: cannot be reached (E); try again"),
        (TimeoutError("AKIA-secret"), BrokenOffError, "s3://b: cannot be reached (TimeoutError); try again"),
        (OSError("AKIA-secret"), BrokenOffError, "s3://b: cannot be reached (OSError); try again"),
        (OSError(errno.ENOSPC, "x"), BrokenOffError, "s3://b: no space left; free some, then repeat the command"),
    ],
)
def test_what_a_library_complains_of_is_told_without_its_own_words(error, kind, said):
    with pytest.raises(kind) as caught, translate_errors("s3://b"):
        raise error

    assert said in str(caught.value)
    assert "secret" not in str(caught.value)


def broken(times):
    """Breaks off so many times; then it is done."""
    calls = []

    def do():
        calls.append(1)
        if len(calls) <= times:
            raise BrokenOffError("broken off")
        return len(calls)

    return do


def test_what_breaks_off_is_tried_again_after_waits_that_double_and_what_is_refused_is_not():
    waited, calls = [], []

    def refuse():
        calls.append(1)
        raise StoreError("no")

    assert persist(broken(ATTEMPTS - 1), waited.append) == ATTEMPTS
    assert waited == [1.0, 2.0, 4.0, 8.0]
    with pytest.raises(BrokenOffError):  # after the last attempt
        persist(broken(ATTEMPTS), lambda seconds: None)
    with pytest.raises(StoreError):
        persist(refuse)
    assert calls == [1]


@pytest.mark.skipif(os.getuid() == 0, reason="root may write anywhere")
def test_a_folder_that_cannot_be_written_is_told(tmp_path):
    (tmp_path / "store").mkdir(mode=0o500)

    with pytest.raises(StoreError, match="no access"):
        open_store((tmp_path / "store").as_uri()).create(b"", "a", "x")
