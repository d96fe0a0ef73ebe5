"""What a parent asks of a process and what it answers, in files; and what two processes say that take turns."""

from __future__ import annotations

from enum import StrEnum

import msgspec

from jaxmeter.harness.machine.platforms import Platform
from jaxmeter.harness.plan.processes import PlannedProcess
from jaxmeter.harness.record import (
    Artifact,
    Environment,
    Outcome,
    Param,
    PlannedCase,
    ProcessRecord,
    Settings,
    VariantSamples,
)
from jaxmeter.harness.record.environment import OwnPackage, Peaks


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


class SuiteProblem(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """The process cannot do what was asked, for a reason that a person can act on."""

    message: str


class Heartbeat(msgspec.Struct, frozen=True):
    """What a process begins to do now, so that a crash or a hang has a name."""

    variant: str | None
    stage: str


Message = Describe | MeasurePeaks | Measure
Answer = Description | PeaksFound | Result | SuiteProblem


ERRORS = "stderr"
"""The file next to the socket that receives the standard error of the other environment's processes."""

CODE_FOLDER = "code"
"""The folder next to the socket with only jaxmeter, which precedes the packages of the other environment."""

LOADED = "LD_PRELOAD"
"""The variable that lists the libraries that an interpreter loads first: files of its own environment."""


class StartArm(msgspec.Struct, frozen=True, kw_only=True):
    """Start a server of an environment whose files are not seen here: that of another container.

    Args:
      folder: Folder of the socket and of ERRORS, which both processes see at the same path.
      variables: Variables that control JAX there, in place of its own.
      suites: Suites that it imports, if it can.
      checkout: The folder that the earlier run's code comes from, after the folder whose place it takes; None where
        both arms load the same suites.
    """

    folder: str
    variables: dict[str, str]
    suites: tuple[str, ...] = ()
    checkout: tuple[str, str] | None = None


class TurnStep(StrEnum):
    """What a process does in its turn."""

    INPUTS = "inputs"
    PREPARE = "prepare"
    CALIBRATE = "calibrate"
    WARM_UP = "warm up"
    BLOCK = "block"
    ROW = "row"
    ISOLATED = "isolated"
    RETURN = "return"
    RECORD = "record"


class DescribeCode(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """Describe the code of these cases that there is here; run nothing."""

    cases: tuple[PlannedCase, ...]
    platform: Platform


class Begin(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """Make the inputs of a case.

    Args:
      case: As the measuring process has planned it: inputs, reference and cost have to be the same here.
      sources: Hashes of the variants' code, by their names here.
      cache: Folder of the compilation cache that the processes of this environment share.
      inputs: Where this environment's processes keep the case's inputs for each other.
      cores: Number of cores that the process runs on; None for all.
      core: Which of its cores it runs on, as the measuring process does: cores are not alike.
    """

    case: PlannedCase
    platform: Platform
    settings: Settings
    sources: dict[str, str]
    cache: str
    inputs: str
    cores: int | None
    core: int


class Turn(msgspec.Struct, frozen=True, kw_only=True):
    """Do one step with one variant; or take the inputs that follow, in place of those that were made.

    Args:
      size: Bytes of inputs (pack_numbers).
      pass_number, block_s: Of a block.
      count: How many blocks alone; how many calls in a row.
      queued: Whether these calls are waited for once.
      cores: Which the process can use, for the record.
    """

    step: TurnStep
    variant: str = ""
    size: int = 0
    pass_number: int = 0
    block_s: float = 0.0
    count: int = 0
    queued: bool = False
    cores: float = 0.0


class Done(msgspec.Struct, frozen=True, kw_only=True):
    """What was asked is done.

    Args:
      cpu_s: Processor time of the process so far.
      inputs: Hash of the inputs, once they are made or taken.
      calls, call_s: Of a sample of the variant so far.
      returns_early: Whether a call of it returns before its result is ready.
      process: Raw samples, where they were asked for.
    """

    cpu_s: float
    inputs: str = ""
    calls: int = 1
    call_s: float = 0.0
    returns_early: bool = False
    process: VariantSamples | None = None


class SeenCase(msgspec.Struct, frozen=True, kw_only=True):
    """A case as a process has it: hashes of its definition, and of its variants' code by name."""

    definition: str
    sources: dict[str, str]


class Seen(msgspec.Struct, frozen=True, kw_only=True):
    """The code that a process has loaded.

    Args:
      cases: By id.
      strangers: Files of modules that should have come from its checkout, by the modules' names.
      own_packages: Packages of the user's own that the suites import.
    """

    cases: dict[str, SeenCase]
    strangers: dict[str, str]
    own_packages: tuple[OwnPackage, ...] = ()


class Reply(msgspec.Struct, frozen=True, kw_only=True):
    """The answer: what was done or seen, or why it cannot be done."""

    done: Done | None = None
    seen: Seen | None = None
    refusal: str = ""


class Ready(msgspec.Struct, frozen=True, kw_only=True):
    """What the server of an environment says first: its versions."""

    python: str
    packages: dict[str, str]
