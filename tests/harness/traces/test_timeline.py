"""What events of a capture become: operations with their true ends, runs, steps, launches, copies."""

import pytest

from jaxmeter.harness.traces.analysis import ANNOTATIONS, MODULE_RUNS, WHOLE, find_steps
from jaxmeter.harness.traces.timeline import CPU, GPU, TPU
from tests.harness.traces.made_up import (
    EPOCH_NS,
    PS_PER_US,
    Event,
    analyse_made_up,
    encode_gpu,
    encode_host,
    encode_plane,
    event,
    list_operations,
    operation,
    read_made_up,
    step,
)

COMPLETED = "ThunkExecutor::Execute (wait for completion)"


def begun(name, start, duration, flow, **stats):
    """An asynchronous operation, whose event ends where its beginning does."""
    return operation(name, start, duration, _pt=3, _p=flow, **stats)


def ended(name, start, flow):
    """Its end, written by whatever thread ended it."""
    return event(f"end: {name}", start, 0.5, _ct=3, _c=flow)


def completed(start, duration=1, **stats):
    """The end of a program's run."""
    return event(COMPLETED, start, duration, **{"run_id": 1, "device_ordinal": 0, **stats})


def ends_of(*args, **options):
    return {name: end for name, _, end in list_operations(read_made_up(*args, **options))}


def spans(intervals):
    return [(int(start) / PS_PER_US, int(end) / PS_PER_US) for start, end in zip(*intervals, strict=True)]


DOT, DOT_ENDS = begun("dot", 10, 5, flow=7), ended("dot", 40, flow=7)


@pytest.mark.parametrize(
    ("own", "pool", "ends"),
    [
        ([DOT], [DOT_ENDS], {"dot": 40}),
        ([DOT], [ended("dot", 40, flow=8)], {"dot": 15}),
        ([DOT], [operation("add", 30, 8), DOT_ENDS], {"dot": 30, "add": 38}),
        ([DOT, operation("sub", 20, 1)], [DOT_ENDS], {"dot": 40, "sub": 21}),
        ([DOT], [operation("add", 30, 8, run_id=2), DOT_ENDS], {"dot": 40, "add": 38}),
        ([DOT, completed(28, 2)], [DOT_ENDS], {"dot": 30}),
        ([begun("dot", 10, 20, flow=7)], [operation("add", 12, 1), ended("dot", 14, flow=7)], {"dot": 30, "add": 13}),
    ],
    ids=[
        *("where it was written", "not of another operation", "cut by the next on the writing thread"),
        *("not cut by other threads", "nor by another run", "cut by the end of the run", "not before its recorded end"),
    ],
)
def test_where_an_asynchronous_operation_ends(own, pool, ends):
    assert ends_of(encode_host(*own, pool=pool)) == ends


LOOP = """HloModule jit_f, is_scheduled=true

%body (s: f32[8]) -> f32[8] {
  %s = f32[8]{0} parameter(0)
  %called.1 = f32[8]{0} call(%s), to_apply=%inner
  ROOT %step.1 = f32[8]{0} add(%called.1, %s)
}

%inner (t: f32[8]) -> f32[8] {
  %t = f32[8]{0} parameter(0)
  ROOT %deep.1 = f32[8]{0} negate(%t)
}

%condition (c: f32[8]) -> pred[] {
  %c = f32[8]{0} parameter(0)
  ROOT %test.1 = pred[] constant(true)
}

ENTRY %main (x: f32[8]) -> f32[8] {
  %x = f32[8]{0} parameter(0)
  %while.1 = f32[8]{0} while(%x), condition=%condition, body=%body
  ROOT %after.1 = f32[8]{0} negate(%while.1)
}
"""


def test_what_follows_a_loop_ends_it_and_its_own_body_does_not():
    def host_of(*others):
        pool = [operation("step.1", 20, 3), operation("deep.1", 24, 3), *others, ended("while.1", 36, flow=7)]
        return encode_host(begun("while.1", 10, 5, flow=7), pool=pool)

    host = host_of(operation("step.1", 30, 3))
    assert ends_of(host, texts=[LOOP])["while.1"] == 36
    # Without its program nothing says what is inside.
    assert ends_of(host)["while.1"] == 20
    assert ends_of(host_of(operation("after.1", 30, 3)), texts=[LOOP])["while.1"] == 30


