"""A case: what was planned of it, what was measured, and which cases a pattern means."""

from __future__ import annotations

import difflib
import fnmatch
import re
from collections.abc import Iterable, Sequence

import msgspec

from jaxmeter.harness.record.outcomes import INCOMPLETE, Number, Outcome, Status

Param = str | int | float | bool

AS_GIVEN = "as_given"
"""The mode of a callable that a user has transformed: it is called as it is. Shown as `as given`."""

NATIVE = "native"
"""The mode of a peer: executed as its library does."""

REPLAY = "replay"
"""The mode of a program that an earlier run has kept: compiled and run again, interleaved with today's."""

LOCK_STEP = "lock-step"
"""The mode of a variant that an earlier run's environment runs, in a process that takes turns with today's."""


EXECUTION, COMPILATION = MEASURED = ("execution", "compilation")
"""What a workload is there to measure."""

FEWEST_QUEUED = 2
"""Calls of a queue: one by itself is waited for."""


class Cost(msgspec.Struct, frozen=True, omit_defaults=True):
    """The least work of one call, as a workload declares it.

    Args:
      flops: Floating-point operations of one call, a count.
      bytes: Bytes that one call must read and write.
      message_bytes: Of a collective, the size S in its algorithm bandwidth S / t: the larger of what one device sends
        and receives.
      bus_bytes: Of a collective, the bytes that one device's link must carry: S times the factor of its bus bandwidth.
    Source: NVIDIA nccl-tests, doc/PERFORMANCE.md, for the last two.
    """

    flops: Number | None = None
    bytes: Number | None = None
    message_bytes: Number | None = None
    bus_bytes: Number | None = None


class Figure(msgspec.Struct, frozen=True, omit_defaults=True):
    """A published number.

    Args:
      variant: Variant of the workload that it is compared with, `implementation:mode`.
      value: In the metric's unit: seconds, bytes or a plain count.
      spread: As the source gives it, in the same unit; mostly a standard deviation of single calls.
      metric: Name of the metric.
    """

    variant: str
    value: float
    spread: float | None = None
    metric: str = "execution_s"


