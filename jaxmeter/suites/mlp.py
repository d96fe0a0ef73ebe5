"""MLP: training dense layers; speedups of one compiled step, of a loop over steps on the device and of donation."""

import math
from functools import cache, partial

import jax
import jax.numpy as jnp
import numpy as np
import optax

from jaxmeter import (
    Answer,
    Caching,
    Cost,
    Figure,
    Items,
    Needs,
    Peer,
    Published,
    Skip,
    State,
    itemsize,
    levels,
    workload,
)
from jaxmeter.suites import datasets, mlp_in_torch, models
from jaxmeter.suites import networks_in_numpy as reference
from jaxmeter.suites.mlp_networks import NETWORKS, PIXELS, RATE, TOY, params_in, products, steps_cost
from jaxmeter.suites.peers import needs_torch, needs_torch_and_compiler
from jaxmeter.suites.published import at_both_sizes
from jaxmeter.suites.speed_test import SPEED_TEST

TOY_POINTS = 8_000
"""62 batches of 128 and 1 batch of 64, as in the notebook "JAX Speed Test"."""

TOY_RADIUS = math.sqrt(2 * math.log(2))
"""Half of all standard normal points in the plane are closer to the origin than this radius."""

AGREEING_STEPS = 7
"""Steps after which Chavdarova compares the losses of JAX and PyTorch. A short epoch here has as many steps."""

PASSED = 1e-2
"""Error allowed after some steps. Rounding decides whether relu passes a value that is nearly 0, and XLA sums in
another order with one thread than with two. After 7 steps the error of a bias entry was 3.3e-3 of the largest entry."""

MOSTLY_COMPILING = "compilation dominates so few steps, whatever a step takes, so the direction is certain"

EPOCH = "epoch"
"""Replaces a number of batches: as many batches as the images of a part fill."""

JAX_IN_ACTION = "Sapunov, JAX in Action (MEAP v3, 2022), chapter 2"
CHAVDAROVA = "Chavdarova, An Introduction to JAX, 2020"


ADAM_RATE = 1e-2
"""Ten times the step size of Kingma & Ba, Adam, 2015, algorithm 1, because the network is tiny."""

ADAM = optax.adam(ADAM_RATE)
SGD = optax.sgd(RATE)

toy_step = models.train_step(TOY.model, ADAM, models.mean_cross_entropy)
jitted_toy_gradient = jax.jit(models.gradient_step(TOY.model, models.mean_cross_entropy))
jitted_toy_update = jax.jit(models.update_step(ADAM))


@cache
def step_of(network):
    """Return the training step of a network: SGD on the summed loss."""
    return models.train_step(NETWORKS[network].model, SGD, models.summed_cross_entropy)


# Inputs


def toy_batches(key, *, n):
    """Return the state and host batches of n points in the plane, classified as inside or outside a circle."""
    of_params, of_points = jax.random.split(key)
    points = np.asarray(jax.random.normal(of_points, (n, 2)))
    classes = (np.hypot(*points.T) > TOY_RADIUS).astype(np.int32)
    state = models.initial_state(TOY.model, ADAM, of_params, points[:1])
    starts = range(0, n, TOY.batch)
    return [(state, points[at : at + TOY.batch], classes[at : at + TOY.batch]) for at in starts]


def number_of(batches, part, network):
    """Return the number of batches; for EPOCH it depends on the network and the part."""
    return datasets.MNIST_ROWS[part] // NETWORKS[network].batch if batches == EPOCH else batches


def mnist_batches(part, network, batches):
    """Return the first batches of a part: images (batches, batch, 784) float32 in [0, 1], labels (batches, batch)."""
    batch, batches = NETWORKS[network].batch, number_of(batches, part, network)
    images, labels = datasets.mnist(part, batches * batch)
    images = images.reshape(batches, batch, PIXELS).astype(np.float32) / 255
    return images, labels.reshape(batches, batch).astype(np.int32)


def mnist_state(key, network):
    """Return the initial state of a network."""
    return models.initial_state(NETWORKS[network].model, SGD, key, np.zeros((1, PIXELS), np.float32))


def one_batch(key, *, network):
    """Return the state and the first batch, on the device."""
    images, labels = mnist_batches("train", network, 1)
    return mnist_state(key, network), images[0], labels[0]


