"""Operations that command buffers (CUDA graphs) hide: a second capture without them names them."""

from __future__ import annotations

import msgspec

from jaxmeter.harness.record.trace_summary import Finding, Problem, TraceSummary

NAMED = Finding(
    problem=Problem.COMMAND_BUFFERS,
    text="command buffers hide operations: these are of a second capture, of the program compiled without them",
    is_fatal=False,
)


def is_hidden(summary: TraceSummary) -> bool:
    """Whether kernels of a healthy capture do not say of which operation they are."""
    return summary.is_healthy and any(one.problem is Problem.COMMAND_BUFFERS for one in summary.findings)


def name_operations(summary: TraceSummary, second: TraceSummary) -> TraceSummary:
    """Return a summary with the operations of a second capture; steps, busy times and ledger remain those of the first.

    The first is returned as it is where the second one names no more.
    """
    if not second.is_healthy or not second.operations or is_hidden(second):
        return summary
    taken = ("operations", "others", "others_share", "by_category", "by_source", "product_formats", "flops", "bytes")
    findings = tuple(one for one in summary.findings if one.problem is not Problem.COMMAND_BUFFERS)
    return msgspec.structs.replace(
        summary, **{name: getattr(second, name) for name in taken}, findings=(*findings, NAMED)
    )
