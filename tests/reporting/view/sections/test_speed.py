"""What the table on speed shows of processes and of intervals."""

import pytest

from jaxmeter.document.model import Tone
from tests import samples
from tests.reporting.views import by_variant, headings, page_of, tables

CALIBRATION_S = tuple(1e-4 * factor for factor in samples.WOBBLE)


def run_with(*, settings=None, **jit):
    """Eager and jit code of one case, in rounds with a calibration loop."""
    times = {
        "f:eager": samples.timing(1e-3, calibration_s=CALIBRATION_S, **jit),
        "f:jit": samples.timing(1e-4, baseline_s=1e-3, calibration_s=CALIBRATION_S, **jit),
    }
    return samples.one_case(times, settings=settings or samples.settings(most_rounds=12, shown_confidence=0.95))


def test_a_contended_time_is_marked_in_both_columns():
    row = by_variant(page_of(run_with(contended=3)))["f:jit"]

    assert row["Time"].startswith("! 100 µs")
    assert row["Normalised"].startswith("! 100 µs")


def tone_of(log_ratios, **settings):
    """The tone of a speedup whose processes have these log ratios."""
    timing = samples.timing(1e-3, processes=len(log_ratios))
    times = {"f:eager": timing, "f:jit": samples.with_values(timing, log_ratio=log_ratios)}
    page = page_of(samples.one_case(times, settings=samples.settings(**settings)))
    (row,) = [row for row in tables(page, "speed")[0].rows if row.cells[0].text == "f:jit"]
    return row.cells[headings(page, "speed").index("Speedup")].tone


def test_a_speedup_that_the_shown_interval_tells_from_1_has_no_colour_where_that_for_verdicts_does_not():
    log_ratios = (0.05, 0.10, 0.15)

    assert tone_of(log_ratios, confidence=0.90) is Tone.GOOD
    assert tone_of(log_ratios, confidence=0.99, shown_confidence=0.90) is Tone.MUTED
    assert tone_of(log_ratios, confidence=0.90, shown_confidence=0.99) is Tone.GOOD


def test_a_pipelined_time_has_a_column_with_what_queueing_is_worth_where_calls_were_queued():
    timing = samples.timing(1.25e-3, processes=3)
    queued = samples.with_values(timing, pipelined_s=(1e-3,) * 3, pipelined_speedup=(1.2, 1.25, 1.3))

    rows = by_variant(page_of(samples.one_case({"f:eager": timing, "f:jit": queued})))

    assert rows["f:jit"]["Pipelined"].startswith("1.00 ms 1.25× [")
    assert "Pipelined" not in by_variant(page_of(run_with()))["f:jit"]


@pytest.mark.parametrize(("shown", "note"), [(0.99, "target ±2 % not reached: ±3"), (0.5, "")])
def test_whether_the_target_was_reached_is_told_of_the_interval_that_is_shown(shown, note):
    settings = samples.settings(most_rounds=12, shown_confidence=shown)

    row = by_variant(page_of(run_with(settings=settings, spread=4)))["f:jit"]

    assert ("target" in row["Notes"]) is bool(note)
    assert note in row["Notes"]
