import math
import statistics
from types import SimpleNamespace

import msgspec
import pytest

from jaxmeter.harness.metrics.derived import compare_paired
from jaxmeter.harness.metrics.metric import Lack
from jaxmeter.harness.metrics.moderation import (
    EMPTY,
    FEWEST_POOLED,
    NO_CALIBRATION,
    Pool,
    PoolKind,
    ReferenceSpeed,
    fit_prior,
    refer_to,
)
from jaxmeter.harness.metrics.pooling import find_process_gap
from jaxmeter.harness.metrics.reading import Run, read_case
from jaxmeter.harness.metrics.statistics import BETWEEN_RUNS, PseudoProcess, geometric_interval, speedup
from jaxmeter.harness.record import Outcome, Status, TimingDetails
from tests import samples

IN_ROUNDS = samples.settings(most_rounds=12)


def run_of(*timings, mode="jit", settings=IN_ROUNDS):
    """A run with a case of one variant for each timing."""
    return run_of_cases(*[[timing] for timing in timings], mode=mode, settings=settings)


def run_of_cases(*cases, mode="jit", settings=IN_ROUNDS):
    """A run with a case for each list of timings, and a variant for each timing."""
    pairs = []
    for n, timings in enumerate(cases):
        names = [f"f{number}:{mode}" for number in range(len(timings))]
        planned = samples.planned_case(params={"n": n}, variants=names)
        outcomes = {name: {"timing": timing} for name, timing in zip(names, timings, strict=True)}
        pairs.append((planned, samples.record(planned, outcomes)))
    return samples.run(*pairs, settings=settings)


def variants_of(run):
    """All variants of a run's cases, with the pool of the run."""
    return [variant for case in Run(run).cases for variant in case.variants]


def pool_of(run):
    return Run(run).pool


def scattered(number, processes=5):
    """Timings whose spread differs from variant to variant."""
    return samples.timing(1e-3 * (number + 1), processes=processes, spread=1 + number)


def test_times_of_a_run_are_moderated_by_those_of_its_other_variants():
    run = run_of(*(scattered(number) for number in range(10)))

    variants = variants_of(run)

    values = [one.read("execution_s").known for one in variants]
    variances = [statistics.variance(math.log(value) for value in processes) for processes in values]
    prior = fit_prior(variances, [4] * 10)
    for place, (one, processes) in enumerate(zip(variants, values, strict=True)):
        assert one.read("execution_s").interval == geometric_interval(processes, borrowed=prior.lend(place))
        assert one.read("return_s").interval == geometric_interval(one.read("return_s").known)


@pytest.mark.parametrize(("cases", "pooled"), [(9, False), (10, True)])
@pytest.mark.parametrize("variants", [1, 12])
def test_fewer_than_10_cases_with_a_kind_of_variant_have_ordinary_t_intervals(cases, variants, pooled):
    pool = pool_of(run_of_cases(*[list(map(scattered, range(variants)))] * cases))

    assert FEWEST_POOLED == 10
    assert set(pool.spreads) == ({("execution_s", PoolKind.JAX)} if pooled else set())
    if pooled:  # variants of one name in two cases are two
        assert len(pool.spreads["execution_s", PoolKind.JAX].places) == cases * variants


@pytest.mark.parametrize(("processes", "pooled"), [(2, False), (3, True)])
def test_variants_with_fewer_than_3_processes_tell_nothing_of_others(processes, pooled):
    timings = [*map(scattered, range(9)), scattered(9, processes=processes)]

    assert bool(pool_of(run_of(*timings)).spreads) is pooled


def test_a_variant_that_is_not_in_the_prior_borrows_nothing():
    *_, last = variants_of(run_of(*map(scattered, range(10)), scattered(10, processes=2)))

    assert last.pool.spreads
    assert last.pool.lend("execution_s", last) is None
    assert last.read("execution_s").interval.low is None


def test_degrees_of_the_prior_are_one_less_than_each_variants_processes():
    timings = [scattered(number, processes=3 + number % 3) for number in range(12)]

    spread = pool_of(run_of(*timings)).spreads["execution_s", PoolKind.JAX]

    assert spread.prior.pooled_degrees == 4 * (2 + 3 + 4)
    assert spread.deviation == math.sqrt(spread.prior.variance)


