"""MLP: training dense layers; what one compiled step, a loop over steps on the device and donated state are worth."""

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
"""62 batches of 128 and one of 64, as in the notebook "JAX Speed Test"."""

TOY_RADIUS = math.sqrt(2 * math.log(2))
"""Half of all standard normal points in the plane are nearer to the origin."""

AGREEING_STEPS = 7
"""Steps after which Chavdarova compares the losses of JAX and PyTorch; here also the length of a short epoch."""

PASSED = 1e-2
"""Error allowed after some steps. Whether relu passes a value that is nearly 0 is a matter of rounding, and with one
thread XLA sums in another order than with two: after 7 steps an entry of a bias then was 3.3e-3 of the largest off."""

MOSTLY_COMPILING = "of so few steps compiling is the most, whatever a step takes, so the direction is sure"

EPOCH = "epoch"
"""In place of a number of batches: as many as the images of a part fill."""

JAX_IN_ACTION = "Sapunov, JAX in Action (MEAP v3, 2022), chapter 2"
CHAVDAROVA = "Chavdarova, An Introduction to JAX, 2020"


ADAM_RATE = 1e-2
"""Ten times the step of Kingma & Ba, Adam, 2015, algorithm 1: the network is tiny."""

ADAM = optax.adam(ADAM_RATE)
SGD = optax.sgd(RATE)

toy_step = models.train_step(TOY.model, ADAM, models.mean_cross_entropy)
jitted_toy_gradient = jax.jit(models.gradient_step(TOY.model, models.mean_cross_entropy))
jitted_toy_update = jax.jit(models.update_step(ADAM))


@cache
def step_of(network):
    """The training step of a network: SGD on the summed loss."""
    return models.train_step(NETWORKS[network].model, SGD, models.summed_cross_entropy)


# Inputs


def toy_batches(key, *, n):
    """State, and n points in the plane with their classes, inside or outside a circle, in batches on the host."""
    of_params, of_points = jax.random.split(key)
    points = np.asarray(jax.random.normal(of_points, (n, 2)))
    classes = (np.hypot(*points.T) > TOY_RADIUS).astype(np.int32)
    state = models.initial_state(TOY.model, ADAM, of_params, points[:1])
    starts = range(0, n, TOY.batch)
    return [(state, points[at : at + TOY.batch], classes[at : at + TOY.batch]) for at in starts]


def number_of(batches, part, network):
    """Of batches, of which an epoch has another number for each network and part."""
    return datasets.MNIST_ROWS[part] // NETWORKS[network].batch if batches == EPOCH else batches


def mnist_batches(part, network, batches):
    """The first batches of a part, images (batches, batch, 784) float32 from 0 to 1 and labels (batches, batch)."""
    batch, batches = NETWORKS[network].batch, number_of(batches, part, network)
    images, labels = datasets.mnist(part, batches * batch)
    images = images.reshape(batches, batch, PIXELS).astype(np.float32) / 255
    return images, labels.reshape(batches, batch).astype(np.int32)


def mnist_state(key, network):
    """Initial state of a network."""
    return models.initial_state(NETWORKS[network].model, SGD, key, np.zeros((1, PIXELS), np.float32))


def one_batch(key, *, network):
    """State and the first batch, on the device."""
    images, labels = mnist_batches("train", network, 1)
    return mnist_state(key, network), images[0], labels[0]


def host_fed_epoch(key, *, network, batches):
    """State and batches, on the host."""
    state = mnist_state(key, network)
    return [(state, *batch) for batch in zip(*mnist_batches("train", network, batches), strict=True)]


def epoch_on_device(key, *, network, batches):
    """State and all batches of an epoch, on the device."""
    return mnist_state(key, network), *mnist_batches("train", network, batches)


def evaluated_parts(batches):
    """A whole evaluation is one of the training set, then of the test set."""
    return ("train", "test") if batches == EPOCH else ("test",)


def evaluation_batches(key, *, network, batches):
    """Params and batches, on the host."""
    variables, _ = mnist_state(key, network)
    pairs = [
        pair for part in evaluated_parts(batches) for pair in zip(*mnist_batches(part, network, batches), strict=True)
    ]
    return [(variables["params"], *pair) for pair in pairs]


# Reference


def toy_step_in_numpy(state, points, classes):
    """A step with Adam on the mean loss: (state, loss)."""
    update = partial(reference.adam, rate=ADAM_RATE)
    return reference.train_step(reference.mlp, update, state, points, classes)


def network_in_numpy(params, *, network):
    """Its layers."""
    return reference.mlp(params, reference.ACTIVATIONS[NETWORKS[network].activation])


def step_in_numpy(state, images, labels, *, network):
    """A step with SGD on the summed loss, which is the mean times the batch: (state, loss)."""
    batch = len(labels)
    update = partial(reference.sgd, rate=RATE * batch)
    state, loss = reference.train_step(partial(network_in_numpy, network=network), update, state, images, labels)
    return state, batch * loss


def state_and_lengths(after, before):
    """What of a state is compared after an epoch: itself, and how far the epoch moved it."""
    return after, reference.lengths(after, before)


def first_step_in_numpy(state, images, labels, *, network):
    """The same of an epoch's first steps; of later ones loss and state are NaN, as nobody can tell what is right.

    Whether relu passes a value that is nearly 0 is a matter of rounding, and what follows from it grows: measured 2e-7
    after 7 steps, 3.5e-5 of a loss after 29, and 2e-2 of a bias after 468.
    """
    step = partial(step_in_numpy, network=network)
    return reference.epoch_step(state, images, labels, step=step, told=state_and_lengths, checked=AGREEING_STEPS)


