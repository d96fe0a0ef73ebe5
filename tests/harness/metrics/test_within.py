import math

import pytest
from msgspec import structs

from jaxmeter.harness.metrics.across import is_contended
from jaxmeter.harness.metrics.statistics import FEWEST_CLEAN_BLOCKS, FEWEST_CLEAN_S, SLOW_SPELL_S, SLOWED
from jaxmeter.harness.metrics.within import (
    contended,
    enough_quiet,
    execution_s,
    find_slow_share,
    is_noisy,
    is_slowed,
    summarise,
)
from jaxmeter.harness.metrics.write import describe_details
from jaxmeter.harness.record import Block, CalibrationLoop, ProcessRecord, Status, TimingDetails, VariantSamples
from jaxmeter.harness.record.processes import DeviceState
from tests.harness.raw import NOISY, WALL_S, beside, block, calibration, clean, load, process, variant

STEADY = clean(*[1.0] * 6)
BUSY = [*clean(1.0), *[(1.0, NOISY)] * 5]


def is_variant_contended(measured: VariantSamples) -> bool:
    """In a process that tells nothing of other processes."""
    return contended(measured, process(measured))


def time_of(measured: VariantSamples) -> float:
    return execution_s(measured, process(measured))


def test_a_process_has_the_median_of_its_blocks():
    assert time_of(variant("a", *clean(1.0, 2.0, 3.0, 4.0, 64.0))) == 3.0


@pytest.mark.parametrize(
    ("few", "beyond", "expected"),
    [((1.0, 1.0, 1.0, 2.0, 2.0), False, 1.0), ([1.0] * (FEWEST_CLEAN_BLOCKS - 1), True, 8.0)],
)
def test_noisy_blocks_are_set_aside_but_too_few_clean_ones_are_contended(few, beyond, expected):
    measured = variant("a", *clean(*few), *[(8.0, NOISY)] * 6)

    assert (time_of(measured), is_variant_contended(measured)) == (expected, beyond)


@pytest.mark.parametrize(
    ("ran", "expected"),
    [
        (load(others=0.22), False),
        (load(others=0.23), True),
        (load(others=-0.3), False),
        (load(others=None), True),
        (None, True),
    ],
    ids=["alone", "beside others", "ticks say less than the process", "a system that does not tell", "not recorded"],
)
def test_threads_that_wait_are_held_against_a_process_only_where_other_processes_ran(ran, expected):
    # 0.2 of a core, and what ticks may miscount: 0.05 of 2 s.
    measured = variant("a", *clean(1.0, 1.0, 1.0), *[(8.0, NOISY)] * 4)
    made = process(measured, load=ran)

    assert contended(measured, made) is expected
    assert is_noisy(made) is expected


@pytest.mark.parametrize(("others", "expected"), [(0.0, 8.0), (0.5, 1.0)])
def test_blocks_whose_threads_waited_are_set_aside_only_where_other_processes_ran(others, expected):
    measured = variant("a", *clean(*[1.0] * 5), *[(8.0, NOISY)] * 6)

    assert execution_s(measured, process(measured, load=load(others=others))) == expected


EDGE_S = FEWEST_CLEAN_S / FEWEST_CLEAN_BLOCKS


@pytest.mark.parametrize(
    ("blocks", "wall_s", "expected"),
    [
        (STEADY, 1.01 * FEWEST_CLEAN_S / len(STEADY), False),
        (STEADY, 0.99 * FEWEST_CLEAN_S / len(STEADY), True),
        (clean(*[1.0] * FEWEST_CLEAN_BLOCKS), EDGE_S, False),
        ([(1.0, None)] * 6, WALL_S, False),
    ],
    ids=["long enough", "too short", "exactly as many and as long", "of a system that does not tell"],
)
def test_clean_blocks_that_are_few_or_short_together_are_contended(blocks, wall_s, expected):
    assert sum([EDGE_S] * FEWEST_CLEAN_BLOCKS) == FEWEST_CLEAN_S
    assert is_variant_contended(variant("a", *blocks, wall_s=wall_s)) is expected


BOTH, ALONE, OTHER = (
    process(*(variant(name, *STEADY) for name in names)) for names in (("base", "other"), ("base",), ("other",))
)


def values(time_s, return_s=1e-6, **more):
    """Values of one process; None for what it lacks."""
    return {"execution_s": time_s, "return_s": return_s, "parallelism": None if time_s is None else 1.0, **more}


