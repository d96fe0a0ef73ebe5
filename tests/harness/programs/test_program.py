import dataclasses
import getpass
from pathlib import Path
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxmeter.harness.programs import buffers, program
from jaxmeter.harness.programs.modes import How, prepare_as
from jaxmeter.harness.record.files import PROGRAM_TEXTS
from jaxmeter.harness.traces import hlo

SIDE = 64
PRODUCT_FLOPS = 2 * SIDE**3
SQUARE_BYTES = SIDE * SIDE * 4


def stages(function, *args):
    return prepare_as("jit", function, args, How(), lambda: 0.0, lambda stage: None).stages


def compiled(function, *args):
    return stages(function, *args).compiled


def compiled_from(path, *args):
    """A program whose source is said to be in that file, on its second line."""
    names = {}
    exec(compile("def double(x):\n    return x * 2", path, "exec"), names)
    return compiled(names["double"], *args)


def refuse(error):
    def as_text():
        raise error

    return as_text


def square(seed=0):
    return jnp.asarray(np.random.default_rng(seed).normal(size=(SIDE, SIDE)), jnp.float32)


# Counts


def test_equations_are_counted_at_the_top_and_at_all_levels():
    def loop(x):
        return jax.lax.scan(lambda total, value: (total + jnp.sin(value), total), x[0], x)

    found = program.count_source(stages(loop, jnp.ones(3)))

    top = [equation.primitive.name for equation in jax.make_jaxpr(loop)(jnp.ones(3)).eqns]
    assert found["jaxpr_equations"] == len(top)
    assert found["jaxpr_equations_nested"] == len(top) + len(["sin", "add"])


def test_operations_of_stablehlo_and_of_the_optimised_program_are_counted():
    found = stages(lambda x: jnp.sin(x) + x, jnp.ones(3))

    assert program.count_source(found)["stablehlo_operations"] == len(["sine", "add", "return"])
    assert program.count_optimised(stages(lambda x: jnp.sin(x) + 1, jnp.ones(3))) == {
        "hlo_instructions": 7,
        "hlo_fusions": 1,
        "hlo_custom_calls": 0,
        "hlo_collectives": 0,
    }


def test_the_texts_are_those_of_three_levels():
    found = program.read_texts(stages(jnp.sin, jnp.ones(3)))

    assert set(found) == set(PROGRAM_TEXTS)
    assert "sin" in found["jaxpr"]
    assert "stablehlo.sine" in found["stablehlo"]
    assert found["hlo"].startswith("HloModule")


def test_what_a_backend_does_not_tell_is_left_out_of_the_texts():
    real = stages(jnp.sin, jnp.ones(3))
    silent = SimpleNamespace(as_text=refuse(jax.errors.JaxRuntimeError("INTERNAL: no text")))

    found = program.read_texts(dataclasses.replace(real, compiled=silent))

    assert set(found) == {"jaxpr", "stablehlo"}


def test_large_constants_are_left_out_of_every_text_and_small_ones_are_shown():
    def texts_with(constant, argument):
        return program.read_texts(stages(lambda x: x + constant, argument))

    few = texts_with(np.asarray([0.25, 0.75, 0.125], np.float32), jnp.ones(3))
    one, other = (texts_with(square(value), square()) for value in (1, 2))

    assert one == other
    assert "[2.500000e-01, 7.500000e-01, 1.250000e-01]" in few["stablehlo"]
    assert "{0.25, 0.75, 0.125}" in few["hlo"]


@pytest.mark.parametrize(
    "as_text",
    [
        lambda: None,
        lambda: "",
        refuse(NotImplementedError("as_text")),
        refuse(jax.errors.JaxRuntimeError("UNIMPLEMENTED: as_text")),
    ],
    ids=["None", "empty", "not implemented", "refused"],
)
def test_a_backend_that_does_not_tell_its_program_has_no_text(as_text):
    with pytest.raises(program.NoTextError):
        program.read_hlo(SimpleNamespace(as_text=as_text))


def test_an_executable_has_the_size_of_its_serialised_form():
    one = compiled(jnp.sin, jnp.ones(3))

    assert program.measure_executable(one) == {"executable_bytes": len(one.runtime_executable().serialize())}


@pytest.mark.parametrize(
    "executable",
    [None, SimpleNamespace(serialize=refuse(jax.errors.JaxRuntimeError("UNIMPLEMENTED: serialize")))],
    ids=["None", "refused"],
)
def test_an_executable_that_cannot_be_serialised_has_no_size(executable):
    assert program.measure_executable(SimpleNamespace(runtime_executable=lambda: executable)) == {}


# Fingerprint


