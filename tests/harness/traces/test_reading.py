"""`jaxmeter.read_trace`: captures of any profiler session and of a run, as tables."""

import shutil
from pathlib import Path

import msgspec
import pytest

from jaxmeter import read_trace
from jaxmeter.harness.record import RunFolder
from jaxmeter.harness.record.trace_summary import Problem, TracedOperation
from jaxmeter.harness.traces.captures import NoCaptureError, find_captures
from jaxmeter.harness.traces.xplane import CaptureError
from tests import samples

CAPTURES = Path(__file__).parent / "captures"
MATMUL, EAGER, SHARDED = (
    CAPTURES / f"cpu_{name}.xplane.pb" for name in ("matmul_jit", "fusion_eager", "shard_map_two_devices")
)


def session(folder: Path, name: str, *hosts: str, capture: Path = MATMUL) -> Path:
    """A session as jax.profiler leaves it."""
    place = folder / "plugins" / "profile" / name
    place.mkdir(parents=True)
    for host in hosts or ("host",):
        shutil.copy(capture, place / f"{host}.xplane.pb")
    return place


def run_with_captures(folder: Path) -> Path:
    """A run of two cases, each with a capture of its jitted variant."""
    run = samples.sweep_run()
    samples.write_run(folder, run)
    for planned in run.manifest.cases[:2]:
        session(RunFolder(folder).case(planned.id).trace(planned.variants[1].name), "capture")
    return folder


def test_steps_have_their_traced_time_and_the_busy_time_of_each_device():
    steps = read_trace(SHARDED).steps

    assert list(steps.columns) == ["step", "name", "traced_s", "busy_s 0", "busy_s 1"]
    assert list(steps["step"]) == [0, 1, 2, 3, 4]
    assert (steps["busy_s 0"] < steps["traced_s"]).all()
    assert steps["busy_s 0"].iloc[0] == pytest.approx(3.301974e-3)


def test_operations_are_all_there_with_the_columns_of_the_record():
    operations = read_trace(SHARDED).operations

    assert list(operations.columns) == [field.name for field in msgspec.structs.fields(TracedOperation)]
    assert len(operations) == 24
    assert operations["share"].sum() == pytest.approx(1)
    assert operations.iloc[0]["category"] == "collective"
    assert set(operations["module"]) == {"jit_by_shard_map"}
    assert read_trace(MATMUL).operations["flops"].dtype == float  # an unknown cost is a missing number


def test_the_ledger_adds_up_and_the_text_says_where_the_time_goes():
    trace = read_trace(MATMUL)

    assert sum(trace.ledger.values()) == pytest.approx(1)
    assert trace.health == ()
    assert [one.name for one in trace.devices] == ["0"]
    assert repr(trace).replace("\u202f", " ").splitlines() == [
        "cpu_matmul_jit.xplane.pb: cpu, 5 steps (step annotations named matmul:jit), 1 operation",
        "device 0 was busy for 1.35 ms, 90 % of the traced step",
        "The traced step is bound by the device's operations: they take 90 % of it.",
    ]
    assert "<br>" in trace._repr_html_()


def test_a_damaged_capture_is_an_error(tmp_path):
    cut = tmp_path / "cut.xplane.pb"
    cut.write_bytes(MATMUL.read_bytes()[:5000])

    with pytest.raises(CaptureError, match="cut short or damaged"):
        read_trace(cut)


def test_a_capture_without_operations_has_a_finding_and_no_bound(tmp_path):
    import jax

    with jax.profiler.trace(tmp_path):
        pass

    trace = read_trace(tmp_path)

    assert [finding.problem for finding in trace.health] == [Problem.NO_OPERATIONS]
    assert trace.bound is None
    assert len(trace.operations) == len(trace.steps) == 0
    assert "unhealthy: no operation of any device ran while it was taken" in repr(trace)


# Which capture a path means


@pytest.mark.parametrize("below", ["", "plugins", "plugins/profile", "plugins/profile/2026_11_27_10_00_00"])
def test_a_log_folder_and_each_folder_below_it_mean_the_capture(tmp_path, below):
    session(tmp_path, "2026_11_27_10_00_00")

    found = find_captures(tmp_path / below)

    assert [(one.session, one.host) for one in found.captures] == [("2026_11_27_10_00_00", "host")]


