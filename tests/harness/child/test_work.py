"""What is counted of a variant without calling it."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxmeter import State, no_reference, workload
from jaxmeter.harness.child.work import CONVOLUTION_COST, HARD_ELEMENTS, count_work
from jaxmeter.harness.machine.platforms import BACKENDS
from jaxmeter.harness.plan.cases import plan_case
from jaxmeter.harness.plan.work import Work
from jaxmeter.harness.programs.equations import WHILE_STEPS

N = 32
SQUARE_BYTES = 4 * N * N


def square(key):
    return jax.random.normal(key, (N, N))


def named(function):
    """The same as a plain function, as suites declare them."""

    def f(x):
        return function(x)

    return f


def count(function, *, inputs=square, modes=("eager", "jit"), platform="cpu", **options) -> dict[str, Work]:
    function.__name__ = "f"
    declared = workload(inputs=inputs, reference=no_reference("none"), modes=modes, **options)(function)
    return count_work(declared, plan_case("s", declared, {}, BACKENDS[platform]), BACKENDS[platform])


def compiled(function, **options) -> Work:
    return count(function, **options)["f:jit"]


def eager(function, **options) -> Work:
    return count(function, **options)["f:eager"]


def test_a_product_is_two_operations_for_each_pair_that_is_multiplied():
    found = compiled(lambda x: x @ x)

    assert found == Work(
        programs=1, equations=1, dispatched=1.0, flops=2 * N**3, elements=0.0, bytes=(2 + 3) * SQUARE_BYTES
    )


def test_a_convolution_costs_more_for_each_of_its_operations():
    def convolve(x):
        return jax.lax.conv_general_dilated(x[None, None], jnp.ones((5, 1, 3, 3)), (1, 1), "SAME")

    assert compiled(convolve).flops == CONVOLUTION_COST * 2 * (5 * N * N) * 9


@pytest.mark.parametrize(("function", "each"), [(lambda x: x + x, 1), (jnp.tanh, HARD_ELEMENTS)])
def test_elements_that_are_written_count_and_hard_ones_count_more(function, each):
    assert compiled(named(function)).elements == each * N * N


def test_a_loop_counts_as_often_as_it_runs():
    def scanned(x):
        return jax.lax.scan(lambda carry, _: (carry @ x, None), x, length=10)[0]

    assert compiled(scanned).flops == 10 * 2 * N**3


def test_a_loop_without_a_known_end_is_guessed_and_of_branches_the_largest_counts():
    def until(x):
        return jax.lax.while_loop(lambda carry: carry.sum() < 0, lambda carry: carry @ x, x)

    def either(x):
        return jax.lax.cond(x.sum() > 0, lambda y: y @ y @ y, lambda y: y, x)

    assert compiled(until).flops == WHILE_STEPS * 2 * N**3
    assert compiled(either).flops == 2 * 2 * N**3


def test_eager_code_starts_each_equation_and_compiles_each_kind_of_them_once():
    found = eager(lambda x: x @ x @ x + x)

    assert (found.dispatched, found.programs, found.again) == (3, 2, 0)
    assert found.bytes == 3 * 3 * SQUARE_BYTES


def test_a_jitted_function_inside_eager_code_is_one_program():
    inner = jax.jit(lambda x: x @ x + x)

    found = eager(named(inner))

    assert (found.dispatched, found.programs, found.equations) == (1, 1, 2)


def test_a_loop_in_eager_code_is_compiled_in_every_call():
    def scanned(x):
        return jax.lax.scan(lambda carry, _: (carry @ x + 1, None), x, length=10)[0]

    found = eager(scanned)

    assert (found.again, found.equations_again) == (1, 2)


def test_what_a_derivative_makes_in_eager_code_is_told_apart():
    def loss(x):
        return jnp.sum(x @ x)

    assert eager(loss).derived == 0
    assert eager(named(jax.grad(loss))).derived > 0


def test_a_stream_is_a_call_for_each_of_its_items_and_a_program_for_each_type():
    def items(key):
        return tuple((jnp.ones((size, N)),) for size in (2, 2, 4))

    found = compiled(lambda x: x @ jnp.ones((N, N)), inputs=items, stream=True)

    assert (found.dispatched, found.programs) == (3, 2)
    assert found.flops == 2 * (2 + 2 + 4) * N * N


def test_carried_state_is_an_argument_like_others():
    found = compiled(lambda x: (x @ x, x.sum()), state=State(carry={"x": 0}))

    assert found.flops == 2 * N**3


def test_a_peer_is_taken_to_do_what_jax_does():
    found = count(lambda x: x @ x, peers={"numpy": lambda x: x @ x})

    assert found["numpy:native"].flops == 2 * N**3


def test_inputs_that_cannot_be_traced_are_made_where_they_would_be_measured():
    def made(key):
        return np.asarray(jax.random.normal(key, (N, N)))

    assert compiled(lambda x: x @ x, inputs=made).flops == 2 * N**3
    assert count(lambda x: x @ x, inputs=made, platform="gpu") == {}


def test_what_cannot_be_traced_is_left_out_alone():
    def asks(x):
        return x if x.sum() > 0 else -x

    declared = workload(inputs=square, reference=no_reference("none"), modes=("eager",))(asks)

    @declared.implementation(modes=("jit",))
    def plain(x):
        return x + 1

    case = plan_case("s", declared, {}, BACKENDS["cpu"])
    assert list(count_work(declared, case, BACKENDS["cpu"])) == ["plain:jit"]


def test_inputs_that_fail_leave_the_case_unknown():
    def none(key):
        raise ValueError("no data")

    assert count(lambda x: x, inputs=none) == {}


def test_another_device_than_the_processor_is_told():
    assert not compiled(lambda x: x @ x).accelerator
    assert compiled(lambda x: x @ x, platform="gpu").accelerator


@pytest.mark.parametrize(
    ("function", "platform", "tuned"),
    [(lambda x: x @ x, "gpu", True), (jnp.tanh, "gpu", False), (lambda x: x @ x, "cpu", False)],
)
def test_kernels_of_products_are_tried_out_on_a_gpu(function, platform, tuned):
    assert compiled(function, platform=platform).tuning_s == (BACKENDS["gpu"].tunes_s if tuned else 0)


def test_no_variant_is_called():
    called = []

    def told(x):
        jax.debug.callback(lambda: called.append(1))
        return x + 1

    count(told)
    jax.effects_barrier()

    assert called == []
