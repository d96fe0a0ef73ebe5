import jax
import numpy as np
import pytest

from jaxmeter.harness.record import Status
from jaxmeter.suites import compilation, selu
from tests.suites.outcomes import outcome_of, without_kernels

KEY = jax.random.key(0)


@pytest.mark.parametrize("wrong", [compilation.other_dtype, compilation.other_shape])
def test_a_program_compiled_ahead_of_time_refuses_other_types_where_jit_compiles_again(wrong):
    x = np.ones(8, "float32")

    with pytest.raises(TypeError, match="Argument types differ from the types for which this computation was compiled"):
        wrong(jax.numpy.asarray(x))
    jitted = jax.jit(selu.selu.function)
    assert [jitted(x).shape, jitted(x[1:]).shape, jitted(x.astype("bfloat16")).dtype] == [(8,), (7,), "bfloat16"]


STEPS = {
    "mlp": (compilation.mlp_step, compilation.mlp_batch, compilation.mlp_ahead_of_time, compilation.mlp_step_in_numpy),
    "cnn": (compilation.cnn_step, compilation.cnn_batch, compilation.cnn_ahead_of_time, compilation.cnn_step_in_numpy),
}


@pytest.mark.parametrize("name", STEPS)
def test_a_step_is_exported_loaded_and_run_and_gives_the_same(name):
    step, make, _, _ = STEPS[name]
    arguments, jitted = make(KEY, batch=2), jax.jit(step)

    loaded = jax.export.deserialize(jax.export.export(jitted)(*arguments).serialize())

    wanted, got = jitted(*arguments), jax.jit(loaded.call)(*arguments)
    assert jax.tree.structure(got) == jax.tree.structure(wanted)
    jax.tree.map(np.testing.assert_array_equal, got, wanted)


@pytest.mark.parametrize("name", STEPS)
def test_a_step_that_leaves_kernels_unchanged_is_wrong(name):
    _, _, workload, step = STEPS[name]

    assert outcome_of(workload, step, batch=2).status is Status.OK
    assert outcome_of(workload, without_kernels(step), batch=2).status is Status.WRONG


def test_the_declared_costs_count_the_parameters_that_the_models_have():
    for make, cost, adam in (
        (compilation.mlp_batch, compilation.mlp_ahead_of_time.declaration.cost, 1),
        (compilation.cnn_batch, compilation.cnn_ahead_of_time.declaration.cost, 3),
    ):
        (variables, _), *_ = make(KEY, batch=1)
        params = sum(leaf.size for leaf in jax.tree.leaves(variables))
        one, two = (cost(batch=batch).bytes for batch in (1, 2))
        assert one - (two - one) == 4 * 2 * adam * params
