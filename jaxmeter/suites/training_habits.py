"""Training habits: what printing, checking and reading numbers at every step costs a loop of training steps."""

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
"""Of each step: the same one, on the device before the loop begins."""

STEPS = 200
"""Of a loop."""

EVERY = 100
"""Steps from one reading of the metrics to the next, where they are not read at each."""

RATE = 0.1
"""Learning rate of the first step; it falls to 0 by half a cosine."""


def rate_at(step, xp=jnp):
    """Learning rate. Source: Loshchilov & Hutter, SGDR, 2017, equation 5, without restarts."""
    return RATE / 2 * (1 + xp.cos(math.pi * step / STEPS))


def rate_by_callback(step):
    """The same by NumPy: the program asks Python for it while it runs."""
    shape = jax.ShapeDtypeStruct((), jnp.float32)
    return jax.pure_callback(lambda step: np.float32(rate_at(step, np)), shape, step)


# Steps


def gradient(state, images, labels):
    """Slopes of an MLP's params whose widths are those of the state, and metrics: loss and length of the slopes."""
    model = models.MLP((state[0]["params"]["Dense_0"]["bias"].size, CLASSES), nn.swish)
    (loss, _), slopes = models.gradient_step(model, models.mean_cross_entropy)(state[0], images, labels)
    return slopes, {"loss": loss, "slope": optax.tree.norm(slopes)}


def train_step(state, images, labels, *, rate=rate_at):
    """A step of stochastic gradient descent, (state, metrics)."""
    slopes, metrics = gradient(state, images, labels)
    return models.update_step(optax.sgd(rate))(state, slopes, {}), metrics


def printing_step(state, images, labels):
    """The same, which prints its loss."""
    state, metrics = train_step(state, images, labels)
    jax.debug.print("loss {}", metrics["loss"])
    return state, metrics


def guarded_step(state, images, labels):
    """The same, which leaves the state as it was where some slope is not finite."""
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
    """A loop, (state, metrics of each step as `read` returns them)."""
    history = []
    for number in range(1, STEPS + 1):
        state, metrics = step(state, images, labels)
        history.append(read(number, metrics))
    return state, history


# Inputs and reference


def inputs(key, *, width):
    """State, and a batch: images (32, 784) float32 from 0 to 1, labels (32,)."""
    images, labels = datasets.mnist("train", BATCH)
    model = models.MLP((width, CLASSES), nn.swish)
    state = models.initial_state(model, optax.sgd(rate_at), key, np.zeros((1, PIXELS), np.float32))
    return state, images.reshape(BATCH, PIXELS).astype(np.float32) / 255, labels.astype(np.int32)


def loop_in_numpy(state, images, labels):
    """The same steps, (state, metrics of each)."""

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
    """The metrics of all steps as arrays, (state, metrics (steps,))."""
    state, history = result
    return state, jax.tree.map(lambda *each: np.stack(each), *history)


def loop_and_changes(state, images, labels):
    """The reference: the loop, and what it changed of each parameter."""
    return compared(loop_in_numpy(state, images, labels), inputs=(state,))


def compared(result, *, inputs):
    """What is compared."""
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
    """Loop of 200 steps of an MLP that are queued and waited for once, (32, 784) -> state, metrics of each step.

    Source: JAX's documentation, "Asynchronous dispatch".
    """
    return run_steps(step, state, images, labels)


@training_habits.implementation
def loss_each_step(state, images, labels):
    """The same, with `float(loss)` after every step, which waits for it."""

    def read(number, metrics):
        return {**metrics, "loss": float(metrics["loss"])}

    return run_steps(step, state, images, labels, read)


@training_habits.implementation
def metrics_each_step(state, images, labels):
    """All metrics are copied to the host after every step (`jax.device_get`)."""
    return run_steps(step, state, images, labels, lambda number, metrics: jax.device_get(metrics))


@training_habits.implementation
def metrics_every_100(state, images, labels):
    """All metrics are copied to the host after every 100th step."""

    def read(number, metrics):
        return metrics if number % EVERY else jax.device_get(metrics)

    return run_steps(step, state, images, labels, read)


@training_habits.implementation
def debug_print(state, images, labels):
    """Every step prints its loss by `jax.debug.print`, here into memory: a terminal's own time is not in it."""
    with contextlib.redirect_stdout(io.StringIO()):
        result = run_steps(step_that_prints, state, images, labels)
        jax.effects_barrier()
    return result


@training_habits.implementation
def pure_callback(state, images, labels):
    """The learning rate comes from NumPy by `jax.pure_callback`."""
    return run_steps(step_that_calls_back, state, images, labels)


@training_habits.implementation
def debug_nans(state, images, labels):
    """Under `jax.debug_nans`, which looks for NaN in the results of each call before it returns."""
    with jax.debug_nans(True):
        return run_steps(step, state, images, labels)


@training_habits.implementation
def nan_checks(state, images, labels):
    """Every operation is checked for NaN by `checkify`, and the error thrown after each step, which waits for it."""

    def checked(state, images, labels):
        error, result = checked_step(state, images, labels)
        error.throw()
        return result

    return run_steps(checked, state, images, labels)


@training_habits.implementation
def finite_updates(state, images, labels):
    """The program looks for NaN and infinity in its slopes, and makes the update by `lax.cond` where there are none."""
    return run_steps(step_that_guards, state, images, labels)
