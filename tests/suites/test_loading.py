import jax
import numpy as np
import pytest

from jaxmeter.harness.record import Status
from jaxmeter.suites import loading, mlp, mnist_by_hand
from tests.suites.outcomes import outcome_of

KEY = jax.random.key(0)
MNIST = {"network": "784-512-10", "batches": 2}


@pytest.fixture(scope="module")
def toy():
    return loading.toy_inputs(KEY, n=300)


# The toy epoch


def test_an_epoch_has_the_notebooks_batches_the_last_one_smaller():
    sizes = [end - begin for begin, end in loading.places(8_000)]

    assert sizes == [128] * 62 + [64]
    assert [place for place, _ in loading.places(300)] == [0, 128, 256]


def test_the_batches_on_the_device_are_those_of_the_host(toy):
    _, points, classes, batches = toy

    np.testing.assert_array_equal(np.concatenate([some for some, _ in batches]), points)
    np.testing.assert_array_equal(np.concatenate([targets for _, targets in batches]).argmax(1), classes)
    assert {targets.sum(1).tolist() == [1] * len(targets) for _, targets in batches} == {True}


def test_all_loaders_train_the_same(toy):
    jitted = [item for item in loading.toy_epoch.implementations if item.name != "eager_step"]

    states, losses, means = zip(*(item.function(*toy) for item in jitted), strict=True)

    for state in states[1:]:
        jax.tree.map(np.testing.assert_array_equal, state, states[0])
    assert len({tuple(map(float, each)) for each in losses}) == len({tuple(map(float, each)) for each in means}) == 1


def test_the_accuracy_is_that_of_the_network_before_each_step(toy):
    state, points, classes, _ = toy
    targets = loading.one_hot(classes, loading.TOY_CLASSES)

    (_, accuracy), _ = loading.TOY_PROGRAMS.gradient(state[0]["params"], points, targets)

    logits = loading.TOY.model.apply({"params": state[0]["params"]}, points)
    assert float(accuracy) == pytest.approx(float((logits.argmax(1) == classes).mean()))


def test_the_means_of_an_epoch_are_those_of_its_steps(toy):
    _, losses, (mean, accuracy) = loading.toy_epoch.implementations[0].function(*toy)

    assert len(losses) == 3
    assert float(mean) == pytest.approx(np.mean([float(loss) for loss in losses]))
    assert 0 < float(accuracy) < 1


# The epochs on MNIST


def mnist_result(network, update):
    """What the check says of an epoch by another update in NumPy."""

    def epoch(params, images, labels, encoded):
        losses = []
        for pixels, targets in encoded:
            params, loss = update(params, pixels, targets.argmax(1), network=network)
            losses.append(loss)
        return params, losses

    return outcome_of(loading.loaded_mnist_epoch, epoch, network=network, batches=2).status


@pytest.mark.parametrize("network", mnist_by_hand.PROGRAMS)
def test_an_epoch_on_mnist_whose_steps_do_not_move_is_wrong(network):
    right = mnist_by_hand.update_in_numpy

    def still(params, *batch, network):
        return params, right(params, *batch, network=network)[1]

    assert mnist_result(network, right) is Status.OK
    assert mnist_result(network, still) is Status.WRONG


@pytest.mark.parametrize("network", mnist_by_hand.PROGRAMS)
def test_the_batches_are_reshaped_and_encoded(network):
    _, images, labels, encoded = loading.mnist_inputs(KEY, network=network, batches=2)

    np.testing.assert_array_equal(np.concatenate([pixels for pixels, _ in encoded]), images.reshape(len(labels), 784))
    np.testing.assert_array_equal(np.concatenate([targets for _, targets in encoded]).argmax(1), labels)
    assert len(labels) == 2 * loading.NETWORKS[network].batch


def test_the_program_alone_takes_as_many_steps(monkeypatch):
    monkeypatch.setattr(mlp, "AGREEING_STEPS", 1)
    arguments = loading.mnist_inputs(KEY, **MNIST)

    of_loop, of_program = (
        item.function(*arguments, network=MNIST["network"])
        for item in loading.loaded_mnist_epoch.implementations
        if item.name in ("encoded_in_loop", "program_alone")
    )

    assert len(arguments[-1]) == 1
    assert len(of_loop[1]) == len(of_program[1]) == 2
    assert float(of_loop[1][0]) == float(of_program[1][0])


def test_only_the_source_that_timed_an_epoch_without_jit_has_one():
    eager = next(item for item in loading.loaded_mnist_epoch.implementations if item.name == "eager_step")

    skipped = [network for network in loading.NETWORKS if eager.find_skip({**MNIST, "network": network}, "cpu")]

    assert skipped == ["784-512-512-10"]
