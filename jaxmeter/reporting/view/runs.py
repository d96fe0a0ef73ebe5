"""Runs as a reader names them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from jaxmeter.harness.metrics.pool import Pool, refer_to
from jaxmeter.harness.metrics.pooling import find_reference, gather_pool
from jaxmeter.harness.record import Manifest, Run

from ..load import LoadedRun, name_runs
from ..text import counted, hide_home, visible, visible_record

SYMBOLS = ("●", "■", "▲", "◆")
"""Of the backends that the runs have, in alphabetical order; further ones share the last."""


@dataclass(frozen=True)
class LabelledRun:
    """A run with a label: its backend, then its device, then its run id, as far as needed to tell it apart.

    Args:
      folder: Where it is kept, as it was given to read.
      baseline: The earlier run of the same machine and calibration loop whose speed its times are brought to; None
        where it is the first.
      other_calibration: The first run of the same machine, where that has another calibration loop.
    """

    run: Run
    run_id: str
    label: str
    folder: str = ""
    baseline: LabelledRun | None = None
    other_calibration: LabelledRun | None = None

    @property
    def manifest(self) -> Manifest:
        """What the run set out to do, and where."""
        return self.run.manifest

    @property
    def level(self) -> float:
        """Confidence of the intervals that are shown of this run."""
        settings = self.manifest.settings
        return settings.confidence if settings.shown_confidence is None else settings.shown_confidence

    @property
    def verdict_level(self) -> float:
        """Confidence of those that its verdicts go by."""
        return self.manifest.settings.confidence

    @cached_property
    def speed(self) -> Pool:
        """Its own reference speed, or why it has none."""
        return find_reference(self.run)

    @property
    def common_speed(self) -> Pool:
        """Its reference speed, that of the first run of its machine; nothing of how its times scatter."""
        return self.speed if self.baseline is None else self._refer(self.speed)

    @cached_property
    def pool(self) -> Pool:
        """What its variants share; it is gathered once."""
        own = gather_pool(self.run, self.speed)
        return own if self.baseline is None else self._refer(own)

    def _refer(self, own: Pool) -> Pool:
        assert self.baseline is not None
        return refer_to(own, self.baseline.speed, f"run {self.baseline.run_id}")


def describe_cores(manifest: Manifest) -> str:
    """`2 cores`, `2 cores, of which each timing process ran on one`."""
    cores, used = counted(manifest.environment.allowed_cores, "core"), manifest.settings.process_cores
    return cores if used is None else f"{cores}, of which each timing process ran on {'one' if used == 1 else used}"


def label_runs(loaded: Sequence[LoadedRun]) -> tuple[LabelledRun, ...]:
    """The runs with labels that tell them apart, and with every text in them visible."""
    runs = [visible_record(one.run) for one in loaded]
    folders = [visible(hide_home(str(one.folder.path))) for one in loaded]
    ids = name_runs(runs)
    backends = sorted({run.manifest.backend for run in runs})
    symbols = {backend: SYMBOLS[min(index, len(SYMBOLS) - 1)] for index, backend in enumerate(backends)}
    short = [f"{symbols[run.manifest.backend]} {run.manifest.backend}" for run in runs]
    devices = [f"{label} · {name_device(run)}" for label, run in zip(short, runs, strict=True)]
    labels = []
    for index, run_id in enumerate(ids):
        if Counter(short)[short[index]] == 1:
            labels.append(short[index])
        elif Counter(devices)[devices[index]] == 1:
            labels.append(devices[index])
        else:
            labels.append(f"{short[index]} · {run_id}")
    return tuple(_with_baselines(LabelledRun(*parts) for parts in zip(runs, ids, labels, folders, strict=True)))


def _with_baselines(runs: Iterable[LabelledRun]) -> Iterator[LabelledRun]:
    """The runs, each with the first of its machine that has the same calibration loop, and the first with another."""
    of_machines: dict[str, LabelledRun] = {}
    first: dict[tuple[str, str], LabelledRun] = {}
    for run in runs:
        machine, reference = run.manifest.machine, run.speed.reference
        if machine is None or reference is None:
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
    environment = run.manifest.environment
    many = f"{environment.device_count} × " if environment.device_count != 1 else ""
    return f"{many}{environment.device_name}"
