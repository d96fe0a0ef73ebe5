"""Data sets: MNIST and CIFAR-10 from the folder of `run --data DIR`, else seeded data of the same shapes.

A folder without any file of a data set leaves the made-up data in use, and `mnist_source()` says so. A folder
with some of the files, or with broken ones, is a `DataError`: real and made-up data are never mixed.
"""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from harness import DataSource, data_folder

Part = Literal["train", "test"]
Images = NDArray[np.uint8]
Labels = NDArray[np.uint8]

CLASSES = 10

MNIST_SHAPE = (28, 28)
MNIST_ROWS = {"train": 60_000, "test": 10_000}
MNIST_FILES = {
    "train": ("train-images-idx3-ubyte", "train-labels-idx1-ubyte"),
    "test": ("t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"),
}
IDX_IMAGES = 0x803
IDX_LABELS = 0x801
"""LeCun, Cortes & Burges, The MNIST database: the idx format; unsigned bytes in 3 dimensions and in 1."""

CIFAR10_SHAPE = (32, 32, 3)
CIFAR10_ROWS = {"train": 50_000, "test": 10_000}
CIFAR10_FILES = {
    "train": tuple(f"data_batch_{number}.bin" for number in range(1, 6)),
    "test": ("test_batch.bin",),
}
CIFAR10_FOLDERS = ("cifar-10-batches-bin", ".")
CIFAR10_ROW_BYTES = 1 + 3 * 32 * 32
"""Krizhevsky, The CIFAR-10 dataset, binary version: a label, then the red, green and blue planes."""

CONTRAST = 128
"""A class's pattern and the noise take half of a byte's range each, so that their sum fits."""

BLOCK = 4
"""Pixels of a pattern's squares: coarse, so that a convolution and a dense layer both see them."""

NOISE_ROWS = 1024
"""Rows of noise drawn; later rows take them again, each round shifted by a byte: drawing all of it
takes several times as long."""

_AGAIN = "download it again"


class DataError(Exception):
    """A file of a data set is not what its format promises; the message says which, what is there and what to do."""


def mnist(part: Part, count: int | None = None) -> tuple[Images, Labels]:
    """Handwritten digits, or made-up data of their shape.

    Args:
      part: "train" or "test".
      count: Rows wanted, the first ones; None for all.
    Returns:
      (images (n, 28, 28), labels (n,)), both uint8, labels 0 to 9.
    Raises:
      DataError: Files in the data folder that are missing beside others, broken, or too short for `count`.
    """
    folder = data_folder()
    if folder is None or not _has_mnist(folder):
        return _made_up(part, MNIST_ROWS[part] if count is None else count, MNIST_SHAPE)
    images_name, labels_name = MNIST_FILES[part]
    images_file, labels_file = _idx_file(folder, images_name), _idx_file(folder, labels_name)
    images = _read_idx(images_file, IDX_IMAGES, MNIST_SHAPE)
    labels = _read_idx(labels_file, IDX_LABELS, ())
    if len(images) != len(labels):
        raise DataError(
            f"{images_file.name} has {len(images)} images and {labels_file.name} {len(labels)} labels; "
            f"they must be of one download: get both again"
        )
    _check_labels(labels_file, labels)
    return _first(images, labels, count, images_file.name)


def mnist_source() -> DataSource:
    """Which data `mnist` gives."""
    folder = data_folder()
    if folder is not None and _has_mnist(folder):
        return DataSource("MNIST from --data")
    return _synthetic("MNIST", MNIST_FILES, "plain or .gz")


def cifar10(part: Part, count: int | None = None) -> tuple[Images, Labels]:
    """Small colour photographs, or made-up data of their shape.

    Args:
      part: "train" or "test".
      count: Rows wanted, the first ones; None for all.
    Returns:
      (images (n, 32, 32, 3), labels (n,)), both uint8, labels 0 to 9.
    Raises:
      DataError: Files in the data folder that are missing beside others, broken, or too short for `count`.
    """
    folder = _cifar10_folder()
    if folder is None:
        return _made_up(part, CIFAR10_ROWS[part] if count is None else count, CIFAR10_SHAPE)
    images, labels, rows = [], [], 0
    for name in CIFAR10_FILES[part]:
        if count is not None and rows >= count:
            break
        batch_images, batch_labels = _read_cifar10(folder / name)
        images.append(batch_images)
        labels.append(batch_labels)
        rows += len(batch_labels)
    return _first(np.concatenate(images), np.concatenate(labels), count, f"CIFAR-10's '{part}' part")


def cifar10_source() -> DataSource:
    """Which data `cifar10` gives."""
    if _cifar10_folder() is not None:
        return DataSource("CIFAR-10 from --data")
    return _synthetic("CIFAR-10", CIFAR10_FILES, f"there or in {CIFAR10_FOLDERS[0]}/")


def _synthetic(name: str, files: Mapping[str, tuple[str, ...]], where: str) -> DataSource:
    """Made-up data in place of a data set, and what a folder that was given would have to hold."""
    names = ", ".join(file for several in files.values() for file in several)
    missing = None if data_folder() is None else f"{name}'s files ({names}; {where})"
    return DataSource(f"synthetic, seeded, of {name}'s shape", missing)


def _has_mnist(folder: Path) -> bool:
    names = [name for pair in MNIST_FILES.values() for name in pair]
    return any((folder / f"{name}{ending}").exists() for name in names for ending in ("", ".gz"))


def _cifar10_folder() -> Path | None:
    """The folder that holds at least one of CIFAR-10's files, or None."""
    folder = data_folder()
    if folder is None:
        return None
    names = [name for several in CIFAR10_FILES.values() for name in several]
    folders = (folder / inner for inner in CIFAR10_FOLDERS)
    return next((one for one in folders if any((one / name).exists() for name in names)), None)


