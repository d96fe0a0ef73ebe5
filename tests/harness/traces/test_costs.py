"""FLOPs and bytes of operations against XLA's own analysis of whole programs."""

import json
import re
from functools import cache

import jax
import jax.numpy as jnp
import pytest
from hypothesis import given
from hypothesis import strategies as st
from jax import lax

from jaxmeter.harness.traces import hlo
from jaxmeter.harness.traces.costs import MOST_PLACES, UNKNOWN, Cost, count_bytes, count_costs, count_elements
from jaxmeter.harness.traces.hlo import list_called, trip_counts
from jaxmeter.harness.traces.hlo_proto import read_program

A, B, ROW = jnp.ones((32, 48)), jnp.ones((48, 16)), jnp.ones(48)
IMAGE, KERNEL, GROUPED = jnp.ones((2, 9, 11, 4)), jnp.ones((3, 2, 4, 6)), jnp.ones((3, 2, 2, 6))


def convolve(image, kernel, **options):
    usual = {"window_strides": (1, 1), "padding": "SAME", "dimension_numbers": ("NHWC", "HWIO", "NHWC")}
    return lax.conv_general_dilated(image, kernel, **{**usual, **options})


def convolution(kernel=KERNEL, **options):
    return (lambda image, kernel: convolve(image, kernel, **options), IMAGE, kernel)


def gradient(kernel=KERNEL, **options):
    loss = jax.grad(lambda image, kernel: jnp.sum(convolve(image, kernel, **options) ** 2), argnums=(0, 1))
    return (loss, IMAGE, kernel)


