import jax
import numpy as np
import pytest

from jaxmeter import Skip
from jaxmeter.harness.programs.jax_events import watch_jax
from jaxmeter.suites import batch, compilation

KEY = jax.random.key(0)


def test_one_example_a_call_gives_the_step_of_the_whole_batch_from_three_programs():
    arguments = jax.device_put(compilation.mlp_batch(KEY, batch=5))
    jax.clear_caches()

    with watch_jax() as seen:
        got = batch.one_by_one(*arguments)

    assert seen.compiled == 3
    wanted = jax.jit(batch.mlp_batch.function)(*arguments)
    jax.tree.map(lambda one, other: np.testing.assert_allclose(one, other, atol=1e-6), got, wanted)


def test_a_batch_of_one_example_is_not_taken_apart():
    skips = {
        size: batch.mlp_batch.find_variant("one_by_one:mixed")[0].find_skip({"batch": size}, "cpu")
        for size in (1, 8, 512)
    }

    assert isinstance(skips[1], Skip)
    assert skips[8] is None


@pytest.mark.parametrize("workload", [batch.mlp_batch, batch.cnn_batch], ids=["mlp", "cnn"])
def test_the_items_of_a_call_are_the_examples_of_its_inputs(workload):
    *_, labels = workload.declaration.inputs(KEY, batch=3)

    assert workload.count_items({"batch": 3}) == labels.size == 3
