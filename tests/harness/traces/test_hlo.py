import re
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from jaxmeter.harness.traces import hlo
from jaxmeter.harness.traces.hlo import Counts, HloError

CHECKOUT = Path(__file__).parents[3]

LOOP = """HloModule jit_f, is_scheduled=true, input_output_alias={ {}: (0, {}, may-alias) }, \
entry_computation_layout={(f32[8]{0})->f32[8]{0}}

FileNames
1 "/home/somebody/suites/a \\"b\\".py"

FunctionNames
1 "f"

FileLocations
1 {file_name_id=1 function_name_id=1 line=29 end_line=29 column=49 end_column=58}
2 {file_name_id=1 function_name_id=1 line=31 end_line=31 column=1 end_column=5}

StackFrames
1 {file_location_id=1 parent_frame_id=1}
2 {file_location_id=2 parent_frame_id=2}


%inner (p.1: f32[8]) -> f32[8] {
  %p.1 = f32[8]{0} parameter(0)
  %c.1 = f32[] constant(2)
  %b.1 = f32[8]{0} broadcast(%c.1), dimensions={}
  ROOT %m.1 = f32[8]{0} multiply(%p.1, %b.1), metadata={op_name="jit(f)/mul" stack_frame_id=2}
}

%body (s.1: (s32[], f32[8])) -> (s32[], f32[8]) {
  %s.1 = (s32[], f32[8]{0}) parameter(0)
  %i.1 = s32[] get-tuple-element(%s.1), index=0
  %x.1 = f32[8]{0} get-tuple-element(%s.1), index=1
  %fusion.1 = f32[8]{0} fusion(%x.1), kind=kLoop, calls=%inner, metadata={op_name="jit(f)/mul" stack_frame_id=2}, \
backend_config={"outer":["2"],"note":"%p.1 }, calls=%none {"}
  ROOT %t.1 = (s32[], f32[8]{0}) tuple(%i.1, %fusion.1)
}

%condition (s.2: (s32[], f32[8])) -> pred[] {
  %s.2 = (s32[], f32[8]{0}) parameter(0)
  %i.2 = s32[] get-tuple-element(%s.2), index=0
  %n.2 = s32[] constant(5)
  ROOT %lt.2 = pred[] compare(%i.2, %n.2), direction=LT
}

ENTRY %main (x.3: f32[8]) -> f32[8] {
  %x.3 = f32[8]{0} parameter(0), metadata={op_name="x"}
  %zero = s32[] constant(0)
  %start = (s32[], f32[8]{0}) tuple(%zero, %x.3)
  %while.3 = (s32[], f32[8]{0}) while(%start), condition=%condition, body=%body, \
metadata={op_name="jit(f)/while" stack_frame_id=1}, \
backend_config={"known_trip_count":{"n":"5"}}
  ROOT %out = f32[8]{0} get-tuple-element(%while.3), index=1, control-predecessors={%zero}
}
"""


def entry(*lines, before=""):
    """A module of these lines as its entry."""
    return f"HloModule m\n{before}\nENTRY %main (x: f32[8]) -> f32[8] {{\n" + "\n".join(lines) + "\n}\n"


def only(line):
    return hlo.parse(entry(line)).entry.instructions[0]


def without_signs(text):
    """The same text as a printer writes it that puts no `%` before names, but not in what is quoted."""
    return re.sub(r'"(?:[^"\\]|\\.)*"|%', lambda match: "" if match[0] == "%" else match[0], text)


@cache
def compiled(name, **options):
    """Optimised text of a real program."""
    import jax
    import jax.numpy as jnp

    def scan(x):
        return jax.lax.scan(lambda c, t: (c * 0.5 + t, jnp.tanh(c)), jnp.zeros(4), x)

    def branches(x):
        return jax.lax.cond(x.sum() > 0, jnp.sin, lambda y: y * 3, x)

    def library(x):
        return jnp.linalg.cholesky(x.T @ x), jax.lax.top_k(x, 2)

    functions = {"scan": scan, "branches": branches, "library": library, "double": lambda x: x * 2}
    text = jax.jit(functions[name], **options).lower(jnp.ones((6, 4))).compile().as_text()
    assert text is not None
    return text


REAL = ("scan", "branches", "library", "double")


