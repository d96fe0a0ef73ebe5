import math
import time

import jax
import jax.numpy as jnp
import msgspec
import numpy as np
import pytest
from flax import nnx
from hypothesis import assume, given
from hypothesis import strategies as st

from jaxmeter import State, no_reference, workload
from jaxmeter.harness.machine.platforms import BACKENDS
from jaxmeter.harness.probes import Context, numerics, run_probes
from jaxmeter.harness.probes.conditioning import relative_error
from jaxmeter.harness.probes.evaluation import TOLERANCE, find_tolerance
from jaxmeter.harness.record import NumericsDetails, Outcome, Status

entries = st.floats(-1e6, 1e6).filter(lambda value: value == 0 or abs(value) > 1e-6)
arrays = st.lists(entries, min_size=1, max_size=6).map(np.array)
special = st.sampled_from([math.nan, math.inf, -math.inf])


def checked(function, *arguments, reference, backend="cpu", mode="jit", **declared) -> Outcome:
    """The numerics of one function that stands for a whole suite; which program it is, another test asks."""
    outcome = looked_at(function, *arguments, reference=reference, backend=backend, mode=mode, **declared)
    if isinstance(outcome.details, NumericsDetails):
        return msgspec.structs.replace(outcome, details=msgspec.structs.replace(outcome.details, fingerprint=None))
    return outcome


def looked_at(function, *arguments, reference, backend="cpu", mode="jit", **declared) -> Outcome:
    """The whole of it."""
    made = workload(inputs=lambda key: arguments, reference=reference, modes=(mode,), **declared)(function)
    context = Context(made, {}, BACKENDS[backend], arguments, time.perf_counter, None)
    (name,) = made.variants
    found, _ = run_probes({"numerics": (name,)}, context)
    return found[name]["numerics"]


def off_by(error: float):
    """Matrix product with a relative error in every entry, float32."""

    def matmul(a, b):
        return a @ b * np.float32(1 + error)

    return matmul


SQUARES = (jnp.ones((4, 4)), jnp.eye(4))


# The error


@given(array=arrays, data=st.data())
def test_a_changed_entry_is_an_error_in_its_place_relative_to_the_largest_entry(array, data):
    platform = data.draw(st.integers(0, array.size - 1))
    changed = array.copy()
    changed[platform] = data.draw(entries)
    assume(changed[platform] != array[platform])

    error, index = relative_error(changed, array)

    largest = np.abs(array).max() or 1.0
    assert index == (platform,)
    assert error == abs(changed[platform] - array[platform]) / largest > 0


@given(array=arrays, noise=st.floats(0, 1e-3), power=st.integers(-20, 20))
def test_an_error_does_not_depend_on_the_scale(array, noise, power):
    assume(np.abs(array).max() > 0)
    got = array + noise * np.abs(array).max()

    assert relative_error(got * 2.0**power, array * 2.0**power) == relative_error(got, array)


@given(array=arrays, value=special | entries, data=st.data())
def test_equal_entries_agree_and_so_do_infinities_and_two_nan(array, value, data):
    array[data.draw(st.integers(0, array.size - 1))] = value

    assert relative_error(array, array.copy())[0] == 0.0


@given(array=arrays, got=special | entries, want=special | entries, data=st.data())
def test_any_other_non_finite_entry_is_an_infinite_error(array, got, want, data):
    assume(not (math.isfinite(got) and math.isfinite(want)))
    assume(got != want and not (math.isnan(got) and math.isnan(want)))
    platform = data.draw(st.integers(0, array.size - 1))
    other = array.copy()
    other[platform], array[platform] = got, want

    assert relative_error(other, array) == (math.inf, (platform,))


@given(left=st.lists(st.integers(-(2**31), 2**31 - 1), min_size=1, max_size=4), data=st.data())
def test_different_integers_always_have_an_error(left, data):
    right = data.draw(st.lists(st.integers(-(2**31), 2**31 - 1), min_size=len(left), max_size=len(left)))

    error, _ = relative_error(np.array(left), np.array(right))

    assert (error == 0.0) is (left == right)


