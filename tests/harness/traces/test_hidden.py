"""Operations that command buffers hide are named by a second capture."""

import msgspec
import pytest

from jaxmeter.harness.record.trace_summary import Finding, Problem
from jaxmeter.harness.traces.host_operations import is_hidden, name_operations
from tests import samples

HIDDEN = Finding(problem=Problem.COMMAND_BUFFERS, text="90 % of the device's time", is_fatal=False)
FATAL = Finding(problem=Problem.DROPPED_EVENTS, text="the profiler lost events")


def summary(*traced_s, **changes):
    return samples.traced(*traced_s, platform="gpu", **changes).details.summary


def test_operations_are_those_of_the_second_capture_and_times_those_of_the_first():
    first = summary(1e-3, findings=(HIDDEN,), operations=(samples.traced_operation("kernel", share=1.0),))
    second = summary(9e-3, flops=5.0, bytes=7.0)

    named = name_operations(first, second)

    assert [one.name for one in named.operations] == ["dot.1", "fusion.2"]
    assert (named.flops, named.bytes, named.others) == (5.0, 7.0, 3)
    assert (named.traced_s, named.devices, named.ledger) == (first.traced_s, first.devices, first.ledger)
    assert [one.is_fatal for one in named.findings] == [False]
    assert "second capture" in named.findings[0].text


@pytest.mark.parametrize("changes", [{"findings": (FATAL,)}, {"findings": (HIDDEN,)}, {"operations": ()}])
def test_a_second_capture_that_names_no_more_changes_nothing(changes):
    first = summary(1e-3, findings=(HIDDEN,))

    assert name_operations(first, summary(1e-3, **changes)) is first


@pytest.mark.parametrize(
    ("findings", "is_so"), [((), False), ((HIDDEN,), True), ((HIDDEN, FATAL), False), ((FATAL,), False)]
)
def test_only_a_healthy_capture_is_worth_a_second_one(findings, is_so):
    assert is_hidden(msgspec.structs.replace(summary(1e-3), findings=findings)) is is_so
