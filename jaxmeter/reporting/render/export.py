"""Runs as data for other programs: CSV, Parquet, JSON, and the JSON that Google Benchmark's tools read."""

from __future__ import annotations

import io
import json
import statistics
from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from typing import Any

from jaxmeter.harness.record.wording import describe_missing
from jaxmeter.reporting.frame import list_rows, make_frame
from jaxmeter.reporting.load import Loaded
from jaxmeter.reporting.text import visible_record

TIME = "execution_s"
NANOSECONDS = 1e9

FORMULA = ("=", "+", "-", "@", "\t", "\r")
"""First characters by which a spreadsheet takes a text for a formula, which it would run. Source: OWASP, CSV Injection.
`toCsv` of report.js has the same."""


class ExportError(Exception):
    """A format cannot be written here; the message says what it needs."""


def to_csv(loaded: Loaded, table: str = "metrics") -> bytes:
    """The table as CSV in UTF-8, with a heading; a missing value is empty, and no text is a formula."""
    frame = make_frame(loaded, table)
    for column in frame.select_dtypes(exclude=["number", "bool"]):
        frame[column] = frame[column].map(quote_formula)
    text: str = frame.to_csv(index=False, lineterminator="\n")
    return text.encode("utf-8", "replace")


def quote_formula(cell: Any) -> Any:
    """Return a cell with an apostrophe before a text that a spreadsheet would run; numbers stay as they are."""
    return f"'{cell}" if isinstance(cell, str) and cell.startswith(FORMULA) else cell


def to_json(loaded: Loaded, table: str = "metrics") -> bytes:
    """The table as a JSON array, an object for each row; a missing value is null."""
    return _dump(list(list_rows(loaded, table)))


def to_parquet(loaded: Loaded, table: str = "metrics") -> bytes:
    """The table as Parquet.

    Raises:
      ExportError: pyarrow is not installed, or too old for pandas.
    """
    buffer = io.BytesIO()
    try:
        import_module("pyarrow")  # pandas has words of its own for a missing package
        make_frame(loaded, table).to_parquet(buffer, engine="pyarrow", index=False)
    except ImportError as error:
        raise ExportError(f"{describe_missing(error) or error}; or export --to csv") from None
    return buffer.getvalue()


def to_google_benchmark(loaded: Loaded, table: str = "metrics") -> bytes:
    """Execution times in Google Benchmark's format: a repetition for each process, then mean, median and deviation.

    Its tools read one machine's run: `context` is of the newest. A name is `case/variant`; with several runs, `run/` is
    before it.
    Raises:
      ExportError: The table is another than `metrics`, for which the format has no place.
    Source: google/benchmark, docs/user_guide.md and docs/tools.md.
    """
    if table != "metrics":
        raise ExportError(f"Google Benchmark's format has no place for {table}; export --to csv, json or parquet")
    rows = list(list_rows(loaded))
    timed = [row for row in rows if row["metric"] == TIME and row["value"] is not None]
    busy = {_key(row): json.loads(row["values"]) for row in rows if row["metric"] == "parallelism"}
    several = len(loaded.runs) > 1
    newest = visible_record(loaded.runs[-1].manifest)
    here = newest.environment
    context = {
        "date": newest.started,
        "host_name": "",
        "executable": "jaxmeter",
        "num_cpus": here.allowed_cores,
        "mhz_per_cpu": 0,
        "caches": [],
        "library_build_type": "release",
        "jaxmeter_version": newest.tool_version,
        "jax_version": here.packages.get("jax", ""),
        "device": here.device_name,
    }
    entries: list[Mapping[str, Any]] = []
    for index, row in enumerate(timed):
        name = f"{row['case']}/{row['variant']}"
        entries += _list_repetitions(f"{row['run']}/{name}" if several else name, index, row, busy.get(_key(row), []))
    return _dump({"context": context, "benchmarks": entries})


def _key(row: Mapping[str, Any]) -> tuple[str, str, str]:
    return row["run"], row["case"], row["variant"]


def _list_repetitions(
    name: str, family: int, row: Mapping[str, Any], busy: list[float | None]
) -> Iterator[dict[str, Any]]:
    """One for each process with a time. Its processor time is by what it kept busy; where that is unknown, the same."""
    processes = json.loads(row["values"])
    processors = [*busy, *[None] * (len(processes) - len(busy))]
    times = [
        (NANOSECONDS * time_s, NANOSECONDS * time_s * (1.0 if number is None else number))
        for time_s, number in zip(processes, processors, strict=False)
        if time_s is not None
    ]
    common = {
        "family_index": family,
        "per_family_instance_index": 0,
        "run_name": name,
        "repetitions": len(times),
        "threads": 1,
    }
    for index, (real_ns, cpu_ns) in enumerate(times):
        yield {
            "name": name,
            **common,
            "run_type": "iteration",
            "repetition_index": index,
            "iterations": 1,
            "real_time": real_ns,
            "cpu_time": cpu_ns,
            "time_unit": "ns",
        }
    if len(times) < 2:
        return
    summaries: tuple[tuple[str, Callable[[list[float]], float]], ...] = (
        ("mean", statistics.fmean),
        ("median", statistics.median),
        ("stddev", statistics.stdev),
    )
    for aggregate, summarise in summaries:
        real_ns, cpu_ns = (summarise(list(side)) for side in zip(*times, strict=True))
        yield {
            "name": f"{name}_{aggregate}",
            **common,
            "run_type": "aggregate",
            "aggregate_name": aggregate,
            "aggregate_unit": "time",
            "iterations": len(times),
            "real_time": real_ns,
            "cpu_time": cpu_ns,
            "time_unit": "ns",
        }


def _dump(value: Any) -> bytes:
    return (json.dumps(value, ensure_ascii=False, indent=1, allow_nan=False) + "\n").encode("utf-8", "replace")


FORMATS: Mapping[str, tuple[Callable[[Loaded, str], bytes], str]] = {
    "csv": (to_csv, "csv"),
    "json": (to_json, "json"),
    "parquet": (to_parquet, "parquet"),
    "google-benchmark": (to_google_benchmark, "google-benchmark.json"),
}
"""By the name of a format: what writes it, and the ending of its files."""
