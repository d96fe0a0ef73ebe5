"""The small table that a run keeps of a capture."""

import msgspec
import pytest

from jaxmeter.harness.record.trace_summary import TraceSummary
from jaxmeter.harness.traces.programs import METADATA_PLANE
from jaxmeter.harness.traces.summary import MOST_SOURCES, shorten_summary, summarise, summarise_capture
from jaxmeter.harness.traces.xplane import read_capture
from tests.harness.traces.captured import NAMES, find_capture, read_texts
from tests.harness.traces.made_up import (
    PS_PER_US,
    encode_gpu,
    encode_host,
    encode_plane,
    encode_space,
    event,
    operation,
    step,
)


def summary_of(*planes, texts=(), **options):
    with read_capture(encode_space(*planes)) as space:
        return summarise(space, texts, **options)


def make_program(names, size=8):
    """A program of operations, each from a line of its own."""
    lines = [
        f'%{name} = f32[{size}]{{0}} negate(%p), metadata={{source_file="/me/a.py" source_line={at}}}'
        for at, name in enumerate(names, 1)
    ]
    parameter = f"%p = f32[{size}]{{0}} parameter(0)"
    head = f"HloModule jit_f\n\nENTRY %main (p: f32[{size}]) -> f32[{size}] {{"
    return "\n".join([head, parameter, *lines, "}\n"])


@pytest.mark.parametrize("name", NAMES)
def test_it_is_small_and_can_be_written_and_read_again(name):
    summary = summarise_capture(find_capture(name), read_texts(name))
    encoded = msgspec.json.encode(summary)

    assert msgspec.json.decode(encoded, type=TraceSummary) == summary
    assert len(encoded) < 12_000


def test_it_names_the_largest_operations_and_adds_up_the_rest():
    events = [operation(f"a.{at}", 10 * at, at) for at in range(1, 9)]
    summary = summary_of(encode_host(step(0, 100), *events), most_operations=3)

    assert [one.name for one in summary.operations] == ["a.8", "a.7", "a.6"]
    assert summary.others == 5
    assert summary.others_share == pytest.approx((1 + 2 + 3 + 4 + 5) / 36)
    assert sum(one.share for one in summary.operations) + summary.others_share == pytest.approx(1)


def test_operations_of_a_program_that_is_compiled_anew_are_one():
    events = [
        one
        for number in range(3)
        for one in (
            step(20 * number, 18, number),
            operation("a", 20 * number + 1, 5, run_id=number, program_id=number),
            operation("b", 20 * number + 7, 10, run_id=number, program_id=number),
        )
    ]
    summary = summary_of(encode_host(*events))

    assert [(one.name, one.count) for one in summary.operations] == [("b", 3), ("a", 3)]
    assert [one.share for one in summary.operations] == pytest.approx([2 / 3, 1 / 3])


def test_it_adds_up_categories_and_lines():
    names = [f"a.{at}" for at in range(1, MOST_SOURCES + 4)]
    events = [operation(name, 10 * at, 9 - at / 10) for at, name in enumerate(names)]
    other = operation("all-reduce", 500, 50, hlo_module="jit_g")
    summary = summary_of(encode_host(step(0, 1000), *events, other), texts=[make_program(names)])

    assert list(summary.by_category) == ["compute", "collective"]
    assert sum(summary.by_category.values()) == pytest.approx(1)
    assert list(summary.by_source)[:2] == ["/me/a.py:1", "/me/a.py:2"]
    assert len(summary.by_source) == MOST_SOURCES + 1  # and all others
    assert summary.by_source[""] > summary.by_category["collective"]
    assert sum(summary.by_source.values()) == pytest.approx(1)


@pytest.mark.parametrize(
    ("source", "kept"),
    [
        ("/~~~~~/code/train.py:9", "code/train.py:9"),
        ("/~~~~~/python3.13/site-packages/jaxmeter/suites/selu.py:94", "jaxmeter/suites/selu.py:94"),
        ("/usr/lib/python3/dist-packages/ours/suite.py:7", "ours/suite.py:7"),
        ("", ""),
    ],
    ids=["a hidden folder", "an installed suite of jaxmeter", "an installed suite of a user", "no line"],
)
def test_a_record_has_a_line_without_the_folder_that_says_where_it_is_installed(source, kept):
    summary = TraceSummary(platform="cpu", steps_from="annotations", by_source={source: 1.0})

    assert list(shorten_summary(summary).by_source) == [kept]


def test_the_cost_of_a_step_is_of_all_that_ran_in_it():
    events = [one for at in (0, 100) for one in (step(at, 50, at), operation("a", at, 5), operation("a", at + 10, 5))]
    summary = summary_of(encode_host(*events), texts=[make_program(["a"])])

    assert (summary.flops, summary.bytes) == (2 * 8, 2 * 64)


