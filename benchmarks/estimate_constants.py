"""What do the estimate's constants have to be? `python -m benchmarks.estimate_constants RUN`.

Fits those of `jaxmeter.harness.plan.work` to what a run has measured, and says how far off the fit is. RUN is the
folder of a run on a processor, by default the first in examples/; its suites are traced here, and nothing is measured.

Then it sets the estimate, by the constants that are in the code, beside what each case took.

Least squares of the logarithms, so that a tenth of a millisecond counts too, though less than a second; with a loss
that forgives what no count can explain.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import msgspec
import numpy
from scipy.optimize import least_squares

from jaxmeter.harness.child.describe import describe
from jaxmeter.harness.machine.platforms import PLATFORMS
from jaxmeter.harness.plan.estimate import Works, process_s
from jaxmeter.harness.plan.messages import Describe, Description
from jaxmeter.harness.plan.processes import PlannedProcess, plan_processes
from jaxmeter.harness.plan.work import Work
from jaxmeter.harness.record import CaseRecord, Outcome, RunFolder, RunRecord, read_run

EXAMPLE = Path("examples/2026-11-26T05-47-53Z-cpu-25d9d66")

CALLS = {
    "COMPILED": (("jit", "aot"), ("dispatched", "equations", "flops", "elements", "bytes")),
    "EAGER": (("eager", "mixed"), ("dispatched", "derived", "flops", "bytes")),
    "NATIVE_RATES": (("native",), ("dispatched", "flops", "elements")),
}
"""Modes that share constants, and what those are of."""

QUICK_S = 5e-5
"""Quicker calls take no longer to measure: they are timed in blocks of 2 ms."""

IMPORTANCE = 0.25
"""Power of the time by which a residual counts: what is slow is what an estimate is asked for."""

FLOOR_S = 1e-13
"""A constant that the data ask to be 0."""


def main() -> None:
    """Prints constants for each way to run a function and to compile it, and how well they predict."""
    run = read_run(RunFolder(Path(sys.argv[1]) if len(sys.argv) > 1 else EXAMPLE))
    settings, place = run.manifest.settings, PLATFORMS[run.manifest.backend]
    asked = Describe(suites=settings.suites, place=place, level=settings.level, devices=False, result="", work=())
    described = describe(asked)
    assert isinstance(described, Description)
    seen = [
        (described.work[case.id][variant.name], variant.name.rpartition(":")[2], variant.outcomes)
        for case in run.cases
        for variant in case.variants
        if variant.name in described.work.get(case.id, {})
    ]
    for name, (modes, counts) in CALLS.items():
        timed = [(work, middle(found, "timing", "execution_s")) for work, mode, found in seen if mode in modes]
        fit(name, counts, [(work, seconds) for work, seconds in timed if seconds > QUICK_S and not work.again])
    stages = ("trace_s", "lower_s", "compile_s")
    compiled = [(work, sum(middle(found, "compilation", stage) for stage in stages)) for work, _, found in seen]
    fit("PROGRAM_S, EQUATION_S", ("programs", "equations"), compiled)
    first = [(work, middle(found, "compilation", "first_call_s")) for work, mode, found in seen if mode == "eager"]
    fit("KIND_S", ("programs",), first)
    compare(run, described.work)


def compare(run: RunRecord, work: Works) -> None:
    """Prints what the code estimates for the processes that were run, over the seconds that they took."""
    most_rounds = max(case.processes for case in run.cases)
    settings = msgspec.structs.replace(run.manifest.settings, fewest_rounds=1, most_rounds=most_rounds)
    processes = plan_processes(run.manifest.cases, settings)
    explained_s = [
        sum(
            process_s(process, settings, work)
            for process in processes
            if process.case == case.id and was_run(process, case)
        )
        for case in run.cases
    ]
    taken_s = [case.elapsed_s for case in run.cases]
    low, mid, high = numpy.percentile(numpy.divide(explained_s, taken_s), (5, 50, 95))
    print(f"cases: {sum(explained_s):.0f} s explained, {sum(taken_s):.0f} s taken")
    print(f"  explained over taken, of {len(taken_s)}: 5 % {low:.2f}, median {mid:.2f}, 95 % {high:.2f}")


def was_run(process: PlannedProcess, case: CaseRecord) -> bool:
    """Whether the run did not end the case's rounds before this one."""
    if process.kind == "timing":
        return process.round < case.processes
    outcomes = next(variant.outcomes for variant in case.variants if variant.name == process.variants[0])
    cold = outcomes["compilation"].values.get("first_call_s", ()) if "compilation" in outcomes else ()
    return process.kind not in ("compilation", "caching") or process.round < len(cold)


def middle(outcomes: dict[str, Outcome], probe: str, metric: str) -> float:
    """The median of a metric's values over the processes, 0 without any."""
    values = [value for value in outcomes[probe].values.get(metric, ()) if value] if probe in outcomes else []
    return float(numpy.median(values)) if values else 0.0


def fit(name: str, fields: Sequence[str], seen: Sequence[tuple[Work, float]]) -> None:
    """Prints the constants that explain the times best, and the ratio of explained over measured."""
    known = [(work, seconds) for work, seconds in seen if seconds]
    counts = numpy.array([[getattr(work, field) for field in fields] for work, _ in known], float)
    times = numpy.array([seconds for _, seconds in known])
    begin = numpy.log(numpy.median(times) / numpy.maximum(counts.max(axis=0), 1.0))

    importance = (times / numpy.median(times)) ** IMPORTANCE

    def ratios(logarithms: numpy.ndarray) -> numpy.ndarray:
        return counts @ (numpy.exp(logarithms) + FLOOR_S) / times

    found = least_squares(lambda logarithms: importance * numpy.log(ratios(logarithms)), begin, loss="soft_l1").x
    low, mid, high = numpy.percentile(ratios(found), (10, 50, 90))
    constants = ", ".join(f"{field} {value:.2g}" for field, value in zip(fields, numpy.exp(found), strict=True))
    print(f"{name}: {constants}")
    print(f"  explained over measured, of {len(known)}: 10 % {low:.2f}, median {mid:.2f}, 90 % {high:.2f}")


if __name__ == "__main__":
    main()
