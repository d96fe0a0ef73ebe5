import math

import pytest

from jaxmeter.harness.metrics.pool import Kind, Pool, ReferenceSpeed
from jaxmeter.reporting.view.foundations import (
    describe_calibration,
    describe_contention,
    describe_foundations,
    describe_levels,
    describe_spreads,
    describe_usual_ratios,
)
from jaxmeter.reporting.view.runs import label_runs
from jaxmeter.reporting.view.sections.method import MODERATED
from jaxmeter.reporting.view.sections.speed import OF_FIRST_RUN
from tests import samples
from tests.reporting.views import kept, page_of, section


def labelled(run):
    (one,) = label_runs(kept(run))
    return one


def run_of(*timings, settings):
    planned = samples.planned_case(variants=tuple(f"f{number}:jit" for number in range(len(timings))))
    outcomes = {one.name: {"timing": timing} for one, timing in zip(planned.variants, timings, strict=True)}
    return labelled(samples.run((planned, samples.record(planned, outcomes)), settings=settings))


def run_of_cases(*timings, settings):
    """A case of two variants for each timing."""
    pairs = []
    for n, timing in enumerate(timings):
        planned = samples.planned_case(params={"n": n}, variants=("f:jit", "g:jit"))
        record = samples.record(planned, {one.name: {"timing": timing} for one in planned.variants})
        pairs.append((planned, record))
    return labelled(samples.run(*pairs, settings=settings))


def scattered(count, **timing):
    return [samples.timing(1e-3, spread=1 + number, **timing) for number in range(count)]


IN_ROUNDS = samples.settings(most_rounds=12)


def plain(text):
    return text.replace("\u202f", " ")


@pytest.mark.parametrize(("shown", "text"), [(0.95, "95 %"), (None, "99 %")])
def test_the_levels_say_what_is_shown_and_what_decides(shown, text):
    run = labelled(samples.run(settings=samples.settings(shown_confidence=shown)))

    assert plain(describe_levels(run)) == (
        f"Intervals that are shown are of {text}; verdicts take one of 99 % and a difference beyond 3 %."
    )


def test_a_prior_is_told_with_what_it_came_from():
    run = run_of_cases(*scattered(10), settings=IN_ROUNDS)
    prior = run.pool.spreads["execution_s", Kind.JAX].prior

    of_jax, of_peers = map(plain, describe_spreads(run))

    assert of_jax == (
        f"Execution time, JAX's variants: moderated t intervals, s0 = {100 * math.sqrt(prior.variance):.2g} %, "
        f"d0 = {prior.degrees:.1f}, from 20 variants of 10 cases; cases count as independent, a case's variants, "
        "which share processes, do not; one more case moves them."
    )
    assert of_peers == (
        "Execution time, peers: ordinary t intervals, since fewer than 10 cases have one with 3 processes that scatter."
    )


def test_what_the_speedups_borrow_is_told():
    pairs = []
    for n in range(10):
        planned = samples.planned_case(params={"n": n}, variants=("f:eager", "f:jit"))
        speedups = samples.timing(1e-3, baseline_s=2e-3, spread=1 + n)
        outcomes = {"f:eager": {"timing": samples.timing(2e-3)}, "f:jit": {"timing": speedups}}
        pairs.append((planned, samples.record(planned, outcomes)))
    run = labelled(samples.run(*pairs, settings=IN_ROUNDS))

    (told,) = map(plain, describe_usual_ratios(run))

    usual = math.sqrt(run.pool.usual_ratios[Kind.JAX])
    assert told == (
        f"Speedup, JAX's variants: t intervals of its processes and one more, {100 * usual:.2g} % off, as is usual in "
        f"this "
        "run, where that makes it wider."
    )
    assert told in map(plain, describe_foundations(run))


def test_an_infinite_prior_has_its_sign():
    run = run_of_cases(*([samples.timing(1e-3)] * 10), settings=IN_ROUNDS)

    assert "d0 = ∞" in describe_spreads(run)[0]


def test_the_times_at_reference_speed_have_their_own_line_where_there_is_a_reference_speed():
    run = run_of(*scattered(2, calibration_s=(1e-4,) * 5), settings=IN_ROUNDS)

    assert [line.partition(":")[0] for line in describe_spreads(run)] == [
        "Execution time, JAX's variants",
        "Execution time, peers",
        "Normalised time, JAX's variants",
        "Normalised time, peers",
    ]


