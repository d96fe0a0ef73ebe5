"""Compilation: what the stages from Python to a program cost, and what ahead-of-time programs save."""

import contextlib
from functools import partial

import jax
import optax

from jaxmeter import Answer, State, workload
from jaxmeter.suites import cnn_networks, models, selu
from jaxmeter.suites import networks_in_numpy as reference
from jaxmeter.suites.mlp_networks import CLASSES, NETWORKS, PIXELS, steps_cost

MLP = NETWORKS["784-512-10"]
SGD_RATE = 0.1
SGD = optax.sgd(SGD_RATE)

CNN = models.CNN((16, 32), (CLASSES,))
"""The smallest network that has every kind of layer of a CNN."""

mlp_step = models.train_step(MLP.model, SGD, models.mean_cross_entropy)
cnn_step = models.train_step(CNN, models.CNN_OPTIMISER, models.mean_cross_entropy)


@workload(
    inputs=selu.activations,
    params={"n": 10_000, "dtype": "float32"},
    reference=selu.selu_in_numpy,
    modes=("jit", "aot"),
    implementation="selu",
    compiles=1,
)
def selu_ahead_of_time(x):
    """SELU, (n,) -> (n,), by jit's own dispatch and by the compiled object. Source: Klambauer et al. 2017."""
    return selu.selu(x)


@selu_ahead_of_time.implementation(modes=("mixed",), raises=TypeError)
def other_dtype(x):
    """The program for float32, called with bfloat16: it does not convert, and unlike jit it does not compile again."""
    return jax.jit(selu.selu.function).lower(x).compile()(x.astype("bfloat16"))


@selu_ahead_of_time.implementation(modes=("mixed",), raises=TypeError)
def other_shape(x):
    """The program for (n,), called with (n - 1,)."""
    return jax.jit(selu.selu.function).lower(x).compile()(x[1:])


@selu_ahead_of_time.implementation(modes=("mixed",), raises=TypeError)
def under_vmap(x):
    """The program for one number under `vmap`: no transformation can be applied to a compiled program."""
    return jax.vmap(jax.jit(selu.selu.function).lower(x[0]).compile())(x)


def exportable(kind):
    """Register a named tuple with `jax.export`, which otherwise cannot serialise a program that takes one."""
    with contextlib.suppress(ValueError):  # already registered, if this file was imported before
        jax.export.register_namedtuple_serialization(kind, serialized_name=f"{kind.__module__}.{kind.__name__}")


exportable(optax.EmptyState)  # the whole state of SGD
exportable(optax.ScaleByAdamState)


def mlp_batch(key, *, batch):
    """Return the first state, standard normal images (batch, 784), and labels (batch,)."""
    images, labels = random_batch(key, (batch, PIXELS))
    return models.initial_state(MLP.model, SGD, key, images), images, labels


def cnn_batch(key, *, batch):
    """Return the first state, standard normal images (batch, 32, 32, 3), and labels (batch,)."""
    return models.cnn_state(key, CNN, "float32"), *random_batch(key, (batch, *models.CNN_IMAGE))


def random_batch(key, shape):
    """Return standard normal images and labels from 0 to 9."""
    of_images, of_labels = jax.random.split(key)
    return jax.random.normal(of_images, shape), jax.random.randint(of_labels, shape[:1], 0, CLASSES)


def mlp_step_in_numpy(state, images, labels):
    """Return the result of a step of SGD on the mean loss."""
    network, update = partial(reference.mlp, activation=reference.swish), partial(reference.sgd, rate=SGD_RATE)
    return reference.train_step(network, update, state, images, labels)


def cnn_step_in_numpy(state, images, labels):
    """Return the result of a step of Adam on the mean loss."""
    update = partial(reference.adam, rate=models.CNN_RATE)
    return reference.train_step(reference.cnn, update, state, images, labels)


@workload(
    inputs=mlp_batch,
    params={"batch": 32},
    reference=reference.with_changes(mlp_step_in_numpy),
    compare=reference.result_and_changes,
    cost=lambda *, batch: steps_cost(MLP.widths, batch, 1),
    modes=("jit", "aot"),
    compiles=1,
    state=State(carry={"state": 0}, donate=("state",)),
    level="default",
    answer=Answer(
        "What does the first result cost?",
        "mlp_ahead_of_time:aot",
        against="mlp_ahead_of_time:jit",
        metric="first_result_s",
        rank=13,
    ),
)
def mlp_ahead_of_time(state, images, labels):
    """Training step of an MLP 784-512-10 with SGD: (state, (batch, 784), (batch,)) -> (state, loss).

    Source: Sapunov, JAX in Action, 2022, chapter 2.
    """
    return mlp_step(state, images, labels)


@workload(
    inputs=cnn_batch,
    params={"batch": 8},
    reference=reference.with_changes(cnn_step_in_numpy),
    compare=reference.result_and_changes,
    tolerance=cnn_networks.ROUTED,
    cost=lambda *, batch: cnn_networks.step_cost(CNN, batch, "float32"),
    modes=("jit", "aot"),
    compiles=1,
    state=State(carry={"state": 0}, donate=("state",)),
    level="full",
)
def cnn_ahead_of_time(state, images, labels):
    """Training step of a small CNN with Adam: (state, (batch, 32, 32, 3), (batch,)) -> (state, loss).

    Source: JAX's documentation, "Ahead-of-time lowering and compilation" and "Exporting and serialization".
    """
    return cnn_step(state, images, labels)
