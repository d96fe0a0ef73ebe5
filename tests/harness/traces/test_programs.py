"""Operations of a capture and the programs that they are of."""

from functools import cache

import jax
import jax.numpy as jnp
import pytest

from jaxmeter.harness.traces.costs import UNKNOWN
from jaxmeter.harness.traces.hlo_proto import read_program
from jaxmeter.harness.traces.programs import (
    METADATA_PLANE,
    Programs,
    find_category,
    list_programs,
    pick_line,
)
from jaxmeter.harness.traces.xplane import read_capture
from tests.harness.traces.made_up import analyse_made_up, encode_host, encode_plane, encode_space, operation, step


def program(size, *operations, name="jit_f"):
    """A program of elementwise operations of some size."""
    lines = [f"%{one} = f32[{size}]{{0}} negate(%p)" for one in operations]
    lines[-1] = f"ROOT {lines[-1]}"
    return "\n  ".join([f"HloModule {name}\n\nENTRY %main (p: f32[{size}]) -> f32[{size}] {{", *lines]) + "\n}\n"


@cache
def encoded(size):
    """A compiled program, encoded, and the name of its operation: they are the same for all sizes."""
    compiled = jax.jit(lambda x: x + 1).lower(jnp.ones(size)).compile()
    found = compiled.runtime_executable().hlo_modules()[0].as_serialized_hlo_module_proto()
    return found, read_program(found).entry.instructions[-1].name


def flops(programs, identifier, operation, name="jit_f"):
    return programs.describe(name, identifier, [operation])[operation].cost.flops


def test_a_program_is_found_by_its_identifier():
    (first, name), (second, other) = encoded(8), encoded(16)
    programs = Programs([("jit_f", "1", first), ("jit_f", "2", second)])

    assert name == other
    assert [flops(programs, identifier, name) for identifier in "12"] == [8, 16]


def test_a_program_of_another_identifier_is_found_by_its_name_and_what_it_holds():
    programs = Programs(texts=[program(8, "a", "b"), program(16, "a", "c"), program(32, "a", "b", name="jit_g")])

    assert [flops(programs, "99", one) for one in "bc"] == [8, 16]
    assert flops(programs, "99", "b", name="jit_g") == 32
    assert programs.describe("jit_f", "99", ["a", "b"])["a"].cost.flops == 8


def test_a_program_that_lacks_the_operation_or_is_damaged_does_not_count_and_of_equal_costs_any_will_do():
    first, name = encoded(8)
    lacking = Programs([("jit_f", "1", first)], [program(64, "other")])
    damaged = Programs([("jit_f", "1", b"\xff"), ("jit_f", "2", first)])
    alike = Programs(texts=[program(8, "a"), program(8, "a", "b")])

    assert flops(lacking, "1", "other") == 64
    assert flops(damaged, "1", name) == flops(alike, "99", "a") == 8


def test_of_several_programs_that_cost_differently_the_cost_is_unknown_until_more_operations_tell_them_apart():
    programs = Programs(texts=[program(8, "a"), program(16, "a", "b")])
    alike = Programs(texts=[program(8, "a"), program(16, "a")]).describe("jit_f", "99", ["a"])["a"]

    assert (alike.cost, alike.opcode) == (UNKNOWN, "negate")
    assert flops(programs, "99", "a") is None
    assert programs.describe("jit_f", "99", ["a", "b"])["a"].cost.flops == 16


def test_an_operation_of_no_known_program_has_its_name_alone():
    found = Programs(texts=["no HLO"]).describe("jit_f", "1", ["all-reduce.3", "add.1"])

    assert {name: (one.category, one.opcode, one.cost) for name, one in found.items()} == {
        "all-reduce.3": ("collective", "", UNKNOWN),
        "add.1": ("compute", "", UNKNOWN),
    }


def test_programs_of_a_capture_are_listed_with_their_identifiers():
    metadata = {"jit_f(7)": {"Hlo Proto": b"1"}, "jit_g": {"hlo_proto": b"2"}, "other(3)": {"x": b"3", "Hlo Proto": 4}}
    with read_capture(encode_space(encode_plane(METADATA_PLANE, {}, metadata=metadata))) as space:
        assert list(list_programs(space)) == [("jit_f", "7", b"1"), ("jit_g", "", b"2")]
    with read_capture(encode_space(encode_host())) as space:
        assert list(list_programs(space)) == []