def test_variants_of_a_case_share_processes_and_have_no_more_degrees_than_one_of_them():
    few, many = scattered(1, processes=3), scattered(2, processes=5)

    spread = pool_of(run_of_cases(*[[few, many, few]] * 9, [few])).spreads["execution_s", PoolKind.JAX]

    assert (len(spread.places), spread.cases) == (28, 10)
    assert spread.prior.pooled_degrees == 9 * 4 + 2
    assert spread.prior.lend(0).most_degrees == spread.prior.pooled_degrees


def test_peers_and_jaxs_variants_lend_each_other_nothing():
    pairs = []
    for n in range(10):
        planned = samples.planned_case(params={"n": n}, variants=("f:jit", "p:native"))
        outcomes = {"f:jit": {"timing": scattered(n)}, "p:native": {"timing": scattered(20 - n)}}
        pairs.append((planned, samples.record(planned, outcomes)))
    pool = pool_of(samples.run(*pairs, settings=IN_ROUNDS))

    jax, peers = (pool.spreads["execution_s", kind] for kind in PoolKind)

    assert {name for _, name in jax.places} == {"f:jit"}
    assert {name for _, name in peers.places} == {"p:native"}
    assert jax.prior != peers.prior


def test_wrong_and_lost_variants_are_in_no_prior():
    def pool_with(status):
        pairs = [(samples.planned_case("lost"), None)]
        for n in range(10):
            planned = samples.planned_case(params={"n": n}, variants=("f:jit",))
            numerics = Outcome(status=status if n == 3 else Status.OK)
            outcomes = {"f:jit": {"timing": scattered(n), "numerics": numerics}}
            pairs.append((planned, samples.record(planned, outcomes)))
        return pool_of(samples.run(*pairs, settings=IN_ROUNDS))

    assert pool_with(Status.OK).spreads
    assert pool_with(Status.WRONG).spreads == {}


def test_a_variant_by_itself_borrows_nothing():
    run = run_of(*map(scattered, range(10)))
    planned, record = run.manifest.cases[0], run.cases[0]

    one, *_ = read_case(planned, record, run.manifest.environment, run.manifest.settings).variants

    assert one.pool is EMPTY
    assert one.read("execution_s").interval == geometric_interval(one.read("execution_s").known)


def test_the_gap_between_processes_is_the_median_over_the_cases_that_tell_it():
    def gap_of(*gaps_s):
        run = run_of(*map(scattered, range(len(gaps_s))))
        cases = (msgspec.structs.replace(one, process_gap_s=gap) for one, gap in zip(run.cases, gaps_s, strict=True))
        return find_process_gap(msgspec.structs.replace(run, cases=tuple(cases)))

    assert gap_of(9.0, 120.0, None, 30.0) == 30.0
    assert gap_of(None, None) is None


def with_calibration(*calibration_s, execution_s=(1.0, 2.0, 4.0), **details):
    values = {"execution_s": execution_s, "calibration_s": calibration_s}
    told = {"processes": 3, "calibration": samples.CALIBRATION, **details}
    return Outcome(status=Status.OK, values=values, details=TimingDetails(**told))


def test_time_at_reference_speed_is_over_the_launchs_calibration_times_the_median_of_the_run():
    (one,) = variants_of(run_of(with_calibration(1e-4, 2e-4, 4e-4)))

    reading = one.read("normalised_s")

    assert one.pool.reference.calibration_s == 2e-4
    assert reading.values == pytest.approx((2.0, 2.0, 2.0))
    assert reading.fault is None
    (contended,) = variants_of(run_of(with_calibration(1e-4, 1e-4, 1e-4, contended=1)))
    assert contended.read("normalised_s").contended
    (failed,) = variants_of(run_of(Outcome(status=Status.FAILED, reason="exited")))
    assert failed.read("normalised_s").fault == failed.read("execution_s").fault
    assert pool_of(samples.run()) == Pool()  # a record without calibrations


def test_what_is_told_of_the_calibration_beside_its_blocks_goes_before_that_of_the_process():
    for damaged in (None, 0.0, 5e-324, math.inf, math.nan, -1.0, 10**400):
        told = samples.with_values(with_calibration(1e-4, 2e-4, 4e-4), over_calibration=(3.0, 5.0, damaged))
        (one,) = variants_of(run_of(told))

        assert one.read("normalised_s").values == pytest.approx((6e-4, 1e-3, None))
        assert one.read("normalised_s").interval.count == 2