def shares_of(analysis):
    return pytest.approx({one.kind.name: one.share_ps / PS_PER_US for one in analysis.operations})


def test_a_loops_own_time_is_without_its_body():
    events = [step(0, 100), operation("while.1", 10, 50), operation("deep.1", 20, 10), operation("step.1", 25, 10)]
    analysis = analyse_made_up(encode_host(*events), texts=[LOOP])

    own = {one.kind.name: one.self_ps / PS_PER_US for one in analysis.operations}
    assert own == {"while.1": 50 - 15, "deep.1": 10, "step.1": 10}
    # The instants of both are divided equally; the loop has what neither has.
    assert shares_of(analysis) == {"while.1": 35, "deep.1": 7.5, "step.1": 7.5}
    assert analysis.devices[0].busy.tolist() == [50 * PS_PER_US]


def test_loops_within_loops_have_what_no_inner_one_has():
    events = [step(0, 100), operation("while.1", 10, 50), operation("call.1", 20, 20), operation("add", 25, 10)]

    assert shares_of(analyse_made_up(encode_host(*events))) == {"while.1": 30, "call.1": 10, "add": 10}


def test_a_run_lasts_from_its_first_operation_to_its_completion():
    first = (operation("a", 10, 5), operation("b", 18, 2), completed(25, 1))
    runs = read_made_up(encode_host(*first, operation("a", 40, 5, run_id=2), completed(99, 1))).runs

    # The completion of run 1 is the last that was written; of run 2 there is none.
    assert [microseconds(run) for run in runs] == [(10, 100), (40, 45)]
    assert {(run.module, run.program) for run in runs} == {("jit_f", "7")}


def test_runs_of_several_devices_are_told_apart():
    operations = operation("a", 10, 5, device_ordinal=1), operation("a", 12, 5, device_ordinal=0)
    ends = completed(20, 1, device_ordinal=1), completed(30, 1, device_ordinal=0)
    timeline = read_made_up(encode_host(*operations, *ends))

    assert timeline.devices == ("0", "1")
    assert sorted((run.device, *microseconds(run)) for run in timeline.runs) == [(0, 12, 31), (1, 10, 21)]


def test_waiting_lasts_from_the_producers_event_to_the_consumers():
    await_ = "CommonPjRtBuffer::Await"
    host = encode_host(
        operation("a", 0, 1),
        event(await_, 10, 2, _pt=4, _p=1),
        event(await_, 30, 5, _ct=4, _c=1),
        event(await_, 40, 1, _ct=4, _c=9),  # whose beginning is lost
        event(await_, 50, 1, _pt=4, _p=2),  # whose end is lost
    )

    assert spans(read_made_up(host).host["waiting"]) == [(10, 35)]


def test_the_host_does_what_its_events_are_called():
    host = encode_host(
        operation("a", 0, 1),
        event("PjitFunction(f)", 10, 20),
        event("TfrtCpuLoadedExecutable::Execute", 12, 5),
        event("backend_compile", 40, 5),
        event("DevicePut", 50, 5),
        event("$file.py:1 f", 60, 5),
        event("ThreadpoolListener::Record", 70, 5),
        event("something else", 80, 5),
    )
    timeline = read_made_up(host)

    assert {part: spans(intervals) for part, intervals in timeline.host.items()} == {
        "dispatch": [(10, 30), (12, 17)],
        "compile": [(40, 45)],
        "transfer": [(50, 55)],
    }
    assert (timeline.events, timeline.end / PS_PER_US) == (8, 85)