def test_a_capture_with_its_programs_describes_its_operations():
    encoded_program, name = encoded(8)
    metadata = encode_plane(METADATA_PLANE, {}, metadata={"jit_f(7)": {"Hlo Proto": encoded_program}})
    (found,) = analyse_made_up(metadata, encode_host(step(0, 9), operation(name, 1, 2))).operations

    assert (found.about.cost.flops, found.about.cost.bytes) == (8, 64)
    assert found.about.source.startswith(f"{__file__}:")


CALLING = ("jaxmeter/harness/programs/modes.py:5", "jaxmeter/harness/child/main.py:1")


@pytest.mark.parametrize(
    ("stack", "line"),
    [
        (["/home/me/model.py:3", "/home/me/train.py:9"], "/home/me/model.py:3"),
        (["/usr/lib/python3/dist-packages/flax/linen.py:1", "/home/me/train.py:9"], "/home/me/train.py:9"),
        (["/venv/lib/python3.11/site-packages/jax/nn.py:1", "/home/me/train.py:9"], "/home/me/train.py:9"),
        (["<frozen runpy>:88", "/home/me/train.py:9"], "/home/me/train.py:9"),
        (["<stdin>:1"], ""),
        (["<ipython-input-3-5f0a>:2", "/home/me/train.py:9"], "<ipython-input-3-5f0a>:2"),
        (["/usr/lib/python3.11/contextlib.py:81", "/usr/lib/python3.12/x.py:1"], ""),
        (["/src/jaxmeter/harness/child/main.py:1", "/src/jaxmeter/cli/run.py:1"], ""),
        (["/src/jaxmeter/suites/selu.py:94"], "/src/jaxmeter/suites/selu.py:94"),
        (
            [
                "/v/lib/python3.13/site-packages/flax/nn.py:1",
                "/v/lib/python3.13/site-packages/jaxmeter/suites/cnn.py:9",
            ],
            "/v/lib/python3.13/site-packages/jaxmeter/suites/cnn.py:9",
        ),
        (["/v/lib/python3.13/site-packages/jaxmeter/notebook.py:9"], ""),
        (
            [f"/usr/lib/python3/dist-packages/{line}" for line in ("ours/net.py:3", "ours/suite.py:7", *CALLING)],
            "/usr/lib/python3/dist-packages/ours/suite.py:7",
        ),
        (["/usr/lib/python3.11/contextlib.py:81", "/src/jaxmeter/harness/child/main.py:1"], ""),
        (["/home/me/python3_tricks/a.py:2"], "/home/me/python3_tricks/a.py:2"),
        ([], ""),
    ],
)
def test_a_line_is_the_nearest_of_the_users_own_code(stack, line):
    assert pick_line(stack) == line


def test_an_operation_of_a_library_has_the_line_that_called_it():
    @jax.jit
    def f(x):
        return jax.nn.softmax(x)  # the line

    compiled = f.lower(jnp.ones((8, 8))).compile()
    module = read_program(compiled.runtime_executable().hlo_modules()[0].as_serialized_hlo_module_proto())
    line = f"{__file__}:{f.__wrapped__.__code__.co_firstlineno + 2}"
    names = [one.name for one in module.entry.instructions if one.opcode == "fusion"]

    of_text = Programs(texts=[compiled.as_text()]).describe(module.name, "", names)

    assert {pick_line(one.stack) for one in module.entry.instructions if one.opcode == "fusion"} == {line}
    assert {one.source for one in of_text.values()} == {line}


