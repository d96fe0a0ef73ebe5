import csv
import io
import json
import re
import statistics
import sys
from importlib.util import find_spec

import pandas
import pytest
from typer.testing import CliRunner

from jaxmeter.cli.app import app
from jaxmeter.cli.ending import UNUSABLE
from jaxmeter.harness.metrics.table import METRICS
from jaxmeter.harness.record import Outcome, RecordError, Status
from jaxmeter.reporting.frame import COLUMNS, TABLES, load_frame, make_frame
from jaxmeter.reporting.render.export import FORMATS, FORMULA, quote_formula, to_csv, to_google_benchmark, to_json
from tests import samples
from tests.reporting.views import loaded

HAS_PYARROW = find_spec("pyarrow") is not None


def rows_of(*runs, table="metrics"):
    return json.loads(to_json(loaded(*runs), table))


def captured_run(*traced_s):
    """One variant that takes 1 ms, with a capture."""
    planned = samples.planned_case(variants=("f:jit",))
    timing = samples.timing(1e-3, baseline_s=1e-3, spread=0)
    outcomes = {"f:jit": {"numerics": samples.numerics(), "timing": timing, "trace": samples.traced(*traced_s)}}
    settings = samples.settings(probes=("numerics", "timing", "trace"))
    return samples.run((planned, samples.record(planned, outcomes)), settings=settings)


def one_row(rows, variant, metric):
    (row,) = [row for row in rows if (row["variant"], row["metric"]) == (variant, metric)]
    return row


def test_a_row_holds_the_number_its_interval_and_where_it_is_from():
    row = one_row(rows_of(samples.run(machine="lab 3")), "selu:jit", "speedup")

    assert row["value"] == pytest.approx(10, rel=1e-3)
    assert 9.8 < row["low"] < row["value"] < row["high"] < 10.2
    assert {name: row[name] for name in ("run", "backend", "device", "machine", "jax", "level", "case")} == {
        "run": "2026-01-02T03-04-05Z-cpu-0000000",
        "backend": "cpu",
        "device": "Sample Processor 1",
        "machine": "lab 3",
        "jax": "0.10.0",
        "level": "quick",
        "case": "selu[dtype=float32,n=10000]",
    }
    assert (row["unit"], row["count"], row["confidence"], row["status"], row["reason"]) == (
        "ratio",
        5,
        0.99,
        "ok",
        None,
    )
    assert json.loads(row["params"]) == {"dtype": "float32", "n": 10_000}
    assert statistics.geometric_mean(json.loads(row["values"])) == pytest.approx(row["value"])


def test_a_throughput_has_the_unit_that_its_workload_declares():
    planned = samples.planned_case(items=64, items_unit="tokens")

    row = one_row(rows_of(samples.run((planned, samples.fast_case(planned)))), "selu:jit", "items_per_s")

    assert (row["unit"], row["value"]) == ("tokens/s", pytest.approx(64 / 5e-5, rel=1e-3))


@pytest.mark.parametrize("table", TABLES)
def test_columns_are_those_that_are_described_in_their_order(table):
    columns = TABLES[table][0]

    assert list(make_frame(loaded(captured_run(1e-3)), table).columns) == list(columns)
    assert {tuple(sorted(row)) for row in rows_of(captured_run(1e-3), table=table)} == {tuple(sorted(columns))}
    assert all(columns.values())


def test_operations_of_captures_are_a_table_and_their_shares_add_up():
    rows = rows_of(captured_run(1e-3), table="operations")

    assert [(row["operation"], row["source"], row["share"]) for row in rows] == [
        ("dot.1", "train.py:48", 0.75),
        ("fusion.2", "train.py:50", 0.2),
        (None, None, 0.05),
    ]
    assert [row["flops"] for row in rows] == [2e6, None, None]
    assert {row["variant"] for row in rows} == {"f:jit"}


@pytest.mark.parametrize(("traced_s", "seconds"), [(1e-3, [0.9e-3, 0.1e-3]), (2e-3, [None, None])])
def test_parts_of_captured_steps_are_a_table_with_seconds_where_tracing_changes_little(traced_s, seconds):
    rows = rows_of(captured_run(traced_s), table="ledger")

    assert [(row["group"], row["part"]) for row in rows] == [("device", "compute"), ("host", "host after")]
    assert [row["share"] for row in rows] == pytest.approx([0.9, 0.1])
    assert [row["seconds"] for row in rows] == (seconds if None in seconds else pytest.approx(seconds))


@pytest.mark.parametrize("table", ["operations", "ledger"])
def test_a_variant_without_a_capture_has_no_row_in_the_tables_of_captures(table):
    assert rows_of(samples.run(), table=table) == []


def test_every_metric_that_has_a_number_has_one_row():
    rows = rows_of(samples.watched_run())

    keys = [(row["case"], row["variant"], row["metric"]) for row in rows]
    assert len(set(keys)) == len(keys)
    assert {row["metric"] for row in rows} <= set(METRICS)
    assert {"execution_s", "temp_bytes", "cold_s", "compile_total_s", "hlo_fusions"} <= {row["metric"] for row in rows}