def test_a_collective_waits_for_other_devices_as_its_own_thread_says():
    pending = event("Wait: pending_threads=1/2", 15, 20)
    other = [operation("all-reduce", 20, 25, device_ordinal=1), event("Wait: pending_threads=0/2", 40, 2)]
    host = encode_host(step(0, 100), operation("all-reduce", 10, 40), pending, pool=other)

    devices = analyse_made_up(host).devices

    assert [one.collective.tolist() for one in devices] == [[40 * PS_PER_US], [25 * PS_PER_US]]
    assert [one.waiting_in_collectives.tolist() for one in devices] == [[20 * PS_PER_US], [2 * PS_PER_US]]


def test_a_wait_outside_of_any_operation_is_nobodys():
    host = encode_host(step(0, 100), event("Wait: pending_threads=1/2", 5, 3), operation("all-reduce", 10, 40))
    (device,) = analyse_made_up(host).devices

    assert device.waiting_in_collectives is None


def kernel(name, start, duration, **stats):
    return event(name, start, duration, **{"hlo_op": name, "hlo_module": "jit_f", "program_id": 7, **stats})


def launch(start, identifier, name="cuLaunchKernel"):
    return event(name, start, 2, correlation_id=identifier)


def test_of_several_host_events_of_one_launch_the_last_begun_counts():
    gpu = encode_gpu(kernel("dot", 30, 10, correlation_id=5), kernel("add", 50, 5, correlation_id=6))
    host = encode_host(launch(20, 5), launch(22, 5, "hipExtLaunch"), launch(10, 5), launch(45, 6))
    timeline = read_made_up(gpu, host)

    assert sorted(timeline.launch_delays.tolist()) == [5 * PS_PER_US, 8 * PS_PER_US]
    assert (timeline.unmatched, timeline.before_launch, timeline.layout) == (0, 0, GPU)


def test_kernels_without_a_launch_are_counted():
    gpu = encode_gpu(
        kernel("dot", 30, 10, correlation_id=5), kernel("add", 50, 5), kernel("sub", 60, 5, correlation_id=9)
    )
    timeline = read_made_up(gpu, encode_host(launch(35, 5)))

    assert (timeline.unmatched, timeline.before_launch) == (1, 1)
    assert timeline.launch_delays.tolist() == [-5 * PS_PER_US]


def test_a_copy_of_the_program_is_its_operation_and_another_a_transfer():
    gpu = encode_gpu(
        kernel("MemcpyD2D", 10, 5, hlo_op="copy.1", memcpy_details="kind:DtoD"),
        event("MemcpyH2D", 20, 5, memcpy_details="kind:HtoD"),
        event("__amd_rocclr_copyBuffer.kd", 30, 5),
        event("Memset", 40, 5),
        kernel("dot", 50, 5),
    )
    analysis = analyse_made_up(gpu, encode_host(step(0, 100)))

    assert {one.kind.name: one.about.category for one in analysis.operations} == {
        "copy.1": "compute",
        "MemcpyH2D": "transfer",
        "__amd_rocclr_copyBuffer.kd": "transfer",
        "Memset": "transfer",
        "dot": "compute",
    }


def test_lines_that_others_derived_from_the_streams_do_not_count_twice():
    device = encode_plane(
        "/device:GPU:0",
        {"Stream #1(Kernel)": [kernel("dot", 10, 5)], "XLA Ops": [event("dot", 10, 5)], "Steps": [event("1", 10, 5)]},
    )

    assert list(list_operations(read_made_up(device))) == [("dot", 10, 15)]


def test_operations_of_a_hosts_own_processor_are_left_out_where_there_is_a_device_with_operations():
    host = encode_host(operation("add", 3, 1))
    beside, alone = read_made_up(encode_gpu(kernel("dot", 10, 5)), host), read_made_up(encode_gpu(), host)

    assert (beside.layout, list(list_operations(beside))) == (GPU, [("dot", 10, 15)])
    assert (alone.layout, alone.devices) == (CPU, ("0",))


def on_core(name, start, duration, *, at, lasting):
    """An operation of a TPU: by the host's clock, and by its own."""
    own = {"device_offset_ps": at * PS_PER_US, "device_duration_ps": lasting * PS_PER_US}
    return Event(name, start, duration, own)


