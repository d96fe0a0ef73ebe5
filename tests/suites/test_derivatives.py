import jax
import numpy as np
import pytest

from jaxmeter.suites import derivatives
from jaxmeter.suites.networks_in_numpy import logistic

RANDOM = np.random.default_rng(0)


def slopes(function, x, step=1e-5):
    """Central differences of a function by each entry of x, the entry's axes last."""
    columns = []
    for place in np.ndindex(x.shape):
        change = np.zeros_like(x)
        change[place] = step
        columns.append((function(x + change) - function(x - change)) / (2 * step))
    return np.stack(columns, axis=-1).reshape(*np.shape(columns[0]), *x.shape)


def loss_in_numpy(weights, rows):
    return np.mean(np.log1p(np.exp(-rows @ weights)))


def gradient_in_numpy(weights, rows):
    return -rows.T @ (1 - logistic(rows @ weights)) / len(rows)


def flops(function, *args):
    return jax.jit(function).lower(*args).compile().cost_analysis()["flops"]


def test_the_jacobians_reference_is_the_slope_of_the_layer():
    weights, x = RANDOM.normal(size=(4, 3)), RANDOM.normal(size=3)

    expected = slopes(lambda x: np.tanh(weights @ x), x)

    assert derivatives.jacobian.declaration.reference(weights, x) == pytest.approx(expected, abs=1e-8)


@pytest.mark.parametrize(
    ("inputs", "outputs", "cheaper", "dearer"), [(100, 2, "jacrev", "jacfwd"), (2, 100, "jacfwd", "jacrev")]
)
def test_a_jacobian_is_cheaper_along_its_shorter_side(inputs, outputs, cheaper, dearer):
    arguments = derivatives.layer_and_point(jax.random.key(0), inputs=inputs, outputs=outputs)
    functions = {item.name: item.function for item in derivatives.jacobian.implementations}

    assert flops(functions[cheaper], *arguments) < flops(functions[dearer], *arguments) / 5


def test_the_hessians_reference_is_the_slope_of_the_losses_gradient():
    rows, weights = RANDOM.normal(size=(7, 3)), RANDOM.normal(size=3)

    gradient = slopes(lambda at: loss_in_numpy(at, rows), weights)
    expected = slopes(lambda at: gradient_in_numpy(at, rows), weights)

    assert gradient_in_numpy(weights, rows) == pytest.approx(gradient, abs=1e-8)
    assert derivatives.hessian.declaration.reference(rows, weights, weights) == pytest.approx(expected, abs=1e-8)


def test_the_products_reference_is_the_hessian_times_the_vector():
    rows, weights, direction = RANDOM.normal(size=(7, 3)), RANDOM.normal(size=3), RANDOM.normal(size=3)

    expected = derivatives.hessian.declaration.reference(rows, weights, direction) @ direction

    assert derivatives.hessian_vector_product.declaration.reference(rows, weights, direction) == pytest.approx(expected)


def test_a_hessian_vector_product_needs_no_more_work_for_each_feature_and_the_full_hessian_does():
    def work(function, features):
        arguments = derivatives.examples_and_weights(jax.random.key(0), examples=50, features=features)
        return flops(function, *arguments) / features

    product, full = derivatives.hessian_vector_product.function, derivatives.product_with_the_full_hessian

    assert work(product, 200) < 1.5 * work(product, 50)
    assert work(full, 200) > 3 * work(full, 50)


def test_the_per_example_reference_is_the_slope_of_each_examples_error():
    network = {"hidden": RANDOM.normal(size=(3, 2)), "readout": RANDOM.normal(size=3)}
    xs, targets = RANDOM.normal(size=(4, 2)), RANDOM.normal(size=4)

    def errors(hidden, readout):
        return (np.tanh(xs @ hidden.T) @ readout - targets) ** 2 / 2

    gradients = derivatives.per_example_gradient.declaration.reference(network, xs, targets)

    by_hidden = slopes(lambda hidden: errors(hidden, network["readout"]), network["hidden"])
    by_readout = slopes(lambda readout: errors(network["hidden"], readout), network["readout"])
    assert gradients["hidden"] == pytest.approx(by_hidden, abs=1e-8)
    assert gradients["readout"] == pytest.approx(by_readout, abs=1e-8)


@pytest.mark.parametrize("order", [1, 2, 3])
def test_each_swish_derivative_is_the_slope_of_the_one_before(order):
    x = np.linspace(-6, 6, 41)

    def one_before(x):
        return derivatives.swish_derivatives.declaration.reference(x)[order - 1]

    expected = (one_before(x + 1e-5) - one_before(x - 1e-5)) / 2e-5
    assert derivatives.swish_derivatives.declaration.reference(x)[order] == pytest.approx(expected, abs=1e-8)


@pytest.mark.parametrize("name", ["into", "out"])
def test_backpropagation_by_hand_is_the_slope_of_the_chains_loss(name):
    weights = {"into": RANDOM.normal(size=(3, 2, 4)), "out": RANDOM.normal(size=(3, 4, 2))}
    x = RANDOM.normal(size=(5, 2))

    def loss(changed):
        out = x
        for w in zip(*({**weights, name: changed}[side] for side in ("into", "out")), strict=True):
            hidden = out @ w[0]
            out = out + hidden * logistic(hidden) @ w[1]
        return np.mean(out**2)

    gradient = derivatives.rematerialization.declaration.reference(weights, x)[name]

    assert gradient == pytest.approx(slopes(loss, weights[name]), abs=1e-6)
