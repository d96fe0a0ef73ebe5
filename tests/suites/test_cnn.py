import jax
import numpy as np
import pytest

from jaxmeter.harness.record import Status
from jaxmeter.suites import cnn, cnn_in_torch, cnn_networks, models
from jaxmeter.suites.networks_in_numpy import EPSILON, windows
from tests.suites.outcomes import outcome_of, without_kernels

# What is caught


@pytest.mark.parametrize(
    ("workload", "step"),
    [
        (cnn.cnn_step, cnn.step_in_numpy),
        (cnn.cnn_step_bfloat16, cnn.step_in_numpy),
        (cnn.cnn_step_dropout, cnn.dropout_step_in_numpy),
        (cnn.cnn_step_batch_norm, cnn.step_in_numpy),
    ],
    ids=lambda value: getattr(value, "name", None) or value.__name__,
)
def test_a_step_that_leaves_kernels_unchanged_is_wrong(workload, step):
    assert outcome_of(workload, step, batch=2).status is Status.OK
    assert outcome_of(workload, without_kernels(step), batch=2).status is Status.WRONG


def uncorrected(state, images, labels):
    """A step of Adam without its correction of the bias."""
    after, loss = cnn.step_in_numpy(state, images, labels)
    (before, _), (variables, memory) = state, after

    def moved(old, m, v):
        return old - models.CNN_RATE * m / (np.sqrt(v) + EPSILON)

    params = jax.tree.map(moved, before["params"], memory[0].mu, memory[0].nu)
    return ({**variables, "params": params}, memory), loss


def summed(state, images, labels):
    after, loss = cnn.step_in_numpy(state, images, labels)
    return after, len(labels) * loss


def forgetful(state, images, labels):
    """A step that leaves the running moments as they were."""
    (variables, memory), loss = cnn.step_in_numpy(state, images, labels)
    return ({**variables, "batch_stats": state[0]["batch_stats"]}, memory), loss


def other(state, images, labels, key):
    """A step that drops other values."""
    return cnn.dropout_step_in_numpy(state, images, labels, jax.random.fold_in(key, 1))


@pytest.mark.parametrize(
    ("workload", "step"),
    [
        (cnn.cnn_step, uncorrected),
        (cnn.cnn_step, summed),
        (cnn.cnn_step_batch_norm, forgetful),
        (cnn.cnn_step_dropout, other),
    ],
)
def test_a_step_that_differs_is_wrong(workload, step):
    assert outcome_of(workload, step, batch=2).status is Status.WRONG


def epoch_by(step):
    """What the check says of an epoch of two batches whose steps are these, by number; images are numbers already."""

    def epoch(state, images, targets, channels, batches):
        losses, accuracies = [], []
        for number, (inputs, chosen) in enumerate(batches):
            labels = chosen.argmax(1)
            logits = cnn.logits_in_numpy(state[0]["params"], 255 * inputs)
            accuracies.append((logits.argmax(1) == labels).mean())
            state, loss = step(number)(state, 255 * inputs, labels)
            losses.append(loss)
        return state, losses, [np.mean(losses), np.mean(accuracies)]

    return outcome_of(cnn.cnn_epoch, epoch, images=4)


@pytest.mark.slow
def test_an_epoch_whose_steps_do_not_follow_from_each_other_is_wrong():
    def never_updated(state, images, labels):
        return state, cnn.step_in_numpy(state, images, labels)[1]

    assert epoch_by(lambda number: cnn.step_in_numpy).status is Status.OK
    assert epoch_by(lambda number: never_updated).status is Status.WRONG


def without(part):
    """A step that leaves a part of Adam's memory as it was, and is right in all else."""

    def step(state, images, labels):
        (variables, (adam, *rest)), loss = cnn.step_in_numpy(state, images, labels)
        _, (adam_before, *_) = state
        return (variables, (adam._replace(**{part: getattr(adam_before, part)}), *rest)), loss

    return step


def faster(state, images, labels):
    """A step that goes a tenth too far."""
    (variables, memory), loss = cnn.step_in_numpy(state, images, labels)
    params = jax.tree.map(lambda new, old: old + 1.1 * (new - old), variables["params"], state[0]["params"])
    return ({**variables, "params": params}, memory), loss


@pytest.mark.parametrize(
    "step",
    [*map(without, ("count", "mu", "nu")), without_kernels(cnn.step_in_numpy), faster],
    ids=["no count", "no mean", "no mean square", "no kernels", "too far"],
)
def test_an_epoch_whose_last_update_alone_is_wrong_is_wrong(step):
    assert epoch_by(lambda number: step if number == 1 else cnn.step_in_numpy).status is Status.WRONG