QUARTERS = [[process(variant("a", *clean(*[s] * 6), return_s=(s / 4, s / 4, s)))] for s in (1.0, 4.0, 2.0)]
PAIRED, LACKS = values(1.0, log_ratio=0.0), values(None, None, log_ratio=None)


@pytest.mark.parametrize(
    ("processes", "name", "expected"),
    [
        (QUARTERS, "a", [values(1.0, 0.25), values(4.0, 1.0), values(2.0, 0.5)]),
        ([[process(variant("peer", *STEADY, return_s=()))]], "peer", [values(1.0, None)]),
        ([[BOTH], [ALONE], []], "other", [PAIRED, LACKS, LACKS]),
        ([[BOTH], [OTHER]], "other", [PAIRED, values(1.0, log_ratio=None)]),
        ([[OTHER]], "other", [values(1.0)]),
        ([[ALONE]], "base", [values(1.0)]),
    ],
    ids=[
        *("in the order of processes", "no time until return", "processes without the variant"),
        *("a process without the baseline", "no baseline at all", "the baseline itself"),
    ],
)
def test_there_is_a_value_for_each_process_and_null_for_what_one_lacks(processes, name, expected):
    outcome = summarise(processes, name, "base")

    columns = {metric: tuple(one[metric] for one in expected) for metric in expected[0]}
    assert (outcome.status, outcome.values) == (Status.OK, columns)
    assert outcome.details == TimingDetails(processes=outcome.details.processes)


def test_the_log_ratio_is_paired_within_the_passes_of_one_process():
    # The machine's speed changes from pass to pass: only the pairs know that the variant takes half.
    base = variant("base", *clean(2.0, 4.0, 8.0, 16.0, 32.0, 64.0))
    other = variant("other", *clean(1.0, 2.0, 4.0, 8.0, 16.0, 32.0))

    outcome = summarise([[process(other, base)]], "other", "base")

    assert outcome.values["log_ratio"] == (math.log(2.0),)


def test_peers_are_paired_by_process_order():
    jax = [process(variant("base", *clean(*[s] * 6)), index=index) for index, s in enumerate((4.0, 8.0))]
    peer = [process(variant("peer", *clean(*[s] * 6)), index=index) for index, s in enumerate((1.0, 4.0))]

    outcome = summarise(list(zip(jax, peer, strict=True)), "peer", "base")

    assert outcome.values["log_ratio"] == (math.log(4.0), math.log(2.0))


@pytest.mark.parametrize(
    ("jax", "peer", "ratio"),
    [
        ((calibration(1.0),), (calibration(4.0),), 2.0),
        ((calibration(1.0),), (calibration(4.0, identity="alu 2"),), 0.5),
        ((calibration(1.0),), (), 0.5),
        ((calibration(1.0), calibration(1.0, name="device")), (calibration(4.0),), 0.5),
    ],
    ids=["one calibration loop", "two", "none", "of a device"],
)
def test_a_peer_whose_process_met_another_speed_is_compared_at_one_speed(jax, peer, ratio):
    # The peer takes twice as long, on a core that is four times slower.
    processes = [
        [
            process(variant("base", *STEADY, calibration_s=1.0), calibrations=jax),
            process(variant("a", *clean(*[2.0] * 6), calibration_s=4.0), calibrations=peer),
        ]
    ]

    assert summarise(processes, "a", "base").values["log_ratio"] == (math.log(ratio),)


def test_the_contended_and_the_restless_processes_are_counted():
    processes = [
        [process(variant("a", *STEADY))],
        [process(variant("a", *BUSY))],
        [process(variant("a", *BUSY, steady=False))],
        [],
    ]

    outcome = summarise(processes, "a", "a")

    assert outcome.details == TimingDetails(processes=3, contended=2, unsteady=1)
    assert outcome.notes == ()


def test_a_process_of_very_slow_calls_is_clean_only_if_all_its_few_blocks_are():
    assert not is_variant_contended(variant("a", *clean(5.0, 5.0), wall_s=5.0))
    assert is_variant_contended(variant("a", *clean(5.0), (5.0, NOISY), wall_s=5.0))


# Contended processes


def processes_of(*variants: VariantSamples | None, base: VariantSamples | None = None) -> list[list[ProcessRecord]]:
    """Processes of one process each: a variant of every one, beside the same baseline."""
    return [[process(*[item for item in (base, one) if item is not None])] for one in variants]


QUIET, CROWDED = variant("a", *STEADY), variant("a", *[(8.0, NOISY)] * 6, return_s=(1.0,), isolated_s=(8.0,))


