import jax
import numpy as np
import pytest

from suites import loading


@pytest.fixture(scope="module")
def arguments():
    return loading.epoch(jax.random.key(0), n=300)


def test_an_epoch_has_the_notebooks_batches_the_last_one_smaller():
    sizes = [end - begin for begin, end in loading.places(8_000)]

    assert sizes == [128] * 62 + [64]
    assert [place for place, _ in loading.places(300)] == [0, 128, 256]


def test_the_batches_on_the_device_are_those_of_the_host(arguments):
    _, points, classes, batches = arguments

    np.testing.assert_array_equal(np.concatenate([some for some, _ in batches]), points)
    np.testing.assert_array_equal(np.concatenate([targets for _, targets in batches]).argmax(1), classes)
    assert {targets.sum(1).tolist() == [1] * len(targets) for _, targets in batches} == {True}


def test_all_loaders_train_the_same(arguments):
    states, losses, accuracies = zip(
        *(item.function(*arguments) for item in loading.toy_epoch.implementations), strict=True
    )

    for state in states[1:]:
        jax.tree.map(np.testing.assert_array_equal, state, states[0])
    assert len(set(map(float, losses))) == len(set(map(float, accuracies))) == 1


def test_the_accuracy_is_that_of_the_network_before_each_step(arguments):
    state, points, classes, _ = arguments
    targets = loading.one_hot(classes)

    _, accuracy = loading.loss_and_accuracy(state[0]["params"], points, targets)

    logits = loading.TOY.model.apply({"params": state[0]["params"]}, points)
    assert float(accuracy) == pytest.approx(float((logits.argmax(1) == classes).mean()))
