"""Loading: epochs as published, with loader and host work in the measured time, compared with the program alone."""

from functools import partial
from itertools import cycle, islice

import jax
import jax.numpy as jnp
import numpy as np
from flax import linen as nn

from jaxmeter import Answer, Figure, Needs, Published, Skip, State, levels, workload
from jaxmeter.suites import datasets, mlp, mnist_by_hand, models
from jaxmeter.suites import networks_in_numpy as reference
from jaxmeter.suites.mlp_networks import CLASSES, NETWORKS, PIXELS, TOY
from jaxmeter.suites.published import at_both_sizes
from jaxmeter.suites.speed_test import SPEED_TEST, functions_of, one_hot, train, train_in_numpy

SHORT_TOY = 1_000
"""Points: 7 batches of 128 and one of 104."""

TOY_CLASSES = 2

LONGEST_EPOCH_S = 600.0
"""Time limit of one pass: our own choice, as 1875 eager steps of 20 ms take 38 s."""


def toy_predict(params, points):
    """Return the toy network's log_softmax; the loss applies it again, which mathematically changes nothing."""
    return nn.log_softmax(TOY.model.apply({"params": params}, points))


TOY_FUNCTIONS = functions_of(toy_predict, mlp.ADAM)
TOY_PROGRAMS = TOY_FUNCTIONS.jitted()


# The toy epoch


def places(n):
    """Return where the batches of n points begin and end; the last batch can be smaller."""
    return [(at, min(at + TOY.batch, n)) for at in range(0, n, TOY.batch)]


def toy_inputs(key, *, n):
    """Return the state, points (n, 2) and classes (n,) on the host, and both as batches on the device."""
    cut = mlp.toy_batches(key, n=n)
    points, classes = (np.concatenate(each) for each in list(zip(*cut, strict=True))[1:])
    return cut[0][0], points, classes, [(some, one_hot(of, TOY_CLASSES)) for _, some, of in cut]


def toy_in_numpy(state, points, classes, batches):
    """Return the result of steps over all batches."""
    return train_in_numpy(state, batches, step=mlp.toy_step_in_numpy, network=reference.mlp)


def stacked_rows(points, classes):
    """Yield batches of rows picked one by one, as a PyTorch loader's collate function in one process does."""
    for begin, end in places(len(points)):
        rows = [(points[row], classes[row]) for row in range(begin, end)]
        yield np.stack([row for row, _ in rows]), one_hot(np.stack([of for _, of in rows]), TOY_CLASSES)


@workload(
    inputs=toy_inputs,
    params={"n": levels(default=SHORT_TOY, full=mlp.TOY_POINTS)},
    reference=toy_in_numpy,
    modes=("mixed",),
    implementation="rows_stacked",
    state=State(carry={"state": 0}),
    needs=Needs(host=("points", "classes"), config={"jax_default_matmul_precision": "highest"}),
    # Adam divides each gradient by its own size, and the last bit decides for points on the border: five of 8000.
    tolerance=1e-3,
    published=at_both_sizes(
        Published(
            source=SPEED_TEST,
            device="not stated",
            timed="one epoch, data loading included",
            figure=Figure("eager_step:mixed", 2.36, 24.5e-3),
            against=Figure("rows_stacked:mixed", 65.7e-3, 1.73e-3),
            differs="our data are one cloud of points cut by a circle, in float32; theirs are blobs and circles, in "
            "float64; our loader imitates PyTorch's in one process; products in full float32",
        ),
        whole={"n": mlp.TOY_POINTS},
        short={"n": SHORT_TOY},
        has="8 of its 63 batches",
    ),
    level="default",
    answer=Answer("How much of an epoch is loading?", "program_alone:mixed", against="rows_stacked:mixed"),
)
def toy_epoch(state, points, classes, batches):
    """Epoch of a 2-10-2 MLP, rows picked and stacked singly, (n, 2), (n,) -> state, losses, mean loss and accuracy.

    Source: notebook "JAX Speed Test".
    """
    return train(TOY_PROGRAMS, state, stacked_rows(points, classes))


@toy_epoch.implementation
def eager_step(state, points, classes, batches):
    """Epoch without jit: every operation is a separate call."""
    return train(TOY_FUNCTIONS, state, stacked_rows(points, classes))


@toy_epoch.implementation
def sliced(state, points, classes, batches):
    """Epoch with batches that are slices of the host's arrays: Python touches no single row."""
    cut = ((points[begin:end], one_hot(classes[begin:end], TOY_CLASSES)) for begin, end in places(len(points)))
    return train(TOY_PROGRAMS, state, cut)


@toy_epoch.implementation
def program_alone(state, points, classes, batches):
    """Epoch whose batches are cut and on the device before timing starts: the time of the steps alone."""
    return train(TOY_PROGRAMS, state, batches)


# The epochs on MNIST


def mnist_inputs(key, *, network, batches):
    """Return params, images (n, 28, 28) float32 and labels (n,) on the host, and the first batches on the device."""
    batch, count = NETWORKS[network].batch, mlp.number_of(batches, "train", network)
    images, labels = datasets.mnist("train", batch * count)
    images = images.astype(np.float32) / 255
    variables, _ = mlp.mnist_state(key, network)
    encoded = islice(encoded_batches(images, labels, batch), mlp.AGREEING_STEPS)
    return variables["params"], images, labels.astype(np.int32), list(encoded)