FUSED = """HloModule jit_f

%inner (a: f32[4,4], b: f32[4,4]) -> f32[4,4] {
  %a = f32[4,4]{1,0} parameter(0)
  %b = f32[4,4]{1,0} parameter(1)
  %d = f32[4,4]{1,0} dot(%a, %b), lhs_contracting_dims={1}, rhs_contracting_dims={0}, \
metadata={op_name="jit(f)/dot_general" source_file="/me/model.py" source_line=7}
  ROOT %t = f32[4,4]{1,0} tanh(%d)
}

%outer (c: f32[4,4]) -> f32[4,4] {
  %c = f32[4,4]{1,0} parameter(0)
  ROOT %nested = f32[4,4]{1,0} fusion(%c, %c), kind=kLoop, calls=%inner
}

%plain (e: f32[4,4]) -> f32[4,4] {
  %e = f32[4,4]{1,0} parameter(0)
  ROOT %n = f32[4,4]{1,0} negate(%e), metadata={op_name="jit(f)/neg" source_file="/me/model.py" source_line=9}
}

ENTRY %main (x: f32[4,4]) -> f32[4,4] {
  %x = f32[4,4]{1,0} parameter(0)
  %ynn_fusion = f32[4,4]{1,0} fusion(%x), kind=kCustom, calls=%outer
  %loop_fusion = f32[4,4]{1,0} fusion(%ynn_fusion), kind=kLoop, calls=%plain
  %call.1 = f32[4,4]{1,0} custom-call(%x), custom_call_target="xla_ffi_python_cpu_callback"
  ROOT %copy.1 = f32[4,4]{1,0} copy(%loop_fusion)
}
"""


def test_a_fusion_is_what_is_heaviest_inside():
    found = Programs(texts=[FUSED]).describe("jit_f", "", ["ynn_fusion", "loop_fusion", "call.1", "copy.1"])

    assert {name: (one.opcode, one.source, one.jax_name) for name, one in found.items()} == {
        "ynn_fusion": ("fusion of dot", "/me/model.py:7", "jit(f)/dot_general"),
        "loop_fusion": ("fusion of negate", "/me/model.py:9", "jit(f)/neg"),
        "call.1": ("custom-call", "", ""),
        "copy.1": ("copy", "", ""),
    }
    assert found["ynn_fusion"].cost.flops == 2 * 4**3
    assert found["call.1"].category == "callback"


def test_what_runs_inside_of_holders_is_found_on_all_levels():
    text = """HloModule jit_f

%deep (a: f32[]) -> f32[] {
  ROOT %deep.1 = f32[] parameter(0)
}

%body (b: f32[]) -> f32[] {
  %b = f32[] parameter(0)
  ROOT %call.2 = f32[] call(%b), to_apply=%deep
}

%test (c: f32[]) -> pred[] {
  ROOT %test.1 = pred[] parameter(0)
}

ENTRY %main (x: f32[]) -> f32[] {
  %x = f32[] parameter(0)
  ROOT %while.3 = f32[] while(%x), condition=%test, body=%body
}
"""
    programs = Programs(texts=[text])

    assert programs.find_bodies("jit_f", "", ["while.3", "call.2"]) == {
        "while.3": {"b", "call.2", "deep.1", "test.1"},
        "call.2": {"deep.1"},
    }
    assert programs.find_bodies("jit_f", "", ["add"]) == {}
    assert programs.find_bodies("jit_g", "", ["while.3"]) == {}


@pytest.mark.parametrize(
    ("name", "opcode", "attributes", "category"),
    [
        ("add.1", "add", "", "compute"),
        ("all-reduce.1.2", "", "", "collective"),
        ("all-reduce-start.1", "", "", "collective"),
        ("all-reduce-scatter", "", "", "compute"),
        ("x", "all-gather-done", "", "collective"),
        ("while.7", "", "", "control flow"),
        ("x", "conditional", "", "control flow"),
        ("call.1", "", "", "control flow"),
        ("call_fusion", "", "", "compute"),
        ("copy-start.1", "", "", "transfer"),
        ("copy.1", "", "", "compute"),
        ("infeed.3", "", "", "transfer"),
        ("infeed_fusion", "", "", "compute"),
        ("async-copy-done", "", "", "transfer"),
        ("pure_callback.1", "", "", "callback"),
        ("io_callback", "", "", "callback"),
        ("xla_ffi_python_cpu_callback.2", "", "", "callback"),
        ("x", "custom-call", 'custom_call_target="xla_ffi_partitioned_python_gpu_callback"', "callback"),
        ("x", "custom-call", 'custom_call_target="__cublas$gemm"', "compute"),
        ("x", "fusion", "calls=%callback", "compute"),
    ],
)
def test_a_category_is_by_opcode_or_else_by_name(name, opcode, attributes, category):
    assert find_category(name, opcode, attributes) == category
