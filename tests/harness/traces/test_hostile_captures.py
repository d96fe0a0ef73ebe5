"""A capture that is cut short, damaged or made up to do harm gives numbers or a finding, and nothing else."""

import random
import time

import jax
import jax.numpy as jnp
import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jaxmeter.harness.record.trace_summary import Problem, TraceSummary
from jaxmeter.harness.traces import summary as summary_module
from jaxmeter.harness.traces.hlo import HloError
from jaxmeter.harness.traces.hlo_proto import read_fields, read_program
from jaxmeter.harness.traces.programs import METADATA_PLANE
from jaxmeter.harness.traces.summary import summarise_capture
from jaxmeter.harness.traces.xplane import read_capture
from tests.harness.traces.captured import NAMES, find_capture, read_texts
from tests.harness.traces.made_up import (
    EPOCH_NS,
    Event,
    encode_gpu,
    encode_host,
    encode_plane,
    encode_space,
    encode_whole,
    event,
    operation,
    part,
    step,
    whole,
)

SMALLEST = "cpu_matmul_jit"
MUTATIONS = {SMALLEST: 400, "cpu_fusion_eager": 100, "nvidia_h200_selu": 80, "cpu_shard_map_two_devices": 15}
BYTES = (0, 1, 127, 128, 255)
"""Of a mutation, in addition to random ones: ends of what one byte of a number holds."""


@pytest.fixture(scope="module")
def summarise():
    """Makes the summary of encoded captures, each of which gives numbers or a finding. Numpy's warnings are errors."""
    patch = pytest.MonkeyPatch()
    patch.setattr(summary_module, "open_capture", read_capture)  # thousands of files would take their time

    def made(data, texts=(), **options):
        summary = summarise_capture(data, texts, **options)
        assert summary.operations or summary.findings
        assert not summary.ledger or sum(summary.ledger.values()) == pytest.approx(1)
        assert all(operation.share >= 0 for operation in summary.operations)
        assert msgspec.json.decode(msgspec.json.encode(summary), type=TraceSummary).findings == summary.findings
        return summary

    yield made
    patch.undo()


def problems(summary):
    return [finding.problem for finding in summary.findings]


def test_every_cut_of_a_capture_has_a_finding(summarise):
    data, texts = find_capture(SMALLEST).read_bytes(), read_texts(SMALLEST)
    by_length = {length: problems(summarise(data[:length], texts)) for length in range(len(data))}

    refused = [length for length, found in by_length.items() if found == [Problem.DAMAGED]]

    assert len(refused) >= len(data) - 4  # the others end where a plane does, or lack the host's name alone
    assert [by_length[length] for length in sorted({*by_length} - {*refused})] == [
        [Problem.UNFINISHED, Problem.NO_OPERATIONS],
        [Problem.UNFINISHED],
        [],
    ]


@pytest.mark.parametrize("name", [name for name in NAMES if name != SMALLEST])
def test_cuts_of_larger_captures_are_damaged(name, summarise):
    data, texts = find_capture(name).read_bytes(), read_texts(name)
    lengths = random.Random(1).sample(range(len(data)), 50)

    assert {tuple(problems(summarise(data[:length], texts))) for length in lengths} == {(Problem.DAMAGED,)}


@pytest.mark.parametrize("name", NAMES)
def test_a_capture_with_another_byte_gives_numbers_or_a_finding(name, summarise):
    data, texts = find_capture(name).read_bytes(), read_texts(name)
    at_random = random.Random(name)

    for _ in range(MUTATIONS[name]):
        changed = bytearray(data)
        changed[at_random.randrange(len(data))] = at_random.choice((at_random.randrange(256), *BYTES))
        summarise(bytes(changed), texts)


@given(st.binary(max_size=400))
def test_bytes_that_are_no_capture_have_a_finding(summarise, data):
    assert summarise(data).findings


