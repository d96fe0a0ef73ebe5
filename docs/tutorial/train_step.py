"""My train step: a classifier of 28 x 28 images, 784-256-10, by SGD."""

import jax
import jax.numpy as jnp

from jaxmeter import Answer, Items, State, levels, no_reference, workload

LEARNING_RATE = 0.1


def make_inputs(key, *, batch):
    """Weights and one batch -> (weights, images (batch, 784), labels (batch,))."""
    keys = jax.random.split(key, 4)
    weights = {
        "hidden": 0.03 * jax.random.normal(keys[0], (784, 256)),
        "output": 0.06 * jax.random.normal(keys[1], (256, 10)),
    }
    images = jax.random.normal(keys[2], (batch, 784))
    labels = jax.random.randint(keys[3], (batch,), 0, 10)
    return weights, images, labels


def loss(weights, images, labels):
    """Mean cross-entropy of a batch."""
    logits = jax.nn.relu(images @ weights["hidden"]) @ weights["output"]
    return -jnp.mean(jax.nn.log_softmax(logits)[jnp.arange(len(labels)), labels])


@workload(
    inputs=make_inputs,
    params={"batch": levels(quick=32, default=(128, 512))},
    reference=no_reference("random images: there is nothing to learn"),
    state=State(carry={"weights": 0}),
    items=Items("examples", lambda *, batch: batch),
    answer=Answer("What is jit worth for my step?", "train_step:jit", against="train_step:eager"),
)
def train_step(weights, images, labels):
    """One step of SGD -> (weights, loss)."""
    value, gradients = jax.value_and_grad(loss)(weights, images, labels)
    return jax.tree.map(lambda weight, gradient: weight - LEARNING_RATE * gradient, weights, gradients), value


@train_step.implementation(donate=("weights",), modes=("jit",))
def donated(weights, images, labels):
    """The same step; the new weights take the memory of the old ones."""
    return train_step(weights, images, labels)
