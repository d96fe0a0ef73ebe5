"""The child: one fresh process that answers one message. It alone imports suites and touches devices."""

from __future__ import annotations

import hashlib
import json
import os
import time
import traceback
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime
from functools import partial, update_wrapper
from pathlib import Path
from typing import Any

import jax
import msgspec
from jax.experimental.compilation_cache import compilation_cache

from harness import program
from harness.backends import BACKENDS, Backend
from harness.catalogue import Suite, SuiteError, find_suites
from harness.conditions import ProcessConditions
from harness.environment import allowed_cores, describe_environment, device_memory_bytes, private
from harness.messages import (
    CACHING,
    CHECK,
    COMPILATION,
    SHAPES,
    TIMING,
    TRACE,
    Answer,
    Describe,
    Description,
    Launch,
    Message,
    Problem,
    Result,
    SuiteDescription,
    WorkloadDescription,
)
from harness.modes import PREPARE, Prepared, Stage, fresh, prepare_stream
from harness.plan import planned_case
from harness.probes import PROBES, Context, caching
from harness.probes.context import as_numpy
from harness.probes.memory import does_not_fit, peak_bytes, size_bytes
from harness.probes.timing import measure
from harness.probes.trace import trace_folder
from harness.record import (
    DOES_NOT_FIT,
    SCHEMA_VERSION,
    Artifact,
    LaunchRecord,
    Outcome,
    Param,
    PlannedCase,
    Settings,
    Status,
    write_bytes,
)
from harness.workload import NATIVE, DeclarationError, Workload, call_with, wanted_names

Beat = Callable[[str | None, str], None]

COMPILED = ("jit", "aot")
"""Modes with one program of their own."""

NUMERICS = "numerics"
INPUT_SEED = 0
"""Data values change speed (and power), so every process of every run gets the same."""


def answer(message: Message, heartbeat: int) -> None:
    """Does what the message asks and writes the answer to the file that it names."""

    def beat(variant: str | None, stage: str) -> None:
        os.write(heartbeat, json.dumps([variant, stage]).encode() + b"\n")

    reply: Answer
    try:
        reply = _describe(message) if isinstance(message, Describe) else _launch(message, beat)
    except (SuiteError, DeclarationError) as error:
        reply = Problem(message=private(str(error)))
    write_bytes(Path(message.result), msgspec.json.encode(reply), lasting=False)


def _describe(message: Describe) -> Answer:
    suites = find_suites(message.suites)  # first, as in a launch: a suite may set flags that devices follow
    environment = None
    if message.devices:
        if problem := _missing_device(BACKENDS[message.backend]):
            return Problem(message=problem)
        environment = describe_environment(jax)
    return Description(
        suites=tuple(_describe_suite(suite, message) for suite in suites),
        cases=tuple(
            planned_case(suite.name, workload, params)
            for suite in suites
            for workload in suite.workloads
            for params in workload.cases(message.level, message.backend)
        ),
        environment=environment,
    )


def _describe_suite(suite: Suite, message: Describe) -> SuiteDescription:
    return SuiteDescription(
        name=suite.name,
        description=suite.description,
        workloads=tuple(
            WorkloadDescription(
                name=workload.name,
                description=workload.description,
                params={name: values.at(message.level, message.backend) for name, values in workload.params.items()},
                variants=tuple(
                    (f"{item.name}:{mode}", item.description)
                    for item in workload.implementations
                    for mode in item.modes
                ),
                baseline=workload.baseline_variant,
                cases=sum(1 for _ in workload.cases(message.level, message.backend)),
            )
            for workload in suite.workloads
        ),
    )


def _missing_device(backend: Backend) -> str | None:
    """Why the backend's devices cannot be used, or None. JAX would fall back to the CPU without a word."""
    try:
        found = jax.default_backend()
        jax.devices()
    except (RuntimeError, AssertionError, ValueError) as error:
        said = " ".join(str(error).split()) or type(error).__name__
    else:
        if found == backend.jax_backend:
            return None
        said = f"its default backend is '{found}'"
    return (
        f"no device for --backend {backend.name}: looked for {backend.looked_for}; jax says: {private(said)}. "
        f"Install {backend.extra} on a machine that has one, or measure here with --backend cpu"
    )


