"""Images as a loader hands them out: cropped, flipped and normalised at random, by two threads, in NumPy."""

import math
from collections import deque
from concurrent.futures import ThreadPoolExecutor

import numpy as np

SHARES, RATIOS = (0.8, 1.0), (0.9, 1.1)
"""Of a crop: its share of the image's area, and its width over its height. Notebook "JAX Speed Test"."""

TRIES = 10
"""Crops drawn until one lies within the image; after that the whole image is taken, as torchvision does."""

WORKERS, AHEAD = 2, 4
"""Of the loader, and the batches that it has ready or in work: two a worker, as PyTorch's by default."""


def draw_crop(generator, side):
    """(top, left, height, width) of a crop of a square image."""
    for _ in range(TRIES):
        area = side**2 * generator.uniform(*SHARES)
        ratio = math.exp(generator.uniform(*map(math.log, RATIOS)))
        width, height = round(math.sqrt(area * ratio)), round(math.sqrt(area / ratio))
        if width <= side and height <= side:
            return generator.integers(side - height + 1), generator.integers(side - width + 1), height, width
    return 0, 0, side, side


def between(length, side):
    """For each of `side` places along `length` pixels: the pixels on both sides, and the share of the second."""
    place = np.clip((np.arange(side) + 0.5) * (length / side) - 0.5, 0, length - 1)
    before = place.astype(int)
    return before, np.minimum(before + 1, length - 1), (place - before).astype(np.float32)


def resize(image, side):
    """Bilinear, (h, w, c) with h and w at most `side` -> (side, side, c) float32."""
    above, below, down = between(image.shape[0], side)
    left, right, across = between(image.shape[1], side)
    rows = image[above] + (image[below].astype(np.float32) - image[above]) * down[:, None, None]
    return rows[:, left] + (rows[:, right] - rows[:, left]) * across[:, None]


def augment(image, generator):
    """A crop in the image's own size, flipped or not, (side, side, c) -> the same in float32."""
    side = len(image)
    top, left, height, width = draw_crop(generator, side)
    resized = resize(image[top : top + height, left : left + width], side)
    return resized[:, ::-1] if generator.integers(2) else resized


def load(images, labels, *, batch, means, deviations):
    """Batches in random order, each image augmented; a last, smaller one is dropped.

    Args:
      images, labels: (n, side, side, c), and (n,) or (n, classes): labels go through as they are.
      means, deviations: Of each channel, (c,).
    Yields:
      (images (batch, side, side, c) float32, labels), the same ones for the same arguments.
    """
    order = np.random.default_rng(0).permutation(len(images))

    def make(begin):
        generator = np.random.default_rng((1, begin))
        chosen = order[begin : begin + batch]
        augmented = np.stack([augment(images[index], generator) for index in chosen])
        return (augmented - means) / deviations, labels[chosen]

    yield from make_ahead(make, range(0, len(images) - batch + 1, batch), workers=WORKERS, ahead=AHEAD)


def make_ahead(make, places, *, workers, ahead):
    """What `make` gives of each place, in order, made by threads while earlier ones are used.

    Args:
      ahead: How many are ready or in work beyond the one that is handed out.
    """
    with ThreadPoolExecutor(workers) as pool:
        waiting = deque()
        for place in places:
            waiting.append(pool.submit(make, place))
            if len(waiting) > ahead:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
