"""What two runs of unchanged code say of each other."""

import math

import pytest

from benchmarks import two_runs
from benchmarks.two_runs import KINDS, NothingToCompareError, Pair, describe_kind, describe_widths, find_pairs
from jaxmeter.harness.metrics.metric import Reading
from jaxmeter.harness.metrics.statistics import geometric_interval, speedup
from jaxmeter.harness.metrics.table import METRICS
from tests.samples import planned_case, record, run, timing

RATIOS, PEERS, TIMES, NORMALISED = KINDS
CASE = planned_case(variants=("selu:eager", "selu:jit", "numpy:native"))


def variants_of(jit_s: float, *, contended: int = 0, calibration_s: tuple[float, ...] = ()) -> two_runs.Variants:
    """One case of one run: eager code at 1 ms, a jitted function, a peer."""
    outcomes = {
        "selu:eager": {"timing": timing(1e-3, calibration_s=calibration_s)},
        "selu:jit": {"timing": timing(jit_s, baseline_s=1e-3, contended=contended, calibration_s=calibration_s)},
        "numpy:native": {"timing": timing(5e-3, baseline_s=1e-3, calibration_s=calibration_s)},
    }
    return two_runs.index_variants(run((CASE, record(CASE, outcomes))))


def pair(first: list[float], second: list[float], *, to_first: float = 1.0, shared: float = 0.0) -> Pair:
    """One time in two runs."""
    metric = METRICS["execution_s"]
    readings = [Reading(metric, tuple(one), geometric_interval(one), shared=shared) for one in (first, second)]
    return Pair("made up", *readings, to_first=to_first)


def test_a_kind_has_the_variants_that_have_such_a_number():
    first, second = variants_of(1e-4), variants_of(1e-4)

    names = {kind.title: [one.name for one in find_pairs(kind, first, second)] for kind in (RATIOS, PEERS, TIMES)}

    case = CASE.name
    assert names == {
        "JAX ratios": [f"{case} selu:jit"],
        "peer ratios": [f"{case} numpy:native"],
        "times": [f"{case} selu:eager", f"{case} selu:jit", f"{case} numpy:native"],
    }


def test_a_ratio_of_ratios_is_of_the_second_run_over_the_first():
    (found,) = find_pairs(RATIOS, variants_of(1e-4), variants_of(5e-5))

    assert found.ratio.estimate == pytest.approx(2.0)
    assert found.holds == (False, False)


def test_each_run_is_asked_whether_its_interval_holds_the_other_s_value():
    narrow, wide = [1.0, 1.001, 0.999], [1.1, 1.4, 0.9]

    assert pair(narrow, wide).holds == (False, True)
    assert pair(narrow, [1.0]).holds == (True,)


def test_times_at_reference_speed_are_brought_to_that_of_the_first_run():
    twice_as_slow = pair([1.0, 1.001, 0.999], [2.0, 2.002, 1.998], to_first=0.5)

    assert twice_as_slow.ratio.estimate == pytest.approx(1.0)
    assert twice_as_slow.holds == (True, True)


def test_two_runs_whose_calibrations_differ_are_brought_together_by_their_references():
    quick, slow = (variants_of(time_s, calibration_s=(time_s / 100,) * 5) for time_s in (1e-4, 3e-4))

    found = {one.name.rpartition(" ")[2]: one for one in find_pairs(NORMALISED, quick, slow)}

    assert found["selu:jit"].to_first == pytest.approx(1 / 3)
    assert found["selu:jit"].ratio.estimate == pytest.approx(1.0)


def test_what_two_runs_share_by_hour_widens_their_ratio():
    sides = [pair([1.0, 1.001, 0.999], [1.0, 1.001, 0.999], shared=shared).ratio for shared in (0.0, 0.01)]

    assert sides[0].high < 1.01 < 1.3 < sides[1].high


def test_runs_without_such_numbers_are_told_so_in_a_sentence():
    with pytest.raises(NothingToCompareError, match=r"no variant has speedup in both runs|no metric"):
        find_pairs(RATIOS, variants_of(1e-4), {})
    with pytest.raises(NothingToCompareError, match="normalised_s"):
        find_pairs(NORMALISED, variants_of(1e-4), variants_of(1e-4))


def test_false_verdicts_are_counted_with_and_without_what_is_contended():
    first, second = variants_of(1e-4), variants_of(2e-4, contended=5)

    lines = describe_kind(TIMES, find_pairs(TIMES, first, second))

    assert lines[4:7] == [
        '  "differs" between the runs: 1 of 3 (33.3 %; 95 % bounds 0.8 to 90.6 %)',
        "    of those contended in neither: 0 of 2 (0.0 %; 95 % bounds 0.0 to 84.2 %)",
        f"    {CASE.name} selu:jit: 2.000, contended",
    ]


def test_widths_are_told_by_tenths_of_the_variants():
    assert describe_widths([n / 100 for n in range(11)]) == "1.0 / 5.0 / 9.0 % (10 / 50 / 90 % of 11 variants)"
    assert describe_widths([0.1]) == "1 variants have bounds, too few to say"


def test_a_ratio_s_interval_is_what_the_page_shows():
    (found,) = find_pairs(RATIOS, variants_of(1e-4), variants_of(1e-4))

    assert found.first.interval == speedup([math.log(value) for value in found.first.known])
