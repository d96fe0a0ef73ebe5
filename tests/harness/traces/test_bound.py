"""What a program is bound by follows from the ledger by one rule, and from a roofline where peaks are known."""

import pytest

from jaxmeter.harness.record.trace_summary import Finding, Problem, TracedDevice, TraceSummary
from jaxmeter.harness.traces.bound import BoundKind, Roofs, describe_bound, find_bound
from jaxmeter.harness.traces.ledger import PARTS


def summary(ledger: dict[str, float], **changes: object) -> TraceSummary:
    fields = {"devices": (TracedDevice(name="0", busy_s=(1e-3, 3e-3, 2e-3)),), **changes}
    return TraceSummary(platform="gpu", steps_from="step annotations", ledger=ledger, **fields)


@pytest.mark.parametrize(
    ("part", "kind"),
    [
        ("compute", BoundKind.OPERATIONS),
        ("callback", BoundKind.CALLBACKS),
        ("collective", BoundKind.COLLECTIVES),
        ("transfer", BoundKind.TRANSFERS),
        ("between operations", BoundKind.WAITING),
        ("compile", BoundKind.COMPILATION),
        ("dispatch", BoundKind.DISPATCH),
        ("waiting", BoundKind.WAITING),
        ("host before", BoundKind.PYTHON),
        ("host amid", BoundKind.PYTHON),
        ("host after", BoundKind.PYTHON),
    ],
)
def test_the_part_that_takes_half_of_the_step_names_what_it_is_bound_by(part, kind):
    other = next(one for one in PARTS if find_bound(summary({one: 1.0}), Roofs()).kind is not kind)

    assert find_bound(summary({part: 0.5, other: 0.4999}), Roofs()).kind is kind
    assert find_bound(summary({part: 0.499, other: 0.4989}), Roofs()).kind is BoundKind.NOTHING


def test_every_part_is_counted_by_some_kind():
    assert all(find_bound(summary({part: 1.0}), Roofs()).share == 1 for part in PARTS)


@pytest.mark.parametrize(
    ("ledger", "kind", "share"),
    [
        ({"host before": 0.3, "host after": 0.3, "compute": 0.4}, BoundKind.PYTHON, 0.6),
        ({"compile": 0.3, "dispatch": 0.25, "compute": 0.45}, BoundKind.COMPILATION, 0.55),
        ({"compile": 0.25, "dispatch": 0.3, "compute": 0.45}, BoundKind.DISPATCH, 0.55),
    ],
)
def test_parts_of_one_group_count_together_by_the_name_of_the_larger(ledger, kind, share):
    bound = find_bound(summary(ledger), Roofs())

    assert (bound.kind, bound.share) == (kind, pytest.approx(share))


def test_where_nothing_dominates_the_largest_is_named():
    bound = find_bound(summary({"compute": 0.46, "host after": 0.33, "dispatch": 0.21}), Roofs())

    assert (bound.kind, bound.share, bound.largest) == (BoundKind.NOTHING, 0.46, BoundKind.OPERATIONS)
    assert describe_bound(bound) == (
        "No part dominates the traced step: the largest is the device's operations with 46\u202f%."
    )


@pytest.mark.parametrize(
    ("flops", "moved", "kind"),
    [
        (1.6e12, 0.2e9, BoundKind.ARITHMETIC),
        (0.2e12, 1.6e9, BoundKind.BANDWIDTH),
        (None, 1.6e9, BoundKind.OPERATIONS),
        (1.6e12, None, BoundKind.OPERATIONS),
    ],
)
def test_operations_are_bound_by_the_rate_that_is_nearer_to_its_peak(flops, moved, kind):
    found = summary({"compute": 0.9, "dispatch": 0.1}, flops=flops, bytes=moved)

    bound = find_bound(found, Roofs(flops={"bfloat16": 1e15}, bytes_per_s=1e12))

    assert bound.kind is kind
    assert bound.of_peak_flops == (None if flops is None else pytest.approx(flops / 2e-3 / 1e15))
    assert bound.of_peak_bandwidth == (None if moved is None else pytest.approx(moved / 2e-3 / 1e12))


def test_no_roofline_decides_where_formats_that_the_products_can_be_computed_in_disagree():
    found = summary({"compute": 1.0}, flops=0.2e12, bytes=0.4e9)
    both = Roofs(flops={"bfloat16": 1e15, "float32": 1e14}, bytes_per_s=1e12)

    bound = find_bound(found, both)

    assert (bound.kind, bound.of_peak_flops, bound.of_peak_bandwidth) == (BoundKind.OPERATIONS, 0.1, 0.2)
    assert find_bound(found, Roofs(flops={"float32": 1e14}, bytes_per_s=1e12)).kind is BoundKind.ARITHMETIC
    single = summary({"compute": 1.0}, flops=0.2e12, bytes=0.4e9, product_formats=("float32",))
    assert find_bound(single, both).kind is BoundKind.ARITHMETIC


def test_without_peaks_operations_are_all_that_is_known():
    bound = find_bound(summary({"compute": 0.9}, flops=1e9, bytes=1e6), Roofs())

    assert (bound.kind, bound.of_peak_flops) == (BoundKind.OPERATIONS, None)


@pytest.mark.parametrize("kind", BoundKind)
def test_every_kind_has_a_sentence(kind):
    from jaxmeter.harness.traces.bound import Bound

    sentence = describe_bound(Bound(kind=kind, share=0.6, largest=kind, of_peak_flops=0.3, of_peak_bandwidth=0.4))

    assert "60\u202f%" in sentence
    assert sentence.endswith(".")


def test_an_unhealthy_capture_has_no_bound():
    fatal = Finding(problem=Problem.DROPPED_EVENTS, text="events were lost")

    assert find_bound(summary({"compute": 1.0}, findings=(fatal,)), Roofs()) is None
    assert find_bound(summary({}), Roofs()) is None
    assert describe_bound(None) == ""


@pytest.mark.parametrize(("part", "is_named"), [("host after", False), ("dispatch", False), ("compute", True)])
def test_with_the_python_tracer_on_no_bound_by_the_host_is_named(part, is_named):
    tracer = Finding(problem=Problem.PYTHON_TRACER, text="it recorded many calls", is_fatal=False)

    assert (find_bound(summary({part: 1.0}, findings=(tracer,)), Roofs()) is not None) is is_named
    of_several = {part: 0.4, "callback": 0.3, "collective": 0.3}
    assert (find_bound(summary(of_several, findings=(tracer,)), Roofs()) is not None) is is_named


@pytest.mark.parametrize(
    ("flops", "moved", "kind"),
    [
        (0.31, 0.1, BoundKind.ARITHMETIC),
        (0.1, 0.31, BoundKind.BANDWIDTH),
        (0.29, 0.1, BoundKind.OPERATIONS),
        (0.1, 0.29, BoundKind.OPERATIONS),
        (0.1, 1.01, BoundKind.OPERATIONS),
        (1.01, 0.1, BoundKind.ARITHMETIC),
    ],
)
def test_operations_far_below_both_roofs_or_above_the_memory_s_are_bound_by_neither(flops, moved, kind):
    peak_flops, peak_bytes_per_s, busy_s = 1e12, 1e11, 2e-3
    of_peaks = summary({"compute": 1.0}, flops=flops * peak_flops * busy_s, bytes=moved * peak_bytes_per_s * busy_s)

    bound = find_bound(of_peaks, Roofs(flops={"float32": peak_flops}, bytes_per_s=peak_bytes_per_s))

    assert bound.kind is kind
