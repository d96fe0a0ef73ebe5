"""Real captures give the numbers that others computed from them, to the last digit."""

import json
import shutil
from collections import defaultdict

import numpy
import pytest

from jaxmeter.harness.traces.analysis import ANNOTATIONS, MODULE_RUNS, WHOLE
from jaxmeter.harness.traces.columns import measure, unite
from jaxmeter.harness.traces.ledger import PARTS, make_ledger
from jaxmeter.harness.traces.programs import TRANSFER
from jaxmeter.harness.traces.summary import summarise_capture
from tests.harness.traces.captured import (
    AMD,
    NAMES,
    TPU,
    analyse_capture,
    find_capture,
    read_expected,
    read_texts,
    with_shared,
)

EVERY = [*NAMES, pytest.param(AMD, marks=with_shared)]

OTHER_WORDS = {"host before": "before", "host amid": "amid", "host after": "after"}
"""Parts by the names of the other projects' expected values."""


def microseconds(times):
    return [round(time / 1e6, 3) for time in times.tolist()]


def on_every_device(times):
    """By device, also where the expected values are of the only one."""
    return times if isinstance(times, dict) else {"0": times}


@pytest.mark.parametrize("name", EVERY)
def test_steps_busy_times_and_operations_of_every_device(name):
    analysis, expected = analyse_capture(name), read_expected(name)
    operations = analysis.timeline.operations
    counts = {str(device): int((operations.device == device).sum()) for device in set(operations.device.tolist())}

    assert microseconds(analysis.wall) == expected["wall_us"]
    assert analysis.steps.source == (WHOLE if name == AMD else ANNOTATIONS)
    assert not analysis.steps.until_next
    busy = {str(at): microseconds(one.busy) for at, one in enumerate(analysis.devices)}
    assert busy == on_every_device(expected["busy_us"])
    assert counts == expected["operations"]


@pytest.mark.parametrize("name", [name for name in NAMES if name.startswith("cpu")])
def test_program_times_of_every_device(name):
    found = {str(at): microseconds(one.program) for at, one in enumerate(analyse_capture(name).devices)}

    assert found == read_expected(name)["run_us"]


def test_waiting_in_collectives_is_that_of_each_devices_own_threads():
    devices = analyse_capture("cpu_shard_map_two_devices").devices
    waited = [device.waiting_in_collectives for device in devices if device.waiting_in_collectives is not None]

    assert [round(int(wait.sum()) / 1e6, 3) for wait in waited] == [3556.058, 2298.097]  # of 9787.197, 60 %
    assert all((wait <= device.collective).all() for wait, device in zip(waited, devices, strict=True))


@pytest.mark.parametrize("name", EVERY)
def test_operations_of_the_largest_shares(name):
    found = [
        {
            "name": one.kind.name,
            "module": one.kind.module,
            "program": one.kind.program,
            "category": one.about.category,
            "count": one.count,
            "total_us": round(one.total_ps / 1e6, 3),
            "self_us": round(one.self_ps / 1e6, 3),
            "share_us": round(one.share_ps / 1e6, 3),
        }
        for one in analyse_capture(name).operations[:5]
    ]
    expected = read_expected(name)["top5_by_share"]

    assert found == [{**one, "program": one["program"].replace("None", "")} for one in expected]


@pytest.mark.parametrize("name", EVERY)
def test_shares_of_all_operations_add_up_to_the_busy_time(name):
    analysis = analyse_capture(name)
    busy = sum(int(device.busy.sum()) for device in analysis.devices)

    assert sum(one.share_ps for one in analysis.operations) == pytest.approx(busy, rel=1e-12)
    assert sum(sum(one.by_device.values()) for one in analysis.operations) == pytest.approx(busy, rel=1e-12)


@pytest.mark.parametrize("name", EVERY)
def test_parts_of_the_median_step(name):
    ledger = make_ledger(analyse_capture(name))
    assert ledger is not None
    expected = read_expected(name).get("ledger_percent") or read_expected(name)["ledger_pct_of_median_step"]

    shown = {part: expected[part if part in expected else OTHER_WORDS[part]] for part in ledger.medians}

    assert {part: round(100 * share, 2) for part, share in ledger.medians.items()} == shown
    assert {*ledger.medians, *ledger.hidden} == set(PARTS)


