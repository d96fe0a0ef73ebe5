"""CNN on CIFAR-10: training a small convolutional network; what jit, donation and bfloat16 are worth.

A step with dropout and one with batch normalisation are cases of their own: their times stand apart, without a ratio.
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
    """The training step of a network: Adam on the mean loss."""
    return models.train_step(model, models.CNN_OPTIMISER, models.mean_cross_entropy)


FUNCTIONS = functions_of(lambda params, images: PLAIN.apply({"params": params}, images), models.CNN_OPTIMISER)
PROGRAMS = FUNCTIONS.jitted()

EPOCH_BATCH = 128
WHOLE_EPOCH = 351 * EPOCH_BATCH
"""Of that notebook: 44,928 images."""

LONGEST_EPOCH_S = 600.0
"""Of one pass: eager, the full epoch takes 64 to 99 s on two cores."""

BATCHES_CHECKED = 3
"""Of an epoch: the reference takes a second for one. The state is compared where an epoch has no more."""

UPDATE_BFLOAT16 = 0.2
"""Error allowed in loss, length and direction of an update that is computed in bfloat16. Measured at 8 images: 5e-5,
9e-3 and 9e-2; at 128: 7e-5, 3e-3 and 3e-2. Of single entries little is left: slopes that nearly cancel, as those of the
first convolution's bias, are off by half of the largest."""

EVALUATION_BATCHES = 8
"""Into which a test set is divided where it is evaluated in batches."""

# Inputs


def in_both_layouts(key, *, batch):
    """Standard normal (batch, 32, 32, 32), channels last and channels first, and a kernel (3, 3, 32, 64)."""
    side, channels = models.CNN_IMAGE[0], models.CNN_CHANNELS
    first, second = jax.random.split(key)
    images = jax.random.normal(first, (batch, side, side, channels[0]))
    kernel = jax.random.normal(second, (3, 3, *channels)) / math.sqrt(9 * channels[0])
    return {"NHWC": images, "NCHW": images.transpose(0, 3, 1, 2)}, kernel


def training_batch(batch):
    """Images (batch, 32, 32, 3) uint8 and labels (batch,) uint8."""
    return datasets.cifar10("train", batch)


def training(key, *, batch, model=PLAIN):
    """State, images and labels of a step."""
    return models.cnn_state(key, model), *training_batch(batch)


def training_with_dropout(key, *, batch):
    """State, images and labels of a step, and the random key of all steps."""
    return *training(key, batch=batch, model=DROPOUT), jax.random.fold_in(key, 1)


def forward_batch(key, *, batch):
    """Parameters and images."""
    (variables, _), images, _ = training(key, batch=batch)
    return variables["params"], images


def test_images(key, *, images):
    """Parameters, images and labels."""
    variables, _ = models.cnn_state(key, PLAIN)
    return variables["params"], *datasets.cifar10("test", images)


def epoch(key, *, images):
    """State; images (n, 32, 32, 3) uint8, one-hot labels, and means and deviations of channels (3,), on the host.

    The loader's first batches come last, on the device.
    """
    pictures, labels = datasets.cifar10("train", images)
    targets = one_hot(labels, models.CNN_CLASSES)
    channels = tuple(f(pictures, axis=(0, 1, 2), dtype=np.float32) for f in (np.mean, np.std))
    batches = list(islice(loaded(pictures, targets, channels), BATCHES_CHECKED))
    return models.cnn_state(key, PLAIN, "float32"), pictures, targets, channels, batches


