"""Input pipeline: a short epoch with loaders in the loop, in a thread and in Grain, compared with no loader."""

import importlib.util
from functools import partial

import jax
import numpy as np
import optax

from jaxmeter import Answer, Items, Needs, Skip, State, levels, workload
from jaxmeter.suites import augmentation, datasets, models
from jaxmeter.suites import networks_in_numpy as reference
from jaxmeter.suites.cnn_networks import ROUTED

NETWORK = models.CNN(channels=(8, 16), widths=(32, models.CNN_CLASSES))
"""A small network, so that a step on two cores takes about as long as loading its batch."""

RATE = 0.05
"""Learning rate of stochastic gradient descent on the mean loss; our own choice."""

BATCHES = 8
"""Batches of an epoch: enough that the first batch, which nothing can load ahead, counts little."""

AHEAD = 2
"""Batches that a loader has ready or in progress while a step runs."""

MIDDLE = np.float32(127.5)
"""Scale of bytes: images become numbers from -1 to 1."""

step = jax.jit(models.train_step(NETWORK, optax.sgd(RATE), models.mean_cross_entropy))


# Loading


def load_example(images, labels, index):
    """Return an image, randomly cropped and flipped, then normalised, and its label; the index determines both."""
    image = augmentation.augment(images[index], np.random.default_rng((1, index)))
    return image / MIDDLE - 1, labels[index]


def load_batch(images, labels, indices):
    """Return examples as a batch: images (batch, 32, 32, 3) float32, labels (batch,)."""
    pictures, classes = zip(*(load_example(images, labels, index) for index in indices), strict=True)
    return np.stack(pictures), np.stack(classes)


def inputs(key, *, batch):
    """Return the state, images (n, 32, 32, 3) uint8, labels (n,), their order (batches, batch), and the batches.

    Images, labels and order are on the host. The batches, as loaders make them, are on the device.
    """
    images, labels = datasets.cifar10("train", BATCHES * batch)
    labels = labels.astype(np.int32)
    order = np.random.default_rng(0).permutation(len(images)).reshape(BATCHES, batch)
    state = models.initial_state(NETWORK, optax.sgd(RATE), key, np.zeros((1, *models.CNN_IMAGE), np.float32))
    return state, images, labels, order, [load_batch(images, labels, indices) for indices in order]


# Reference


def epoch_in_numpy(state, images, labels, order, batches):
    """Return (state, losses) of steps over the batches that loaders make."""
    update = partial(reference.sgd, rate=RATE)
    return models.follow(partial(reference.train_step, reference.cnn, update), state, batches)


# Workload


@workload(
    inputs=inputs,
    params={"batch": levels(quick=8, full=128, by_device={"gpu": 128, "tpu": 128})},
    reference=reference.with_changes(epoch_in_numpy),
    compare=reference.result_and_changes,
    tolerance=ROUTED,
    items=Items("examples", lambda *, batch: BATCHES * batch),
    modes=("mixed",),
    implementation="in_loop",
    state=State(carry={"state": 0}),
    needs=Needs(host=("images", "labels", "order")),
    data=datasets.cifar10_source,
    answer=Answer(
        "Is the device waiting for data?",
        "no_loader:mixed",
        against="in_loop:mixed",
        metric="items_per_s",
        rank=3,
    ),
)
def input_pipeline(state, images, labels, order, batches):
    """Epoch whose loop makes each batch before its step, (n, 32, 32, 3) uint8 -> state, loss of each step.

    No loss is read, so a call returns before its step has run, and the loop makes the next batch meanwhile.
    Source: JAX's documentation, "Asynchronous dispatch"; Mohan et al., Analyzing and Mitigating Data Stalls in DNN
    Training, 2021, who also measure stalls by the rate that a program reaches without them.
    """
    return models.follow(step, state, (load_batch(images, labels, indices) for indices in order))


@input_pipeline.implementation
def loss_read(state, images, labels, order, batches):
    """Epoch as in `in_loop`, with `float(loss)` after each step: loader and device take turns."""
    losses = []
    for indices in order:
        state, loss = step(state, *load_batch(images, labels, indices))
        losses.append(float(loss))
    return state, losses


@input_pipeline.implementation
def thread(state, images, labels, order, batches):
    """Epoch with batches made by a thread, up to two ahead."""
    make = partial(load_batch, images, labels)
    return models.follow(step, state, augmentation.make_ahead(make, order, workers=1, ahead=AHEAD))


def needs_a_transfer(backend):
    """Return a Skip on a CPU."""
    if backend == "cpu":
        return Skip("a CPU computes in the host's memory: there is no transfer to begin early")
    return None


@input_pipeline.implementation(limit=needs_a_transfer)
def put_by_thread(state, images, labels, order, batches):
    """Epoch with a thread that makes batches and starts to copy them (`jax.device_put`), up to two ahead."""

    def make(indices):
        return jax.device_put(load_batch(images, labels, indices))

    return models.follow(step, state, augmentation.make_ahead(make, order, workers=1, ahead=AHEAD))


def needs_grain():
    """Return a Skip where Grain is not installed."""
    if importlib.util.find_spec("grain") is None:
        return Skip("Grain is not installed; it is part of the extra 'grain'")
    return None


@input_pipeline.implementation(limit=needs_grain)
def grain(state, images, labels, order, batches):
    """Epoch with batches made by one thread of Grain (`grain.MapDataset`), up to two ahead."""
    import grain

    examples = grain.MapDataset.source(order.ravel()).map(partial(load_example, images, labels))
    ahead = grain.ReadOptions(num_threads=1, prefetch_buffer_size=AHEAD)
    return models.follow(step, state, examples.batch(order.shape[1]).to_iter_dataset(ahead))


@input_pipeline.implementation
def no_loader(state, images, labels, order, batches):
    """Epoch whose batches are all on the device before timing starts: the time of the steps alone."""
    return models.follow(step, state, batches)
