"""Batch: throughput and share of the peak that a training step gains from a larger batch; queued calls."""

from dataclasses import replace
from functools import partial

import jax

from jaxmeter import Answer, Items, Skip, State, levels, workload
from jaxmeter.suites import cnn, cnn_networks, compilation, datasets, models, transformer, transformer_networks
from jaxmeter.suites import networks_in_numpy as reference
from jaxmeter.suites.mlp_networks import steps_cost

QUEUED = 16
"""Calls in a row, as in a training loop that fetches its loss every few steps."""

MOST_ONE_BY_ONE = 64
"""Largest batch whose examples are computed with one call each."""

EXAMPLES = Items("examples", lambda *, batch: batch)

mlp_gradient = models.gradient_step(compilation.MLP.model, models.mean_cross_entropy)
mlp_update = models.update_step(compilation.SGD)


@workload(
    inputs=compilation.mlp_batch,
    params={"batch": levels(default=(1, 64, 512), full=(8, 4_096), by_device={"gpu": 4_096, "tpu": 4_096})},
    reference=reference.with_changes(compilation.mlp_step_in_numpy),
    compare=reference.result_and_changes,
    cost=lambda *, batch: steps_cost(compilation.MLP.widths, batch, 1),
    items=EXAMPLES,
    modes=("jit",),
    implementation="step",
    compiles=1,
    state=State(carry={"state": 0}, donate=("state",)),
    queued=QUEUED,
    level="default",
    answer=Answer(
        "What does a larger batch gain?",
        "step:jit",
        against="one_by_one:mixed",
        metric="items_per_s",
        at={"batch": MOST_ONE_BY_ONE},
        rank=7,
    ),
)
def mlp_batch(state, images, labels):
    """Training step of an MLP 784-512-10 with SGD on a whole batch, (state, (b, 784), (b,)) -> (state, loss).

    Source: the network of Sapunov, JAX in Action, 2022, chapter 2; JAX's documentation, "Asynchronous dispatch".
    """
    return compilation.mlp_step(state, images, labels)


@jax.jit
def gradient_at(variables, images, labels, at):
    """Return loss and gradient of one example of a batch."""
    (loss, _), slopes = mlp_gradient(variables, images[at][None], labels[at][None])
    return loss, slopes


def add_gradient_at(total, variables, images, labels, at):
    """Return `total` plus the loss and the gradient of one example."""
    return jax.tree.map(jax.numpy.add, total, gradient_at(variables, images, labels, at))


adding = jax.jit(add_gradient_at, donate_argnums=0)


@jax.jit
def update_by_mean(state, total, examples):
    """Return the new state and the mean loss, from losses and gradients summed over the examples."""
    loss, slopes = jax.tree.map(lambda leaf: leaf / examples, total)
    return mlp_update(state, slopes, {}), loss


def several(batch):
    """Return a Skip for a batch of one example, and for batches that need too many calls."""
    if batch == 1:
        return Skip("a batch of one example is the step itself")
    return Skip(f"measured up to {MOST_ONE_BY_ONE} calls") if batch > MOST_ONE_BY_ONE else None


@mlp_batch.implementation(modes=("mixed",), limit=several, compiles=3)
def one_by_one(state, images, labels):
    """The step with one example per call: the time of a batch of 1, times the number of examples.

    Gradients are added on the device, which costs each call about as much as an update. One update ends the step.
    """
    total = gradient_at(state[0], images, labels, 0)
    for at in range(1, len(images)):
        total = adding(total, state[0], images, labels, at)
    return update_by_mean(state, total, len(images))


@workload(
    inputs=cnn.training,
    params={"batch": levels(default=(1, 32), full=(8, 128, 512), by_device={"gpu": (128, 1_024), "tpu": (128, 1_024)})},
    reference=reference.with_changes(cnn.step_in_numpy),
    compare=reference.result_and_changes,
    tolerance=cnn_networks.ROUTED,
    cost=lambda *, batch: cnn_networks.step_cost(cnn.PLAIN, batch),
    items=EXAMPLES,
    modes=("jit",),
    implementation="step",
    compiles=1,
    state=State(carry={"state": 0}, donate=("state",)),
    queued=QUEUED,
    data=datasets.cifar10_source,
    level="default",
)
def cnn_batch(state, images, labels):
    """Training step of a CNN with Adam on a batch, (state, images (b, 32, 32, 3), labels (b,)) -> (state, loss).

    Source: the network of the notebook "JAX Speed Test".
    """
    return cnn.step_of(cnn.PLAIN)(state, images, labels)


def transformer_size(batch):
    """Return the smallest decoder of the suite transformer with this batch size."""
    return replace(transformer.SIZES[128], batch=batch)


@workload(
    inputs=lambda key, *, batch: transformer.training(key, transformer_size(batch)),
    params={"batch": levels(default=(1, 16), full=(4, 64), by_device={"gpu": (64, 256), "tpu": (64, 256)})},
    reference=partial(transformer.step_in_numpy, width=128),
    compare=transformer.step_and_changes,
    cost=lambda *, batch: transformer_networks.step_cost(transformer_size(batch)),
    items=Items("tokens", lambda *, batch: transformer_size(batch).tokens),
    modes=("jit",),
    implementation="step",
    compiles=1,
    state=State(carry={"state": 0}, donate=("state",)),
    queued=QUEUED,
    level="default",
)
def transformer_batch(graph, state, tokens):
    """Training step of a decoder with AdamW, (graph, state, tokens (b, 65)) -> (state, loss).

    Source: as `transformer_step`.
    """
    return transformer_networks.train_step(graph, state, tokens)
