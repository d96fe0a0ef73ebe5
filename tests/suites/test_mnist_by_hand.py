import jax
import numpy as np
import pytest
from scipy.special import logsumexp

from jaxmeter.suites import mlp, mnist_by_hand
from jaxmeter.suites.mlp_networks import NETWORKS
from tests.suites.outcomes import exact

STEP = 1e-6


@pytest.fixture(params=mnist_by_hand.PROGRAMS)
def network(request):
    return request.param


@pytest.fixture
def batch(network):
    state, images, labels = mlp.one_batch(jax.random.key(0), network=network)
    return state[0]["params"], np.asarray(images), np.asarray(labels)


def test_a_step_is_that_of_the_reference(network, batch):
    params, images, labels = batch
    targets = np.eye(10, dtype=np.float32)[labels]

    moved, loss = mnist_by_hand.PROGRAMS[network].update(params, images, targets)

    wanted, wanted_loss = mnist_by_hand.update_in_numpy(*exact(params, images), labels, network=network)
    assert float(loss) == pytest.approx(wanted_loss, rel=1e-5)
    for one, other, before in zip(*map(jax.tree.leaves, (moved, wanted, params)), strict=True):
        np.testing.assert_allclose(one - before, other - before, atol=2e-3 * np.abs(other - before).max())


def test_the_slope_of_a_loss_is_that_of_central_differences(network):
    random = np.random.default_rng(0)
    logits, way = random.normal(size=(2, 4, 10))
    labels = np.array([0, 3, 9, 3])
    told = mnist_by_hand.PROGRAMS[network].loss_in_numpy

    _, slope = told(logits, labels)

    after, before = (told(logits + sign * STEP * way, labels)[0] for sign in (1, -1))
    assert np.vdot(slope, way) == pytest.approx((after - before) / (2 * STEP), rel=1e-6)


def test_the_losses_are_those_of_the_sources():
    logits = np.random.default_rng(0).normal(size=(4, 10))
    labels = np.array([0, 3, 9, 3])
    chosen = logits[np.arange(4), labels]

    book, _ = mnist_by_hand.mean_loss_in_numpy(logits, labels)
    summed, _ = mnist_by_hand.summed_loss_in_numpy(logits, labels)

    assert book == pytest.approx(-(chosen - logsumexp(logits)).sum() / 40)
    assert summed == pytest.approx(-(chosen - logsumexp(logits, axis=1)).sum())


def test_the_rate_of_the_book_falls_by_a_twentieth_in_five_epochs():
    state, images, labels = mlp.one_batch(jax.random.key(0), network="784-512-10")
    params, targets = state[0]["params"], np.eye(10, dtype=np.float32)[np.asarray(labels)]

    first, later = (mnist_by_hand.decayed_update(params, images, targets, epoch)[0] for epoch in (0, 5))

    before = params["Dense_1"]["kernel"]
    ratio = np.linalg.norm(later["Dense_1"]["kernel"] - before) / np.linalg.norm(first["Dense_1"]["kernel"] - before)
    assert ratio == pytest.approx(0.95, rel=1e-3)


def test_each_source_has_the_network_it_is_named_by():
    assert list(mnist_by_hand.PROGRAMS) == list(NETWORKS)
