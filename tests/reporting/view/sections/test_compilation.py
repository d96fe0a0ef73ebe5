import math

import msgspec
import pytest

from jaxmeter.harness.record import Status
from jaxmeter.reporting.view.page_model import StackMark, Tone
from tests import samples
from tests.reporting.views import by_variant, headings, page_of, section, tables, texts


def run_of(outcome, *, planned=None, **changes):
    planned = planned or samples.planned_case(variants=("f:jit",))
    record = samples.record(planned, {planned.variants[0].name: {"compilation": outcome}})
    return samples.run((planned, record), **changes)


def cell_of(run, heading, *, table=0, variant="f:jit"):
    found = tables(page_of(run), "compilation")[table]
    index = [column.title for column in found.columns].index(heading)
    return next(row.cells[index] for row in found.rows if row.cells[0].text == variant)


def test_the_number_of_cold_processes_is_fixed_so_that_their_interval_is_not_widened_for_looks():
    planned = samples.planned_case(variants=("f:jit",))
    cold = samples.compilation(0.01, 0.01, 0.05, 0.01, processes=5)
    timings = (samples.timing(1e-3, looks=looks) for looks in (1, 3))
    records = (samples.record(planned, {"f:jit": {"compilation": cold, "timing": one}}) for one in timings)

    once, often = (samples.run((planned, record)) for record in records)

    assert cell_of(once, "compile") == cell_of(often, "compile")


def test_the_total_is_the_mean_of_the_sums_of_each_process():
    outcome = samples.compilation(1.0, 1.0, 1.0, 1.0)
    values = {"trace_s": (1, 1, 1), "lower_s": (1, 1, 1), "compile_s": (1, 2, 9), "first_call_s": (7, 6, 9)}

    row = by_variant(page_of(run_of(msgspec.structs.replace(outcome, values=values))), "compilation")["f:jit"]

    assert row["Total"].startswith(f"{math.exp((2 * math.log(10) + math.log(20)) / 3):.0f} s")


def test_a_process_that_lacks_a_stage_has_no_total():
    values = {"trace_s": (1, 1), "lower_s": (1, 1), "compile_s": (5, None), "first_call_s": (1, 1)}

    row = by_variant(page_of(run_of(samples.Outcome(status=Status.OK, values=values))), "compilation")["f:jit"]

    assert row["Total"] == "8.00 s"


def test_a_bar_is_as_long_as_its_seconds_relative_to_the_slowest_of_all():
    (table, *_) = tables(page_of(samples.watched_run()), "compilation")
    longest_s = 0.54
    group = next(group for group in table.groups if group.title.startswith("selu"))

    bars = [cell.mark.shares for row in group.rows for cell in row.cells if isinstance(cell.mark, StackMark)]

    assert bars[0] == pytest.approx((0, 0, 0, 0.08 / longest_s), rel=1e-3)
    assert bars[1] == pytest.approx([one / longest_s for one in (0.004, 0.006, 0.05, 0.001)], rel=1e-3)
    assert table.caption.endswith("A bar of full width is 540\u202fms.")


def test_a_column_that_no_program_has_is_left_out():
    run = run_of(samples.compilation(1, 1, 1, 1, counts={"hlo_fusions": 3}))

    _, programs = tables(page_of(run), "compilation")

    assert [column.title for column in programs.columns] == ["Variant", "Equations", "Fusions"]


def test_one_process_that_compiles_again_is_enough():
    outcome = samples.compilation(1, 1, 1, 1)
    values = {**outcome.values, "compiles": (1, 1, 1), "recompiles": (0, 0, 1)}

    cell = cell_of(run_of(msgspec.structs.replace(outcome, values=values)), "Compiles")

    assert (cell.detail, cell.tone) == ("! 1 again", Tone.WARN)


def test_a_variant_within_its_budget_says_so_quietly():
    planned = samples.planned_case(variants=(msgspec.structs.replace(samples.planned_variant("f:jit"), compiles=4),))

    cell = cell_of(run_of(samples.compilation(1, 1, 1, 1, counts={"compiles": 4}), planned=planned), "Compiles")

    assert (cell.text, cell.detail, cell.tone) == ("4", "4 declared", Tone.PLAIN)


@pytest.mark.parametrize("damaged", [-1.0, 1e300, 10**400, None])
def test_a_damaged_stage_is_a_dash_and_no_part_of_a_bar(damaged):
    values = {"trace_s": (1, 1), "lower_s": (1, 1), "compile_s": (damaged, damaged), "first_call_s": (1, 1)}
    run = run_of(samples.Outcome(status=Status.OK, values=values))

    row = by_variant(page_of(run), "compilation")["f:jit"]

    assert (row["trace"], row["compile"]) == ("1.00 s", "—")
    assert cell_of(run, "Seconds").mark.shares == pytest.approx((1 / 3, 1 / 3, 0, 1 / 3))


def test_what_xla_counts_for_one_of_several_devices_is_held_against_its_share():
    planned = samples.planned_case(variants=("f:jit",), cost=samples.Cost(flops=8_000_000), devices=4)
    outcome = samples.compilation(1, 1, 1, 1, counts={**samples.PROGRAM, "counted_flops": 2_040_000})

    cell = cell_of(run_of(outcome, planned=planned), "FLOP", table=1)

    assert cell.detail == "1.02× declared"


@pytest.mark.parametrize("damaged", [-1, 1e300, 10**400, None])
def test_damaged_counts_are_dashes(damaged):
    counts = {**dict.fromkeys(samples.PROGRAM, damaged), "hlo_fusions": 1}
    planned = samples.planned_case(variants=("f:jit",), cost=samples.Cost(flops=10**400, bytes=-1))

    page = page_of(run_of(samples.compilation(1, 1, 1, 1, equations=-1, counts=counts), planned=planned))

    assert texts(tables(page, "compilation")[1].rows[0]) == ["f:jit", "1"]
    assert "Compiles" not in headings(page, "compilation")


def test_processes_that_differ_beyond_measure_have_a_middle_but_no_bounds():
    values = {"first_call_s": (1e-12, 1e9, 1e-12)}
    settings = samples.settings(confidence=1 - 1e-12)

    assert (
        cell_of(run_of(samples.Outcome(status=Status.OK, values=values), settings=settings), "first call").detail == ""
    )


def test_what_could_not_be_exported_has_no_columns_and_a_note():
    note = "the exported program cannot be serialised and loaded: unregistered type State"
    counts = {"executable_load_s": 0.002, "executable_first_call_s": 0.001}
    run = run_of(samples.compilation(1, 1, 1, 1, counts=counts, notes=(note,)))

    _, table = tables(page_of(run), "compilation")
    (part,) = section(page_of(run), "compilation").parts

    assert [column.title for column in table.columns] == ["Variant", "From Python", "Load", "First call"]
    assert any(note in one for one in part.notes)


@pytest.mark.parametrize(("entries", "detail"), [(4, "4 cache entries"), (2, ""), (None, "")])
def test_entries_of_the_cache_are_told_where_they_are_not_the_programs(entries, detail):
    outcome = samples.compilation(1.0, counts={"compiles": 2} | ({} if entries is None else {"cache_entries": entries}))

    assert cell_of(run_of(outcome), "Compiles").detail == detail
    assert ("Cache entries" in tables(page_of(run_of(outcome)), "compilation")[0].caption) is bool(detail)