def loaded(images, targets, channels):
    """Batches of 128, or two smaller ones."""
    means, deviations = channels
    size = min(EPOCH_BATCH, len(images) // 2)
    return augmentation.load(images, targets, batch=size, means=means, deviations=deviations)


# Reference


def logits_in_numpy(params, images):
    """The network, (b, 32, 32, 3) -> (b, 10)."""
    return reference.output_of(reference.forward(reference.cnn(params), images / 255))


def step_in_numpy(state, images, labels, factors=1.0):
    """A step of training, (state, images, labels) -> (state, loss)."""
    network, update = partial(reference.cnn, factors=factors), partial(reference.adam, rate=models.CNN_RATE)
    return reference.train_step(network, update, state, images / 255, labels)


def steps_before(state):
    """How many steps Adam remembers."""
    _, (adam, *_) = state
    return adam.count


class _DropoutAlone(nn.Module):
    """The CNN's dropout by itself, of the same name, from which Flax derives its random key."""

    @nn.compact
    def __call__(self, x):
        return nn.Dropout(DROPOUT.dropout, deterministic=False)(x)


def dropout_step_in_numpy(state, images, labels, key):
    """The same with dropout; which values are left out is drawn as Flax draws it, once more."""
    ones = np.ones((len(images), models.CNN_HIDDEN), np.float32)
    key = jax.random.fold_in(key, int(steps_before(state)))
    kept = np.asarray(_DropoutAlone().apply({}, ones, rngs={"dropout": key})) != 0
    return step_in_numpy(state, images, labels, factors=kept / (1 - DROPOUT.dropout))


def changed_in_epoch(after, before):
    """What of a state is compared after an epoch: how much each number of it changed, Adam's moments and count too."""
    return jax.tree.map(np.subtract, after, before)


def changed_in_bfloat16(after, before):
    """The same in the format whose tolerance, 3e-2 of the largest change, suits it; losses keep that of their own.

    Adam's second moments begin at 1e-5, so that its first steps are no signs, and single entries agree. How well is a
    matter of how float32 rounds parameters, which are thousands of times as large as their changes: measured after two
    batches of 128, eager and jitted alike, 1e-3 of the largest change in the first convolution's kernel, 2e-4 in other
    kernels, 9e-6 in biases. To that comes what `ROUTED` allows. Of parameters that one of the two updates left alone it
    is 0.5. Of the error that the check tells, up to 4e-3 is bfloat16's own.
    """
    return jax.tree.map(
        lambda change: change.astype(jnp.bfloat16) if np.issubdtype(change.dtype, np.floating) else change,
        changed_in_epoch(after, before),
    )


def epoch_in_numpy(state, images, targets, channels, batches):
    """The first steps, of which the reference takes a second each."""
    step = partial(reference.train_step, reference.cnn, partial(reference.adam, rate=models.CNN_RATE))
    after, losses, means = train_in_numpy(state, batches, step=step, network=reference.cnn)
    later = [np.nan] * (len(images) // len(batches[0][1]) - len(batches))
    return reference.first_losses(after, losses + later, means, state, told=changed_in_epoch, checked=BATCHES_CHECKED)


def first_batches(result, *, inputs):
    """What is compared with that."""
    return reference.first_losses(*result, inputs[0], told=changed_in_bfloat16, checked=BATCHES_CHECKED)


def evaluation_in_numpy(params, images, labels):
    """Summed loss and number of images told right."""
    logits = logits_in_numpy(params, images)
    return reference.cross_entropy(logits, labels).sum(), (logits.argmax(1) == labels).sum()


# Cost


def forward_cost(batch):
    """Products; parameters and images are read once, logits written."""
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
    """A step of training, (state, images (b, 32, 32, 3), labels (b,)) -> (state, loss).

    Source: the network of the notebook "JAX Speed Test"; Kingma & Ba, Adam, 2015.
    """
    return step_of(PLAIN)(state, images, labels)


@cnn_step.implementation(modes=("jit",), donate=("state",))
def donated(state, images, labels):
    """The same with its state donated: parameters and moments are updated where they are."""
    return step_of(PLAIN)(state, images, labels)


@workload(
    inputs=training,
    params={"batch": levels(quick=8, full=128, by_device={"gpu": (128, 1024), "tpu": (128, 1024)})},
    reference=reference.loss_and_update(step_in_numpy),
    compare=reference.told_of_step,
    cost=lambda *, batch: step_cost(PLAIN, batch),
    items=Items("examples", lambda *, batch: batch),
    modes=("jit",),
    implementation="float32",
    tolerance=UPDATE_BFLOAT16,  # float32 is returned, so nothing else tells what it was computed in
    compiles=1,
    state=State(carry={"state": 0}),
    data=datasets.cifar10_source,
    level="full",
)
def cnn_step_bfloat16(state, images, labels):
    """A step that computes in float32, (state, images (b, 32, 32, 3), labels (b,)) -> (state, loss).

    Source: as `cnn_step`; mixed precision is Micikevicius et al., Mixed Precision Training, 2018, section 3.1.
    """
    return step_of(PLAIN)(state, images, labels)


@cnn_step_bfloat16.implementation
def bfloat16(state, images, labels):
    """The same in bfloat16; parameters, moments and the loss of the logits stay float32."""
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
    """A step with dropout, (state, images (b, 32, 32, 3), labels (b,), key) -> (state, loss).

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
    """A step with batch normalisation, (state, images (b, 32, 32, 3), labels (b,)) -> (state, loss).

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
    """The same with NumPy, by channels last."""
    seen = reference.convolution({"kernel": kernel}, images["NHWC"]).output
    return np.maximum(seen, 0).mean((1, 2))


def means_by(layout, images, kernel):
    """Convolution, relu and the mean of each channel, (b, 32, 32, 32) in a layout, (3, 3, 32, 64) -> (b, 64)."""
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
    """The same with channels first, (b, 32, 32, 32) -> (b, 64)."""
    return means_by("NCHW", images, kernel)


@workload(
    inputs=test_images,
    params={"images": levels(quick=64, full=2_000, by_device={"gpu": 10_000, "tpu": 10_000})},
    reference=evaluation_in_numpy,
    cost=lambda *, images: forward_cost(images),
    modes=("jit",),
    implementation="at_once",
    # Which class is the largest may hang on the last bits, and an image is told right or wrong.
    needs=Needs(config={"jax_default_matmul_precision": "highest"}),
    compiles=1,
    data=datasets.cifar10_source,
    level="full",
)
def cnn_evaluation(params, images, labels):
    """A test set as one batch, (parameters, images (n, 32, 32, 3), labels (n,)) -> summed loss, number told right.

    Source: as `cnn_forward`.
    """
    logits = cnn_forward(params, images)
    return models.summed_cross_entropy(logits, labels), (logits.argmax(1) == labels).sum()


@cnn_evaluation.implementation
def in_batches(params, images, labels):
    """The same in eight batches, one after the other (`lax.map`): an eighth of what lies between layers at a time."""
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
            timed="an epoch of 351 batches of 128, with loading them",
            figure=Figure("eager_step:mixed", 29.0, 0.401),
            against=Figure("jitted_step:mixed", 7.45, 0.0901),
            differs="its loader's two workers are processes, ours threads",
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
    """Epoch of the CNN, two threads loading, (n, 32, 32, 3), (n, 10) -> state, losses, mean loss and accuracy.

    Images are shuffled, cropped, flipped and normalised at random. Source: notebook "JAX Speed Test".
    """
    return train(PROGRAMS, state, loaded(images, targets, channels))


@cnn_epoch.implementation
def eager_step(state, images, targets, channels, batches):
    """The same without jit: every operation is called by itself."""
    return train(FUNCTIONS, state, loaded(images, targets, channels))


@cnn_epoch.implementation
def program_alone(state, images, targets, channels, batches):
    """As many steps, over the first three batches again and again, on the device before the time begins."""
    return train(PROGRAMS, state, islice(cycle(batches), len(images) // len(batches[0][1])))