def test_a_module_has_a_name_a_header_and_computations_in_the_order_of_the_text():
    module = hlo.parse(LOOP)

    assert module.name == "jit_f"
    assert module.header.startswith("is_scheduled=true, input_output_alias={ {}: (0, {}, may-alias) }")
    assert [computation.name for computation in module.computations] == ["inner", "body", "condition", "main"]
    assert module.entry is module.computations[-1]


def test_an_instruction_has_its_shape_operands_attributes_and_lines():
    fusion = hlo.parse(LOOP).computation("body").instructions[3]
    multiply = hlo.parse(LOOP).computation("inner").instructions[-1]

    assert (fusion.name, fusion.shape, fusion.opcode, fusion.operands) == ("fusion.1", "f32[8]{0}", "fusion", ("x.1",))
    assert fusion.attributes.startswith('kind=kLoop, calls=%inner, backend_config={"outer":["2"]')
    assert (fusion.is_root, multiply.is_root, multiply.operation) == (False, True, "jit(f)/mul")
    # The innermost frame first; the text counts frames from one.
    assert multiply.stack == ('/home/somebody/suites/a "b".py:31', '/home/somebody/suites/a "b".py:29')
    assert multiply.source == multiply.stack[0]


def test_older_texts_have_the_source_beside_the_instruction():
    told = only(
        '  ROOT %a = f32[8]{0} parameter(0), metadata={op_type="add" op_name="f" source_file="/b.py" source_line=3}'
    )

    assert (told.operation, told.source, told.attributes) == ("f", "/b.py:3", "")
    untold = only("  ROOT %a = f32[8]{0} parameter(0), metadata={stack_frame_id=9}")
    assert (untold.operation, untold.source) == (None, None)


@pytest.mark.parametrize(
    ("line", "shape", "operands"),
    [
        ("%a = f32[8,128]{1,0:T(8,128)(2,1)S(1)} add(%b, %c)", "f32[8,128]{1,0:T(8,128)(2,1)S(1)}", ("b", "c")),
        (
            "%a = (f32[2]{0}, (s32[], /*index=5*/u8[4]{0:T(8)})) tuple(%b)",
            "(f32[2]{0}, (s32[], /*index=5*/u8[4]{0:T(8)}))",
            ("b",),
        ),
        ("%a = f32[2]{0} add(f32[2]{0} %b, f32[2]{0:T(8,128)} %c)", "f32[2]{0}", ("b", "c")),
        ("a = f32[2]{0} add(f32[2,3]{0:T(8,128)} b, /*index=1*/c)", "f32[2]{0}", ("b", "c")),
        ("a = f32[2]{0} add(b, c)", "f32[2]{0}", ("b", "c")),
        ("%a = u32[] partition-id()", "u32[]", ()),
        ("%a = f32[2,2]{1,0} constant({ { 1, 2 }, { 3, 4 } })", "f32[2,2]{1,0}", ("{ { 1, 2 }, { 3, 4 } }",)),
        ('%a = u8[] constant("%b) }")', "u8[]", ('"%b) }"',)),
        ("%a = f32[<=8]{0} parameter(0)", "f32[<=8]{0}", ("0",)),
        ("ROOT %a = token[] after-all()", "token[]", ()),
    ],
)
def test_shapes_and_operands_are_read_as_every_backend_writes_them(line, shape, operands):
    told = only(f"  {line}")

    assert (told.name, told.shape, told.operands) == ("a", shape, operands)


def test_braces_and_signs_in_quotes_are_text():
    told = only(
        r'  %a = f32[] call(%b), custom_call_target="\"}, metadata={op_name=", backend_config="{\"calls=%x\": 1}"'
    )

    assert told.operation is None
    assert hlo.list_called(told) == ()
    assert told.attributes.endswith(r'backend_config="{\"calls=%x\": 1}"')


@pytest.mark.parametrize(
    ("attributes", "names"),
    [
        ("calls=%a", ("a",)),
        ("kind=kLoop, calls=a", ("a",)),
        ("to_apply=%a.1-b", ("a.1-b",)),
        ("condition=%c, body=%b", ("c", "b")),
        ("branch_computations={%a, %b}", ("a", "b")),
        ("true_computation=%t, false_computation=%f", ("t", "f")),
        ("called_computations={%a}", ("a",)),
        ("select=%ge, scatter=%add", ("ge", "add")),
        ("control-predecessors={%a}, dimensions={0}", ()),
        ('backend_config={"calls":"calls=%a"}', ()),
    ],
)
def test_the_computations_that_an_instruction_calls(attributes, names):
    assert hlo.list_called(only(f"  %x = f32[] call(%y), {attributes}")) == names