STATS = ("hlo_op", "hlo_module", "program_id", "run_id", "device_ordinal", "_p", "_c", "_pt", "_ct", "_r", "step_num")
OF_DEVICES = ("correlation_id", "device_offset_ps", "device_duration_ps", "memcpy_details")
SPECIAL = (
    "CommonPjRtBuffer::Await",
    "ThunkExecutor::Execute (wait for completion)",
    "end: a",
    "a",
    "while.1",
    "jit_f(7)",
)
WHOLE = st.one_of(st.integers(-(2**63), 2**64 - 1), st.integers(-3, 3), st.sampled_from((2**62, 2**63 - 1)))
EVENTS = st.lists(
    st.builds(
        Event,
        st.sampled_from(SPECIAL),
        st.one_of(st.integers(0, 9), st.integers(-(2**42), 2**42)),
        st.one_of(st.integers(0, 9), st.integers(-(2**42), 2**42)),
        st.dictionaries(
            st.sampled_from(STATS + OF_DEVICES), st.one_of(WHOLE, st.floats(), st.sampled_from(SPECIAL)), max_size=6
        ),
    ),
    max_size=6,
)
STAMPS = st.sampled_from((0, EPOCH_NS, -1, 2**63 - 1, -(2**63)))


@given(
    st.sampled_from(("/host:CPU", "/device:GPU:0", "/device:TPU:0")),
    st.dictionaries(st.sampled_from(("XLA Ops", "XLA Modules", "Stream #1", "python")), EVENTS, max_size=3),
    EVENTS,
    st.tuples(STAMPS, STAMPS),
)
@settings(max_examples=60)
def test_events_of_any_times_and_statistics_give_numbers_or_a_finding(summarise, name, lines, on_host, stamps):
    device = encode_plane(name, lines, timestamp_ns=stamps[0])
    host = encode_plane("/host:CPU", {"python": on_host}, timestamp_ns=stamps[1])

    summarise(encode_space(device, host))


@pytest.mark.parametrize(
    "events",
    [
        [operation("a", 0, 1), operation("b", 2**42, 2**42)],
        [operation("a", 0, 1), event("late", 2**42, 2**42)],
        [operation("a", 0, 1), event("early", -(2**42) - 2**41, 1)],
    ],
)
def test_times_that_lie_too_far_apart_are_damage(events, summarise):
    assert problems(summarise(encode_space(encode_host(*events)))) == [Problem.DAMAGED]


@pytest.mark.parametrize("plane", ["/device:GPU:0", "/device:TPU:0"])
def test_times_of_a_device_that_lie_too_far_away_are_damage(plane, summarise):
    far = {"device_offset_ps": 2**63, "device_duration_ps": 1}  # one more than a signed number holds
    lines = {"XLA Ops": [Event("a", 0, 1, far)], "Stream #1": [event("a", 2**42, 2**42)]}

    assert problems(summarise(encode_space(encode_plane(plane, lines)))) == [Problem.DAMAGED]


def test_an_event_that_ends_before_it_begins_has_no_duration(summarise):
    summary = summarise(encode_space(encode_host(step(0, 100), operation("a", 50, -20), operation("b", 60, 10))))

    assert {one.name: one.total_s for one in summary.operations} == {"a": 0.0, "b": 1e-5}
    assert summary.devices[0].busy_s == (1e-5,)


def test_step_numbers_may_lie_far_apart(summarise):
    events = [step(0, 10, 0), step(20, 10, 2**63 - 1), operation("a", 1, 5), operation("a", 21, 5)]

    assert problems(summarise(encode_space(encode_host(*events)))) == []


NAMES_OF_HARM = (
    "x" * 10_000,
    ".1" * 5_000 + "x",
    "(1" * 5_000,
    "xla_python_" * 1_000,
    "a" * 9_990 + "-start.1",
    "<script>alert(1)</script>",
    "a\0b\x1b[31m\u202e\ufffd\n",
)


@pytest.mark.parametrize("name", NAMES_OF_HARM, ids=range(len(NAMES_OF_HARM)))
def test_names_of_any_length_and_letters_come_through_as_data(name, summarise):
    events = [step(0, 100, name=name), operation(name, 10, 20, hlo_module=name), event(name, 5, 1)]
    summary = summarise(encode_space(encode_host(*events)))
    kernel = event(name, 10, 20, hlo_op=name, hlo_module=name, program_id=1)
    of_gpu = summarise(encode_space(encode_gpu(kernel, event(name, 40, 1)), encode_host(step(0, 100))))

    (found,) = summary.operations
    assert (found.name, found.module) == (name, name)
    assert {one.name for one in of_gpu.operations} == {name}
    assert msgspec.json.decode(msgspec.json.encode(summary), type=TraceSummary) == summary


