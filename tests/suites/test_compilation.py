import jax
import pytest

from jaxmeter.harness.record import Status
from jaxmeter.suites import compilation
from tests.suites.outcomes import outcome_of, without_kernels

KEY = jax.random.key(0)


@pytest.mark.parametrize(
    ("workload", "step"),
    [
        (compilation.mlp_ahead_of_time, compilation.mlp_step_in_numpy),
        (compilation.cnn_ahead_of_time, compilation.cnn_step_in_numpy),
    ],
    ids=["mlp", "cnn"],
)
def test_a_step_that_leaves_kernels_unchanged_is_wrong(workload, step):
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