def test_the_state_after_every_epoch_of_a_default_run_is_checked():
    images = cnn.cnn_epoch.params["images"].default

    assert [max(2, number // cnn.EPOCH_BATCH) <= cnn.BATCHES_CHECKED for number in images] == [True]


def test_of_a_longer_epoch_the_first_losses_are_checked_and_the_record_says_what_is_not(monkeypatch):
    monkeypatch.setattr(cnn, "BATCHES_CHECKED", 1)

    def wrong_from(first):
        def epoch(state, images, targets, channels, batches):
            after, losses, means = cnn.train_in_numpy(
                state,
                2 * batches,
                step=lambda *all_of: cnn.step_in_numpy(all_of[0], 255 * all_of[1], all_of[2]),
                network=cnn.reference.cnn,
            )
            return after, [loss if number < first else 0.0 for number, loss in enumerate(losses)], means

        return outcome_of(cnn.cnn_epoch, epoch, images=4)

    found = wrong_from(1)

    state = len(jax.tree.leaves(models.cnn_state(jax.random.key(0), cnn.PLAIN)))
    assert wrong_from(0).status is Status.WRONG
    assert found.status is Status.OK
    # The state, two losses, and two means.
    assert (found.details.outputs, found.details.unchecked) == (state + 4, state + 3)


# Inputs and cost


def test_an_epoch_has_batches_of_128_and_a_small_one_two():
    def sizes(count):
        images, targets = np.zeros((count, 32, 32, 3), np.uint8), np.zeros((count, 10))
        return [len(labels) for _, labels in cnn.loaded(images, targets, (0.0, 1.0))]

    assert (sizes(16), sizes(400)) == ([8, 8], [128, 128, 128])
    assert cnn.cnn_epoch.params["images"].full == (351 * 128,)


def test_the_programs_of_an_epoch_get_what_the_loader_gives():
    _, pictures, targets, channels, batches = cnn.epoch(jax.random.key(0), images=8)

    loaded = list(cnn.loaded(pictures, targets, channels))

    assert [images.shape for images, _ in loaded] == [(4, 32, 32, 3)] * 2
    assert np.concatenate([images for images, _ in loaded]).std() == pytest.approx(1, abs=0.2)
    for one, other in zip(loaded, batches, strict=True):
        jax.tree.map(np.testing.assert_array_equal, one, other)


def test_the_program_alone_takes_as_many_steps(monkeypatch):
    monkeypatch.setattr(cnn, "BATCHES_CHECKED", 1)
    arguments = cnn.epoch(jax.random.key(0), images=8)

    (_, losses, _), (_, of_loop, _) = (
        item.function(*arguments)
        for item in cnn.cnn_epoch.implementations
        if item.name in ("jitted_step", "program_alone")
    )

    assert len(losses) == len(of_loop) == 2
    assert float(losses[0]) == float(of_loop[0])
    assert len(arguments[-1]) == 1


@pytest.mark.parametrize("model", [cnn.PLAIN, cnn.BATCH_NORM], ids=["plain", "batch norm"])
def test_the_cost_counts_the_parameters_that_there_are(model):
    variables, _ = models.cnn_state(jax.random.key(0), model)

    assert sum(leaf.size for leaf in jax.tree.leaves(variables["params"])) == cnn_networks.params_in(model)


def test_the_cost_of_a_convolution_is_what_its_kernel_sees_of_the_image():
    seen = windows(np.ones((1, *models.CNN_IMAGE))).sum()
    (products, _), *_ = cnn_networks.layers(cnn.PLAIN)

    assert products == seen * models.CNN_CHANNELS[0]


def test_a_step_does_three_products_a_layer_but_two_in_the_first_and_14_operations_a_parameter():
    (first, _), *others = cnn_networks.layers(cnn.PLAIN)
    products = 2 * first + 3 * sum(products for products, _ in others)

    assert cnn_networks.step_cost(cnn.PLAIN, 5).flops == 2 * 5 * products + 14 * cnn_networks.params_in(cnn.PLAIN)


@pytest.mark.torch
def test_what_pytorch_trains_is_seen_through_the_views_that_are_compared():
    arguments = cnn.training(jax.random.key(0), batch=2)
    state, images, labels = cnn_in_torch.arguments(*arguments)
    before = jax.tree.map(lambda leaf: np.asarray(leaf).copy(), state)

    after, _ = cnn_in_torch.step(state, images, labels)

    for old, new in zip(jax.tree.leaves(before), jax.tree.leaves(after), strict=True):
        assert not np.array_equal(old, np.asarray(new))
