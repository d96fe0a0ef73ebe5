"""Files of labelled images in MNIST's and CIFAR-10's formats: bytes to arrays, or an error with a remedy."""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import NDArray

from jaxmeter.suites.pickled_batch import PickleError, read_pickle

Part = Literal["train", "test"]
Images = NDArray[np.uint8]
Labels = NDArray[np.uint8]

CLASSES = 10
MNIST_SHAPE = (28, 28)
CIFAR10_SHAPE = (32, 32, 3)

IDX_IMAGES = 0x803
IDX_LABELS = 0x801
"""Magic numbers of the idx format for unsigned bytes, in 3 dimensions and in 1.

Source: LeCun, Cortes & Burges, The MNIST database."""

CIFAR10_PIXELS = 3 * 32 * 32
CIFAR10_ROW_BYTES = 1 + CIFAR10_PIXELS
"""A row of CIFAR-10's binary version: a label, then the red, green and blue planes. The Python version has the same
planes, one row per image, and the labels as a list. Source: Krizhevsky, The CIFAR-10 dataset."""

AGAIN = "download it again"


class DataError(Exception):
    """A data set's file that violates its format; the message names the file, its content and what to do."""


def read_idx_images(name: str, content: bytes) -> Images:
    """Return images of MNIST's shape, (n, 28, 28)."""
    return _read_idx(name, content, IDX_IMAGES, MNIST_SHAPE)


def read_idx_labels(name: str, content: bytes) -> Labels:
    """Return labels 0 to 9, (n,)."""
    labels = _read_idx(name, content, IDX_LABELS, ())
    _check_labels(name, labels)
    return labels


def read_binary_batch(name: str, content: bytes) -> tuple[Images, Labels]:
    """Return a batch of CIFAR-10's binary version: images (n, 32, 32, 3) and labels (n,)."""
    if not content or len(content) % CIFAR10_ROW_BYTES:
        raise DataError(
            f"{name} has {len(content)} bytes, but CIFAR-10's rows have {CIFAR10_ROW_BYTES} bytes each; {AGAIN}"
        )
    rows = np.frombuffer(content, np.uint8).reshape(-1, CIFAR10_ROW_BYTES)
    labels = rows[:, 0].copy()
    _check_labels(name, labels)
    return _with_channels_last(rows[:, 1:]), labels


def read_pickled_batch(name: str, content: bytes) -> tuple[Images, Labels]:
    """Return a batch of CIFAR-10's version for Python, a pickled dict: images (n, 32, 32, 3) and labels (n,).

    No code of the file is run. A file that requests any function or class other than those of a plain array is
    rejected, and the error names the request.
    """
    try:
        batch = read_pickle(content)
    except PickleError as error:
        raise DataError(f"{name} {error}; {AGAIN}") from error
    if not isinstance(batch, dict) or not {b"data", b"labels"} <= set(batch):
        entries = f"the entries {_list_keys(batch)}" if isinstance(batch, dict) else f"a {type(batch).__name__}"
        raise DataError(f"{name} has {entries}, but a CIFAR-10 batch has 'data' and 'labels'; download CIFAR-10")
    planes, labels = batch[b"data"], batch[b"labels"]
    if not isinstance(planes, np.ndarray) or planes.shape[1:] != (CIFAR10_PIXELS,) or len(planes) == 0:
        form = f"of shape {planes.shape}" if isinstance(planes, np.ndarray) else f"in a {type(planes).__name__}"
        raise DataError(f"{name} has images {form}, but CIFAR-10's are of shape (rows, {CIFAR10_PIXELS}); {AGAIN}")
    if not isinstance(labels, list) or not all(type(label) is int and 0 <= label < CLASSES for label in labels):
        raise DataError(f"{name} has labels that are not a list of integers from 0 to {CLASSES - 1}; {AGAIN}")
    if len(labels) != len(planes):
        raise DataError(f"{name} has {len(planes)} images and {len(labels)} labels; {AGAIN}")
    return _with_channels_last(planes), np.array(labels, np.uint8)


def _read_idx(name: str, content: bytes, magic: int, entry: tuple[int, ...]) -> NDArray[np.uint8]:
    """Return unsigned bytes with entries of one shape, (n, *entry)."""
    header = 4 * (2 + len(entry))
    if len(content) < header:
        raise DataError(f"{name} has {len(content)} bytes, but its header alone has {header}; {AGAIN}")
    first, rows, *shape = np.frombuffer(content, ">u4", count=header // 4).tolist()
    if first != magic:
        raise DataError(f"{name} begins with {first:#x}, but an idx file of this kind begins with {magic:#x}; {AGAIN}")
    if tuple(shape) != entry:
        raise DataError(f"{name} has images of {_by(shape)} pixels, but MNIST's have {_by(entry)}; {AGAIN}")
    expected = header + rows * int(np.prod(entry, dtype=np.int64))
    if len(content) != expected:
        raise DataError(f"{name} has {len(content)} bytes, but {rows} rows need {expected}; {AGAIN}")
    if rows == 0:
        raise DataError(f"{name} declares 0 rows, but at least 1 is needed; {AGAIN}")
    return np.frombuffer(content, np.uint8, offset=header).reshape(rows, *entry).copy()


def _with_channels_last(planes: NDArray[np.uint8]) -> Images:
    """Return planes (n, 3072) as images (n, 32, 32, 3)."""
    height, width, channels = CIFAR10_SHAPE
    return np.ascontiguousarray(planes.reshape(-1, channels, height, width).transpose(0, 2, 3, 1))


def _check_labels(name: str, labels: Labels) -> None:
    if labels.max() >= CLASSES:
        row = int((labels >= CLASSES).argmax())
        raise DataError(f"{name} has label {labels[row]} in row {row}, but labels are 0 to {CLASSES - 1}; {AGAIN}")


def _list_keys(batch: dict[object, object]) -> str:
    names = (key.decode("utf8", "replace") if isinstance(key, bytes) else str(key) for key in batch)
    return ", ".join(sorted(names)) or "none"


def _by(shape: tuple[int, ...] | list[int]) -> str:
    return " x ".join(str(side) for side in shape)
