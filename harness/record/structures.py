"""What a run leaves on disk: the record's structures, and reading and writing them.

    results/<run-id>/
      manifest.json                   environment, settings, every planned case; written first
      cases/<id>/launches/NN.json.gz  raw samples and block conditions of one timing launch
      cases/<id>/case.json            statuses and per-launch summaries; written when the case ends
      cases/<id>/programs/<variant>/  jaxpr.txt, stablehlo.mlir, hlo.txt of a compiled variant
      cases/<id>/trace/…              profiler captures, as xprof wants them
      stopped.json                    why a run has stopped before its last case; gone when it goes on
      run.json                        commit mark: manifest and all cases; written last

Every file is written whole or not at all. A missing value is null, never 0 or NaN.
"""

from __future__ import annotations

import gzip
import os
import tempfile
import zlib
from enum import StrEnum
from pathlib import Path
from typing import Any, TypeVar

import msgspec

SCHEMA_VERSION = 1

Param = str | int | float | bool
Number = int | float
S = TypeVar("S")


class RecordError(Exception):
    """A file of a run cannot be read; the message names the file and what is wrong with it."""


class Status(StrEnum):
    """How one probe of one variant ended. The order is from best to worst."""

    OK = "ok"
    SKIPPED = "skipped"
    UNSUPPORTED = "unsupported"
    LOST = "lost"
    TIMED_OUT = "timed out"
    KILLED = "killed"
    FAILED = "failed"
    WRONG = "wrong"


DOES_NOT_FIT = "does not fit"
"""How the reason begins where a program was not run since it needs more memory than its device has."""

INCOMPLETE = frozenset({Status.LOST, Status.TIMED_OUT, Status.KILLED, Status.FAILED, Status.WRONG})
"""Statuses that make a run incomplete (exit code 3). Skipped and unsupported have a reason known beforehand."""