def encode_tpu(operations, modules, number=0, timestamp_ns=EPOCH_NS):
    return encode_plane(
        f"/device:TPU:{number}",
        {"XLA Modules": modules, "XLA Ops": operations, "Async XLA Ops": [event("copy-start", 0, 500)]},
        metadata={"%dot.1 = f32[8] dot(%a)": {"flops": 128, "bytes_accessed": 64, "program_id": 7, "source": "a.py:3"}},
        display={"%dot.1 = f32[8] dot(%a)": "dot.1"},
        timestamp_ns=timestamp_ns,
    )


@pytest.mark.parametrize("timestamp_ns", [0, EPOCH_NS])
def test_a_tpus_operations_are_by_its_own_clock(timestamp_ns):
    operations = [
        on_core("%dot.1 = f32[8] dot(%a)", 100, 50, at=10, lasting=30),
        on_core("%copy-done.2 = f32[8] copy-done(%b)", 160, 300, at=45, lasting=5),
        on_core("%dot.1 = f32[8] dot(%a)", 500, 50, at=200, lasting=31),
    ]
    modules = [event("jit_f(7)", 95, 380), event("jit_f(7)", 490, 90)]
    plane = encode_tpu(operations, modules, timestamp_ns=timestamp_ns)
    timeline = read_made_up(plane)

    assert timeline.layout is TPU
    assert list(list_operations(timeline)) == [("dot.1", 10, 40), ("copy-done.2", 45, 50), ("dot.1", 200, 231)]
    assert [(run.program, run.module, run.start / PS_PER_US, run.end / PS_PER_US) for run in timeline.runs] == [
        ("7", "jit_f", 10, 50),
        ("7", "jit_f", 200, 231),
    ]
    assert timeline.skew == (500 - 200 - (100 - 10)) * PS_PER_US

    analysis = analyse_made_up(plane)
    assert [(one.kind.name, one.about.category, one.about.source) for one in analysis.operations] == [
        ("dot.1", "compute", "a.py:3"),
        ("copy-done.2", "transfer", ""),
    ]
    assert (analysis.operations[0].about.cost.flops, analysis.operations[0].about.cost.bytes) == (128, 64)
    assert analysis.steps.source == MODULE_RUNS
    assert analysis.wall.tolist() == [40 * PS_PER_US, 31 * PS_PER_US]


def test_each_device_of_a_tpu_has_the_steps_of_its_own_clock():
    planes = [
        encode_tpu(
            [on_core("%dot.1 = f32[8] dot(%a)", 100 + at, 50, at=at, lasting=30 + number)],
            [event("jit_f(7)", 90 + at, 80)],
            number=number,
        )
        for number, at in enumerate((10, 12))
    ]
    analysis = analyse_made_up(*planes)

    assert [step.device for step in analysis.steps.steps] == [0, 1]
    assert [device.busy.tolist() for device in analysis.devices] == [[30 * PS_PER_US, 0], [0, 31 * PS_PER_US]]


def microseconds(span):
    return span.start / PS_PER_US, span.end / PS_PER_US


def find(*events, **options):
    return find_steps(read_made_up(encode_host(*events), **options))


def test_steps_are_those_annotated():
    steps = find(step(0, 10, 4), operation("a", 1, 5), step(20, 10, 5), operation("a", 21, 5))

    assert (steps.source, steps.until_next) == (ANNOTATIONS, False)
    assert [(one.number, *microseconds(one)) for one in steps.steps] == [(4, 0, 10), (5, 20, 30)]


def test_an_annotation_inside_another_is_no_step_of_its_own():
    steps = find(
        step(0, 30, 1), step(5, 10, 7, name="inner"), operation("a", 6, 20), step(30, 10, 2), operation("a", 31, 5)
    )

    assert [one.number for one in steps.steps] == [1, 2]


def test_steps_are_those_of_the_name_that_lasts_longest_and_others_are_counted():
    events = (step(0, 30), operation("a", 1, 29), step(40, 20, name="eval"), operation("a", 41, 19, run_id=2))
    steps = find(*events, step(60, 5, name="eval"), operation("a", 61, 4, run_id=3))

    assert [(one.name, *microseconds(one)) for one in steps.steps] == [("train", 0, 30)]
    assert steps.others == {"eval": 2}