def test_clean_processes_stand_alone_where_three_of_them_remain():
    outcome = summarise(processes_of(QUIET, CROWDED, QUIET, QUIET), "a", "a")

    assert outcome.values == {
        "execution_s": (1.0, None, 1.0, 1.0),
        "return_s": (1e-6, None, 1e-6, 1e-6),
        "parallelism": (1.0, None, 1.0, 1.0),
    }
    assert outcome.details == TimingDetails(processes=4, contended=1)


def test_where_fewer_clean_processes_remain_all_count():
    outcome = summarise(processes_of(QUIET, CROWDED, QUIET), "a", "a")

    assert outcome.values["execution_s"] == (1.0, 8.0, 1.0)
    assert outcome.values["isolated_s"] == (None, 8.0, None)


ROWS = {"waited_s": (6.0, 8.0, 9.0), "queued_s": (2.0, 4.0, 9.0)}


def test_a_pipelined_time_and_what_queueing_is_worth_are_medians_over_the_passes():
    queueing = variant("a", *STEADY, **ROWS)

    outcome = summarise(processes_of(queueing, QUIET), "a", "a")

    assert outcome.values["pipelined_s"] == (4.0, None)
    assert outcome.values["pipelined_speedup"] == (2.0, None)
    # Of a contended process the speedup counts and the time does not.
    crowded = summarise(processes_of(QUIET, QUIET, QUIET, variant("a", *[(8.0, NOISY)] * 6, **ROWS)), "a", "a")
    assert "pipelined_s" not in crowded.values
    assert crowded.values["pipelined_speedup"] == (None, None, None, 2.0)


BASE = variant("base", *STEADY)
SPOILT = variant("a", *[(4.0, NOISY)] * 6)


def on_threads(parallel: float, *blocks: tuple[float, float | None]) -> VariantSamples:
    return variant("a", *blocks, parallel=parallel)


# With one core left to it, a variant on two threads looks like one on one thread: only clean processes tell.
TWO, ONE_OF_TWO = on_threads(1.8, *STEADY), on_threads(1.0, *[(4.0, NOISY)] * 6)
LOST = math.log(1 / 4)


@pytest.mark.parametrize(
    ("processes", "log_ratios"),
    [
        (processes_of(QUIET, SPOILT, QUIET, QUIET, base=BASE), (0.0, LOST, 0.0, 0.0)),
        (processes_of(TWO, ONE_OF_TWO, TWO, TWO, base=BASE), (0.0, None, 0.0, 0.0)),
        (processes_of(TWO, ONE_OF_TWO, TWO, base=BASE), (0.0, LOST, 0.0)),
        *(
            (
                processes_of(*[on_threads(share, *STEADY)] * 3, on_threads(share, *[(4.0, NOISY)] * 6), base=BASE),
                (0.0, 0.0, 0.0, last),
            )
            for share, last in ((1.19, LOST), (1.21, None))
        ),
        (
            [[process(variant("base", *[(4.0, NOISY)] * 6) if n == 1 else BASE, TWO)] for n in range(4)],
            (0.0, None, 0.0, 0.0),
        ),
        ([[process(BASE), process(one)] for one in (QUIET, SPOILT, QUIET, QUIET)], (0.0, None, 0.0, 0.0)),
    ],
    ids=[
        *("both sides lose alike", "unequally parallel", "fewer than three others", "parallel within a fifth"),
        *("beyond a fifth", "a contended baseline", "a peer in a process of its own"),
    ],
)
def test_the_ratio_of_a_contended_process_holds_where_both_sides_lose_alike(processes, log_ratios):
    assert summarise(processes, "a", "base").values["log_ratio"] == log_ratios


def is_taken(**of_load: float | None) -> bool:
    """Whether a process is contended for what the machine ran, where no thread waited."""
    cores = of_load.pop("cores", 2)
    measured = variant("a", *STEADY, cores=cores)
    return contended(measured, process(measured, load=load(**of_load)))


@pytest.mark.parametrize("taken", [{"stolen": 0.12}, {"throttled": 0.12}, {"stolen": 0.06, "throttled": 0.06}])
def test_what_the_hypervisor_or_a_quota_takes_of_a_process_makes_it_contended(taken):
    # 0.12 of 0.88 + 0.12 is above the share; half of it is not.
    half = {name: share / 2 for name, share in taken.items()}

    assert is_taken(parallel=0.88, **taken)
    assert not is_taken(parallel=0.94, **half)