def test_counts_take_in_every_computation_and_those_inside_fusions():
    assert hlo.count_program(hlo.parse(LOOP)) == Counts(instructions=18, fusions=1, custom_calls=0, collectives=0)


def test_a_start_and_its_done_count_once():
    text = entry(
        "  %a = f32[8]{0} all-reduce-start(%x), to_apply=%add",
        "  %b = f32[8]{0} all-reduce-done(%a)",
        "  %c = f32[8]{0} all-gather(%b), dimensions={0}",
        "  %d = (f32[8]{0}, u32[]) collective-permute-start(%c)",
        "  %e = f32[8]{0} collective-permute-done(%d)",
        '  %f = f32[8]{0} custom-call-start(%e), custom_call_target="x"',
        "  ROOT %g = f32[8]{0} custom-call-done(%f)",
    )

    assert hlo.count_program(hlo.parse(text)) == Counts(instructions=7, fusions=0, custom_calls=1, collectives=3)


@pytest.mark.parametrize("opcode", ["async", "all-to-all"])
def test_an_asynchronous_wrapper_and_what_it_wraps_count_once(opcode):
    wrapped = (
        "\n%wrapped (p: f32[8]) -> f32[8] {\n  %p = f32[8]{0} parameter(0)\n"
        '  ROOT %a = f32[8]{0} all-to-all(%p), dimensions={0}\n}, execution_thread="parallel"\n'
    )
    text = entry(
        f"  %s = ((f32[8]{{0}}), f32[8]{{0}}) {opcode}-start(%x), calls=%wrapped",
        f"  %u = ((f32[8]{{0}}), f32[8]{{0}}) {opcode}-update(%s)",
        f"  ROOT %d = f32[8]{{0}} {opcode}-done(%u)",
        before=wrapped,
    )

    assert hlo.count_program(hlo.parse(text)).collectives == 1


def test_a_fusion_inside_a_fusion_counts_as_well():
    nested = LOOP.replace(
        "ROOT %m.1 = f32[8]{0} multiply(%p.1, %b.1)", "ROOT %m.1 = f32[8]{0} fusion(%p.1), calls=%add"
    )

    assert hlo.count_program(hlo.parse(nested)).fusions == 2


def test_trip_counts_are_those_the_compiler_knows_in_the_order_of_the_text():
    text = entry(
        '  %a = f32[8]{0} while(%x), condition=%c, body=%b, backend_config={"step":"1","known_trip_count":{"n":"7"}}',
        "  %b = f32[8]{0} while(%x), condition=%c, body=%b",
        r'  %c = f32[8]{0} while(%x), body=%b, backend_config="{\"known_trip_count\":{\"n\":\"10\"}}"',
    )

    assert hlo.trip_counts(hlo.parse(text)) == (7, None, 10)


@pytest.mark.parametrize(
    ("shape", "plain"),
    [
        ("f32[8,128]{1,0:T(8,128)}", "f32[8,128]"),
        ("(f32[2]{0}, /*index=1*/s32[])", "(f32[2], s32[])"),
        ("pred[]", "pred[]"),
    ],
)
def test_a_shape_without_its_layout(shape, plain):
    assert hlo.without_layout(shape) == plain


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("", 1),
        ("not HLO", 1),
        ("HloModule m\n\nwhat is this", 3),
        ("HloModule m\n\nENTRY %main () -> f32[] {\n  nonsense\n}\n", 4),
        ("HloModule m\n\nENTRY %main () -> f32[] {\n  %a = f32[] add(%b\n}\n", 4),
        ("HloModule m\n\nENTRY %main () -> f32[] {\n  %a = f32[] constant(1)\n", 3),
        ("HloModule m\n\n%f () -> f32[] {\n  ROOT %a = f32[] constant(1)\n}\n", 1),
        (LOOP + LOOP, len(LOOP.split("\n"))),
    ],
)
def test_what_is_not_hlo_is_an_error_that_names_the_line(text, line):
    with pytest.raises(HloError, match=f"^line {line}: "):
        hlo.parse(text)


def test_a_computation_that_is_not_there_is_an_error():
    with pytest.raises(HloError, match="no computation 'none'"):
        hlo.parse(LOOP).computation("none")


