"""What the details of a probe say, as sentences: for pages, terminals and notebooks alike."""

from __future__ import annotations

from jaxmeter.harness.metrics.contention import stand_alone
from jaxmeter.harness.record.outcomes import (
    CompilationDetails,
    Conditioning,
    Correctness,
    Details,
    NumericsDetails,
    TimingDetails,
    TraceDetails,
)
from jaxmeter.harness.record.trace_summary import Finding, TraceSummary
from jaxmeter.harness.record.traps import describe_trap
from jaxmeter.harness.record.wording import counted

IN_FULL = "float32"
"""The format in which float32 products lose nothing, which is nothing to say."""

NO_LINE = "no operation has a line of your code: all source lines are of installed packages, or the program has none"
"""Why a capture has no time by source line."""


def describe_details(details: Details | None, *, raises: str | None = None) -> tuple[str, ...]:
    """Return what a reader must know in addition to the numbers, a sentence each, unless a section of its own shows it.

    Args:
      raises: The error that the implementation declares, by name.
    """
    match details:
        case TimingDetails():
            return _describe_processes(details)
        case NumericsDetails():
            return _describe_comparison(details, raises)
        case CompilationDetails():
            return (*_describe_cached(details.cached), *map(describe_trap, details.traps))
        case TraceDetails(summary=TraceSummary() as summary):
            return tuple(map(describe_finding, summary.findings))
        case _:
            return ()


def _describe_cached(stages: tuple[str, ...]) -> tuple[str, ...]:
    return (f"cached: {', '.join(stages)}; this process had compiled the program before",) if stages else ()


def describe_finding(finding: Finding) -> str:
    """Say what is wrong with a capture, what follows from it, and what helps."""
    says = "the capture gives no numbers" if finding.is_fatal else "the capture"
    return f"{says}: {finding.text}{'; ' if finding.remedy else ''}{finding.remedy}"


def _describe_processes(details: TimingDetails) -> tuple[str, ...]:
    sentences = []
    if details.contended:
        many = f"{details.contended} of {details.processes} processes"
        enough = stand_alone(details.processes - details.contended, details.processes)
        sentences.append(f"set aside: {many}, contended" if enough else f"contended: {many} were contended")
    if details.unsteady:
        sentences.append(f"no steady state within the warm-up in {details.unsteady} of {details.processes} processes")
    return tuple(sentences)


def _describe_comparison(details: NumericsDetails, raises: str | None) -> tuple[str, ...]:
    sentences = []
    if details.raised is not None:
        error = "raises" if raises is None else f"raises {raises}"
        sentences.append(f"{error}, as declared: {details.raised}")
    if details.products not in (None, IN_FULL):
        sentences.append(f"float32 matrix products are computed in {details.products}")
    if details.unchecked:
        sentences.append(f"not checked: {details.unchecked} of {details.outputs} outputs, NaN in both results")
    if details.verdict is not None and details.conditioning is not None:
        sentences.append(_describe_conditioning(details.verdict, details.conditioning, details.outputs))
    return tuple(sentences)


def _describe_conditioning(verdict: Correctness, found: Conditioning, outputs: int | None) -> str:
    """`right within the problem's conditioning: 13 of 170 outputs are beyond their tolerance; worst ['w']: …`."""
    of_all = "" if outputs is None else f" of {counted(outputs, 'output')}"
    verb = "is" if found.beyond == 1 else "are"
    parts = [f"{found.beyond}{of_all} {verb} beyond the tolerance"]
    where = f" at {found.worst}" if found.worst else ""
    if found.is_too_slow:
        parts.append(f"error {_write(found.error)}{where}; running the program on moved inputs takes too long")
    else:
        parts.append(f"error {_write(found.error)}{where}, rounding alone explains {_write(found.allowed)}")
        parts.append(f"{found.digits or 0:.1f} digits of that output are left")
        if found.unresolved and verdict is not Correctness.CANNOT_BE_CHECKED:
            parts.append(f"{found.unresolved} cannot be checked: rounding alone reaches their size")
    return f"{verdict.value}: {'; '.join(parts)}"


def _write(error: float | None) -> str:
    return "beyond any number" if error is None else f"{error:.2g}"
