"""Runs as a reader names them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from jaxmeter.harness.metrics.reading import Run, split_platforms

from ..compare.conditions import name_variables
from ..load import name_runs
from ..text import counted, visible_record
from .figure_model import DEVICE_SIGNS
from .figures.marks import find_hue


def describe_cores(run: Run) -> str:
    """`2 cores`, `2 cores, each timing process on one`."""
    cores, used = counted(run.environment.allowed_cores, "core"), run.settings.process_cores
    return cores if used is None else f"{cores}, each timing process on {'one' if used == 1 else used}"


def label_runs(loaded: Sequence[Run]) -> tuple[Run, ...]:
    """Return each run once for each of its platforms, labelled, and with every text in it visible.

    A label is the platform with its sign, then the device, then the run's name, as far as needed to tell it from the
    others; with the name come the environment variables by which the runs of a platform differ.
    """
    shown = [replace(run, record=visible_record(run.record)) for run in loaded]
    runs = [
        replace(platform, name=name)
        for run, name in zip(shown, name_runs(shown), strict=True)
        for platform in split_platforms(run)
    ]
    short = [f"{DEVICE_SIGNS.get(find_hue(run), '')} {run.where}".lstrip() for run in runs]
    devices = [f"{label} · {name_device(run)}" for label, run in zip(short, runs, strict=True)]
    variables = {
        label: iter(name_variables(*(run.environment for run, of in zip(runs, short, strict=True) if of == label)))
        for label in short
    }
    labels = []
    for index, run in enumerate(runs):
        differing = next(variables[short[index]])
        if Counter(short)[short[index]] == 1:
            labels.append(short[index])
        elif Counter(devices)[devices[index]] == 1:
            labels.append(devices[index])
        else:
            labels.append(" · ".join(filter(None, (short[index], run.name, differing))))
    return tuple(_with_baselines(replace(run, label=label) for run, label in zip(runs, labels, strict=True)))


def _with_baselines(runs: Iterable[Run]) -> Iterator[Run]:
    """The runs, each with the first of its machine that has the same calibration loop, and the first with another."""
    of_machines: dict[str, Run] = {}
    first: dict[tuple[str, str], Run] = {}
    for run in runs:
        machine, reference = run.manifest.machine, run.speed.reference
        if reference is None:
            yield run
            continue
        key = (machine, reference.identity)
        of_machine, baseline = of_machines.setdefault(machine, run), first.get(key)
        # The first of its machine keeps the pool that it has gathered.
        other = None if baseline is of_machine else of_machine
        labelled = run if run is of_machine else replace(run, baseline=baseline, other_calibration=other)
        first.setdefault(key, labelled)
        yield labelled


def name_device(run: Run) -> str:
    """What the run was made on, with the number of devices where there are several."""
    environment = run.environment
    many = f"{environment.device_count} × " if environment.device_count != 1 else ""
    return f"{many}{environment.device_name}"