def test_devices_that_share_a_step_share_its_cost():
    events = [step(0, 50), *(operation("a", 0, 5, device_ordinal=device) for device in (0, 1))]
    summary = summary_of(encode_host(*events), texts=[make_program(["a"])])

    assert [device.busy_s for device in summary.devices] == [(5e-6,), (5e-6,)]
    assert summary.flops == 8


@pytest.mark.parametrize(("duration", "flops"), [(0.04, 8), (2, None)])
def test_a_step_has_no_cost_where_what_takes_time_has_none(duration, flops):
    events = [step(0, 50), operation("a", 0, 5), operation("unknown", 10, duration, hlo_module="jit_g")]

    assert summary_of(encode_host(*events), texts=[make_program(["a"])]).flops == flops


def test_a_device_states_its_peaks_and_its_kind():
    kernel = event("dot", 20, 30, hlo_op="dot", hlo_module="jit_f", program_id=7, correlation_id=1)
    gpu = encode_gpu(kernel, stats={"memory_bandwidth": 4_000_000_000_000, "gpu_device_name": "NVIDIA H200"})
    summary = summary_of(gpu, encode_host(step(0, 100), event("cuLaunchKernel", 15, 1, correlation_id=1)))

    assert (summary.platform, summary.device_kind) == ("gpu", "NVIDIA H200")
    assert (summary.peak_bytes_per_s, summary.peak_flops) == (4e12, None)
    assert summary.launch_delay_s == pytest.approx(5e-6)


def test_a_tpu_states_its_peaks_in_units_of_its_own():
    dot = event("dot", 500, 30, device_offset_ps=0, device_duration_ps=30 * PS_PER_US)
    rates = {"peak_teraflops_per_second": 918.0, "peak_hbm_bw_gigabytes_per_second": 1638.0}
    tpu = encode_plane(
        "/device:TPU:0",
        {"XLA Modules": [event("jit_f(7)", 490, 100)], "XLA Ops": [dot]},
        stats={**rates, "device_type_string": "v6"},
    )
    summary = summary_of(tpu)

    assert (summary.peak_flops, summary.peak_bytes_per_s, summary.device_kind) == (918e12, 1638e9, "v6")
    assert summary.devices[0].program_s == (30e-6,)


def test_a_device_has_its_own_collectives_and_transfers_only_where_it_has_any():
    host = encode_host(step(0, 100), operation("a", 0, 5), operation("copy-start.1", 10, 5))
    (device,) = summary_of(host).devices

    assert (device.collective_s, device.waiting_s, device.transfer_s) == ((), None, (5e-6,))


def test_the_busiest_device_is_that_of_the_longest_time():
    events = [step(0, 50), operation("a", 0, 5), operation("a", 0, 9, device_ordinal=1)]
    summary = summary_of(encode_host(*events))

    assert summary.busiest is not None
    assert summary.busiest.name == "1"
    assert summary.ledger_device == "the busiest of each step"
    assert TraceSummary(platform="", steps_from="").busiest is None


def test_reading_can_be_watched(tmp_path):
    path = tmp_path / "a.xplane.pb"
    path.write_bytes(encode_space(encode_host(step(0, 50), operation("a", 0, 5))))
    watched = []

    summary = summarise_capture(path, watch=watched.append)

    assert summary.events == 2
    assert 0 < watched[0].read_bytes < watched[0].size


def test_a_program_of_a_capture_that_costs_nothing_known_leaves_the_bytes():
    text = "HloModule jit_f\n\nENTRY %main (p: f32[8]) -> f32[8] {\n  %p = f32[8]{0} parameter(0)\n"
    text += '  ROOT %call = f32[8]{0} custom-call(%p, %p), custom_call_target="mine"\n}\n'
    metadata = encode_plane(METADATA_PLANE, {}, metadata={"jit_g(1)": {"Hlo Proto": b""}})
    summary = summary_of(metadata, encode_host(step(0, 50), operation("call", 0, 5)), texts=[text])

    assert (summary.flops, summary.bytes) == (None, 3 * 32)


def test_what_lies_between_and_outside_of_the_steps_is_a_share():
    waited = [step(0, 10, 0), operation("a", 0, 10), step(30, 10, 1), operation("a", 30, 10, run_id=2)]
    summary = summary_of(encode_host(*waited, operation("a", 100, 20, run_id=3)))

    assert summary.between_share == pytest.approx(0.5)
    assert summary.outside_share == pytest.approx(0.5)


def test_the_formats_of_products_are_those_of_their_operands():
    assert summarise_capture(find_capture("cpu_matmul_jit")).product_formats == ("float32",)
    assert summarise_capture(find_capture("nvidia_h200_selu")).product_formats == ()
