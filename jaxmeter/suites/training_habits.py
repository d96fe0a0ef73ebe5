"""Training habits: the cost of printing, checking and reading numbers at every step of a training loop."""

import contextlib
import io
import math
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax import linen as nn
from jax.experimental import checkify

from jaxmeter import Answer, Items, State, levels, workload
from jaxmeter.suites import datasets, models
from jaxmeter.suites import networks_in_numpy as reference
from jaxmeter.suites.mlp_networks import CLASSES, PIXELS

BATCH = 32
"""Batch size. Every step uses the same batch, which is on the device before the loop begins."""

STEPS = 100
"""Steps of a loop."""

EVERY = 50
"""Steps between two readings of the metrics, in the variant that does not read them at every step."""

RATE = 0.1
"""Learning rate of the first step; it decays to 0 along half a cosine."""


def rate_at(step, xp=jnp):
    """Return the learning rate. Source: Loshchilov & Hutter, SGDR, 2017, equation 5, without restarts."""
    return RATE / 2 * (1 + xp.cos(math.pi * step / STEPS))


def rate_by_callback(step):
    """Return the learning rate from NumPy; the running program calls Python for it."""
    shape = jax.ShapeDtypeStruct((), jnp.float32)
    return jax.pure_callback(lambda step: np.float32(rate_at(step, np)), shape, step)


# Steps


def gradient(state, images, labels):
    """Return gradients of an MLP with the widths of the state, and metrics: loss and norm of the gradients."""
    model = models.MLP((state[0]["params"]["Dense_0"]["bias"].size, CLASSES), nn.swish)
    (loss, _), slopes = models.gradient_step(model, models.mean_cross_entropy)(state[0], images, labels)
    return slopes, {"loss": loss, "slope": optax.tree.norm(slopes)}


def train_step(state, images, labels, *, rate=rate_at):
    """Run a step of stochastic gradient descent: (state, metrics)."""
    slopes, metrics = gradient(state, images, labels)
    return models.update_step(optax.sgd(rate))(state, slopes, {}), metrics


def printing_step(state, images, labels):
    """Run a training step that prints its loss."""
    state, metrics = train_step(state, images, labels)
    jax.debug.print("loss {}", metrics["loss"])
    return state, metrics


def guarded_step(state, images, labels):
    """Run a training step that keeps the old state if any gradient is not finite."""
    slopes, metrics = gradient(state, images, labels)
    finite = jnp.all(jnp.array([jnp.isfinite(leaf).all() for leaf in jax.tree.leaves(slopes)]))
    update = partial(models.update_step(optax.sgd(rate_at)), state, slopes, {})
    return jax.lax.cond(finite, update, lambda: state), metrics


step = jax.jit(train_step)
step_that_prints = jax.jit(printing_step)
step_that_calls_back = jax.jit(partial(train_step, rate=rate_by_callback))
step_that_guards = jax.jit(guarded_step)
checked_step = jax.jit(checkify.checkify(train_step, errors=checkify.nan_checks))


def run_steps(step, state, images, labels, read=lambda number, metrics: metrics):
    """Run a loop of steps: (state, metrics of each step as `read` returns them)."""
    history = []
    for number in range(1, STEPS + 1):
        state, metrics = step(state, images, labels)
        history.append(read(number, metrics))
    return state, history


# Inputs and reference


def inputs(key, *, width):
    """Return the state and a batch: images (32, 784) float32 from 0 to 1, labels (32,)."""
    images, labels = datasets.mnist("train", BATCH)
    model = models.MLP((width, CLASSES), nn.swish)
    state = models.initial_state(model, optax.sgd(rate_at), key, np.zeros((1, PIXELS), np.float32))
    return state, images.reshape(BATCH, PIXELS).astype(np.float32) / 255, labels.astype(np.int32)


