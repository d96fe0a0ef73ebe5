"""CNN on CIFAR-10: training of a small convolutional network, and what jit, donation and bfloat16 gain.

A step with dropout and one with batch normalisation are separate cases: no ratio relates their times to the plain step.
"""

import math
from functools import cache, partial
from itertools import cycle, islice

import jax
import jax.numpy as jnp
import numpy as np
from flax import linen as nn

from jaxmeter import Answer, Caching, Cost, Figure, Items, Needs, Peer, Published, State, itemsize, levels, workload
from jaxmeter.suites import augmentation, cnn_in_torch, datasets, models, peers
from jaxmeter.suites import networks_in_numpy as reference
from jaxmeter.suites.cnn_networks import ROUTED, forward_flops, kernel_pixels, params_in, step_cost
from jaxmeter.suites.published import at_both_sizes
from jaxmeter.suites.speed_test import SPEED_TEST, functions_of, one_hot, train, train_in_numpy

PLAIN = models.CNN()
BFLOAT16 = models.CNN(dtype=jnp.bfloat16)
DROPOUT = models.CNN(dropout=0.5)
BATCH_NORM = models.CNN(batch_norm=True)


@cache
def step_of(model):
    """Return the training step of a network: Adam on the mean loss."""
    return models.train_step(model, models.CNN_OPTIMISER, models.mean_cross_entropy)


FUNCTIONS = functions_of(lambda params, images: PLAIN.apply({"params": params}, images), models.CNN_OPTIMISER)
PROGRAMS = FUNCTIONS.jitted()

EPOCH_BATCH = 128
WHOLE_EPOCH = 351 * EPOCH_BATCH
"""Images of an epoch of the notebook "JAX Speed Test": 44,928."""

LONGEST_EPOCH_S = 600.0
"""Time limit of one pass: an eager full epoch takes 64 to 99 s on two cores."""

BATCHES_CHECKED = 3
"""Batches of an epoch that are checked: the reference takes a second per batch. The state is compared if the epoch has
no more batches."""

UPDATE_BFLOAT16 = 0.2
"""Error allowed in loss, length and direction of an update that is computed in bfloat16. Measured at 8 images: 5e-5,
9e-3 and 9e-2; at 128 images: 7e-5, 3e-3 and 3e-2. Single entries have few correct digits: gradients that nearly cancel,
such as those of the first convolution's bias, are off by half of the largest."""

EVALUATION_BATCHES = 8
"""Batches into which `in_batches` divides a test set."""

# Inputs


def in_both_layouts(key, *, batch):
    """Return standard normal images (batch, 32, 32, 32) in both layouts, and a kernel (3, 3, 32, 64)."""
    side, channels = models.CNN_IMAGE[0], models.CNN_CHANNELS
    first, second = jax.random.split(key)
    images = jax.random.normal(first, (batch, side, side, channels[0]))
    kernel = jax.random.normal(second, (3, 3, *channels)) / math.sqrt(9 * channels[0])
    return {"NHWC": images, "NCHW": images.transpose(0, 3, 1, 2)}, kernel


def training_batch(batch):
    """Return images (batch, 32, 32, 3) uint8 and labels (batch,) uint8."""
    return datasets.cifar10("train", batch)


def training(key, *, batch, model=PLAIN):
    """Return the state, images and labels of a step."""
    return models.cnn_state(key, model), *training_batch(batch)


def training_with_dropout(key, *, batch):
    """Return the state, images and labels of a step, and the random key of all steps."""
    return *training(key, batch=batch, model=DROPOUT), jax.random.fold_in(key, 1)


def forward_batch(key, *, batch):
    """Return parameters and images."""
    (variables, _), images, _ = training(key, batch=batch)
    return variables["params"], images


def test_images(key, *, images):
    """Return parameters, and images and labels of the test set."""
    variables, _ = models.cnn_state(key, PLAIN)
    return variables["params"], *datasets.cifar10("test", images)


