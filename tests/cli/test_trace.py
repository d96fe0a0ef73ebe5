"""`jaxmeter trace`: any profiler capture, in words and as JSON."""

import io
import json
import shutil
from pathlib import Path

import msgspec
import pytest
from rich.console import Console
from typer.testing import CliRunner

from jaxmeter.cli import trace
from jaxmeter.cli.app import app
from jaxmeter.harness.record import RunFolder, write_json
from jaxmeter.harness.record.runs import read_manifest
from tests import samples
from tests.harness.traces.made_up import encode_host, encode_space, operation, step

CHECKOUT = Path(__file__).parents[2]
CAPTURES = CHECKOUT / "tests" / "harness" / "traces" / "captures"
MATMUL, EAGER, SHARDED = (
    CAPTURES / f"cpu_{name}.xplane.pb" for name in ("matmul_jit", "fusion_eager", "shard_map_two_devices")
)
H200 = CHECKOUT / "tests" / "harness" / "traces" / "captures" / "nvidia_h200_selu.xplane.pb"


@pytest.fixture
def call():
    """Calls the verb: exit code, lines of stdout, stderr."""

    def run(*words):
        ended = CliRunner().invoke(app, ["trace", *map(str, words)], env={"COLUMNS": "200"})
        if ended.exception is not None and not isinstance(ended.exception, SystemExit):
            raise ended.exception
        return ended.exit_code, ended.stdout.replace("\u202f", " ").splitlines(), ended.stderr

    return run


def read_json(call, *words):
    return json.loads("\n".join(call(*words, "--json")[1]))


def session(folder: Path, name: str, **hosts: Path) -> Path:
    place = folder / "plugins" / "profile" / name
    place.mkdir(parents=True)
    for host, capture in hosts.items():
        shutil.copy(capture, place / f"{host}.xplane.pb")
    return place


def find_row(lines: list[str], begin: str) -> list[str]:
    (row,) = [line.split() for line in lines if line.strip().startswith(begin)]
    return row


def list_shares(lines: list[str], title: str) -> list[float]:
    begin = lines.index(title) + 2
    rows = []
    for line in lines[begin:]:
        words = line.split()
        if "%" not in words or words[0] == "compute":
            break
        rows.append(float(words[words.index("%") - 1]))
    return rows


def test_a_capture_is_shown_from_its_device_to_what_it_is_bound_by(call):
    code, lines, complained = call(MATMUL)

    assert (code, complained) == (0, "")
    assert lines[1:3] == ["cpu · 1 device · 123 events", "5 traced steps: step annotations named matmul:jit"]
    assert find_row(lines, "compute  ")[:3] == ["compute", "90", "%"]
    assert find_row(lines, "wall time, traced") == ["wall", "time,", "traced", "1.49", "ms", "1.01", "ms", "1.58", "ms"]
    assert find_row(lines, "device 0 busy")[3:5] == ["1.35", "ms"]
    assert "matmul.py:61" in find_row(lines, "ynn_fusion")
    assert find_row(lines, "ynn_fusion")[-4:] == ["213", "G", "2.50", "G"]
    assert lines[-1] == "The traced step is bound by the device's operations: they take 90 % of it."


def test_the_rest_is_a_line_so_that_shares_add_up(call):
    code, lines, _ = call(SHARDED, "--top", 3)

    assert code == 0
    for title in ("Operations, by share of the busy time", "Lines of code, by share of the busy time"):
        shares = list_shares(lines, title)
        assert (len(shares), sum(shares)) == (4, pytest.approx(100, abs=1.5))


def test_what_a_platform_cannot_show_is_named_and_its_launches_have_a_delay(call):
    code, lines, _ = call(H200)

    assert code == 0
    assert lines[1] == "gpu NVIDIA H200 · 1 device · 166 events"
    assert "  gpu captures cannot show: between operations, waiting" in lines
    assert find_row(lines, "kernel launch to start")[4:] == ["12.2", "µs"]


def test_collectives_and_devices_have_their_times_which_are_always_those_of_the_traced_step(call):
    lines = call(SHARDED)[1]

    headings = [line.split("  ")[0] for line in lines if line.startswith(("Wall time", "Times"))]
    assert headings == ["Wall time of the traced step, the busiest of each step", "Times of the traced step"]
    assert find_row(lines, "device 0 in collectives")[4:6] == ["993", "µs"]
    assert find_row(lines, "device 1 busy")[3:5] == ["2.62", "ms"]


