"""Where the time of a step goes: the ledger of each variant, its largest operations, and why there is none."""

import msgspec
import pytest

from jaxmeter.document.model import Tone
from jaxmeter.harness.metrics.write import NO_LINE
from jaxmeter.harness.record import Answer
from jaxmeter.harness.record.trace_summary import Finding, Problem
from jaxmeter.harness.traces.ledger import GROUPS
from jaxmeter.reporting.view.figure_model import Fill
from jaxmeter.reporting.view.figures.stacks import SMALLEST_PART
from tests import samples
from tests.reporting.views import by_variant, card_of, page_of, section, tables, texts


def case_with(workload="selu", **traces):
    names = {name: f"{name}:jit" for name in traces}
    planned = samples.planned_case(workload, variants=tuple(names.values()))
    outcomes = {
        names[name]: {
            "numerics": samples.numerics(),
            "timing": samples.timing(1e-3, baseline_s=1e-3, spread=0),
            **({} if trace is None else {"trace": trace}),
        }
        for name, trace in traces.items()
    }
    return planned, samples.record(planned, outcomes)


def page_of_cases(*cases):
    return page_of(samples.run(*cases, settings=samples.settings(probes=("numerics", "timing", "trace"))))


def page_with(**traces):
    return page_of_cases(case_with(**traces))


def test_each_variant_with_a_capture_has_a_row_with_what_bounds_it():
    page = page_with(f=samples.traced(1e-3, 1e-3, 1e-3), g=None)

    rows = by_variant(page, "traces")

    assert list(rows) == ["f:jit"]
    assert rows["f:jit"]["Bound by"] == "bound by the device's operations 90 % of the step"
    assert (rows["f:jit"]["Device busy"], rows["f:jit"]["Device busy time"]) == ("90 %", "900 µs")
    assert rows["f:jit"]["Traced ÷ timed"] == "1.00×"


PARTS = {"compute": 0.3, "callback": 0.1, "transfer": 0.1, "dispatch": 0.2, "host amid": 0.2, "waiting": 0.1}


def draw_steps(page):
    """By the label of each bar, the whole in words and the share of each part."""
    (suite,) = page.suites
    rows = card_of(suite.cases[0].figures, "time").figure.rows
    return {row.label: (row.total, {part.fill: part.amount for part in row.parts}) for row in rows}


def test_a_step_is_told_by_all_parts_of_its_ledger_and_drawn_by_five_groups():
    page = page_with(f=samples.traced(1e-3, ledger=PARTS))

    told = by_variant(page, "traces")["f:jit"]["Parts of a step"]
    total, shares = draw_steps(page)["f"]

    assert told == "compute 30 %, callback 10 %, transfer 10 %, dispatch 20 %, host amid 20 %, waiting 10 %"
    assert list(shares) == list(GROUPS) == [Fill.DEVICE, Fill.TRANSFER, Fill.DISPATCH, Fill.HOST, Fill.IDLE]
    assert list(shares.values()) == pytest.approx([0.4, 0.1, 0.2, 0.2, 0.1])
    assert total.replace("\u202f", " ") == "1.00 ms"


def test_a_capture_without_a_ledger_is_not_drawn_and_its_case_says_that_nothing_is_known():
    page = page_with(f=samples.traced(1e-3, ledger={}), g=samples.traced(1e-3))
    (suite,) = page.suites

    assert list(draw_steps(page)) == ["g"]
    (phrase,) = card_of(suite.cases[0].figures, "time").phrases
    assert phrase.text.startswith("f: bound unknown: ")
    assert page_with(f=samples.traced(1e-3, ledger={})).overview.time is None


def test_a_part_too_small_to_be_seen_is_not_drawn():
    page = page_with(f=samples.traced(1e-3, ledger={"compute": 1 - SMALLEST_PART / 2, "waiting": SMALLEST_PART / 2}))

    assert list(draw_steps(page)["f"][1]) == [Fill.DEVICE]


def test_a_step_that_tracing_slows_down_is_drawn_with_its_time_and_how_much():
    total, _ = draw_steps(page_with(f=samples.traced(2e-3, 2e-3, busy=0.6)))["f"]

    assert total.replace("\u202f", " ") == "1.00 ms, traced 2.0×"


def test_the_first_screen_says_where_the_time_of_the_leading_step_goes():
    (phrase,) = page_with(f=samples.traced(1e-3, 1e-3, 1e-3, ledger=PARTS)).overview.time.phrases

    assert phrase.text.replace("\u202f", " ") == "Selu: 40 % device. Overhead: 20 % dispatch."
    assert phrase.tone is Tone.PLAIN