def pool(x):
    return lax.reduce_window(x, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")


PROGRAMS = {
    "dot": (lambda a, b: a @ b, A, B),
    "dot of vectors": (lambda a, b: a @ b, ROW, ROW),
    "dot in bfloat16": (lambda a, b: a @ b, A.astype(jnp.bfloat16), B.astype(jnp.bfloat16)),
    "batched dot": (lambda a, b: jnp.einsum("bij,bjk->bik", a, b), jnp.ones((3, 8, 5)), jnp.ones((3, 5, 7))),
    "dot over two dimensions": (lambda a, b: jnp.tensordot(a, b, 2), jnp.ones((3, 8, 5)), jnp.ones((8, 5, 7))),
    "convolution": convolution(),
    "convolution with strides": convolution(window_strides=(2, 3)),
    "convolution without padding": convolution(padding="VALID"),
    "convolution with uneven padding": convolution(padding=((2, 1), (0, 3))),
    "convolution with negative padding": convolution(padding=((-1, 1), (0, -2))),
    "dilated convolution": convolution(rhs_dilation=(2, 3)),
    "transposed convolution": convolution(lhs_dilation=(2, 3), padding=((1, 1), (1, 1))),
    "convolution with all of it": convolution(
        lhs_dilation=(3, 2), rhs_dilation=(2, 1), window_strides=(2, 2), padding=((3, 2), (1, 4))
    ),
    "convolution in groups": convolution(GROUPED, feature_group_count=2),
    "convolution in groups of the batch": convolution(batch_group_count=2),
    "gradient of a convolution": gradient(),
    "gradient of a convolution with strides": gradient(window_strides=(2, 2)),
    "gradient of a convolution in groups": gradient(GROUPED, feature_group_count=2),
    "reduce": (lambda a: a.sum(0), A),
    "reduce to a number": (lambda a: a.max(), A),
    "reduce of two": (lambda a: a.argmax(1), A),
    "reduce_window": (lambda x: lax.reduce_window(x, 0.0, lax.add, (1, 2, 3, 1), (1, 2, 1, 1), "SAME"), IMAGE),
    "gradient of a reduce_window": (jax.grad(lambda x: pool(x).sum()), IMAGE),
    "cumsum": (lambda a: jnp.cumsum(a, 1), A),
    "cumlogsumexp": (lambda a: lax.cumlogsumexp(a, 1), A),
    "sort": (lambda a: jnp.sort(a, 1), A),
    "argsort": (lambda a: jnp.argsort(a, 1), A),
    "softmax": (jax.nn.softmax, A),
    "gelu": (jax.nn.gelu, A),
    "layer norm": (lambda a: (a - a.mean(1, keepdims=True)) / jnp.sqrt(a.var(1, keepdims=True) + 1e-5), A),
    "attention": (lambda q: jax.nn.dot_product_attention(q, q, q), jnp.ones((2, 16, 4, 8))),
    "scatter": (lambda a, at: a.at[at].add(1.0), A, jnp.arange(5)),
    "scatter of elements": (lambda a, at: a.at[at, at].set(1.0), A, jnp.arange(5)),
    "gather": (lambda a, at: a[at], A, jnp.arange(5)),
    "dynamic slice": (lambda a, at: lax.dynamic_slice(a, (at, 0), (4, 48)) * 2 + 1, A, 3),
    "dynamic update": (lambda a, b, at: lax.dynamic_update_slice(a, b * 2, (at, 0)), A, jnp.ones((4, 48)), 3),
    "scan": (lambda a: lax.scan(lambda c, row: (c * 0.5 + row, jnp.tanh(c)), ROW, a), A),
    "scan of products": (lambda a: lax.scan(lambda c, _: (c @ c, None), a, None, length=7)[0], jnp.ones((16, 16))),
    "fori_loop": (lambda a: lax.fori_loop(0, 9, lambda i, c: c * 2 + i, a), A),
    "while_loop": (lambda a: lax.while_loop(lambda c: c.sum() < 1e6, lambda c: c * 2, a), A),
    "random numbers": (lambda key: jax.random.normal(key, (100,)), jax.random.key(0)),
    "fft": (jnp.fft.fft, jnp.ones((32, 48), jnp.complex64)),
    "complex numbers": (lambda a: a * a, jnp.ones(10, jnp.complex64)),
    "whole numbers": (lambda a: a // 3 % 7, jnp.arange(100)),
    "copies": (lambda a: jnp.pad(jnp.concatenate([a, a.T.reshape(32, 48)]), 2), A),
}

OTHER_BYTES = {
    "gather": "XLA counts the whole operand of a gather that is fused",
    "scan": "XLA counts the tuple's table that a loop carries",
    "scan of products": "the same",
    "fori_loop": "the same",
    "random numbers": "the same",
    **dict.fromkeys([name for name in PROGRAMS if name.startswith("gradient of a convolution")], "a tuple's table"),
}


@cache
def compiled(name):
    function, *arguments = PROGRAMS[name]
    return jax.jit(function).lower(*arguments).compile()


@cache
def module_of(name):
    return read_program(compiled(name).runtime_executable().hlo_modules()[0].as_serialized_hlo_module_proto())


def total(costs, kind):
    return sum(getattr(cost, kind) for cost in costs.values())


@pytest.mark.parametrize("name", PROGRAMS)
def test_flops_of_all_operations_are_those_of_xla(name):
    costs, analysis = count_costs(module_of(name)), compiled(name).cost_analysis()

    # A loop's body counts once in both.
    assert total(costs, "flops") == pytest.approx(analysis.get("flops", 0.0), rel=1e-6)
    assert total(costs, "transcendentals") == pytest.approx(analysis.get("transcendentals", 0.0), rel=1e-6)


@pytest.mark.parametrize("name", [name for name in PROGRAMS if name not in OTHER_BYTES])
def test_bytes_of_all_operations_are_those_of_xla(name):
    moved = total(count_costs(module_of(name)), "bytes")

    assert moved == pytest.approx(compiled(name).cost_analysis()["bytes accessed"])


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_programs_text_and_its_encoding_are_read_the_same(name):
    text, encoded = hlo.parse(compiled(name).as_text()), module_of(name)

    in_text = {one.name: one for one in text.instructions()}  # in another order
    in_encoding = {one.name: one for one in encoded.instructions()}

    assert in_encoding.keys() == in_text.keys()
    assert {one.name for one in encoded.computations} == {one.name for one in text.computations}
    assert encoded.entry.name == text.entry.name
    for one, other in ((in_encoding[name], in_text[name]) for name in in_text):
        assert (one.opcode, one.is_root, list_called(one)) == (other.opcode, other.is_root, list_called(other))
        assert (one.operation, one.source, one.stack) == (other.operation, other.source, other.stack)
        assert one.shape == re.sub(r"\{[^}]*\}|/\*.*?\*/", "", other.shape)
        assert one.operands == other.operands or one.opcode in ("constant", "parameter")
    assert count_costs(encoded) == count_costs(text)
    assert sorted(trip_counts(encoded), key=str) == sorted(trip_counts(text), key=str)


def test_a_programs_lines_are_in_its_encoding():
    stacks = {one.opcode: one.stack for one in module_of("dot").instructions() if one.stack}

    assert stacks["dot"][0].startswith(f"{__file__}:")


def test_a_loops_operations_have_the_cost_of_one_execution():
    products = [cost for cost in count_costs(module_of("scan of products")).values() if cost.flops]

    assert trip_counts(module_of("scan of products")) == (7,)
    assert max(cost.flops for cost in products) == 2 * 16**3


def only(*lines, before="", name="x"):
    """The cost of one instruction of a made-up program."""
    text = f"HloModule m\n{before}\nENTRY %main (p: f32[8]) -> f32[8] {{\n" + "\n".join(f"  {line}" for line in lines)
    return count_costs(hlo.parse(text + "\n}\n"))[name]


def library(target, operands, shape, **configuration):
    lines = [f"%o{at} = {operand} parameter({at})" for at, operand in enumerate(operands)]
    names = ", ".join(f"%o{at}" for at in range(len(operands)))
    attributes = configuration.pop("attributes", "")
    config = f", backend_config={json.dumps(configuration)}" if configuration else ""
    call = f'custom_call_target="{target}"{attributes}{config}'
    return only(*lines, f"ROOT %x = {shape} custom-call({names}), {call}")


def dimensions(lhs, rhs, batch=()):
    numbers = {"lhs_contracting_dimensions": lhs, "rhs_contracting_dimensions": rhs, "lhs_batch_dimensions": batch}
    return {"dot_dimension_numbers": {key: [str(one) for one in value] for key, value in numbers.items()}}


@pytest.mark.parametrize("target", ["__cublas$gemm", "__cublas$lt$matmul", "__cublas$lt$matmul$f8", "__triton_gemm"])
@pytest.mark.parametrize("nested", [True, False])
def test_a_product_of_a_library_counts_as_the_product_it_is(target, nested):
    config = dimensions([1], [0])
    cost = library(
        target,
        ["f32[32,48]{1,0}", "f32[48,16]{1,0}"],
        "(f32[32,16]{1,0}, s8[4194304]{0})",
        **({"gemm_backend_config": {"alpha_real": 1, **config}, "operation_queue_id": "0"} if nested else config),
    )

    assert cost.flops == 2 * 32 * 16 * 48


def test_a_batched_product_of_a_library_counts_every_batch():
    operands = ["bf16[3,8,5]{2,1,0}", "bf16[3,7,5]{2,1,0}"]
    config = dimensions([2], [2], [0])
    cost = library("__cublas$gemm", operands, "bf16[3,8,7]{2,1,0}", gemm_backend_config=config)

    assert cost == Cost(2.0 * 3 * 8 * 7 * 5, 0.0, 2.0 * (3 * 8 * 5 + 3 * 7 * 5 + 3 * 8 * 7))


WINDOW = ", window={size=3x2 stride=2x3 pad=1_1x0_0}, dim_labels=b01f_01io->b01f"
INPUT, FILTER, OUTPUT = "f32[2,9,11,4]{3,2,1,0}", "f32[3,2,4,6]{3,2,1,0}", "f32[2,5,4,6]{3,2,1,0}"


@pytest.mark.parametrize(
    ("kind", "operands", "result"),
    [
        ("Forward", [INPUT, FILTER], OUTPUT),
        ("BiasActivationForward", [INPUT, FILTER, "f32[6]{0}"], OUTPUT),
        ("BackwardInput", [OUTPUT, FILTER], INPUT),
        ("BackwardFilter", [INPUT, OUTPUT], FILTER),
    ],
)
def test_a_convolution_of_a_library_counts_as_the_convolution_it_is(kind, operands, result):
    forward = only(
        f"%a = {INPUT} parameter(0)",
        f"%b = {FILTER} parameter(1)",
        f"ROOT %x = {OUTPUT} convolution(%a, %b){WINDOW}",
    )
    cost = library(f"__cudnn$conv{kind}", operands, f"({result}, u8[100]{{0}})", attributes=WINDOW, conv_result_scale=1)

    assert forward.flops
    assert cost.flops == forward.flops


@pytest.mark.parametrize(
    "call",
    [
        'custom-call(%a, %b), custom_call_target="my_kernel"',
        'custom-call(%a), custom_call_target="__cublas$gemm"',
        'custom-call(%a, %b), custom_call_target="__cublas$gemm"',
        'custom-call(%a, %b), custom_call_target="__cublas$gemm", backend_config={"a":1}',
        'custom-call(%a, %b), custom_call_target="__cublas$gemm", backend_config={nothing}',
        'custom-call(%a, %b), custom_call_target="__cudnn$convForward"',
        "custom-call(%a, %b)",
    ],
)
def test_what_a_call_of_unknown_code_computes_is_unknown(call):
    cost = only("%a = f32[8]{0} parameter(0)", "%b = f32[8]{0} parameter(1)", f"ROOT %x = f32[8]{{0}} {call}")

    assert cost.flops is None
    assert cost.bytes


def test_halves_of_a_transfer_are_unknown():
    assert only("%a = f32[8]{0} parameter(0)", "ROOT %x = f32[8]{0} all-reduce-start(%a), to_apply=%add") == UNKNOWN


ADD = "%add (l: f32[], r: f32[]) -> f32[] {\n  %l = f32[] parameter(0)\n  %r = f32[] parameter(1)\n"
ADD += "  ROOT %s = f32[] add(%l, %r)\n}\n"
COMPARE = ADD.replace("add", "ge").replace("= f32[] ge(", "= pred[] compare(")


def test_a_gradient_of_pooling_compares_each_window_and_adds_each_source():
    cost = only(
        "%a = f32[2,8,8,4]{3,2,1,0} parameter(0)",
        "%b = f32[2,4,4,4]{3,2,1,0} parameter(1)",
        "%c = f32[] constant(0)",
        "ROOT %x = f32[2,8,8,4]{3,2,1,0} select-and-scatter(%a, %b, %c), window={size=1x2x2x1 stride=1x2x2x1}, "
        "select=%ge, scatter=%add",
        before=ADD + COMPARE,
    )

    assert cost.flops == 2 * 4 * 4 * 4 * (4 - 1) + 2 * 4 * 4 * 4


@pytest.mark.parametrize(
    ("shape", "elements", "size"),
    [
        ("f32[2,3]{1,0:T(8,128)S(1)}", 6, 24),
        ("bf16[]", 1, 2),
        ("pred[5]", 5, 5),
        ("s4[10]{0:E(4)}", 10, 5),
        ("f8e4m3fn[3]", 3, 3),
        ("c64[2]", 2, 16),
        ("c128[2]", 2, 32),
        ("f32[0,4]", 0, 0),
        ("f32[<=8]", 8, 32),
        ("(f32[2]{0}, (s64[3]{0}, token[]))", 2 + 3 + 1, 8 + 24),
        ("", 0, 0),
    ],
)
def test_elements_and_bytes_of_a_shape(shape, elements, size):
    assert (count_elements(shape), count_bytes(shape)) == (elements, size)


def count_one_by_one(data, output, kernel, stride, spread, holes, before):
    """Pairs of an output place and a place of the kernel that meet an element of the input."""
    return sum(
        0 <= place < data * holes and place % holes == 0
        for at in range(output)
        for place in (at * stride + step * spread - before for step in range(kernel))
    )


def convolve_in_text(data, output, kernel, stride=1, spread=1, holes=1, before=0):
    window = f"size={kernel} stride={stride} pad={before}_0 lhs_dilate={holes} rhs_dilate={spread}"
    return only(
        f"%a = f32[1,{data},1]{{2,1,0}} parameter(0)",
        f"%b = f32[{kernel},1,1]{{2,1,0}} parameter(1)",
        f"ROOT %x = f32[1,{output},1]{{2,1,0}} convolution(%a, %b), window={{{window}}}, dim_labels=b0f_0io->b0f",
    ).flops


@given(*(st.integers(1, 12) for _ in range(3)), *(st.integers(1, 5) for _ in range(3)), st.integers(-6, 12))
def test_a_convolutions_places_are_counted_as_one_would_by_hand(data, output, kernel, stride, spread, holes, before):
    arguments = (data, output, kernel, stride, spread, holes, before)

    assert convolve_in_text(*arguments) == 2 * count_one_by_one(*arguments)


def test_of_a_very_large_window_all_places_count():
    size = MOST_PLACES + 1

    assert convolve_in_text(3 * size, 2 * size, size) == 2.0 * 2 * size * size
    assert convolve_in_text(3 * size, size, 5, before=2) == 2.0 * (size * 5 - 3)


def test_a_program_of_a_millions_long_signal_is_counted_at_once():
    assert convolve_in_text(2**30, 2**30, 1001, before=500) == 2.0 * (2**30 * 1001 - 500 * 501)