class Cost(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a workload must do at least, by its declaration.

    Args:
      flops: Floating-point operations of one call, a count.
      bytes: Bytes that one call must read and write.
      message_bytes: Of a collective, the size S that its algorithm bandwidth S / t refers to: the larger of what one
        device gives and gets.
      bus_bytes: Of a collective, what one device's link must carry: S times the factor of its bus bandwidth.
    Source: NVIDIA nccl-tests, doc/PERFORMANCE.md, for the last two.
    """

    flops: Number | None = None
    bytes: Number | None = None
    message_bytes: Number | None = None
    bus_bytes: Number | None = None


class Environment(msgspec.Struct, frozen=True, kw_only=True):
    """Where a run was made. `host` is a hash, `variables` an allow-list; no user name, home shown as `~`.

    Args:
      image: Name and id of the container image; None outside a container.
      lock_sha256: Hash of the lock that the environment was made from; None for an environment of the user's own.
      device_memory_bytes: What programs may use of one device: the allocator's limit; on a CPU the machine's memory, or
        the control group's limit. None where nobody tells.
    """

    python: str
    system: str
    machine: str
    packages: dict[str, str]
    device_kind: str
    device_count: int
    platform_version: str | None
    processor: str
    cores: int
    allowed_cores: int
    cpu_quota: float | None
    governor: str | None
    memory_bytes: int | None
    load_average: float | None
    threads: dict[str, int | None]
    variables: dict[str, str]
    x64: bool
    matmul_precision: str | None
    host: str
    git_revision: str | None
    git_dirty: bool | None
    image: str | None
    lock_sha256: str | None = None
    device_memory_bytes: int | None = None


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """How a run measured; times are seconds.

    Args:
      looks: Launch counts at which timing may stop, once its intervals are narrow enough.
      launches: Their number where it was fixed by hand; then time limits do not cut it.
      data: Folder of the user's data sets, for suites that read some.
      cold_launches: Fresh processes per variant that compile, and per caching regime.
      not_used: Names of variables that were set and left out, as they would change what the numbers mean.
      caching_everywhere: Whether caching regimes are measured in every case, not only in one of each suite.
      traces_everywhere: Whether every case is traced, not only one of each workload.
      notes: What a reader must know of how it measured, such as why every process imported the suites itself.
      case_limit_s: After this, and at least 3 launches, timing a case stops whatever its intervals.
    """

    level: str
    probes: tuple[str, ...]
    looks: tuple[int, ...]
    launches: int | None = None
    case_limit_s: float
    budget_s: float
    stage_limit_s: float
    block_s: float
    sample_s: float
    blocks: int
    seed: int
    confidence: float
    target_half_width: float
    select: tuple[str, ...]
    suites: tuple[str, ...]
    data: str | None = None
    cold_launches: int = 1
    caching_everywhere: bool = False
    traces_everywhere: bool = True
    not_used: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


class Figure(msgspec.Struct, frozen=True, omit_defaults=True):
    """A number that somebody published.

    Args:
      variant: Which of ours it stands beside, `implementation:mode`.
      value: In the metric's unit: seconds, bytes or a plain count.
      spread: As the source gives it, in the same unit; mostly a standard deviation of single calls.
      metric: What it is one of.
    """

    variant: str
    value: float
    spread: float | None = None
    metric: str = "execution_s"


class Published(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A claim that a source makes with its figures: one of them over another, or one by itself.

    Args:
      source: Author, title, year, place.
      device: Where it was measured, as the source says.
      timed: What was timed, in words.
      figure: The one, the larger where there are two.
      against: The other; None where the figure itself is the claim.
      differs: What is not the same here, in words.
      at: Params of the cases that it stands beside, and `backend`.
      undecided: Why ours, though shown beside it, decide nothing of it.
    """

    source: str
    device: str
    timed: str
    figure: Figure
    against: Figure | None = None
    differs: str = ""
    at: dict[str, Param] = {}
    undecided: str = ""

    @property
    def figures(self) -> tuple[Figure, ...]:
        """The one or two."""
        return (self.figure,) if self.against is None else (self.figure, self.against)


class PlannedVariant(msgspec.Struct, frozen=True, kw_only=True):
    """An implementation in a mode. `skip` is the declared reason not to run it for this case.

    Args:
      compiles: Programs that it may compile at most; None where nothing is declared.
      donates: Names of the arguments whose memory a call takes.
      raises: Name of the error that calling it must raise; then nothing of it is timed.
    """

    name: str
    implementation: str
    mode: str
    description: str
    source: str
    skip: str | None = None
    compiles: int | None = None
    donates: tuple[str, ...] = ()
    raises: str | None = None


class PlannedCase(msgspec.Struct, frozen=True, kw_only=True):
    """A workload with one value of each param; `definition` is a hash of its inputs, reference and cost.

    Args:
      new_shape: Params whose change gives inputs of another shape, as the `caching` probe tries it.
      new_static: Params whose change is another static argument.
      representative: Whether this case stands for its workload, where measuring every case would be too much.
      exemplary: Whether it stands for its suite, where even that would be.
      devices: How many devices it uses.
      config: What its processes set in `jax.config`.
      data: Which data its inputs are, where that depends on what there is.
      data_missing: Files that were looked for in the folder of `--data`, where it has none of them; in words.
      published: Figures of others that stand beside it.
    """

    id: str
    name: str
    suite: str
    workload: str
    description: str
    params: dict[str, Param]
    definition: str
    baseline: str
    variants: tuple[PlannedVariant, ...]
    cost: Cost | None = None
    no_reference: str | None = None
    time_limit_s: float | None = None
    new_shape: dict[str, Param] | None = None
    new_static: dict[str, Param] | None = None
    representative: bool = False
    exemplary: bool = False
    devices: int = 1
    config: dict[str, Param] = {}
    data: str | None = None
    data_missing: str | None = None
    published: tuple[Published, ...] = ()


class Buffer(msgspec.Struct, frozen=True, kw_only=True):
    """A place in a compiled program's memory, by the compiler's buffer assignment.

    Args:
      kind: argument, output, temporary or constant.
      shape: HLO's, e.g. `f32[1000,1000]`; of the largest value that is kept there.
      instruction: Name of the HLO instruction that writes that value.
      operation: JAX's name for it, e.g. `jit(f)/dot_general`; None where not told.
      source: `folder/file:line`; None where not told.
      values: How many values are kept there, one after the other.
    """

    kind: str
    size_bytes: int
    shape: str
    instruction: str
    operation: str | None = None
    source: str | None = None
    values: int = 1


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """What a run set out to do, and where."""

    schema_version: int
    run_id: str
    tool_version: str
    started: str
    backend: str
    environment: Environment
    settings: Settings
    cases: tuple[PlannedCase, ...]


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """One probe of one variant.

    Args:
      status: How it ended.
      reason: Why it is not ok, for a person.
      stderr: The end of what the process wrote there, where it failed; or JAX's own explanation of too many compiles.
      values: Metric name to one value per process (launch order; null where that launch has none). What is the same
        in all processes, such as counts, has one value.
      notes: What a reader must know beside the number.
      contended: Timed with too few undisturbed blocks in some launch: its time is not to be trusted. Paired ratios are.
      fingerprints: Of the optimised programs that the processes compiled, each different one once.
      buffers: The largest of the program, by size.
    """

    status: Status
    reason: str | None = None
    stderr: str | None = None
    values: dict[str, tuple[Number | None, ...]] = {}
    notes: tuple[str, ...] = ()
    contended: bool = False
    fingerprints: tuple[str, ...] = ()
    buffers: tuple[Buffer, ...] = ()


class VariantRecord(msgspec.Struct, frozen=True, kw_only=True):
    """What was measured of one variant: an outcome per probe."""

    name: str
    outcomes: dict[str, Outcome]


class Artifact(msgspec.Struct, frozen=True, kw_only=True):
    """A file kept beside the numbers; `path` is relative to the case's folder.

    Args:
      kind: trace, jaxpr, stablehlo or hlo.
    """

    kind: str
    variant: str
    path: str
    size_bytes: int
    sha256: str


class CaseRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A finished case."""

    id: str
    name: str
    started: str
    elapsed_s: float
    launches: int
    variants: tuple[VariantRecord, ...]
    artifacts: tuple[Artifact, ...] = ()
    notes: tuple[str, ...] = ()
    statistics_version: int

    @property
    def status(self) -> Status:
        """The worst status of any variant and probe that makes the case incomplete; else ok, if anything is."""
        order = list(Status)
        found = [outcome.status for variant in self.variants for outcome in variant.outcomes.values()]
        worst = max(found, key=order.index, default=Status.LOST)
        return Status.OK if worst not in INCOMPLETE and Status.OK in found else worst


class Run(msgspec.Struct, frozen=True, kw_only=True):
    """A run: its manifest and the cases that ended.

    Args:
      ended: When; null for a run that lacks cases.
      stopped: Why a run that lacks cases has stopped; null for one that ended, and for one that was killed.
    """

    manifest: Manifest
    cases: tuple[CaseRecord, ...]
    ended: str | None = None
    stopped: str | None = None

    def lost(self) -> tuple[PlannedCase, ...]:
        """Planned cases that have no record."""
        done = {case.id for case in self.cases}
        return tuple(case for case in self.manifest.cases if case.id not in done)


class Stop(msgspec.Struct, frozen=True, kw_only=True):
    """That a run stopped before its last case, when and why; it may go on with `--resume`."""

    at: str
    reason: str


class Block(msgspec.Struct, frozen=True, kw_only=True):
    """A few milliseconds of one variant's samples, and how undisturbed they were.

    Args:
      sweep: The sweep that the block belongs to; a ratio pairs blocks of one sweep.
      samples_s: Seconds per call, one value per sample.
      wall_s: The block's own wall time.
      wait_s: Time that the process's threads waited for a core (Linux run queue); null elsewhere.
      cpu_s: Processor time of the process.
      steal_s: Time that the hypervisor gave to others, all cores; null elsewhere.
      involuntary_switches: Context switches forced on the process.
    """

    sweep: int
    samples_s: tuple[float, ...]
    wall_s: float
    wait_s: float | None
    cpu_s: float
    steal_s: float | None
    involuntary_switches: int


class VariantLaunch(msgspec.Struct, frozen=True, kw_only=True):
    """Raw timing of one variant in one launch. Samples are of `calls` calls each, stored per call.

    Args:
      cores: Cores that the process was allowed to use.
    """

    variant: str
    cores: int
    calls: int
    warmup_s: tuple[float, ...]
    steady: bool
    blocks: tuple[Block, ...]
    dispatch_s: tuple[float, ...]


class LaunchRecord(msgspec.Struct, frozen=True, kw_only=True):
    """Raw samples of one launch: one fresh process that timed some variants alternately."""

    schema_version: int
    case: str
    index: int
    kind: str
    seed: int
    started: str
    variants: tuple[VariantLaunch, ...]


def write_json(path: Path, record: msgspec.Struct) -> None:
    """Writes a record whole or not at all; a `.gz` path is compressed."""
    data = msgspec.json.format(msgspec.json.encode(record), indent=1)
    write_bytes(path, gzip.compress(data, mtime=0) if path.suffix == ".gz" else data)


def write_bytes(path: Path, data: bytes, *, lasting: bool = True) -> None:
    """Writes a file whole or not at all: to a temporary neighbour first, then renamed into place.

    Args:
      lasting: Whether it must survive a power cut, which takes the disk some milliseconds to promise.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    temporary = Path(name)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            if lasting:
                os.fsync(file.fileno())
        temporary.chmod(0o666 & ~_umask())
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def read_json(path: Path, kind: type[S]) -> S:
    """Reads one record.

    Raises:
      RecordError: The file cannot be read, is damaged, or does not fit the schema.
    """
    try:
        data = path.read_bytes()
        if path.suffix == ".gz":
            data = gzip.decompress(data)
        return msgspec.json.decode(data, type=kind)
    except (OSError, EOFError, zlib.error) as error:
        raise RecordError(f"{path}: cannot be read: {error}") from error
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise RecordError(f"{path}: not a record of jaxmeter, or damaged: {error}") from error


def read_manifest(folder: Path) -> Manifest:
    """Reads a run's manifest.

    Raises:
      RecordError: There is none, it is damaged, or a newer jaxmeter wrote it.
    """
    path = folder / "manifest.json"
    version = read_json(path, _Versioned).schema_version
    if version > SCHEMA_VERSION:
        raise RecordError(
            f"{path}: schema version {version}, this jaxmeter reads up to {SCHEMA_VERSION}; use a newer jaxmeter"
        )
    return read_json(path, Manifest)


class _Versioned(msgspec.Struct):
    schema_version: int


def json_schema() -> dict[str, Any]:
    """JSON Schema of run.json, with every structure that it holds, and of the launch files."""
    _, components = msgspec.json.schema_components([Run, LaunchRecord], ref_template="#/$defs/{name}")
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": f"jaxmeter record, schema version {SCHEMA_VERSION}",
        "anyOf": [{"$ref": "#/$defs/Run"}, {"$ref": "#/$defs/LaunchRecord"}],
        "$defs": components,
    }
