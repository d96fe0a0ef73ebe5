import jax
import numpy as np
import pytest

from harness.probes.numerics import TOLERANCE, relative_error
from suites import sharding
from tests.suites.many_devices import on_eight_devices

WIDTH = 64


def arguments():
    made = sharding.training(jax.random.key(0), width=WIDTH, devices=1)
    return jax.tree.map(lambda leaf: np.asarray(leaf, float), made)


def collectives(found):
    return {one["implementation"]: one["collectives"] for one in found}


@pytest.mark.end_to_end
def test_a_data_parallel_step_is_one_all_reduce_however_it_is_written():
    found = on_eight_devices("sharding", "data_parallel_step", [{"devices": 8, "width": WIDTH}])

    assert collectives(found) == {name: {"all-reduce": 1} for name in ("automatic", "shard_map", "pmap")}
    assert not any(any(one["divided"]) for one in found)
    assert all(one["error"] < TOLERANCE["float32"] for one in found)


@pytest.mark.end_to_end
def test_an_fsdp_step_gathers_each_weight_and_keeps_its_parts():
    found = on_eight_devices("sharding", "fsdp_step", [{"devices": 8, "width": WIDTH}])

    # By itself the CPU's compiler sums whole gradients and cuts its part out of each: no reduce-scatter.
    layers = sharding.LAYERS
    assert collectives(found) == {
        "automatic": {"all-gather": layers, "all-reduce": 1},
        "shard_map": {"all-gather": layers, "reduce-scatter": layers, "all-reduce": 1},
    }
    assert all(one["divided"] == [True] * 2 * layers + [False] for one in found)
    assert all(one["error"] < TOLERANCE["float32"] for one in found)


@pytest.mark.end_to_end
def test_a_layer_divided_by_columns_and_then_by_rows_is_summed_once():
    found = on_eight_devices("sharding", "tensor_parallel_matmul", [{"devices": 8, "width": WIDTH}])

    assert collectives(found) == {name: {"all-reduce": 1} for name in ("automatic", "shard_map")}
    assert all(one["error"] < TOLERANCE["float32"] for one in found)


@pytest.mark.parametrize(
    "wrong",
    [
        lambda state, x, y: sharding.step_in_numpy(state, x[: len(x) // 2], y[: len(y) // 2]),
        lambda state, x, y: sharding.step_in_numpy(state, 0.5 * x, y),
        lambda state, x, y: (tuple(state), sharding.step_in_numpy(state, x, y)[1]),
    ],
    ids=["a device's own gradient", "a part of the input", "no update"],
)
def test_a_wrong_step_is_far_beyond_the_tolerance(wrong):
    right = jax.tree.leaves(sharding.step_in_numpy(*arguments()))

    found = jax.tree.leaves(wrong(*arguments()))

    errors = [relative_error(np.asarray(got), np.asarray(want))[0] for got, want in zip(found, right, strict=True)]
    assert max(errors) > 1000 * TOLERANCE["float32"]


def test_repeated_steps_make_the_loss_fall():
    state, x, y = arguments()
    losses = []

    for _ in range(200):
        state, loss = sharding.step_in_numpy(state, x, y)
        losses.append(loss)

    assert losses[-1] < 0.5 * losses[0]


def test_weak_scaling_gives_each_device_a_batch_and_strong_scaling_divides_one():
    strong, weak = ([sharding.rows(devices, scaling) for devices in (1, 2, 8)] for scaling in ("strong", "weak"))

    assert strong == [sharding.BATCH] * 3
    assert weak == [sharding.BATCH, 2 * sharding.BATCH, 8 * sharding.BATCH]


def test_the_work_of_a_step_is_what_xla_counts_in_its_products():
    made = sharding.training(jax.random.key(0), width=256, devices=1)
    jitted = jax.jit(lambda *arguments: sharding.data_parallel_step(*arguments, devices=1))

    counted = jitted.lower(*made).compile().cost_analysis()["flops"]

    assert counted == pytest.approx(sharding.step_cost(width=256, devices=1, scaling="strong").flops, rel=0.02)