@pytest.mark.parametrize(
    ("got", "want", "error"),
    [
        ([1.0, 64.0], [0.0, 64.0], (1 / 64, (0,))),
        ([0.0, 0.25], [0.0, 0.0], (0.25, (1,))),
        ([math.inf, 3.0], [math.inf, 4.0], (0.25, (1,))),
        ([[[1.0, 1.0], [1.0, 2.0]]], [[[1.0, 1.0], [1.0, 1.0]]], (1.0, (0, 1, 1))),
        (3.0, 2.0, (0.5, ())),
        (np.zeros((0, 3)), np.zeros((0, 3)), (0.0, ())),
        ([3 + 4j, 0], [0j, 10 + 0j], (1.0, (1,))),
        ([True, False], [True, False], (0.0, (0,))),
        ([True, False], [True, True], (1.0, (1,))),
    ],
    ids=[
        *("beside a zero", "against zeros", "beside an infinite entry", "in three dimensions", "a number", "nothing"),
        *("complex", "truth values that agree", "truth values that differ"),
    ],
)
def test_an_error_is_relative_to_the_largest_entry_and_has_an_index(got, want, error):
    assert relative_error(np.array(got), np.array(want)) == error


# What is allowed

ROUNDING_UNIT = {
    "float64": 2**-53,
    "float32": 2**-24,
    "tensorfloat32": 2**-11,
    "float16": 2**-11,
    "bfloat16": 2**-8,
    "complex64": 2**-24,
    "complex128": 2**-53,
    "float8_e3m4": 2**-5,
    "float8_e4m3": 2**-4,
    "float8_e4m3fn": 2**-4,
    "float8_e4m3fnuz": 2**-4,
    "float8_e4m3b11fnuz": 2**-4,
    "float8_e5m2": 2**-3,
    "float8_e5m2fnuz": 2**-3,
    "float8_e8m0fnu": 2**-1,
    "float4_e2m1fn": 2**-2,
}
"""Half the distance from 1 to the next number: a product or sum is off by at most so much of itself."""


NARROW = [name for name in TOLERANCE if name.startswith(("float8", "float4"))]


@pytest.mark.parametrize("format_", [name for name in TOLERANCE if name not in NARROW])
def test_a_tolerance_is_some_rounding_units_of_its_format_and_far_from_those_of_the_next(format_):
    unit = ROUNDING_UNIT[format_]

    assert 4 * unit <= TOLERANCE[format_] <= 1e4 * unit
    assert not [
        coarser for coarser, its in ROUNDING_UNIT.items() if its > unit and TOLERANCE[coarser] <= TOLERANCE[format_]
    ]


@pytest.mark.parametrize("format_", NARROW)
def test_a_narrow_format_allows_the_rounding_of_a_cast_and_less_than_a_result_of_zeros(format_):
    assert ROUNDING_UNIT[format_] <= TOLERANCE[format_] <= min(2 * ROUNDING_UNIT[format_], 0.5)


@pytest.mark.parametrize("format_", [name for name in NARROW if name != "float8_e8m0fnu"])
def test_a_cast_to_a_narrow_format_is_right(format_):
    numbers = jnp.linspace(0, 1, 1000) * 1.03

    outcome = checked(lambda x: x.astype(format_), numbers, reference=lambda x: x)

    assert outcome.status is Status.OK
    assert outcome.values["max_error"][0] > 0.01