def host_fed_epoch(key, *, network, batches):
    """Return the state and the batches, on the host."""
    state = mnist_state(key, network)
    return [(state, *batch) for batch in zip(*mnist_batches("train", network, batches), strict=True)]


def epoch_on_device(key, *, network, batches):
    """Return the state and all batches of an epoch, on the device."""
    return mnist_state(key, network), *mnist_batches("train", network, batches)


def evaluated_parts(batches):
    """Return the parts to evaluate: the training set, then the test set, for EPOCH; else the test set alone."""
    return ("train", "test") if batches == EPOCH else ("test",)


def evaluation_batches(key, *, network, batches):
    """Return the params and the batches, on the host."""
    variables, _ = mnist_state(key, network)
    pairs = [
        pair for part in evaluated_parts(batches) for pair in zip(*mnist_batches(part, network, batches), strict=True)
    ]
    return [(variables["params"], *pair) for pair in pairs]


# Reference


def toy_step_in_numpy(state, points, classes):
    """Compute a step of Adam on the mean loss: (state, loss)."""
    update = partial(reference.adam, rate=ADAM_RATE)
    return reference.train_step(reference.mlp, update, state, points, classes)


def network_in_numpy(params, *, network):
    """Return the layers of a network."""
    return reference.mlp(params, reference.ACTIVATIONS[NETWORKS[network].activation])


def step_in_numpy(state, images, labels, *, network):
    """Compute a step of SGD on the summed loss, which is the mean times the batch size: (state, loss)."""
    batch = len(labels)
    update = partial(reference.sgd, rate=RATE * batch)
    state, loss = reference.train_step(partial(network_in_numpy, network=network), update, state, images, labels)
    return state, batch * loss


def state_and_lengths(after, before):
    """Return what is compared after an epoch: the state, and the lengths of its changes."""
    return after, reference.lengths(after, before)


def first_step_in_numpy(state, images, labels, *, network):
    """Compute the first steps of an epoch; return NaN for loss and state of later steps, which nothing can check.

    Rounding decides whether relu passes a value that is nearly 0, and the resulting error grows. Measured: 2e-7 after 7
    steps, 3.5e-5 of a loss after 29, and 2e-2 of a bias after 468.
    """
    step = partial(step_in_numpy, network=network)
    return reference.epoch_step(state, images, labels, step=step, compare=state_and_lengths, checked=AGREEING_STEPS)


def first_steps(result, *, inputs):
    """Return the values of a result ([[loss], …], [state]) that match the reference `first_step_in_numpy`."""
    return reference.epoch_result(result, inputs, compare=state_and_lengths, checked=AGREEING_STEPS)


def epoch_in_numpy(state, images, labels, *, network):
    """Run steps over all batches: (state, summed loss)."""
    total = 0.0
    for batch in zip(images, labels, strict=True):
        state, loss = step_in_numpy(state, *batch, network=network)
        total += loss
    return state, total


def evaluation_in_numpy(params, images, labels, *, network):
    """Return (correct answers, summed loss) of a batch."""
    logits = reference.output_of(reference.forward(network_in_numpy(params, network=network), images))
    return (logits.argmax(1) == labels).sum(), reference.cross_entropy(logits, labels).sum()


# Cost


def examples_in(*, network, batches):
    """Return the number of images in an epoch."""
    return number_of(batches, "train", network) * NETWORKS[network].batch


def batches_cost(*, network, batches):
    """Return the cost of an epoch that is fed batch by batch."""
    of, steps = NETWORKS[network], number_of(batches, "train", network)
    return steps_cost(of.widths, steps * of.batch, steps)


def epoch_cost(*, network, batches):
    """Return the cost of an epoch in one program, whose state can stay in a processor cache between steps."""
    of, steps = NETWORKS[network], number_of(batches, "train", network)
    return steps_cost(of.widths, steps * of.batch, steps, moves=1)


def evaluation_cost(*, network, batches):
    """Return the cost of the forward passes, each of which reads the params."""
    widths = NETWORKS[network].widths
    passes = sum(number_of(batches, part, network) for part in evaluated_parts(batches))
    examples = passes * NETWORKS[network].batch
    numbers = passes * params_in(widths) + examples * (widths[0] + 1)
    return Cost(flops=2 * examples * products(widths)[1], bytes=numbers * itemsize("float32"))


# Workloads