def test_the_largest_overhead_of_busy_steps_names_its_case():
    busy = {"compute": 0.9, "dispatch": 0.1}
    page = page_of_cases(
        case_with(f=samples.traced(1e-3, ledger=busy)), case_with("mlp_step", f=samples.traced(1e-3, ledger=PARTS))
    )

    (phrase,) = page.overview.time.phrases

    assert phrase.text.replace("\u202f", " ") == "Selu: 90 % device. Overhead: 20 % dispatch, mlp step."


def test_the_first_screen_shows_the_leading_variant_unless_only_another_one_is_like_its_timed_step():
    alike, slowed = samples.traced(1e-3), samples.traced(2e-3, busy=0.6)

    def label(f, g):
        planned, record = case_with(f=f, g=g)
        planned = msgspec.structs.replace(planned, answer=Answer("Which?", "g:jit", against="f:jit"))
        return [row.label for row in page_of_cases((planned, record)).overview.time.figure.rows]

    assert label(alike, alike) == ["selu"]
    assert label(alike, slowed) == ["selu, f"]
    assert label(slowed, slowed) == ["selu"]


def test_without_a_step_like_its_timed_one_the_first_screen_warns():
    (phrase,) = page_with(f=samples.traced(2e-3, 2e-3, busy=0.6)).overview.time.phrases

    assert phrase.text.replace("\u202f", " ") == "Selu: 60 % device of the traced step."
    assert phrase.doubt


def test_lines_of_the_code_have_their_shares_and_the_rest_is_one_row():
    of_lines = {f"train.py:{number}": 0.15 for number in range(6)} | {"": 0.1}
    page = page_with(f=samples.traced(1e-3, by_source=of_lines))
    (_, _, lines) = tables(page, "traces")

    rows = [texts(row) for row in lines.rows]

    assert rows[0] == ["train.py:0", "15 %"]
    assert [row[0] for row in rows[4:]] == ["train.py:4", "other lines, and operations without one"]
    assert rows[-1][1] == "25 %"


@pytest.mark.parametrize(
    ("by_source", "is_explained"),
    [({"": 1.0}, True), ({"train.py:1": 0.1, "": 0.9}, False), ({}, False)],
    ids=["lines of libraries alone", "a line of the user", "no operation at all"],
)
def test_a_capture_without_any_line_of_the_users_code_says_why(by_source, is_explained):
    (part,) = section(page_with(f=samples.traced(1e-3, by_source=by_source)), "traces").parts

    assert (f"f:jit: {NO_LINE}" in part.notes) is is_explained


def test_a_step_that_tracing_slows_down_has_no_device_time_and_no_bound():
    row = by_variant(page_with(f=samples.traced(2e-3, 2e-3, busy=0.6)), "traces")["f:jit"]

    assert row["Traced ÷ timed"] == "2.0×"
    assert row["Bound by"].startswith("bound unknown")
    assert row.get("Device busy time", "—") == "—"


def test_operations_name_the_line_of_the_code_and_the_rest_is_one_row():
    page = page_with(f=samples.traced(1e-3))
    (_, operations) = tables(page, "traces")

    rows = [texts(row) for row in operations.rows]

    assert [row[0] for row in rows] == ["dot.1 train.py:48", "fusion.2 train.py:50", "3 more operations"]
    assert [row[2] for row in rows] == ["75 %", "20 %", "5 %"]
    assert rows[0][4:] == ["20.0 GFLOP/s", "30.0 GB/s"]


def test_a_capture_that_gives_no_number_says_why():
    finding = Finding(problem=Problem.NO_DEVICE, text="it has no plane of the device", remedy="capture again")
    (part,) = section(page_with(f=samples.traced(1e-3, findings=(finding,))), "traces").parts

    (note,) = part.notes
    assert note == "f:jit: the capture gives no numbers: it has no plane of the device; capture again"


def test_the_answer_counts_what_bounds_the_steps():
    page = page_with(
        f=samples.traced(1e-3, 1e-3),
        g=samples.traced(1e-3, 1e-3, busy=0.2),
        h=samples.traced(2e-3, 2e-3, busy=0.5),
        i=samples.traced(1e-3, busy=0.4, ledger={"compute": 0.4, "dispatch": 0.3, "waiting": 0.3}),
    )

    assert next(line.text for line in page.answers if line.suite == "traces") == (
        "Of 4 captured steps: 1 bound by the device's operations, 1 bound by Python, 1 without a dominant part, "
        "1 with an unknown bound."
    )
