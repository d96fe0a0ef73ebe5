"""What the first result costs, and what was compiled for it: stages, first call, program; in a fresh cold process."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import msgspec

from harness.machine.environment import private, said
from harness.plan.messages import COMPILATION as KIND
from harness.probes.context import Context, Probe
from harness.programs import cost, program, serialised
from harness.programs.jax_events import explanation, watched
from harness.programs.modes import Prepared, Stage, Stages
from harness.record import Number, Outcome, Status, write_bytes
from harness.record.outcomes import joined

LONGEST_EXPLANATION = 4000
"""As much as is kept of a failed process's stderr."""


def run(variant: str, prepared: Prepared, context: Context) -> Outcome:
    """Reads the stages that preparing took, times the first call, and counts what it and a second one compile."""
    with watched() as first:
        start = context.clock()
        prepared.wait(prepared.call(*prepared.args))
        first_call_s = context.clock() - start
    _, mode = context.workload.find_variant(variant)
    compiles = first.compiled + (0 if prepared.stages is None else prepared.stages.events.compiled)
    values: dict[str, tuple[Number | None, ...]] = {"first_call_s": (first_call_s,), "compiles": (compiles,)}
    if context.index == 0:  # the same in every process, and a call may be slow
        if mode == "jit" and (entries := _cache_entries(prepared)) is not None:
            values["cache_entries"] = (entries,)
        with watched() as second:
            prepared.wait(prepared.call(*prepared.args))
        values["recompiles"] = (second.compiled,)
        compiles += second.compiled
    described = Outcome(status=Status.OK)
    if (stages := prepared.stages) is not None:
        values |= {"trace_s": (stages.trace_s,), "lower_s": (stages.lower_s,), "compile_s": (stages.compile_s,)}
        described = _described(stages, thoroughly=context.index == 0)
        if context.index == 0 and context.folder is not None:
            _keep_texts(program.folder(context.folder, variant), stages)
    outcome = joined(Outcome(status=Status.OK, values=values), described)
    if mode == "aot" and context.folder is not None:  # where nothing may be kept, such as in a notebook, nothing is
        outcome = joined(outcome, _serialised(prepared, context))
    return _within_budget(outcome, compiles, context.compiles(variant), prepared, context.stage)


COMPILATION = Probe("compilation", KIND, run)


def _described(stages: Stages, *, thoroughly: bool) -> Outcome:
    """Which program it is; thoroughly, what is in it too, which is the same in every process.

    The stages have been timed by now: what cannot be read of the program is a note, whatever the reason.
    """
    values: dict[str, Number] = {}
    fingerprints: list[str] = []
    notes: list[str] = []

    def read(what: str, reading: Callable[[], Mapping[str, Number]]) -> None:
        try:
            values.update(reading())
        except cost.NotCountableError as error:
            notes.append(str(error))
        except Exception as error:  # noqa: BLE001  backends tell their programs in many ways, or not
            notes.append(f"{what} cannot be read: {said(error)}")

    def fingerprint() -> Mapping[str, Number]:
        fingerprints.append(program.fingerprint(stages.compiled))
        return {}

    read("which program this is", fingerprint)
    if thoroughly:
        read("the program before it is optimised", lambda: program.source_counts(stages))
        read("the optimised program", lambda: program.optimised_counts(stages))
        read("the executable", lambda: program.executable_size(stages.compiled))
        read("XLA's count", lambda: cost.counted(stages.compiled).values)
    return Outcome(
        status=Status.OK,
        values={name: (value,) for name, value in values.items()},
        notes=tuple(notes),
        fingerprints=tuple(fingerprints),
    )


def _cache_entries(prepared: Prepared) -> int | None:
    """Entries of the jitted function's own cache; None where this jax does not tell."""
    size = getattr(prepared.jitted, "_cache_size", None)
    return None if size is None else int(size())


def _serialised(prepared: Prepared, context: Context) -> Outcome:
    """The program written and loaded again, in every process: last of all, so that it disturbs nothing.

    What cannot be written or loaded is a note with the reason.
    """
    values: dict[str, tuple[Number | None, ...]] = {}
    notes: list[str] = []
    context.stage("serialise")
    for what, measure in (("the executable", serialised.executable), ("the exported program", serialised.exported)):
        try:
            measured = measure(prepared, context.clock)
        except Exception as error:  # noqa: BLE001  jax and backends refuse in many ways
            notes.append(f"{what} cannot be serialised and loaded: {said(error)}")
            continue
        values |= {name: (value,) for name, value in measured.items()}
    return Outcome(status=Status.OK, values=values, notes=tuple(notes))


def _keep_texts(folder: Path, stages: Stages) -> None:
    for kind, text in program.texts(stages).items():
        write_bytes(folder / program.TEXTS[kind], private(text).encode("utf8", "replace"), lasting=False)


def _within_budget(outcome: Outcome, compiles: int, budget: int | None, prepared: Prepared, stage: Stage) -> Outcome:
    """The outcome, or a failed one with JAX's own words where more was compiled than the workload declares."""
    if budget is None or compiles <= budget:
        return outcome

    def both_calls() -> None:
        for _ in range(2):
            prepared.wait(prepared.call(*prepared.args))

    stage("explanation")
    try:
        told = private(explanation(both_calls))[-LONGEST_EXPLANATION:]
    except Exception as error:  # noqa: BLE001  the finding stands without it
        told = f"no explanation: {said(error)}"
    differences = [line.strip(" *") for line in told.splitlines() if line.startswith("  * ")]
    why = f"; the last because {differences[-1]}" if differences else ""
    where = "JAX's own explanation is on the page, and in case.json as stderr"
    reason = f"compiled {compiles} programs, {budget} declared{why}; {where}"
    return msgspec.structs.replace(outcome, status=Status.FAILED, reason=reason, stderr=told or None)
