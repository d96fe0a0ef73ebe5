"""What the table on speed shows of processes and of intervals."""

import msgspec
import pytest

from jaxmeter.document.model import Tone
from tests import samples
from tests.reporting.views import by_variant, headings, page_of, tables

CALIBRATION_S = tuple(1e-4 * factor for factor in samples.WOBBLE)


def run_with(*, settings=None, **jit):
    """Eager and jit code of one case, in rounds with a calibration loop."""
    planned = samples.planned_case(variants=("f:eager", "f:jit"))
    outcomes = {
        "f:eager": {"timing": samples.timing(1e-3, calibration_s=CALIBRATION_S, **jit)},
        "f:jit": {"timing": samples.timing(1e-4, baseline_s=1e-3, calibration_s=CALIBRATION_S, **jit)},
    }
    settings = settings or samples.settings(most_rounds=12, shown_confidence=0.95)
    return samples.run((planned, samples.record(planned, outcomes)), settings=settings)


def test_a_contended_time_is_marked_in_both_columns():
    row = by_variant(page_of(run_with(contended=3)))["f:jit"]

    assert row["Time"].startswith("! 100 µs")
    assert row["Normalised"].startswith("! 100 µs")


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


def test_a_pipelined_time_has_a_column_with_what_queueing_is_worth_where_calls_were_queued():
    planned = samples.planned_case(variants=("f:eager", "f:jit"))
    queued = {"pipelined_s": (1e-3,) * 3, "pipelined_speedup": (1.2, 1.25, 1.3)}
    timing = samples.timing(1.25e-3, processes=3)
    outcomes = {
        "f:eager": {"timing": timing},
        "f:jit": {"timing": msgspec.structs.replace(timing, values={**timing.values, **queued})},
    }

    rows = by_variant(page_of(samples.run((planned, samples.record(planned, outcomes)))))

    assert rows["f:jit"]["Pipelined"].startswith("1.00 ms 1.25× [")
    assert "Pipelined" not in by_variant(page_of(run_with()))["f:jit"]


@pytest.mark.parametrize(("shown", "note"), [(0.99, "target ±2 % not reached: ±3"), (0.5, "")])
def test_whether_the_target_was_reached_is_told_of_the_interval_that_is_shown(shown, note):
    settings = samples.settings(most_rounds=12, shown_confidence=shown)

    row = by_variant(page_of(run_with(settings=settings, spread=4)))["f:jit"]

    assert ("target" in row["Notes"]) is bool(note)
    assert note in row["Notes"]