def test_the_newest_session_is_shown_and_the_others_are_counted(call, tmp_path):
    session(tmp_path, "2026_11_27_10_00_00", host=MATMUL)
    session(tmp_path, "2026_11_27_11_00_00", host=EAGER)

    newest, named = call(tmp_path)[1], call(tmp_path, "--session", "2026_11_27_10_00_00")[1]

    assert "1 other session in this folder (--session NAME): 2026_11_27_10_00_00" in newest
    assert any("123 events" in line for line in named)


def test_of_several_hosts_the_slowest_is_shown_and_another_by_its_name(call, tmp_path):
    session(tmp_path, "s", alpha=MATMUL, beta=SHARDED, gamma=EAGER)

    code, lines, _ = call(tmp_path)
    named = call(tmp_path, "--host", "alpha")[1]

    assert code == 0
    assert find_row(lines, "beta")[-1] == "slowest"
    assert find_row(lines, "alpha")[1:] == ["90", "%", "1.49", "ms"]
    assert "Host beta follows; --host NAME shows another." in lines
    assert any("2 devices" in line for line in lines)
    assert any("123 events" in line for line in named)


def test_a_host_that_is_unhealthy_is_named_and_the_code_is_3(call, tmp_path):
    place = session(tmp_path, "s", alpha=MATMUL)
    (place / "beta.xplane.pb").write_bytes(b"")

    code, lines, _ = call(tmp_path)

    assert code == 3
    assert " ".join(find_row(lines, "beta  ")) == "beta — — unhealthy: the file is empty"
    assert call(tmp_path, "--host", "alpha")[0] == 0
    assert "Host alpha follows; --host NAME shows another." in lines


@pytest.mark.parametrize("content", [b"", MATMUL.read_bytes()[:6000]])
def test_an_unhealthy_capture_has_findings_and_no_number_and_no_sentence(call, tmp_path, content):
    path = tmp_path / "host.xplane.pb"
    path.write_bytes(content)

    code, lines, _ = call(path)
    as_json = read_json(call, path)["captures"][0]

    assert code == 3
    assert "This capture cannot be relied on, so it gives no numbers." in lines
    assert lines[-1].strip() == "capture again, and copy the file whole"
    assert not [line for line in lines if "bound by" in line or "traced step" in line]
    assert (as_json["is_healthy"], as_json["bound"]) == (False, None)
    assert as_json["summary"].keys() == {"platform", "steps_from", "findings"}
    code, lines, _ = call(MATMUL, path)
    assert code == 3
    assert "A capture cannot be relied on, so nothing is compared." in lines
    assert "Findings of B (1)" in lines


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["nowhere"], "nowhere: no such file or folder; give a *.xplane.pb"),
        ([CAPTURES / "cpu_matmul_jit.hlo.txt"], "no *.xplane.pb; give a *.xplane.pb"),
        ([CHECKOUT / "docs"], "holds no *.xplane.pb; give a *.xplane.pb"),
        ([MATMUL, "nowhere"], "nowhere: no such file or folder"),
        ([MATMUL, "--case", "selu"], "no run of jaxmeter, so --case and --variant choose nothing"),
        ([MATMUL, "--host", "beta"], "no host 'beta'; "),
        ([CAPTURES, "--session", "s"], "no session 's'; nearest: captures"),
    ],
)
def test_a_path_without_what_was_asked_for_is_unusable_and_says_what_to_do(call, words, complaint):
    code, lines, complained = call(*words)

    assert (code, lines) == (2, [])
    assert complaint in complained


@pytest.fixture
def of_two_names(tmp_path):
    """A capture whose steps are named `train` and `eval`."""
    steps = [step(0, 40, 0), step(50, 30, 1, name="eval"), step(100, 40, 2)]
    events = [operation("a", 1, 30), operation("b", 51, 20), operation("a", 101, 30)]
    path = tmp_path / "names.xplane.pb"
    path.write_bytes(encode_space(encode_host(*steps, *events)))
    return path