@workload(
    inputs=toy_batches,
    params={"n": TOY_POINTS},
    reference=toy_step_in_numpy,
    cost=lambda *, n: steps_cost(TOY.widths, n, math.ceil(n / TOY.batch), update=reference.ADAM),
    items=Items("examples", lambda *, n: n),
    modes=("jit",),
    implementation="step",
    stream=True,
    state=State(carry={"state": 0}),
    compiles=2,
    # Adam divides each gradient by its own size, so rounding matters most where a gradient is nearly zero.
    tolerance=1e-4,
    needs=Needs(host=("points", "classes"), config={"jax_default_matmul_precision": "highest"}),
    published=(
        Published(
            source=SPEED_TEST,
            device="not stated",
            timed="size of the compile cache: 1 after the first batch, 2 after the last, smaller batch",
            figure=Figure("step:jit", 2, metric="compiles"),
            differs="jaxmeter counts the programs that XLA compiled for one jitted step; the source counts cache "
            "entries of a jitted gradient and of an update, as in the variant two_programs",
            at={"n": TOY_POINTS},
        ),
    ),
    level="default",
)
def mlp_toy_epoch(state, points, classes):
    """Epoch of a 2-10-2 MLP with Adam, fed from the host, batches of (128, 2) -> state, loss of each step.

    The last batch is smaller and needs a second program. Source: notebook "JAX Speed Test".
    """
    return toy_step(state, points, classes)


@mlp_toy_epoch.implementation(modes=("mixed",), compiles=3)
def two_programs(state, points, classes):
    """Gradient and update as two jitted functions: one compiled program for the update, two for the gradient."""
    (loss, changed), slopes = jitted_toy_gradient(state[0], points, classes)
    return jitted_toy_update(state, slopes, changed), loss


@workload(
    inputs=one_batch,
    params={"network": levels(quick="784-512-10", full="784-512-512-10", by_device={"gpu": "784-512-512-10"})},
    reference=reference.with_changes(step_in_numpy, reference.lengths),
    compare=reference.result_and_lengths,
    cost=lambda *, network: batches_cost(network=network, batches=1),
    items=Items("examples", lambda *, network: examples_in(network=network, batches=1)),
    modes=("eager", "jit"),
    implementation="step",
    state=State(carry={"state": 0}),
    compiles=1,
    data=datasets.mnist_source,
    answer=Answer(
        "Is jit worth it for an MLP?",
        "step:jit",
        against="step:eager",
        rank=8,
    ),
)
def mlp_step(state, images, labels, *, network):
    """A training step, SGD on the summed loss, (batch, 784) -> state, loss. Source: Chavdarova 2020."""
    return step_of(network)(state, images, labels)


@mlp_step.implementation(modes=("jit",), donate=("state",))
def donated(state, images, labels, *, network):
    """The step with donated state: the new state can overwrite the old one."""
    return step_of(network)(state, images, labels)


@workload(
    inputs=host_fed_epoch,
    params={
        "network": levels(default="784-512-512-10", full="784-512-10"),
        "batches": levels(default=AGREEING_STEPS, full=EPOCH),
    },
    reference=first_step_in_numpy,
    compare=first_steps,
    tolerance=PASSED,
    cost=batches_cost,
    items=Items("examples", examples_in),
    peers={
        "torch": Peer(mlp_in_torch.step, limit=needs_torch, convert=mlp_in_torch.arguments),
        "torch.compile": Peer(
            mlp_in_torch.compiled_step, limit=needs_torch_and_compiler, convert=mlp_in_torch.arguments
        ),
    },
    modes=("jit",),
    implementation="step",
    stream=True,
    state=State(carry={"state": 0}),
    needs=Needs(host=("images", "labels")),
    compiles=1,
    data=datasets.mnist_source,
    published=(
        *at_both_sizes(
            Published(
                source=CHAVDAROVA,
                device="PyTorch on CUDA; JAX's device not stated",
                timed="one epoch: median of epochs 1 to 7 (the first of PyTorch took 3.66 s); losses of 7 steps agreed "
                "to 1e-7",
                figure=Figure("torch:native", 3.29),
                against=Figure("step:jit", 2.97),
                differs="the source's PyTorch loop includes JAX's one-hot labels and copies to the host; the source's "
                "JAX network is written by hand, with one-hot labels in the loop; ours is a step in Flax with integer "
                "labels",
                at={"network": "784-512-512-10"},
            ),
            whole={"batches": EPOCH},
            short={"batches": AGREEING_STEPS},
            has="7 of its 468 steps",
        ),
    ),
    level="default",
)
def mlp_epoch(state, images, labels, *, network):
    """Epoch fed from the host, batches of (batch, 784) -> state, loss of each step.

    From the same initial params, JAX and PyTorch agree in the losses of the first 7 steps and in the state after them.
    In a longer epoch only these losses are checked. Source: Chavdarova 2020.
    """
    return step_of(network)(state, images, labels)