class Published(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A claim that a source makes with its figures: a ratio of two of them, or one by itself.

    Args:
      source: Author, title, year, place.
      device: Device of the source's measurement, in its words.
      backend: Kind of that device: cpu, gpu or tpu; empty if the source does not say.
      timed: What the source timed, in words.
      figure: The figure, or the larger of two.
      against: The other figure; None if the figure itself is the claim.
      differs: Differences from the workload, in words.
      at: Params of the cases that it is compared with, and `backend`.
      undecided: Why the comparison has no verdict, although both numbers are shown.
    """

    source: str
    device: str
    timed: str
    figure: Figure
    against: Figure | None = None
    differs: str = ""
    at: dict[str, Param] = {}
    undecided: str = ""
    backend: str = ""

    @property
    def figures(self) -> tuple[Figure, ...]:
        """The one or two."""
        return (self.figure,) if self.against is None else (self.figure, self.against)


class Reported(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A report that a release of jax made a program slower or faster.

    Args:
      source: Where it was reported.
      before, after: The newest release without the change, and the oldest with it, such as `0.4.31`.
      factor: Time with the change divided by time without; below 1 if the program became faster.
      metric: Name of the metric that changed; a time.
      at: Params of the cases that reproduce it, and `backend`.
      differs: Differences from the report, in words.
    """

    source: str
    before: str
    after: str
    factor: float
    metric: str = "execution_s"
    at: dict[str, Param] = {}
    differs: str = ""


ANSWER_FIGURES = ("points", "growth", "stages", "ledger")
"""Variants side by side, a curve over sizes, stages of the first call, parts of a traced step."""


class Answer(msgspec.Struct, frozen=True, omit_defaults=True):
    """The number that answers a suite's question, from the case that represents the suite.

    Args:
      question: The question, in at most eight words.
      variant: Variant with the number, `implementation:mode`.
      against: Variant that it is compared with; None if the number answers by itself.
      metric: Name of the metric. With `against`, execution_s and items_per_s give the ratio of both, paired by process;
        other metrics give both values. flops_share by itself is the share of the device's peak.
      at: Params of the case that represents the suite. If a run has no such case, the one that represents the workload.
      rank: Position in the report, lowest first; None comes last, in the order of the plan.
      figure: Kind of figure, one of ANSWER_FIGURES; empty: chosen by the metric and the sizes.
    """

    question: str
    variant: str
    against: str | None = None
    metric: str = "execution_s"
    at: dict[str, Param] = {}
    rank: int | None = None
    figure: str = ""

    @property
    def variants(self) -> tuple[str, ...]:
        """The one or two."""
        return (self.variant,) if self.against is None else (self.variant, self.against)


class Replay(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A variant of an earlier run that runs once more: its kept program, or its code in that run's environment.

    Args:
      run: The earlier run's id.
      variant: The variant's name in the earlier run.
      sha256: Hash of the file with the kept program; None if the earlier run's environment runs the code.
      fingerprint: Fingerprint of the program that the earlier run compiled; None if it was not recorded.
      from_checkout: Whether the earlier run's own code ran, from a checkout of that time; else the code of today, or
        the kept program.
    """

    run: str
    variant: str
    sha256: str | None = None
    fingerprint: str | None = None
    from_checkout: bool = False

    @property
    def in_lock_step(self) -> bool:
        """Whether the earlier run's environment runs it, and takes turns with today's."""
        return self.sha256 is None


class PlannedVariant(msgspec.Struct, frozen=True, kw_only=True):
    """An implementation in a mode. `skip` is the declared reason not to run it for this case.

    Args:
      compiles: Programs that it may compile at most; None where nothing is declared.
      donates: Names of the arguments whose memory a call takes.
      compiler_options: XLA's options that it is compiled with, by name; in texts secrets are hidden, and home is `~`.
      raises: Name of the error that calling it must raise; then nothing of it is timed.
      traced: Whether it is traced though it is skipped, so that its equations are counted.
      same_as: Of an A/A control, the variant whose program it is once more; of a replay, the variant that it is
        compared with. None of what a suite declares.
      replays: Of a replay, whose program it is.
    """

    name: str
    implementation: str
    mode: str
    description: str
    source: str
    skip: str | None = None
    compiles: int | None = None
    donates: tuple[str, ...] = ()
    compiler_options: dict[str, Param] = {}
    raises: str | None = None
    traced: bool = False
    same_as: str | None = None
    replays: Replay | None = None


class PlannedCase(msgspec.Struct, frozen=True, kw_only=True):
    """A workload with one value of each param; `definition` is a hash of its inputs, reference and cost.

    Args:
      platform: Name of the backend that runs it, or of the target that it is compiled for.
      new_shape: Params whose change gives inputs of another shape, as the `caching` probe tries it.
      new_static: Params whose change is another static argument.
      default_threshold: Whether the `caching` probe also tries a persistent cache by JAX's own thresholds.
      represents_workload: Whether this case stands for its workload, where measuring every case would be too much.
      items: Number of items that one call, or one pass over a stream, processes; None if its workload declares none.
      items_unit: Unit of the items, in the plural, such as tokens.
      devices: Number of devices that it uses.
      config: Values that its processes set in `jax.config`.
      data: The data of its inputs, if that depends on the available files.
      data_missing: Files that were not found in the folder of `--data`, in words.
      published: Figures of others that are shown next to it.
      reported: Reports that a release of jax changed its time.
      answer: Its answer to its suite's question; only one case of a suite has one.
      question: The question that its suite answers; empty if the suite declares none.
      queued: Number of calls in a queue; None without queues.
      measures: What the case measures: its calls, or how long they take to compile.
    """

    id: str
    name: str
    suite: str
    workload: str
    platform: str
    description: str
    params: dict[str, Param]
    definition: str
    baseline: str
    variants: tuple[PlannedVariant, ...]
    cost: Cost | None = None
    items: Number | None = None
    items_unit: str = ""
    no_reference: str | None = None
    time_limit_s: float | None = None
    new_shape: dict[str, Param] | None = None
    new_static: dict[str, Param] | None = None
    default_threshold: bool = False
    represents_workload: bool = False
    devices: int = 1
    config: dict[str, Param] = {}
    data: str | None = None
    data_missing: str | None = None
    published: tuple[Published, ...] = ()
    reported: tuple[Reported, ...] = ()
    answer: Answer | None = None
    question: str = ""
    queued: int | None = None
    measures: str = EXECUTION


def is_same_problem(before: PlannedCase, after: PlannedCase) -> bool:
    """Whether two cases of one name are of the same inputs, reference and cost, on as many devices, in one setting."""
    return (before.definition, before.devices, before.config) == (after.definition, after.devices, after.config)


class VariantRecord(msgspec.Struct, frozen=True, kw_only=True):
    """What was measured of one variant: an outcome per probe."""

    name: str
    outcomes: dict[str, Outcome]


class Artifact(msgspec.Struct, frozen=True, kw_only=True):
    """A file kept next to the numbers; `path` is relative to the case's folder.

    Args:
      kind: trace, jaxpr, stablehlo, hlo or jaxexport.
    """

    kind: str
    variant: str
    path: str
    size_bytes: int
    sha256: str


class CaseRecord(msgspec.Struct, frozen=True, kw_only=True):
    """What was measured of a case so far: a summary of its process files, by the rules of a statistics version.

    Args:
      processes: How often it was timed.
      files: How many process files it is made of; 0 where there were none, as in a notebook.
      process_gap_s: Seconds from the start of one timing process to that of the next, their median; None with fewer
        than two processes.
    """

    id: str
    name: str
    started: str
    elapsed_s: float
    processes: int
    variants: tuple[VariantRecord, ...]
    artifacts: tuple[Artifact, ...] = ()
    notes: tuple[str, ...] = ()
    statistics_version: int
    files: int = 0
    process_gap_s: float | None = None

    @property
    def is_lost(self) -> bool:
        """Whether something of it is lost, until the run is resumed."""
        return any(outcome.status is Status.LOST for variant in self.variants for outcome in variant.outcomes.values())

    @property
    def status(self) -> Status:
        """The worst status of any variant and probe that makes the case incomplete; else ok, if anything is."""
        order = list(Status)
        statuses = [outcome.status for variant in self.variants for outcome in variant.outcomes.values()]
        worst = max(statuses, key=order.index, default=Status.LOST)
        return Status.OK if worst not in INCOMPLETE and Status.OK in statuses else worst


def match_cases(cases: Sequence[PlannedCase], pattern: str) -> tuple[PlannedCase, ...]:
    """Cases whose suite, workload or whole name matches.

    Args:
      pattern: `*` stands for any text and `?` for one character; brackets mean themselves, as names hold them.
    """
    # fnmatch never goes back over what a star has taken, so many stars cost no more than one.
    expression = re.compile(fnmatch.translate(pattern.replace("[", "[[]")))
    return tuple(case for case in cases if any(map(expression.match, names_of(case))))


def names_of(case: PlannedCase) -> tuple[str, str, str]:
    """The names that a pattern may match: suite, workload and the whole name."""
    return case.suite, case.workload, case.name


def list_nearest(wanted: str, names: Iterable[str], *, most: int = 5) -> list[str]:
    """Return the names that are most like what was wanted, those that contain it first; empty where none is like it."""
    known = list(dict.fromkeys(names))
    containing = sorted((name for name in known if wanted and wanted in name), key=len)
    like = difflib.get_close_matches(wanted, known, n=most, cutoff=0.5)
    return list(dict.fromkeys((*containing, *like)))[:most]


def explain_unknown(kind: str, wanted: str, names: Iterable[str]) -> str:
    """Say that there is no such name: with those most like it, else with all.

    Args:
      kind: What it would name, in the singular.
    """
    known = list(dict.fromkeys(names))
    nearest = list_nearest(wanted, known)
    listed = f"nearest: {', '.join(nearest)}" if nearest else f"there are {', '.join(known)}"
    return f"no {kind} '{wanted}'; {listed}"


def find_nearest(wanted: str, names: Iterable[str], *, cutoff: float = 0.4) -> str | None:
    """The name that is most like what was wanted, which may be a pattern; None where none is like it."""
    matches = difflib.get_close_matches(wanted.strip("*?"), list(dict.fromkeys(names)), n=1, cutoff=cutoff)
    return matches[0] if matches else None
