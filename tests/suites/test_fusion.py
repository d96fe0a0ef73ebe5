import jax
import numpy as np
import pytest

from jaxmeter.harness.probes.conditioning import relative_error
from jaxmeter.harness.probes.evaluation import TOLERANCE
from jaxmeter.suites import fusion

X = np.random.default_rng(0).normal(size=20)


@pytest.mark.parametrize("product", [lambda x: x @ x.T, lambda x: x * x], ids=["a product of matrices", "no transpose"])
def test_a_product_that_is_not_by_element_with_the_transpose_would_be_caught(product):
    x = X[:16].reshape(4, 4)

    error, _ = relative_error((x + x * x + 3) * (x * x + product(x)), fusion.fusion.declaration.reference(x))

    assert error > TOLERANCE["float32"]


def test_the_program_that_is_not_fused_has_a_loop_for_each_operation():
    x = X[:16].reshape(4, 4).astype("float32")
    by_name = {item.name: item for item in fusion.fusion.implementations}

    def count_loops(name):
        options = dict(by_name[name].compiler_options)
        text = jax.jit(by_name[name].function, compiler_options=options).lower(x).compile().as_text()
        return text.count("kind=kLoop")

    assert count_loops("fusion") == 1
    assert count_loops("not_fused") >= fusion.OPERATIONS


def test_the_gradients_reference_is_the_slope_of_the_values():
    _, gradient = fusion.mean_square_gradient.declaration.reference(X)
    value = fusion.mean_square.declaration.reference

    step = 1e-4  # exact but for rounding: the function is quadratic
    slopes = [(value(X + direction) - value(X - direction)) / (2 * step) for direction in step * np.eye(X.size)]

    assert gradient == pytest.approx(slopes, abs=1e-9)
