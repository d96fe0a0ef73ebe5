"""A capture that has more events than may be in memory is read until a moment, and all before it is as in the whole."""

import numpy
import pytest

from jaxmeter.harness.record.trace_summary import Problem
from jaxmeter.harness.traces import columns
from jaxmeter.harness.traces.analysis import ANNOTATIONS
from jaxmeter.harness.traces.summary import analyse_space, summarise
from jaxmeter.harness.traces.xplane import CaptureError, read_capture
from tests.harness.traces.captured import TPU, analyse_capture, find_capture, with_shared
from tests.harness.traces.made_up import (
    analyse_made_up,
    encode_gpu,
    encode_host,
    encode_space,
    event,
    operation,
    read_made_up,
    step,
)

STEPS = 40


def on_a_cpu(number):
    """Events of one step on three threads, the operation on the last one asynchronous."""
    at = 100 * number
    run = {"run_id": number + 1, "device_ordinal": 0}
    yield "python", step(at, 80, number)
    yield "python", event("PjitFunction(f)", at + 1, 4)
    yield "pool", operation("a", at + 10, 20 + number % 3, **run)
    yield "pool", operation("b", at + 40, 1, _pt=3, _p=number, **run)
    yield "other", event("end: b", at + 60 + number % 5, 0.5, _ct=3, _c=number)
    yield "other", event("ThunkExecutor::Execute (wait for completion)", at + 5, 65, **run)


def make_cpu(steps=STEPS):
    lines = {"python": [], "other": [], "pool": []}
    for number in range(steps):
        for name, one in on_a_cpu(number):
            lines[name].append(one)
    return (encode_host(*lines.pop("python"), **lines),)


def make_gpu():
    kernels = [
        event("dot", 100 * n + 20, 30 + n % 4, hlo_op="dot", hlo_module="f", correlation_id=n) for n in range(STEPS)
    ]
    launches = [event("launch", 100 * n + 10 - n % 3, 2, correlation_id=n) for n in range(STEPS)]
    return encode_gpu(*kernels), encode_host(*[step(100 * n, 80, n) for n in range(STEPS)], launcher=launches)


@pytest.fixture
def few(monkeypatch):
    """Room for few events, counted after each."""

    def make(most):
        monkeypatch.setattr(columns, "MOST_KEPT", most)
        monkeypatch.setattr(columns, "CHECKED", 1)

    return make


@pytest.mark.parametrize("make", [make_cpu, make_gpu])
@pytest.mark.parametrize("most", [40, 77, 100])
def test_the_steps_that_are_read_are_as_in_the_whole_capture(make, most, few):
    whole = analyse_made_up(*make())
    few(most)
    part = analyse_made_up(*make())

    read = len(part.wall)
    assert STEPS / 10 < read < STEPS
    assert part.steps.source == ANNOTATIONS
    assert part.steps.steps == whole.steps.steps[:read]
    assert part.devices[0].busy.tolist() == whole.devices[0].busy[:read].tolist()
    assert part.devices[0].program.tolist() == whole.devices[0].program[:read].tolist()
    assert {one.kind.name: one.count for one in part.operations} == dict.fromkeys(
        (one.kind.name for one in whole.operations), read
    )
    assert part.timeline.events == whole.timeline.events


def test_delays_are_those_of_the_launches_that_are_read(few):
    whole = read_made_up(*make_gpu()).launch_delays.tolist()
    few(60)
    part = read_made_up(*make_gpu()).launch_delays.tolist()

    assert 0 < len(part) < STEPS
    assert part == whole[: len(part)]


@with_shared
def test_runs_of_a_tpu_that_are_read_are_as_in_the_whole_capture(few):
    whole = analyse_capture(TPU)
    few(len(whole.timeline.operations) // 3)
    with read_capture(find_capture(TPU).read_bytes()) as space:
        part = analyse_space(space)

    busy = dict(zip(whole.steps.steps, numpy.stack([device.busy for device in whole.devices], 1).tolist(), strict=True))
    read = dict(zip(part.steps.steps, numpy.stack([device.busy for device in part.devices], 1).tolist(), strict=True))
    until = part.timeline.end
    assert read.items() <= busy.items()
    assert 0 < len(read) < len(busy)
    # By the host's clock, which cuts, a run may end a little later than by the device's.
    assert len(read) >= sum(step.end <= until for step in busy) - len(whole.devices)


def test_a_capture_that_is_read_in_part_says_how_much(few):
    few(60)
    with read_capture(encode_space(*make_cpu())) as space:
        summary = summarise(space)

    (finding,) = [one for one in summary.findings if one.problem is Problem.READ_IN_PART]
    assert not finding.is_fatal
    assert len(summary.traced_s) < STEPS
    assert "of 0.00396 s" in finding.text  # the last event begins 3,964 us after the first


def test_of_too_many_the_first_are_kept(few):
    few(100)
    collection = columns.Collection()
    begun, kind = collection.make_columns("qi")
    for number in range(1000):
        start = 7919 * number % 1000
        if not collection.is_behind(start):
            columns.append((begun, kind), start, number)
        assert len(begun) <= 101

    assert sorted(begun) == list(range(collection.until))
    assert all(7919 * number % 1000 == start for start, number in zip(begun, kind, strict=True))
    assert (collection.events, collection.latest) == (1000, 999)


def test_too_many_at_one_moment_are_damage(few):
    few(10)
    with pytest.raises(CaptureError):
        read_made_up(encode_host(*[operation("a", 5, 1)] * 30))