def first_steps(result, *, inputs):
    """What is compared with that, of a result ([[loss], …], [state])."""
    return reference.epoch_result(result, inputs, told=state_and_lengths, checked=AGREEING_STEPS)


def epoch_in_numpy(state, images, labels, *, network):
    """Steps over all batches: (state, summed loss)."""
    total = 0.0
    for batch in zip(images, labels, strict=True):
        state, loss = step_in_numpy(state, *batch, network=network)
        total += loss
    return state, total


def evaluation_in_numpy(params, images, labels, *, network):
    """(correct answers, summed loss) of a batch."""
    logits = reference.output_of(reference.forward(network_in_numpy(params, network=network), images))
    return (logits.argmax(1) == labels).sum(), reference.cross_entropy(logits, labels).sum()


# Cost


def examples_in(*, network, batches):
    """Images of an epoch, a count."""
    return number_of(batches, "train", network) * NETWORKS[network].batch


def batches_cost(*, network, batches):
    """Of an epoch that is fed batch by batch."""
    of, steps = NETWORKS[network], number_of(batches, "train", network)
    return steps_cost(of.widths, steps * of.batch, steps)


def epoch_cost(*, network, batches):
    """Of an epoch in one program: the state may stay in a cache between its steps."""
    of, steps = NETWORKS[network], number_of(batches, "train", network)
    return steps_cost(of.widths, steps * of.batch, steps, moves=1)


def evaluation_cost(*, network, batches):
    """Of forward passes, each of which reads the params."""
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
    # Adam divides each gradient by its own size, so that rounding counts most where a gradient is nearly zero.
    tolerance=1e-4,
    needs=Needs(host=("points", "classes"), config={"jax_default_matmul_precision": "highest"}),
    published=(
        Published(
            source=SPEED_TEST,
            device="not stated",
            timed="size of the compile cache: 1 after the first batch, 2 after the last, smaller one",
            figure=Figure("step:jit", 2, metric="compiles"),
            differs="programs that XLA compiled for one jitted step are counted; there entries of the cache of a "
            "jitted gradient and of an update, beside which two_programs stands",
            at={"n": TOY_POINTS},
        ),
    ),
    level="default",
)
def mlp_toy_epoch(state, points, classes):
    """Epoch of a 2-10-2 MLP with Adam, fed from the host, batches of (128, 2) -> state, loss of each step.

    The last batch is smaller: a second program. Source: notebook "JAX Speed Test".
    """
    return toy_step(state, points, classes)


@mlp_toy_epoch.implementation(modes=("mixed",), compiles=3)
def two_programs(state, points, classes):
    """Gradient and update as two jitted functions; the update has one type of arguments, the gradient two."""
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
    """The same step, which may write the new state over the old one."""
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
                timed="one epoch: median of epochs 1 to 7 (PyTorch's first took 3.66 s); losses of 7 steps agreed to "
                "1e-7",
                figure=Figure("torch:native", 3.29),
                against=Figure("step:jit", 2.97),
                differs="PyTorch's loop there held JAX's one-hot labels and copies to the host; ours of JAX is one "
                "step in Flax with integer labels, there a network by hand, one-hot in the loop",
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

    The losses of the first 7 steps, and the state after them, are those of PyTorch from the same initial params;
    of a longer epoch these losses alone are checked. Source: Chavdarova 2020.
    """
    return step_of(network)(state, images, labels)


def few_enough_to_check(network, batches):
    """Skips steps beyond those that a reference can follow, see `first_step_in_numpy`: here only the last is seen."""
    if NETWORKS[network].activation == "relu" and batches != AGREEING_STEPS:
        return Skip(
            f"after more than {AGREEING_STEPS} steps what relu passes is a matter of rounding: nothing to check by"
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
    """Epoch whose batches are on the device, all steps in one `lax.scan`, (batches, batch, 784) -> state, total loss.

    Source: the networks and batches of JAX in Action, chapter 2, and of Chavdarova 2020.
    """
    state, losses = jax.lax.scan(lambda carried, batch: step_of(network)(carried, *batch), state, (images, labels))
    return state, jnp.sum(losses)


@cache
def jitted_step_at(network):
    """A step of an epoch on the device: (state, total loss, images, labels, which batch) -> (state, total loss)."""

    def step_at(state, total, images, labels, index):
        state, loss = step_of(network)(state, images[index], labels[index])
        return state, total + loss

    return jax.jit(step_at)


@mlp_epoch_on_device.implementation(modes=("mixed",), limit=few_enough_to_check, compiles=1)
def step_by_step(state, images, labels, *, network):
    """A Python loop over one jitted step, which takes its batch from those on the device."""
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
    # Which class is the largest may hang on the last bits, and an answer is right or wrong.
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
                differs="in Flax, with the loss and integer labels, batches of NumPy; there a network by hand with "
                "`vmap`, tfds's loader, a mean of a list of accuracies, and the test set's last 16 images; products in "
                "full float32",
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
    """Evaluation fed from the host, batches of (batch, 784) -> correct answers and summed loss of each.

    Source: JAX in Action, chapter 2.
    """
    logits = NETWORKS[network].model.apply({"params": params}, images)
    return jnp.sum(jnp.argmax(logits, 1) == labels), models.summed_cross_entropy(logits, labels)
