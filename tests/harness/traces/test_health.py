"""What is wrong with a capture, one fault at a time: each gives one finding of its kind."""

import pytest

from jaxmeter.harness.record.trace_summary import Problem
from jaxmeter.harness.traces.health import JSON_EVENTS, find_problems
from jaxmeter.harness.traces.summary import summarise, summarise_capture
from jaxmeter.harness.traces.xplane import read_capture
from tests.harness.traces.captured import NAMES, find_capture
from tests.harness.traces.made_up import (
    PS_PER_US,
    analyse_made_up,
    encode_gpu,
    encode_host,
    encode_plane,
    encode_space,
    event,
    operation,
    step,
)

HEALTHY = (step(0, 10, 0), operation("a", 1, 5), step(20, 10, 1), operation("a", 21, 5))


def problems(*planes, has_device=None, steps=None, **options):
    findings = list(find_problems(analyse_made_up(*planes, **options), has_device=has_device, steps=steps))
    assert all(finding.text and len(finding.text) < 400 for finding in findings)
    return [(finding.problem, finding.is_fatal) for finding in findings]


def kernel(name, start, duration, **stats):
    return event(name, start, duration, **{"hlo_op": name, "hlo_module": "jit_f", "program_id": 7, **stats})


def on_core(start, duration, at):
    own = {"device_offset_ps": at * PS_PER_US, "device_duration_ps": duration * PS_PER_US}
    return event("dot", start, duration, **own)


@pytest.mark.parametrize(
    ("planes", "options"),
    [
        ((encode_host(*HEALTHY),), {"steps": 2}),
        ((encode_host(*HEALTHY),), {}),
        ((encode_host(*HEALTHY),), {"errors": ["Failed to load libcupti"], "steps": 2}),
        ((encode_host(operation("a", 1, 5)),), {}),
        ((encode_gpu(kernel("dot", 2, 5)), encode_host(step(0, 10))), {"has_device": True, "steps": 1}),
    ],
    ids=["all steps", "any steps", "errors of the profiler", "no annotations", "a device"],
)
def test_a_healthy_capture_has_no_problem(planes, options):
    assert problems(*planes, **options) == []


@pytest.mark.parametrize("name", NAMES)
def test_a_capture_that_lacks_its_end_is_unfinished(name):
    with read_capture(find_capture(name).read_bytes()) as space:
        space.planes = tuple(plane for plane in space.planes if plane.name != "Task Environment")
        found = summarise(space)

    assert [(finding.problem, finding.is_fatal) for finding in found.findings] == [(Problem.UNFINISHED, False)]
    assert found.is_healthy


def test_a_cut_file_is_damaged_and_one_that_is_not_there_is_an_error_of_the_system(tmp_path):
    path = tmp_path / "a.xplane.pb"
    with pytest.raises(FileNotFoundError):
        summarise_capture(path)
    path.write_bytes(find_capture("cpu_matmul_jit").read_bytes()[:5000])
    summary = summarise_capture(path)

    assert [finding.problem for finding in summary.findings] == [Problem.DAMAGED]
    assert not summary.is_healthy
    assert "capture again" in summary.findings[0].remedy


DROPPED = {"warnings": ["Detected GPU events dropped on this host", "another thing"]}


@pytest.mark.parametrize(
    ("events", "options", "problem"),
    [
        ([step(0, 10)], {}, Problem.NO_OPERATIONS),
        ([step(0, 10)], {"has_device": False}, Problem.NO_OPERATIONS),
        ([step(100, 10), operation("a", 0, 5)], {}, Problem.NO_OPERATIONS),
        ([step(0, 10)], {"has_device": True}, Problem.NO_DEVICE),
        (HEALTHY, {"has_device": True, "steps": 2}, Problem.NO_DEVICE),
        (HEALTHY, {**DROPPED, "steps": 2}, Problem.DROPPED_EVENTS),
        (HEALTHY, {"steps": 1}, Problem.MISSING_STEPS),
        (HEALTHY, {"steps": 3}, Problem.MISSING_STEPS),
        ([operation("a", 1, 5)], {"steps": 5}, Problem.MISSING_STEPS),
        ([*HEALTHY, operation("b", 26, 1)], {"steps": 2}, Problem.UNEQUAL_STEPS),
    ],
    ids=[
        *("nothing ran", "nothing ran, on a host", "outside of every step", "no device", "a host instead of a device"),
        *("dropped events", "more steps", "fewer steps", "no annotations", "unequal operations"),
    ],
)
def test_one_fault_is_one_finding_of_its_kind(events, options, problem):
    assert problems(encode_host(*events), **options) == [(problem, problem is not Problem.UNEQUAL_STEPS)]


def test_what_the_profiler_reports_is_said_where_there_is_nothing_else():
    host = encode_host(step(0, 10))
    (finding,) = find_problems(analyse_made_up(host, errors=["no profiler for this device"]))

    assert (finding.problem, finding.is_fatal) == (Problem.NO_OPERATIONS, True)
    assert "no profiler for this device" in finding.text


@pytest.mark.parametrize(
    ("error", "words"),
    [
        ("Insufficient privilege to run libcupti (you need root permission).", "not permitted"),
        ("CUPTI_ERROR_INSUFFICIENT_PRIVILEGES", "not permitted"),
        ("Failed to load libcupti (is it installed and accessible?)", "could not be loaded"),
    ],
)
def test_a_gpu_that_may_not_be_traced_says_what_to_change(error, words):
    (finding,) = find_problems(analyse_made_up(encode_host(step(0, 10)), errors=[error]), has_device=True)

    assert (finding.problem, finding.is_fatal) == (Problem.NOT_PERMITTED, True)
    assert words in finding.text
    assert finding.remedy