def test_processes_in_a_row_are_said_to_have_ordinary_intervals():
    run = run_of(*scattered(12), settings=samples.settings())

    assert describe_spreads(run)[0] == (
        "Execution time, JAX's variants: ordinary t intervals, since a case's processes came one after the other, and "
        "what they shared tells nothing of other cases."
    )


@pytest.mark.parametrize(("gap_s", "told"), [(None, False), (9.0, True), (59.9, True), (60.0, False)])
def test_processes_that_follow_each_other_closely_are_said_to_tell_of_these_minutes(gap_s, told):
    planned = samples.planned_case(variants=("f:jit",))
    record = samples.record(planned, {"f:jit": {"timing": samples.timing(1e-3)}}, process_gap_s=gap_s)
    run = labelled(samples.run((planned, record), settings=IN_ROUNDS))

    gap = [plain(line) for line in describe_foundations(run) if "apart" in line]

    assert bool(gap) is told
    if gap_s == 9.0:
        (sentence,) = gap
        assert sentence == (
            "A case's processes began 9.00 s apart: intervals tell how well a time is known in these minutes, not how "
            "it will be tomorrow."
        )


CONSTANT = "it was constant, since 90 % of them lie within 3 %: normalised times say no more than the times themselves"


@pytest.mark.parametrize(
    ("calibration_s", "words"),
    [
        (
            (1.02e-4, 1e-4, 1e-4, 1e-4, 0.995e-4),
            CONSTANT,
        ),
        (
            (2e-4, 1e-4, 1e-4, 1e-4, 0.512e-4),
            "the machine's speed varied, so compare normalised times",
        ),
    ],
)
def test_a_calibration_is_told_with_its_range_and_whether_it_was_constant(calibration_s, words):
    run = run_of(samples.timing(1e-3, calibration_s=calibration_s), settings=IN_ROUNDS)

    least, most = (f"{value * 1e6:.3g}" for value in (calibration_s[-1], calibration_s[0]))
    assert (
        plain(describe_calibration(run))
        == f"Calibration loop alu 1: 100 µs in the middle, {least} µs to {most} µs over 5 processes; {words}."
    )


def test_beside_how_many_blocks_the_core_was_slow_is_told():
    run = run_of(samples.timing(1e-3, calibration_s=(1e-4,) * 5, slow_share=0.25), settings=IN_ROUNDS)

    assert plain(describe_calibration(run)) == (
        "Calibration loop alu 1: 100 µs in the middle, 100 µs to 100 µs over 5 processes; the core was slow beside 25 "
        "% of the "
        "blocks; the machine's speed varied, so compare normalised times."
    )


def test_without_a_calibration_the_reason_stands_in_its_place():
    assert (
        describe_calibration(labelled(samples.run()))
        == "No normalised time: no calibration loop was timed that times can be divided by."
    )


@pytest.mark.parametrize(
    ("replaced", "words"),
    [(0, ""), (1, "; fresh processes replaced 1 process"), (2, "; fresh processes replaced 2 processes")],
)
def test_what_became_of_contended_processes_is_told(replaced, words):
    timings = samples.timing(1e-3, processes=3, contended=1), *[samples.timing(1e-3, replaced=replaced)] * 2
    run = run_of(*timings, settings=IN_ROUNDS)

    assert describe_contention(run) == (
        "Contended processes: 1 of 3 timed variants have too few others and are marked, and all their processes count"
        f"{words}."
    )


def test_the_method_section_tells_of_every_run_that_leads():
    runs = samples.run(run_id="first", machine="a"), samples.run(run_id="second", machine="b", settings=IN_ROUNDS)

    parts = [part for part in section(page_of(*runs), "method").parts if part.title.startswith("What the intervals")]

    assert [part.title for part in parts] == [
        "What the intervals rest on · ● cpu · first",
        "What the intervals rest on · ● cpu · second",
    ]
    assert parts[0].notes == describe_foundations(labelled(runs[0]))
    assert len(parts[0].notes) == 6


def rules_of(*runs):
    return section(page_of(*runs), "method").parts[0].notes


