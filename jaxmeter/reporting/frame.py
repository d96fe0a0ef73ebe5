"""Runs as tables: of metrics, of operations in captures, and of the parts of steps. For notebooks and every export."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from jaxmeter.harness.metrics.across import DECISIVE_PROBES, find_timing
from jaxmeter.harness.metrics.derived import find_trace, is_slowed_down
from jaxmeter.harness.metrics.metric import Lack, Reading
from jaxmeter.harness.metrics.plausibility import TIMES, find_disagreement
from jaxmeter.harness.metrics.reading import Variant
from jaxmeter.harness.metrics.table import METRICS
from jaxmeter.harness.record import RecordError, Status
from jaxmeter.harness.record.outcomes import find_traps
from jaxmeter.harness.traces.ledger import GROUPS

from .load import Loaded, load
from .view.runs import gather_cases, label_runs, name_device

if TYPE_CHECKING:
    from pandas import DataFrame

_VARIANT = {
    "run": "id of the run",
    "started": "when the run began, with its time zone",
    "backend": "cpu, gpu or tpu",
    "device": "name of the device, with their number where there are several",
    "machine": "what the machine is called",
    "cores": "processor cores that the run could use",
    "python": "version",
    "jax": "version",
    "jaxlib": "version",
    "jaxmeter": "version that measured",
    "level": "quick, default or full",
    "suite": "name of the suite",
    "workload": "name of the workload",
    "case": "name of the case: the workload with its params",
    "params": "the params, as a JSON object",
    "variant": "implementation and mode, `step:jit`",
    "implementation": "name of the function, or of the peer",
    "mode": "eager, jit, aot, mixed, or native for a peer",
    "is_baseline": "whether the case's speedups refer to this variant",
}

COLUMNS = {
    **_VARIANT,
    "metric": "name of the metric, as the page's section on the method defines it",
    "unit": "s, B, FLOP/s, tokens/s as the workload declares it, count, ratio …",
    "value": "the number; missing where `status` says why",
    "low": "lower bound of the interval; missing where there is none",
    "high": "upper bound",
    "confidence": "of the interval, 0.95; missing without one",
    "count": "processes that the number is of",
    "values": "the value of each process, as a JSON array; null where one has none",
    "exact": "whether the number has no error: a count or a size that was the same in all processes",
    "contended": "whether what else ran makes it one not to be trusted",
    "status": "how the probe ended: ok, skipped, failed, lost …",
    "reason": "why there is no number, or why not to rely on it",
    "traps": "why the program does not do the work that its source suggests: kinds of docs/traps.md, as a JSON array",
}
"""What each column of the table of metrics holds, in order."""

OPERATION_COLUMNS = {
    **_VARIANT,
    "module": "name of the compiled program",
    "operation": "name of the operation in the program",
    "opcode": "HLO's; of a fusion with what is heaviest inside",
    "category": "compute, callback, collective, transfer or control flow",
    "source": "file and line of the user's code; empty where unknown",
    "count": "executions in all traced steps, on all devices",
    "total_s": "sum of their durations while traced, in seconds",
    "self_s": "the same without what ran inside a loop or call",
    "share": "share of the devices' busy time; the shares of a variant add up to 1",
    "flops": "floating-point operations of one execution; missing where unknown",
    "bytes": "bytes that one execution reads and writes; missing where unknown",
}
"""What each column of the table of operations holds. What a record does not name is one row without an operation."""

LEDGER_COLUMNS = {
    **_VARIANT,
    "group": "device, transfer, dispatch, host or idle",
    "part": "part of a captured step; parts that a platform cannot show have no row",
    "share": "share of the steps' wall time; the shares of a variant add up to 1",
    "seconds": "of a timed step; missing where the traced step is not like the timed one",
}
"""What each column of the table of parts holds."""


def load_frame(runs: Iterable[str | Path], table: str = "metrics") -> DataFrame:
    """Return a table of run folders as a `pandas.DataFrame`.

    Runs are in the order of their start. A metric that a variant cannot have has no row. A metric that a probe could
    not determine has a row with its status. Runs that cannot be read are left out with a warning, as in the report.

    Args:
      table: `metrics` has a row for each case, variant and metric (`COLUMNS`). `operations` has a row for each of the
        largest operations of a captured variant (`OPERATION_COLUMNS`). `ledger` has a row for each part of its step
        (`LEDGER_COLUMNS`).
    Raises:
      RecordError: There is no run to read.
      TypeError: One path instead of a list of paths.
      ValueError: There is no such table.
    """
    if table not in TABLES:
        raise ValueError(f"no table {table!r}; tables are {', '.join(TABLES)}")
    if isinstance(runs, str | Path):
        raise TypeError(f"load_frame takes a list of run folders: load_frame([{str(runs)!r}])")
    loaded = load([Path(run) for run in runs])
    for text in loaded.warnings:
        warnings.warn(text, stacklevel=2)
    if not loaded.runs:
        raise RecordError("no usable run; give folders that `jaxmeter run` has written, such as results/*")
    return make_frame(loaded, table)


def make_frame(loaded: Loaded, table: str = "metrics") -> DataFrame:
    """The table of runs that were read."""
    from pandas import DataFrame  # a page needs none, and it takes half a second

    return DataFrame(list(list_rows(loaded, table)), columns=list(TABLES[table][0]))


def list_rows(loaded: Loaded, table: str = "metrics") -> Iterator[dict[str, Any]]:
    """The rows of a table, by run, case and variant."""
    list_of_variant = TABLES[table][1]
    for run in label_runs(loaded.runs):
        for case in gather_cases([run]):
            for variant in case.shown:
                yield from list_of_variant(variant)


def list_metrics(variant: Variant) -> Iterator[dict[str, Any]]:
    """The rows of one variant."""
    about, traps = _describe(variant), json.dumps([trap.kind for trap in find_traps(variant.outcomes)])
    for name, metric in METRICS.items():
        if metric.exponent_of is not None:  # of a workload, not of a variant
            continue
        reading = variant.read(name)
        if reading.interval is None and not _ended_badly(reading, variant):
            continue
        yield {**about, "metric": name, "unit": reading.metric.unit_text, **_qualify(reading, variant), "traps": traps}


def list_operations(variant: Variant) -> Iterator[dict[str, Any]]:
    """The rows of one variant's operations, the largest share first."""
    summary = find_trace(variant)
    if summary is None:
        return
    about = _describe(variant)
    own = [name for name in OPERATION_COLUMNS if name not in about]
    for operation in summary.operations:
        fields = {**msgspec.structs.asdict(operation), "operation": operation.name}
        yield {**about, **{name: fields[name] for name in own}}
    if summary.others:
        yield {**about, **dict.fromkeys(own), "share": summary.others_share}


