"""What the first result costs, and what was compiled for it: stages, first call, program; in a fresh cold process."""

from __future__ import annotations

from pathlib import Path

from harness import cost, program
from harness.compilations import explanation, watched
from harness.environment import private
from harness.messages import COMPILATION as KIND
from harness.modes import Prepared, Stages
from harness.probes.context import Context, Probe
from harness.record import Number, Outcome, Status, write_bytes

LONGEST_EXPLANATION = 4000
"""As much as is kept of a failed process's stderr."""


def run(variant: str, prepared: Prepared, context: Context) -> Outcome:
    """Reads the stages that preparing took, times the first call, and counts what it and a second one compile."""
    with watched() as first:
        start = context.clock()
        prepared.wait(prepared.call(*prepared.args))
        first_call_s = context.clock() - start
    with watched() as second:
        prepared.wait(prepared.call(*prepared.args))
    compiles = first.compiled + (0 if prepared.stages is None else prepared.stages.events.compiled)
    values: dict[str, tuple[Number | None, ...]] = {
        "first_call_s": (first_call_s,),
        "compiles": (compiles,),
        "recompiles": (second.compiled,),
    }
    notes: tuple[str, ...] = ()
    fingerprints: tuple[str, ...] = ()
    if (stages := prepared.stages) is not None:
        values |= {"trace_s": (stages.trace_s,), "lower_s": (stages.lower_s,), "compile_s": (stages.compile_s,)}
        fingerprints = (program.fingerprint(stages.compiled),)
        if context.index == 0:  # what is the same in every process is read once
            described, notes = _described(stages)
            values |= described
            if context.folder is not None:
                _keep_texts(program.folder(context.folder, variant), stages)
    outcome = Outcome(status=Status.OK, values=values, notes=notes, fingerprints=fingerprints)
    return _within_budget(outcome, compiles + second.compiled, context.compiles(variant), prepared)


COMPILATION = Probe("compilation", KIND, run)


def _described(stages: Stages) -> tuple[dict[str, tuple[Number | None, ...]], tuple[str, ...]]:
    values: dict[str, tuple[Number | None, ...]] = {name: (number,) for name, number in program.counts(stages).items()}
    if (size := program.executable_bytes(stages.compiled)) is not None:
        values["executable_bytes"] = (size,)
    try:
        return values | {name: (value,) for name, value in cost.counted(stages.compiled).values.items()}, ()
    except cost.NotCountableError as error:
        return values, (str(error),)


def _keep_texts(folder: Path, stages: Stages) -> None:
    for kind, text in program.texts(stages).items():
        write_bytes(folder / program.TEXTS[kind], private(text).encode(), lasting=False)


def _within_budget(outcome: Outcome, compiles: int, budget: int | None, prepared: Prepared) -> Outcome:
    """The outcome, or a failed one with JAX's own words where more was compiled than the workload declares."""
    if budget is None or compiles <= budget:
        return outcome

    def both_calls() -> None:
        for _ in range(2):
            prepared.wait(prepared.call(*prepared.args))

    told = private(explanation(both_calls))[-LONGEST_EXPLANATION:]
    differences = [line.strip(" *") for line in told.splitlines() if line.startswith("  * ")]
    why = f"; the last because {differences[-1]}" if differences else ""
    reason = f"compiled {compiles} programs, {budget} declared{why}; JAX's own explanation is kept beside this"
    return Outcome(
        status=Status.FAILED,
        reason=reason,
        stderr=told or None,
        values=outcome.values,
        notes=outcome.notes,
        fingerprints=outcome.fingerprints,
    )
