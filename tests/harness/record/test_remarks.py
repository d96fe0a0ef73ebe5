"""One line for each remark, and the names most like an unknown one."""

from jaxmeter.harness.metrics.table import METRICS
from jaxmeter.harness.record.cases import explain_unknown, list_nearest
from jaxmeter.harness.record.outcomes import join_remarks


def test_a_remark_on_several_variants_is_one_line():
    assert join_remarks([("f:jit", "no count"), ("f:aot", "no count"), ("f:jit", "contended")]) == [
        "f:jit, f:aot: no count",
        "f:jit: contended",
    ]


def test_a_reason_of_several_stages_is_one_line_that_names_them():
    remarks = [
        ("f:eager", "failed: in stage 'inputs': TypeError: 'relu'"),
        ("f:jit", "failed: in stage 'trace': TypeError: 'relu'"),
        ("f:jit", "failed: in stage 'inputs': TypeError: 'relu'"),
    ]

    assert join_remarks(remarks) == ["f:eager, f:jit: failed: in stages 'inputs', 'trace': TypeError: 'relu'"]


def test_a_remark_of_one_stage_stays_as_it_is():
    assert join_remarks([("f:jit", "failed: in stage 'trace': no luck")]) == [
        "f:jit: failed: in stage 'trace': no luck"
    ]


def test_reasons_that_differ_are_lines_of_their_own():
    assert len(join_remarks([("f:jit", "in stage 'trace': a"), ("f:jit", "in stage 'trace': b"), ("f:jit", "a")])) == 3


def test_wrong_results_of_an_implementation_that_differ_in_their_numbers_alone_are_one_line():
    wrong = "wrong: at index (4, 211): got {}, reference -8.5; error {} of the largest entry"
    remarks = [("f:eager", wrong.format(-8.1, 0.046)), ("f:jit", wrong.format(8.2, "4.6e-02"))]

    assert join_remarks(remarks) == [f"f:eager, f:jit: {remarks[0][1]} (numbers of f:eager)"]
    assert len(join_remarks([*remarks, ("g:jit", remarks[1][1])])) == 2
    assert join_remarks([remarks[0], ("f:jit", remarks[0][1])]) == [f"f:eager, f:jit: {remarks[0][1]}"]
    assert len(join_remarks([("f:eager", "held 1 GiB"), ("f:jit", "held 9 GiB")])) == 2


def test_the_names_that_contain_what_was_wanted_come_first():
    nearest = list_nearest("fusions", METRICS)

    assert nearest[0] == "hlo_fusions"
    assert len(nearest) <= 5


def test_a_misspelt_name_finds_its_like_and_a_strange_one_all_names():
    assert list_nearest("peak_byte", METRICS)[0] == "planned_peak_bytes"
    assert explain_unknown("metric", "fusions", METRICS).startswith("no metric 'fusions'; nearest: hlo_fusions")
    assert explain_unknown("variant", "qq", ["a:jit", "b:jit"]) == "no variant 'qq'; there are a:jit, b:jit"
