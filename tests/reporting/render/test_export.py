import csv
import io
import json
import statistics
import sys
from importlib.util import find_spec

import pandas
import pytest
from typer.testing import CliRunner

from jaxmeter.cli.app import app
from jaxmeter.cli.ending import UNUSABLE
from jaxmeter.harness.record import Outcome, RecordError, Status
from jaxmeter.reporting.frame import COLUMNS, TABLES, load_frame, make_frame
from jaxmeter.reporting.render.export import FORMATS, FORMULA, quote_formula, to_csv, to_google_benchmark, to_json
from tests import samples
from tests.golden_texts import check_golden_scenes
from tests.odd_run import odd_run
from tests.reporting.views import loaded

HAS_PYARROW = find_spec("pyarrow") is not None


def rows_of(*runs, table="metrics"):
    return json.loads(to_json(loaded(*runs), table))


def captured_run(*traced_s):
    """One variant that takes 1 ms, with a capture."""
    timing = samples.timing(1e-3, baseline_s=1e-3, spread=0)
    outcomes = {"f:jit": {"numerics": samples.numerics(), "timing": timing, "trace": samples.traced(*traced_s)}}
    return samples.one_case(outcomes, settings=samples.settings(probes=("numerics", "timing", "trace")))


SHOWN = ("execution_s", "speedup", "items_per_s", "planned_peak_bytes")
"""Metrics of which rows are told."""


def make_tables():
    """Rows of tables, by what is shown of them."""
    with_items = samples.planned_case(items=64, items_unit="tokens")
    skipped = samples.planned_case(variants=("f:eager", samples.planned_variant("g:jit", skip="needs 2 devices")))
    record = samples.record(skipped, {"f:eager": {"timing": samples.timing(1e-3)}})
    asked = samples.settings(probes=("numerics", "timing"))
    return {
        "a run": rows_of(samples.run((with_items, samples.fast_case(with_items)), machine="lab 3")),
        "every status": rows_of(samples.troubled_run()),
        "a variant that is skipped": rows_of(samples.run((skipped, record), settings=asked)),
        **{
            f"{table} of a step traced in {traced_s:g} s": rows_of(captured_run(traced_s), table=table)
            for table in ("operations", "ledger")
            for traced_s in (1e-3, 2e-3)
        },
        **{f"no capture, {table}": rows_of(samples.run(), table=table) for table in ("operations", "ledger")},
    }


def test_rows_read_as_their_golden_text():
    def write(row):
        told = {name: f"{value:.4g}" if isinstance(value, float) else value for name, value in row.items()}
        told |= {"values": len(json.loads(told["values"]))} if told.get("values") else {}
        return ", ".join(f"{name} {value}" for name, value in told.items() if value not in (None, False, "[]"))

    scenes = {
        rule: [write(row) for row in rows if row.get("metric", SHOWN[0]) in SHOWN]
        for rule, rows in make_tables().items()
    }
    check_golden_scenes("exports", scenes)


@pytest.mark.parametrize("table", TABLES)
def test_columns_are_those_that_are_described_in_their_order(table):
    columns = TABLES[table][0]

    assert list(make_frame(loaded(captured_run(1e-3)), table).columns) == list(columns)
    assert {tuple(sorted(row)) for row in rows_of(captured_run(1e-3), table=table)} == {tuple(sorted(columns))}
    assert all(columns.values())


def test_every_metric_that_has_a_number_has_one_row():
    damaged = Outcome(status=Status.OK, values={"execution_s": (1e300, 1e300, 1e300)})
    rows = rows_of(odd_run())

    keys = [(row["case"], row["variant"], row["metric"]) for row in rows]
    assert len(set(keys)) == len(keys)
    assert {"execution_s", "temp_bytes", "cold_s", "compile_total_s", "compiles"} <= {row["metric"] for row in rows}
    assert "execution_s" not in {row["metric"] for row in rows_of(samples.one_case({"f:jit": damaged}))}


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
    run = samples.one_case({"f:jit": samples.timing(1e-3)}, {"workload": name}, run_id=name)

    row, *_ = csv.DictReader(io.StringIO(to_csv(loaded(run)).decode()))

    assert (row["run"], row["case"]) == (f"'{name}", f"'{run.manifest.cases[0].name}")
    assert not [cell for cell in row.values() if cell.startswith(FORMULA)]
    cells = [-1.5, "-1.5", "\t=1", "\r=1", None, "a-b"]
    assert [quote_formula(cell) for cell in cells] == [-1.5, "'-1.5", "'\t=1", "'\r=1", None, "a-b"]