@pytest.mark.parametrize(
    ("dtype", "allowed"),
    [
        *(("float64", 1e-12), ("float32", 2e-5), ("float16", 5e-3), ("bfloat16", 3e-2)),
        *(("complex64", 2e-5), ("complex128", 1e-12)),
    ],
)
def test_a_result_without_products_may_be_off_by_as_much_as_its_dtype_allows(dtype, allowed):
    def outcome(error: float) -> Outcome:
        with jax.enable_x64(True):
            shifted = jnp.asarray([0.0, 1.0], dtype)
            return checked(lambda x: x, shifted, reference=lambda x: x + np.array([error, 0.0]), backend="tpu")

    assert outcome(0.99 * allowed).status is Status.OK
    assert outcome(0.99 * allowed).details == NumericsDetails(products=None, outputs=1)
    assert outcome(1.01 * allowed).status is Status.WRONG


def test_an_inexact_dtype_without_a_tolerance_of_its_own_has_that_of_the_coarsest_of_16_bits():
    assert find_tolerance("float6_e2m3fn") == TOLERANCE["bfloat16"]


@pytest.mark.parametrize(
    ("backend", "precision", "format_"),
    [
        ("cpu", None, "float32"),
        ("cpu", "highest", "float32"),
        ("gpu", None, "tensorfloat32"),
        ("gpu", "high", "tensorfloat32"),
        ("gpu", "highest", "float32"),
        ("tpu", None, "bfloat16"),
        ("tpu", "high", "tensorfloat32"),
        ("tpu", "highest", "float32"),
    ],
)
def test_a_float32_product_is_judged_by_the_format_it_is_computed_in(backend, precision, format_):
    def outcome(error: float) -> Outcome:
        with jax.default_matmul_precision(precision):
            return checked(off_by(error), *SQUARES, reference=np.matmul, backend=backend)

    within, beyond = outcome(0.9 * TOLERANCE[format_]), outcome(1.2 * TOLERANCE[format_])

    assert within.status is Status.OK
    assert (within.details.products, within.details.outputs) == (format_, 1)
    assert beyond.status is Status.WRONG
    assert f"allowed {TOLERANCE[format_]:.2g} for {format_};" in beyond.reason


@pytest.mark.parametrize(
    ("precisions", "format_"),
    [
        (("highest", "highest"), "float32"),
        (("highest", "high"), "tensorfloat32"),
        (("default", "highest"), "bfloat16"),
        (("highest", "default"), "bfloat16"),
    ],
)
def test_of_a_products_two_operands_the_coarser_counts(precisions, format_):
    def product(a):
        return jax.lax.dot_general(a, a, (((1,), (0,)), ((), ())), precision=precisions)

    found = checked(product, jnp.eye(4), reference=lambda a: a @ a, backend="tpu")

    assert found.details.products == format_


def test_a_workloads_own_tolerance_goes_before_all_others():
    assert checked(off_by(0.4), *SQUARES, reference=np.matmul, tolerance=0.5).status is Status.OK
    assert checked(off_by(1e-5), *SQUARES, reference=np.matmul, tolerance=1e-6).status is Status.WRONG


def test_integers_are_exact():
    numbers = jnp.array([10**6, 2])

    assert checked(lambda x: x + 1, numbers, reference=lambda x: x + 1).status is Status.OK
    outcome = checked(lambda x: x + 1, numbers, reference=lambda x: x)
    assert outcome.status is Status.WRONG
    assert outcome.reason == (
        "at index (0,): got 1000001, reference 1000000; error 1e-06 of the largest entry, allowed 0 for int32"
    )


def in_scan(a, b):
    return jax.lax.scan(lambda total, _: (total @ b, None), a, length=1)[0]


def in_cond(a, b):
    return jax.lax.cond(a[0, 0] > 0, lambda: a @ b, lambda: a)


def in_while(a, b):
    return jax.lax.while_loop(lambda state: state[0] < 1, lambda state: (state[0] + 1, state[1] @ b), (0, a))[1]


def in_jit(a, b):
    return jax.jit(jnp.matmul)(a, b)


def in_custom_derivative(a, b):
    product = jax.custom_jvp(jnp.matmul)
    product.defjvps(None, None)
    return product(a, b)


