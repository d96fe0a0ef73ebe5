import math

import pytest
from msgspec import structs

from harness.record import Status, TimingDetails
from harness.record.statistics import FEWEST_CLEAN_BLOCKS, FEWEST_CLEAN_S
from harness.record.timing_summary import contended, execution_s, summarise, undisturbed
from tests.harness.raw import DISTURBED, WALL_S, block, clean, launch, variant

STEADY = clean(*[1.0] * 6)
BUSY = [*clean(1.0), *[(1.0, DISTURBED)] * 5]


def test_a_blocks_value_is_the_median_of_its_samples_and_a_launchs_the_median_of_its_blocks():
    assert execution_s(variant("a", *clean(1.0, 2.0, 3.0, 4.0, 64.0))) == 3.0


def test_disturbed_blocks_are_set_aside():
    measured = variant("a", *clean(1.0, 1.0, 1.0, 2.0, 2.0), *[(8.0, DISTURBED)] * 6)

    assert execution_s(measured) == 1.0
    assert not contended(measured)


def test_too_few_clean_blocks_are_contended_and_the_time_is_that_of_all_blocks():
    measured = variant("a", *clean(*[1.0] * (FEWEST_CLEAN_BLOCKS - 1)), *[(8.0, DISTURBED)] * 6)

    assert contended(measured)
    assert execution_s(measured) == 8.0


@pytest.mark.parametrize(("share", "expected"), [(1.01, False), (0.99, True)])
def test_clean_blocks_that_are_short_together_are_contended(share, expected):
    wall_s = share * FEWEST_CLEAN_S / len(STEADY)

    assert contended(variant("a", *STEADY, wall_s=wall_s)) is expected


def test_as_many_clean_blocks_and_as_much_time_in_them_as_asked_for_are_enough():
    wall_s = FEWEST_CLEAN_S / FEWEST_CLEAN_BLOCKS
    assert sum([wall_s] * FEWEST_CLEAN_BLOCKS) == FEWEST_CLEAN_S

    assert not contended(variant("a", *clean(*[1.0] * FEWEST_CLEAN_BLOCKS), wall_s=wall_s))


def test_blocks_of_a_system_that_does_not_tell_are_clean():
    assert not contended(variant("a", *[(1.0, None)] * 6))


def test_times_are_one_value_per_launch_in_launch_order():
    launches = [[launch(variant("a", *clean(*[s] * 6), dispatch_s=(s / 4, s / 4, s)))] for s in (1.0, 4.0, 2.0)]

    outcome = summarise(launches, "a", "a")

    assert outcome.status is Status.OK
    assert outcome.values == {"execution_s": (1.0, 4.0, 2.0), "dispatch_s": (0.25, 1.0, 0.5)}


def test_what_has_no_dispatch_has_null_for_it():
    outcome = summarise([[launch(variant("peer", *STEADY, dispatch_s=()))]], "peer", "base")

    assert outcome.values == {"execution_s": (1.0,), "dispatch_s": (None,)}


def test_the_log_ratio_is_paired_within_the_sweeps_of_one_process():
    # The machine's speed changes from sweep to sweep: only the pairs know that the variant takes half.
    base = variant("base", *clean(2.0, 4.0, 8.0, 16.0, 32.0, 64.0))
    other = variant("other", *clean(1.0, 2.0, 4.0, 8.0, 16.0, 32.0))

    outcome = summarise([[launch(other, base)]], "other", "base")

    assert outcome.values["log_ratio"] == (math.log(2.0),)


def test_peers_are_paired_by_launch_order():
    jax = [launch(variant("base", *clean(*[s] * 6)), index=index) for index, s in enumerate((4.0, 8.0))]
    peer = [launch(variant("peer", *clean(*[s] * 6)), index=index) for index, s in enumerate((1.0, 4.0))]

    outcome = summarise(list(zip(jax, peer, strict=True)), "peer", "base")

    assert outcome.values["log_ratio"] == (math.log(4.0), math.log(2.0))


def test_a_launch_without_the_variant_has_null_for_it():
    with_it = [launch(variant("base", *STEADY), variant("other", *STEADY))]
    without_it = [launch(variant("base", *STEADY))]

    outcome = summarise([with_it, without_it, []], "other", "base")

    assert outcome.values == {
        "execution_s": (1.0, None, None),
        "dispatch_s": (1e-6, None, None),
        "log_ratio": (0.0, None, None),
    }


def test_a_launch_without_the_baseline_has_no_ratio_but_a_time():
    with_it = [launch(variant("base", *STEADY), variant("other", *STEADY))]
    without_it = [launch(variant("other", *STEADY))]

    outcome = summarise([with_it, without_it], "other", "base")

    assert outcome.values["execution_s"] == (1.0, 1.0)
    assert outcome.values["log_ratio"] == (0.0, None)


def test_without_any_baseline_there_are_no_ratios():
    assert "log_ratio" not in summarise([[launch(variant("other", *STEADY))]], "other", "base").values


def test_a_baseline_has_no_ratio_to_itself():
    assert "log_ratio" not in summarise([[launch(variant("base", *STEADY))]], "base", "base").values


def test_the_contended_and_the_restless_launches_are_counted():
    launches = [
        [launch(variant("a", *STEADY))],
        [launch(variant("a", *BUSY))],
        [launch(variant("a", *BUSY, steady=False))],
        [],
    ]

    outcome = summarise(launches, "a", "a")

    assert outcome.details == TimingDetails(launches=3, contended=2, unsteady=1)
    assert outcome.notes == ()


def test_of_undisturbed_and_steady_launches_none_is_counted():
    outcome = summarise([[launch(variant("a", *STEADY))]] * 3, "a", "a")

    assert outcome.details == TimingDetails(launches=3)


def test_what_a_process_s_own_threads_make_each_other_wait_for_is_no_disturbance():
    both_cores = [structs.replace(block(1.0, wait=0.5, sweep=sweep), cpu_s=2 * WALL_S) for sweep in range(10)]
    one_core = [structs.replace(item, cpu_s=WALL_S) for item in both_cores]

    assert undisturbed(both_cores, cores=2) == both_cores
    assert undisturbed(one_core, cores=2) == []
    assert undisturbed(one_core, cores=1) == one_core
