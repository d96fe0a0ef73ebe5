"""CNN on CIFAR-10: training a small convolutional network; what jit, donation, bfloat16 and its layers are worth."""

import math
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from flax import linen as nn

from harness import Cost, Figure, Peer, Published, itemsize, sizes, workload
from suites import datasets, models, peers

PLAIN = models.CNN()
BFLOAT16 = models.CNN(dtype=jnp.bfloat16)
DROPOUT = models.CNN(dropout=0.5)
BATCH_NORM = models.CNN(batch_norm=True)

LEARNING_RATE, DECAY, SQUARE_DECAY, EPSILON = 1e-4, 0.9, 0.999, 1e-8
"""Kingma & Ba, Adam, 2015, algorithm 1, with the learning rate of the notebook that `cnn_epoch` names."""

NORM_EPSILON, NORM_MOMENTUM = 1e-5, 0.99
"""Of Flax's batch normalisation."""

EPOCH_BATCH = 128
"""Of that notebook, whose epoch has 351 of them: 44,928 images."""

BATCHES_CHECKED = 3
"""Of an epoch: the reference takes seconds for one."""

ROUTED = 2e-2
"""Error allowed in a step. Which of four values is the largest, and whether it is positive, is a matter of rounding
where they are nearly equal, and a slope goes wholly one way or the other. Measured at 128 images: 3.5e-4 of the largest
slope in float32, whose other errors are below 1e-6, and 2.5e-3 with batch normalisation. TF32 rounds coarser."""

ROUTED_BFLOAT16 = 0.25
"""The same where slopes are computed in bfloat16: measured 0.12, in the slope of the first convolution's bias."""

EVALUATION_BATCHES = 8
"""Into which a test set is divided where it is evaluated in batches."""

# Inputs


def training_batch(batch):
    """Images (batch, 32, 32, 3) uint8 and labels (batch,) uint8."""
    images, labels = datasets.cifar10("train")
    return images[:batch], labels[:batch]


def training(key, *, batch, model=PLAIN):
    """State, images and labels of a step."""
    return models.cnn_state(key, model), *training_batch(batch)


def training_with_dropout(key, *, batch):
    """State, images and labels of a step, and the random key of all steps."""
    return *training(key, batch=batch, model=DROPOUT), jax.random.fold_in(key, 1)


def forward_batch(key, *, batch):
    """Parameters and images."""
    state, images, _ = training(key, batch=batch)
    return state.params, images


def test_images(key, *, images):
    """Parameters, images and labels."""
    inputs, labels = datasets.cifar10("test")
    return models.cnn_state(key, PLAIN).params, inputs[:images], labels[:images]


def epoch(key, *, images):
    """Batches of 128 images, or two smaller ones: a list of (state, images, labels)."""
    state, inputs, labels = training(key, batch=images)
    size = min(EPOCH_BATCH, images // 2)
    starts = range(0, images, size)
    return [(state, inputs[start : start + size], labels[start : start + size]) for start in starts]


# Reference: each layer gives its output, a function (its output's slope -> its parameters' slopes), and a function
# (its output's slope -> its input's slope)


def windows(x):
    """What a 3x3 kernel sees with zeros beyond the border, (b, h, w, c) -> (b, h, w, 9 c)."""
    padded = np.pad(x, ((0, 0), (1, 1), (1, 1), (0, 0)))
    seen = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), axis=(1, 2))
    return np.moveaxis(seen, 3, -1).reshape(*x.shape[:3], -1)


def convolution(x, layer):
    """(b, h, w, c) -> (b, h, w, d)."""
    kernel, seen = layer["kernel"], windows(x)
    channels = kernel.shape[-1]

    def of_parameters(slope):
        slopes = slope.reshape(-1, channels)
        gradient = seen.reshape(len(slopes), -1).T @ slopes
        every = {"kernel": gradient.reshape(kernel.shape), "bias": slopes.sum(0)}
        return {name: every[name] for name in layer}

    def of_input(slope):
        return windows(slope) @ kernel[::-1, ::-1].swapaxes(2, 3).reshape(-1, kernel.shape[2])

    return seen @ kernel.reshape(-1, channels) + layer.get("bias", 0), of_parameters, of_input


