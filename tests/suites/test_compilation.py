import jax
import numpy as np
import pytest

from harness.probes.numerics import relative_error
from suites import compilation

KEY = jax.random.key(0)


@pytest.mark.parametrize("wrong", [compilation.other_dtype, compilation.other_shape])
def test_a_program_compiled_ahead_of_time_refuses_other_types_where_jit_compiles_again(wrong):
    x = np.ones(8, "float32")

    with pytest.raises(TypeError, match="Argument types differ from the types for which this computation was compiled"):
        wrong(jax.numpy.asarray(x))
    jitted = jax.jit(compilation.formula)
    assert [jitted(x).shape, jitted(x[1:]).shape, jitted(x.astype("bfloat16")).dtype] == [(8,), (7,), "bfloat16"]


def test_sgd_can_be_exported_and_adam_cannot_as_jax_does_not_know_its_state():
    arguments = compilation.mlp_batch(KEY, batch=2)
    assert jax.export.export(jax.jit(compilation.mlp_step))(*arguments).serialize()

    arguments = compilation.cnn_batch(KEY, batch=2)
    with pytest.raises(ValueError, match="ScaleByAdamState"):
        jax.export.export(jax.jit(compilation.cnn_step))(*arguments).serialize()


def test_the_declared_costs_count_the_parameters_that_the_models_have():
    for make, cost, adam in (
        (compilation.mlp_batch, compilation.mlp_ahead_of_time.cost, 1),
        (compilation.cnn_batch, compilation.cnn_cost, 3),
    ):
        (variables, _), *_ = make(KEY, batch=1)
        params = sum(leaf.size for leaf in jax.tree.leaves(variables))
        one, two = (cost(batch=batch).bytes for batch in (1, 2))
        assert one - (two - one) == 4 * 2 * adam * params


def test_the_chain_has_an_equation_for_each_operation_and_the_loop_one():
    def equations(function, n):
        return len(jax.make_jaxpr(lambda x: function(x, n=n))(np.ones(4, "float32")).eqns)

    assert [equations(compilation.operations.function, n) for n in (10, 100)] == [10, 100]
    assert equations(compilation.loop, 10) == equations(compilation.loop, 100)


def test_xla_makes_one_loop_of_the_chain_but_not_of_reductions():
    def fusions(function):
        return jax.jit(lambda x: function(x, n=8)).lower(np.ones(1000, "float32")).compile().as_text().count(" fusion(")

    assert fusions(compilation.operations.function) == 1
    assert fusions(compilation.reductions.function) >= 8


def test_a_chain_that_is_one_operation_short_is_told_from_the_reference():
    x = compilation.short_array(KEY)
    want = compilation.sines_in_numpy(np.asarray(x, "float64"), n=10)

    error, _ = relative_error(np.asarray(compilation.loop(x, n=9), "float64"), want)

    assert error > 1e-2
