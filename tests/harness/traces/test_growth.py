"""Operations of two captures are joined, and compared by their time in a step of one device."""

from typing import Any

import msgspec
import pytest

from jaxmeter.harness.record.trace_summary import TracedDevice, TracedOperation, TraceSummary
from jaxmeter.harness.traces.growth import Presence, find_grown, list_unlike
from jaxmeter.harness.traces.summary import find_busy_per_step


def operation(name: str, share: float, **changes: Any) -> TracedOperation:
    fields = {"module": "jit_step", "opcode": "fusion", "source": "model.py:3", "category": "compute", **changes}
    return TracedOperation(name=name, count=4, total_s=1.0, self_s=1.0, share=share, **fields)


def summary(*operations: TracedOperation, busy_s: float = 1.0, others: int = 0) -> TraceSummary:
    devices = tuple(TracedDevice(name=name, busy_s=(busy_s, busy_s)) for name in "01")
    return TraceSummary(platform="gpu", steps_from="", devices=devices, operations=operations, others=others)


def rows(before: TraceSummary, after: TraceSummary) -> list[tuple[str, float | None, float | None, Presence]]:
    return [(one.name, one.before_s, one.after_s, one.presence) for one in find_grown(before, after)]


def test_operations_of_the_same_program_and_name_are_joined_and_sorted_by_what_they_grew():
    before = summary(operation("a", 0.25), operation("b", 0.75))
    after = summary(operation("b", 0.25), operation("a", 0.75), busy_s=2.0)

    assert rows(before, after) == [("a", 0.25, 1.5, Presence.BOTH), ("b", 0.75, 0.5, Presence.BOTH)]


def test_differences_add_up_to_that_of_the_busy_time_per_step_and_device():
    before = summary(operation("a", 0.4), operation("b", 0.6, source=""))
    after = summary(operation("a", 0.5), operation("c", 0.5, source="model.py:9"), busy_s=3.0)

    grown = find_grown(before, after)

    assert sum(one.difference_s for one in grown) == pytest.approx(2.0)
    assert (find_busy_per_step(before), find_busy_per_step(after)) == (1.0, 3.0)


def test_where_names_differ_opcode_and_source_line_join():
    before = summary(operation("fusion.12", 1.0, opcode="fusion of dot"))
    after = summary(operation("fusion.7", 1.0, opcode="fusion of dot", module="jit_step_1"), busy_s=2.0)

    (grown,) = find_grown(before, after)

    assert (grown.name, grown.earlier_name, grown.difference_s) == ("fusion.7", "fusion.12", 1.0)


@pytest.mark.parametrize(
    ("first", "second"), [({}, {"source": "other.py:4"}), ({}, {"opcode": "copy"}), ({"source": ""}, {"source": ""})]
)
def test_another_line_or_opcode_or_no_line_is_another_operation(first, second):
    before, after = summary(operation("fusion.1", 1.0, **first)), summary(operation("fusion.2", 1.0, **second))

    assert rows(before, after) == [("fusion.2", None, 1.0, Presence.NEW), ("fusion.1", 1.0, None, Presence.GONE)]


def test_several_operations_of_one_name_count_together():
    before = summary(operation("custom-call.1", 0.25), operation("custom-call.1", 0.75))

    (grown,) = find_grown(before, summary(operation("custom-call.1", 1.0), busy_s=2.0))

    assert (grown.operations, grown.before_s, grown.after_s) == (2, 1.0, 2.0)


def test_a_name_that_is_joined_is_no_partner_of_another():
    before, after = (summary(operation("a", 0.5), operation(other, 0.5)) for other in "bc")

    assert [(one.name, one.earlier_name) for one in find_grown(before, after)] == [("a", ""), ("c", "b")]


def test_what_a_summary_may_only_not_name_is_neither_new_nor_gone():
    before = summary(operation("a", 1.0, source="model.py:1"), others=5)
    after = summary(operation("b", 1.0, source="model.py:2"))

    assert {one.name: one.presence for one in find_grown(before, after)} == {"b": Presence.UNNAMED, "a": Presence.GONE}
    assert find_grown(after, before)[0].presence is Presence.NEW


@pytest.mark.parametrize(
    ("changes", "unlike"),
    [
        ({}, ()),
        ({"step_name": "train"}, ()),
        ({"platform": "cpu"}, ("platform: gpu in A, cpu in B",)),
        ({"device_kind": "H200"}, ("device: unknown in A, H200 in B",)),
        ({"devices": ()}, ("number of devices: 2 in A, 0 in B",)),
        ({"steps_from": "runs"}, ("steps: unknown in A, runs in B",)),
        ({"operations": (operation("a", 1.0, module="jit_g"),)}, ("programs: jit_step in A, jit_g in B",)),
        ({"operations": ()}, ()),
    ],
)
def test_captures_of_another_platform_or_program_are_unlike(changes, unlike):
    before = summary(operation("a", 1.0))

    assert list_unlike(before, msgspec.structs.replace(before, **changes)) == unlike


def test_captures_without_steps_have_no_times():
    empty = TraceSummary(platform="", steps_from="")

    assert find_grown(empty, empty) == ()
    assert find_busy_per_step(empty) is None