def _launch(message: Launch, beat: Beat) -> Answer:
    backend = BACKENDS[message.backend]
    beat(None, "start")
    _use_cache(message.cache)
    beat(None, "import suites")
    workload = _find(message)
    if problem := _missing_device(backend):
        return Problem(message=problem)
    beat(None, "inputs")
    context = Context(
        workload=workload,
        params=message.case.params,
        backend=backend,
        arguments=(),
        clock=time.perf_counter,
        folder=Path(message.folder),
        capacity_bytes=device_memory_bytes(jax.devices()[0]),
        index=message.index,
        stage=lambda name: beat(None, name),
    )
    if message.kind == SHAPES:
        return _shapes(message, context, beat)
    context.arguments = inputs(workload, context.params)
    if message.kind == TIMING:
        return _time(message, context, beat)
    if message.kind == CACHING:
        return _caching(message, context, beat)
    if message.kind == COMPILATION:
        _forget(persistent=True)
    found = {name: outcomes_of(name, message.kind, message.probes, context, beat) for name in message.variants}
    return Result(outcomes=found, artifacts=_artifacts(message))


def _use_cache(folder: str) -> None:
    jax.config.update("jax_enable_compilation_cache", True)
    jax.config.update("jax_compilation_cache_dir", folder)
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0)
    jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)


def _forget(*, persistent: bool) -> None:
    """Forgets what making the inputs compiled.

    One trivial program is compiled, so that the compiler's own start does not count for the first variant.

    Args:
      persistent: Whether to compile without the persistent cache from here on.
    """
    if persistent:
        jax.config.update("jax_enable_compilation_cache", False)
        compilation_cache.reset_cache()
    jax.clear_caches()
    jax.jit(lambda: jax.numpy.zeros(()))().block_until_ready()


def _find(message: Launch) -> Workload:
    for suite in find_suites(message.suites):
        for workload in suite.workloads:
            if workload.name == message.case.workload:
                _check_unchanged(planned_case(suite.name, workload, message.case.params), message.case)
                return workload
    raise SuiteError(f"the workload '{message.case.workload}' is gone from {', '.join(message.suites)}")


def _check_unchanged(now: PlannedCase, planned: PlannedCase) -> None:
    """Raises SuiteError where the file was edited after the run began: one run is one program."""
    if (now.definition, now.variants) != (planned.definition, planned.variants):
        raise SuiteError(f"the suite of {planned.name} was edited while the run went on; start a new run")


def inputs(workload: Workload, params: dict[str, Param]) -> tuple[Any, ...]:
    """A workload's arguments, ready on the device; of a stream, a tuple of argument tuples."""
    made = call_with(workload.inputs, params, jax.random.key(INPUT_SEED))
    arguments = tuple(map(_as_tuple, made)) if workload.stream else _as_tuple(made)
    return tuple(jax.block_until_ready(jax.tree.map(jax.numpy.asarray, arguments)))


def _as_tuple(arguments: Any) -> tuple[Any, ...]:
    return arguments if isinstance(arguments, tuple) else (arguments,)


def _shapes(message: Launch, context: Context, beat: Beat) -> Answer:
    """What does not fit by the shapes of its arguments and results alone; nothing else is answered.

    In a process of its own: what a suite's code keeps of being traced ends with it.
    """
    workload = context.workload
    make = partial(call_with, workload.inputs, context.params)
    try:
        made = jax.eval_shape(make, jax.random.key(INPUT_SEED))
    except Exception:  # noqa: BLE001  inputs may be made in any way, also without JAX; then making them tells
        return Result()
    shapes = context.arguments = tuple(map(_as_tuple, made)) if workload.stream else _as_tuple(made)
    # Shapes do not tell which of several devices would hold how much.
    capacity = None if context.capacity_bytes is None else context.capacity_bytes * jax.device_count()
    if reason := does_not_fit(size_bytes(shapes), capacity):
        return Result(outcomes={name: _planned(name, message.probes, reason, context) for name in message.variants})
    found = {}
    for name in message.variants:
        implementation, mode = workload.variant(name)
        if mode == "eager" and not workload.stream:
            beat(name, "trace")
            needed = _arguments_and_results(implementation.function, context)
            if reason := does_not_fit(needed, capacity):
                found[name] = dict.fromkeys(message.probes, Outcome(status=Status.UNSUPPORTED, reason=reason))
    return Result(outcomes=found)