def test_the_newest_session_is_taken_and_another_by_its_name(tmp_path):
    for second in (59, 10, 30):
        session(tmp_path, f"2026_11_27_10_00_{second}")

    newest, named = find_captures(tmp_path), find_captures(tmp_path, session="2026_11_27_10_00_10")

    assert newest.captures[0].session == "2026_11_27_10_00_59"
    assert newest.other_sessions == ("2026_11_27_10_00_30", "2026_11_27_10_00_10")
    assert named.captures[0].session == "2026_11_27_10_00_10"
    with pytest.raises(NoCaptureError, match="no session '2026_11_27_10_00_11'; nearest: "):
        find_captures(tmp_path, session="2026_11_27_10_00_11")


def test_sessions_with_names_of_their_own_go_by_the_time_of_their_files(tmp_path):
    import os

    for name, seconds in (("a", 200), ("b", 100)):
        os.utime(session(tmp_path, name) / "host.xplane.pb", (seconds, seconds))

    assert find_captures(tmp_path).captures[0].session == "a"


def test_of_several_hosts_one_has_to_be_chosen(tmp_path):
    session(tmp_path, "s", "alpha", "beta")

    with pytest.raises(NoCaptureError, match=r"choose one by host=: alpha, beta"):
        read_trace(tmp_path)
    assert read_trace(tmp_path, host="beta").path.name == "beta.xplane.pb"
    with pytest.raises(NoCaptureError, match=r"no host 'gamma'; there are alpha, beta"):
        read_trace(tmp_path, host="gamma")


def test_a_run_has_a_capture_for_each_case_and_variant(tmp_path):
    run = run_with_captures(tmp_path / "run")
    first, second = find_captures(run).captures

    assert first.case != second.case
    assert (first.variant, first.platform) == (second.variant, "cpu")
    assert find_captures(run, case=first.case).captures == (first,)
    assert read_trace(run, case=first.case, variant=first.variant).path == first.path
    with pytest.raises(NoCaptureError, match="has 2 captures; choose by case and variant"):
        read_trace(run)


@pytest.mark.parametrize(
    ("chosen", "message"),
    [
        ({"case": "selu"}, r"no case matches --case 'selu'; there are cumulative_sum$"),
        ({"case": "cumulative_su"}, r"; there are cumulative_sum, cumulative_sum\[n=16\]"),
        ({"variant": "fast:jit"}, r"no variant 'fast:jit'; "),
        ({"session": "a"}, r"in a run of jaxmeter use --case and --variant"),
    ],
)
def test_what_a_run_lacks_is_refused_with_what_it_has(tmp_path, chosen, message):
    with pytest.raises(NoCaptureError, match=message):
        find_captures(run_with_captures(tmp_path / "run"), **chosen)


def test_no_case_of_a_record_leads_out_of_its_folder(tmp_path):
    run = samples.sweep_run()
    (planned, *_), others = run.manifest.cases, run.manifest.cases[1:]
    leading = msgspec.structs.replace(planned, id="../../elsewhere")
    manifest = msgspec.structs.replace(run.manifest, cases=(leading, *others))
    samples.write_run(tmp_path / "run", msgspec.structs.replace(run, manifest=manifest))
    session(tmp_path / "elsewhere" / "trace" / "selu-jit", "capture")

    with pytest.raises(NoCaptureError, match="no capture"):
        find_captures(tmp_path / "run")


@pytest.mark.parametrize(
    ("name", "words"),
    [
        *(
            (name, r"give a \*\.xplane\.pb, the folder that jax\.profiler")
            for name in ("nothing", "empty", "notes.txt")
        ),
        ("run", "measure with the probe trace"),
    ],
)
def test_a_path_without_a_capture_says_what_to_give(tmp_path, name, words):
    (tmp_path / "empty").mkdir()
    (tmp_path / "notes.txt").write_text("hello")
    samples.write_run(tmp_path / "run", samples.sweep_run())

    with pytest.raises(NoCaptureError, match=rf"{name}.*{words}"):
        find_captures(tmp_path / name)


def test_a_case_can_be_chosen_in_a_run_only(tmp_path):
    session(tmp_path, "s")

    with pytest.raises(NoCaptureError, match="no run of jaxmeter, so --case and --variant choose nothing"):
        find_captures(tmp_path, case="selu*")
