import jax
import numpy as np
import pytest

from jaxmeter.harness.probes.errors import relative_error
from jaxmeter.harness.probes.formats import TOLERANCE
from jaxmeter.suites import fusion

X = np.random.default_rng(0).normal(size=20)


def program(function, *args):
    return jax.jit(function).lower(*args).compile()


def test_the_product_with_the_transpose_goes_by_element_and_a_matrix_product_would_be_caught():
    x = X[:16].reshape(4, 4)

    error, _ = relative_error((x + x * x + 3) * (x * x + x @ x.T), fusion.fusion.declaration.reference(x))

    assert error > TOLERANCE["float32"]


def test_a_transpose_forgotten_would_be_caught():
    x = X[:16].reshape(4, 4)

    error, _ = relative_error((x + x * x + 3) * (x * x + x * x), fusion.fusion.declaration.reference(x))

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


def test_the_compiler_merges_what_two_calls_in_one_program_share():
    x = X.astype("float32")

    merged = program(fusion.two_calls, x).cost_analysis()["flops"]
    together = program(fusion.mean_square_gradient.function, x).cost_analysis()["flops"]

    assert merged == together


def test_a_jitted_gradient_leaves_out_the_value_and_two_programs_do_no_more_work_than_one():
    x = X.astype("float32")

    value, gradient = (one.lower(x).compile() for one in (fusion.value_program, fusion.gradient_program))
    together = program(fusion.mean_square_gradient.function, x).cost_analysis()["flops"]

    assert gradient.cost_analysis()["flops"] < value.cost_analysis()["flops"]
    assert value.cost_analysis()["flops"] + gradient.cost_analysis()["flops"] <= together


def test_each_of_two_programs_reads_its_argument_again():
    x = X.astype("float32")

    apart = (fusion.value_program, fusion.gradient_program)
    arguments = [one.lower(x).compile().memory_analysis().argument_size_in_bytes for one in apart]
    together = program(fusion.mean_square_gradient.function, x).memory_analysis().argument_size_in_bytes

    assert sum(arguments) == 2 * together