def test_the_values_of_a_large_constant_are_part_of_the_program():
    left, right = square(1), square(2)

    one = program.find_fingerprint(stages(lambda x: x + left, square()))
    other = program.find_fingerprint(stages(lambda x: x + right, square()))
    again = program.find_fingerprint(stages(lambda x: x + left, square()))

    assert one == again
    assert one != other


def test_constants_too_large_to_be_read_in_every_process_leave_a_program_without_a_fingerprint(monkeypatch):
    large = square()
    one = stages(lambda x: x + large, square())

    monkeypatch.setattr(program, "MOST_ELEMENTS", SIDE * SIDE)
    assert program.find_fingerprint(one)
    monkeypatch.setattr(program, "MOST_ELEMENTS", SIDE * SIDE - 1)
    with pytest.raises(program.NoTextError, match=f"its constants have {SIDE * SIDE} elements, too many"):
        program.find_fingerprint(one)


# XLA's cost, loops counted as often as they run

LOOP_CALLED_TWICE = """HloModule called_twice

%body (p: (s32[], f32[64])) -> (s32[], f32[64]) {
  %p = (s32[], f32[64]{0}) parameter(0)
  %i = s32[] get-tuple-element(%p), index=0
  %one = s32[] constant(1)
  %next = s32[] add(%i, %one)
  %x = f32[64]{0} get-tuple-element(%p), index=1
  %y = f32[64]{0} multiply(%x, %x)
  ROOT %t = (s32[], f32[64]{0}) tuple(%next, %y)
}

%condition (q: (s32[], f32[64])) -> pred[] {
  %q = (s32[], f32[64]{0}) parameter(0)
  %j = s32[] get-tuple-element(%q), index=0
  %n = s32[] constant(7)
  ROOT %less = pred[] compare(%j, %n), direction=LT
}

%called (a: (s32[], f32[64])) -> (s32[], f32[64]) {
  %a = (s32[], f32[64]{0}) parameter(0)
  ROOT w = (s32[], f32[64]) while(a), condition=condition, body=body, backend_config={"known_trip_count":{"n":"7"}}
}

ENTRY %main (b: (s32[], f32[64])) -> (s32[], f32[64]) {
  %b = (s32[], f32[64]{0}) parameter(0)
  %c = (s32[], f32[64]{0}) call(%b), to_apply=%called
  ROOT %d = (s32[], f32[64]{0}) call(%c), to_apply=%called
}
"""
"""As XLA writes a function that is not inlined; jax's own are."""


def called_twice():
    """That program as if compiled; XLA's own count of it holds each loop once."""
    once = {"flops": 1000.0, "bytes accessed": 0.0}
    return SimpleNamespace(cost_analysis=lambda: once, as_text=lambda: LOOP_CALLED_TWICE)


@pytest.mark.parametrize("trips", [2, 10, 1000])
def test_a_loops_body_counts_as_often_as_it_runs(trips):
    def loop(x, w):
        return jax.lax.fori_loop(0, trips, lambda i, y: y @ w, x)

    once = compiled(loop, square(), square()).cost_analysis()["flops"]
    found = program.count_work(compiled(loop, square(), square())).values

    assert once < 2 * PRODUCT_FLOPS, "XLA counts it once: the correction has nothing to do"
    assert found["counted_flops"] == pytest.approx(trips * PRODUCT_FLOPS, rel=0.01)


LARGE = np.random.default_rng(1).normal(size=(SIDE, SIDE)).astype(np.float32)


def nested(x, w):
    inner = lambda y: jax.lax.fori_loop(0, 5, lambda i, y: y @ w, y)  # noqa: E731
    return jax.lax.fori_loop(0, 3, lambda i, y: jnp.sin(inner(y)), x)


def moved_out(x, w):
    """A loop out of which the compiler moves the product."""
    return jax.lax.fori_loop(0, 10, lambda i, y: y * 2 + (w @ w), x)


def sines(x):
    return jax.lax.fori_loop(0, 100, lambda i, y: jnp.sin(y), x)


def with_a_large_constant(x):
    return jax.lax.fori_loop(0, 10, lambda i, y: y @ jnp.asarray(LARGE), x)


@pytest.mark.parametrize(
    ("function", "arguments", "metric", "expected", "within"),
    [
        (nested, 2, "counted_flops", 15 * PRODUCT_FLOPS, 0.01),
        (moved_out, 2, "counted_flops", PRODUCT_FLOPS, 0.5),
        (sines, 1, "counted_bytes", 100 * 2 * SQUARE_BYTES, 0.1),
        (with_a_large_constant, 1, "counted_flops", 10 * PRODUCT_FLOPS, 0.01),
    ],
)
def test_what_is_in_a_loop_counts_as_often_as_it_runs(function, arguments, metric, expected, within):
    found = program.count_work(compiled(function, *[square()] * arguments)).values

    assert found[metric] == pytest.approx(expected, rel=within)