def normalisation(x, layer):
    """(b, h, w, c) -> the same, normal in each channel."""
    mean, variance = moments(x)
    deviation = np.sqrt(variance + NORM_EPSILON)
    normal = (x - mean) / deviation

    def of_parameters(slope):
        return {"scale": (slope * normal).sum((0, 1, 2)), "bias": slope.sum((0, 1, 2))}

    def of_input(slope):
        slope = slope * layer["scale"]
        return (slope - slope.mean((0, 1, 2)) - normal * (slope * normal).mean((0, 1, 2))) / deviation

    return normal * layer["scale"] + layer["bias"], of_parameters, of_input


def moments(x):
    """Mean and variance of each channel."""
    return x.mean((0, 1, 2)), x.var((0, 1, 2))


def rectified_pool(x):
    """ReLU, then the largest of each 2x2, (b, h, w, c) -> (b, h/2, w/2, c)."""
    batch, height, width, channels = x.shape
    squares = x.reshape(batch, height // 2, 2, width // 2, 2, channels).swapaxes(2, 3)
    squares = squares.reshape(batch, height // 2, width // 2, 4, channels)
    first = squares.argmax(3, keepdims=True)
    largest = np.take_along_axis(squares, first, 3)

    def of_input(slope):
        slopes = np.zeros_like(squares)
        np.put_along_axis(slopes, first, slope[:, :, :, None] * (largest > 0), 3)
        slopes = slopes.reshape(batch, height // 2, width // 2, 2, 2, channels).swapaxes(2, 3)
        return slopes.reshape(x.shape)

    return np.maximum(largest[:, :, :, 0], 0), None, of_input


def dense(x, layer):
    """(b, n) -> (b, m)."""

    def of_parameters(slope):
        return {"kernel": x.T @ slope, "bias": slope.sum(0)}

    return x @ layer["kernel"] + layer["bias"], of_parameters, lambda slope: slope @ layer["kernel"].T


def rectified(x):
    """ReLU."""
    return np.maximum(x, 0), None, lambda slope: slope * (x > 0)


def flat(x):
    """(b, h, w, c) -> (b, h w c)."""
    return x.reshape(len(x), -1), None, lambda slope: slope.reshape(x.shape)


def network(params, images, factors=1.0):
    """The layers with what each gave: a list of (name, output, slopes of its parameters, slope of its input).

    Args:
      factors: What hidden values are multiplied with, (b, 256): dropout.
    """
    layers = [("images", images / 255, None, None)]

    def add(name, function, *arguments):
        layers.append((name, *function(layers[-1][1], *arguments)))

    for number in range(len(models.CNN_CHANNELS)):
        for kind, function in (("Conv", convolution), ("BatchNorm", normalisation)):
            if (name := f"{kind}_{number}") in params:
                add(name, function, params[name])
        add("pool", rectified_pool)
    add("flat", flat)
    add("Dense_0", dense, params["Dense_0"])
    add("relu", rectified)
    add("dropout", lambda x: (x * factors, None, lambda slope: slope * factors))
    add("Dense_1", dense, params["Dense_1"])
    return layers


def logits_in_numpy(params, images):
    """The network, (b, 32, 32, 3) -> (b, 10)."""
    return network(params, images)[-1][1]


def log_softmax(logits):
    """Log-probabilities, (b, 10) -> (b, 10)."""
    shifted = logits - logits.max(1, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(1, keepdims=True))


def gradient_in_numpy(layers, labels):
    """Mean loss and its gradient, by back-propagation through what network() gave."""
    log_probabilities = log_softmax(layers[-1][1])
    right = np.eye(models.CNN_CLASSES)[labels]
    slope, gradient = (np.exp(log_probabilities) - right) / len(labels), {}
    for name, _, of_parameters, of_input in reversed(layers[1:]):
        if of_parameters is not None:
            gradient[name] = of_parameters(slope)
        if name != "Conv_0":  # nobody asks for the slope of an image
            slope = of_input(slope)
    return -log_probabilities[right == 1].mean(), gradient


def adam_in_numpy(params, optimiser, gradient):
    """Parameters and Adam's state after one step. Source: Kingma & Ba 2015, algorithm 1."""
    adam, *rest = optimiser
    count = adam.count + 1
    mean = jax.tree.map(lambda old, g: DECAY * old + (1 - DECAY) * g, adam.mu, gradient)
    square = jax.tree.map(lambda old, g: SQUARE_DECAY * old + (1 - SQUARE_DECAY) * g**2, adam.nu, gradient)

    def moved(param, m, v):
        m, v = m / (1 - DECAY**count), v / (1 - SQUARE_DECAY**count)
        return param - LEARNING_RATE * m / (np.sqrt(v) + EPSILON)

    return jax.tree.map(moved, params, mean, square), (adam._replace(count=count, mu=mean, nu=square), *rest)


def step_in_numpy(state, images, labels, factors=1.0):
    """A step of training, (state, images, labels) -> (state, loss)."""
    layers = network(state.params, images, factors)
    loss, gradient = gradient_in_numpy(layers, labels)
    params, optimiser = adam_in_numpy(state.params, state.optimiser, gradient)
    return models.CNNState(params, running_moments(state.batch_stats, layers), optimiser), loss


def running_moments(before, layers):
    """Batch normalisation's running means and variances after a step; empty without it."""
    outputs, after = {name: output for name, output, *_ in layers}, {}
    for name, old in before.items():
        mean, variance = moments(outputs[name.replace("BatchNorm", "Conv")])
        new = {"mean": mean, "var": variance}
        after[name] = {kind: NORM_MOMENTUM * old[kind] + (1 - NORM_MOMENTUM) * new[kind] for kind in new}
    return after


class _DropoutAlone(nn.Module):
    """The CNN's dropout by itself, of the same name, from which Flax derives its random key."""

    @nn.compact
    def __call__(self, x):
        return nn.Dropout(DROPOUT.dropout, deterministic=False)(x)


def dropout_step_in_numpy(state, images, labels, key):
    """The same with dropout; which values are left out is drawn as Flax draws it, once more."""
    ones = np.ones((len(images), models.CNN_HIDDEN), np.float32)
    key = jax.random.fold_in(key, int(state.optimiser[0].count))
    kept = np.asarray(_DropoutAlone().apply({}, ones, rngs={"dropout": key})) != 0
    return step_in_numpy(state, images, labels, factors=kept / (1 - DROPOUT.dropout))


def epoch_step_in_numpy(state, images, labels):
    """The loss of one of an epoch's first batches; of later ones NaN, for one takes seconds.

    The state is inside a function, where the check does not look: losses tell whether it was right, since each follows
    from all updates before it, while rounding errors of parameters grow from step to step.
    """
    state = state() if callable(state) else state
    if state.optimiser[0].count >= BATCHES_CHECKED:
        return jax.tree_util.Partial(lambda: state), np.nan
    state, loss = step_in_numpy(state, images, labels)
    return jax.tree_util.Partial(lambda: state), loss


def first_losses(result):
    """What epoch_step_in_numpy() gives, from ([[loss], …], [state])."""
    losses = np.array([loss for (loss,) in result[0]])
    losses[BATCHES_CHECKED:] = np.nan
    return list(losses)


def evaluation_in_numpy(params, images, labels):
    """Summed loss and number of images told right."""
    log_probabilities = log_softmax(logits_in_numpy(params, images))
    loss = -np.take_along_axis(log_probabilities, labels[:, None], 1).sum()
    return loss, (log_probabilities.argmax(1) == labels).sum()


# Cost


PARAMETERS = sum(
    inputs * outputs + outputs
    for inputs, outputs in (
        (9 * models.CNN_IMAGE[2], models.CNN_CHANNELS[0]),
        (9 * models.CNN_CHANNELS[0], models.CNN_CHANNELS[1]),
        (64 * models.CNN_CHANNELS[1], models.CNN_HIDDEN),  # after two poolings, 8 x 8
        (models.CNN_HIDDEN, models.CNN_CLASSES),
    )
)
"""1,070,794."""

ADAM_OPERATIONS = 14
"""Per parameter: 3 for the mean, 4 for the mean square, 2 for their bias, root, sum, quotient, and 2 for the update."""


def product_flops(batch):
    """Of each layer's products; what a kernel does beyond the border is not counted."""
    side = models.CNN_IMAGE[0]
    sums = (
        (3 * side - 2) ** 2 * models.CNN_IMAGE[2] * models.CNN_CHANNELS[0],
        (3 * side // 2 - 2) ** 2 * math.prod(models.CNN_CHANNELS),
        (side // 4) ** 2 * models.CNN_CHANNELS[1] * models.CNN_HIDDEN,
        models.CNN_HIDDEN * models.CNN_CLASSES,
    )
    return tuple(2 * batch * terms for terms in sums)


def forward_cost(batch):
    """Products; parameters and images are read once, logits written."""
    image_bytes = math.prod(models.CNN_IMAGE)
    held = PARAMETERS + batch * models.CNN_CLASSES
    return Cost(flops=sum(product_flops(batch)), bytes=itemsize("float32") * held + batch * image_bytes)


def step_cost(batch):
    """Products three times, but that for the slope of images; Adam reads and writes three arrays like parameters."""
    products = product_flops(batch)
    image_bytes = math.prod(models.CNN_IMAGE) + 1
    return Cost(
        flops=3 * sum(products) - products[0] + ADAM_OPERATIONS * PARAMETERS,
        bytes=6 * itemsize("float32") * PARAMETERS + batch * image_bytes,
    )


def epoch_cost(images):
    """As many steps as there are batches."""
    batches = max(2, images // EPOCH_BATCH)
    one = step_cost(images // batches)
    return Cost(flops=batches * one.flops, bytes=batches * one.bytes)


# PyTorch


def as_torch(state, images, labels):
    """A step's arguments as PyTorch has them; the state is its step, over parameters of its own.

    Its leaves are views of PyTorch's memory in the shapes that JAX has, so that nothing is converted when they are
    compared.
    """
    import torch
    from torch.nn import functional as F  # noqa: N812  as PyTorch's documentation has it

    made = {
        "Conv_0": torch.nn.Conv2d(3, 32, 3, padding=1),
        "Conv_1": torch.nn.Conv2d(32, 64, 3, padding=1),
        "Dense_0": torch.nn.Linear(64 * 8 * 8, models.CNN_HIDDEN),
        "Dense_1": torch.nn.Linear(models.CNN_HIDDEN, models.CNN_CLASSES),
    }
    layers = torch.nn.ModuleDict(made).to(memory_format=torch.channels_last)

    def forward(x):
        for name in ("Conv_0", "Conv_1"):
            x = F.max_pool2d(F.relu(layers[name](x)), 2)
        x = x.permute(0, 2, 3, 1).flatten(1)
        return layers["Dense_1"](F.relu(layers["Dense_0"](x)))

    def step(images, labels):
        optimiser.zero_grad()
        loss = F.cross_entropy(forward(images.float() / 255), labels)
        loss.backward()
        optimiser.step()
        return loss.detach()

    def in_jax_shapes(of):
        return {
            name: {"kernel": _last_first(of(layer.weight)), "bias": of(layer.bias)} for name, layer in layers.items()
        }

    @torch.no_grad()
    def fill(views, arrays):
        jax.tree.map(lambda view, array: view.copy_(torch.from_numpy(np.array(array))), views, arrays)

    optimiser = torch.optim.Adam(layers.parameters(), LEARNING_RATE, (DECAY, SQUARE_DECAY), EPSILON)
    adam, *rest = state.optimiser
    for parameter in layers.parameters():
        optimiser.state[parameter] = {
            "step": torch.tensor(float(adam.count)),
            "exp_avg": torch.zeros_like(parameter),
            "exp_avg_sq": torch.zeros_like(parameter),
        }
    remembered = adam._replace(
        count=optimiser.state[layers["Conv_0"].weight]["step"],
        mu=in_jax_shapes(lambda parameter: optimiser.state[parameter]["exp_avg"].detach()),
        nu=in_jax_shapes(lambda parameter: optimiser.state[parameter]["exp_avg_sq"].detach()),
    )
    params = in_jax_shapes(lambda parameter: parameter.detach())
    for views, arrays in ((params, state.params), (remembered.mu, adam.mu), (remembered.nu, adam.nu)):
        fill(views, arrays)
    channels_first = torch.from_numpy(np.array(images)).permute(0, 3, 1, 2)
    views = models.CNNState(params, state.batch_stats, (remembered, *rest))
    return jax.tree_util.Partial(step, views), channels_first, torch.from_numpy(labels.astype(np.int64))


def _last_first(weight):
    """PyTorch's weight as JAX's kernel: (out, in, h, w) -> (h, w, in, out), (out, in) -> (in, out)."""
    return weight.permute(2, 3, 1, 0) if weight.ndim == 4 else weight.T


def torch_step(state, images, labels):
    """The same network, loss and optimiser in PyTorch, channels last in memory."""
    return state, state.func(images, labels)


# Workloads


@workload(
    inputs=training,
    params={"batch": sizes(quick=8, default=128, gpu=1024, tpu=1024)},
    reference=step_in_numpy,
    cost=lambda *, batch: step_cost(batch),
    tolerance=ROUTED,
    peers={"torch": Peer(torch_step, limit=peers.needs_torch, convert=as_torch)},
    modes=("jit",),
    compiles=1,
    new_shape=lambda *, batch: {"batch": batch + 1},
    carry={"state": 0},
    data=datasets.cifar10_source,
)
def cnn_step(state, images, labels):
    """A step of training, (state, images (b, 32, 32, 3), labels (b,)) -> (state, loss).

    Source: the network of the notebook "JAX Speed Test"; Kingma & Ba, Adam, 2015.
    """
    return models.cnn_step(PLAIN, state, images, labels)


@cnn_step.implementation(modes=("jit",), donate=("state",))
def donated(state, images, labels):
    """The same with its state donated: parameters and moments are updated where they are."""
    return models.cnn_step(PLAIN, state, images, labels)


@workload(
    inputs=training,
    params={"batch": sizes(quick=8, gpu=(128, 1024), tpu=(128, 1024))},
    reference=step_in_numpy,
    cost=lambda *, batch: step_cost(batch),
    modes=("jit",),
    implementation="float32",
    tolerance=ROUTED_BFLOAT16,  # float32 is returned, so nothing else tells what it was computed in
    compiles=1,
    carry={"state": 0},
    data=datasets.cifar10_source,
)
def cnn_step_bfloat16(state, images, labels):
    """A step that computes in float32, (state, images (b, 32, 32, 3), labels (b,)) -> (state, loss).

    Source: as `cnn_step`; mixed precision is Micikevicius et al., Mixed Precision Training, 2018, section 3.1.
    """
    return models.cnn_step(PLAIN, state, images, labels)


@cnn_step_bfloat16.implementation
def bfloat16(state, images, labels):
    """The same in bfloat16; parameters, moments and the loss of the logits stay float32."""
    return models.cnn_step(BFLOAT16, state, images, labels)


@workload(
    inputs=training_with_dropout,
    params={"batch": sizes(quick=8, gpu=128, tpu=128)},
    reference=dropout_step_in_numpy,
    cost=lambda *, batch: step_cost(batch),
    tolerance=ROUTED,
    modes=("jit",),
    compiles=1,
    carry={"state": 0},
    data=datasets.cifar10_source,
)
def cnn_step_dropout(state, images, labels, key):
    """A step with dropout, (state, images (b, 32, 32, 3), labels (b,), key) -> (state, loss).

    Source: as `cnn_step`; Srivastava et al., Dropout, 2014, with rate 0.5 in the hidden layer.
    """
    key = jax.random.fold_in(key, state.optimiser[0].count)
    return models.cnn_step(DROPOUT, state, images, labels, rngs={"dropout": key})


@workload(
    inputs=partial(training, model=BATCH_NORM),
    params={"batch": sizes(quick=8, gpu=128, tpu=128)},
    reference=step_in_numpy,
    cost=lambda *, batch: step_cost(batch),
    tolerance=ROUTED,
    modes=("jit",),
    compiles=1,
    carry={"state": 0},
    data=datasets.cifar10_source,
)
def cnn_step_batch_norm(state, images, labels):
    """A step with batch normalisation, (state, images (b, 32, 32, 3), labels (b,)) -> (state, loss).

    Source: as `cnn_step`; Ioffe & Szegedy, Batch Normalization, 2015, algorithm 1.
    """
    return models.cnn_step(BATCH_NORM, state, images, labels)


@workload(
    inputs=forward_batch,
    params={"batch": sizes(quick=8, gpu=(128, 1024), tpu=(128, 1024))},
    reference=logits_in_numpy,
    cost=lambda *, batch: forward_cost(batch),
    modes=("eager", "jit"),
    compiles=1,
    new_shape=lambda *, batch: {"batch": batch + 1},
    data=datasets.cifar10_source,
)
def cnn_forward(params, images):
    """The network's logits, (parameters, images (b, 32, 32, 3)) -> (b, 10).

    Source: the network of the notebook "JAX Speed Test".
    """
    return PLAIN.apply({"params": params}, images)


@workload(
    inputs=test_images,
    params={"images": sizes(quick=64, full=2_000, gpu=10_000, tpu=10_000)},
    reference=evaluation_in_numpy,
    cost=lambda *, images: forward_cost(images),
    modes=("jit",),
    implementation="at_once",
    # Of some hundred images told right, one whose two best classes are nearly equal may be told as either.
    tolerance=2e-2,
    compiles=1,
    data=datasets.cifar10_source,
)
def cnn_evaluation(params, images, labels):
    """A test set as one batch, (parameters, images (n, 32, 32, 3), labels (n,)) -> summed loss, number told right.

    Source: as `cnn_forward`.
    """
    log_probabilities = jax.nn.log_softmax(cnn_forward(params, images))
    loss = -jnp.take_along_axis(log_probabilities, labels[:, None], 1).sum()
    return loss, (log_probabilities.argmax(1) == labels).sum()


@cnn_evaluation.implementation
def in_batches(params, images, labels):
    """The same in eight batches, one after the other (`lax.map`): an eighth of what lies between layers at a time."""
    size = len(images) // EVALUATION_BATCHES
    batches = images.reshape(-1, size, *images.shape[1:]), labels.reshape(-1, size)
    losses, right = jax.lax.map(lambda batch: cnn_evaluation(params, *batch), batches)
    return losses.sum(), right.sum()


@workload(
    inputs=epoch,
    params={"images": sizes(quick=16, default=4 * EPOCH_BATCH, full=351 * EPOCH_BATCH)},
    reference=epoch_step_in_numpy,
    cost=lambda *, images: epoch_cost(images),
    stream=True,
    modes=("eager", "jit"),
    compiles=1,
    carry={"state": 0},
    host=("images", "labels"),
    compare=first_losses,
    data=datasets.cifar10_source,
    published=(
        Published(
            source="notebook 'JAX Speed Test'",
            device="not stated",
            timed="an epoch of 351 batches of 128 with loading them",
            figure=Figure("cnn_epoch:eager", 29.0, 0.401),
            against=Figure("cnn_epoch:jit", 7.45, 0.0901),
            differs="4 batches, that are in the host's memory already; its time includes a data loader's",
            at={"images": 4 * EPOCH_BATCH},
        ),
    ),
)
def cnn_epoch(state, images, labels):
    """Steps over batches from the host's memory, (state, images (128, 32, 32, 3), labels (128,)) -> (state, loss).

    Source: notebook "JAX Speed Test", whose epochs of the CNN these are.
    """
    return models.cnn_step(PLAIN, state, images, labels)