def test_what_the_profiler_says_comes_through_as_data(summarise):
    summary = summarise(encode_space(encode_host(), errors=["<b>\x1b" + "x" * 10_000]))

    assert problems(summary) == [Problem.NO_OPERATIONS]
    assert "<b>\x1b" in summary.findings[0].text
    assert len(summary.findings[0].text) < 300


ENDLESS = b"\xff" * 1_000_000
"""A whole number that would have seven million bits."""


@pytest.mark.parametrize(
    "data",
    [
        ENDLESS,
        part(1, ENDLESS),
        part(1, part(3, part(4, b"\x08" + ENDLESS))),
        part(1, part(3, part(4, b"\x10" + ENDLESS + b"\x01"))),
        part(1, part(3, part(4, whole(1, 1) + part(4, b"\x08" + ENDLESS)))),
        part(1, part(4, part(2, part(5, ENDLESS)))),
        part(1, b"\x22" + encode_whole(2**63)),
        part(1, part(3, b"\x22" + encode_whole(2**40))),
    ],
)
def test_numbers_and_lengths_without_end_are_damage(data, summarise):
    host = encode_host(step(0, 100), operation("a", 10, 20))

    assert summarise(data).findings
    assert problems(summarise(data + encode_space(host))) == [Problem.DAMAGED]


ZEROS = bytes(100 * 2**20)
"""What a power cut leaves of a file. Each pair would be a field: reading them takes a minute."""


@pytest.mark.parametrize(
    "data",
    [
        ZEROS,
        encode_space(encode_host(step(0, 100), operation("a", 10, 20))) + ZEROS,
        part(1, part(2, "/host:CPU") + part(3, part(4, ZEROS))),
        part(1, part(2, "/host:CPU") + part(3, ZEROS)),
        part(1, b"") * 1_000_000,
    ],
    ids=["zeros", "zeros at the end", "an event of zeros", "a line of zeros", "a million planes"],
)
def test_zeros_and_planes_without_end_are_damage_within_five_seconds(data, summarise):
    start_s = time.process_time()

    assert problems(summarise(data)) == [Problem.DAMAGED]

    assert time.process_time() - start_s < 5


@pytest.mark.parametrize("data", [ENDLESS, part(1, ENDLESS), b"\x08" + ENDLESS, part(3, part(2, part(36, ENDLESS)))])
def test_a_program_with_numbers_without_end_is_none(data):
    with pytest.raises(HloError):
        read_program(data + whole(6, 0))
    with pytest.raises(ValueError, match="64 bits"):
        list(read_fields(ENDLESS))


def encode_module(*computations, name="jit_f"):
    """An HloProto of computations, each a name and its encoded instructions; the first is the entry."""
    parts = b"".join(
        part(3, part(1, of) + b"".join(part(2, one) for one in instructions) + whole(5, number) + whole(6, 1))
        for number, (of, instructions) in enumerate(computations, 1)
    )
    return part(1, part(1, name) + parts + whole(6, 1))


VECTOR = whole(2, 11) + whole(3, 4)


def instruction(name, opcode, *fields, number=1, shape=VECTOR):
    return part(1, name) + part(2, opcode) + part(3, shape) + whole(35, number) + b"".join(fields)


def nest(depth):
    """A shape: a tuple in a tuple in a tuple …"""
    shape = whole(2, 11)
    for _ in range(depth):
        shape = whole(2, 13) + part(4, shape)
    return shape


LARGE = whole(2, 11) + b"".join(whole(3, 2**62) for _ in range(40))
"""A shape of more elements than a floating-point number holds."""


def shape(*sizes):
    return whole(2, 11) + b"".join(whole(3, size) for size in sizes)


def window(size, stride):
    return part(15, part(1, whole(1, size) + whole(2, stride)))


def two(first, opcode, *fields, second=VECTOR, third=VECTOR, own=VECTOR):
    """A computation of an instruction with two operands."""
    operands = [
        instruction("b", "parameter", number=2, shape=second),
        instruction("c", "parameter", number=3, shape=third),
    ]
    return ("m", [instruction(first, opcode, whole(36, 2), whole(36, 3), *fields, shape=own), *operands])