def few_enough_to_check(network, batches):
    """Return a Skip for epochs that no reference can follow to their last step, see `first_step_in_numpy`."""
    if NETWORKS[network].activation == "relu" and batches != AGREEING_STEPS:
        return Skip(
            f"after more than {AGREEING_STEPS} steps rounding decides what relu passes: no reference can check that"
        )
    return None


@workload(
    inputs=epoch_on_device,
    params={
        "network": levels(quick="784-512-10", full="784-512-512-10"),
        "batches": levels(default=50, full=(AGREEING_STEPS, EPOCH)),
    },
    reference=reference.with_changes(epoch_in_numpy, reference.lengths),
    compare=reference.result_and_lengths,
    cost=epoch_cost,
    items=Items("examples", examples_in),
    modes=("jit",),
    implementation="scan",
    limit=few_enough_to_check,
    baseline="step_by_step:mixed",
    state=State(carry={"state": 0}),
    compiles=1,
    caching=Caching(new_shape=lambda *, network, batches: {"batches": number_of(batches, "train", network) - 1}),
    data=datasets.mnist_source,
    level="default",
)
def mlp_epoch_on_device(state, images, labels, *, network):
    """Epoch with batches on the device, all steps in one `lax.scan`, (batches, batch, 784) -> state, total loss.

    Source: the networks and batches of JAX in Action, chapter 2, and of Chavdarova 2020.
    """
    state, losses = jax.lax.scan(lambda carried, batch: step_of(network)(carried, *batch), state, (images, labels))
    return state, jnp.sum(losses)


@cache
def jitted_step_at(network):
    """Return a jitted step of an epoch: (state, total loss, images, labels, batch index) -> (state, total loss)."""

    def step_at(state, total, images, labels, index):
        state, loss = step_of(network)(state, images[index], labels[index])
        return state, total + loss

    return jax.jit(step_at)


@mlp_epoch_on_device.implementation(modes=("mixed",), limit=few_enough_to_check, compiles=1)
def step_by_step(state, images, labels, *, network):
    """A Python loop over one jitted step, which indexes its batch on the device."""
    total = np.float32(0)
    for index in range(len(images)):
        state, total = jitted_step_at(network)(state, total, images, labels, index)
    return state, total


@workload(
    inputs=evaluation_batches,
    params={
        "network": levels(quick="784-512-10", full="784-512-512-10"),
        "batches": levels(quick=AGREEING_STEPS, full=EPOCH),
    },
    reference=evaluation_in_numpy,
    cost=evaluation_cost,
    modes=("eager", "jit"),
    implementation="evaluate",
    stream=True,
    compiles=1,
    # The last bits can decide which class has the largest logit, and an answer is either right or wrong.
    needs=Needs(host=("images", "labels"), config={"jax_default_matmul_precision": "highest"}),
    data=datasets.mnist_source,
    published=(
        *at_both_sizes(
            Published(
                source=JAX_IN_ACTION,
                device="GPU, not stated",
                backend="gpu",
                timed="evaluation on training set and test set",
                figure=Figure("evaluate:eager", 6.3),
                against=Figure("evaluate:jit", 2.06),
                differs="ours: Flax, with the loss, integer labels, NumPy batches and products in full float32; "
                "source: a network by hand with `vmap`, the loader of tfds, a mean of a list of accuracies, and the "
                "last 16 images of the test set",
                at={"network": "784-512-10"},
            ),
            whole={"batches": EPOCH},
            short={"batches": AGREEING_STEPS},
            has="7 of its 2187 batches",
        ),
    ),
    level="default",
)
def mlp_evaluation(params, images, labels, *, network):
    """Evaluation fed from the host, batches of (batch, 784) -> correct answers and summed loss of each batch.

    Source: JAX in Action, chapter 2.
    """
    logits = NETWORKS[network].model.apply({"params": params}, images)
    return jnp.sum(jnp.argmax(logits, 1) == labels), models.summed_cross_entropy(logits, labels)
