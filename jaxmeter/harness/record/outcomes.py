"""The outcome of one probe of one variant: status, values by process, details, remarks; and traps, one row a kind."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Self

import msgspec

from jaxmeter.harness.record.trace_summary import TraceSummary

Number = int | float


class Status(StrEnum):
    """The status of one probe of one variant. The order is from best to worst."""

    OK = "ok"
    SKIPPED = "skipped"
    UNSUPPORTED = "unsupported"
    TOO_LARGE = "does not fit"
    UNKNOWN = "unknown"
    LOST = "lost"
    TIMED_OUT = "timed out"
    KILLED = "killed"
    FAILED = "failed"
    WRONG = "wrong"


INCOMPLETE = frozenset({Status.UNKNOWN, Status.LOST, Status.TIMED_OUT, Status.KILLED, Status.FAILED, Status.WRONG})
"""Statuses that make a run incomplete (exit code 3). For the others, the reason is known beforehand."""


class Correctness(StrEnum):
    """The result of the comparison of a variant with the reference."""

    RIGHT = "right"
    RIGHT_WITHIN_CONDITIONING = "right within the problem's conditioning"
    CANNOT_BE_CHECKED = "cannot be checked"
    DIFFERS = "differs from the baseline variant"
    NOT_DETERMINISTIC = "not deterministic"
    WRONG = "wrong"


class Conditioning(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What the draws say of the outputs that are beyond their tolerance.

    Args:
      beyond: How many outputs are.
      unresolved: How many of these cannot be checked: the draws alone reach the size of the output, or take too long.
      worst: Path of the output with the largest error; empty where there is one output.
      error: That error, relative to the reference's largest entry; None where it is not finite.
      allowed: What the draws allow there, 4 times their largest deviation; None where they took too long, or it is not
        finite.
      digits: How many decimal digits of that output the draws leave alone; None without draws.
      is_too_slow: Whether the draws would take too long.
    """

    beyond: int
    unresolved: int = 0
    worst: str = ""
    error: float | None = None
    allowed: float | None = None
    digits: float | None = None
    is_too_slow: bool = False


class Buffer(msgspec.Struct, frozen=True, kw_only=True):
    """A buffer in a compiled program's memory, by the compiler's buffer assignment.

    Args:
      kind: argument, output, temporary or constant.
      shape: HLO shape, e.g. `f32[1000,1000]`, of the largest value in the buffer.
      instruction: Name of the HLO instruction that writes that value.
      operation: JAX's name for it, e.g. `jit(f)/dot_general`; None if it is unknown.
      source: `folder/file:line`; None if it is unknown.
      values: Number of values in the buffer, one after the other.
    """

    kind: str
    size_bytes: int
    shape: str
    instruction: str
    operation: str | None = None
    source: str | None = None
    values: int = 1


class CacheStateCall(msgspec.Struct, frozen=True, kw_only=True):
    """One call in one cache state, in one process, and what JAX reported meanwhile.

    Args:
      cache_state: cold, cached, default_threshold, warm, new_shape or new_static.
      proven: Whether what JAX reported shows that the caches were in that state; else the time has no name.
      elapsed_s: Seconds; None where the call was not timed, since it is not to the call before as the cache state says.
      traces: Functions that were traced.
      compiled: Programs that XLA compiled.
      hits: Programs that came from the persistent cache.
      misses: Programs that were looked for there and missing.
    """

    cache_state: str
    proven: bool
    elapsed_s: float | None = None
    traces: int = 0
    compiled: int = 0
    hits: int = 0
    misses: int = 0