def test_the_median_counts_each_process_once_however_many_variants_it_timed():
    jax = [with_calibration(1e-4, 1e-4, 1e-4)] * 5
    names = [*(f"f{number}:jit" for number in range(5)), "p:native", "q:native"]
    planned = samples.planned_case(variants=names)
    timings = [*jax, with_calibration(3e-4, 3e-4, None), with_calibration(5e-4, 5e-4, 5e-4)]
    outcomes = {name: {"timing": timing} for name, timing in zip(names, timings, strict=True)}

    pool = pool_of(samples.run((planned, samples.record(planned, outcomes))))

    assert pool.reference.processes_s == (1e-4, 1e-4, 1e-4, 3e-4, 3e-4, 5e-4, 5e-4, 5e-4)


def test_the_time_at_reference_speed_has_a_prior_of_its_own():
    timings = [
        samples.timing(1e-3, spread=1 + number, calibration_s=tuple(1e-4 * factor for factor in samples.WOBBLE))
        for number in range(10)
    ]

    variants = variants_of(run_of(*timings))

    fair = [one.read("normalised_s") for one in variants]
    prior = fit_prior([statistics.variance(map(math.log, one.known)) for one in fair], [4] * 10)
    assert fair[2].interval == geometric_interval(fair[2].known, borrowed=prior.lend(2))
    assert prior.variance < variants[0].pool.spreads["execution_s", PoolKind.JAX].prior.variance


def test_where_the_machines_speed_varied_processes_share_what_two_runs_differ_by():
    constant, varied = (variants_of(run_of(with_calibration(1e-4, 1e-4, slowest)))[0] for slowest in (1e-4, 2e-4))

    fair = [one.read("normalised_s") for one in (constant, varied)]
    assert [one.shared for one in fair] == [0, BETWEEN_RUNS**2]
    assert fair[1].interval == geometric_interval(fair[1].known, shared=BETWEEN_RUNS**2)
    assert varied.read("execution_s").shared == 0
    assert varied.read("execution_s").interval == geometric_interval((1.0, 2.0, 4.0))


@pytest.mark.parametrize("damaged", [None, 0, 0.0, -1e-4, math.inf, -math.inf, math.nan, 10**400, 1e10, 1e-13])
def test_a_calibration_that_cannot_be_is_none(damaged):
    (one,) = variants_of(run_of(with_calibration(1e-4, damaged, 4e-4)))

    assert one.pool.reference.processes_s == (1e-4, 4e-4)
    assert one.read("normalised_s").values == pytest.approx((2.5, None, 2.5))


def test_processes_beyond_those_with_a_calibration_have_no_value_and_calibrations_beyond_the_processes_are_not_used():
    (few,) = variants_of(run_of(with_calibration(1e-4)))
    (many,) = variants_of(run_of(with_calibration(1e-4, 1e-4, 1e-4, 1e-4)))

    assert few.read("normalised_s").values == (1.0, None, None)
    assert many.read("normalised_s").values == (1.0, 2.0, 4.0)


GOOD = with_calibration(1e-4)
NONE_USABLE = "none of its processes has a calibration loop's time that can be"


@pytest.mark.parametrize(
    ("timings", "reason"),
    [
        ([samples.timing(1.0)], NO_CALIBRATION),
        ([with_calibration(None, 0.0, -1.0)], "no calibration loop has a time that can be"),
        (
            [with_calibration(1e-4), with_calibration(1e-4, calibration="alu 2")],
            "processes of this run timed different calibration loops: alu 1; alu 2",
        ),
        ([samples.timing(1.0), GOOD], "its processes timed no calibration loop"),
        ([with_calibration(1e-4, 1e-4, calibration=None), GOOD], "1 of its 3 processes timed no calibration loop"),
        ([with_calibration(*[1e-4] * 3, calibration=None), GOOD], "its processes timed different calibration loops"),
        ([with_calibration(None), GOOD], NONE_USABLE),
        ([with_calibration(None, 1e-4, execution_s=(1.0, None)), GOOD], NONE_USABLE),
    ],
)
def test_without_a_calibration_there_is_no_time_at_reference_speed_and_a_reason(timings, reason):
    first, *_ = variants_of(run_of(*timings))

    reading = first.read("normalised_s")

    assert (reading.interval, reading.known) == (None, ())
    assert (reading.fault.lack, reading.fault.reason) == (Lack.NOT_NORMALISED, reason)