def _idx_file(folder: Path, name: str) -> Path:
    """The file as it is or compressed; the first one that exists."""
    files = (folder / name, folder / f"{name}.gz")
    return next((file for file in files if file.exists()), files[1])


def _read_idx(file: Path, magic: int, entry: tuple[int, ...]) -> NDArray[np.uint8]:
    """An idx file of unsigned bytes with entries of one shape, (n, *entry)."""
    content = _content(file)
    header = 4 * (2 + len(entry))
    if len(content) < header:
        raise DataError(f"{file.name} has {len(content)} bytes, its header alone {header}; {_AGAIN}")
    found, rows, *shape = np.frombuffer(content, ">u4", count=header // 4).tolist()
    if found != magic:
        raise DataError(
            f"{file.name} begins with the number {found:#x}, an idx file of this kind with {magic:#x}; {_AGAIN}"
        )
    if tuple(shape) != entry:
        raise DataError(f"{file.name} holds images of {_by(shape)} pixels, MNIST's are of {_by(entry)}; {_AGAIN}")
    expected = header + rows * int(np.prod(entry, dtype=np.int64))
    if len(content) != expected:
        raise DataError(f"{file.name} has {len(content)} bytes, {rows} rows would be {expected}; {_AGAIN}")
    if rows == 0:
        raise DataError(f"{file.name} says that it holds 0 rows, at least 1 is needed; {_AGAIN}")
    return np.frombuffer(content, np.uint8, offset=header).reshape(rows, *entry).copy()


def _read_cifar10(file: Path) -> tuple[Images, Labels]:
    """One batch of the binary version: images (n, 32, 32, 3) and labels (n,)."""
    content = _content(file)
    if not content or len(content) % CIFAR10_ROW_BYTES:
        raise DataError(
            f"{file.name} has {len(content)} bytes, CIFAR-10's binary version a multiple of {CIFAR10_ROW_BYTES}; "
            f"{_AGAIN}"
        )
    rows = np.frombuffer(content, np.uint8).reshape(-1, CIFAR10_ROW_BYTES)
    labels = rows[:, 0].copy()
    _check_labels(file, labels)
    height, width, channels = CIFAR10_SHAPE
    return np.ascontiguousarray(rows[:, 1:].reshape(-1, channels, height, width).transpose(0, 2, 3, 1)), labels


def _content(file: Path) -> bytes:
    """The file's bytes, decompressed where its name ends in .gz."""
    try:
        if file.suffix == ".gz":
            with gzip.open(file) as stream:
                return stream.read()
        return file.read_bytes()
    except FileNotFoundError:
        raise DataError(
            f"{file.name} is missing in the --data folder, which has others of its data set; add it"
        ) from None
    except (OSError, EOFError, zlib.error) as error:
        what = getattr(error, "strerror", None) or str(error)
        raise DataError(f"{file.name} cannot be read: {what}; a whole, readable file is needed: {_AGAIN}") from error


def _check_labels(file: Path, labels: Labels) -> None:
    if labels.max() >= CLASSES:
        row = int((labels >= CLASSES).argmax())
        raise DataError(f"{file.name} has label {labels[row]} in row {row}, labels are 0 to {CLASSES - 1}; {_AGAIN}")


def _first(images: Images, labels: Labels, count: int | None, name: str) -> tuple[Images, Labels]:
    if count is not None and count > len(labels):
        raise DataError(f"{name} has {len(labels)} rows, {count} are needed; get the whole data set")
    return images[:count], labels[:count]


def _made_up(part: Part, rows: int, shape: tuple[int, ...]) -> tuple[Images, Labels]:
    """A coarse pattern by class plus noise: fewer rows are the first of more, and a model can learn the classes.

    Bit generators give the same numbers in every version of NumPy, its distributions do not promise to.
    """
    size = int(np.prod(shape))
    seed = (size, ("train", "test").index(part))
    labels = (_random_words((0, *seed), rows) % CLASSES).astype(np.uint8)
    patterns = _patterns(shape).reshape(CLASSES, size)
    rounds = max(1, -(-rows // NOISE_ROWS))
    noise = _random_bytes((1, *seed), min(rows, NOISE_ROWS) * size + rounds - 1) % CONTRAST
    images = np.empty((rows, size), np.uint8)
    for number in range(rounds):
        part_of = slice(number * NOISE_ROWS, min(rows, (number + 1) * NOISE_ROWS))
        target = images[part_of]
        np.take(patterns, labels[part_of], axis=0, out=target)
        target += noise[number : number + target.size].reshape(target.shape)
    return images.reshape(rows, *shape), labels


def _patterns(shape: tuple[int, ...]) -> NDArray[np.uint8]:
    """Random squares, one pattern a class, the same in both parts: (10, *shape)."""
    height, width, *channels = shape
    coarse = (CLASSES, height // BLOCK, width // BLOCK, *channels)
    squares = _random_bytes((2, *shape), int(np.prod(coarse))).reshape(coarse) % CONTRAST
    return squares.repeat(BLOCK, axis=1).repeat(BLOCK, axis=2)


def _random_words(seed: tuple[int, ...], count: int) -> NDArray[np.uint64]:
    return np.asarray(np.random.SFC64(seed).random_raw(count))


def _random_bytes(seed: tuple[int, ...], count: int) -> NDArray[np.uint8]:
    return _random_words(seed, -(-count // 8)).astype("<u8").view(np.uint8)[:count]


def _by(shape: tuple[int, ...] | list[int]) -> str:
    return " x ".join(str(side) for side in shape)