def in_checkpoint(a, b):
    return jax.checkpoint(jnp.matmul)(a, b)


def in_vmap(a, b):
    return jax.vmap(lambda row: row @ b)(a)


@pytest.mark.parametrize("mode", ["eager", "jit"])
@pytest.mark.parametrize(
    "function",
    [in_scan, in_cond, in_while, in_jit, in_custom_derivative, in_checkpoint, in_vmap],
    ids=lambda function: function.__name__,
)
def test_a_product_is_found_wherever_it_is(function, mode):
    outcome = checked(function, *SQUARES, reference=np.matmul, backend="gpu", mode=mode)

    assert outcome.status is Status.OK
    assert outcome.details == NumericsDetails(products="tensorfloat32", outputs=1)


def test_a_convolution_is_a_product():
    def smooth(x, window):
        return jnp.convolve(x, window, mode="same")

    def trusted(x, window):
        return np.convolve(x, window, mode="same")

    outcome = checked(smooth, jnp.arange(8.0), jnp.ones(3), reference=trusted, backend="gpu")

    assert outcome.details == NumericsDetails(products="tensorfloat32", outputs=1)


def test_the_coarsest_of_several_products_decides():
    def mixed(a, b):
        return jnp.matmul(jnp.matmul(a, b, precision="highest"), b)

    found = checked(mixed, *SQUARES, reference=np.matmul, backend="tpu")

    assert found.details == NumericsDetails(products="bfloat16", outputs=1)


def test_a_product_of_integers_is_none_of_float32():
    ones = jnp.ones((2, 2), "int32")

    assert checked(jnp.matmul, ones, ones, reference=np.matmul, backend="gpu").details == NumericsDetails(outputs=1)


def test_a_peer_is_judged_by_its_own_dtype():
    def narrow(a, b):
        return np.matmul(a, b) * np.float32(1 + 1e-3)

    outcome = checked(narrow, *SQUARES, reference=np.matmul, backend="gpu", mode="native")

    assert outcome.status is Status.WRONG
    assert "allowed 2e-05 for float32;" in outcome.reason


def by_value(a, b):
    return a @ b * np.float32(1 + 4e-3) if float(a[0, 0]) > 0 else a


@pytest.mark.parametrize("mode", ["eager", "mixed"])
def test_code_that_cannot_be_traced_may_hold_products_and_none_is_said_to_be_there(mode):
    def outcome(backend: str) -> Outcome:
        return checked(by_value, *SQUARES, reference=np.matmul, backend=backend, mode=mode)

    on_gpu, on_cpu = outcome("gpu"), outcome("cpu")

    assert on_gpu.status is Status.OK
    assert on_gpu.details == NumericsDetails(products=None, outputs=1)
    assert on_cpu.status is Status.WRONG
    assert "allowed 2e-05 for float32;" in on_cpu.reason


def test_the_worst_error_of_all_results_is_told():
    outcome = checked(lambda x: (x, x), jnp.ones(2), reference=lambda x: (x + 2**-17, x), tolerance=0.5)

    assert outcome.values == {"max_error": (2**-17 / (1 + 2**-17),)}


# What cannot be compared, or need not be


def changes_in_place(x):
    x += 1
    return x.sum()


def raises(x):
    raise ValueError("no luck")


@pytest.mark.parametrize(
    ("function", "reference", "status", "reason"),
    [
        (lambda x: x[:2], lambda x: x, Status.WRONG, "returned shape (2,), the reference (3,)"),
        (lambda x: (x, x), lambda x: (x, x, x), Status.WRONG, "returned 2 arrays, the reference 3"),
        (
            lambda x: (x, x),
            lambda x: (x, np.array([1, 1, 2])),
            Status.WRONG,
            "at output [1], index (2,): got 1, reference 2; error 0.5 of the largest entry",
        ),
        (lambda x: x / 0, lambda x: x, Status.WRONG, "at index (0,): got inf, reference 1; error inf"),
        (lambda x: x, raises, Status.FAILED, "in stage 'reference': ValueError: no luck"),
    ],
    ids=["another shape", "another number of results", "one of several results", "no number", "a broken reference"],
)
def test_what_is_not_the_reference_s_is_said(function, reference, status, reason):
    outcome = checked(function, jnp.ones(3), reference=reference)

    assert outcome.status is status
    assert outcome.reason.startswith(reason)
    if "inf" in reason:
        assert outcome.values == {"max_error": (None,)}


