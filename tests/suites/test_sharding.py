from functools import cache

import jax
import numpy as np
import pytest

from jaxmeter.harness.declare.declaration import call_with
from jaxmeter.harness.probes.conditioning import relative_error
from jaxmeter.harness.probes.evaluation import TOLERANCE
from jaxmeter.suites import sharding
from tests.suites.many_devices import on_eight_devices

WIDTH = 64


def arguments():
    made = sharding.training(jax.random.key(0), width=WIDTH, devices=1)
    return jax.tree.map(lambda leaf: np.asarray(leaf, float), made)


@cache
def on_eight(name, without=()):
    """What each implementation gives; a process with eight devices takes ten seconds."""
    return on_eight_devices("sharding", name, [{"devices": 8, "width": WIDTH}], without=without)


def collectives(found):
    return {one["implementation"]: one["collectives"] for one in found}


@pytest.mark.end_to_end
def test_a_data_parallel_step_is_one_all_reduce_however_it_is_written():
    found = on_eight("data_parallel_step")

    assert collectives(found) == {name: {"all-reduce": 1} for name in ("automatic", "shard_map", "pmap")}
    assert not any(any(one["divided"]) for one in found)
    assert all(one["error"] < TOLERANCE["float32"] for one in found)


@pytest.mark.end_to_end
def test_an_fsdp_step_gathers_each_weight_and_keeps_its_parts():
    found = on_eight("fsdp_step")

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
    found = on_eight("tensor_parallel_matmul")

    assert collectives(found) == {name: {"all-reduce": 1} for name in ("automatic", "shard_map")}
    assert all(one["error"] < TOLERANCE["float32"] for one in found)


@pytest.mark.end_to_end
def test_a_step_that_forgets_the_mean_over_devices_is_wrong():
    found = on_eight("data_parallel_step", without=("pmean",))

    errors = {one["implementation"]: one["error"] for one in found}
    assert errors.pop("automatic") < TOLERANCE["float32"]
    assert errors.keys() == {"shard_map", "pmap"}
    assert min(errors.values()) > 1000 * TOLERANCE["float32"]


def test_a_step_moves_weights_and_momentum_far_beyond_the_tolerance():
    before = arguments()
    after, _ = sharding.step_in_numpy(*before)

    moved = [relative_error(*pair)[0] for pair in zip(*map(jax.tree.leaves, (before[0], after)), strict=True)]

    assert min(moved) > 100 * TOLERANCE["float32"]


def test_weak_scaling_gives_each_device_a_batch_and_strong_scaling_divides_one():
    strong, weak = ([sharding.rows(devices, scaling) for devices in (1, 2, 8)] for scaling in ("strong", "weak"))

    assert strong == [sharding.BATCH] * 3
    assert weak == [sharding.BATCH, 2 * sharding.BATCH, 8 * sharding.BATCH]


def test_the_work_of_a_step_is_what_xla_counts_in_its_products():
    made = sharding.training(jax.random.key(0), width=256, devices=1)
    jitted = jax.jit(lambda *arguments: sharding.data_parallel_step(*arguments, devices=1))

    counted = jitted.lower(*made).compile().cost_analysis()["flops"]

    assert counted == pytest.approx(
        sharding.replicated_step_cost(width=256, devices=1, scaling="strong").flops, rel=0.02
    )


def test_bytes_are_those_of_all_devices_each_with_its_own_copy_of_what_is_not_divided():
    steps = [sharding.replicated_step_cost(width=2, devices=devices, scaling="strong").bytes for devices in (1, 8)]
    weak = sharding.replicated_step_cost(width=2, devices=8, scaling="weak").bytes
    divided = sharding.divided_step_cost(width=2, devices=8).bytes
    layers = [sharding.layer_cost(width=2, devices=devices).bytes for devices in (1, 8)]

    state = 3 * 4 + 3 * 4  # numbers in three weights and in their momentum, (2, 2) each
    batch = 256 * 2 + 256 * 2  # in x and y
    assert steps == [4 * (2 * state + batch), 4 * (8 * 2 * state + batch)]
    assert weak == 4 * (8 * 2 * state + 8 * batch)
    assert divided == 4 * (2 * state + batch)
    rows, matrices = 128 * 2, 2 * 8 + 8 * 2
    assert layers == [4 * (2 * rows + matrices), 4 * (8 * 2 * rows + matrices)]


@pytest.mark.end_to_end
@pytest.mark.parametrize("name", ["data_parallel_step", "fsdp_step", "tensor_parallel_matmul"])
def test_declared_bytes_are_those_of_the_arrays_on_all_devices(name):
    automatic, *_ = on_eight(name)

    losses = 0 if name == "tensor_parallel_matmul" else 8 * 4
    cost = call_with(getattr(sharding, name).declaration.cost, {**automatic["params"], "scaling": "strong"})
    assert automatic["bytes"] == cost.bytes + losses
