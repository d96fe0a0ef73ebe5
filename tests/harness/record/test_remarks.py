"""One line for each remark, and the names most like an unknown one."""

import pytest

from jaxmeter.harness.metrics.table import METRICS
from jaxmeter.harness.record.cases import explain_unknown, list_nearest
from jaxmeter.harness.record.outcomes import join_remarks

FAILED = "failed: in stage '{}': TypeError: 'relu'"


@pytest.mark.parametrize(
    ("remarks", "lines"),
    [
        (
            [("f:jit", "no count"), ("f:aot", "no count"), ("f:jit", "contended")],
            ["f:jit, f:aot: no count", "f:jit: contended"],
        ),
        (
            [
                ("f:eager", FAILED.format("inputs")),
                ("f:jit", FAILED.format("trace")),
                ("f:jit", FAILED.format("inputs")),
            ],
            ["f:eager, f:jit: failed: in stages 'inputs', 'trace': TypeError: 'relu'"],
        ),
        ([("f:jit", FAILED.format("trace"))], [f"f:jit: {FAILED.format('trace')}"]),
        (
            [("f:jit", "in stage 'trace': a"), ("f:jit", "in stage 'trace': b"), ("f:jit", "a")],
            ["f:jit: in stage 'trace': a", "f:jit: in stage 'trace': b", "f:jit: a"],
        ),
    ],
    ids=["several variants", "several stages", "one stage", "reasons that differ"],
)
def test_a_remark_on_several_variants_or_of_several_stages_is_one_line(remarks, lines):
    assert join_remarks(remarks) == lines


def test_wrong_results_of_an_implementation_that_differ_in_their_numbers_alone_are_one_line():
    wrong = "wrong: at index (4, 211): got {}, reference -8.5; error {} of the largest entry"
    remarks = [("f:eager", wrong.format(-8.1, 0.046)), ("f:jit", wrong.format(8.2, "4.6e-02"))]

    assert join_remarks(remarks) == [f"f:eager, f:jit: {remarks[0][1]} (numbers of f:eager)"]
    assert len(join_remarks([*remarks, ("g:jit", remarks[1][1])])) == 2
    assert join_remarks([remarks[0], ("f:jit", remarks[0][1])]) == [f"f:eager, f:jit: {remarks[0][1]}"]
    assert len(join_remarks([("f:eager", "held 1 GiB"), ("f:jit", "held 9 GiB")])) == 2


def test_names_that_contain_what_was_wanted_come_first_then_its_like_and_a_strange_one_finds_all():
    assert len(list_nearest("fusions", METRICS)) <= 5
    assert list_nearest("peak_byte", METRICS)[0] == "planned_peak_bytes"
    assert explain_unknown("metric", "fusions", METRICS).startswith("no metric 'fusions'; nearest: hlo_fusions")
    assert explain_unknown("variant", "qq", ["a:jit", "b:jit"]) == "no variant 'qq'; there are a:jit, b:jit"
