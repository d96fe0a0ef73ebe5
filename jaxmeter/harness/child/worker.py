"""The child: one fresh process that answers one message. It alone imports suites and touches devices."""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import jax
import msgspec
from msgspec.structs import replace

from jaxmeter.harness.child.family import run_before
from jaxmeter.harness.child.inputs import find_inputs, probe_shapes
from jaxmeter.harness.declare.catalogue import Suite, SuiteError, find_suites, find_suites_once
from jaxmeter.harness.declare.declaration import DeclarationError, Implementation
from jaxmeter.harness.declare.fingerprint import find_failing_line
from jaxmeter.harness.declare.own_packages import list_own_packages
from jaxmeter.harness.declare.workload import Workload
from jaxmeter.harness.machine.environment import (
    describe_environment,
    device_memory_bytes,
    make_private,
    recorded_options,
)
from jaxmeter.harness.machine.interference import keep_on_cores, refuse_settings
from jaxmeter.harness.machine.platforms import DEFAULT_BACKEND, Platform, refuse_ranks
from jaxmeter.harness.plan.cases import is_unchanged, plan_case
from jaxmeter.harness.plan.messages import (
    Answer,
    Begin,
    Describe,
    Description,
    Measure,
    MeasurePeaks,
    Message,
    PeaksFound,
    Result,
    SuiteDescription,
    SuiteProblem,
    WorkloadDescription,
)
from jaxmeter.harness.plan.probes import DEFAULT_THRESHOLD, PROBES
from jaxmeter.harness.plan.processes import SHAPES, PlannedProcess
from jaxmeter.harness.probes import Context, run_probes
from jaxmeter.harness.probes.calibration import measure_peaks
from jaxmeter.harness.probes.context import Beat
from jaxmeter.harness.probes.remote import Address, Arm
from jaxmeter.harness.programs.arguments import make_shapes
from jaxmeter.harness.programs.jax_events import use_cache
from jaxmeter.harness.programs.older_jax import make_devices_of_cpu
from jaxmeter.harness.record import Artifact, CaseFolder, Param, PlannedCase, write_bytes
from jaxmeter.harness.record.wording import write_options


def describe(message: Describe) -> Answer:
    """Catalogue and cases; the environment where devices are asked for, or why they cannot be used."""
    if message.cores is not None:
        keep_on_cores(message.cores, 0)
    suites = find_suites(message.suites)  # first, as in a process: a suite may set flags that devices follow
    environment = None
    if message.devices:
        if (problem := find_missing_device(message.platform)) is not None:
            return SuiteProblem(message=problem)
        if (problem := refuse_ranks({}, jax.process_count())) is not None:
            return SuiteProblem(message=problem)
        if suites and (problem := refuse_settings(jax.config.values, os.environ)) is not None:
            return SuiteProblem(message=problem)
        environment = describe_environment(jax)
    return Description(
        suites=tuple(_describe_suite(suite, message) for suite in suites),
        cases=tuple(
            _limit_to_devices(_plan(suite, workload, params, message.platform), message)
            for suite in suites
            for workload in suite.workloads
            for params in workload.list_cases(message.level, message.platform.device)
        ),
        environment=environment,
        own_packages=list_own_packages(suites) if message.devices else None,
    )


def _plan(suite: Suite, workload: Workload, params: dict[str, Param], platform: Platform) -> PlannedCase:
    """A case of a workload, as a record can hold it.

    Raises:
      SuiteError: A declared value, or what a declared function gives, is of a wrong type; or the function raises.
    """
    try:
        case = plan_case(suite.name, workload, params, platform, suite.question)
        return msgspec.json.decode(msgspec.json.encode(case), type=PlannedCase)
    except DeclarationError as error:
        raise SuiteError(f"suite '{suite.name}': {workload.location}: {error}") from error
    except BaseException as error:
        where = find_failing_line(error) or workload.location
        what = f"workload '{workload.name}' of suite '{suite.name}' cannot be planned with {params}"
        hint = "see what its options and their functions give; docs/suites.md has the types"
        raise SuiteError(f"{what}: {where}: {type(error).__name__}: {error}; {hint}") from error


