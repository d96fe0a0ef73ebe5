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

from harness.backends import BACKENDS, Backend
from harness.catalogue import Suite, SuiteError, find_suites
from harness.conditions import ProcessConditions
from harness.environment import allowed_cores, describe_environment, private
from harness.messages import (
    CHECK,
    COMPILATION,
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
from harness.modes import PREPARE, Prepared
from harness.plan import planned_case
from harness.probes import PROBES, Context
from harness.probes.context import as_numpy
from harness.probes.timing import measure
from harness.probes.trace import trace_folder
from harness.record import SCHEMA_VERSION, Artifact, LaunchRecord, Outcome, PlannedCase, Settings, Status, write_bytes
from harness.workload import NATIVE, Workload, call_with, wanted_names

Beat = Callable[[str | None, str], None]

INPUT_SEED = 0
"""Data values change speed (and power), so every process of every run gets the same."""


def answer(message: Message, heartbeat: int) -> None:
    """Does what the message asks and writes the answer to the file that it names."""

    def beat(variant: str | None, stage: str) -> None:
        os.write(heartbeat, json.dumps([variant, stage]).encode() + b"\n")

    reply: Answer
    try:
        reply = _describe(message) if isinstance(message, Describe) else _launch(message, beat)
    except SuiteError as error:
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
        arguments=_inputs(workload, message),
        clock=time.perf_counter,
        folder=Path(message.folder),
    )
    if message.kind == COMPILATION:
        _make_cold()
    if message.kind == TIMING:
        return _time(message, context, beat)
    if message.kind == CHECK:
        beat(None, "reference")
        try:
            _ = context.reference
        except Exception as error:  # noqa: BLE001  a suite's code may raise anything, and that is a result
            return Result(outcomes={name: dict.fromkeys(message.probes, failure(error)) for name in message.variants})
    outcomes = {variant: outcomes_of(variant, message.probes, context, beat) for variant in message.variants}
    return Result(outcomes=outcomes, artifacts=_artifacts(message))


def _use_cache(folder: str) -> None:
    jax.config.update("jax_compilation_cache_dir", folder)
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0)
    jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)


def _make_cold() -> None:
    """Forgets what making the inputs compiled, and compiles without the persistent cache from here on.

    One trivial program is compiled, so that the compiler's own start does not count for the first variant.
    """
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


def _inputs(workload: Workload, message: Launch) -> tuple[Any, ...]:
    arguments = call_with(workload.inputs, message.case.params, jax.random.key(INPUT_SEED))
    arguments = arguments if isinstance(arguments, tuple) else (arguments,)
    return tuple(jax.block_until_ready(jax.tree.map(jax.numpy.asarray, arguments)))


def prepare(variant: str, context: Context) -> Prepared:
    """A variant of the context's workload, ready to be called."""
    implementation, mode = context.workload.variant(variant)
    function = implementation.function
    if names := wanted_names(function, context.params):
        # With its name, which programs and traces carry.
        function = update_wrapper(partial(function, **{name: context.params[name] for name in names}), function)
    arguments = jax.tree.map(as_numpy, context.arguments) if mode == NATIVE else context.arguments
    return PREPARE[mode](function, arguments, context.clock)


def _no_beat(variant: str | None, stage: str) -> None:
    """For callers without a watcher."""


def outcomes_of(variant: str, probes: tuple[str, ...], context: Context, beat: Beat = _no_beat) -> dict[str, Outcome]:
    """Runs per-variant probes on one variant; what they raise is an outcome."""
    beat(variant, "prepare")
    try:
        prepared = prepare(variant, context)
    except Exception as error:  # noqa: BLE001  a suite's code may raise anything, and that is a result
        return {probe: failure(error) for probe in probes}
    outcomes = {}
    for probe in probes:
        beat(variant, probe)
        try:
            outcomes[probe] = PROBES[probe].run(variant, prepared, context)
        except Exception as error:  # noqa: BLE001  as above
            outcomes[probe] = failure(error)
    return outcomes


def failure(error: Exception) -> Outcome:
    """A failed outcome: the error's own words, and the traceback where stderr would be."""
    said = " ".join(str(error).split())
    text = "".join(traceback.format_exception(error))
    return Outcome(
        status=Status.FAILED, reason=private(f"{type(error).__name__}: {said}"[:1000]), stderr=private(text[-4000:])
    )


def _time(message: Launch, context: Context, beat: Beat) -> Answer:
    prepared = {}
    for variant in message.variants:
        beat(variant, "prepare")
        try:
            prepared[variant] = prepare(variant, context)
            prepared[variant].wait(prepared[variant].call(*prepared[variant].args))
        except Exception as error:  # noqa: BLE001  a suite's code may raise anything, and that is a result
            return Result(outcomes={variant: {TIMING: failure(error)}})
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
    """The captures that this process wrote."""
    if message.kind != TRACE:
        return ()
    case_folder = Path(message.folder)
    found = []
    for variant in message.variants:
        for path in sorted(trace_folder(case_folder, variant).rglob("*")):
            if path.is_file():
                data = path.read_bytes()
                found.append(
                    Artifact(
                        kind="trace",
                        variant=variant,
                        path=str(path.relative_to(case_folder)),
                        size_bytes=len(data),
                        sha256=hashlib.sha256(data).hexdigest(),
                    )
                )
    return tuple(found)