def test_the_rules_say_that_times_are_moderated_only_where_they_are():
    planned = [samples.planned_case(params={"n": n}, variants=("f:jit",)) for n in range(10)]
    pairs = [
        (one, samples.record(one, {"f:jit": {"timing": timing}}))
        for one, timing in zip(planned, scattered(10), strict=True)
    ]

    assert MODERATED not in rules_of(samples.run(*pairs))
    assert MODERATED in rules_of(samples.run(*pairs, settings=IN_ROUNDS))


def test_the_caption_says_that_times_are_brought_to_the_first_run_only_where_they_are():
    first, later = calibration_run("first", 1e-4), calibration_run("later", 2e-4)

    def caption_of(*runs):
        return section(page_of(*runs), "speed").parts[0].tables[0].caption

    assert OF_FIRST_RUN not in caption_of(first)
    assert OF_FIRST_RUN in caption_of(first, later)


def test_a_pool_is_gathered_once_for_each_run():
    run = labelled(samples.run())

    assert run.pool is run.pool
    assert run.pool == Pool()
    assert ReferenceSpeed("alu 1", (1.0, 3.0)).calibration_s == 2.0


def test_replaced_processes_of_two_cases_are_added_up():
    pairs = []
    for n in (1, 2):
        planned = samples.planned_case(params={"n": n}, variants=("f:jit",))
        pairs.append((planned, samples.record(planned, {"f:jit": {"timing": samples.timing(1e-3, replaced=n)}})))

    assert describe_contention(labelled(samples.run(*pairs))).endswith("; fresh processes replaced 3 processes.")


def test_a_run_in_which_nothing_was_timed_says_so_of_no_variant():
    planned = samples.planned_case(variants=("f:jit",))
    run = labelled(samples.run((planned, samples.record(planned, {"f:jit": {"numerics": samples.numerics()}}))))

    assert describe_contention(run) == (
        "Contended processes: 0 of 0 timed variants have too few others and are marked, and all their processes count."
    )


def calibration_run(name: str, calibration_s: float, **changes):
    planned = samples.planned_case(variants=("f:jit",))
    timing = samples.timing(1e-3, calibration_s=(calibration_s,) * 5, **changes.pop("details", {}))
    record = samples.record(planned, {"f:jit": {"timing": timing}})
    return samples.run((planned, record), settings=IN_ROUNDS, run_id=name, **{"machine": "one", **changes})


def test_times_of_later_runs_of_a_machine_are_brought_to_the_speed_of_the_first():
    first, later = label_runs(kept(calibration_run("first", 1e-4), calibration_run("later", 2e-4)))

    assert (first.baseline, later.baseline) == (None, first)
    assert later.pool.reference.calibration_s == first.pool.reference.median_s == pytest.approx(1e-4)
    assert "its times are brought to the speed of run first, 100 µs" in plain(describe_calibration(later))
    assert "brought to" not in describe_calibration(first)


@pytest.mark.parametrize("machine", ["another", None])
def test_runs_of_other_machines_keep_their_own_speed(machine):
    _, later = label_runs(kept(calibration_run("first", 1e-4), calibration_run("later", 2e-4, machine=machine)))

    assert later.baseline is None
    assert later.pool.reference.calibration_s == pytest.approx(2e-4)


def test_a_first_run_without_a_calibration_is_nobodys_baseline():
    without = samples.run(machine="one")

    _, first, later = label_runs(kept(without, calibration_run("first", 1e-4), calibration_run("later", 2e-4)))

    assert (first.baseline, later.baseline) == (None, first)


def test_a_run_with_another_calibration_than_the_first_of_its_machine_says_so():
    upgraded = [
        calibration_run(name, calibration_s, details={"calibration": "alu 2"})
        for name, calibration_s in (("b", 1e-4), ("c", 2e-4))
    ]
    old, first, later = label_runs(kept(calibration_run("a", 1e-4), *upgraded))

    assert (old.baseline, old.other_calibration) == (None, None)
    assert (first.baseline, first.other_calibration) == (None, old)
    assert (later.baseline, later.other_calibration) == (first, old)
    assert later.pool.reference.calibration_s == pytest.approx(1e-4)
    for run in (first, later):
        assert describe_calibration(run).endswith(
            f"; run a has another, {samples.CALIBRATION}: do not compare times with it."
        )
