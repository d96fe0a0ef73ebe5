import gzip
import io
import os
import pickle
import re
import tarfile
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from jaxmeter.harness.machine.data import DATA_VARIABLE, DataSource
from jaxmeter.suites.datasets import LARGEST_BATCH, MNIST_FILES, cifar10, cifar10_source, mnist, mnist_source
from jaxmeter.suites.image_files import DataError
from tests.golden_texts import check_golden_scenes

ROWS = 3

PIXELS = np.random.SFC64(0).random_raw(ROWS * 3072 // 8).view(np.uint8)
IMAGES = PIXELS[: ROWS * 784].reshape(ROWS, 28, 28)
COLOURED = PIXELS.reshape(ROWS, 32, 32, 3)
LABELS = np.array([9, 0, 4], np.uint8)


def idx(array: np.ndarray, magic: int) -> bytes:
    """The array as the idx format has it."""
    return np.array([magic, *array.shape], ">u4").tobytes() + array.tobytes()


def batch(images: np.ndarray, labels: np.ndarray) -> bytes:
    """Images as CIFAR-10's binary version has them: label, red plane, green plane, blue plane."""
    return np.concatenate([labels[:, None], in_planes(images)], axis=1).tobytes()


def text(content: bytes) -> bytes:
    """A short text as Python 2 pickles it."""
    return b"U" + bytes([len(content)]) + content


def array(rows: np.ndarray, *, dtype: bytes = b"u1", by_columns: bool = False) -> bytes:
    """Rows of bytes as NumPy of Python 2 pickles them."""
    made = b"cnumpy.core.multiarray\n_reconstruct\ncnumpy\nndarray\nK\0\x85" + text(b"b") + b"\x87R"
    shape = b"".join(b"M" + side.to_bytes(2, "little") for side in rows.shape) + b"\x86"
    described = b"cnumpy\ndtype\n" + text(dtype) + b"K\0K\1\x87R(K\3" + text(b"|") + b"NNNJ" + 4 * b"\xff"
    content = rows.tobytes("F" if by_columns else "C")
    return (
        made + b"(K\1" + shape + described + b"J" + 4 * b"\xff" + b"K\0tb" + (b"\x88" if by_columns else b"\x89")
        + b"T" + len(content).to_bytes(4, "little") + content + b"tb"
    )  # fmt: skip


def pickled(entries: dict[bytes, bytes]) -> bytes:
    """A dict of Python 2, as CIFAR-10's version for Python is stored; of values that are pickled already."""
    return b"\x80\2}(" + b"".join(text(key) + value for key, value in entries.items()) + b"u."


def numbers(values: Iterable[int]) -> bytes:
    return b"](" + b"".join(b"K" + bytes([value]) for value in values) + b"e"


def in_planes(images: np.ndarray) -> np.ndarray:
    """Rows of CIFAR-10: red plane, green plane, blue plane."""
    return np.ascontiguousarray(images.transpose(0, 3, 1, 2).reshape(len(images), -1))


def pickled_batch(images: np.ndarray, labels: np.ndarray, **how: object) -> bytes:
    return pickled(
        {
            b"batch_label": text(b"testing batch 1 of 1"),
            b"labels": numbers(labels.tolist()),
            b"data": array(in_planes(images), **how),
        }
    )


def archive(files: dict[str, bytes]) -> bytes:
    """As CIFAR-10's archive is packed."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as members:
        for name, content in files.items():
            member = tarfile.TarInfo(f"cifar-10-batches-py/{name}")
            member.size = len(content)
            members.addfile(member, io.BytesIO(content))
    return packed.getvalue()


MNIST = {
    "train-images-idx3-ubyte": idx(IMAGES, 2051),
    "train-labels-idx1-ubyte": idx(LABELS, 2049),
    "t10k-images-idx3-ubyte": idx(IMAGES[::-1], 2051),
    "t10k-labels-idx1-ubyte": idx(LABELS[::-1], 2049),
}
CIFAR10 = {
    **{f"data_batch_{number}.bin": batch(COLOURED, (LABELS + number) % 10) for number in range(1, 6)},
    "test_batch.bin": batch(COLOURED[::-1], LABELS[::-1]),
}


PICKLED = {
    "test_batch": pickled_batch(COLOURED[::-1], LABELS[::-1]),
    **{f"data_batch_{number}": pickled_batch(COLOURED, (LABELS + number) % 10) for number in range(5, 0, -1)},
}


def write(folder: Path, files: dict[str, bytes]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        (folder / name).write_bytes(content)


@pytest.fixture
def data(tmp_path, monkeypatch) -> Path:
    """An empty folder, given with --data."""
    monkeypatch.setenv(DATA_VARIABLE, str(tmp_path))
    return tmp_path


@contextmanager
def folder_with(files: dict[str, bytes]) -> Iterator[None]:
    """For hypothesis, whose examples share a test's fixtures."""
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setenv(DATA_VARIABLE, folder)
        write(Path(folder), files)
        yield


def unchanged(content: bytes) -> bytes:
    return content


@pytest.mark.parametrize(
    ("inner", "ending", "stored"), [(".", "", unchanged), (".", ".gz", gzip.compress), ("MNIST/raw", "", unchanged)]
)
def test_mnist_is_read_as_its_files_have_it(data, inner, ending, stored):
    write(data / inner, {name + ending: stored(content) for name, content in MNIST.items()})

    images, labels = mnist("train")
    test_images, test_labels = mnist("test", count=2)

    np.testing.assert_array_equal(images, IMAGES)
    np.testing.assert_array_equal(labels, LABELS)
    np.testing.assert_array_equal(test_images, IMAGES[::-1][:2])
    np.testing.assert_array_equal(test_labels, LABELS[::-1][:2])
    assert mnist_source() == DataSource("MNIST from --data")


@pytest.mark.parametrize(
    ("inner", "files"),
    [
        ("cifar-10-batches-bin", CIFAR10),
        (".", CIFAR10),
        ("cifar-10-batches-py", PICKLED),
        (".", PICKLED),
        (".", {"cifar-10-python.tar.gz": archive({"batches.meta": b"", **PICKLED})}),
    ],
    ids=["binary, unpacked", "binary", "pickled, as torchvision has it", "pickled", "pickled, in the archive"],
)
def test_cifar10_is_read_batch_by_batch_with_channels_last(data, inner, files):
    write(data / inner, files)

    images, labels = cifar10("train")
    some_images, some_labels = cifar10("train", count=4)
    test_images, test_labels = cifar10("test")

    np.testing.assert_array_equal(images, np.concatenate([COLOURED] * 5))
    np.testing.assert_array_equal(labels, np.concatenate([(LABELS + number) % 10 for number in range(1, 6)]))
    np.testing.assert_array_equal(some_images, images[:4])
    np.testing.assert_array_equal(some_labels, labels[:4])
    np.testing.assert_array_equal(test_images, COLOURED[::-1])
    np.testing.assert_array_equal(test_labels, LABELS[::-1])
    assert cifar10_source() == DataSource("CIFAR-10 from --data")


def test_a_folder_with_one_data_set_leaves_the_other_made_up(data):
    write(data, MNIST)

    assert mnist_source().missing is None
    assert cifar10_source().words == "synthetic, seeded, of CIFAR-10's shape"
    assert cifar10("test", count=5)[0].shape == (5, 32, 32, 3)


def test_a_folder_without_a_data_set_is_told_with_the_files_that_were_looked_for(data):
    assert mnist_source() == DataSource(
        "synthetic, seeded, of MNIST's shape",
        "MNIST's files (train-images-idx3-ubyte, train-labels-idx1-ubyte, t10k-images-idx3-ubyte, "
        "t10k-labels-idx1-ubyte; plain or .gz, there or in MNIST/raw/)",
    )
    assert cifar10_source() == DataSource(
        "synthetic, seeded, of CIFAR-10's shape",
        "CIFAR-10's files (cifar-10-python.tar.gz; data_batch_1 to 5 and test_batch in cifar-10-batches-py/; or the "
        "same with .bin in cifar-10-batches-bin/)",
    )


@pytest.mark.usefixtures("without_folder")
def test_without_a_folder_nothing_is_missing():
    assert mnist_source() == DataSource("synthetic, seeded, of MNIST's shape")
    assert cifar10_source() == DataSource("synthetic, seeded, of CIFAR-10's shape")


class Runs:
    """What a hostile pickle makes the usual reader call."""

    def __init__(self, command: str) -> None:
        self.command = command

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return os.system, (self.command,)


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_a_pickle_that_would_run_code_is_refused_by_the_name_of_what_it_asks_for(data, tmp_path, protocol):
    hostile = pickle.dumps({b"data": Runs(f"touch {tmp_path}/ran"), b"labels": []}, protocol)
    write(data / "cifar-10-batches-py", {**PICKLED, "data_batch_1": hostile})

    with pytest.raises(DataError, match=r"^data_batch_1 asks to run posix\.system, .*, and was not read further"):
        cifar10("train")

    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize("protocol", [2, 3, 4])
def test_a_batch_that_python_3_has_pickled_is_read(data, protocol):
    batch = {b"data": in_planes(COLOURED), b"labels": LABELS.tolist()}
    write(data, {**PICKLED, "test_batch": pickle.dumps(batch, protocol)})

    images, labels = cifar10("test")

    np.testing.assert_array_equal(images, COLOURED)
    np.testing.assert_array_equal(labels, LABELS)


def test_a_batch_that_is_stored_by_columns_is_read(data):
    write(data, {**PICKLED, "test_batch": pickled_batch(COLOURED, LABELS, by_columns=True)})

    np.testing.assert_array_equal(cifar10("test")[0], COLOURED)


PLANES = array(in_planes(COLOURED))
WHOLE_ARCHIVE, ARCHIVE = archive(PICKLED), "cifar-10-python.tar.gz"
IMAGE_FILE, LABEL_FILE, COMPRESSED = "train-images-idx3-ubyte", "train-labels-idx1-ubyte", "t10k-labels-idx1-ubyte"


def entries(data: bytes = PLANES, labels: Iterable[int] = LABELS) -> bytes:
    return pickled({b"data": data, b"labels": numbers(labels)})


BROKEN = {
    mnist: {
        "not idx": {IMAGE_FILE: MNIST[LABEL_FILE] + bytes(16)},
        "no header": {LABEL_FILE: b"\0\0\10"},
        "truncated": {IMAGE_FILE: MNIST[IMAGE_FILE][:-1]},
        "rows that no memory holds": {LABEL_FILE: b"\0\0\10\1\xff\xff\xff\xff\1\2\3"},
        "other pixels": {IMAGE_FILE: idx(np.zeros((3, 32, 32), np.uint8), 2051)},
        "no rows": {IMAGE_FILE: idx(IMAGES[:0], 2051)},
        "a label too large": {LABEL_FILE: idx(np.array([9, 10, 11], np.uint8), 2049)},
        "of two downloads": {LABEL_FILE: idx(LABELS[:2], 2049)},
    },
    cifar10: {
        "empty": {"test_batch.bin": b""},
        "truncated": {"test_batch.bin": CIFAR10["test_batch.bin"][:-1]},
        "a label too large": {"test_batch.bin": CIFAR10["test_batch.bin"][:3073] + b"\x0a" + bytes(3072)},
        "pickled, empty": {"test_batch": b""},
        "pickled, truncated": {"test_batch": PICKLED["test_batch"][:-40]},
        "binary in place of pickled": {"test_batch": CIFAR10["test_batch.bin"]},
        "pickled, another value": {"test_batch": b"\x80\2K\1."},
        "pickled, another data set": {"test_batch": pickled({b"data": PLANES, b"fine_labels": numbers(LABELS)})},
        "pickled, no array": {"test_batch": entries(numbers([1]), [1])},
        "pickled, other pixels": {"test_batch": entries(array(IMAGES.reshape(3, -1)))},
        "pickled, no rows": {"test_batch": entries(array(in_planes(COLOURED)[:0]), [])},
        "pickled, floats": {"test_batch": entries(array(in_planes(COLOURED), dtype=b"f4"))},
        "pickled, a label too large": {"test_batch": entries(labels=[9, 10, 0])},
        "pickled, labels of another kind": {"test_batch": pickled({b"data": PLANES, b"labels": text(b"123")})},
        "pickled, a label too few": {"test_batch": entries(labels=[1, 2])},
        "pickled, room for more than there is": {"test_batch": b"\x80\5\x96" + (2**40).to_bytes(8, "little") + b"."},
        "no archive": {ARCHIVE: b"nothing"},
        "an archive that is truncated": {ARCHIVE: WHOLE_ARCHIVE[: len(WHOLE_ARCHIVE) // 2]},
        "an archive without the batch": {ARCHIVE: archive({"data_batch_1": b""})},
        "an archive that is too large": {ARCHIVE: archive({"test_batch": bytes(LARGEST_BATCH + 1)})},
    },
}


def test_a_broken_file_is_an_error_whose_golden_text_says_what_is_there():
    said = {}
    for read, files_of in BROKEN.items():
        for rule, files in files_of.items():
            with folder_with({**(MNIST if read is mnist else {}), **files}), pytest.raises(DataError) as error:
                read("train" if read is mnist else "test")
            # What Python says itself may change with it.
            words = re.sub(r"whole pickle \(.*?\);", "whole pickle (…);", str(error.value))
            said[f"{read.__name__}: {rule}"] = re.sub(r"cannot be read: [^;]*;", "cannot be read: …;", words)

    check_golden_scenes("data-sets", said)


def test_a_missing_or_unreadable_file_is_an_error_and_not_made_up_data_and_another_part_is_read(data):
    write(data, {IMAGE_FILE: MNIST[IMAGE_FILE]})

    with pytest.raises(DataError, match=r"^train-labels-idx1-ubyte\.gz is missing in the --data folder.*; add it$"):
        mnist("train")
    with pytest.raises(DataError, match=r"^t10k-images-idx3-ubyte\.gz is missing"):
        mnist("test")
    write(data, {**MNIST, IMAGE_FILE: b""})
    assert mnist("test")[0].shape == (3, 28, 28)
    (data / COMPRESSED).rename(data / f"{COMPRESSED}.gz")
    with pytest.raises(DataError, match=r"^t10k-labels-idx1-ubyte\.gz cannot be read: Not a gzipped file"):
        mnist("test")
    (data / "test_batch.bin").mkdir()
    with pytest.raises(DataError, match=r"^test_batch\.bin cannot be read: Is a directory"):
        cifar10("test")


def test_an_archive_without_a_batch_has_the_others(data):
    write(data, {"cifar-10-python.tar.gz": archive({"data_batch_1": PICKLED["data_batch_1"]})})

    assert len(cifar10("train", count=3)[0]) == 3
    with pytest.raises(DataError, match=r"^cifar-10-python\.tar\.gz holds no data_batch_2; download it again$"):
        cifar10("train")


def test_files_that_are_unpacked_come_before_their_archive(data):
    write(data, {"cifar-10-python.tar.gz": b"nothing"})
    write(data / "cifar-10-batches-py", PICKLED)

    assert len(cifar10("test")[0]) == 3


def test_a_data_set_with_fewer_rows_than_asked_for_is_an_error(data):
    write(data, {**MNIST, **CIFAR10})

    with pytest.raises(DataError, match=r"^train-images-idx3-ubyte has 3 rows, 4 are needed; get the whole data set$"):
        mnist("train", count=4)
    with pytest.raises(DataError, match=r"^CIFAR-10's 'train' part has 15 rows, 16 are needed; get the whole"):
        cifar10("train", count=16)


@st.composite
def damaged(draw, files: dict[str, bytes]) -> bytes:
    """Any bytes, or one of the files cut, lengthened or with some bytes changed; often compressed, whole or cut."""
    content = bytearray(draw(st.one_of(st.binary(max_size=100), st.sampled_from(sorted(files.values())))))
    for place, value in draw(st.lists(st.tuples(st.integers(0, 20), st.integers(0, 255)), max_size=3)):
        content[place : place + 1] = bytes([value])
    if draw(st.booleans()):
        content = bytearray(gzip.compress(bytes(content), mtime=0))
    if draw(st.booleans()):
        content[draw(st.integers(0, max(0, len(content) - 1))) :] = b""
    return bytes(content + draw(st.binary(max_size=2)))


def assert_data_or_error(read: Callable[[], tuple[np.ndarray, np.ndarray]], shape: tuple[int, ...], name: str) -> None:
    """The arrays are as promised, or the error names the file."""
    message = ""
    try:
        images, labels = read()
    except DataError as error:
        message = str(error)
    if message:
        assert name in message
        return
    assert (images.shape, images.dtype) == ((len(labels), *shape), np.uint8)
    assert (labels.ndim, labels.dtype) == (1, np.uint8)
    assert len(labels) > 0
    assert labels.max() <= 9


ANY_FILE = st.one_of(
    st.tuples(st.just(MNIST), st.sampled_from(sorted(MNIST)), st.sampled_from(["", ".gz"]), damaged(MNIST)),
    st.tuples(st.just(CIFAR10), st.sampled_from(sorted(CIFAR10)), st.just(""), damaged(CIFAR10)),
    st.tuples(st.just(PICKLED), st.just("test_batch"), st.just(""), damaged(PICKLED)),
)
COMPRESSED_LABELS = gzip.compress(MNIST["train-labels-idx1-ubyte"])


@given(ANY_FILE)
@example((MNIST, "train-labels-idx1-ubyte", ".gz", COMPRESSED_LABELS))
@example((CIFAR10, "test_batch.bin", "", CIFAR10["data_batch_1.bin"]))
@example((PICKLED, "test_batch", "", PICKLED["data_batch_1"]))
@settings(max_examples=100)
def test_whatever_a_file_holds_is_data_of_the_promised_shape_or_an_error(file):
    data_set, name, ending, content = file
    part = next((part for part, names in MNIST_FILES.items() if name in names), "train")
    part = "test" if name.startswith("test_batch") else part
    read, shape = (mnist, (28, 28)) if data_set is MNIST else (cifar10, (32, 32, 3))
    others = {other: whole for other, whole in data_set.items() if other != name}
    with folder_with({**others, name + ending: content}):
        assert_data_or_error(lambda: read(part), shape, name)


READERS = {"mnist": (mnist, (28, 28), 60_000), "cifar10": (cifar10, (32, 32, 3), 50_000)}
every_reader = pytest.mark.parametrize(("read", "shape", "rows"), READERS.values(), ids=READERS)


@pytest.fixture
def without_folder(monkeypatch):
    monkeypatch.delenv(DATA_VARIABLE, raising=False)


@every_reader
@pytest.mark.usefixtures("without_folder")
def test_without_a_folder_the_data_are_made_up_in_the_data_sets_shape_and_differ(read, shape, rows):
    train, train_labels = read("train")
    test, test_labels = read("test")

    assert ((train.shape, train_labels.shape), (test.shape, test_labels.shape)) == (
        ((rows, *shape), (rows,)),
        ((10_000, *shape), (10_000,)),
    )
    assert {array.dtype for array in (train, train_labels, test, test_labels)} == {np.dtype(np.uint8)}
    assert np.bincount(train_labels).min() > 0.08 * rows
    assert len(np.bincount(train_labels)) == len(np.bincount(test_labels)) == 10
    some = np.concatenate([train[:3000], test[:3000]]).reshape(6000, -1)
    assert len(np.unique(some, axis=0)) == 6000


@every_reader
@pytest.mark.usefixtures("without_folder")
@pytest.mark.parametrize("count", [0, 1, 1024, 1025])
def test_fewer_made_up_rows_are_the_first_of_more(read, shape, rows, count):
    images, labels = read("train", count=count)
    more_images, more_labels = read("train", count=3000)

    assert images.shape == (count, *shape)
    np.testing.assert_array_equal(images, more_images[:count])
    np.testing.assert_array_equal(labels, more_labels[:count])


@every_reader
@pytest.mark.usefixtures("without_folder")
def test_a_model_that_learns_the_made_up_classes_knows_them_in_the_test_part(read, shape, rows):
    images, labels = read("train", count=500)
    test_images, test_labels = read("test", count=200)

    means = np.stack([images[labels == label].mean(0, dtype=float).ravel() for label in range(10)])
    distances = ((test_images.reshape(200, 1, -1) - means) ** 2).sum(2)

    assert (distances.argmin(1) == test_labels).mean() > 0.9


@pytest.mark.usefixtures("without_folder")
def test_made_up_data_are_the_same_on_every_machine():
    images, labels = mnist("train", count=8)

    assert labels.tolist() == [2, 7, 5, 1, 5, 6, 8, 4]
    assert images[7, 27, ::4].tolist() == [123, 160, 150, 222, 206, 190, 52]
