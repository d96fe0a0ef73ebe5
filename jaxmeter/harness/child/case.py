"""The case that a process works on: its settings of jax, and its workload."""

from __future__ import annotations

from collections.abc import Sequence

import jax
from msgspec.structs import replace

from jaxmeter.harness.declare.catalogue import SuiteError, find_suites_once
from jaxmeter.harness.declare.levels import DeclarationError
from jaxmeter.harness.declare.workload import Workload
from jaxmeter.harness.machine.platforms import Platform
from jaxmeter.harness.plan.cases import plan_case
from jaxmeter.harness.programs.older_jax import make_devices_of_cpu
from jaxmeter.harness.record import PlannedCase


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
