"""Catalogue and plan as documents, for `list` and `run --dry-run`."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Sequence

from jaxmeter.document.model import Cell, Document, Item, Part, make_table, say
from jaxmeter.harness.plan.messages import Description, WorkloadDescription
from jaxmeter.harness.plan.probes import list_runnable
from jaxmeter.harness.plan.processes import PlannedProcess
from jaxmeter.harness.plan.settings import estimate, find_longest_s, first_round_s
from jaxmeter.harness.record import PlannedCase, Settings
from jaxmeter.harness.record.wording import counted


def describe_catalogue(description: Description) -> Document:
    """Return suites, workloads with params and cases, variants with their first lines."""
    parts = []
    for suite in description.suites:
        parts += [Part(f"{suite.name}: {suite.description}"), *map(_describe_workload, suite.workloads)]
    return Document(parts=tuple(parts))


def _describe_workload(workload: WorkloadDescription) -> Part:
    heading = f"{workload.name}: {workload.description} ({counted(workload.cases, 'case')})"
    params = [f"{name} = {', '.join(map(str, values))}" for name, values in workload.params.items()]
    rows = []
    for name, text in workload.variants:
        own = "" if text == workload.description else text
        rows.append((f"  {name}", " ".join(filter(None, (own, "(baseline)" if name == workload.baseline else "")))))
    return Part(heading, (make_table(("", ""), rows),), items=tuple(map(Item, params)))


def data_warnings(cases: Sequence[PlannedCase], settings: Settings) -> Iterator[str]:
    """What the folder of `--data` lacks, so that other data are in its place; or that no case reads any."""
    if settings.data is None:
        return
    if not any(case.data for case in cases):
        yield f"--data '{settings.data}' may have no effect: no selected case says that it reads a data set"
    users: dict[tuple[str | None, str], dict[str, None]] = defaultdict(dict)
    for case in cases:
        if case.data_missing:
            users[case.data, case.data_missing][case.workload] = None
    for (used, missing), names in users.items():
        yield f"--data '{settings.data}' has none of {missing}; the inputs of {', '.join(names)} are {used}"


def describe_plan(cases: Sequence[PlannedCase], processes: Sequence[PlannedProcess], settings: Settings) -> Document:
    """Return every case with its variants, and the time and processes per suite and in all."""
    suites: dict[str, list[PlannedCase]] = defaultdict(list)
    for case in cases:
        suites[case.suite].append(case)
    parts = []
    for suite, members in suites.items():
        ids = {case.id for case in members}
        own = [process for process in processes if process.case in ids]
        table = make_table(("", ""), [_describe_case(case, settings) for case in members])
        parts.append(Part(f"{suite}: {counted(len(members), 'case')}, {_cost(own, settings)}", (table,)))
    sentences = [
        (
            f"{counted(len(cases), 'case')}, {_cost(processes, settings)}; {_budget(settings)}. "
            f"Probes: {', '.join(settings.probes)}. Timing processes: {_timing_processes(settings)}."
        ),
        f"Calls longer than a block ({1000 * settings.block_s:g} ms) take longer than planned.",
    ]
    if (round_s := first_round_s(processes, settings)) > find_longest_s(settings):
        sentences.append(
            f"One round takes about {_duration(round_s)}, more than the budget: cases will be lost. "
            "Give more with --budget, or select fewer."
        )
    return Document(parts=(*parts, say(*sentences)))


def _describe_case(case: PlannedCase, settings: Settings) -> tuple[Cell, Cell]:
    names = ", ".join(item.name for item in list_runnable(case, settings))
    skipped = "; ".join(f"not {item.name}: {item.skip}" for item in case.variants if item.skip is not None)
    return Cell(f"  {case.name}"), Cell(names or "nothing", skipped)


def _cost(processes: Sequence[PlannedProcess], settings: Settings) -> str:
    prediction = estimate(processes, settings)
    least, most = _duration(prediction.least_s, prediction.most_s), _duration(prediction.most_s)
    time = f"about {least}" if least == most else f"about {least} to {most}"
    fewest = "" if prediction.fewest == prediction.most else f"{prediction.fewest} to "
    return f"{time}, {fewest}{counted(prediction.most, 'process', 'processes')}"


def _duration(seconds: float, beside_s: float = 0.0) -> str:
    """Return a time as text in seconds or minutes: in the unit of the time `beside_s`, if that is longer."""
    return f"{seconds:.0f} s" if max(seconds, beside_s) < 120 else f"{seconds / 60:.1f} min"


def _budget(settings: Settings) -> str:
    return "no budget" if math.isinf(find_longest_s(settings)) else f"budget {_duration(settings.budget_s)}"


def _timing_processes(settings: Settings) -> str:
    if settings.processes is not None:
        return str(settings.processes)
    return f"{settings.fewest_rounds} to {settings.most_rounds}, by the time given"