def find_missing_device(platform: Platform) -> str | None:
    """Why the platform's devices cannot be used, or None. JAX would fall back to the CPU without a word."""
    try:
        backend = jax.default_backend()
        jax.devices()
    except (RuntimeError, AssertionError, ValueError) as error:
        words = " ".join(str(error).split()) or type(error).__name__
    else:
        if backend == platform.jax_backend:
            return None
        words = f"its default backend is '{backend}'"
    return (
        f"no device for --backend {platform.name}: looked for {platform.looked_for}; jax says: {make_private(words)}. "
        f"Install {platform.extra} on a machine that has one, or measure here with --backend {DEFAULT_BACKEND}"
    )


def _limit_to_devices(case: PlannedCase, message: Describe) -> PlannedCase:
    """The case, or the same with nothing to run where it needs more devices than there are."""
    if message.platform.any_device_count or not message.devices or case.devices <= jax.device_count():
        return case
    reason = f"needs {case.devices} devices, found {jax.device_count()}"
    return replace(case, variants=tuple(replace(item, skip=item.skip or reason) for item in case.variants))


def _describe_implementation(implementation: Implementation) -> str:
    """Its first line, and what it is compiled with."""
    options = write_options(recorded_options(implementation.compiler_options))
    return f"{implementation.description}  ({options})" if options else implementation.description


def _describe_suite(suite: Suite, message: Describe) -> SuiteDescription:
    device = message.platform.device
    return SuiteDescription(
        name=suite.name,
        description=suite.description,
        warnings=suite.warnings,
        workloads=tuple(
            WorkloadDescription(
                name=workload.name,
                description=workload.description,
                params={
                    name: values.at(message.level, message.platform.device) for name, values in workload.params.items()
                },
                variants=tuple(
                    (f"{item.name}:{mode}", _describe_implementation(item))
                    for item in workload.implementations
                    for mode in item.modes
                ),
                baseline=workload.baseline_variant,
                cases=sum(1 for _ in workload.list_cases(message.level, device)),
            )
            for workload in suite.workloads
        ),
    )


def answer(message: Message, heartbeat: int) -> None:
    """Does what the message asks and writes the answer to the file that it names."""

    def beat(variant: str | None, stage: str) -> None:
        os.write(heartbeat, json.dumps([variant, stage]).encode() + b"\n")

    reply: Answer
    try:
        match message:
            case Describe():
                reply = describe(message)
            case MeasurePeaks():
                reply = _measure_peaks(message)
            case Measure():
                reply = _measure(message, beat)
    except (SuiteError, DeclarationError) as error:
        reply = SuiteProblem(message=make_private(str(error)))
    write_bytes(Path(message.result), msgspec.json.encode(reply), lasting=False)


def _measure_peaks(message: MeasurePeaks) -> Answer:
    if message.cores is not None:
        keep_on_cores(message.cores, 0)
    if (problem := find_missing_device(message.platform)) is not None:
        return SuiteProblem(message=problem)
    return PeaksFound(peaks=measure_peaks())


def _measure(message: Measure, beat: Beat) -> Answer:
    """Does what the process is planned for; where its cache state is JAX's own threshold, after one that does the same.

    The two share a persistent cache of their own, which the first finds empty and the second as the first left it.
    """
    if message.process.cache_state != DEFAULT_THRESHOLD:
        return _run_probes(message, beat)
    with TemporaryDirectory(dir=Path(message.result).parent) as cache:
        message = msgspec.structs.replace(message, cache=cache)
        run_before(lambda: _run_probes(message, beat))
        return _run_probes(message, beat)


def _run_probes(message: Measure, beat: Beat) -> Answer:
    """Set up the process, make the case's arguments, and run the process's probes."""
    process, begun_s = message.process, time.perf_counter()
    beat(None, "start")
    if message.cores is not None:
        keep_on_cores(message.cores, process.round)  # other ones each round: cores are not alike
    take_memory_ahead(process, message.platform)
    use_cache(message.cache, default_thresholds=process.cache_state == DEFAULT_THRESHOLD)
    set_up_jax(message.case, message.platform)
    beat(None, "import suites")
    workload = _find_workload(message)
    if (problem := find_missing_device(message.platform)) is not None:
        return SuiteProblem(message=problem)
    beat(None, "inputs")
    context = Context(
        workload=workload,
        params=message.case.params,
        platform=message.platform,
        arguments=(),
        clock=time.perf_counter,
        folder=CaseFolder(Path(message.folder)),
        capacity_bytes=_capacity_bytes(message.platform),
        index=process.round,
        case=message.case,
        settings=message.settings,
        seed=message.seed,
        cache_state=process.cache_state,
        begun_s=begun_s,
        beat=beat,
        arms=_find_arms(message),
    )
    if process.kind == SHAPES:
        return Result(outcomes=probe_shapes(process.assignments, context))
    if message.platform.measures:
        inputs = find_inputs(workload, context.params, Path(message.inputs))
        context.arguments, context.wide = inputs.arguments, inputs.wide
    else:
        context.arguments = make_shapes(workload, context.params)
    outcomes, samples = run_probes(process.assignments, context)
    return Result(outcomes=outcomes, process=samples, artifacts=tuple(_collect_artifacts(message)))


