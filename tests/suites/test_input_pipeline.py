from importlib import util

import jax
import numpy as np
import pytest

from jaxmeter.harness.record import Status
from jaxmeter.suites import augmentation, input_pipeline
from tests.suites.outcomes import outcome_of, without_kernels

BATCH = 2
PIPELINE = input_pipeline.input_pipeline
NAMES = [item.name for item in PIPELINE.implementations]


@pytest.fixture(scope="module")
def arguments():
    return input_pipeline.inputs(jax.random.key(0), batch=BATCH)


def implementation(name):
    return next(item for item in PIPELINE.implementations if item.name == name)


@pytest.mark.parametrize("name", NAMES)
def test_every_loader_makes_the_same_batches_in_the_same_order(name, arguments, monkeypatch):
    if name == "grain":
        pytest.importorskip("grain")
    trained = []
    monkeypatch.setattr(input_pipeline, "step", lambda state, *batch: (state, trained.append(batch) or 0.0))

    implementation(name).function(*arguments)

    jax.tree.map(np.testing.assert_array_equal, trained, [tuple(batch) for batch in arguments[-1]])
    assert len(trained) == input_pipeline.BATCHES


def test_an_epoch_has_each_image_once_and_augments_it(arguments):
    _, images, labels, order, batches = arguments

    assert sorted(order.ravel()) == list(range(len(images)))
    for indices, (pictures, classes) in zip(order, batches, strict=True):
        assert pictures.dtype == np.float32
        assert -1 <= pictures.min() < pictures.max() <= 1
        np.testing.assert_array_equal(classes, labels[indices])
        assert not np.allclose(pictures, images[indices] / 127.5 - 1, atol=0.1)


class Loss:
    """Notes when it is read."""

    def __init__(self, events):
        self.events = events

    def __float__(self):
        self.events.append("read")
        return 0.0


@pytest.mark.parametrize(("name", "each"), [("loss_read", ["load", "step", "read"]), ("in_loop", ["load", "step"])])
def test_a_loop_reads_its_losses_or_not(name, each, arguments, monkeypatch):
    events = []
    monkeypatch.setattr(input_pipeline, "load_batch", lambda *_: events.append("load") or ((), ()))
    monkeypatch.setattr(input_pipeline, "step", lambda state, *_: (state, events.append("step") or Loss(events)))

    implementation(name).function(*arguments)

    assert events == each * input_pipeline.BATCHES


def test_a_thread_makes_as_many_ahead_as_it_may():
    made = []

    given = augmentation.make_ahead(lambda place: made.append(place) or place, range(5), workers=1, ahead=2)

    assert next(given) == 0
    assert len(made) <= 3
    assert list(given) == [1, 2, 3, 4]
    assert made == [0, 1, 2, 3, 4]


def test_a_loader_that_cannot_run_here_is_skipped_with_a_reason(monkeypatch):
    monkeypatch.setattr(util, "find_spec", lambda name: None)

    def skipped(backend):
        return {item.name for item in PIPELINE.implementations if item.find_skip({"batch": BATCH}, backend)}

    assert skipped("cpu") == {"grain", "put_by_thread"}
    assert skipped("gpu") == {"grain"}


# What is caught


def epoch_of(batches_of, step=None):
    """What the check says of an epoch in NumPy of other batches, or by another step."""

    def epoch(state, images, labels, order, batches):
        if step is None:
            return input_pipeline.epoch_in_numpy(state, images, labels, order, batches_of(batches))
        return input_pipeline.models.follow(step, state, batches_of(batches))

    return outcome_of(PIPELINE, epoch, batch=BATCH).status


def test_an_epoch_with_other_batches_or_that_leaves_kernels_unchanged_is_wrong():
    def step(state, images, labels):
        return input_pipeline.reference.train_step(
            input_pipeline.reference.cnn, lambda params, memory, slopes: (params, memory), state, images, labels
        )

    assert epoch_of(list) is Status.OK
    assert epoch_of(lambda batches: batches[::-1]) is Status.WRONG
    assert epoch_of(lambda batches: [batches[0], *batches[:-1]]) is Status.WRONG
    assert epoch_of(lambda batches: [(images[:, :, ::-1], labels) for images, labels in batches]) is Status.WRONG
    assert epoch_of(list, without_kernels(step)) is Status.WRONG