def _arguments_and_results(function: Callable[..., Any], context: Context) -> int | None:
    """Bytes that a call holds at least; None for code that cannot be traced."""
    try:
        results = jax.eval_shape(partial(function, **_static(function, context.params)), *context.arguments)
    except Exception:  # noqa: BLE001  eager code may do what a trace cannot; then calling it tells
        return None
    return size_bytes((context.arguments, results))


def _planned(variant: str, probes: tuple[str, ...], reason: str, context: Context) -> dict[str, Outcome]:
    """What can be said of a variant whose arguments cannot be made: its program's plan, from their shapes."""
    mode = context.workload.variant(variant)[1]
    if context.workload.stream or mode not in COMPILED:
        return dict.fromkeys(probes, Outcome(status=Status.UNSUPPORTED, reason=f"{reason} for its arguments alone"))
    return outcomes_of(variant, CHECK, probes, context, too_large=reason)


def prepare(variant: str, context: Context, stage: Stage = lambda name: None) -> Prepared:
    """A variant of the context's workload, ready to be called."""
    implementation, mode = context.workload.variant(variant)
    function = implementation.function
    if static := _static(function, context.params):
        # With its name, which programs and traces carry.
        function = update_wrapper(partial(function, **static), function)
    arguments = jax.tree.map(as_numpy, context.arguments) if mode == NATIVE else context.arguments
    if context.workload.stream:
        return prepare_stream(mode, function, arguments)
    return PREPARE[mode](function, arguments, context.clock, stage)


def _static(function: Callable[..., Any], params: dict[str, Param]) -> dict[str, Param]:
    return {name: params[name] for name in wanted_names(function, params)}


def _no_beat(variant: str | None, stage: str) -> None:
    """For callers without a watcher."""


def outcomes_of(
    variant: str,
    kind: str,
    probes: tuple[str, ...],
    context: Context,
    beat: Beat = _no_beat,
    *,
    too_large: str | None = None,
) -> dict[str, Outcome]:
    """Runs per-variant probes of one kind on one variant; what they raise is an outcome.

    Args:
      too_large: Why the variant cannot be called, if that is known.
    """
    at = "prepare"

    def stage(name: str) -> None:
        nonlocal at
        at = name
        beat(variant, name)

    stage(at)
    context.stage = stage
    try:
        prepared = prepare(variant, context, stage)
    except Exception as error:  # noqa: BLE001  a suite's code may raise anything, and that is a result
        return {probe: failure(error, at) for probe in probes}
    if kind == CHECK and prepared.stages is not None:
        # The plan knows better than the arguments alone: also temporaries, and arguments that are not used.
        planned = does_not_fit(peak_bytes(prepared.stages.compiled, context), context.capacity_bytes)
        too_large = planned or (None if too_large is None else f"{too_large} for its arguments alone")
    outcomes = {}
    for probe in probes:
        if too_large is not None and PROBES[kind, probe].calls:
            outcomes[probe] = Outcome(status=Status.UNSUPPORTED, reason=too_large)
            continue
        try:
            if probe == NUMERICS:
                at = "reference"
                beat(None, at)  # common to all variants
                _ = context.reference
            stage(probe)
            outcomes[probe] = PROBES[kind, probe].run(variant, prepared, context)
        except Exception as error:  # noqa: BLE001  as above
            outcomes[probe] = failure(error, at)
    return outcomes


