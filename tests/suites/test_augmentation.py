import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jaxmeter.suites import augmentation

MEANS, DEVIATIONS = np.zeros(3, np.float32), np.ones(3, np.float32)


@pytest.fixture(scope="module")
def images():
    return np.random.default_rng(0).integers(0, 256, (10, 8, 8, 3), dtype=np.uint8)


def load(images, **others):
    how = {"batch": 4, "means": MEANS, "deviations": DEVIATIONS, **others}
    return list(augmentation.load(images, np.arange(len(images)), **how))


@given(seed=st.integers(0, 10_000), side=st.integers(8, 64))
def test_a_crop_lies_within_the_image_and_has_the_wanted_area_and_ratio(seed, side):
    top, left, height, width = augmentation.draw_crop(np.random.default_rng(seed), side)

    assert 0 <= top <= side - height
    assert 0 <= left <= side - width
    # Sides are whole pixels: each is off by half of one.
    assert (height - 0.5) * (width - 0.5) <= side**2
    assert (height + 0.5) * (width + 0.5) >= 0.8 * side**2
    assert (width - 0.5) / (height + 0.5) <= 1.1
    assert (width + 0.5) / (height - 0.5) >= 0.9


def test_crops_differ():
    generator = np.random.default_rng(0)

    assert len({tuple(map(int, augmentation.draw_crop(generator, 32))) for _ in range(50)}) > 20


def test_a_whole_image_stays_as_it_is(images):
    np.testing.assert_array_equal(augmentation.resize(images[0], 8), images[0])


def test_resizing_is_bilinear():
    # A slope stays one; beyond the outermost centres the border's values go on.
    ramp = np.arange(4, dtype=np.uint8)[:, None, None] * 10 + np.arange(2, dtype=np.uint8)[None, :, None]

    found = augmentation.resize(ramp, 8)[..., 0]

    assert found[:, 0].tolist() == pytest.approx([0, 2.5, 7.5, 12.5, 17.5, 22.5, 27.5, 30])
    assert found[0].tolist() == pytest.approx([0, 0, 0.125, 0.375, 0.625, 0.875, 1, 1])


def test_half_of_the_images_are_flipped():
    left = np.zeros((32, 32, 1), np.uint8)
    left[:, :16] = 255
    generator = np.random.default_rng(0)

    flipped = [augmentation.augment(left, generator)[:, :8].mean() < 128 for _ in range(200)]

    # Five standard deviations of a fair coin.
    assert abs(np.mean(flipped) - 0.5) < 5 * 0.5 / np.sqrt(200)


def test_batches_are_shuffled_whole_and_each_image_comes_at_most_once(images):
    batches = load(images)

    labels = np.concatenate([labels for _, labels in batches]).tolist()
    assert [found.shape for found, _ in batches] == [(4, 8, 8, 3)] * 2
    assert len(set(labels)) == 8
    assert labels != sorted(labels)


def test_an_image_keeps_its_label():
    images = np.full((10, 8, 8, 3), np.arange(10, dtype=np.uint8)[:, None, None, None])

    for found, labels in load(images):
        np.testing.assert_array_equal(found[:, 0, 0, 0], labels)
        assert found.dtype == np.float32


def test_images_are_normalised_by_channel():
    images = np.full((4, 8, 8, 3), (10, 20, 30), np.uint8)

    ((found, _),) = load(images, means=np.float32([10, 10, 10]), deviations=np.float32([1, 2, 4]))

    np.testing.assert_allclose(found[0, 0, 0], [0, 5, 5])


def test_the_same_images_are_loaded_the_same_way(images):
    one, other = load(images), load(images)

    for first, second in zip(one, other, strict=True):
        np.testing.assert_array_equal(first[0], second[0])


def test_what_a_worker_raises_is_raised(images):
    with pytest.raises(ValueError, match="broadcast"):
        load(images, means=np.zeros(2))