def test_what_ended_badly_has_a_row_with_its_status_and_reason_and_no_value():
    rows = rows_of(samples.troubled_run())

    row = one_row(rows, "wrong:jit", "execution_s")
    assert (row["value"], row["status"], row["reason"]) == (None, "wrong", "largest error 0.5, allowed 1e-05")
    assert {row["status"] for row in rows} >= {"ok", "wrong", "failed", "killed", "timed out", "lost", "skipped"}
    assert all(row["reason"] for row in rows if row["status"] != "ok")


def test_a_contended_number_says_so():
    row = one_row(rows_of(samples.troubled_run()), "a:eager", "execution_s")

    assert (row["contended"], row["reason"]) == (True, "3 of 5 processes were contended")


def test_a_variant_that_is_skipped_has_a_row_for_each_number_that_it_was_asked_for():
    planned = samples.planned_case(variants=("f:eager", samples.planned_variant("g:jit", skip="needs 2 devices")))
    record = samples.record(planned, {"f:eager": {"timing": samples.timing(1e-3)}})

    rows = rows_of(samples.run((planned, record), settings=samples.settings(probes=("numerics", "timing"))))

    skipped = [row for row in rows if row["variant"] == "g:jit"]
    assert {(row["status"], row["reason"]) for row in skipped} == {("skipped", "needs 2 devices")}
    assert {METRICS[row["metric"]].probe for row in skipped} == {"numerics", "timing"}


def test_csv_and_json_hold_the_same():
    runs = (samples.run(), samples.troubled_run(), samples.gpu_run(), samples.hostile_run())

    of_csv = list(csv.DictReader(io.StringIO(to_csv(loaded(*runs)).decode())))
    of_json = rows_of(*runs)

    assert len(of_csv) == len(of_json) > 50
    for write in (to_csv, to_json, to_google_benchmark):  # equal runs give equal bytes
        assert write(loaded(samples.run())) == write(loaded(samples.run()))
    for one, other in zip(of_csv, of_json, strict=True):
        for name in COLUMNS:
            text, value = one[name], other[name]
            if value is None:
                assert text == ""
            elif isinstance(value, bool):
                assert text == str(value)
            elif isinstance(value, int | float):
                assert float(text) == value
            else:
                assert text == value


@pytest.mark.parametrize("start", "=+-@")
def test_no_text_in_csv_is_a_formula(start):
    name = f"{start}1+cmd|' /C calc'!A0"
    planned = samples.planned_case(name, variants=("f:jit",))
    run = samples.run((planned, samples.record(planned, {"f:jit": {"timing": samples.timing(1e-3)}})), run_id=name)

    row, *_ = csv.DictReader(io.StringIO(to_csv(loaded(run)).decode()))

    assert (row["run"], row["case"]) == (f"'{name}", f"'{planned.name}")
    assert not [cell for cell in row.values() if cell.startswith(FORMULA)]


def test_a_negative_number_in_csv_has_no_apostrophe():
    cells = [-1.5, "-1.5", "\t=1", "\r=1", None, "a-b"]

    assert [quote_formula(cell) for cell in cells] == [-1.5, "'-1.5", "'\t=1", "'\r=1", None, "a-b"]


def test_google_benchmark_has_a_repetition_for_each_process_and_their_summaries():
    found = json.loads(to_google_benchmark(loaded(samples.run())))

    jit = [one for one in found["benchmarks"] if one["run_name"] == "selu[dtype=float32,n=10000]/selu:jit"]
    processes = [one for one in jit if one["run_type"] == "iteration"]
    mean, median, deviation = (one for one in jit if one["run_type"] == "aggregate")
    assert [one["repetition_index"] for one in processes] == [0, 1, 2, 3, 4]
    assert [one["real_time"] for one in processes] == pytest.approx([5e4 * one for one in samples.WOBBLE])
    assert all(one["time_unit"] == "ns" and one["name"] == one["run_name"] for one in processes)
    times = [one["real_time"] for one in processes]
    assert mean["real_time"] == pytest.approx(statistics.fmean(times))
    assert median["name"].endswith("selu:jit_median")
    assert (median["real_time"], median["aggregate_name"]) == (pytest.approx(statistics.median(times)), "median")
    assert deviation["real_time"] == pytest.approx(statistics.stdev(times))
    assert found["context"]["jax_version"] == "0.10.0"


def test_google_benchmark_tells_the_processor_time_where_it_is_known():
    planned = samples.planned_case(variants=("f:jit", "g:jit"))
    busy = samples.timing(1e-3, processes=3, parallelism=(2.0, None, 1.5))
    record = samples.record(
        planned, {"f:jit": {"timing": busy}, "g:jit": {"timing": samples.timing(1e-3, processes=1)}}
    )

    found = json.loads(to_google_benchmark(loaded(samples.run((planned, record)))))["benchmarks"]

    shares = [one["cpu_time"] / one["real_time"] for one in found if one["run_type"] == "iteration"]
    assert shares == pytest.approx([2.0, 1.0, 1.5, 1.0])
    assert [one["run_type"] for one in found if one["run_name"].endswith("g:jit")] == ["iteration"]