def test_steps_of_a_name_may_lie_inside_others():
    timeline = read_made_up(encode_host(step(0, 30), step(5, 10, name="inner"), operation("a", 6, 8)))
    steps = find_steps(timeline, "inner")

    assert [microseconds(one) for one in steps.steps] == [(5, 15)]
    assert steps.others == {"train": 1}


def test_steps_of_an_unknown_name_are_found_as_without_annotations():
    steps = find_steps(read_made_up(encode_host(step(0, 30), operation("a", 6, 8))), "eval")

    assert (steps.source, steps.others) == (MODULE_RUNS, {"train": 1})


def test_of_threads_that_take_steps_at_the_same_time_one_counts():
    lines = {
        "first": [step(0, 10, 1), step(20, 10, 2), operation("a", 1, 8), operation("a", 21, 8, run_id=2)],
        "second": [step(5, 12, 1), step(25, 12, 2), operation("a", 11, 5, run_id=3), operation("a", 31, 5, run_id=4)],
    }
    steps = find_steps(read_made_up(encode_plane("/host:CPU", lines)))

    assert [microseconds(one) for one in steps.steps] == [(5, 17), (25, 37)]
    assert steps.others == {"train": 2}


def test_steps_that_do_not_wait_end_where_a_step_of_another_name_begins():
    events = [step(at, 2, at, name=name) for at, name in ((0, "train"), (20, "train"), (40, "eval"), (60, "train"))]
    operations = [operation("a", at + 1, 15, run_id=at) for at in (0, 20, 40, 60)]
    steps = find(*events, *operations)

    assert steps.until_next
    assert [microseconds(one) for one in steps.steps] == [(0, 20), (20, 40)]


def test_a_step_whose_code_does_not_wait_lasts_until_the_next():
    steps = find(*(one for at in (0, 20, 40) for one in (step(at, 2, at), operation("a", at + 1, 15, run_id=at))))

    assert (steps.source, steps.until_next) == (ANNOTATIONS, True)
    assert [microseconds(one) for one in steps.steps] == [(0, 20), (20, 40)]  # The last has no end.


def test_a_little_work_outside_the_annotations_leaves_them():
    steps = find(
        step(0, 100, 1), operation("a", 1, 99), operation("b", 100, 1), step(110, 100, 2), operation("a", 111, 99)
    )

    assert not steps.until_next


def test_without_annotations_steps_are_the_runs_of_the_longest_program():
    other = operation("b", 20, 3, run_id=2, hlo_module="jit_g", program_id=8)
    steps = find(operation("a", 0, 10, run_id=1), other, operation("a", 30, 10, run_id=3))

    assert steps.source == MODULE_RUNS
    assert [(one.name, *microseconds(one)) for one in steps.steps] == [("jit_f", 0, 10), ("jit_f", 30, 40)]


def test_a_gpu_without_annotations_has_one_step_the_whole():
    steps = find_steps(read_made_up(encode_gpu(kernel("dot", 10, 5), kernel("dot", 90, 5))))

    assert steps.source == WHOLE
    assert [microseconds(one) for one in steps.steps] == [(10, 95)]


def test_without_operations_there_is_no_step_but_those_annotated():
    assert find(event("x", 0, 1)).steps == ()
    assert len(find(step(0, 10)).steps) == 1


def test_operations_count_where_they_run_in_a_step_and_share_what_lies_inside():
    events = [operation("across", 0, 15), step(10, 20), operation("inside", 16, 10), operation("after", 30, 5)]
    analysis = analyse_made_up(encode_host(*events))

    assert [(one.kind.name, one.count, one.share_ps / PS_PER_US) for one in analysis.operations] == [
        ("inside", 1, 10),
        ("across", 1, 5),
    ]
    assert [one.total_ps / PS_PER_US for one in analysis.operations] == [10, 15]
    assert analysis.devices[0].busy.tolist() == [15 * PS_PER_US]


