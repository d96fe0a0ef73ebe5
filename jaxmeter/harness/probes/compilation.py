"""What the first result costs, and what was compiled for it: stages, first call, program; in a fresh cold process."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import msgspec

from jaxmeter.harness.machine import jax_internals as internals
from jaxmeter.harness.machine.environment import describe_error, make_private
from jaxmeter.harness.machine.jax_internals import BUDGETS_ARE_FOR, find_jax_release
from jaxmeter.harness.probes.context import Context, Findings, describe_unread, probe_each
from jaxmeter.harness.programs import program, traps
from jaxmeter.harness.programs.jax_events import (
    describe_silent_event,
    explain_misses,
    find_silent_events,
    forget_compiled,
    watch_jax,
)
from jaxmeter.harness.programs.modes import Prepared, Stages
from jaxmeter.harness.programs.traps import Called, watch_callbacks
from jaxmeter.harness.record import CaseFolder, CompilationDetails, Number, Outcome, Status, write_bytes
from jaxmeter.harness.record.files import PROGRAM_TEXTS
from jaxmeter.harness.record.outcomes import join

COUNTED_BY_EVENTS = ("compiles", "recompiles")

LONGEST_EXPLANATION = 4000
"""As much as is kept of a failed process's stderr."""

Values = dict[str, tuple[Number | None, ...]]


def probe_variants(variants: tuple[str, ...], context: Context) -> Findings:
    """Compiles each without any cache."""
    forget_compiled(persistent=True)
    return probe_each("compilation", compile_and_call, variants, context)


def compile_and_call(variant: str, prepared: Prepared, context: Context) -> Outcome:
    """Reads the stages that preparing took, times the first call, and counts what it and a second one compile.

    Where nothing is called, the stages and the program are all.
    """
    values, compiles, called = _call_twice(variant, prepared, context) if context.platform.measures else ({}, 0, None)
    described = Outcome(status=Status.OK)
    if (stages := prepared.stages) is not None:
        values |= {"trace_s": (stages.trace_s,), "lower_s": (stages.lower_s,), "compile_s": (stages.compile_s,)}
        has_options = any(each.compiler_options for each in context.workload.implementations)
        described = _describe(stages, thoroughly=context.index == 0, of_code=has_options)
        if context.index == 0 and context.folder is not None:
            _keep_texts(context.folder, variant, stages)
    if silent := find_silent_events():  # checked after the timed first call: the check compiles
        values, compiles = {name: value for name, value in values.items() if name not in COUNTED_BY_EVENTS}, 0
        described = join(described, Outcome(status=Status.OK, notes=tuple(map(describe_silent_event, silent))))
    outcome = join(Outcome(status=Status.OK, values=values), described)
    if context.find_variant(variant)[1] == "aot" and context.folder is not None and context.platform.measures:
        # Where nothing may be kept, such as in a notebook, nothing is.
        outcome = join(outcome, _load_again(prepared, context))
    if context.index == 0:  # last of all: nothing more is timed in this process
        outcome = join(outcome, _find_traps(variant, prepared, called, context))
    return _hold_budget(outcome, compiles, context.compiles(variant), prepared, context)


def _call_twice(variant: str, prepared: Prepared, context: Context) -> tuple[Values, int, Called | None]:
    """The first call's time and what was compiled for it; what an equal one compiles and calls in Python.

    An equal one is called in the first process only.
    """
    with watch_jax() as first:
        start = context.clock()
        prepared.wait(prepared.call(*prepared.args))
        first_call_s = context.clock() - start
    compiles = first.compiled + (0 if prepared.stages is None else prepared.stages.events.compiled)
    values: Values = {"first_call_s": (first_call_s,), "compiles": (compiles,)}
    if _count_calls(context) == 1:
        return values, compiles, None
    is_jit = context.find_variant(variant)[1] == "jit"
    if is_jit and (entries := _count_cache_entries(prepared)) is not None:
        values["cache_entries"] = (entries,)
    with watch_jax() as second, watch_callbacks() as called:
        prepared.wait(prepared.call(*prepared.args))
    values["recompiles"] = (second.compiled,)
    return values, compiles + second.compiled, called


def _describe(stages: Stages, *, thoroughly: bool, of_code: bool) -> Outcome:
    """Which program it is; thoroughly, what is in it too, which is the same in every process.

    Of the machine code, a hash shows which variants have equal code in spite of their compiler options.

    The stages have been timed by now: what cannot be read of the program is a note, whatever the reason.
    """
    values: dict[str, Number] = {}
    fingerprints: list[str] = []
    codes: list[str | None] = []
    notes: list[str] = []

    def read(what: str, reading: Callable[[], Mapping[str, Number]]) -> None:
        try:
            values.update(reading())
        except program.NotCountableError as error:
            notes.append(str(error))
        except Exception as error:  # noqa: BLE001  backends describe their programs in many ways, or not
            notes.append(describe_unread(what, error))

    def fingerprint() -> Mapping[str, Number]:
        fingerprints.append(program.find_fingerprint(stages))
        return {}

    def code() -> Mapping[str, Number]:
        codes.append(program.find_code_fingerprint(stages))
        return {}

    read("which program this is", fingerprint)
    if thoroughly and of_code:
        read("whether its compiler options have an effect", code)
    if thoroughly:
        read("the program before it is optimised", lambda: program.count_source(stages))
        read("the optimised program", lambda: program.count_optimised(stages))
        read("the executable", lambda: program.measure_executable(stages.compiled))
        read("XLA's count", lambda: program.count_work(stages.compiled).values)
    return Outcome(
        status=Status.OK,
        values={name: (value,) for name, value in values.items()},
        notes=tuple(notes),
        details=CompilationDetails(
            fingerprints=tuple(fingerprints), cached=stages.cached, code=next(iter(codes), None)
        ),
    )


