"""Data sets: MNIST and CIFAR-10 from the folder of `run --data DIR`, else seeded data of the same shapes.

The folder has torchvision's layout, or contains the files as their authors distribute them. If it has no file of a data
set, the suites use made-up data, and `mnist_source()` reports this. A folder with only some of the files, or with
broken ones, raises a `DataError`: real and made-up data are never mixed.
"""

from __future__ import annotations

import gzip
import tarfile
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from jaxmeter import DataSource, data_folder
from jaxmeter.suites.image_files import (
    AGAIN,
    CIFAR10_SHAPE,
    MNIST_SHAPE,
    DataError,
    Images,
    Labels,
    Part,
    read_binary_batch,
    read_idx_images,
    read_idx_labels,
    read_pickled_batch,
)
from jaxmeter.suites.made_up_images import make_up

MNIST_ROWS = {"train": 60_000, "test": 10_000}
MNIST_FILES = {
    "train": ("train-images-idx3-ubyte", "train-labels-idx1-ubyte"),
    "test": ("t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"),
}
MNIST_FOLDERS = (".", "MNIST/raw")

CIFAR10_ROWS = {"train": 50_000, "test": 10_000}
_BATCHES = {"train": tuple(f"data_batch_{number}" for number in range(1, 6)), "test": ("test_batch",)}

LARGEST_BATCH = 2**26
"""Largest accepted batch in an archive, in bytes: twice the size of a CIFAR-10 batch."""


@dataclass(frozen=True)
class Cifar10Files:
    """One of the forms in which CIFAR-10 is distributed.

    Args:
      folders: Folders of the data folder in which the files can be.
      archive: A file next to these folders that contains the files, or None.
      ending: End of a batch's name.
      read: (name, bytes) of a batch -> images and labels.
    """

    folders: tuple[str, ...]
    archive: str | None
    ending: str
    read: Callable[[str, bytes], tuple[Images, Labels]]

    def list_names(self, part: Part) -> list[str]:
        """Return the file names of a part, in order."""
        return [name + self.ending for name in _BATCHES[part]]


CIFAR10_FORMS = (
    Cifar10Files(("cifar-10-batches-bin", "."), None, ".bin", read_binary_batch),
    Cifar10Files(("cifar-10-batches-py", "."), "cifar-10-python.tar.gz", "", read_pickled_batch),
)


def mnist(part: Part, count: int | None = None) -> tuple[Images, Labels]:
    """Return handwritten digits, or made-up data of their shape.

    Args:
      part: "train" or "test".
      count: Number of rows, counted from the first; None for all.
    Returns:
      (images (n, 28, 28), labels (n,)), both uint8, labels 0 to 9.
    Raises:
      DataError: Some of the data folder's files are missing, broken, or too short for `count`.
    """
    folder = _mnist_folder()
    if folder is None:
        return make_up(part, MNIST_ROWS[part] if count is None else count, MNIST_SHAPE)
    images_file, labels_file = (_idx_file(folder, name) for name in MNIST_FILES[part])
    images = read_idx_images(images_file.name, _content(images_file))
    labels = read_idx_labels(labels_file.name, _content(labels_file))
    if len(images) != len(labels):
        raise DataError(
            f"{images_file.name} has {len(images)} images and {labels_file.name} {len(labels)} labels; "
            f"they must be of one download: get both again"
        )
    return _first(images, labels, count, images_file.name)


def mnist_source() -> DataSource:
    """Return the source of the data that `mnist` returns."""
    if _mnist_folder() is not None:
        return DataSource("MNIST from --data")
    names = [name for part in MNIST_FILES.values() for name in part]
    return _synthetic("MNIST", f"{', '.join(names)}; plain or .gz, there or in MNIST/raw/")


def cifar10(part: Part, count: int | None = None) -> tuple[Images, Labels]:
    """Return small colour photographs, or made-up data of their shape.

    Args:
      part: "train" or "test".
      count: Number of rows, counted from the first; None for all.
    Returns:
      (images (n, 32, 32, 3), labels (n,)), both uint8, labels 0 to 9.
    Raises:
      DataError: Some of the data folder's files are missing, broken, or too short for `count`.
    """
    located = _find_cifar10()
    if located is None:
        return make_up(part, CIFAR10_ROWS[part] if count is None else count, CIFAR10_SHAPE)
    form, place = located
    names = form.list_names(part)
    archived = None if place.is_dir() else _unpack(place, names)
    images, labels, rows = [], [], 0
    for name in names:
        if count is not None and rows >= count:
            break
        content = _content(place / name) if archived is None else _member(archived, name, place)
        batch_images, batch_labels = form.read(name, content)
        images.append(batch_images)
        labels.append(batch_labels)
        rows += len(batch_labels)
    return _first(np.concatenate(images), np.concatenate(labels), count, f"CIFAR-10's '{part}' part")