def test_without_a_loop_the_count_is_xlas_own():
    one = compiled(jnp.matmul, square(), square())
    found, analysis = program.count_work(one).values, one.cost_analysis()

    assert found == {"counted_flops": analysis["flops"], "counted_bytes": analysis["bytes accessed"]}
    sines = program.count_work(compiled(jnp.sin, square())).values  # it counts them as transcendental, and no operation
    assert sines == {"counted_flops": 0.0, "counted_bytes": 2.0 * SQUARE_BYTES}


def test_loops_in_a_called_computation_count_for_every_call():
    found = program.count_work(called_twice()).values

    missing_rounds, flops_of_a_round = 7 - 1, 64 + len(["add", "compare"])
    assert found["counted_flops"] == 1000 + 2 * missing_rounds * flops_of_a_round


def work_of(function, *arguments):
    return lambda: compiled(function, *arguments)


@pytest.mark.parametrize(
    ("make", "why"),
    [
        *(
            (
                lambda analysis=analysis: SimpleNamespace(cost_analysis=lambda: analysis, as_text=lambda: ""),
                "it gives none for this program",
            )
            for analysis in (None, {}, {"flops": -1.0, "bytes accessed": 8.0}, {"flops": 0.0})
        ),
        (
            work_of(lambda x: jax.lax.while_loop(lambda y: y.sum() < 10, lambda y: y * 2, x), jnp.ones(3)),
            "how often a loop of this program runs is not known",
        ),
        (work_of(jnp.linalg.cholesky, jnp.eye(SIDE)), "it does not know what the program's custom calls do"),
        (
            work_of(lambda take, x: jax.lax.cond(take, lambda y: y @ y, jnp.sin, x), jnp.asarray(True), square()),
            "which branch of a conditional is taken is not known",
        ),
    ],
    ids=[
        *("no analysis", "an empty one", "a negative count", "no bytes"),
        *("a loop of unknown length", "a custom call", "a conditional"),
    ],
)
def test_a_program_that_cannot_be_counted_has_no_count_and_says_why(make, why):
    with pytest.raises(program.NotCountableError, match=why):
        program.count_work(make())


# Buffers


def test_the_largest_buffers_are_told_with_size_kind_and_source_line():
    def chain(x, w):
        hidden = jnp.sort(jnp.sin(x))  # the only line that makes a temporary, in every release
        return (hidden @ w).sum()

    found = buffers.find_largest(compiled(chain, square(), square()))

    line = chain.__code__.co_firstlineno + 1
    temporary = next(one for one in found if one.kind == "temporary")
    assert temporary.size_bytes == SQUARE_BYTES
    assert temporary.shape == f"f32[{SIDE},{SIDE}]"
    assert temporary.source.endswith(f"{Path(__file__).name}:{line}")
    assert temporary.operation.startswith("jit(chain)/")


@pytest.mark.parametrize(
    ("path", "source"),
    [
        ("/home/anna/suite.py", "~/suite.py:2"),
        ("/home/anna/work/suites/suite.py", "suites/suite.py:2"),
        ("/scratch/anna/suite.py", "user/suite.py:2"),
        ("/opt/suites/suite.py", "suites/suite.py:2"),
    ],
)
def test_the_source_of_a_buffer_is_folder_file_and_line_and_never_a_users_name(monkeypatch, path, source):
    monkeypatch.setattr(Path, "home", lambda: Path("/home/anna"))
    monkeypatch.setattr(getpass, "getuser", lambda: "anna")

    found = buffers.find_largest(compiled_from(path, square()))

    assert [one.source for one in found if one.kind == "output"] == [source]


def test_the_shape_of_a_tuple_of_many_parts_is_shortened():
    (found,) = buffers.find_largest(compiled(lambda x: (x,) * 200, jnp.ones(2)))

    assert found.shape.startswith("(f32[2], f32[2], ")
    assert found.shape.endswith("…")
    assert len(found.shape) == buffers.LONGEST_SHAPE


def test_an_argument_is_told_by_its_name():
    found = buffers.find_largest(compiled(lambda weights: weights * 2, square()))

    assert ("argument", "weights", SQUARE_BYTES) in [(one.kind, one.operation, one.size_bytes) for one in found]