def loop_in_numpy(state, images, labels):
    """Run the loop in NumPy: (state, metrics of each step)."""

    def update(params, memory, slopes):
        before, scheduled = memory
        after, _ = reference.sgd(params, memory, slopes, rate=rate_at(scheduled.count, np))
        return after, (before, scheduled._replace(count=scheduled.count + 1))

    def step(state, images, labels):
        passed = reference.forward(reference.mlp(state[0]["params"], reference.swish), images)
        loss, slopes = reference.gradient(passed, labels)
        slope = np.sqrt(sum(np.square(leaf).sum() for leaf in jax.tree.leaves(slopes)))
        params, memory = update(state[0]["params"], state[1], slopes)
        return ({"params": params}, memory), {"loss": loss, "slope": slope}

    return run_steps(step, state, images, labels)


def stacked(result):
    """Stack the metrics of all steps into arrays: (state, metrics (steps,))."""
    state, history = result
    return state, jax.tree.map(lambda *each: np.stack(each), *history)


def loop_and_changes(state, images, labels):
    """Return the result of the reference loop, and its change of each parameter."""
    return compared(loop_in_numpy(state, images, labels), inputs=(state,))


def compared(result, *, inputs):
    """Return the values that are compared."""
    return reference.result_and_changes(stacked(result), inputs=inputs)


# Workload


@workload(
    inputs=inputs,
    params={"width": levels(default=32, full=512)},
    reference=loop_and_changes,
    compare=compared,
    items=Items("steps", STEPS),
    modes=("mixed",),
    implementation="waited_once",
    state=State(carry={"state": 0}),
    data=datasets.mnist_source,
    level="default",
    answer=Answer(
        "What does reading the loss cost?",
        "waited_once:mixed",
        against="loss_each_step:mixed",
        metric="items_per_s",
        rank=6,
    ),
)
def training_habits(state, images, labels):
    """Loop of 100 queued steps of an MLP with one wait at the end, (32, 784) -> state, metrics of each step.

    Source: JAX's documentation, "Asynchronous dispatch".
    """
    return run_steps(step, state, images, labels)


@training_habits.implementation
def loss_each_step(state, images, labels):
    """The loop with `float(loss)` after every step, which waits for the step."""

    def read(number, metrics):
        return {**metrics, "loss": float(metrics["loss"])}

    return run_steps(step, state, images, labels, read)


@training_habits.implementation
def metrics_each_step(state, images, labels):
    """The loop with a copy of all metrics to the host after every step (`jax.device_get`)."""
    return run_steps(step, state, images, labels, lambda number, metrics: jax.device_get(metrics))


@training_habits.implementation
def metrics_every_50(state, images, labels):
    """The loop with a copy of all metrics to the host after every 50th step."""

    def read(number, metrics):
        return metrics if number % EVERY else jax.device_get(metrics)

    return run_steps(step, state, images, labels, read)


@training_habits.implementation
def debug_print(state, images, labels):
    """The loop with `jax.debug.print` of the loss at every step, into memory to exclude the time of a terminal."""
    with contextlib.redirect_stdout(io.StringIO()):
        result = run_steps(step_that_prints, state, images, labels)
        jax.effects_barrier()
    return result


@training_habits.implementation
def pure_callback(state, images, labels):
    """The loop with the learning rate from NumPy by `jax.pure_callback`."""
    return run_steps(step_that_calls_back, state, images, labels)


@training_habits.implementation
def debug_nans(state, images, labels):
    """The loop under `jax.debug_nans`, which checks the results of each call for NaN before the call returns."""
    with jax.debug_nans(True):
        return run_steps(step, state, images, labels)


@training_habits.implementation
def nan_checks(state, images, labels):
    """The loop with `checkify` checks of every operation for NaN; throwing the error waits for each step."""

    def checked(state, images, labels):
        error, result = checked_step(state, images, labels)
        error.throw()
        return result

    return run_steps(checked, state, images, labels)


@training_habits.implementation
def finite_updates(state, images, labels):
    """The loop with a check of the gradients for NaN and infinity in the program, and an update by `lax.cond`."""
    return run_steps(step_that_guards, state, images, labels)