def cifar10_source() -> DataSource:
    """Return the source of the data that `cifar10` returns."""
    if _find_cifar10() is not None:
        return DataSource("CIFAR-10 from --data")
    pickled = CIFAR10_FORMS[1]
    return _synthetic(
        "CIFAR-10",
        f"{pickled.archive}; data_batch_1 to 5 and test_batch in {pickled.folders[0]}/; or the same with .bin in "
        f"{CIFAR10_FORMS[0].folders[0]}/",
    )


def _synthetic(name: str, files: str) -> DataSource:
    """Return the source of made-up data, and which files the given data folder lacks."""
    missing = None if data_folder() is None else f"{name}'s files ({files})"
    return DataSource(f"synthetic, seeded, of {name}'s shape", missing)


def _mnist_folder() -> Path | None:
    """Return the folder that contains at least one of MNIST's files, or None."""
    folder = data_folder()
    if folder is None:
        return None
    names = [name + ending for part in MNIST_FILES.values() for name in part for ending in ("", ".gz")]
    folders = (folder / inner for inner in MNIST_FOLDERS)
    return next((path for path in folders if any((path / name).exists() for name in names)), None)


def _find_cifar10() -> tuple[Cifar10Files, Path] | None:
    """Return the form that exists, with the folder that contains at least one of its files, or with its archive."""
    folder = data_folder()
    if folder is None:
        return None
    for form in CIFAR10_FORMS:
        names = [*form.list_names("train"), *form.list_names("test")]
        for place in (folder / inner for inner in form.folders):
            if any((place / name).exists() for name in names):
                return form, place
    return next(((form, folder / form.archive) for form in CIFAR10_FORMS if _is_there(folder, form.archive)), None)


def _is_there(folder: Path, name: str | None) -> bool:
    return name is not None and (folder / name).exists()


def _idx_file(folder: Path, name: str) -> Path:
    """Return the plain or the compressed file, whichever exists first."""
    files = (folder / name, folder / f"{name}.gz")
    return next((file for file in files if file.exists()), files[1])


def _content(file: Path) -> bytes:
    """Return the file's bytes, decompressed if its name ends in .gz."""
    try:
        if file.suffix == ".gz":
            with gzip.open(file) as stream:
                return stream.read()
        return file.read_bytes()
    except FileNotFoundError:
        raise DataError(
            f"{file.name} is missing in the --data folder, which has other files of its data set; add it"
        ) from None
    except (OSError, EOFError, zlib.error) as error:
        raise _unreadable(file, error) from error


def _unpack(archive: Path, names: list[str]) -> Mapping[str, bytes]:
    """Return the contents of the named files, from any folder of the archive; nothing is written to disk."""
    contents = {}
    try:
        with tarfile.open(archive, "r:gz") as members:
            for member in members:
                name = Path(member.name).name
                if name not in names or not member.isfile():
                    continue
                if member.size > LARGEST_BATCH:
                    raise DataError(f"{archive.name} has {name} of {member.size} bytes, too many for a batch; {AGAIN}")
                stream = members.extractfile(member)
                contents[name] = b"" if stream is None else stream.read()
                if len(contents) == len(names):
                    break
    except (OSError, EOFError, zlib.error, tarfile.TarError) as error:
        raise _unreadable(archive, error) from error
    return contents


def _member(archived: Mapping[str, bytes], name: str, archive: Path) -> bytes:
    if name not in archived:
        raise DataError(f"{archive.name} holds no {name}; {AGAIN}")
    return archived[name]


def _unreadable(file: Path, error: Exception) -> DataError:
    what = getattr(error, "strerror", None) or str(error)
    return DataError(f"{file.name} cannot be read: {what}; a whole, readable file is needed: {AGAIN}")


def _first(images: Images, labels: Labels, count: int | None, name: str) -> tuple[Images, Labels]:
    if count is not None and count > len(labels):
        raise DataError(f"{name} has {len(labels)} rows, {count} are needed; get the whole data set")
    return images[:count], labels[:count]