def test_an_operation_that_begins_between_two_steps_counts_in_the_step_into_which_it_runs():
    events = [one for at in (0, 20, 40) for one in (step(at, 12, at), operation("a", at - 6, 16, run_id=at + 9))]
    analysis = analyse_made_up(encode_host(*events))

    assert not analysis.steps.until_next
    assert analysis.devices[0].busy.tolist() == [10 * PS_PER_US] * 3
    assert sum(one.share_ps for one in analysis.operations) == 30 * PS_PER_US


def test_steps_that_wait_for_the_step_before_last_until_the_next():
    events = [one for at in (0, 20, 40, 60) for one in (step(at, 12, at), operation("a", at + 8, 18, run_id=at + 1))]
    steps = find(*events)

    assert (steps.source, steps.until_next) == (ANNOTATIONS, True)


def test_steps_whose_work_runs_in_those_of_another_name_are_not_divided_by_them():
    launches = [step(at, 2, at) for at in (0, 5, 10, 60, 65, 70)]
    evaluation = [step(at, 40, name="eval") for at in (15, 75)]
    work = [operation("a", 1.5 + at + 14 * place, 14, run_id=at + place) for at in (0, 60) for place in range(3)]
    evaluated = [operation("b", at + 45, 8, run_id=at + 7, hlo_module="jit_g", program_id=8) for at in (0, 60)]
    for name in (None, "train", "eval"):
        timeline = read_made_up(encode_host(*launches, *evaluation, *work, *evaluated))
        assert find_steps(timeline, name).source == MODULE_RUNS


def test_one_step_that_holds_most_of_another_names_work_decides():
    launches = [step(at, 1, at) for at in (0, 2, 4)]
    evaluation = [step(6, 100, name="eval"), *(step(at, 9, name="eval") for at in (110, 120, 130, 140))]
    work = [operation("a", 1.5 + 30 * place, 30, run_id=place) for place in range(3)]
    evaluated = [operation("b", at + 2, 5, run_id=at, program_id=8, hlo_module="jit_g") for at in (95, 110, 120, 130)]

    assert find(*launches, *evaluation, *work, *evaluated).source == MODULE_RUNS


def test_a_queue_that_is_waited_for_behind_the_last_step_is_divided_by_its_runs():
    calls = [step(2 * number, 1, number) for number in range(10)]
    steps = find(*calls, *(operation("a", 15 + 30 * number, 30, run_id=number) for number in range(10)))

    assert (steps.source, len(steps.steps)) == (MODULE_RUNS, 10)


def test_runs_of_several_devices_are_steps_of_their_own():
    runs = [
        operation("a", 20 * number + ordinal, 15, run_id=number, device_ordinal=ordinal, _pt=1 + ordinal)
        for number in range(3)
        for ordinal in range(2)
    ]
    analysis = analyse_made_up(encode_host(*runs))

    assert [step.device for step in analysis.steps.steps] == [0, 0, 0, 1, 1, 1]
    assert [device.busy.sum() / PS_PER_US for device in analysis.devices] == [45, 45]


def test_a_run_that_the_capture_cuts_off_is_no_step():
    first = [operation("a", 0, 10, run_id=1), completed(10, 0, run_id=1)]
    steps = find(*first, operation("a", 20, 10, run_id=2), completed(30, 0, run_id=2), operation("a", 40, 1, run_id=3))

    assert [microseconds(one) for one in steps.steps] == [(0, 10), (20, 30)]


def test_work_behind_and_between_annotated_steps_that_wait_leaves_them_as_they_are():
    waited = [step(0, 10, 0), operation("a", 1, 8), step(40, 10, 1), operation("a", 41, 8)]
    steps = find(*waited, operation("b", 20, 6, run_id=3), operation("b", 60, 500, run_id=4))

    assert (steps.source, steps.until_next) == (ANNOTATIONS, False)
    assert [microseconds(one) for one in steps.steps] == [(0, 10), (40, 50)]