@pytest.mark.parametrize(
    ("old", "new", "counts"),
    [
        ("HloModule jit_f", "HloModule jit_g", False),
        ("line=31", "line=41", False),
        ("/home/somebody", "/tmp", False),
        ("stack_frame_id=2", "stack_frame_id=1", False),
        ('op_name="jit(f)/mul"', 'op_name="jit(g)/mul" scheduling_name="m"', False),
        ("x.3", "argument", False),
        ("inner", "fused_computation.7", False),
        ("direction=LT", 'direction=LT, origin={"lt.9" {0}}', False),
        ("f32[8]", "f32[9]", True),
        ("{0}", "{0:T(128)}", True),
        ("multiply(", "add(", True),
        ("multiply(%p.1, %b.1)", "multiply(%b.1, %p.1)", True),
        ("constant(2)", "constant(3)", True),
        ("kind=kLoop", "kind=kInput", True),
        ("direction=LT", "direction=GT", True),
        ('"outer":["2"]', '"outer":["4"]', True),
        ('"note":"%p.1', '"note":"%p.2', True),
        ("may-alias", "must-alias", True),
        ("entry_computation_layout={(f32[8]{0})", "entry_computation_layout={(f32[8]{0:T(8)})", True),
        ("control-predecessors={%zero}", "control-predecessors={%start}", True),
        ("condition=%condition, body=%body", "condition=%body, body=%condition", True),
        ("ROOT %lt.2", "%lt.2", True),
        ("  %zero = s32[] constant(0)\n", "  %other = s32[] constant(0)\n  %zero = s32[] constant(0)\n", True),
    ],
)
def test_names_and_origins_do_not_count_and_everything_else_does(old, new, counts):
    changed = LOOP.replace(old, new)

    assert changed != LOOP
    assert (hlo.find_fingerprint(changed) != hlo.find_fingerprint(LOOP)) is counts


def with_hash(digits):
    return LOOP.replace("jit_f,", f'jit_f, frontend_attributes={{fingerprint_before_lhs="{digits}"}},')


def sharded(name):
    return entry(f'  ROOT %a = f32[8]{{0}} parameter(0), sharding={{devices=[8]<=[8] metadata={{op_name="{name}"}}}}')


def on_thread(name):
    return LOOP.replace("}\n\n%body", f'}}, execution_thread="{name}"\n\n%body')


UNKNOWN = LOOP.replace("control-predecessors=", "unheard_of=")


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        (with_hash("0a1b"), with_hash("2c3d"), True),
        (sharded("f"), sharded("g"), True),
        (on_thread("host"), on_thread("device"), False),
        (UNKNOWN, UNKNOWN.replace("%zero", "%nought"), True),
        (UNKNOWN, UNKNOWN.replace("{%zero}", "{%start}"), False),
        (LOOP, LOOP.replace("%i.2", "%i.1").replace("%s.2", "%s.1"), True),
    ],
    ids=[
        *("the hash before it was scheduled", "the origin inside a sharding", "the thread of a computation"),
        *("a name in an unknown attribute", "another instruction there", "a name in another computation"),
    ],
)
def test_what_counts_in_odd_places(one, other, same):
    prints = [hlo.find_fingerprint(text) for text in (one, other)]

    assert all(re.fullmatch("[0-9a-f]{16}", found) for found in prints)
    assert (prints[0] == prints[1]) is same
    assert only('  ROOT %a = f32[8]{0} parameter(0), sharding={metadata={op_name="f"}}').operation is None


def test_equal_bodies_have_equal_text_whatever_their_names_and_their_place():
    inner = LOOP[LOOP.index("%inner") : LOOP.index("%body")]
    module = hlo.parse(LOOP + inner.replace("inner", "copy").replace(".1", ".9"))

    assert hlo.read_body(module, "copy") == hlo.read_body(module, "inner")
    assert hlo.read_body(module, "copy") != hlo.read_body(module, "condition")
    changed = hlo.parse(LOOP.replace("constant(2)", "constant(3)"))  # a body holds what it calls
    assert hlo.read_body(changed, "body") != hlo.read_body(hlo.parse(LOOP), "body")


def test_a_body_that_calls_itself_ends():
    text = LOOP.replace("calls=%inner", "calls=%body")

    assert "fusion" in hlo.read_body(hlo.parse(text), "body")