@pytest.mark.parametrize("name", ["nvidia_h200_selu", pytest.param(AMD, marks=with_shared)])
def test_launches_and_transfers_of_a_gpu(name):
    analysis, expected = analyse_capture(name), read_expected(name)
    timeline = analysis.timeline
    copies = [one for one in analysis.operations if one.about.category == TRANSFER]

    assert (len(timeline.launch_delays), timeline.unmatched) == (expected["launches"]["matched"], 0)
    assert [round(edge / 1e6, 3) for edge in (timeline.launch_delays.min(), timeline.launch_delays.max())] == expected[
        "launches"
    ]["from_begin_us"]
    assert sum(one.count for one in copies) == expected["transfers"]["count"]
    assert round(sum(one.total_ps for one in copies) / 1e6, 3) == expected["transfers"]["sum_us"]


@pytest.mark.parametrize("name", NAMES)
def test_a_whole_capture_has_no_problem(name):
    steps, has_device = len(read_expected(name)["wall_us"]), name.startswith("nvidia")
    summary = summarise_capture(find_capture(name), read_texts(name), has_device=has_device, steps=steps)

    assert summary.findings == ()
    assert summary.is_healthy
    assert summary.platform == read_expected(name)["platform"]


def test_an_operation_has_its_line_its_opcode_and_its_cost():
    (operation,) = analyse_capture("nvidia_h200_selu").operations

    assert operation.about.source == "/somewhere/suites/selu.py:94"
    assert (operation.about.opcode, operation.about.jax_name) == ("fusion", "jit(selu)/mul")
    assert operation.about.cost.bytes == 2 * 2 * 10**8  # bfloat16, read and written

    (product,) = analyse_capture("cpu_matmul_jit").operations
    assert product.about.opcode == "fusion of dot"
    assert product.about.cost.flops == 2 * 512**3


@with_shared
def test_operations_of_a_tpu_last_as_long_as_its_own_clock_says():
    analysis = analyse_capture(TPU)
    operations = analysis.timeline.operations
    own = operations.take(operations.device == 0)

    assert analysis.timeline.devices[0] == "/device:TPU:0"
    assert len(own) == 1504
    assert round(int((own.ends - own.starts).sum()) / 1e6, 1) == 78783723.9
    assert round(measure(unite(own.intervals)) / 1e6, 1) == 78783723.9


@with_shared
def test_a_tpu_without_annotations_has_its_programs_runs_for_steps():
    analysis = analyse_capture(TPU)
    of_first = [run for run in analysis.timeline.runs if run.device == 0]
    longest = [step for step in analysis.steps.steps if step.device == 0]

    assert len(of_first) == 105
    assert analysis.steps.source == MODULE_RUNS
    assert {step.name for step in longest} == {"jit_f"}
    assert numpy.ptp([step.end - step.start for step in longest]) < 0.2e9  # 784.10 to 784.23 ms; 551 to 982 by events


@pytest.mark.parametrize(
    "name", ["nvidia_h200_selu", pytest.param(AMD, marks=with_shared), pytest.param(TPU, marks=with_shared)]
)
def test_self_times_are_those_of_xprof(name, tmp_path):
    convert = pytest.importorskip("xprof.convert.raw_to_tool_data")
    copied = shutil.copy(find_capture(name), tmp_path / "a.xplane.pb")  # it writes caches next to its input
    text, _ = convert.xspace_to_tool_data([str(copied)], "hlo_stats", {})
    table = json.loads(text)
    places = {column["id"]: place for place, column in enumerate(table["cols"])}
    theirs = defaultdict(float)
    for row in table["rows"]:
        cells = [None if cell is None else cell["v"] for cell in row["c"]]
        theirs[str(cells[places["program_id"]]), cells[places["hlo_op_name"]]] += cells[places["total_self_time"]]

    analysis = analyse_capture(name)
    ours = {(one.kind.program, one.kind.name): one.self_ps / 1e6 for one in analysis.operations if one.kind.module}
    operations = analysis.timeline.operations
    for place, kind in enumerate(operations.kinds):
        if kind.module and (kind.program, kind.name) not in ours:  # outside of the steps, which are runs of one program
            own = operations.take(operations.kind == place)
            ours[kind.program, kind.name] = int((own.ends - own.starts).sum()) / 1e6

    assert ours == {key: pytest.approx(time, rel=1e-9, abs=1e-5) for key, time in theirs.items()}