def _find_traps(variant: str, prepared: Prepared, called: Called | None, context: Context) -> Outcome:
    """Why the program does not do the work that its source suggests: the same in every process, and never a failure."""
    context.stage("traps")
    notes: list[str] = []
    try:
        has_program = prepared.stages is not None or prepared.traceable is not None
        wide = context.wide_inputs if has_program else ()
    except Exception as error:  # noqa: BLE001  a suite's code may raise anything when it is called again
        wide = ()
        notes.append(f"the dtypes of the inputs cannot be read: {describe_error(error)}")
    findings = traps.find_traps(prepared, wide, called)
    declared = context.declared_traps(variant)
    marked = tuple(msgspec.structs.replace(trap, declared=trap.kind in declared) for trap in findings.traps)
    unknown = findings.unknown
    details = CompilationDetails(traps=marked, unknown_traps=tuple(unknown)) if marked or unknown else None
    notes += [remark.text for remark in findings.remarks if remark.kind not in declared]
    return Outcome(status=Status.OK, notes=(*notes, *unknown.values()), details=details)


def _count_cache_entries(prepared: Prepared) -> int | None:
    """Return the number of entries of the jitted function's cache; None if this JAX does not report it."""
    size = getattr(prepared.jitted, internals.CACHE_SIZE.name, None)
    return None if size is None else int(size())


def _load_again(prepared: Prepared, context: Context) -> Outcome:
    """The program written and loaded again, in every process: last of all, so that it disturbs nothing.

    What cannot be written or loaded is a note with the reason.
    """
    values: dict[str, tuple[Number | None, ...]] = {}
    notes: list[str] = []
    context.stage("serialise")
    for what, measure in (
        ("the executable", program.load_executable),
        ("the exported program", program.load_exported),
    ):
        try:
            measured = measure(prepared, context.clock)
        except Exception as error:  # noqa: BLE001  jax and backends refuse in many ways
            notes.append(f"{what} cannot be serialised and loaded: {describe_error(error)}")
            continue
        values |= {name: (value,) for name, value in measured.items()}
    return Outcome(status=Status.OK, values=values, notes=tuple(notes))


def _keep_texts(folder: CaseFolder, variant: str, stages: Stages) -> None:
    for kind, text in program.read_texts(stages).items():
        path = folder.programs(variant) / PROGRAM_TEXTS[kind]
        write_bytes(path, make_private(text).encode("utf8", "replace"), lasting=False)


def _hold_budget(outcome: Outcome, compiles: int, budget: int | None, prepared: Prepared, context: Context) -> Outcome:
    """The outcome, or a failed one with JAX's own words where more was compiled than the workload declares."""
    if budget is None or compiles <= budget:
        return outcome
    if find_jax_release() < BUDGETS_ARE_FOR:
        note = f"compiled {compiles} programs, {budget} declared; declared numbers are not held for this release of jax"
        return msgspec.structs.replace(outcome, notes=(*outcome.notes, note))

    def repeat_calls() -> None:
        for _ in range(_count_calls(context)):
            prepared.wait(prepared.call(*prepared.args))

    context.stage("explanation")
    why = ""
    try:
        prepared.reset()  # the counted calls began with the inputs: a later state may be of other types
        programs = [make_private(text) for text in explain_misses(repeat_calls)]
        explanation = "\n".join(filter(None, programs))[-LONGEST_EXPLANATION:]
        why = _find_difference(programs[-1]) if programs else ""
    except Exception as error:  # noqa: BLE001  the finding is valid without it
        explanation = f"no explanation: {describe_error(error)}"
    because = f"; the last because {why}" if why else ""
    where = "JAX's own explanation is on the page, and in the case's record"
    reason = f"compiled {compiles} programs, {budget} declared{because}; {where}"
    details = msgspec.structs.replace(outcome.details or CompilationDetails(), explanation=explanation or None)
    return msgspec.structs.replace(outcome, status=Status.FAILED, reason=reason, details=details)


def _count_calls(context: Context) -> int:
    """How many calls are counted: a second one in the first process only, since a call may be slow."""
    return 1 if context.index > 0 else 2


def _find_difference(explanation: str) -> str:
    """Return what differs from the closest earlier call, in JAX's words; empty where JAX names no difference."""
    differences = [line.strip(" *") for line in explanation.splitlines() if line.startswith("  * ")]
    if not differences:
        return ""
    first = differences[0].partition("https://")[0].strip()  # JAX appends the page on weak types without a space
    return first if len(differences) == 1 else f"{first}, and {len(differences) - 1} more"
