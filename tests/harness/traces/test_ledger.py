"""A ledger against an account of every microsecond: parts exclude each other and add up to the step."""

from statistics import median

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jaxmeter.harness.traces.ledger import BUSIEST, GROUPS, PARTS, make_ledger
from tests.harness.traces.captured import AMD, NAMES, TPU, analyse_capture, with_shared
from tests.harness.traces.made_up import (
    PS_PER_US,
    Event,
    analyse_made_up,
    encode_gpu,
    encode_host,
    encode_plane,
    event,
    operation,
    step,
)

LATEST = 60
OF_DEVICE = {
    "add": "compute",
    "while.1": "compute",
    "pure_callback.1": "callback",
    "all-reduce.2": "collective",
    "copy-start.1": "transfer",
}
"""Names of operations, and the part that each is of."""

OF_HOST = {"H2D Dispatch": "transfer", "backend_compile": "compile", "PjitFunction(f)": "dispatch"}


def ledger_of(*planes, **options):
    ledger = make_ledger(analyse_made_up(*planes, **options))
    assert ledger is not None
    return ledger


def percent(ledger):
    """The parts that are not 0."""
    return {part: pytest.approx(100 * share) for part, share in ledger.shares.items() if share}


def test_each_moment_of_a_step_is_in_one_part():
    host = encode_host(
        step(0, 100),
        event("PjitFunction(f)", 5, 15),
        operation("add", 15, 20),
        operation("all-reduce", 30, 10),
        operation("copy-start.1", 45, 5),
        event("ThunkExecutor::Execute (wait for completion)", 58, 2, run_id=1, device_ordinal=0),
        event("CommonPjRtBuffer::Await", 25, 1, _pt=4, _p=1),
        event("CommonPjRtBuffer::Await", 69, 1, _ct=4, _c=1),
        event("backend_compile", 75, 5),
        operation("add", 90, 5, run_id=2),
    )

    assert percent(ledger_of(host)) == {
        "compute": 25,
        "collective": 5,
        "transfer": 5,
        "between operations": 5 + 10,
        "compile": 5,
        "dispatch": 10,
        "waiting": 10,
        "host before": 5,
        "host amid": 5 + 10,
        "host after": 5,
    }


def test_where_devices_share_a_step_the_busiest_of_that_step_counts():
    host = encode_host(
        step(0, 100),
        operation("add", 0, 30, device_ordinal=0),
        operation("add", 0, 10, device_ordinal=1),
        step(100, 100),
        operation("add", 100, 10, device_ordinal=0, run_id=2),
        operation("add", 100, 50, device_ordinal=1, run_id=2),
    )
    ledger = ledger_of(host)

    assert ledger.device == BUSIEST
    assert ledger.medians["compute"] == pytest.approx((0.3 + 0.5) / 2)


def test_a_capture_without_operations_or_steps_has_none():
    assert make_ledger(analyse_made_up(encode_host())) is None
    assert make_ledger(analyse_made_up(encode_host(step(0, 10)))) is None


def test_what_a_gpus_capture_cannot_show_is_named_and_not_zero():
    gpu = encode_gpu(event("dot", 20, 30, hlo_op="dot", hlo_module="jit_f"))
    await_ = (
        event("CommonPjRtBuffer::Await", 50, 1, _pt=1, _p=1),
        event("CommonPjRtBuffer::Await", 90, 1, _ct=1, _c=1),
    )
    ledger = ledger_of(gpu, encode_host(step(0, 100), *await_))

    assert ledger.hidden == ("between operations", "waiting")
    assert not set(ledger.hidden) & set(ledger.shares)
    assert percent(ledger) == {"compute": 30, "host before": 20, "host after": 50}


def test_a_tpus_host_is_by_another_clock_and_has_no_part():
    at = [
        Event("dot", 500 + at, 30, {"device_offset_ps": at * PS_PER_US, "device_duration_ps": 30 * PS_PER_US})
        for at in (0, 70)
    ]
    tpu = encode_plane("/device:TPU:0", {"XLA Modules": [event("jit_f(7)", 490, 200)], "XLA Ops": at})
    ledger = ledger_of(tpu, encode_host(event("PjitFunction(f)", 0, 100), event("DevicePut", 30, 30)))

    assert percent(ledger) == {"compute": 60, "between operations": 40}
    assert set(ledger.hidden) == {"compile", "dispatch", "waiting", "host before", "host amid", "host after"}