def take_memory_ahead(process: PlannedProcess, platform: Platform) -> None:
    """Has this process' devices begin with their memory, where a probe of the process needs that."""
    if platform.preallocates_by is not None and any(PROBES[probe].takes_memory for probe in process.probes):
        os.environ[platform.preallocates_by] = "true"


def _find_arms(message: Measure) -> dict[Arm, Address] | None:
    """Where processes of two environments are asked for; None of a run without."""
    if message.arms is None:
        return None
    variants = message.case.variants
    # Absolute: a process of another checkout works in another folder.
    cache, inputs = (os.path.abspath(path) for path in (message.cache, message.inputs))  # noqa: PTH100
    sources = (
        {variant.replays.variant: variant.source for variant in variants if variant.replays is not None},
        {variant.name: variant.source for variant in variants},
    )
    return {
        arm: Address(
            path,
            Begin(
                case=message.case,
                platform=message.platform,
                settings=message.settings,
                sources=own,
                # One for each: today's environment alone would load what a check has compiled.
                cache=f"{cache}-{arm.name.lower()}",
                # A file for each: another environment's NumPy may not read what this one's has written.
                inputs=f"{inputs}.{arm.name.lower()}",
                cores=message.cores,
                core=message.process.round,
            ),
        )
        for arm, path, own in zip(Arm, message.arms, sources, strict=True)
    }


def _capacity_bytes(platform: Platform) -> int | None:
    """What programs may use of one device."""
    known = platform.memory_bytes
    return known if known is not None or not platform.measures else device_memory_bytes(jax.devices()[0])


def _find_workload(message: Measure) -> Workload:
    """The case's workload.

    Raises:
      SuiteError: It is gone, or its file was edited after the run began: one run is one program.
    """
    workload, now = find_workload(message.case, message.settings.suites, message.platform)
    if not is_unchanged(message.case, now):
        raise SuiteError(f"the suite of {message.case.name} was edited while the run went on; start a new run")
    return workload


def _collect_artifacts(message: Measure) -> Iterator[Artifact]:
    """The files that the process's probes left, which only the first of their processes does."""
    folder = CaseFolder(Path(message.folder))
    kinds = [kind for probe in message.process.probes for kind in PROBES[probe].artifacts]
    if message.process.round > 0:
        return
    for variant in message.process.variants:
        for kind in kinds:
            for path in folder.artifacts(kind, variant):
                data = path.read_bytes()
                yield Artifact(
                    kind=kind,
                    variant=variant,
                    path=str(path.relative_to(folder.path)),
                    size_bytes=len(data),
                    sha256=hashlib.sha256(data).hexdigest(),
                )


def set_up_jax(case: PlannedCase, platform: Platform) -> None:
    """Sets what jax reads when its backend begins.

    Raises:
      DeclarationError: This jax knows no such setting, or not that value.
    """
    for name, value in case.config.items():
        try:
            jax.config.update(name, value)
        except (AttributeError, TypeError, ValueError) as error:
            raise DeclarationError(f"workload '{case.workload}': config sets '{name}' to {value!r}: {error}") from error
    if platform.any_device_count and case.devices > 1:
        make_devices_of_cpu(case.devices)


def find_workload(case: PlannedCase, suites: Sequence[str], platform: Platform) -> tuple[Workload, PlannedCase]:
    """The case's workload, and the case as its suite declares it now.

    Raises:
      SuiteError: It is gone.
    """
    for suite in find_suites_once(tuple(suites)):
        for workload in suite.workloads:
            if workload.name == case.workload:
                now = plan_case(suite.name, workload, case.params, platform)
                # An import that sets what this process was given by the case changes nothing here.
                is_given = now.config.items() <= case.config.items()
                return workload, replace(now, config=case.config) if is_given else now
    raise SuiteError(f"the workload '{case.workload}' is gone from {', '.join(suites)}")
