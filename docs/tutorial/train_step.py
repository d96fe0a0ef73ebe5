"""My train step: a classifier of 28 x 28 images, 784-256-10, by SGD."""

import jax
import jax.numpy as jnp

from jaxmeter import Answer, Items, State, levels, no_reference, workload

LEARNING_RATE = 0.1


def make_inputs(key, *, batch):
    """Parameters and one batch -> (params, images (batch, 784), labels (batch,))."""
    keys = jax.random.split(key, 4)
    params = {
        "hidden": 0.03 * jax.random.normal(keys[0], (784, 256)),
        "output": 0.06 * jax.random.normal(keys[1], (256, 10)),
    }
    images = jax.random.normal(keys[2], (batch, 784))
    labels = jax.random.randint(keys[3], (batch,), 0, 10)
    return params, images, labels


def loss(params, images, labels):
    """Mean cross-entropy of a batch."""
    logits = jax.nn.relu(images @ params["hidden"]) @ params["output"]
    return -jnp.mean(jax.nn.log_softmax(logits)[jnp.arange(len(labels)), labels])


@workload(
    inputs=make_inputs,
    params={"batch": levels(quick=32, default=(128, 512))},
    reference=no_reference("random images: there is nothing to learn"),
    state=State(carry={"params": 0}),
    items=Items("examples", lambda *, batch: batch),
    answer=Answer("What is jit worth for my step?", "train_step:jit", against="train_step:eager"),
)
def train_step(params, images, labels):
    """One step of SGD -> (params, loss)."""
    value, gradients = jax.value_and_grad(loss)(params, images, labels)
    return jax.tree.map(lambda p, g: p - LEARNING_RATE * g, params, gradients), value


@train_step.implementation(donate=("params",), modes=("jit",))
def donated(params, images, labels):
    """The same step; the new parameters take the memory of the old ones."""
    return train_step(params, images, labels)
