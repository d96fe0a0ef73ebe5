"""The child: one fresh process that answers one message. It alone imports suites and touches devices."""

from __future__ import annotations

import hashlib
import json
import os
import time
from contextlib import closing
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import jax
import msgspec
from msgspec.structs import replace

from harness.child.prepare import Beat, failure, inputs, no_beat, outcomes_of, prepare, static
from harness.child.shapes import look_at_shapes
from harness.declare.catalogue import Suite, SuiteError, find_suites
from harness.declare.levels import DeclarationError
from harness.declare.workload import Workload
from harness.machine.disturbance import ProcessConditions
from harness.machine.environment import allowed_cores, describe_environment, device_memory_bytes, private
from harness.machine.places import BACKENDS, Backend
from harness.plan.cases import planned_case
from harness.plan.messages import (
    CACHING,
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
from harness.probes import Context, caching
from harness.probes.timing import measure
from harness.probes.trace import trace_folder
from harness.programs import program
from harness.programs.caches import forget, use_cache
from harness.programs.modes import Prepared, fresh
from harness.record import SCHEMA_VERSION, Artifact, LaunchRecord, PlannedCase, Settings, write_bytes


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
            _planned(planned_case(suite.name, workload, params, message.backend), message)
            for suite in suites
            for workload in suite.workloads
            for params in workload.list_cases(message.level, message.backend)
        ),
        environment=environment,
    )


def _planned(case: PlannedCase, message: Describe) -> PlannedCase:
    """The case, or the same with nothing to run where it needs more devices than there are; a CPU is any number."""
    if message.backend == "cpu" or not message.devices or case.devices <= jax.device_count():
        return case
    reason = f"needs {case.devices} devices, found {jax.device_count()}"
    return replace(case, variants=tuple(replace(item, skip=item.skip or reason) for item in case.variants))


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
                cases=sum(1 for _ in workload.list_cases(message.level, message.backend)),
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
    use_cache(message.cache)
    _set_up(message.case, backend)
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
        return look_at_shapes(message, context, beat)
    context.arguments = inputs(workload, context.params)
    if message.kind == TIMING:
        return _time(message, context, beat)
    if message.kind == CACHING:
        return _caching(message, context, beat)
    if message.kind == COMPILATION:
        forget(persistent=True)
    found = {name: outcomes_of(name, message.kind, message.probes, context, beat) for name in message.variants}
    return Result(outcomes=found, artifacts=_artifacts(message))


def _set_up(case: PlannedCase, backend: Backend) -> None:
    """Sets what jax reads when its backend begins."""
    for name, value in case.config.items():
        try:
            jax.config.update(name, value)
        except (AttributeError, TypeError, ValueError) as error:
            raise DeclarationError(f"workload '{case.workload}': config sets '{name}' to {value!r}: {error}") from error
    if backend.name == "cpu" and case.devices > 1:
        jax.config.update("jax_num_cpu_devices", case.devices)


def _find(message: Launch) -> Workload:
    for suite in find_suites(message.suites):
        for workload in suite.workloads:
            if workload.name == message.case.workload:
                _check_unchanged(planned_case(suite.name, workload, message.case.params, message.backend), message.case)
                return workload
    raise SuiteError(f"the workload '{message.case.workload}' is gone from {', '.join(message.suites)}")


def _check_unchanged(now: PlannedCase, planned: PlannedCase) -> None:
    """Raises SuiteError where the file was edited after the run began: one run is one program."""
    if (now.definition, now.variants) != (planned.definition, planned.variants):
        raise SuiteError(f"the suite of {planned.name} was edited while the run went on; start a new run")


def _caching(message: Launch, context: Context, beat: Beat) -> Answer:
    """Times one call of each variant in one regime of the caches."""
    regime, workload = caching.REGIMES[message.regime], context.workload
    changed = {caching.NEW_SHAPE: message.case.new_shape, caching.NEW_STATIC: message.case.new_static}
    params = {**context.params, **(changed.get(message.regime) or {})}
    try:
        arguments = context.arguments if params == context.params else inputs(workload, params)
    except Exception as error:  # noqa: BLE001  a suite's code may raise anything, and that is a result
        return Result(outcomes={name: {message.kind: failure(error, "inputs")} for name in message.variants})
    forget(persistent=message.regime != caching.CACHED)
    found = {}
    for variant in message.variants:
        function = workload.find_variant(variant)[0].function
        try:
            found[variant] = caching.run(
                regime,
                fresh(function),
                usual=caching.Call(context.arguments, static(function, context.params)),
                measured=caching.Call(arguments, static(function, params)),
                stream=workload.declaration.stream,
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
            prepared[variant].reset()
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
    beat: Beat = no_beat,
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
