import dataclasses
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness import buffers, cost, program
from harness.modes import PREPARE

SIDE = 64
PRODUCT_FLOPS = 2 * SIDE**3
SQUARE_BYTES = SIDE * SIDE * 4


def stages(function, *args):
    return PREPARE["jit"](function, args, lambda: 0.0, lambda stage: None).stages


def compiled(function, *args):
    return stages(function, *args).compiled


def square(seed=0):
    return jnp.asarray(np.random.default_rng(seed).normal(size=(SIDE, SIDE)), jnp.float32)


# Counts


def test_equations_are_counted_at_the_top_and_at_all_levels():
    def loop(x):
        return jax.lax.scan(lambda total, value: (total + jnp.sin(value), total), x[0], x)

    found = program.source_counts(stages(loop, jnp.ones(3)))

    top = [equation.primitive.name for equation in jax.make_jaxpr(loop)(jnp.ones(3)).eqns]
    assert found["jaxpr_equations"] == len(top)
    assert found["jaxpr_equations_nested"] == len(top) + len(["sin", "add"])


def test_operations_of_stablehlo_are_counted_without_the_functions_that_hold_them():
    found = program.source_counts(stages(lambda x: jnp.sin(x) + x, jnp.ones(3)))

    assert found["stablehlo_operations"] == len(["sine", "add", "return"])


def test_the_optimised_program_is_counted():
    found = program.optimised_counts(stages(lambda x: jnp.sin(x) + 1, jnp.ones(3)))

    assert found == {"hlo_instructions": 7, "hlo_fusions": 1, "hlo_custom_calls": 0, "hlo_collectives": 0}


def test_the_texts_are_those_of_three_levels():
    found = program.texts(stages(jnp.sin, jnp.ones(3)))

    assert set(found) == set(program.TEXTS)
    assert "sin" in found["jaxpr"]
    assert "stablehlo.sine" in found["stablehlo"]
    assert found["hlo"].startswith("HloModule")


def test_what_a_backend_does_not_tell_is_left_out_of_the_texts():
    def refuse():
        raise jax.errors.JaxRuntimeError("INTERNAL: no text")

    real = stages(jnp.sin, jnp.ones(3))

    found = program.texts(dataclasses.replace(real, compiled=SimpleNamespace(as_text=refuse)))

    assert set(found) == {"jaxpr", "stablehlo"}


# Fingerprint


def test_the_values_of_a_large_constant_are_part_of_the_program():
    left, right = square(1), square(2)

    one = program.fingerprint(compiled(lambda x: x + left, square()))
    other = program.fingerprint(compiled(lambda x: x + right, square()))
    again = program.fingerprint(compiled(lambda x: x + left, square()))

    assert one == again
    assert one != other


# XLA's cost, loops counted as often as they run


@pytest.mark.parametrize("trips", [2, 10, 1000])
def test_a_loops_body_counts_as_often_as_it_runs(trips):
    def loop(x, w):
        return jax.lax.fori_loop(0, trips, lambda i, y: y @ w, x)

    once = compiled(loop, square(), square()).cost_analysis()["flops"]
    found = cost.counted(compiled(loop, square(), square())).values

    assert once < 2 * PRODUCT_FLOPS, "XLA counts it once: the correction has nothing to do"
    assert found["counted_flops"] == pytest.approx(trips * PRODUCT_FLOPS, rel=0.01)


def test_loops_inside_loops_multiply():
    def loop(x, w):
        inner = lambda y: jax.lax.fori_loop(0, 5, lambda i, y: y @ w, y)  # noqa: E731
        return jax.lax.fori_loop(0, 3, lambda i, y: jnp.sin(inner(y)), x)

    found = cost.counted(compiled(loop, square(), square())).values

    assert found["counted_flops"] == pytest.approx(15 * PRODUCT_FLOPS, rel=0.01)


def test_what_the_compiler_moved_out_of_a_loop_counts_once():
    def loop(x, w):
        return jax.lax.fori_loop(0, 10, lambda i, y: y * 2 + (w @ w), x)

    found = cost.counted(compiled(loop, square(), square())).values

    assert found["counted_flops"] == pytest.approx(PRODUCT_FLOPS, rel=0.5)


