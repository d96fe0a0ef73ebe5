import math
from functools import partial

import pytest
from msgspec import structs

from jaxmeter.harness.record import Outcome, Status
from jaxmeter.reporting.compare.verdicts import PROGRAM, TIME
from jaxmeter.reporting.history import gather_series
from tests import samples
from tests.reporting.history.runs import CALIBRATION_S, another_definition, night, nights, snapshots


def series_of(runs, metric=TIME):
    return [one for one in gather_series(snapshots(runs)) if one.metric == metric]


def with_times(run, **values):
    return samples.change_timings(run, lambda timing, _: samples.with_values(timing, **values))


def test_a_variant_has_a_series_of_times_programs_and_exact_numbers():
    found = gather_series(snapshots(nights(3, lambda number: 1e-3)))

    assert [(one.case.name, one.variant, one.metric, len(one.points)) for one in found] == [
        ("selu[dtype=float32,n=10000]", "selu:jit", metric, 3) for metric in (TIME, PROGRAM, "planned_peak_bytes")
    ]


def test_times_are_brought_to_the_speed_of_the_first_run():
    runs = [night(0, 1e-3), night(1, 1e-3, speed=2.0), night(2, 1e-3, speed=0.5)]

    (series,) = series_of(runs)

    assert [point.value for point in series.points] == pytest.approx([1e-3] * 3, rel=1e-3)
    assert series.calibration == samples.CALIBRATION


def test_what_processes_tell_of_the_calibration_beside_their_blocks_goes_before_the_processes_calibration():
    (series,) = series_of([with_times(run, over_calibration=(7.0,) * 5) for run in nights(2, lambda number: 1e-3)])

    assert [point.value for point in series.points] == pytest.approx([7.0 * CALIBRATION_S] * 2)


def test_without_a_calibration_the_times_are_as_they_were_measured():
    def measured(number, time_s):
        outcomes = {"numerics": samples.numerics(), "timing": samples.timing(time_s)}
        return samples.one_case({"selu:jit": outcomes}, run_id=f"r{number}", machine="m")

    (series,) = series_of([measured(0, 1e-3), measured(1, 2e-3)])

    assert [point.value for point in series.points] == pytest.approx([1e-3, 2e-3], rel=1e-3)
    assert series.calibration == ""


def test_times_over_another_calibration_are_a_series_of_their_own():
    def name_loop(timing, _):
        return structs.replace(timing, details=structs.replace(timing.details, calibration="alu 2"))

    runs = nights(4, lambda number: 1e-3)
    runs = [*runs[:2], *(samples.change_timings(run, name_loop) for run in runs[2:])]

    found = series_of(runs)

    assert [(one.calibration, [point.index for point in one.points]) for one in found] == [
        ("alu 1", [0, 1]),
        ("alu 2", [2, 3]),
    ]


def test_contended_times_are_left_out_and_counted():
    runs = nights(4, lambda number: 1e-3, contended=lambda number: 5 if number == 2 else 0)

    (series,) = series_of(runs)

    assert ([point.index for point in series.points], series.contended) == ([0, 1, 3], 1)


def without_the_case(run):
    return night(1, 1e-3, case=samples.planned_case("mlp", variants=("selu:jit",)))


def wrong(run):
    outcome = {"numerics": Outcome(status=Status.WRONG, reason="no")}
    return samples.change_outcomes(run, lambda outcomes, *_: {**outcomes, **outcome})


@pytest.mark.parametrize(
    "change",
    [
        without_the_case,
        another_definition,
        wrong,
        *(partial(with_times, execution_s=(value,) * 5) for value in (0.0, math.inf, math.nan, -1.0)),
    ],
)
def test_a_run_without_a_time_of_the_case_that_anybody_can_have_measured_is_a_gap(change):
    runs = nights(3, lambda number: 1e-3)
    runs[1] = change(runs[1])

    (series,) = series_of(runs)

    assert [point.index for point in series.points] == [0, 2]
    assert gather_series(snapshots(runs[:1])) == ()
