"""Each trap is found in a small program that has it, and in none that does not."""

import importlib
import re
import time
import warnings

import equinox
import jax
import jax.numpy as jnp
import numpy as np
import optimistix
import pytest
from jax.experimental import checkify

from jaxmeter.harness.machine.own_fault import OwnFaultError
from jaxmeter.harness.programs import traps
from jaxmeter.harness.programs.modes import How, prepare_as
from jaxmeter.harness.programs.traps import Called, watch_callbacks
from jaxmeter.harness.record.outcomes import KINDS, LEAST_CAPTURED_BYTES, LEAST_FROM_ONE_LINE, OWN_FAULT

N = 64
MATRIX = np.linspace(0.0, 1.0, N * N, dtype=np.float32).reshape(N, N)
WEIGHTS = np.ones(LEAST_CAPTURED_BYTES // 4, np.float32)
FEW_WEIGHTS = WEIGHTS[:-1]


def found_in(function, *args, **options):
    """The traps of a function, by kind."""
    return {trap.kind: trap for trap in examine(function, *args, **options).traps}


def examine(function, *args, mode="jit", donate=(), wide=(), is_called=True):
    """The traps of a function, and the remarks on it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # jax's own, which are evidence here
        prepared = prepare_as(mode, function, args, How(donate=donate), time.perf_counter, lambda stage: None)
        called = None
        if is_called:
            with watch_callbacks() as called:
                jax.block_until_ready(prepared.call(*prepared.args))
    found = traps.find_traps(prepared, wide, called)
    assert found.unknown == {}
    assert len({trap.kind for trap in found.traps}) == len(found.traps)
    return found


def products_of_which_none_is_used(x):
    for _ in range(20):
        x @ x
    return x + 1


def products_that_are_all_used(x):
    for _ in range(20):
        x = x @ x
    return x + 1


def elementwise_chain_without_use(x):
    y = x
    for _ in range(20):
        y = jnp.sin(y)
    return x + 1


def dead_product_in_a_loop(x):
    def step(carry, _):
        return (carry[0] + 1, carry[1] @ x), None

    return jax.lax.scan(step, (x, x), length=5)[0][0]


def dead_product_in_a_call(x):
    return jax.jit(lambda y: (y + 1, y @ y))(x)[0]


def dead_product_in_a_loss(x):
    def loss(y):
        y @ y
        return jnp.sum(jnp.tanh(y @ x) ** 2)

    return jax.grad(loss)(x)


def dead_product_in_a_jitted_loss(x):
    @jax.jit
    def loss(y):
        return jnp.sum(jnp.tanh(y @ x) ** 2), y @ y

    return jax.grad(lambda y: loss(y)[0])(x)


def gradients_that_are_lost(x):
    jax.grad(lambda y: jnp.sum(jnp.tanh(y @ y) ** 2))(x)
    return x + 1


def gradient_of_elementwise_work(x):
    return jax.grad(lambda y: jnp.sum(jnp.exp(y) ** 2))(x)


def product_of_a_hessian_and_a_vector(x):
    return jax.jvp(jax.grad(lambda y: jnp.mean(jax.nn.softplus(x @ y))), (x[0],), (x[1],))[1]


@pytest.mark.parametrize(
    "function",
    [
        products_of_which_none_is_used,
        elementwise_chain_without_use,
        dead_product_in_a_loop,
        dead_product_in_a_call,
        dead_product_in_a_loss,
        dead_product_in_a_jitted_loss,
        gradients_that_are_lost,
    ],
)
def test_work_that_no_result_depends_on_is_found_with_its_line(function):
    trap = found_in(function, MATRIX)["dead_work"]

    assert 0.1 <= trap.share <= 1
    assert trap.sources[0].startswith("programs/test_traps.py:")


def test_the_share_of_dead_work_is_by_flops():
    def half_of_it(x):
        x @ x
        return x @ x.T

    trap = found_in(half_of_it, MATRIX)["dead_work"]

    assert trap.share == pytest.approx(0.5)


def branches(x, y):
    return jax.lax.cond(x[0, 0] > 0, lambda: y + 1, lambda: y)


def while_loop(x, y):
    return jax.lax.while_loop(lambda state: state[0] < x[0, 0], lambda state: (state[0] + 1, 2 * state[1]), (0.0, y))[1]


def scan(x, y):
    return jax.lax.scan(lambda carry, _: (carry[::-1], carry[1]), (x, y), length=2)[0][1]


@jax.custom_jvp
def custom(x, y):
    return y + 1


@custom.defjvp
def _(primals, tangents):
    return custom(*primals), tangents[1]


def jitted(x, y):
    return jax.jit(lambda x, y: y + 1)(x, y)


@pytest.mark.parametrize(
    ("function", "depends"),
    [(branches, True), (while_loop, True), (scan, True), (custom, False), (jitted, False)],
)
def test_dependence_is_followed_through_calls_loops_and_branches(function, depends):
    def first_counts(x):
        return function(x, jnp.ones((N, N)))

    def second_counts(x):
        return function(jnp.ones((N, N)), x)

    assert ("no_input" not in found_in(first_counts, MATRIX)) == depends
    assert "no_input" not in found_in(second_counts, MATRIX)


def test_an_output_that_depends_on_no_argument_is_found_by_its_path_and_a_result_as_a_whole():
    trap = found_in(lambda x: {"a": x + 1, "b": jnp.sin(jnp.ones(N))}, MATRIX)["no_input"]

    whole = found_in(lambda x: jnp.zeros_like(x) + 3, MATRIX)["no_input"]
    assert (whole.share, bool(whole.sources)) == (1, True)

    assert (trap.share, trap.count) == (0.5, 1)
    assert "['b']" in trap.evidence


def test_without_arguments_a_result_counts_where_nothing_is_left_to_compute():
    constant = found_in(lambda: jnp.zeros(4) + 3)
    computed = found_in(lambda: jnp.sum(jnp.sin(jnp.arange(100_000.0)) @ jnp.cos(jnp.ones((100_000, 2)))))

    assert constant["no_input"].share == 1
    assert "no_input" not in computed


def test_captured_arrays_are_found_from_1_mb_on():
    trap = found_in(lambda x: x[0, 0] * WEIGHTS, MATRIX)["constants"]

    assert (trap.size_bytes, trap.count) == (LEAST_CAPTURED_BYTES, 1)
    assert trap.sources
    assert found_in(lambda x, w: x[0, 0] * w, MATRIX, WEIGHTS) == {}
    inside = jax.jit(lambda x: x * jnp.asarray(WEIGHTS))
    assert found_in(lambda x: inside(x[0, 0]), MATRIX)["constants"].size_bytes == LEAST_CAPTURED_BYTES


def test_an_array_that_is_captured_twice_counts_once():
    def twice(x):
        return x[0, 0] * WEIGHTS, jax.lax.cond(x[0, 0] > 0, lambda: jnp.asarray(WEIGHTS), lambda: -jnp.asarray(WEIGHTS))

    assert found_in(twice, MATRIX)["constants"].size_bytes <= 2 * LEAST_CAPTURED_BYTES


def test_donated_memory_that_is_not_reused_is_found():
    trap = found_in(lambda state, x: (x + 1, jnp.sum(state)), MATRIX, MATRIX[:2], donate=(0,))["donation"]

    assert trap.count == 1
    assert trap.size_bytes == MATRIX.nbytes
    assert "float32[64,64]" in trap.evidence
    # One that the program does not even take is found too.
    assert found_in(lambda state, x: x + 1, MATRIX[:3], MATRIX, donate=(0,))["donation"].count == 1


@pytest.mark.parametrize("mode", ["eager", "jit"])
def test_a_dtype_that_is_truncated_is_found(mode):
    trap = found_in(lambda x: x.astype("float64") + jnp.zeros(N, "int64"), MATRIX, mode=mode)["truncated"]

    assert "float64 becomes float32" in trap.evidence
    assert "int64 becomes int32" in trap.evidence
    assert trap.sources[0].startswith("programs/test_traps.py:")


def test_wide_inputs_are_found_whether_or_not_they_can_be_traced():
    def traceable():
        return np.ones(3), np.ones(3, np.float32), np.float64(1.0), np.arange(3), 2.0

    def of_values():
        return np.full(int(jnp.ones(())), 1j), np.full(int(jnp.ones(())) + 2, 1j)

    assert traps.find_wide_inputs(traceable) == ("float64",)
    assert traps.find_wide_inputs(of_values) == ("complex128",)
    assert traps.find_wide_inputs(lambda: (jnp.ones(3), np.ones(3, np.float32))) == ()
    with jax.enable_x64(True):
        assert traps.find_wide_inputs(traceable) == ()
        assert found_in(lambda x: x.astype("float64"), MATRIX) == {}
    assert found_in(jnp.sin, MATRIX, wide=("float64",))["truncated"].count == 1


def printing(x):
    jax.debug.print("{}", x[0, 0])
    return x + 1


def in_a_loop(x):
    def step(carry, _):
        return jax.pure_callback(lambda y: np.asarray(y) + 1, jax.ShapeDtypeStruct(x.shape, x.dtype), carry), None

    return jax.lax.scan(step, x, length=7)[0]


def in_a_branch(x):
    return jax.lax.cond(x[0, 0] > 0, printing, lambda y: jnp.sin(jnp.cos(y)), x)


def in_a_branch_that_is_taken(x):
    return jax.lax.cond(x[0, 0] == 0, printing, lambda y: jnp.sin(jnp.cos(y)), x)


def until_it_is_large(x):
    return jax.lax.while_loop(lambda y: y[0, 0] < 4, printing, x)


@pytest.mark.parametrize(
    ("function", "often"),
    [(printing, 1), (in_a_loop, 7), (in_a_branch_that_is_taken, 1), (until_it_is_large, 4)],
)
@pytest.mark.parametrize("mode", ["eager", "jit"])
def test_callbacks_are_found_with_how_often_a_call_comes_to_them(function, often, mode):
    found = examine(function, MATRIX, mode=mode)
    (trap,) = found.traps

    assert (trap.kind, trap.count) == ("callbacks", often)
    assert trap.sources[0].startswith("programs/test_traps.py:")
    assert found.remarks == ()


def host(value):
    return np.asarray(value) + 1


def called_on_the_host(x):
    return jax.pure_callback(host, jax.ShapeDtypeStruct(x.shape, x.dtype), x)


@jax.custom_jvp
def error_if(x, is_wrong):
    """As `equinox.error_if` does it."""

    def fail(value):
        raise ValueError("wrong")

    shape = jax.ShapeDtypeStruct(x.shape, x.dtype)
    return jax.lax.cond(is_wrong, lambda: jax.pure_callback(fail, shape, x), lambda: x)


@error_if.defjvp
def _(primals, tangents):
    return error_if(*primals), tangents[0]


def with_an_error_if(x):
    return jnp.sin(error_if(x, jnp.isnan(x).any()))


CHECKS = {
    "a branch that is not taken": in_a_branch,
    "an error of equinox": with_an_error_if,
    "its gradient": jax.grad(lambda x: with_an_error_if(x).sum()),
    "in a loop": lambda x: jax.lax.fori_loop(0, 3, lambda _, y: with_an_error_if(y), x),
    "a loop that ends at once": lambda x: jax.lax.while_loop(lambda y: y[0, 0] > 4, printing, x),
}


@pytest.mark.parametrize("function", CHECKS.values(), ids=CHECKS)
@pytest.mark.parametrize("mode", ["eager", "jit"])
def test_a_callback_that_a_call_does_not_come_to_is_a_remark(function, mode):
    found = examine(function, MATRIX, mode=mode)

    (remark,) = found.remarks
    assert found.traps == ()
    assert remark.kind == "callbacks"
    assert "can call Python, in a " in remark.text
    assert "programs/test_traps.py:" in remark.text


def solve(x):
    """A root by optimistix, which checks its steps."""
    solver, target = optimistix.Newton(rtol=1e-4, atol=1e-4), x.mean() + 2
    return optimistix.root_find(lambda y, _: y**2 - target, solver, jnp.sqrt(target) + 0.1, throw=True).value


LIBRARIES = {
    "equinox": lambda x: jnp.sin(equinox.error_if(x, jnp.isnan(x), "wrong")),
    "its gradient": jax.grad(lambda x: jnp.sin(equinox.error_if(x, jnp.isnan(x), "wrong")).sum()),
    "optimistix": solve,
}


@pytest.mark.parametrize("function", LIBRARIES.values(), ids=LIBRARIES)
def test_the_checks_of_libraries_accuse_nobody(function):
    found = examine(function, MATRIX)

    assert [trap for trap in found.traps if trap.kind in ("callbacks", "unrolled")] == []
    assert {remark.kind for remark in found.remarks} == {"callbacks"}
    assert all("programs/test_traps.py:" in remark.text for remark in found.remarks)


@pytest.mark.parametrize("mode", ["eager", "jit"])
def test_only_the_callbacks_that_ran_are_named(mode):
    def both(x):
        y = jax.lax.cond(x[0, 0] > 4, called_on_the_host, lambda y: y, x)
        return called_on_the_host(y)

    found = examine(both, MATRIX, mode=mode)

    assert [trap.count for trap in found.traps] == [1]
    assert len(found.remarks) == 1


def test_where_nothing_is_called_a_callback_in_a_branch_is_a_remark_and_another_a_trap():
    assert examine(in_a_branch, MATRIX, is_called=False).traps == ()
    assert examine(in_a_branch, MATRIX, is_called=False).remarks[0].text.startswith("debug_print can call Python, in a")
    assert found_in(in_a_loop, MATRIX, is_called=False)["callbacks"].count == 7


def test_callbacks_that_cannot_be_counted_leave_the_trap_unknown():
    prepared = prepare_as("jit", printing, (MATRIX,), How(), time.perf_counter, lambda stage: None)

    found = traps.find_traps(prepared, called=Called(fault=OwnFaultError("gone", "how often it calls Python")))

    assert found.traps == found.remarks == ()
    assert found.unknown["callbacks"].startswith(OWN_FAULT)


LIBRARY = f"""
import jax, jax.numpy as jnp

@jax.jit
def call_back(x):
    jax.debug.callback(lambda y: None, x)
    return x

def square(x):
    return x @ x

def waste(x):
    x @ x
    return x + 1

def widen(x):
    return x + jnp.ones(x.shape, "float64")

def capture(x, w):
    return x[0, 0] * jnp.asarray(w)

def unroll(x):
    for _ in range({LEAST_FROM_ONE_LINE}):
        x = x + 1
    return x
"""


@pytest.fixture
def library(tmp_path, monkeypatch):
    """A module that is installed as a package is."""
    packages = tmp_path / "lib/python3.13/site-packages"
    packages.mkdir(parents=True)
    (packages / "library_of_traps.py").write_text(LIBRARY, encoding="utf8")
    monkeypatch.syspath_prepend(str(packages))
    return importlib.import_module("library_of_traps")


def dropping_a_square(library, x):
    library.square(x)
    return x + 1


def dropping_a_jitted_square(library, x):
    """Of both squares no result depends."""
    return jax.jit(lambda y: (dropping_a_square(library, y), library.square(y)))(x)[0]


IN_A_LIBRARY = {
    "a callback": ("callbacks", lambda library, x: library.call_back(x)),
    "dead work": ("dead_work", dropping_a_square),
    "dead work in a call": ("dead_work", dropping_a_jitted_square),
    "a truncated dtype": ("truncated", lambda library, x: library.widen(x)),
    "a captured array": ("constants", lambda library, x: library.capture(x, WEIGHTS)),
}


@pytest.mark.parametrize(("kind", "function"), IN_A_LIBRARY.values(), ids=IN_A_LIBRARY)
def test_a_trap_in_a_library_names_the_users_line_too(kind, function, library):
    (source, *_) = found_in(lambda x: function(library, x), MATRIX)[kind].sources

    assert re.fullmatch(r"programs/test_traps\.py:\d+ via site-packages/library_of_traps\.py:\d+", source)


@pytest.mark.parametrize(
    ("name", "begin"),
    [("waste", ".*inside calls of a library "), ("unroll", f"{LEAST_FROM_ONE_LINE:,} equations come from one line of")],
)
def test_what_a_library_wastes_or_unrolls_is_a_remark(library, name, begin):
    found = examine(lambda x: -getattr(library, name)(x), MATRIX)

    (remark,) = found.remarks
    assert found.traps == ()
    assert re.match(rf"{begin}.*programs/test_traps\.py:\d+ via site-packages/", remark.text)


def test_a_loop_that_python_unrolls_is_found():
    def unrolled(x):
        for _ in range(LEAST_FROM_ONE_LINE):
            x = x + 1
        return x

    def rolled(x):
        return jax.lax.fori_loop(0, LEAST_FROM_ONE_LINE, lambda _, y: y + 1, x)

    trap = found_in(unrolled, MATRIX)["unrolled"]

    assert trap.count == LEAST_FROM_ONE_LINE
    assert len(trap.sources) == 1
    assert found_in(rolled, MATRIX) == {}


def test_a_finder_that_fails_leaves_a_note_and_the_others(monkeypatch):
    def fail(program):
        raise ValueError("an unknown form")

    monkeypatch.setitem(traps.FINDERS, "dead_work", fail)
    prepared = prepare_as("jit", printing, (MATRIX,), How(), time.perf_counter, lambda stage: None)

    found = traps.find_traps(prepared)

    assert [trap.kind for trap in found.traps] == ["callbacks"]
    assert list(found.unknown) == ["dead_work"]
    assert found.unknown["dead_work"].startswith(
        f"{OWN_FAULT}: cannot determine whether it has the trap 'dead work': ValueError"
    )


def test_every_kind_has_a_finder_and_a_row():
    assert list(traps.FINDERS) == list(KINDS)


def checked_logarithm(x):
    checkify.check(x.sum() > 0, "the sum must be positive")
    return jnp.log(x)


def drawn(x):
    return jax.experimental.io_callback(lambda: np.float32(1), jax.ShapeDtypeStruct((), np.float32))


HARMLESS = {
    "products that are all used": (products_that_are_all_used, {}),
    "a gradient of element-wise work": (gradient_of_elementwise_work, {}),
    "a Hessian times a vector": (product_of_a_hessian_and_a_vector, {}),
    "a number that is returned as it is": (lambda x: (x + 1, 3.0), {}),
    "few captured weights": (lambda x: x[0, 0] * FEW_WEIGHTS, {}),
    "donated memory that is reused": (lambda x: (x + 1, jnp.sum(x)), {"donate": (0,)}),
    "eager code, which does what its source says": (products_of_which_none_is_used, {"mode": "eager"}),
    "eager code that cannot be traced": (lambda x: x if float(x[0, 0]) > 0 else -x, {"mode": "eager"}),
    "code that is not traced as a whole": (jax.jit(printing), {"mode": "mixed"}),
    "what checkify adds to the outputs": (checkify.checkify(checked_logarithm), {}),
}


@pytest.mark.parametrize(("function", "options"), HARMLESS.values(), ids=HARMLESS)
def test_what_is_no_trap_is_not_found(function, options):
    assert found_in(function, MATRIX, **options) == {}


def test_what_a_callback_gives_comes_from_outside():
    assert set(found_in(drawn, MATRIX)) == {"callbacks"}


def test_a_result_next_to_an_error_of_checkify_can_be_constant():
    def constant(x):
        checkify.check(x.sum() > 0, "the sum must be positive")
        return jnp.sin(jnp.ones(N))

    trap = found_in(checkify.checkify(constant), MATRIX)["no_input"]

    assert trap.share == 1
