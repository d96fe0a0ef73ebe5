"""Image augmentation of a loader in NumPy: random crops and flips, and normalisation, in two threads."""

import math
from collections import deque
from concurrent.futures import ThreadPoolExecutor

import numpy as np

SHARES, RATIOS = (0.8, 1.0), (0.9, 1.1)
"""A crop's share of the image's area, and its ratio of width to height. Source: notebook "JAX Speed Test"."""

TRIES = 10
"""Attempts to draw a crop that lies within the image. If all fail, the whole image is used, as in torchvision."""

WORKERS, AHEAD = 2, 4
"""Threads of the loader, and batches that it has ready or in progress: two per worker, PyTorch's default."""


def draw_crop(generator, side):
    """Return (top, left, height, width) of a random crop of a square image."""
    for _ in range(TRIES):
        area = side**2 * generator.uniform(*SHARES)
        ratio = math.exp(generator.uniform(*map(math.log, RATIOS)))
        width, height = round(math.sqrt(area * ratio)), round(math.sqrt(area / ratio))
        if width <= side and height <= side:
            return generator.integers(side - height + 1), generator.integers(side - width + 1), height, width
    return 0, 0, side, side


def between(length, side):
    """Return both neighbouring pixels, and the weight of the second, of each of `side` positions along `length`."""
    place = np.clip((np.arange(side) + 0.5) * (length / side) - 0.5, 0, length - 1)
    before = place.astype(int)
    return before, np.minimum(before + 1, length - 1), (place - before).astype(np.float32)


def resize(image, side):
    """Return the image resized bilinearly, (h, w, c) with h and w at most `side` -> (side, side, c) float32."""
    above, below, down = between(image.shape[0], side)
    left, right, across = between(image.shape[1], side)
    rows = image[above] + (image[below].astype(np.float32) - image[above]) * down[:, None, None]
    return rows[:, left] + (rows[:, right] - rows[:, left]) * across[:, None]


def augment(image, generator):
    """Return a random crop at the image's own size, flipped at random, (side, side, c) -> (side, side, c) float32."""
    side = len(image)
    top, left, height, width = draw_crop(generator, side)
    resized = resize(image[top : top + height, left : left + width], side)
    return resized[:, ::-1] if generator.integers(2) else resized


def load(images, labels, *, batch, means, deviations):
    """Yield batches of augmented images in random order; a smaller last batch is dropped.

    Args:
      images, labels: (n, side, side, c), and (n,) or (n, classes): labels are passed on unchanged.
      means, deviations: One of each per channel, (c,).
    Yields:
      (images (batch, side, side, c) float32, labels): the same batches for the same arguments.
    """
    order = np.random.default_rng(0).permutation(len(images))

    def make(begin):
        generator = np.random.default_rng((1, begin))
        chosen = order[begin : begin + batch]
        augmented = np.stack([augment(images[index], generator) for index in chosen])
        return (augmented - means) / deviations, labels[chosen]

    yield from make_ahead(make, range(0, len(images) - batch + 1, batch), workers=WORKERS, ahead=AHEAD)


def make_ahead(make, places, *, workers, ahead):
    """Yield `make(place)` of each place in order; threads compute results while the caller uses earlier ones.

    Args:
      ahead: Number of results that are ready or in progress, in addition to the one that is yielded.
    """
    with ThreadPoolExecutor(workers) as pool:
        waiting = deque()
        for place in places:
            waiting.append(pool.submit(make, place))
            if len(waiting) > ahead:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
