"""Loading: an epoch as it was published, its loader and the host's work within the time, beside the program alone."""

import jax
import numpy as np
import optax
from flax import linen as nn

from harness import Answer, Needs, State, workload
from suites import mlp
from suites import networks_in_numpy as reference
from suites.mlp_networks import TOY

CLASSES = 2


def loss_and_accuracy(params, points, targets):
    """Mean loss of a batch, (128, 2) and (128, 2) one-hot, and which share is told right: scalars.

    The notebook's network ends with log_softmax, and its loss takes the softmax once more: by mathematics that changes
    nothing.
    """
    predicted = nn.log_softmax(TOY.model.apply({"params": params}, points))
    loss = optax.losses.softmax_cross_entropy(predicted, targets).mean()
    return loss, (predicted.argmax(1) == targets.argmax(1)).mean()


jitted_gradient = jax.jit(jax.value_and_grad(loss_and_accuracy, has_aux=True))


def step(state, points, targets):
    """The notebook's two jitted functions: (state, loss, accuracy)."""
    (loss, accuracy), slopes = jitted_gradient(state[0]["params"], points, targets)
    return mlp.jitted_toy_update(state, slopes, {}), loss, accuracy


def train(state, batches):
    """Steps over batches, (state, mean loss, mean accuracy); the first wait is for these means, at the end."""
    losses, accuracies = [], []
    for points, targets in batches:
        state, loss, accuracy = step(state, points, targets)
        losses.append(loss)
        accuracies.append(accuracy)
    return state, np.mean(losses), np.mean(accuracies)


def one_hot(classes):
    """(b,) -> (b, 2) float32."""
    return np.eye(CLASSES, dtype=np.float32)[classes]


def places(n):
    """Where the batches of n points begin and end; the last one may be smaller."""
    return [(at, min(at + TOY.batch, n)) for at in range(0, n, TOY.batch)]


def epoch(key, *, n):
    """State; points (n, 2) and classes (n,) on the host; and the same as batches on the device."""
    cut = mlp.toy_batches(key, n=n)
    points, classes = (np.concatenate(each) for each in list(zip(*cut, strict=True))[1:])
    return cut[0][0], points, classes, [(some, one_hot(of)) for _, some, of in cut]


def epoch_in_numpy(state, points, classes, batches):
    """Steps over all batches: (state, mean loss, mean accuracy)."""
    losses, accuracies = [], []
    for begin, end in places(len(points)):
        some, of = points[begin:end], classes[begin:end]
        logits = reference.output_of(reference.forward(reference.mlp(state[0]["params"]), some))
        accuracies.append((logits.argmax(1) == of).mean())
        state, loss = mlp.toy_step_in_numpy(state, some, of)
        losses.append(loss)
    return state, np.mean(losses), np.mean(accuracies)


@workload(
    inputs=epoch,
    params={"n": mlp.TOY_POINTS},
    reference=epoch_in_numpy,
    modes=("mixed",),
    implementation="rows_stacked",
    state=State(carry={"state": 0}),
    needs=Needs(host=("points", "classes"), config={"jax_default_matmul_precision": "highest"}),
    # Adam divides each gradient by its own size, and of a point on the border the last bit decides: five of 8000.
    tolerance=1e-3,
    answer=Answer("How much of an epoch is its loader?", "program_alone:mixed", against="rows_stacked:mixed"),
)
def toy_epoch(state, points, classes, batches):
    """Epoch of a 2-10-2 MLP, rows picked one by one and stacked, (n, 2), (n,) -> state, mean loss, mean accuracy.

    So does the collate function of a PyTorch loader in one process. Source: notebook "JAX Speed Test".
    """

    def load():
        for begin, end in places(len(points)):
            rows = [(points[row], classes[row]) for row in range(begin, end)]
            yield np.stack([row for row, _ in rows]), one_hot(np.stack([of for _, of in rows]))

    return train(state, load())


@toy_epoch.implementation(name="sliced")
def sliced_epoch(state, points, classes, batches):
    """The same, each batch a slice of the host's arrays: no row is touched by Python."""
    cut = ((points[begin:end], one_hot(classes[begin:end])) for begin, end in places(len(points)))
    return train(state, cut)


@toy_epoch.implementation(name="program_alone")
def epoch_of_device_batches(state, points, classes, batches):
    """The same, its batches cut and on the device before the time begins: what the steps take by themselves."""
    return train(state, batches)
