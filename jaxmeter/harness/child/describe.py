"""What a child says of the suites and of the machine: the catalogue, the planned cases, the environment."""

from __future__ import annotations

import os

import jax
import msgspec
from msgspec.structs import replace

from jaxmeter.harness.declare.catalogue import Suite, SuiteError, find_suites
from jaxmeter.harness.declare.fingerprint import find_failing_line
from jaxmeter.harness.declare.implementation import Implementation
from jaxmeter.harness.declare.levels import DeclarationError
from jaxmeter.harness.declare.own_packages import list_own_packages
from jaxmeter.harness.declare.workload import Workload
from jaxmeter.harness.machine.environment import describe_environment, make_private, recorded_options
from jaxmeter.harness.machine.platforms import DEFAULT_BACKEND, Platform, refuse_ranks
from jaxmeter.harness.machine.process_settings import keep_on_cores, refuse_settings
from jaxmeter.harness.plan.cases import plan_case
from jaxmeter.harness.plan.messages import (
    Answer,
    Describe,
    Description,
    SuiteDescription,
    SuiteProblem,
    WorkloadDescription,
)
from jaxmeter.harness.record import Param, PlannedCase
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