@pytest.mark.parametrize(
    ("function", "reason"),
    [
        (lambda x: (x + step for step in range(3)), "returns a generator: nothing runs until it is read"),
        (changes_in_place, "changes its arguments in place: x; "),
    ],
    ids=["a result that nobody has read", "an array of the host that is changed"],
)
def test_what_python_s_own_code_may_not_do_is_refused_by_name(function, reason):
    outcome = checked(function, np.ones(3), reference=lambda x: np.sum(x) + 3, mode="mixed")

    assert outcome.status is Status.FAILED
    assert reason in outcome.reason


@pytest.mark.parametrize(
    ("function", "status", "reason"),
    [
        (list, Status.OK, None),
        (lambda x: list(x)[::-1], Status.WRONG, "at index"),
        (lambda x: list(x)[:2], Status.WRONG, "returned shape (2,), the reference (3,)"),
    ],
    ids=["the same", "reversed", "fewer"],
)
def test_a_list_of_scalars_stands_for_an_array(function, status, reason):
    outcome = checked(function, jnp.arange(3.0), reference=lambda x: x)

    assert outcome.status is status
    assert reason is None or outcome.reason.startswith(reason)


def test_a_reference_works_in_the_widest_types():
    seen = []

    def reference(*arrays):
        seen.extend(array.dtype for array in arrays)
        return arrays[0]

    arguments = [jnp.zeros(2, dtype) for dtype in ("bfloat16", "int8", "complex64", "bool")]
    checked(lambda *arrays: arrays[0], *arguments, reference=reference)

    assert seen == ["float64", "int64", "complex128", "bool"]


def test_without_a_reference_the_reason_is_told():
    outcome = checked(lambda x: x, jnp.ones(2), reference=no_reference("draws are random"))

    assert (outcome.status, outcome.values) == (Status.OK, {})
    assert outcome.notes == ("not checked: draws are random",)


def test_what_the_reference_does_not_know_is_told_and_no_more_than_that_is_unchecked():
    def first(result):
        return result[0], np.full(2, np.nan)

    def outcome_of(function):
        return checked(function, jnp.ones(2), reference=lambda x: (x, np.full(2, np.nan)), compare=first)

    right, wrong = (outcome_of(lambda x, factor=factor: (factor * x, -x)) for factor in (1, 2))

    assert right.status is Status.OK
    assert right.details == NumericsDetails(outputs=2, unchecked=1)
    assert wrong.status is Status.WRONG


def test_a_nan_among_numbers_hides_none_of_them():
    reference = np.array([1.0, np.nan])

    found = checked(lambda x: x * reference, jnp.ones(2), reference=lambda x: x * reference)

    assert found.details == NumericsDetails(outputs=1, unchecked=0)


def test_no_results_hold_nothing_that_is_unchecked():
    found = checked(lambda x: x[:0], jnp.ones(2), reference=lambda x: x[:0])

    assert found.details == NumericsDetails(outputs=1, unchecked=0)


