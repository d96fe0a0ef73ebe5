"""How long do processes take? `python -m benchmarks.estimate_constants [CASE …]`.

Measures one round of a default run. For each kind of process it prints the planned and the actual seconds, and what
`variant_s` in `jaxmeter.harness.plan.probes` has to be: seconds of a variant, without those of beginning the process
and of the passes.
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

import numpy

from jaxmeter.cli.request import RunRequest, choose_settings
from jaxmeter.cli.run import new_run
from jaxmeter.harness.parent.progress import Watcher
from jaxmeter.harness.plan.probes import PROBES
from jaxmeter.harness.plan.processes import PlannedProcess
from jaxmeter.harness.plan.settings import PROCESS_S, passes_s, process_s


class Stopwatch(Watcher):
    """The seconds of each process, by kind."""

    def __init__(self) -> None:
        """Begin without any."""
        self.taken: dict[str, list[tuple[PlannedProcess, float]]] = {}
        self._start = 0.0

    def process_started(self, process: PlannedProcess) -> None:
        """Start the clock."""
        self._start = time.monotonic()

    def process_ended(self, process: PlannedProcess, used_s: float) -> None:
        """Stop the clock."""
        self.taken.setdefault(process.kind, []).append((process, time.monotonic() - self._start))


def main() -> None:
    """RunRecord, and print a line for each kind of process."""
    stopwatch = Stopwatch()
    with tempfile.TemporaryDirectory() as folder:
        request = RunRequest(select=tuple(sys.argv[1:]), processes=1, out=Path(folder))
        new_run(request, stopwatch, as_json=True)
    settings = choose_settings(request, "it")
    for kind, ended in stopwatch.taken.items():
        planned_s = sum(process_s(process, settings) for process, _ in ended)
        taken_s = numpy.array([seconds for _, seconds in ended])
        variants = numpy.array([len(process.variants) for process, _ in ended])
        planned_passes_s = [
            passes_s(len(process.variants), PROCESS_S + len(process.variants) * PROBES[kind].variant_s, settings)
            if kind == "timing"
            else 0.0
            for process, _ in ended
        ]
        variant_s = (taken_s - PROCESS_S - numpy.array(planned_passes_s)) / variants
        print(
            f"{kind}: {len(ended)} processes, {planned_s:.0f} s planned, {taken_s.sum():.0f} s taken; of a variant: "
            f"median {numpy.median(variant_s):.2f} s, mean {numpy.average(variant_s, weights=variants):.2f} s"
        )


if __name__ == "__main__":
    main()
