import jax

from jaxmeter.suites import compilation

KEY = jax.random.key(0)


def test_the_declared_costs_count_the_parameters_that_the_models_have():
    for make, cost, adam in (
        (compilation.mlp_batch, compilation.mlp_ahead_of_time.declaration.cost, 1),
        (compilation.cnn_batch, compilation.cnn_ahead_of_time.declaration.cost, 3),
    ):
        (variables, _), *_ = make(KEY, batch=1)
        params = sum(leaf.size for leaf in jax.tree.leaves(variables))
        one, two = (cost(batch=batch).bytes for batch in (1, 2))
        assert one - (two - one) == 4 * 2 * adam * params