def test_a_gap_in_the_steps_numbers_is_a_missing_step_but_counting_in_tens_has_none():
    def find(*numbers):
        events = [(step(20 * at, 10, n), operation("a", 20 * at, 5)) for at, n in enumerate(numbers)]
        return list(find_problems(analyse_made_up(encode_host(*(one for pair in events for one in pair)))))

    (finding,) = find(0, 1, 3)
    assert finding.problem == Problem.MISSING_STEPS
    assert "3 of 4" in finding.text
    assert find(0, 200, 400) == []


def test_kernels_before_their_launch_mean_that_clocks_disagree():
    gpu = encode_gpu(kernel("dot", 2, 5, correlation_id=1))
    host = encode_host(step(0, 10), event("cuLaunchKernel", 3, 1, correlation_id=1))

    assert problems(gpu, host) == [(Problem.CLOCKS_DISAGREE, False)]
    with read_capture(encode_space(gpu, host)) as space:
        assert summarise(space).launch_delay_s is None


@pytest.mark.parametrize(("late", "found"), [(90, []), (110, [(Problem.CLOCKS_DISAGREE, False)])])
def test_clocks_that_drift_apart_by_more_than_a_tenth_of_a_millisecond_are_said(late, found):
    lines = {
        "XLA Modules": [event("jit_f(7)", 0, 40), event("jit_f(7)", 400, 400)],
        "XLA Ops": [on_core(5, 20, at=5), on_core(500 + late, 20, at=500)],
    }

    assert problems(encode_plane("/device:TPU:0", lines), has_device=True) == found


def test_kernels_of_command_buffers_are_said():
    named, hidden = kernel("dot", 2, 5), event("graph kernel", 8, 1)
    copy = event("MemcpyH2D", 9, 1, memcpy_details="x")

    assert problems(encode_gpu(named, hidden), encode_host(step(0, 10))) == [(Problem.COMMAND_BUFFERS, False)]
    assert problems(encode_gpu(named, copy), encode_host(step(0, 10))) == []


def test_a_capture_whose_other_file_is_cut_says_so(monkeypatch):
    monkeypatch.setattr("jaxmeter.harness.traces.health.JSON_EVENTS", 4)

    assert JSON_EVENTS == 1_000_000
    assert problems(encode_host(*HEALTHY), steps=2) == [(Problem.CUT_JSON, False)]


def test_a_capture_of_another_program_gives_no_numbers():
    path = find_capture("cpu_matmul_jit")
    text = path.with_name("cpu_matmul_jit.hlo.txt").read_text()

    own = summarise_capture(path, [text])
    foreign = summarise_capture(path, [text.replace("jit_matmul", "jit_step")])

    assert own.findings == ()
    assert [finding.problem for finding in foreign.findings] == [Problem.FOREIGN_PROGRAM]
    assert not foreign.is_healthy


@pytest.mark.parametrize(
    ("line", "start", "calls", "is_found"),
    [("python", 0, 4, False), ("python", 0, 5, True), ("python", 40, 50, False), ("loader", 1, 50, False)],
)
def test_a_python_tracer_that_took_a_tenth_of_the_steps_is_said(line, start, calls, is_found):
    traced = [event("$train.py:3 step", start + 0.1 * number, 0.1) for number in range(calls)]
    lines = {"python": [*HEALTHY]} | {line: [*(HEALTHY if line == "python" else ()), *traced]}

    found = problems(encode_plane("/host:CPU", lines))

    assert found == ([(Problem.PYTHON_TRACER, False)] if is_found else [])


@pytest.mark.parametrize(("longest", "is_found"), [(200, True), (45, False)])
def test_one_step_with_most_of_the_time_is_said(longest, is_found):
    spans = [(20 * number, 10) for number in range(9)] + [(200, longest)]
    events = [(step(at, long, n), operation("a", at + 1, 8, run_id=n)) for n, (at, long) in enumerate(spans)]

    found = problems(encode_host(*(one for pair in events for one in pair)))

    assert ((Problem.LONG_STEP, False) in found) is is_found


def test_steps_of_a_device_with_a_clock_of_its_own_are_not_missing():
    tpu = encode_plane("/device:TPU:0", {"XLA Modules": [event("jit_f(1)", 0, 10)], "XLA Ops": [on_core(0, 10, 0)]})

    assert Problem.MISSING_STEPS not in [problem for problem, _ in problems(tpu, steps=3, has_device=True)]


def test_runs_that_are_not_finished_when_the_capture_ends_are_said():
    done = event("ThunkExecutor::Execute (wait for completion)", 10, 0, run_id=1, device_ordinal=0)
    cut = operation("a", 20, 5, run_id=2)

    assert (Problem.UNFINISHED, False) in problems(encode_host(operation("a", 0, 10), done, cut))
    assert problems(encode_host(operation("a", 0, 10), done)) == []


def test_a_step_that_the_code_skipped_does_not_withhold_the_numbers_of_the_others():
    skipped = (step(0, 10, 0), operation("a", 1, 5), step(20, 10, 2), operation("a", 21, 5, run_id=2), step(40, 10, 3))

    assert problems(encode_host(*skipped, operation("a", 41, 5, run_id=3))) == [(Problem.MISSING_STEPS, False)]