def test_google_benchmark_has_a_repetition_for_each_process_and_their_summaries():
    found = json.loads(to_google_benchmark(loaded(samples.run())))
    several = json.loads(to_google_benchmark(loaded(samples.run(), samples.gpu_run())))["benchmarks"]

    jit = [one for one in found["benchmarks"] if one["run_name"] == "selu[dtype=float32,n=10000]/selu:jit"]
    processes = [one for one in jit if one["run_type"] == "iteration"]
    mean, median, deviation = (one for one in jit if one["run_type"] == "aggregate")
    times = [one["real_time"] for one in processes]
    assert [one["repetition_index"] for one in processes] == [0, 1, 2, 3, 4]
    assert times == pytest.approx([5e4 * one for one in samples.WOBBLE])
    assert all(one["time_unit"] == "ns" and one["name"] == one["run_name"] for one in processes)
    assert mean["real_time"] == pytest.approx(statistics.fmean(times))
    assert (median["real_time"], median["aggregate_name"]) == (pytest.approx(statistics.median(times)), "median")
    assert median["name"].endswith("selu:jit_median")
    assert deviation["real_time"] == pytest.approx(statistics.stdev(times))
    assert found["context"]["jax_version"] == "0.10.0"
    assert several[0]["run_name"].startswith("2026-01-02T03-04-05Z-cpu-0000000/selu[")


def test_google_benchmark_tells_the_processor_time_where_it_is_known():
    busy = samples.timing(1e-3, processes=3, parallelism=(2.0, None, 1.5))
    run = samples.one_case({"f:jit": busy, "g:jit": samples.timing(1e-3, processes=1)})
    found = json.loads(to_google_benchmark(loaded(run)))["benchmarks"]

    shares = [one["cpu_time"] / one["real_time"] for one in found if one["run_type"] == "iteration"]

    assert shares == pytest.approx([2.0, 1.0, 1.5, 1.0])
    assert [one["run_type"] for one in found if one["run_name"].endswith("g:jit")] == ["iteration"]


@pytest.fixture
def folders(tmp_path):
    return [samples.write_run(tmp_path / name, run) for name, run in (("a", samples.run()), ("b", samples.gpu_run()))]


def call(*words):
    return CliRunner().invoke(app, ["export", *map(str, words)])


@pytest.mark.parametrize("name", ["csv", "json", "google-benchmark"])
def test_the_command_writes_what_the_format_is_and_gives_the_file_a_name(name, folders, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    out = tmp_path / "table"
    ended, unnamed = call(*folders, "--to", name, "--out", out), call(*folders, "--to", name)

    assert (ended.exit_code, ended.output) == (0, f"{out}\n")
    assert out.read_bytes() == FORMATS[name][0](loaded(samples.run(), samples.gpu_run()))
    assert unnamed.output.startswith(
        "reports/export-2026-01-02T03-04-05Z-cpu-0000000..2026-01-03T03-04-05Z-gpu-0000000."
    )
    assert (tmp_path / unnamed.output.strip()).is_file()


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
    assert "pip install 'jaxmeter[parquet]'" in ended.output
    assert not (tmp_path / "table").exists()


@pytest.mark.skipif(not HAS_PYARROW, reason="pyarrow is an extra: parquet")
def test_parquet_holds_the_table(folders, tmp_path):
    assert call(*folders, "--to", "parquet", "--out", tmp_path / "table").exit_code == 0

    read = pandas.read_parquet(tmp_path / "table")

    pandas.testing.assert_frame_equal(read, load_frame(folders), check_dtype=False)


def test_a_notebook_reads_runs_as_a_table_and_is_warned_of_what_cannot_be_read(folders, tmp_path):
    frame = load_frame(map(str, folders))
    with pytest.raises(TypeError, match=r"load_frame\(\['results/x'\]\)"):
        load_frame("results/x")
    with pytest.raises(ValueError, match="no table 'steps'; tables are metrics, operations, ledger"):
        load_frame(folders, "steps")
    with pytest.warns(UserWarning, match="no such folder"):
        assert len(load_frame([folders[0], tmp_path / "gone"]))
    with pytest.warns(UserWarning, match="no such folder"), pytest.raises(RecordError, match="no usable run"):
        load_frame([tmp_path / "gone"])

    times = frame[(frame["metric"] == "execution_s") & (frame["variant"] == "selu:jit")]
    assert list(times["backend"]) == ["cpu", "gpu", "gpu"]
    assert times["value"].iloc[0] == pytest.approx(5e-5, rel=1e-2)
    assert frame["value"].dtype == float