def test_of_steps_of_several_names_those_that_last_longest_are_shown_and_others_by_name(call, of_two_names):
    longest, chosen = call(of_two_names)[1], call(of_two_names, "--step", "eval")[1]

    assert "2 traced steps: step annotations named train" in longest
    assert "other annotated steps: eval (1); --step NAME chooses" in longest
    assert "1 traced step: step annotations named eval" in chosen
    code, _, complained = call(of_two_names, "--step", "")
    assert code == 2
    assert f"{of_two_names}: no step is named ''; choose one of: " in complained
    assert {"train", "eval"} <= set(complained.replace(",", "").split())


def test_json_has_every_capture_with_its_bound(call, tmp_path):
    session(tmp_path, "s", alpha=MATMUL, beta=SHARDED)

    told, (one,) = read_json(call, tmp_path), read_json(call, tmp_path, "--host", "beta", "--top", "2")["captures"]

    assert [capture["host"] for capture in told["captures"]] == ["alpha", "beta"]
    assert told["captures"][0]["bound"]["kind"] == "the device's operations"
    assert told["captures"][0]["summary"]["operations"][0]["flops"] == 2 * 512**3
    assert (len(one["summary"]["operations"]), one["summary"]["others"]) == (2, 22)


# Runs


def write_run(folder: Path, *captures: Path) -> Path:
    run = samples.sweep_run()
    samples.write_run(folder, run)
    for planned, capture in zip(run.manifest.cases, captures, strict=False):
        session(RunFolder(folder).case(planned.id).trace(planned.variants[1].name), "capture", host=capture)
    return folder


def test_captures_of_a_run_are_listed_and_one_is_chosen(call, tmp_path):
    run = write_run(tmp_path / "run", MATMUL, SHARDED, CAPTURES / "cpu_matmul_jit.hlo.txt")

    code, lines, _ = call(run)
    chosen = call(run, "--case", "cumulative_sum[n=64]")

    assert code == 3  # one is unhealthy
    rows = [line.split("  ")[0] for line in lines if line.startswith("cumulative_sum")]
    assert rows == [f"cumulative_sum[n={n}] loop:jit" for n in (16, 64, 256)]
    assert any("the device's operations 90 %" in line for line in lines)
    assert any("unhealthy: it is cut short or damaged" in line for line in lines)
    assert (chosen[0], chosen[1][0], "2 devices" in chosen[1][1]) == (0, "cumulative_sum[n=64] loop:jit", True)


def test_two_runs_are_compared_by_one_case_and_variant(call, tmp_path):
    a, b = write_run(tmp_path / "a", MATMUL, MATMUL), write_run(tmp_path / "b", SHARDED)

    code, _, complained = call(a, b)
    compared = call(a, b, "--case", "cumulative_sum[n=16]")

    assert code == 2
    assert "a run has 2 captures, and two are compared; choose one by --case and --variant" in complained
    assert compared[0] == 0
    assert compared[1][0] == "A: cumulative_sum[n=16] loop:jit"


def test_captures_of_one_case_in_two_runs_are_opened_next_to_each_other(call, tmp_path, monkeypatch):
    runs = [write_run(tmp_path / name, MATMUL) for name in ("a", "b")]
    opened = []
    monkeypatch.setattr(trace, "serve", lambda folder, port: opened.extend(folder.rglob("*.xplane.pb")))

    code, _, _ = call(*runs, "--open")

    assert code == 0
    assert len(opened) == 2


# Two captures


def test_two_captures_have_their_groups_next_to_each_other_and_operations_that_add_up(call):
    code, lines, _ = call(SHARDED, MATMUL, "--top", 3)

    assert code == 0
    assert find_row(lines, "dispatch") == ["dispatch", "3.7", "%", "4.7", "%", "+1"]
    assert find_row(lines, "ynn_fusion  ")[:5] == ["ynn_fusion", "+1.26", "ms", "—", "1.26"]
    assert find_row(lines, "ynn_fusion  ")[-1] == "new"
    assert find_row(lines, "22 others")[2:4] == ["−1.52", "ms"]
    assert find_row(lines, "busy time") == ["busy", "time", "−1.53", "ms", "2.79", "ms", "1.26", "ms"]
    assert " ".join(lines).endswith("`jaxmeter compare` decides whether a program became slower.")
    assert "each was traced once, and tracing slows programs down" in " ".join(lines)