def test_a_reference_is_computed_once_for_all_variants_and_that_is_told():
    computed, told = [], []

    def reference(x):
        computed.append(x)
        return x

    made = workload(inputs=lambda key: jnp.ones(2), reference=reference, modes=("eager", "aot"))(lambda x: x)
    context = Context(made, {}, BACKENDS["cpu"], (jnp.ones(2),), time.perf_counter, None)
    context.beat = lambda variant, stage: told.append((variant and variant.rpartition(":")[2], stage))

    run_probes({"numerics": tuple(made.variants)}, context)

    assert len(computed) == 1
    assert told == [
        *[("eager", "prepare"), ("eager", "numerics"), (None, "reference"), ("eager", "numerics")],
        *[("aot", stage) for stage in ("prepare", "trace", "lower", "compile", "numerics")],
    ]


def test_eager_code_may_look_at_its_values():
    def by_value(x):
        return x + 1 if float(x[0]) > 0 else x

    assert checked(by_value, jnp.ones(2), reference=lambda x: x + 1, mode="eager").status is Status.OK


def test_a_random_key_among_the_inputs_does_not_hinder():
    def dropped(x, key):
        return jnp.where(jax.random.bernoulli(key, 1.0, x.shape), x, 0)

    assert checked(dropped, jnp.ones(2), jax.random.key(0), reference=lambda x, key: x).status is Status.OK


# Which program was checked


def fingerprint_of(function, mode: str, reference=np.negative) -> str | None:
    return looked_at(function, jnp.ones(4), reference=reference, mode=mode).details.fingerprint


def test_the_program_that_was_checked_is_told_by_its_fingerprint():
    one, same, other = (fingerprint_of(f, "jit") for f in (lambda x: -x, lambda y: -y, lambda x: 0 - x))

    assert one
    assert one == same == fingerprint_of(lambda x: -x, "aot") != other
    assert fingerprint_of(lambda x: -x, "jit", no_reference("nothing is compared")) == one
    assert fingerprint_of(lambda x: -x, "eager") is None


def test_a_backend_that_tells_no_program_costs_the_check_nothing(monkeypatch):
    def fail(compiled):
        raise NotImplementedError("no text")

    monkeypatch.setattr(numerics, "find_fingerprint", fail)

    outcome = looked_at(lambda x: -x, jnp.ones(4), reference=np.negative)

    assert (outcome.status, outcome.details.fingerprint) == (Status.OK, None)


class Module(nnx.Module):
    def __init__(self, scale):
        self.scale = nnx.Param(scale)


def scale_in_place(module, x):
    module.scale[...] = module.scale * 2
    return (module.scale * x).sum()


@pytest.mark.parametrize("mode", ["eager", "jit", "aot", "mixed"])
def test_an_implementation_that_changes_its_module_in_place_is_refused_in_every_mode(mode):
    module = Module(jnp.ones(3))

    outcome = checked(scale_in_place, module, jnp.ones(3), reference=lambda module, x: np.float64(6), mode=mode)

    assert outcome.status is Status.FAILED
    assert outcome.reason.startswith("changes its arguments in place: module.scale")
    assert np.array_equal(module.scale[...], np.ones(3))


def test_every_item_of_a_stream_is_watched():
    items = [(np.ones(3),), (np.ones(4),)]
    made = workload(inputs=lambda key: items, reference=np.sum, stream=True, modes=("mixed",), name="add")(
        changes_in_place
    )
    found, _ = run_probes(
        {"numerics": made.variants}, Context(made, {}, BACKENDS["cpu"], tuple(items), time.time, None)
    )

    assert "changes its arguments in place: x; " in found["add:mixed"]["numerics"].reason


@pytest.mark.parametrize("mode", ["eager", "jit"])
def test_a_state_that_calls_carry_may_be_changed_in_place(mode):
    def step(module, x):
        module.scale[...] = module.scale * 2
        return module, (module.scale * x).sum()

    def reference(module, x):
        return Module(jnp.full(3, 2.0)), np.float64(6)

    state = State(carry={"module": 0})
    outcome = checked(step, Module(jnp.ones(3)), jnp.ones(3), reference=reference, mode=mode, state=state)

    assert outcome.status is Status.OK, outcome.reason