NUMBERS = ((7, 0), (8, 2), (11, 1), (3, 1), (4, 2), (6, 0), (9, 0), (10, 2), (12, 1))
LABELS = part(16, b"".join(whole(*pair) for pair in NUMBERS))
SIGNAL = shape(1, 2**40, 1)
DEEP = part(28, "__cublas$gemm") + part(43, '{"a":' * 5000 + "1" + "}" * 5000)

PROGRAMS = {
    "a fusion of itself": [
        ("m", [instruction("a", "fusion", whole(38, 2))]),
        ("b", [instruction("b", "fusion", whole(38, 2))]),
    ],
    "a loop that runs itself": [("m", [instruction("a", "while", whole(38, 1), whole(38, 1))])],
    "a fusion of nothing": [("m", [instruction("a", "fusion")])],
    "a fusion of what is missing": [("m", [instruction("a", "fusion", whole(38, 9))])],
    "a fusion without a root": [
        ("m", [instruction("a", "fusion", whole(38, 2))]),
        ("b", [instruction("b", "add", number=5)]),
    ],
    "a call of what is missing": [("m", [instruction("a", "call", whole(38, 9))])],
    "a shape within 3000 shapes": [("m", [instruction("a", "add", shape=nest(3000))])],
    "a shape within 100 shapes": [("m", [instruction("a", "add", shape=nest(100))])],
    "more elements than a number holds": [("m", [instruction("a", "add", shape=LARGE)])],
    "a product of more than a number holds": [two("a", "dot", own=LARGE)],
    "a product over what is missing": [two("a", "dot", part(30, whole(1, 9)))],
    "a product of what is missing": [("m", [instruction("a", "dot", whole(36, 2))])],
    "a convolution of nothing": [("m", [instruction("a", "convolution", window(3, 1), LABELS)])],
    "a convolution without end": [
        two("a", "convolution", window(2**40, 1), LABELS, second=SIGNAL, third=shape(2**40, 1, 1), own=SIGNAL)
    ],
    "a window that goes backwards": [
        two("a", "convolution", window(3, -1), LABELS, second=SIGNAL, third=shape(3, 1, 1), own=SIGNAL)
    ],
    "a window of no number": [("m", [instruction("a", "reduce-window", whole(36, 1), window(-1, 1))])],
    "slices of nothing": [("m", [instruction(*pair) for pair in (("a", "dynamic-update-slice"), ("b", "scatter"))])],
    "a library's call with a deep configuration": [two("a", "custom-call", DEEP)],
    "names that need quotes": [("m", [instruction("a", "custom-call", part(28, '"}, calls=%x, "'), part(43, "{"))])],
    "no root and no name": [("m", [b""])],
    "the same name twice": [("m", [instruction("a", "add"), instruction("a", "call", whole(38, 1))])],
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_that_makes_no_sense_leaves_the_times(name, summarise):
    program = encode_module(*PROGRAMS[name])
    metadata = encode_plane(METADATA_PLANE, {}, metadata={"jit_f(7)": {"Hlo Proto": program}})
    summary = summarise(encode_space(metadata, encode_host(step(0, 100), operation("a", 10, 20))))

    assert summary.is_healthy
    assert [(one.name, one.total_s) for one in summary.operations] == [("a", 2e-5)]


def test_a_chain_of_fusions_without_end_leaves_the_times(summarise):
    chain = [(f"c{i}", [instruction(f"f{i}", "fusion", whole(38, i + 2))]) for i in range(3000)]
    metadata = encode_plane(METADATA_PLANE, {}, metadata={"jit_f(7)": {"Hlo Proto": encode_module(*chain)}})
    summary = summarise(encode_space(metadata, encode_host(step(0, 100), operation("f0", 10, 20))))

    assert [(one.name, one.total_s, one.flops) for one in summary.operations] == [("f0", 2e-5, None)]


def test_a_program_with_another_byte_is_read_or_is_none():
    compiled = jax.jit(lambda x: jax.nn.softmax(x @ x)).lower(jnp.ones((8, 8))).compile()
    program = compiled.runtime_executable().hlo_modules()[0].as_serialized_hlo_module_proto()
    at_random = random.Random(3)
    read = 0

    for _ in range(300):
        changed = bytearray(program)
        changed[at_random.randrange(len(program))] = at_random.choice((at_random.randrange(256), *BYTES))
        try:
            read += len(read_program(bytes(changed)).computations) > 0
        except HloError:
            continue

    assert read > 100