def test_captures_that_are_unlike_are_compared_with_a_warning(call):
    unlike = read_json(call, SHARDED, MATMUL)["unlike"]
    lines = call(SHARDED, MATMUL)[1]

    assert unlike == ["number of devices: 2 in A, 1 in B", "programs: jit_by_shard_map in A, jit_matmul in B"]
    assert [f"  {line}" in lines for line in unlike] == [True, True]
    assert read_json(call, MATMUL, MATMUL)["unlike"] == []


def test_json_of_two_captures_has_all_operations_by_their_difference(call):
    told = read_json(call, MATMUL, SHARDED)

    differences = [one["difference_s"] for one in told["grown"]]
    assert (told["before"]["host"], told["after"]["host"]) == ("cpu_matmul_jit", "cpu_shard_map_two_devices")
    assert len(differences) == 25
    assert differences == sorted(differences, reverse=True)


# Peaks, and the bar


def test_rates_stand_next_to_the_peaks_of_the_device(call):
    lines = call(H200)[1]
    told = read_json(call, H200)["captures"][0]

    assert find_row(lines, "memory") == ["memory", "3.33", "TB/s", "4.80", "TB/s", "69", "%"]
    assert "  peaks: NVIDIA's data sheet, dense, SXM" in lines
    assert {(rate["unit"], rate["form"]) for rate in told["rates"]} >= {("FLOP/s", "bfloat16"), ("B/s", "")}
    assert told["roofs"]["bytes_per_s"] == 4.8e12


def test_a_capture_of_a_cpu_is_compared_with_the_peaks_of_a_run(call, tmp_path):
    peaks = {"peak_flops": {"float32": 1e12}, "peak_bytes_per_s": 1e10, "peaks_source": "measured"}
    run, without = (write_run(tmp_path / name, MATMUL) for name in "ab")
    manifest = read_manifest(RunFolder(run))
    environment = msgspec.structs.replace(manifest.environment, **peaks)
    write_json(RunFolder(run).manifest, msgspec.structs.replace(manifest, environments={"cpu": environment}))

    alone, compared, of_run = call(MATMUL)[1], call(MATMUL, "--peaks", run)[1], call(run)[1]

    assert find_row(alone, "arithmetic")[-2:] == ["—", "—"]
    for lines in (compared, of_run):
        assert find_row(lines, "arithmetic float32")[-4:] == ["1.00", "TFLOP/s", "21", "%"]
        assert "  peaks: measured" in lines
    code, _, complained = call(MATMUL, "--peaks", without)
    assert code == 2
    assert "this run knows no peaks" in complained
    assert call(MATMUL, "--peaks", tmp_path / "gone")[0] == 2


def test_a_bar_counts_the_bytes_of_all_captures():
    class Opened:
        def __init__(self, size, read_bytes):
            self.size, self.read_bytes = size, read_bytes

    bar = trace._Bar(100, Console(file=io.StringIO(), force_terminal=True))
    bar.watch(Opened(40, 40))
    bar.watch(second := Opened(60, 10))

    list(bar.get_renderables())
    assert bar.tasks[0].completed == 50
    second.read_bytes = 60
    list(bar.get_renderables())
    assert bar.tasks[0].completed == 100


@pytest.mark.parametrize(
    ("large", "terminal", "quiet", "shown"),
    [(True, True, False, True), (True, True, True, False), (True, False, False, False), (False, True, False, False)],
)
def test_a_bar_is_shown_for_large_captures_in_a_terminal_only(monkeypatch, large, terminal, quiet, shown):
    monkeypatch.setattr(trace, "LARGE_BYTES", 1 if large else 10**9)
    monkeypatch.setattr(trace, "Console", lambda stderr: Console(file=io.StringIO(), force_terminal=terminal))
    capture = trace.Capture(MATMUL, "host")

    with trace._watch([capture], quiet=quiet) as watch:
        assert (watch is not None) is shown
        summary = trace.summarise_capture(MATMUL, watch=watch)

    assert summary.is_healthy
