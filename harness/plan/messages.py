"""What a parent asks of one process, and what that process answers. Files carry both."""

from __future__ import annotations

import msgspec

from harness.record import Artifact, Environment, LaunchRecord, Outcome, Param, PlannedCase, Settings

SHAPES = "shapes"
CHECK = "check"
COMPILATION = "compilation"
CACHING = "caching"
RESIDENCY = "residency"
TIMING = "timing"
TRACE = "trace"


class Describe(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """Import the suites and say what they hold and what machine this is."""

    suites: tuple[str, ...]
    backend: str
    level: str
    devices: bool
    result: str


class Launch(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """Measure some variants of one case in one process.

    Args:
      kind: SHAPES, CHECK, COMPILATION, CACHING, RESIDENCY, TIMING or TRACE.
      probes: The probes to run, all of this kind.
      cache: Folder of the run's own persistent compilation cache; a COMPILATION process uses it for inputs only.
      regime: Of a CACHING process, see harness/probes/caching.py.
      folder: The case's folder, for artifacts.
      result: Where to write the answer.
    """

    kind: str
    case: PlannedCase
    variants: tuple[str, ...]
    probes: tuple[str, ...]
    suites: tuple[str, ...]
    backend: str
    settings: Settings
    index: int
    seed: int
    regime: str = ""
    cache: str
    folder: str
    result: str


class WorkloadDescription(msgspec.Struct, frozen=True, kw_only=True):
    """A workload as the catalogue shows it."""

    name: str
    description: str
    params: dict[str, tuple[Param, ...]]
    variants: tuple[tuple[str, str], ...]
    baseline: str
    cases: int


class SuiteDescription(msgspec.Struct, frozen=True, kw_only=True):
    """A suite as the catalogue shows it."""

    name: str
    description: str
    workloads: tuple[WorkloadDescription, ...]


class Description(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """Answer to Describe. `environment` is None unless devices were asked for."""

    suites: tuple[SuiteDescription, ...]
    cases: tuple[PlannedCase, ...]
    environment: Environment | None


class Result(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """Answer to Launch: outcomes by variant and probe; the raw samples of a timing launch."""

    outcomes: dict[str, dict[str, Outcome]] = {}
    launch: LaunchRecord | None = None
    artifacts: tuple[Artifact, ...] = ()


class Problem(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """The process cannot do what was asked, for a reason that a person can act on."""

    message: str


class Heartbeat(msgspec.Struct, frozen=True):
    """What a process begins to do now, so that a crash or a hang has a name."""

    variant: str | None
    stage: str


Message = Describe | Launch
Answer = Description | Result | Problem