def test_google_benchmark_names_the_run_where_there_are_several():
    found = json.loads(to_google_benchmark(loaded(samples.run(), samples.gpu_run())))["benchmarks"]

    names = [one["run_name"] for one in found]
    assert names[0].startswith("2026-01-02T03-04-05Z-cpu-0000000/selu[")
    assert names[-1].startswith("2026-01-03T03-04-05Z-gpu-0000000/selu[")


@pytest.fixture
def folders(tmp_path):
    return [samples.write_run(tmp_path / name, run) for name, run in (("a", samples.run()), ("b", samples.gpu_run()))]


def call(*words):
    return CliRunner().invoke(app, ["export", *map(str, words)])


@pytest.mark.parametrize("name", ["csv", "json", "google-benchmark"])
def test_the_command_writes_what_the_format_is(name, folders, tmp_path):
    out = tmp_path / "table"

    ended = call(*folders, "--to", name, "--out", out)

    assert (ended.exit_code, ended.output) == (0, f"{out}\n")
    assert out.read_bytes() == FORMATS[name][0](loaded(samples.run(), samples.gpu_run()))


def test_the_file_has_a_name_by_itself(folders, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    ended = call(*folders)

    assert ended.output == ("reports/export-2026-01-02T03-04-05Z-cpu-0000000..2026-01-03T03-04-05Z-gpu-0000000.csv\n")
    assert (tmp_path / ended.output.strip()).is_file()


def test_what_is_left_out_is_named(folders, tmp_path):
    ended = call(folders[0], tmp_path / "gone", "--out", tmp_path / "table")

    assert ended.exit_code == 0
    assert re.search(r"warning: left out: .*gone: no such folder", ended.output)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--to", "xml"), "error: no format 'xml'; formats are csv, json, parquet, google-benchmark"),
        (("--table", "steps"), "error: no table 'steps'; tables are metrics, operations, ledger"),
        (("--table", "ledger", "--to", "google-benchmark"), "error: Google Benchmark's format has no place for ledger"),
        (("--out", "/dev/null/table"), "cannot be written"),
        (None, "error: no usable run; give folders"),
    ],
)
def test_what_cannot_be_written_is_an_error_that_says_what_to_do(words, message, folders):
    ended = call("/none") if words is None else call(*folders, *words)

    assert ended.exit_code == UNUSABLE
    assert message in ended.output


def test_without_pyarrow_parquet_says_what_it_needs(folders, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)

    ended = call(*folders, "--to", "parquet", "--out", tmp_path / "table")

    assert ended.exit_code == UNUSABLE
    assert "pip install 'jaxmeter[parquet]'; or export --to csv" in ended.output
    assert not (tmp_path / "table").exists()


@pytest.mark.skipif(not HAS_PYARROW, reason="pyarrow is an extra: parquet")
def test_parquet_holds_the_table(folders, tmp_path):
    assert call(*folders, "--to", "parquet", "--out", tmp_path / "table").exit_code == 0

    read = pandas.read_parquet(tmp_path / "table")

    pandas.testing.assert_frame_equal(read, load_frame(folders), check_dtype=False)


def test_a_notebook_reads_runs_as_a_table(folders):
    frame = load_frame(map(str, folders))

    with pytest.raises(TypeError, match=r"load_frame\(\['results/x'\]\)"):
        load_frame("results/x")
    with pytest.raises(ValueError, match="no table 'steps'; tables are metrics, operations, ledger"):
        load_frame(folders, "steps")
    times = frame[(frame["metric"] == "execution_s") & (frame["variant"] == "selu:jit")]
    assert list(times["backend"]) == ["cpu", "gpu", "gpu"]
    assert times["value"].iloc[0] == pytest.approx(5e-5, rel=1e-2)
    assert frame["value"].dtype == float


def test_a_notebook_is_warned_of_what_cannot_be_read_and_told_where_nothing_can(folders, tmp_path):
    with pytest.warns(UserWarning, match="no such folder"):
        assert len(load_frame([folders[0], tmp_path / "gone"]))
    with pytest.warns(UserWarning, match="no such folder"), pytest.raises(RecordError, match="no usable run"):
        load_frame([tmp_path / "gone"])


def test_a_number_beyond_all_measurement_has_no_row():
    planned = samples.planned_case(variants=("f:jit",))
    damaged = Outcome(status=Status.OK, values={"execution_s": (1e300, 1e300, 1e300)})

    rows = rows_of(samples.run((planned, samples.record(planned, {"f:jit": {"timing": damaged}}))))

    assert not [row for row in rows if row["metric"] in ("execution_s", "speedup")]