@pytest.mark.parametrize("name", REAL)
def test_real_programs_are_read_and_every_instruction_of_them_is_found(name):
    text = compiled(name)

    module = hlo.parse(text)

    assert sum(len(one.instructions) for one in module.computations) == len(re.findall(r"^ .* = ", text, re.MULTILINE))
    assert all(module.computation(called) for one in module.instructions() for called in hlo.list_called(one))
    assert any(one.source and one.source.startswith(f"{__file__}:") for one in module.instructions())
    assert hlo.trip_counts(module) == ((6,) if name == "scan" else ())
    assert hlo.count_program(module).custom_calls == (2 if name == "library" else 0)


def test_donating_an_argument_is_another_program():
    assert hlo.find_fingerprint(compiled("double", donate_argnums=0)) != hlo.find_fingerprint(compiled("double"))


@pytest.mark.parametrize("text", [LOOP, *REAL])
def test_signs_before_names_do_not_count(text):
    text = text if text is LOOP else compiled(text)

    assert hlo.find_fingerprint(without_signs(text)) == hlo.find_fingerprint(text)


PROGRAM = """
import os
os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=8"
import jax, jax.numpy as jnp
from jaxmeter.harness.traces import hlo
{space}
def {function}({argument}, factor):
    return jax.lax.scan(lambda c, t: (jnp.tanh(c @ t), c.sum() * factor), {argument}[0], {argument})
mesh = jax.sharding.Mesh(jax.devices(), ("i",))
total = jax.shard_map(lambda x: jax.lax.psum(x, "i"), mesh=mesh, in_specs=jax.P("i"), out_specs=jax.P())
sharded = jax.jit(total).lower(jnp.ones(8)).compile().as_text()
for factor in {factors}:
    text = jax.jit({function}, static_argnums=1).lower(jnp.ones((3, 4, 4)), factor).compile().as_text()
    print(hlo.find_fingerprint(text))
print(hlo.find_fingerprint(sharded), hlo.count_program(hlo.parse(sharded)).collectives)
"""


@pytest.mark.end_to_end
def test_a_fingerprint_is_the_same_in_every_process_until_the_program_changes():
    first = {"space": "", "function": "f", "argument": "x", "factors": (2, 3)}

    def told(**changes):
        code = PROGRAM.format(**{**first, **changes})
        ended = subprocess.run([sys.executable, "-c", code], cwd=CHECKOUT, capture_output=True, text=True, check=False)
        assert ended.returncode == 0, ended.stderr
        return ended.stdout.split()

    one = told()

    assert told(space="\n" * 10, function="renamed", argument="y") == one
    assert one[0] != one[1]
    assert one[3] == "1"


@given(st.text())
@example("HloModule m\nENTRY %a {\n%a = ( (\n}")
@example("HloModule m\nENTRY a {\n}")
def test_any_text_is_read_or_is_an_hlo_error(text):
    try:
        hlo.find_fingerprint(text)
    except HloError:
        return


@settings(max_examples=100)
@given(st.data())
def test_a_damaged_program_is_read_or_is_an_hlo_error(data):
    start = data.draw(st.integers(0, len(LOOP)))
    end = data.draw(st.integers(start, min(start + 80, len(LOOP))))
    put = data.draw(st.text(alphabet='%{}()[]"\\,= \nROOTcalls1metadata=', max_size=12))

    text = LOOP[:start] + put + LOOP[end:]

    try:
        module = hlo.parse(text)
    except HloError:
        return
    hlo.count_program(module)
    hlo.trip_counts(module)
    assert hlo.find_fingerprint(text) == hlo.find_fingerprint(text)


@given(st.lists(st.from_regex(r"[A-Za-z_][A-Za-z0-9_.-]{0,12}", fullmatch=True), min_size=22, max_size=22, unique=True))
def test_whatever_the_names_are_the_fingerprint_is_the_same(names):
    known = sorted(set(re.findall(r"^\s*(?:ROOT |ENTRY )?%([\w.-]+) [=(]", LOOP, re.MULTILINE)))
    assert len(known) == 22
    renaming = dict(zip(known, names, strict=True))

    text = re.sub(
        r'"(?:[^"\\]|\\.)*"|%([\w.-]+)',
        lambda match: f"%{renaming[match[1]]}" if match[1] in renaming else match[0],
        LOOP,
    )

    assert hlo.find_fingerprint(text) == hlo.find_fingerprint(LOOP)