def list_parts(variant: Variant) -> Iterator[dict[str, Any]]:
    """The rows of the parts of one variant's captured step."""
    summary = find_trace(variant)
    if summary is None:
        return
    about, timed_s = _describe(variant), variant.read("execution_s").estimate
    scale_s = None if is_slowed_down(variant) else timed_s
    for group, parts in GROUPS.items():
        for part in parts:
            if part in summary.ledger:
                share = summary.ledger[part]
                seconds = None if scale_s is None else share * scale_s
                yield {**about, "group": group, "part": part, "share": share, "seconds": seconds}


TABLES: Mapping[str, tuple[Mapping[str, str], Callable[[Variant], Iterator[dict[str, Any]]]]] = {
    "metrics": (COLUMNS, list_metrics),
    "operations": (OPERATION_COLUMNS, list_operations),
    "ledger": (LEDGER_COLUMNS, list_parts),
}
"""By the name of a table: what its columns hold, in order, and the rows of a variant."""


def _ended_badly(reading: Reading, variant: Variant) -> bool:
    """Whether a probe that was asked for has no number to tell, since it or what decides of it did not end well.

    What is derived from such a number is not told again.
    """
    probe, fault = reading.metric.probe, reading.fault
    if probe is None or fault is None or fault.lack is not Lack.ENDED:
        return False
    return probe in variant.settings.probes and fault.probe in (probe, *DECISIVE_PROBES)


def _describe(variant: Variant) -> dict[str, Any]:
    """What all rows of a variant share."""
    run, planned, case = variant.case.run, variant.planned, variant.planned_case
    manifest, here = run.manifest, run.environment
    return {
        "run": run.name,
        "started": manifest.started,
        "backend": run.where,
        "device": name_device(run),
        "machine": manifest.machine,
        "cores": here.allowed_cores,
        "python": here.python,
        "jax": here.packages.get("jax"),
        "jaxlib": here.packages.get("jaxlib"),
        "jaxmeter": manifest.tool_version,
        "level": manifest.settings.level,
        "suite": case.suite,
        "workload": case.workload,
        "case": case.name,
        "params": json.dumps(case.params, ensure_ascii=False, sort_keys=True),
        "variant": planned.name,
        "implementation": planned.implementation,
        "mode": planned.mode,
        "is_baseline": variant.is_baseline,
    }


def _qualify(reading: Reading, variant: Variant) -> dict[str, Any]:
    """The number with all that qualifies it."""
    interval, fault = reading.interval, reading.fault
    outcome = None if fault is None else fault.outcome
    bounded = interval is not None and interval.low is not None
    return {
        "value": reading.estimate,
        "low": None if interval is None else interval.low,
        "high": None if interval is None else interval.high,
        "confidence": variant.case.run.level if bounded else None,
        "count": 0 if interval is None else interval.count,
        "values": json.dumps(list(reading.values)),
        "exact": reading.exact,
        "contended": reading.contended,
        "status": (Status.OK if outcome is None else outcome.status).value,
        "reason": reading.doubt
        or (None if outcome is None else outcome.reason)
        or _describe_contention(reading, variant)
        or (find_disagreement(variant, reading.metric.name) if reading.metric.name in TIMES else None)
        or None,
    }


def _describe_contention(reading: Reading, variant: Variant) -> str | None:
    """How many processes were disturbed, of a number that is not to be trusted for that."""
    timing = find_timing(variant)
    if not reading.contended or timing is None:
        return None
    return f"{timing.contended} of {timing.processes} processes were contended"