def test_of_what_the_hypervisor_takes_of_all_cores_a_process_bears_its_part():
    # 64 busy cores of which each loses 1 %, and code on one of them.
    assert not is_taken(cores=64, parallel=0.99, stolen=0.64, others=63 * 0.99)
    # All others have nothing to run: what was taken was taken from this one.
    assert is_taken(cores=64, parallel=0.5, stolen=0.5)


@pytest.mark.parametrize("others", [-0.26, None])
def test_a_machine_whose_ticks_say_less_than_the_process_used_or_nothing_was_its_alone(others):
    assert is_taken(parallel=0.76, stolen=0.24, others=others)


def test_a_quota_of_a_part_of_a_core_that_is_used_up_makes_a_process_contended():
    # 1.5 cores are paid for and used: two threads that are stopped for an eighth of the time.
    assert is_taken(cores=1.5, parallel=1.5, throttled=0.25)
    assert not is_taken(cores=1.5, parallel=1.5, throttled=0.125)


def test_a_process_that_used_all_of_its_cores_had_none_of_them_stolen():
    assert not is_taken(cores=2, parallel=2.0, stolen=1.0)


def test_what_a_process_s_own_threads_make_each_other_wait_for_is_no_interference():
    waiting = variant("a", *[(1.0, NOISY)] * 10)

    def using(cores_used: float, cores: float) -> VariantSamples:
        blocks = tuple(structs.replace(item, cpu_s=cores_used * WALL_S) for item in waiting.blocks)
        return structs.replace(waiting, blocks=blocks, cores=cores)

    assert enough_quiet(using(2, cores=2))
    assert not enough_quiet(using(1, cores=2))
    assert enough_quiet(using(1, cores=1))


@pytest.mark.parametrize(
    ("clean", "total", "alone"), [(2, 4, False), (3, 6, True), (3, 7, False), (6, 12, True), (5, 12, False)]
)
def test_clean_processes_are_alone_where_they_are_three_and_half_of_all(clean, total, alone):
    outcome = summarise(processes_of(*[QUIET] * clean, *[CROWDED] * (total - clean)), "a", "a")

    assert (outcome.values["execution_s"][-1] is None) is alone
    assert is_contended(outcome) is not alone
    (sentence,) = describe_details(outcome.details)
    assert sentence.startswith("set aside" if alone else "contended")


def test_ratios_of_processes_that_are_clean_on_each_side_but_on_both_too_seldom_are_doubtful():
    slow_peer, slow_base = (variant(name, *[(4.0, NOISY)] * 6) for name in ("a", "base"))
    peers, bases = [slow_peer, slow_peer, QUIET, QUIET, QUIET], [BASE, BASE, BASE, slow_base, BASE]
    processes = [[process(base), process(peer)] for base, peer in zip(bases, peers, strict=True)]

    outcome = summarise(processes, "a", "base")

    # Each side has three clean processes, so neither time is contended; the pairs have two.
    assert not is_contended(outcome)
    assert None not in outcome.values["log_ratio"]
    assert outcome.details.doubtful_ratios


def test_ratios_are_not_doubtful_where_the_noisy_ones_are_left_out_or_hold():
    left_out = summarise([[process(BASE), process(one)] for one in (QUIET, SPOILT, QUIET, QUIET)], "a", "base")
    hold = summarise(processes_of(SPOILT, SPOILT, SPOILT, base=BASE), "a", "base")
    few = summarise(processes_of(QUIET, QUIET, base=BASE), "a", "base")

    assert [one.details.doubtful_ratios for one in (left_out, hold, few)] == [False, False, False]


# Devices


FAST, SLOW = 1980e6, 1400e6


def state(clock_hz: float | None, *throttled: str, most_clock_hz: float | None = FAST) -> DeviceState:
    return DeviceState(pass_number=1, clock_hz=clock_hz, most_clock_hz=most_clock_hz, throttled=throttled)


@pytest.mark.parametrize(
    ("shown", "expected"),
    [
        (state(FAST), False),
        (state(0.75 * FAST), False),
        (state(SLOW), True),
        (state(SLOW, "gpu idle"), False),
        (state(FAST, "applications clocks setting"), False),
        (state(FAST, "sw thermal slowdown"), True),
        (state(FAST, "gpu idle", "hw slowdown"), True),
        (state(None), False),
        (state(SLOW, most_clock_hz=None), False),
    ],
    ids=["fast", "at the limit", "slow", "idle", "set", "hot", "idle and slowed", "not told", "no highest"],
)
def test_a_device_that_is_throttled_or_slow_while_it_works_makes_the_process_contended(shown, expected):
    made = process(variant("a", *STEADY), device_states=(shown,) * 4)

    assert is_noisy(made) is expected
    assert summarise([[made]], "a", "a").details.contended == expected