def test_buffers_come_by_size_and_only_where_they_are_worth_a_line():
    found = buffers.find_largest(compiled(lambda x: (x * 2, x[0, :2]), square()))

    sizes = [one.size_bytes for one in found]
    assert sizes == sorted(sizes, reverse=True)
    assert min(sizes) >= buffers.SMALLEST_BYTES
    assert len(sizes) <= buffers.MOST


def test_a_backend_that_tells_no_assignment_has_no_buffers():
    silent = SimpleNamespace(memory_analysis=lambda: SimpleNamespace(serialized_buffer_assignment_proto=b""))

    assert buffers.find_largest(silent) == ()


# What no buffer is planned for: texts as XLA:CPU writes them, shortened

CHAIN = """HloModule jit_chain

%add (a: f32[], b: f32[]) -> f32[] {
  %a = f32[] parameter(0)
  %b = f32[] parameter(1)
  ROOT %sum = f32[] add(%a, %b)
}

%fused (w: f32[512,512], x: f32[512,512]) -> f32[] {
  %w.1 = f32[512,512]{1,0} parameter(0)
  %x.1 = f32[512,512]{1,0} parameter(1)
  %dot.1 = f32[512,512]{1,0} dot(%x.1, %w.1), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  %sine = f32[512,512]{1,0} sine(%dot.1)
  %zero = f32[] constant(0)
  ROOT %reduce = f32[] reduce(%sine, %zero), dimensions={0,1}, to_apply=%add
}

ENTRY %main (x: f32[512,512], w: f32[512,512]) -> f32[] {
  %x = f32[512,512]{1,0} parameter(0)
  %w = f32[512,512]{1,0} parameter(1)
  ROOT %ynn_fusion = f32[] fusion(%w, %x), kind=kCustom, calls=%fused, backend_config={BACKEND}
}
"""
YNN = '{"fusion_config":{"kind":"__ynn_fusion"},"outer_dimension_partitions":[]}'

PLAIN = """HloModule jit_plain

ENTRY %main (x: f32[SIDE,512], w: f32[512,512]) -> f32[SIDE,512] {
  %x = f32[SIDE,512]{1,0} parameter(0)
  %w = f32[512,512]{1,0} parameter(1)
  ROOT %product = f32[SIDE,512]{1,0} PRODUCT
}
"""
DOT = "dot(%x, %w), lhs_contracting_dims={1}, rhs_contracting_dims={0}"


def find_unplanned(text):
    return buffers.find_unplanned(hlo.parse(text))


@pytest.mark.parametrize(
    ("backend", "kind"),
    [(YNN, "ynn_fusion"), (YNN.replace("ynn", "xnn"), "xnn_fusion"), ("{}", "custom fusion")],
    ids=["today's library", "another library", "one without a name"],
)
def test_results_inside_a_fusion_that_a_library_runs_are_in_no_plan(backend, kind):
    found = find_unplanned(CHAIN.replace("{BACKEND}", backend))

    assert found == buffers.Unplanned((kind,), inside_bytes=2 * 512 * 512 * 4)


@pytest.mark.parametrize(
    ("old", "new", "backend"),
    [
        ("kCustom", "kLoop", "{}"),
        ("dot(%x.1, %w.1), lhs_contracting_dims={1}, rhs_contracting_dims={0}", "multiply(%x.1, %w.1)", YNN),
    ],
    ids=["the compiler's own code", "no product"],
)
def test_a_fusion_of_the_compilers_own_code_or_without_a_product_is_planned(old, new, backend):
    assert find_unplanned(CHAIN.replace(old, new).replace("{BACKEND}", backend)) == buffers.Unplanned()


@pytest.mark.parametrize(
    ("product", "side", "kinds"),
    [
        (DOT, 512, ("dot",)),
        ("convolution(%x, %w), dim_labels=bf_io->bf", 512, ("convolution",)),
        ('custom-call(%x, %w), custom_call_target="__onednn$matmul"', 512, ("__onednn$matmul",)),
        ('custom-call(%x, %w), custom_call_target="TopK"', 512, ()),
        (DOT, 1, ()),
        (DOT, 16, ("dot",)),
    ],
    ids=[
        *("Eigen's product", "Eigen's convolution", "oneDNN's product", "another call", "a product with a vector"),
        "a small result of large operands",
    ],
)
def test_a_product_that_a_library_computes_has_working_memory_of_its_own(product, side, kinds):
    text = PLAIN.replace("SIDE", str(side)).replace("PRODUCT", product)

    assert find_unplanned(text) == buffers.Unplanned(kinds)


def test_a_small_product_has_too_little_working_memory_to_be_measured():
    small = PLAIN.replace("PRODUCT", DOT).replace("SIDE", "256").replace("512", "256")

    assert find_unplanned(small) == buffers.Unplanned()