def test_the_bytes_of_a_loops_body_count_as_often_as_it_runs():
    def loop(x):
        return jax.lax.fori_loop(0, 100, lambda i, y: jnp.sin(y), x)

    found = cost.counted(compiled(loop, square())).values

    assert found["counted_bytes"] == pytest.approx(100 * 2 * SQUARE_BYTES, rel=0.1)


def test_without_a_loop_the_count_is_xlas_own():
    one = compiled(jnp.matmul, square(), square())

    found = cost.counted(one).values

    assert found == {
        "counted_flops": one.cost_analysis()["flops"],
        "counted_bytes": one.cost_analysis()["bytes accessed"],
    }


def test_a_loop_that_runs_an_unknown_number_of_times_has_no_count():
    def loop(x):
        return jax.lax.while_loop(lambda y: y.sum() < 10, lambda y: y * 2, x)

    with pytest.raises(cost.NotCountableError, match="how often a loop of this program runs is not known"):
        cost.counted(compiled(loop, jnp.ones(3)))


@pytest.mark.parametrize("analysis", [None, {}, {"flops": -1.0, "bytes accessed": 8.0}, {"flops": 1.0}])
def test_a_count_that_the_backend_does_not_give_is_no_count(analysis):
    silent = SimpleNamespace(cost_analysis=lambda: analysis, as_text=lambda: "")

    with pytest.raises(cost.NotCountableError, match="XLA gives no count"):
        cost.counted(silent)


# Buffers


def test_the_largest_buffers_are_told_with_size_kind_and_source_line():
    def chain(x, w):
        hidden = jnp.sin(x @ w) @ w  # the only line that makes a temporary
        return (hidden @ w).sum()

    found = buffers.largest(compiled(chain, square(), square()))

    line = chain.__code__.co_firstlineno + 1
    temporary = next(one for one in found if one.kind == "temporary")
    assert temporary.size_bytes == SQUARE_BYTES
    assert temporary.shape == f"f32[{SIDE},{SIDE}]"
    assert temporary.source.endswith(f"{Path(__file__).name}:{line}")
    assert temporary.operation.startswith("jit(chain)/")


def test_an_argument_is_told_by_its_name():
    found = buffers.largest(compiled(lambda weights: weights * 2, square()))

    assert ("argument", "weights", SQUARE_BYTES) in [(one.kind, one.operation, one.size_bytes) for one in found]


def test_buffers_come_by_size_and_only_where_they_are_worth_a_line():
    found = buffers.largest(compiled(lambda x: (x * 2, x[0, :2]), square()))

    sizes = [one.size_bytes for one in found]
    assert sizes == sorted(sizes, reverse=True)
    assert min(sizes) >= buffers.SMALLEST_BYTES
    assert len(sizes) <= buffers.MOST


def test_a_backend_that_tells_no_assignment_has_no_buffers():
    silent = SimpleNamespace(memory_analysis=lambda: SimpleNamespace(serialized_buffer_assignment_proto=b""))

    assert buffers.largest(silent) == ()


@given(st.binary(max_size=64))
def test_bytes_that_are_no_protocol_buffer_are_an_error_of_value(data):
    with suppress(ValueError):
        assert all(isinstance(value, int | bytes) for _, value in buffers.fields(data))


def test_fields_of_every_wire_type_are_read():
    message = bytes([0x08, 0x96, 0x01, 0x12, 0x02, 0x68, 0x69, 0x1D, 1, 2, 3, 4, 0x21, *range(8)])

    assert list(buffers.fields(message)) == [(1, 150), (2, b"hi"), (3, bytes([1, 2, 3, 4])), (4, bytes(range(8)))]


@pytest.mark.parametrize("size", [1, 4, 6])
def test_a_protocol_buffer_that_is_cut_short_says_so(size):
    whole = bytes([0x08, 0x96, 0x01, 0x12, 0x02, 0x68, 0x69])

    with pytest.raises(ValueError, match="cut short"):
        list(buffers.fields(whole[:size]))