@pytest.mark.parametrize(
    ("processes_s", "constant"),
    [
        ((1.0,), True),
        ((1.0, 1.0335), False),
        ((1.0, 1.033), True),
        ((*[1.0] * 10, *[1.03] * 10), True),
        ((*[1.0] * 10, *[1.0301] * 10), False),
        ((0.5, *[1.0] * 39, 2.0), True),
        ((*[0.5] * 3, *[1.0] * 38), False),
        ((*[1.0] * 38, *[2.0] * 3), False),
    ],
)
def test_a_calibration_is_constant_where_9_of_10_processes_lie_within_the_smallest_effect(processes_s, constant):
    assert ReferenceSpeed("alu 1", processes_s).is_constant is constant
    assert ReferenceSpeed("alu 1", processes_s, 0.09).is_constant is constant
    assert not ReferenceSpeed("alu 1", processes_s, 0.11).is_constant  # slow beside a tenth of the blocks


def test_of_the_shares_of_slow_blocks_the_mean_is_the_runs():
    shares = (0.0, 0.5, None, math.nan, -1.0, 2.0)
    run = run_of(*(with_calibration(1e-4, 1e-4, 1e-4, slow_share=share) for share in shares))

    assert Run(run).speed.reference.slow_share == 0.25


def pool_at(calibration_s, identity="alu 1"):
    return Pool(ReferenceSpeed(identity, (calibration_s,)))


def test_times_of_another_run_are_brought_to_the_speed_of_the_baseline_run():
    # Its machine was half as fast: the calibration loop took twice as long.
    slow, baseline = run_of(samples.timing(4e-3, calibration_s=(2e-4,) * 5)), pool_at(1e-4)

    manifest, pool = slow.manifest, refer_to(pool_of(slow), baseline, "the first")
    [one] = read_case(manifest.cases[0], slow.cases[0], manifest.environment, manifest.settings, pool).variants

    assert one.read("normalised_s").estimate == pytest.approx(2e-3, rel=1e-2)
    assert (pool.reference.calibration_s, pool.reference.median_s) == (1e-4, pytest.approx(2e-4))
    assert pool.reference.baseline == "the first"


def test_a_run_beside_one_with_another_calibration_has_no_time_at_reference_speed():
    pool = refer_to(pool_at(1.0, "alu 2"), pool_at(1.0), "the first")

    assert pool.reference is None
    assert pool.no_reference == "its calibration loop is alu 2, that of the first alu 1"


@pytest.mark.parametrize(("own", "baseline"), [(EMPTY, pool_at(1.0)), (pool_at(1.0), EMPTY)])
def test_where_one_of_two_runs_has_no_reference_speed_the_other_keeps_its_own(own, baseline):
    assert refer_to(own, baseline, "the first") == own


# Ratios


def run_of_ratios(*spreads, mode="jit", processes=5, settings=IN_ROUNDS):
    """A run with a case for each spread: of a variant that is measured against an eager one, or against jit a peer."""
    baseline = "f:jit" if mode == "native" else "f:eager"
    pairs = []
    for n, spread in enumerate(spreads):
        planned = samples.planned_case(params={"n": n}, variants=(baseline, f"g:{mode}"), baseline=baseline)
        ratio = samples.timing(1e-3, baseline_s=2e-3, processes=processes, spread=spread)
        outcomes = {baseline: {"timing": scattered(n, processes)}, f"g:{mode}": {"timing": ratio}}
        pairs.append((planned, samples.record(planned, outcomes)))
    return samples.run(*pairs, settings=settings)


def find_ratios(run):
    """What there is of each ratio: its variant, and the processes' logs."""
    found = [one for one in variants_of(run) if one.planned.name.startswith("g:")]
    return [(one, [math.log(value) for value in one.read("speedup").known]) for one in found]


def test_a_ratio_counts_a_process_more_that_deviates_as_the_middle_one_of_the_run():
    run = run_of_ratios(*range(11))
    ratios = find_ratios(run)
    variances = [statistics.variance(logs) for _, logs in ratios]
    usual = PseudoProcess(statistics.median(variances))

    assert pool_of(run).usual_ratios == {PoolKind.JAX: usual.variance}
    for one, logs in ratios:
        assert one.read("speedup").interval == speedup(logs, borrowed=usual)
    few, many = ratios[1], ratios[9]
    assert few[0].read("speedup").interval.half_width > speedup(few[1]).half_width
    assert many[0].read("speedup").interval == speedup(many[1])


@pytest.mark.parametrize(
    ("run", "told"),
    [
        (run_of_ratios(*range(1, 10)), False),
        (run_of_ratios(*range(1, 11)), True),
        (run_of_ratios(*range(1, 11), processes=2), False),
        (run_of_ratios(*range(1, 11), processes=3), True),
    ],
    ids=["9 cases", "10 cases", "2 processes each", "3 processes each"],
)
def test_a_usual_process_needs_10_cases_with_3_processes(run, told):
    assert bool(pool_of(run).usual_ratios) is told