def test_a_few_slow_looks_at_a_device_are_no_slow_device():
    looks = [state(SLOW), state(FAST), state(FAST), state(FAST)]

    assert not is_slowed(looks)
    assert is_slowed([state(SLOW), *looks])
    assert not is_slowed([])


def test_a_process_is_noisy_where_any_of_its_variants_is_contended():
    assert not is_noisy(process(QUIET, BASE))
    assert is_noisy(process(QUIET, variant("b", *BUSY)))


@pytest.mark.parametrize(
    ("taken_s", "expected"),
    [
        ([[2.0]], 0.0),
        ([[1.0, SLOWED, 1.21, 9.0]], 0.5),
        ([[1.0, *[2.0] * 19]], 0.95),
        ([[1.0, *[2.0] * 20]], 0.0),  # full speed is the least but one in twenty
        ([[0.0, -1.0, math.inf, math.nan, None, 1.0, 2.0]], 0.5),
        *(([one], None) for one in ([None], [0.0], [])),
        ([[3.0], [2.0]], 0.5),  # full speed is that of all processes together
    ],
)
def test_a_core_is_slow_where_its_calibration_takes_a_fifth_more_than_at_full_speed(taken_s, expected):
    assert find_slow_share([process(beside(one, *[1.0] * len(one))) for one in taken_s]) == expected


# The calibration loop


def with_calibrations(*calibrations: CalibrationLoop, beside_s: float | None = 1.0) -> list[ProcessRecord]:
    return [process(variant("a", *STEADY, calibration_s=beside_s), calibrations=calibrations)]


def test_the_calibration_of_a_process_is_the_median_of_its_loop_beside_the_blocks():
    processes = [
        with_calibrations(calibration(1.0), calibration(64.0, name="copy", identity="copy 1"), beside_s=2.0),
        with_calibrations(calibration(1.0), beside_s=4.0),
    ]

    outcome = summarise(processes, "a", "a")

    assert outcome.values["calibration_s"] == (2.0, 4.0)
    assert outcome.details.calibration == "alu 1, beside each block"


def timed_beside(*blocks: Block) -> VariantSamples:
    return structs.replace(variant("a", *clean(1.0)), blocks=blocks)


def test_each_block_is_held_against_the_calibration_beside_it():
    # Of two speeds, at each of which the calibration loop takes so long and the variant four times as long.
    beside = [(1.0, 4.0), (1.0, 4.0), (3.0, 12.0), (3.0, 12.0), (3.0, 12.0)]
    timed = timed_beside(
        *(block(own_s, calibration_s=calibration_s, wall_s=SLOW_SPELL_S) for calibration_s, own_s in beside)
    )

    outcome = summarise([[process(timed, calibrations=(calibration(1.0, 5.0, 5.0),))]], "a", "a")

    assert outcome.values["over_calibration"] == (4.0,)
    assert outcome.values["execution_s"] == (12.0,)
    assert outcome.values["calibration_s"] == (3.0,)
    assert outcome.details.calibration == "alu 1, beside each block"


def test_a_block_that_outlasts_a_slow_spell_is_held_against_the_median_of_its_process():
    beside = [(1.0, 12.0), (3.0, 12.0), (3.0, 12.0)]
    timed = timed_beside(
        *(block(own_s, calibration_s=calibration_s, wall_s=1.01 * SLOW_SPELL_S) for calibration_s, own_s in beside)
    )
    quick = variant("b", *clean(1.0, 1.0, 1.0, 1.0), calibration_s=6.0)

    values = summarise([[process(timed, quick, calibrations=(calibration(1.0),))]], "a", "a").values

    assert values["over_calibration"] == (2.0,)


def test_noisy_blocks_are_not_held_against_it():
    timed = variant("a", *clean(*[2.0] * 6), (64.0, NOISY), calibration_s=1.0)

    assert summarise([[process(timed, calibrations=(calibration(1.0),))]], "a", "a").values["over_calibration"] == (
        2.0,
    )


