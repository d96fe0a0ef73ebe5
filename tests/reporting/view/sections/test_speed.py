"""What the table on speed shows of processes and of intervals."""

import pytest

from jaxmeter.reporting.view.page_model import Tone
from tests import samples
from tests.reporting.views import by_variant, headings, page_of, tables

CALIBRATION_S = tuple(1e-4 * factor for factor in samples.WOBBLE)


def run_with(*, settings=None, peer=None, **jit):
    """Eager and jit code of one case, in rounds with a calibration loop unless `jit` says otherwise."""
    jit = {"calibration_s": CALIBRATION_S, **jit}
    planned = samples.planned_case(variants=("f:eager", "f:jit", *(["p:native"] if peer else [])))
    outcomes = {
        "f:eager": {"timing": samples.timing(1e-3, **jit)},
        "f:jit": {"timing": samples.timing(1e-4, baseline_s=1e-3, **jit)},
        **({"p:native": {"timing": peer}} if peer else {}),
    }
    settings = settings or samples.settings(most_rounds=12, shown_confidence=0.95)
    return samples.run((planned, samples.record(planned, outcomes)), settings=settings)


def details(page):
    (table, *_) = tables(page, "speed")
    return {column.title: column.detail.replace("\u202f", " ") for column in table.columns}


def test_a_time_has_the_range_of_its_processes_and_at_reference_speed_an_interval():
    page = page_of(run_with())

    row = by_variant(page)["f:jit"]
    assert (row["Time"], row["Normalised"]) == ("100 µs 99 to 101", "100 µs [100, 100]")
    assert (details(page)["Time"], details(page)["Normalised"]) == ("processes", "95 % interval")


def test_without_a_calibration_the_time_itself_has_the_interval():
    page = page_of(run_with(calibration_s=()))

    assert by_variant(page)["f:jit"]["Time"] == "100 µs [99, 101]"
    assert "Normalised" not in headings(page, "speed")
    assert details(page)["Time"] == "95 % interval"


def test_beside_times_at_reference_speed_one_without_has_its_interval_and_a_dash():
    page = page_of(run_with(peer=samples.timing(1e-3, baseline_s=1e-3)))

    row = by_variant(page)["p:native"]
    assert (row["Time"], row["Normalised"]) == ("1.00 ms [0.99, 1.01]", "—")


def test_two_processes_are_shown_in_place_of_an_interval():
    row = by_variant(page_of(run_with(processes=2, calibration_s=(1e-4, 1.1e-4))))["f:jit"]

    assert row["Speedup"] == "10× 10.00 to 10.05"
    assert row["Time"] == "100 µs 100 to 101"
    assert row["Normalised"] == "101 µs 96 to 105"


def test_a_contended_time_is_marked_in_both_columns():
    row = by_variant(page_of(run_with(contended=3)))["f:jit"]

    assert row["Time"].startswith("! 100 µs")
    assert row["Normalised"].startswith("! 100 µs")


@pytest.mark.parametrize(("shown", "level", "bounds"), [(0.95, "95 %", "[9.95, 10.05]"), (None, "99 %", "[9.9, 10.1]")])
def test_a_speedup_has_the_interval_that_is_shown(shown, level, bounds):
    page = page_of(run_with(settings=samples.settings(shown_confidence=shown)))

    assert details(page)["Speedup"] == f"{level} interval"
    assert by_variant(page)["f:jit"]["Speedup"] == f"10× {bounds}"


def jit_that_speedups(log_ratios, **settings):
    """The cell of a speedup whose processes have these log ratios."""
    planned = samples.planned_case(variants=("f:eager", "f:jit"))
    timing = samples.timing(1e-3, processes=len(log_ratios))
    jit = samples.Outcome(
        status=samples.Status.OK,
        values={**timing.values, "log_ratio": log_ratios},
        details=timing.details,
    )
    record = samples.record(planned, {"f:eager": {"timing": timing}, "f:jit": {"timing": jit}})
    page = page_of(samples.run((planned, record), settings=samples.settings(**settings)))
    (row,) = [row for row in tables(page, "speed")[0].rows if row.cells[0].text == "f:jit"]
    return row.cells[headings(page, "speed").index("Speedup")]


def test_a_speedup_that_the_shown_interval_tells_from_1_has_no_colour_where_that_for_verdicts_does_not():
    log_ratios = (0.05, 0.10, 0.15)

    assert jit_that_speedups(log_ratios, confidence=0.90).tone is Tone.GOOD
    assert jit_that_speedups(log_ratios, confidence=0.99, shown_confidence=0.90).tone is Tone.MUTED
    assert jit_that_speedups(log_ratios, confidence=0.90, shown_confidence=0.99).tone is Tone.GOOD


@pytest.mark.parametrize(("shown", "note"), [(0.99, "target ±2 % not reached: ±3"), (0.5, "")])
def test_whether_the_target_was_reached_is_told_of_the_interval_that_is_shown(shown, note):
    settings = samples.settings(most_rounds=12, shown_confidence=shown)

    row = by_variant(page_of(run_with(settings=settings, spread=4)))["f:jit"]

    assert ("target" in row["Notes"]) is bool(note)
    assert note in row["Notes"]