@pytest.mark.parametrize("name", [*NAMES, *(pytest.param(name, marks=with_shared) for name in (AMD, TPU))])
def test_parts_of_real_captures_add_up_to_one(name):
    analysis = analyse_capture(name)
    ledger = make_ledger(analysis)

    assert ledger is not None
    assert sum(ledger.shares.values()) == pytest.approx(1)
    assert sum(map(ledger.group, GROUPS)) == pytest.approx(1)
    assert set(ledger.shares) | set(ledger.hidden) == set(PARTS)
    assert not set(ledger.shares) & set(ledger.hidden)
    assert analysis.timeline.layout is not None
    unseen = set() if len(analysis.timeline.host.get("waiting", ((),))[0]) else {"waiting"}
    assert set(ledger.hidden) == analysis.timeline.layout.hides | unseen


def test_groups_cover_every_part_once():
    assert sorted(part for parts in GROUPS.values() for part in parts) == sorted(PARTS)


SPANS = st.tuples(st.integers(0, LATEST), st.integers(0, 15))


def events_of(names, most):
    return st.lists(st.tuples(st.sampled_from(sorted(names)), SPANS), max_size=most)


@given(
    st.lists(st.integers(1, 20), min_size=1, max_size=4),
    events_of(OF_DEVICE, 8),
    events_of(OF_HOST, 5),
    st.lists(SPANS, max_size=2),
    SPANS,
)
@settings(max_examples=60)
def test_any_made_up_step_is_divided_as_a_clock_would_count_it(lengths, on_device, on_host, waits, completion):
    bounds = [(sum(lengths[:at]), sum(lengths[: at + 1])) for at in range(len(lengths))]
    starts = [start for _, (start, _) in on_device]
    if not on_device or min(starts) >= bounds[-1][1]:
        return
    done = event("ThunkExecutor::Execute (wait for completion)", *completion, run_id=1, device_ordinal=0)
    await_ = [
        event("CommonPjRtBuffer::Await", at, 0, **{place: 1, flow: number})
        for number, (start, length) in enumerate(waits, 1)
        for at, place, flow in ((start, "_pt", "_p"), (start + length, "_ct", "_c"))
    ]
    host = encode_host(
        *(step(start, end - start, number) for number, (start, end) in enumerate(bounds)),
        *(operation(name, *span) for name, span in on_device),
        *(event(name, *span) for name, span in on_host),
        *await_,
        done,
    )
    analysis = analyse_made_up(host)
    ledger = make_ledger(analysis)
    assert ledger is not None

    run = (min(starts), max(*(start + length for _, (start, length) in on_device), sum(completion)))
    windows = [(one.start // PS_PER_US, one.end // PS_PER_US) for one in analysis.steps.steps]
    counted = [any(low <= start < high for low, high in windows) for start in starts]
    ops = [(OF_DEVICE[name], start, start + length) for name, (start, length) in on_device]
    claims = [op for op, is_counted in zip(ops, counted, strict=True) if is_counted]
    claims += [(OF_HOST[name], start, start + length) for name, (start, length) in on_host]
    claims += [("waiting", start, start + length) for start, length in waits] + [("between operations", *run)]

    divided = [divide(start, end, claims, [op[1:] for op in ops]) for start, end in windows]
    for part in ledger.medians:
        assert ledger.medians[part] == pytest.approx(
            median(counts.get(part, 0) / sum(counts.values()) for counts in divided)
        )
    if ledger.shares:
        assert sum(ledger.shares.values()) == pytest.approx(1)


def divide(start, end, claims, busy):
    """By part, the microseconds of a step: each is of the first part that claims it."""
    counts = dict.fromkeys(PARTS, 0)
    active = [at for at in range(start, end) if any(low <= at < high for low, high in busy)]
    for at in range(start, end):
        claimed = {part for part, low, high in claims if low <= at < high}
        if claimed:
            part = next(part for part in PARTS if part in claimed)
        elif not active or at < active[0]:
            part = "host before"
        else:
            part = "host after" if at > active[-1] else "host amid"
        counts[part] += 1
    return counts