@pytest.mark.parametrize("lacking", [None, 0.0, 5e-324, math.inf, math.nan])
def test_a_process_of_which_a_block_lacks_the_calibration_has_none(lacking):
    timed = timed_beside(block(8.0, calibration_s=1.0), block(8.0, calibration_s=lacking))

    outcome = summarise([[process(timed, calibrations=(calibration(4.0),))]], "a", "a")

    assert not {"over_calibration", "calibration_s"} & outcome.values.keys()
    assert outcome.details.calibration is None


def test_a_peer_is_paired_by_times_over_the_calibrations_beside_the_blocks():
    # The peer's process met a core half as fast, by the same calibration loop.
    own = timed_beside(*[block(8.0, calibration_s=2.0, wall_s=SLOW_SPELL_S)] * 6)
    base = structs.replace(timed_beside(*[block(4.0, calibration_s=1.0, wall_s=SLOW_SPELL_S)] * 6), variant="b")
    processes = [process(one, calibrations=(calibration(1.0),)) for one in (own, base)]

    assert summarise([processes], "a", "b").values["log_ratio"] == (0.0,)


def test_a_contended_process_keeps_its_calibration_which_is_of_the_machine():
    quiet, crowded = (variant("a", *blocks, calibration_s=2.0) for blocks in (STEADY, [(1.0, NOISY)] * 6))
    processes = [[process(one, calibrations=(calibration(2.0),))] for one in (quiet, quiet, quiet, crowded)]

    outcome = summarise(processes, "a", "a")

    assert (outcome.values["calibration_s"], outcome.details.contended) == ((2.0,) * 4, 1)


@pytest.mark.parametrize("other", [(), (calibration(1.0, identity="alu 2"),)], ids=["none", "another"])
def test_processes_that_lack_the_calibration_or_have_another_have_none_in_common(other):
    outcome = summarise([with_calibrations(calibration(1.0)), with_calibrations(*other)], "a", "a")

    assert outcome.details.calibration is None


def test_nothing_is_divided_by_a_loop_on_the_host_where_a_device_is_timed():
    calibrations = calibration(1.0), calibration(1.0, name="device", identity="device 1")

    outcome = summarise([with_calibrations(*calibrations)], "a", "a")

    assert "calibration_s" not in outcome.values
    assert outcome.details.calibration is None


# Alone


def beside_and_alone(beside_s: tuple[float, ...], alone_s: float) -> tuple[str, ...]:
    """Notes of a variant that processes timed so."""
    timed = [variant("a", *clean(*[s] * 6), isolated_s=(alone_s,) * 5) for s in beside_s]
    return summarise(processes_of(*timed), "a", "a").notes


def test_the_time_alone_is_the_median_of_its_blocks():
    timed = variant("a", *STEADY, isolated_s=(8.0, 0.5, 0.5))

    assert summarise(processes_of(timed), "a", "a").values["isolated_s"] == (0.5,)


def test_what_alternating_costs_is_said_with_both_numbers():
    (note,) = beside_and_alone((0.0064,) * 3, 0.006)

    assert note.startswith(
        "6.40\u202fms a call interleaved with the other variants, 6.00\u202fms alone: "
        "in calls over 1 ms the caches hold"
    )


@pytest.mark.parametrize(
    ("beside_s", "alone_s"),
    [((0.0062,) * 3, 0.006), ((0.006,) * 3, 0.0064), ((0.00064,) * 3, 0.0006), ((1.0, 1.5, 1.0), 1.0)],
    ids=["within 5 %", "longer alone", "short calls", "processes leave a doubt"],
)
def test_nothing_is_said_where_alternating_costs_nothing_to_speak_of(beside_s, alone_s):
    assert beside_and_alone(beside_s, alone_s) == ()


def test_beside_what_part_of_the_blocks_of_its_processes_the_core_was_slow_is_told():
    fast, slow = variant("a", *STEADY, calibration_s=1.0), variant("b", *STEADY, calibration_s=1.5)

    assert summarise([[process(fast, slow)]], "a", "a").details.slow_share == 0.5
    assert summarise([[process(QUIET)]], "a", "a").details.slow_share is None


@pytest.mark.parametrize(
    ("counts", "said"), [([1, 1], "compiles 1 program a call"), ([2, 3], "compiles 2 to 3 programs a call"), ([0], "")]
)
def test_a_call_that_compiles_is_noted_with_how_many_programs(counts, said):
    processes = [structs.replace(variant("a", *clean(1.0)), compiles_per_call=count) for count in counts]

    outcome = summarise([[process(one)] for one in processes], "a", "a")

    assert [note.partition(":")[0] for note in outcome.notes] == ([said] if said else [])
    assert outcome.details.compiles_per_call == max(counts)