def failure(error: Exception, stage: str) -> Outcome:
    """A failed outcome: the stage, the error's own words, and the traceback where stderr would be.

    A compiler that finds a program too large for its device says what the plan of others tells: it does not fit.
    """
    words = " ".join(str(error).split())
    if stage == "compile" and "RESOURCE_EXHAUSTED" in words:
        return Outcome(status=Status.UNSUPPORTED, reason=private(f"{DOES_NOT_FIT}: {words}")[:1000])
    text = "".join(traceback.format_exception(error))
    return Outcome(
        status=Status.FAILED,
        reason=private(f"in stage '{stage}': {type(error).__name__}: {words}")[:1000],
        stderr=private(text)[-4000:],
    )


def _caching(message: Launch, context: Context, beat: Beat) -> Answer:
    """Times one call of each variant in one regime of the caches."""
    regime, workload = caching.REGIMES[message.regime], context.workload
    changed = {caching.NEW_SHAPE: message.case.new_shape, caching.NEW_STATIC: message.case.new_static}
    params = {**context.params, **(changed.get(message.regime) or {})}
    try:
        arguments = context.arguments if params == context.params else inputs(workload, params)
    except Exception as error:  # noqa: BLE001  a suite's code may raise anything, and that is a result
        return Result(outcomes={name: {message.kind: failure(error, "inputs")} for name in message.variants})
    _forget(persistent=message.regime != caching.CACHED)
    found = {}
    for variant in message.variants:
        function = workload.variant(variant)[0].function
        try:
            found[variant] = caching.run(
                regime,
                fresh(function),
                usual=caching.Call(context.arguments, _static(function, context.params)),
                measured=caching.Call(arguments, _static(function, params)),
                stream=workload.stream,
                clock=context.clock,
                stage=partial(beat, variant),
            )
        except Exception as error:  # noqa: BLE001  as above
            found[variant] = failure(error, regime.words)
    return Result(outcomes={variant: {message.kind: outcome} for variant, outcome in found.items()})


def _time(message: Launch, context: Context, beat: Beat) -> Answer:
    prepared = {}
    for variant in message.variants:
        beat(variant, "prepare")
        try:
            prepared[variant] = prepare(variant, context)
            prepared[variant].wait(prepared[variant].call(*prepared[variant].args))
        except Exception as error:  # noqa: BLE001  a suite's code may raise anything, and that is a result
            return Result(outcomes={variant: {TIMING: failure(error, "prepare")}})
    launch = timed(
        prepared,
        context,
        message.settings,
        case=message.case.id,
        index=message.index,
        seed=message.seed,
        beat=beat,
    )
    return Result(launch=launch)


def timed(
    prepared: dict[str, Prepared],
    context: Context,
    settings: Settings,
    *,
    case: str,
    index: int,
    seed: int,
    beat: Beat = _no_beat,
) -> LaunchRecord:
    """Times variants alternately in this process."""
    started = datetime.now(UTC).isoformat(timespec="seconds")
    with closing(ProcessConditions()) as conditions:
        variants = measure(
            prepared,
            settings,
            seed=seed,
            clock=context.clock,
            conditions=conditions,
            cores=allowed_cores(),
            beat=beat,
        )
    return LaunchRecord(
        schema_version=SCHEMA_VERSION,
        case=case,
        index=index,
        kind=TIMING,
        seed=seed,
        started=started,
        variants=variants,
    )


def _artifacts(message: Launch) -> tuple[Artifact, ...]:
    """The files that this process wrote: captures, or the texts of programs."""
    folder = Path(message.folder)
    found = []
    for variant in message.variants:
        if message.kind == TRACE:
            paths = [("trace", path) for path in sorted(trace_folder(folder, variant).rglob("*"))]
        elif message.kind == COMPILATION and message.index == 0:
            paths = [(kind, program.folder(folder, variant) / name) for kind, name in program.TEXTS.items()]
        else:
            return ()
        found += [_artifact(kind, variant, path, folder) for kind, path in paths if path.is_file()]
    return tuple(found)


def _artifact(kind: str, variant: str, path: Path, folder: Path) -> Artifact:
    data = path.read_bytes()
    return Artifact(
        kind=kind,
        variant=variant,
        path=str(path.relative_to(folder)),
        size_bytes=len(data),
        sha256=hashlib.sha256(data).hexdigest(),
    )