def test_ratios_of_peers_have_a_usual_process_of_their_own():
    pool = pool_of(run_of_ratios(*range(1, 11), mode="native"))
    peer, of_jax = (SimpleNamespace(planned=samples.planned_variant(name)) for name in ("p:native", "f:jit"))

    assert set(pool.usual_ratios) == {PoolKind.PEERS}
    assert pool.lend_to_ratio(of_jax, of_jax) is None
    assert (
        pool.lend_to_ratio(of_jax, peer) == pool.lend_to_ratio(peer) == PseudoProcess(pool.usual_ratios[PoolKind.PEERS])
    )


def test_the_ratio_of_any_two_variants_counts_the_usual_process():
    run = run_of_ratios(*range(1, 12))
    eager, jitted = variants_of(run)[:2]

    ratio = compare_paired(jitted, eager)

    assert ratio == jitted.read("speedup").interval
    assert ratio.half_width > speedup([math.log(value) for value in jitted.read("speedup").known]).half_width


def with_ratios(*log_ratios, slowest_s=2e-4, baseline="f:eager", variant="f:jit", **planned_variant):
    """A variant and its baseline, in a run whose machine's speed varied."""
    told = with_calibration(1e-4, 1e-4, slowest_s)
    measured = msgspec.structs.replace(told, values={**told.values, "log_ratio": log_ratios})
    planned = samples.planned_case(variants=(baseline, variant), baseline=baseline)
    first, second = planned.variants
    second = msgspec.structs.replace(second, **planned_variant)
    planned = msgspec.structs.replace(planned, variants=(first, second))
    record = samples.record(planned, {baseline: {"timing": told}, variant: {"timing": measured}})
    return variants_of(samples.run((planned, record), settings=IN_ROUNDS))


@pytest.mark.parametrize(
    ("log_ratio", "deviation"),
    [(0.0, 0.0), (0.03, 0.004), (-0.06, 0.008), (0.15, 0.02), (-0.2, 0.02), (4.0, 0.02)],
)
def test_what_ratios_of_two_runs_differ_by_grows_with_the_ratio_up_to_a_most(log_ratio, deviation):
    baseline, variant = with_ratios(log_ratio, log_ratio - 0.1, log_ratio + 0.1)

    reading, ratio = variant.read("speedup"), compare_paired(variant, baseline)

    assert reading.shared == pytest.approx(deviation**2, abs=1e-12)
    expected = speedup([math.log(value) for value in reading.known], shared=reading.shared)
    assert (ratio.low, ratio.estimate, ratio.high) == pytest.approx((expected.low, expected.estimate, expected.high))
    assert (reading.interval.low, reading.interval.high) == pytest.approx((expected.low, expected.high))


def test_ratios_share_nothing_where_the_machines_speed_was_constant_or_is_not_known():
    baseline, variant = with_ratios(2.0, 1.9, 2.1, slowest_s=1e-4)

    assert variant.read("speedup").shared == 0
    assert compare_paired(variant, baseline) == variant.read("speedup").interval
    assert EMPTY.find_shared_of_ratio(2.0, variant) == EMPTY.find_shared("speedup", variant, (7.0,)) == 0


def test_a_program_beside_its_like_shares_nothing_more_with_it():
    baseline, aa_control = with_ratios(2.0, 1.9, 2.1, same_as="f:eager")

    assert aa_control.read("speedup").shared == 0
    assert compare_paired(baseline, aa_control) == speedup(
        [-math.log(value) for value in aa_control.read("speedup").known]
    )


def test_a_replay_beside_what_is_unlike_it_shares_what_its_variant_shares():
    baseline, replay = with_ratios(2.0, 1.9, 2.1, variant="f:jit before", same_as="f:jit")

    assert replay.read("speedup").shared == pytest.approx(0.02**2)
    assert compare_paired(replay, baseline).high == pytest.approx(replay.read("speedup").interval.high)


@pytest.mark.parametrize("names", [("f:jit", "p:native"), ("p:native", "f:jit")], ids=["peer", "peer as the baseline"])
def test_a_ratio_to_a_peer_has_the_error_of_a_time(names):
    baseline, variant = with_ratios(0.0, 0.01, -0.01, baseline=names[0], variant=names[1])

    assert variant.read("speedup").shared == BETWEEN_RUNS**2
    assert variant.read("execution_s").shared == 0
    assert compare_paired(variant, baseline).high == pytest.approx(variant.read("speedup").interval.high)