def encoded_batches(images, labels, batch):
    """Yield batches of the host's arrays, which JAX reshapes and one-hot encodes, each in a separate call."""
    for at in range(0, len(labels), batch):
        pixels = jnp.reshape(images[at : at + batch], (batch, PIXELS))
        yield pixels, jax.nn.one_hot(labels[at : at + batch], CLASSES)


def how_far(params, begun):
    """Return what is compared of params: the params, and how far the epoch moved them."""
    return params, reference.lengths(({"params": params}, ()), ({"params": begun}, ()))


mnist_compared = partial(reference.first_losses, compare=how_far, checked=mlp.AGREEING_STEPS)


def mnist_in_numpy(params, images, labels, encoded, *, network):
    """Return what is compared after the first steps, because the effect of rounding grows with each step.

    See `mlp.first_step_in_numpy`.
    """
    after, losses = params, []
    for pixels, targets in encoded:
        after, loss = mnist_by_hand.update_in_numpy(after, pixels, targets.argmax(1), network=network)
        losses.append(loss)
    later = [np.nan] * (len(labels) // NETWORKS[network].batch - len(encoded))
    return mnist_compared(after, losses + later, (), params)


def published_without_jit(network):
    """Return a Skip for the network whose source published no epoch without jit."""
    return None if network == "784-512-10" else Skip("its source runs every step jitted")


MNIST_SIZES = {
    "whole": {"batches": mlp.EPOCH},
    "short": {"batches": mlp.AGREEING_STEPS},
}


NO_LOADER = "no prefetching by a loader: batches are slices of arrays that are float32 before the epoch starts"


@workload(
    inputs=mnist_inputs,
    params={
        "network": levels(default="784-512-10", full="784-512-512-10"),
        "batches": levels(default=mlp.AGREEING_STEPS, full=mlp.EPOCH),
    },
    reference=mnist_in_numpy,
    compare=lambda result, *, inputs: mnist_compared(*result, (), inputs[0]),
    modes=("mixed",),
    implementation="encoded_in_loop",
    state=State(carry={"params": 0}),
    needs=Needs(host=("images", "labels")),
    time_limit_s=LONGEST_EPOCH_S,
    data=datasets.mnist_source,
    published=(
        *at_both_sizes(
            Published(
                source=mlp.JAX_IN_ACTION,
                device="GPU, not stated",
                backend="gpu",
                timed="one epoch",
                figure=Figure("eager_step:mixed", 32.6),
                against=Figure("encoded_in_loop:mixed", 1.69),
                differs=NO_LOADER,
                at={"network": "784-512-10"},
            ),
            **MNIST_SIZES,
            has="7 of its 1875 steps",
        ),
        *at_both_sizes(
            Published(
                source=mlp.JAX_IN_ACTION,
                device="GPU, not stated",
                backend="gpu",
                timed="the first epoch, which compiles, divided by later ones",
                figure=Figure("encoded_in_loop:mixed", 2.15, metric="first_call_s"),
                against=Figure("encoded_in_loop:mixed", 1.69),
                differs=NO_LOADER,
                at={"network": "784-512-10"},
            ),
            **MNIST_SIZES,
            has="7 of its 1875 steps",
            undecided=mlp.MOSTLY_COMPILING,
        ),
        *at_both_sizes(
            Published(
                source=mlp.CHAVDAROVA,
                device="not stated",
                timed="the first epoch, which compiles, divided by the median of later ones",
                figure=Figure("encoded_in_loop:mixed", 5.99, metric="first_call_s"),
                against=Figure("encoded_in_loop:mixed", 2.97),
                differs=NO_LOADER,
                at={"network": "784-512-512-10"},
            ),
            **MNIST_SIZES,
            has="7 of its 468 steps",
            undecided=mlp.MOSTLY_COMPILING,
        ),
    ),
    level="full",
)
def loaded_mnist_epoch(params, images, labels, encoded, *, network):
    """Epoch on MNIST, reshaped and encoded in the loop, (n, 28, 28), (n,) -> params, loss of each step.

    Both networks are written by hand. Source: JAX in Action, chapter 2 (784-512-10); Chavdarova 2020 (the other).
    """
    loop = encoded_batches(images, labels, NETWORKS[network].batch)
    return models.follow(mnist_by_hand.jitted_update(network), params, loop)


@loaded_mnist_epoch.implementation(name="eager_step", limit=published_without_jit)
def mnist_eager_step(params, images, labels, encoded, *, network):
    """Epoch without jit: every operation is a separate call."""
    loop = encoded_batches(images, labels, NETWORKS[network].batch)
    return models.follow(mnist_by_hand.PROGRAMS[network].update, params, loop)


@loaded_mnist_epoch.implementation(name="program_alone")
def mnist_program_alone(params, images, labels, encoded, *, network):
    """As many steps over the first seven batches in turn, which are on the device before timing starts."""
    steps = len(labels) // NETWORKS[network].batch
    return models.follow(mnist_by_hand.jitted_update(network), params, islice(cycle(encoded), steps))
