"""What a parent asks of one process, and what that process answers. Files carry both."""

from __future__ import annotations

import msgspec

from jaxmeter.harness.machine.platforms import Platform
from jaxmeter.harness.plan.processes import PlannedProcess
from jaxmeter.harness.record import Artifact, Environment, Outcome, Param, PlannedCase, ProcessRecord, Settings
from jaxmeter.harness.record.own_packages import OwnPackage
from jaxmeter.harness.record.peaks import Peaks


class Describe(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """Import the suites and say what they hold and what machine this is.

    Args:
      cores: On how many to run, of those that are allowed; all where None.
    """

    suites: tuple[str, ...]
    platform: Platform
    level: str
    devices: bool
    result: str
    cores: int | None = None


class MeasurePeaks(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """Measure how fast the platform's processor computes products and moves data.

    Args:
      cores: On how many to run, of those that are allowed; all where None.
    """

    platform: Platform
    result: str
    cores: int | None = None


class Measure(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """Do what one process of the plan says.

    Args:
      case: The process's own.
      platform: Where it runs.
      seed: Of the order of the variants.
      cores: Number of cores that the process runs on; None for all.
      cache: Folder of the persistent compilation cache that the run's processes on so many cores share.
      inputs: Where the case's processes keep its inputs for each other.
      folder: The case's folder, for artifacts.
      result: Where to write the answer.
      arms: Sockets of the two environments that take turns, the earlier run's and today's; None of a run without.
    """

    process: PlannedProcess
    case: PlannedCase
    platform: Platform
    settings: Settings
    seed: int
    cores: int | None
    cache: str
    inputs: str
    folder: str
    result: str
    arms: tuple[str, str] | None = None


class WorkloadDescription(msgspec.Struct, frozen=True, kw_only=True):
    """A workload as the catalogue shows it."""

    name: str
    description: str
    params: dict[str, tuple[Param, ...]]
    variants: tuple[tuple[str, str], ...]
    baseline: str
    cases: int


class SuiteDescription(msgspec.Struct, frozen=True, kw_only=True):
    """A suite as the catalogue shows it.

    Args:
      warnings: What a person must know of its import.
    """

    name: str
    description: str
    workloads: tuple[WorkloadDescription, ...]
    warnings: tuple[str, ...] = ()


class Description(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """Answer to Describe; environment and packages of the user's own are None unless devices were asked for."""

    suites: tuple[SuiteDescription, ...]
    cases: tuple[PlannedCase, ...]
    environment: Environment | None
    own_packages: tuple[OwnPackage, ...] | None = None


class Result(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """Answer to Measure: outcomes by variant and probe; the raw samples of a timing process."""

    outcomes: dict[str, dict[str, Outcome]] = {}
    process: ProcessRecord | None = None
    artifacts: tuple[Artifact, ...] = ()


class PeaksFound(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """Answer to MeasurePeaks."""

    peaks: Peaks


class Problem(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """The process cannot do what was asked, for a reason that a person can act on."""

    message: str


class Heartbeat(msgspec.Struct, frozen=True):
    """What a process begins to do now, so that a crash or a hang has a name."""

    variant: str | None
    stage: str


Message = Describe | MeasurePeaks | Measure
Answer = Description | PeaksFound | Result | Problem