def epoch(key, *, images):
    """Return the state, images (n, 32, 32, 3) uint8, one-hot labels, channel statistics, and the first batches.

    The statistics are means and deviations of channels, (3,) each. Images, labels and statistics are on the host. The
    loader's first batches are on the device.
    """
    pictures, labels = datasets.cifar10("train", images)
    targets = one_hot(labels, models.CNN_CLASSES)
    channels = tuple(f(pictures, axis=(0, 1, 2), dtype=np.float32) for f in (np.mean, np.std))
    batches = list(islice(loaded(pictures, targets, channels), BATCHES_CHECKED))
    return models.cnn_state(key, PLAIN, "float32"), pictures, targets, channels, batches


def loaded(images, targets, channels):
    """Return the loader of batches of 128 images, or of two smaller batches for fewer than 256 images."""
    means, deviations = channels
    size = min(EPOCH_BATCH, len(images) // 2)
    return augmentation.load(images, targets, batch=size, means=means, deviations=deviations)


# Reference


def logits_in_numpy(params, images):
    """Return the network's logits, (b, 32, 32, 3) -> (b, 10)."""
    return reference.output_of(reference.forward(reference.cnn(params), images / 255))


def step_in_numpy(state, images, labels, factors=1.0):
    """Return the result of a training step, (state, images, labels) -> (state, loss)."""
    network, update = partial(reference.cnn, factors=factors), partial(reference.adam, rate=models.CNN_RATE)
    return reference.train_step(network, update, state, images / 255, labels)


def steps_before(state):
    """Return the number of steps that Adam has counted."""
    _, (adam, *_) = state
    return adam.count


class _DropoutAlone(nn.Module):
    """The CNN's dropout layer alone, under the same name, because Flax derives the layer's random key from its name."""

    @nn.compact
    def __call__(self, x):
        return nn.Dropout(DROPOUT.dropout, deterministic=False)(x)


def dropout_step_in_numpy(state, images, labels, key):
    """Return the result of a training step with dropout, whose mask is drawn again as Flax draws it."""
    ones = np.ones((len(images), models.CNN_HIDDEN), np.float32)
    key = jax.random.fold_in(key, int(steps_before(state)))
    kept = np.asarray(_DropoutAlone().apply({}, ones, rngs={"dropout": key})) != 0
    return step_in_numpy(state, images, labels, factors=kept / (1 - DROPOUT.dropout))


def changed_in_epoch(after, before):
    """Return what is compared of a state: how much each number changed, including Adam's moments and count."""
    return jax.tree.map(np.subtract, after, before)


def changed_in_bfloat16(after, before):
    """Return these changes as bfloat16, because its tolerance of 3e-2 of the largest change suits them.

    Losses keep the tolerance of their own format. Adam's second moments start at 1e-5, so its first steps are not mere
    signs of gradients, and single entries agree. The agreement is limited by how float32 rounds parameters, which are
    thousands of times as large as their changes. The error is relative to the largest change. Measured after two
    batches of 128, eager and jitted: 1e-3 in the first convolution's kernel, 2e-4 in other kernels, 9e-6 in biases.
    The error that `ROUTED` allows comes in addition. If one of the two updates leaves parameters unchanged, their error
    is 0.5. Up to 4e-3 of the error that the check reports is the rounding of bfloat16.
    """
    return jax.tree.map(
        lambda change: change.astype(jnp.bfloat16) if np.issubdtype(change.dtype, np.floating) else change,
        changed_in_epoch(after, before),
    )


def epoch_in_numpy(state, images, targets, channels, batches):
    """Return what is compared of an epoch after its first steps; the reference takes a second per step."""
    step = partial(reference.train_step, reference.cnn, partial(reference.adam, rate=models.CNN_RATE))
    after, losses, means = train_in_numpy(state, batches, step=step, network=reference.cnn)
    later = [np.nan] * (len(images) // len(batches[0][1]) - len(batches))
    return reference.first_losses(
        after, losses + later, means, state, compare=changed_in_epoch, checked=BATCHES_CHECKED
    )


def first_batches(result, *, inputs):
    """Return what is compared with the result of `epoch_in_numpy`."""
    return reference.first_losses(*result, inputs[0], compare=changed_in_bfloat16, checked=BATCHES_CHECKED)


def evaluation_in_numpy(params, images, labels):
    """Return the summed loss and the number of correctly classified images."""
    logits = logits_in_numpy(params, images)
    return reference.cross_entropy(logits, labels).sum(), (logits.argmax(1) == labels).sum()


# Cost


def forward_cost(batch):
    """Return the cost of a forward pass: products; parameters and images are read once, logits are written."""
    held = params_in(PLAIN) + batch * models.CNN_CLASSES
    image_bytes = batch * math.prod(models.CNN_IMAGE)
    return Cost(flops=forward_flops(PLAIN, batch), bytes=itemsize("float32") * held + image_bytes)


# Workloads


@workload(
    inputs=training,
    params={"batch": levels(quick=8, full=128, by_device={"gpu": (128, 1024), "tpu": (128, 1024)})},
    reference=reference.with_changes(step_in_numpy),
    compare=reference.result_and_changes,
    cost=lambda *, batch: step_cost(PLAIN, batch),
    items=Items("examples", lambda *, batch: batch),
    tolerance=ROUTED,
    peers={
        "torch": Peer(cnn_in_torch.step, limit=peers.needs_torch, convert=cnn_in_torch.arguments),
        "torch.compile": Peer(
            cnn_in_torch.compiled_step,
            limit=peers.needs_torch_and_compiler,
            convert=cnn_in_torch.compiled_arguments,
        ),
    },
    modes=("jit",),
    compiles=1,
    caching=Caching(new_shape=lambda *, batch: {"batch": batch + 1}),
    state=State(carry={"state": 0}),
    data=datasets.cifar10_source,
    level="default",
)
def cnn_step(state, images, labels):
    """Training step, (state, images (b, 32, 32, 3), labels (b,)) -> (state, loss).

    Source: the network of the notebook "JAX Speed Test"; Kingma & Ba, Adam, 2015.
    """
    return step_of(PLAIN)(state, images, labels)


@cnn_step.implementation(modes=("jit",), donate=("state",))
def donated(state, images, labels):
    """Training step with donated state: parameters and moments are updated in place."""
    return step_of(PLAIN)(state, images, labels)


@workload(
    inputs=training,
    params={"batch": levels(quick=8, full=128, by_device={"gpu": (128, 1024), "tpu": (128, 1024)})},
    reference=reference.loss_and_update(step_in_numpy),
    compare=reference.compared_of_step,
    cost=lambda *, batch: step_cost(PLAIN, batch),
    items=Items("examples", lambda *, batch: batch),
    modes=("jit",),
    implementation="float32",
    tolerance=UPDATE_BFLOAT16,  # results are float32, so their dtype does not show the format of the computation
    compiles=1,
    state=State(carry={"state": 0}),
    data=datasets.cifar10_source,
    level="full",
)
def cnn_step_bfloat16(state, images, labels):
    """Training step in float32, (state, images (b, 32, 32, 3), labels (b,)) -> (state, loss).

    Source: as `cnn_step`; mixed precision is Micikevicius et al., Mixed Precision Training, 2018, section 3.1.
    """
    return step_of(PLAIN)(state, images, labels)


@cnn_step_bfloat16.implementation
def bfloat16(state, images, labels):
    """Training step in bfloat16; parameters, moments and the loss of the logits stay float32."""
    return step_of(BFLOAT16)(state, images, labels)


@workload(
    inputs=training_with_dropout,
    params={"batch": levels(quick=8, full=128, by_device={"gpu": 128, "tpu": 128})},
    reference=reference.with_changes(dropout_step_in_numpy),
    compare=reference.result_and_changes,
    cost=lambda *, batch: step_cost(PLAIN, batch),
    items=Items("examples", lambda *, batch: batch),
    tolerance=ROUTED,
    modes=("jit",),
    compiles=1,
    state=State(carry={"state": 0}),
    data=datasets.cifar10_source,
    level="full",
)
def cnn_step_dropout(state, images, labels, key):
    """Training step with dropout, (state, images (b, 32, 32, 3), labels (b,), key) -> (state, loss).

    Source: as `cnn_step`; Srivastava et al., Dropout, 2014, with rate 0.5 in the hidden layer.
    """
    return step_of(DROPOUT)(state, images, labels, rngs={"dropout": jax.random.fold_in(key, steps_before(state))})


@workload(
    inputs=partial(training, model=BATCH_NORM),
    params={"batch": levels(quick=8, full=128, by_device={"gpu": 128, "tpu": 128})},
    reference=reference.with_changes(step_in_numpy),
    compare=reference.result_and_changes,
    cost=lambda *, batch: step_cost(BATCH_NORM, batch),
    items=Items("examples", lambda *, batch: batch),
    tolerance=ROUTED,
    modes=("jit",),
    compiles=1,
    state=State(carry={"state": 0}),
    data=datasets.cifar10_source,
    level="full",
)
def cnn_step_batch_norm(state, images, labels):
    """Training step with batch normalisation, (state, images (b, 32, 32, 3), labels (b,)) -> (state, loss).

    Source: as `cnn_step`; Ioffe & Szegedy, Batch Normalization, 2015, algorithm 1.
    """
    return step_of(BATCH_NORM)(state, images, labels)


@workload(
    inputs=forward_batch,
    params={"batch": levels(quick=8, full=128, by_device={"gpu": (128, 1024), "tpu": (128, 1024)})},
    reference=logits_in_numpy,
    cost=lambda *, batch: forward_cost(batch),
    modes=("eager", "jit"),
    compiles=1,
    caching=Caching(new_shape=lambda *, batch: {"batch": batch + 1}),
    data=datasets.cifar10_source,
    level="default",
)
def cnn_forward(params, images):
    """The network's logits, (parameters, images (b, 32, 32, 3)) -> (b, 10).

    Source: the network of the notebook "JAX Speed Test".
    """
    return PLAIN.apply({"params": params}, images)


def means_in_numpy(images, kernel):
    """Return the means after convolution and relu with NumPy, channels last."""
    seen = reference.convolution({"kernel": kernel}, images["NHWC"]).output
    return np.maximum(seen, 0).mean((1, 2))


def means_by(layout, images, kernel):
    """Return each channel's mean after convolution and relu, (b, 32, 32, 32) in a layout, (3, 3, 32, 64) -> (b, 64)."""
    dimensions = (layout, "HWIO", layout)
    seen = jax.lax.conv_general_dilated(images[layout], kernel, (1, 1), "SAME", dimension_numbers=dimensions)
    return jnp.maximum(seen, 0).mean((layout.index("H"), layout.index("W")))


@workload(
    inputs=in_both_layouts,
    params={"batch": levels(quick=8, full=128, by_device={"gpu": (128, 1024), "tpu": (128, 1024)})},
    reference=means_in_numpy,
    cost=lambda *, batch: Cost(flops=2 * batch * kernel_pixels(models.CNN_IMAGE[0]) * math.prod(models.CNN_CHANNELS)),
    modes=("jit",),
    implementation="NHWC",
    compiles=1,
    caching=Caching(new_shape=lambda *, batch: {"batch": batch + 1}),
    level="full",
)
def cnn_layout(images, kernel):
    """Convolution, relu and mean with channels last, ((b, 32, 32, 32), (3, 3, 32, 64)) -> (b, 64).

    Source: JAX's documentation of `jax.lax.conv_general_dilated`, whose `dimension_numbers` name the layouts.
    """
    return means_by("NHWC", images, kernel)


@cnn_layout.implementation(name="NCHW")
def channels_first(images, kernel):
    """Convolution, relu and mean with channels first, ((b, 32, 32, 32), (3, 3, 32, 64)) -> (b, 64)."""
    return means_by("NCHW", images, kernel)


@workload(
    inputs=test_images,
    params={"images": levels(quick=64, full=2_000, by_device={"gpu": 10_000, "tpu": 10_000})},
    reference=evaluation_in_numpy,
    cost=lambda *, images: forward_cost(images),
    modes=("jit",),
    implementation="at_once",
    # The last bits can decide which class is the largest, and so whether an image counts as correct.
    needs=Needs(config={"jax_default_matmul_precision": "highest"}),
    compiles=1,
    data=datasets.cifar10_source,
    level="full",
)
def cnn_evaluation(params, images, labels):
    """Evaluation of a test set as one batch, (parameters, images (n, 32, 32, 3), labels (n,)) -> (loss, correct).

    The loss is summed over the images, and the correctly classified images are counted.

    Source: as `cnn_forward`.
    """
    logits = cnn_forward(params, images)
    return models.summed_cross_entropy(logits, labels), (logits.argmax(1) == labels).sum()


@cnn_evaluation.implementation
def in_batches(params, images, labels):
    """Evaluation in eight successive batches (`lax.map`): an eighth of the activations between layers at a time."""
    size = len(images) // EVALUATION_BATCHES
    batches = images.reshape(-1, size, *images.shape[1:]), labels.reshape(-1, size)
    losses, right = jax.lax.map(lambda batch: cnn_evaluation(params, *batch), batches)
    return losses.sum(), right.sum()


@workload(
    inputs=epoch,
    params={"images": levels(default=2 * EPOCH_BATCH, full=WHOLE_EPOCH)},
    reference=epoch_in_numpy,
    compare=first_batches,
    items=Items("examples", lambda *, images: images),
    modes=("mixed",),
    implementation="jitted_step",
    baseline="eager_step:mixed",
    state=State(carry={"state": 0}),
    needs=Needs(host=("images", "targets", "channels")),
    time_limit_s=LONGEST_EPOCH_S,
    data=datasets.cifar10_source,
    published=at_both_sizes(
        Published(
            source=SPEED_TEST,
            device="not stated",
            timed="an epoch of 351 batches of 128, loading included",
            figure=Figure("eager_step:mixed", 29.0, 0.401),
            against=Figure("jitted_step:mixed", 7.45, 0.0901),
            differs="its loader uses two worker processes, ours two threads",
        ),
        whole={"images": WHOLE_EPOCH},
        short={"images": 2 * EPOCH_BATCH},
        has="2 of its 351 batches",
    ),
    level="default",
    answer=Answer(
        "Is jit worth it for a CNN?",
        "jitted_step:mixed",
        against="eager_step:mixed",
        rank=9,
    ),
)
def cnn_epoch(state, images, targets, channels, batches):
    """Epoch of the CNN with two loading threads, (n, 32, 32, 3), (n, 10) -> state, losses, mean loss and accuracy.

    The loader shuffles images, crops and flips them at random, and normalises them. Source: notebook "JAX Speed Test".
    """
    return train(PROGRAMS, state, loaded(images, targets, channels))


@cnn_epoch.implementation
def eager_step(state, images, targets, channels, batches):
    """Epoch without jit: every operation is a separate call."""
    return train(FUNCTIONS, state, loaded(images, targets, channels))


@cnn_epoch.implementation
def program_alone(state, images, targets, channels, batches):
    """As many steps over the first three batches in turn, which are on the device before timing starts."""
    return train(PROGRAMS, state, islice(cycle(batches), len(images) // len(batches[0][1])))