class Trap(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A reason why a program does not do the work that its source suggests, with the evidence.

    Args:
      kind: A row of `KINDS` in harness/record/outcomes.py.
      evidence: What was found, as the subject of a sentence: names, shapes, counts.
      sources: `folder/file:line` of what it is about, the most important first. A line of a library follows the user's
        line that calls it: `mine/step.py:12 via flax/linear.py:264`.
      share: Of dead work the part of the traced FLOPs; of outputs the part that depends on no argument.
      size_bytes: Of captured constants and of donated arrays.
      count: How many outputs, arrays, calls or equations it is about.
      declared: Whether the suite declares a trap of this kind.
    """

    kind: str
    evidence: str
    sources: tuple[str, ...] = ()
    share: float | None = None
    size_bytes: int | None = None
    count: int | None = None
    declared: bool = False


class _Details(msgspec.Struct, frozen=True, kw_only=True, tag_field="probe"):
    """The details of one probe, in addition to its values. Each probe has a structure of its own."""

    def join(self, other: Self) -> Self:
        """Return the details of two processes together: here the first, since all are equal."""
        return self


class NumericsDetails(_Details, frozen=True, kw_only=True, tag="numerics"):
    """The details of the comparison with the reference.

    Args:
      products: The coarsest format that float32 matrix products are computed in; None without such products.
      outputs: Number of compared arrays; None if it was not recorded.
      unchecked: Number of arrays without a known reference (NaN in both).
      raised: Message of the error that the call raised, as its implementation declares; None if none is declared.
      fingerprint: Fingerprint of the checked program, which timing processes load; None without one, or if unknown.
      verdict: Result of the comparison; None if every output is within its tolerance, or none was compared.
      conditioning: Result of the draws; None without draws.
    """

    products: str | None = None
    outputs: int | None = None
    unchecked: int = 0
    raised: str | None = None
    fingerprint: str | None = None
    verdict: Correctness | None = None
    conditioning: Conditioning | None = None


class MemoryDetails(_Details, frozen=True, kw_only=True, tag="memory"):
    """What the program holds.

    Args:
      buffers: The largest, by size.
      unplanned: Kinds of operations whose working memory the plan leaves out, such as `ynn_fusion`; None if unknown.
    """

    buffers: tuple[Buffer, ...] = ()
    unplanned: tuple[str, ...] | None = None


class CompilationDetails(_Details, frozen=True, kw_only=True, tag="compilation"):
    """Which programs were compiled.

    Args:
      fingerprints: Of the optimised programs that the processes compiled, each different one once.
      code: Hash of the optimised program and its machine code, without compiler options: variants with equal hashes are
        the same program. None if no variant of the workload has options, or if unknown.
      explanation: JAX's own words on why more was compiled than is declared; None where that is not so.
      traps: Why the program does not do the work that its source suggests.
      unknown_traps: Kinds of traps that could not be looked for; a note of the outcome says why.
      cached: Stages that the process had done before, in a notebook; these have no time.
    """

    fingerprints: tuple[str, ...] = ()
    code: str | None = None
    explanation: str | None = None
    traps: tuple[Trap, ...] = ()
    unknown_traps: tuple[str, ...] = ()
    cached: tuple[str, ...] = ()

    def join(self, other: Self) -> Self:
        """The programs of both."""
        return type(self)(
            fingerprints=tuple(dict.fromkeys((*self.fingerprints, *other.fingerprints))),
            code=self.code or other.code,
            explanation=self.explanation or other.explanation,
            traps=tuple(dict.fromkeys((*self.traps, *other.traps))),
            unknown_traps=tuple(dict.fromkeys((*self.unknown_traps, *other.unknown_traps))),
            cached=tuple(dict.fromkeys((*self.cached, *other.cached))),
        )


class CachingDetails(_Details, frozen=True, kw_only=True, tag="caching"):
    """Every call that was made in some cache state, in the order of the processes."""

    calls: tuple[CacheStateCall, ...] = ()

    def join(self, other: Self) -> Self:
        """The calls of both."""
        return type(self)(calls=(*self.calls, *other.calls))


class TimingDetails(_Details, frozen=True, kw_only=True, tag="timing"):
    """The interference with the processes of a variant.

    Args:
      processes: Number of processes that timed it.
      contended: Number of those that were contended for an absolute time: harness/metrics/within.py.
      doubtful_ratios: Whether log_ratio has processes that were contended for it, since too few others remained.
      unsteady: Number of processes without a steady state within the warm-up.
      replaced: Number of contended processes that fresh ones have replaced; they are not among `processes`.
      looks: Number of interim analyses that decided whether to go on, at least one.
      calibration: Identity of the calibration loop that times are divided by, or None.
      slow_share: Share of its processes' blocks next to which the core was slow; None without a calibration loop.
      compiles_per_call: Number of programs that every call compiles within its time; the most over the processes.
    """

    processes: int
    contended: int = 0
    doubtful_ratios: bool = False
    unsteady: int = 0
    replaced: int = 0
    looks: int = 1
    calibration: str | None = None
    slow_share: float | None = None
    compiles_per_call: int = 0


class TraceDetails(_Details, frozen=True, kw_only=True, tag="trace"):
    """What a capture shows.

    Args:
      summary: Where the time of its steps goes; None in records of before captures were read.
      discarded: Steps that ran traced before those that it holds.
    """

    summary: TraceSummary | None = None
    discarded: int = 0


Details = NumericsDetails | MemoryDetails | CompilationDetails | CachingDetails | TimingDetails | TraceDetails


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """One probe of one variant.

    Args:
      status: How it ended.
      reason: Why it is not ok, for a person; no code reads it.
      stderr: The end of the process's standard error, if it failed.
      values: Metric name to one value per process (process order; null if that process has none). A metric that is the
        same in all processes, such as a count, has one value.
      notes: What a reader must know in addition to the number; no code reads it.
      details: Details that only this probe has, or None.
    """

    status: Status
    reason: str | None = None
    stderr: str | None = None
    values: dict[str, tuple[Number | None, ...]] = {}
    notes: tuple[str, ...] = ()
    details: Details | None = None


def join(first: Outcome | None, second: Outcome) -> Outcome:
    """One outcome of two processes: values one after the other, each note once, the worse status with its reason."""
    if first is None:
        return second
    order = list(Status)
    worse = max((first, second), key=lambda outcome: order.index(outcome.status))
    values: dict[str, tuple[Number | None, ...]] = dict(first.values)
    for name, more in second.values.items():
        values[name] = (*values.get(name, ()), *more)
    return Outcome(
        status=worse.status,
        reason=worse.reason,
        stderr=worse.stderr,
        values=values,
        notes=tuple(dict.fromkeys((*first.notes, *second.notes))),
        details=_join_details(first.details, second.details),
    )


def _join_details(first: Details | None, second: Details | None) -> Details | None:
    if first is None or second is None:
        return first or second
    if type(first) is not type(second):
        raise ValueError(f"details of two probes, {first} and {second}, cannot be joined")
    return first.join(second)  # type: ignore[arg-type]  # they are of one type, which mypy does not follow


NOT_COUNTED = "XLA's count is left out"
"""How a note begins that says why there is no `counted_flops`: a remark on a number that few tables show."""

OWN_FAULT = "jaxmeter's own fault"
"""How a note or a reason begins that says which analysis of jaxmeter's failed, and what is unknown therefore."""

_STAGE = re.compile(r"in stage '([^']*)': ")
_WRONG = re.compile(r"wrong: ")
_NUMBER = re.compile(r"\d[\d.]*(?:e[+-]?\d+)?|-(?=\d)")


def list_own_faults(outcomes: Iterable[Outcome]) -> tuple[str, ...]:
    """Return the failures of jaxmeter's own analysis, each once: what is unknown, and why."""
    texts = (text for outcome in outcomes for text in (*outcome.notes, outcome.reason or ""))
    return tuple(dict.fromkeys(text for text in texts if text.startswith(OWN_FAULT)))


def join_remarks(remarks: Iterable[tuple[str, str]]) -> list[str]:
    """Return a line for each different remark: `f:jit, f:aot: failed: in stages 'trace', 'compile': …`.

    Remarks that differ only in the stage are joined. So are wrong results of one implementation that differ only in
    their numbers; the line then says whose numbers it has.

    Args:
      remarks: (variant's name, remark), in the order of the lines.
    """
    alike: dict[tuple[str, str], list[tuple[str, str]]] = {}
    for name, remark in remarks:
        alike.setdefault(gist_of(name, remark), []).append((name, remark))
    return [_write_line(group) for group in alike.values()]


def key_of(remark: str) -> str:
    """Return the remark without its stage."""
    return _STAGE.sub("\0", remark, count=1)


def gist_of(name: str, remark: str) -> tuple[str, str]:
    """Return what makes two remarks one: of a wrong result its implementation, and the remark without its numbers."""
    if not _WRONG.match(remark):
        return "", key_of(remark)
    return name.partition(":")[0], _NUMBER.sub("", key_of(remark))


def _write_line(remarks: Sequence[tuple[str, str]]) -> str:
    (first, remark), *_ = remarks
    names = ", ".join(dict.fromkeys(name for name, _ in remarks))
    stages = dict.fromkeys(match[1] for _, other in remarks if (match := _STAGE.search(other)) is not None)
    whose = f" (numbers of {first})" if len({key_of(other) for _, other in remarks}) > 1 else ""
    return f"{names}: {_restore(key_of(remark), list(stages))}{whose}"


def _restore(words: str, stages: list[str]) -> str:
    """The remark, with all stages in place of its own."""
    quoted = ", ".join(f"'{stage}'" for stage in stages)
    return words.replace("\0", f"in {'stage' if len(stages) == 1 else 'stages'} {quoted}: ")


PAGE = "docs/traps.md"

LEAST_DEAD = 0.1
"""Of the traced FLOPs. Differentiation leaves dead equations in every training step, but no products."""

LEAST_CAPTURED_BYTES = 1_000_000
LEAST_FROM_ONE_LINE = 1_000
"""Equations: no layer that a person writes has so many."""


@dataclass(frozen=True)
class TrapKind:
    """What is said of a kind of trap.

    Args:
      title: A noun of at most three words; the heading on the page of traps is made of it.
      sentence: What it means for the number; `{}` stands for the evidence.
      instead: What to do.
    """

    title: str
    sentence: str
    instead: str

    @property
    def address(self) -> str:
        """Where the documentation describes it."""
        return f"{PAGE}#{self.title.lower().replace(' ', '-')}"


CALLBACKS = "callbacks"
"""The kind whose time is also that of Python code."""

NO_INPUT = "no_input"
"""The kind without which a speedup means nothing: such a program may do all its work while it is compiled."""

KINDS: Mapping[str, TrapKind] = {
    "dead_work": TrapKind(
        "Dead work",
        "{} do not reach the result; XLA removes that work, and the time is without it",
        "Return what the work computes, or remove the work.",
    ),
    NO_INPUT: TrapKind(
        "Constant results",
        "{} depends on no argument, so XLA can compute it while it compiles",
        "Pass what the result depends on as an argument.",
    ),
    "constants": TrapKind(
        "Captured constants",
        "the program holds {} as constants: they take memory in it, lengthen compilation, and other values need "
        "another program",
        "Pass the arrays as arguments.",
    ),
    "donation": TrapKind(
        "Unused donation",
        "{}, so a call needs memory for them twice",
        "Return an array of the same shape and dtype for each donated one, or donate fewer arguments.",
    ),
    "truncated": TrapKind(
        "Truncated dtypes",
        "{}: JAX computes in the narrower dtype",
        "Ask for the narrower dtype, or set jax_enable_x64.",
    ),
    CALLBACKS: TrapKind(
        "Callbacks",
        "{} calls Python from the program, and the time includes Python's",
        "Measure without the callback, or declare it.",
    ),
    "unrolled": TrapKind(
        "Unrolled loops",
        "{} come from one source line, as an unrolled Python loop makes them; compile time grows with their number",
        "Use jax.lax.fori_loop or jax.lax.scan.",
    ),
}
"""By the name that records hold and suites declare."""


def describe_trap(trap: Trap) -> str:
    """Return a sentence: what was found, what it means for the number, where, and the page that describes it."""
    kind = KINDS.get(trap.kind)
    where = f" ({', '.join(trap.sources)})" if trap.sources else ""
    if kind is None:  # of a later version
        return f"trap: {trap.evidence}{where}"
    status = "declared" if trap.declared else "trap"
    return f"{status}: {kind.title.lower()}: {kind.sentence.format(trap.evidence)}{where}; {kind.address}"


def name_trap(trap: Trap) -> str:
    """Return the title of a trap's kind in lower case, as it is shown next to a number."""
    return KINDS[trap.kind].title.lower() if trap.kind in KINDS else trap.kind


def find_traps(outcomes: Mapping[str, Outcome]) -> tuple[Trap, ...]:
    """Return the traps of a variant that its suite does not declare, each kind's in the order of the table."""
    order = list(KINDS)
    undeclared = [trap for trap in list_all_traps(outcomes) if not trap.declared]
    return tuple(sorted(undeclared, key=lambda trap: order.index(trap.kind) if trap.kind in KINDS else len(order)))


def find_no_input_objection(outcomes: Mapping[str, Outcome]) -> str:
    """Return why a variant has no speedup: its whole result depends on no argument, or that is unknown; else nothing.

    A declaration does not change that: such a program computes nothing when it is called.
    """
    details = _list_details(outcomes)
    if any(trap.kind == NO_INPUT and trap.share == 1.0 for each in details for trap in each.traps):
        return "its whole result depends on no argument, so XLA can compute it while it compiles"
    if any(NO_INPUT in each.unknown_traps for each in details):
        return "it is unknown whether its result depends on an argument"
    return ""


def list_all_traps(outcomes: Mapping[str, Outcome]) -> tuple[Trap, ...]:
    """Return the traps of a variant, those that its suite declares among them."""
    return tuple(trap for each in _list_details(outcomes) for trap in each.traps)


def _list_details(outcomes: Mapping[str, Outcome]) -> list[CompilationDetails]:
    details = (outcome.details for outcome in outcomes.values())
    return [each for each in details if isinstance(each, CompilationDetails)]
