"""Seeded images in place of a missing data set: images have its shape, and a model can learn their classes."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from jaxmeter.suites.image_files import CLASSES, Images, Labels, Part

CONTRAST = 128
"""The pattern of a class and the noise each use half of the range of a byte, so their sum fits into a byte."""

BLOCK = 4
"""Side of a pattern's squares in pixels: coarse, so a convolution and a dense layer can both learn the pattern."""

NOISE_ROWS = 1024
"""Rows of noise that are drawn. Later rows reuse them, shifted by one more byte each time.
Drawing noise for all rows takes several times as long."""


def make_up(part: Part, rows: int, shape: tuple[int, ...]) -> tuple[Images, Labels]:
    """Return images, each the coarse pattern of its class plus noise, and labels.

    A call with fewer rows returns the first rows of a call with more. Bit generators return the same numbers in every
    version of NumPy; NumPy's distributions do not promise this.
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
    """Return one pattern of random squares for each class, the same in both parts: (10, *shape)."""
    height, width, *channels = shape
    coarse = (CLASSES, height // BLOCK, width // BLOCK, *channels)
    squares = _random_bytes((2, *shape), int(np.prod(coarse))).reshape(coarse) % CONTRAST
    return squares.repeat(BLOCK, axis=1).repeat(BLOCK, axis=2)


def _random_words(seed: tuple[int, ...], count: int) -> NDArray[np.uint64]:
    return np.asarray(np.random.SFC64(seed).random_raw(count))


def _random_bytes(seed: tuple[int, ...], count: int) -> NDArray[np.uint8]:
    return _random_words(seed, -(-count // 8)).astype("<u8").view(np.uint8)[:count]
