"""Runs as a reader names them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from harness.record import Manifest, Run
from harness.record.pool import Pool
from harness.record.pooling import gather_pool

from ..load import name_runs

SYMBOLS = ("●", "■", "▲", "◆")
"""Of the backends that the runs have, in alphabetical order; further ones share the last."""


@dataclass(frozen=True)
class LabelledRun:
    """A run with a label: its backend, then its device, then its run id, as far as needed to tell it apart."""

    run: Run
    run_id: str
    label: str

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
    def pool(self) -> Pool:
        """What its variants share; it is gathered once."""
        return gather_pool(self.run)


def label_runs(runs: Sequence[Run]) -> tuple[LabelledRun, ...]:
    """The runs with labels that tell them apart."""
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
    return tuple(LabelledRun(*parts) for parts in zip(runs, ids, labels, strict=True))


def name_device(run: Run) -> str:
    """What the run was made on, with the number of devices where there are several."""
    environment = run.manifest.environment
    many = f"{environment.device_count} × " if environment.device_count != 1 else ""
    return f"{many}{environment.device_name}"
