"""Where a machine's self-test is kept, what of it is believed, and in which words."""

import msgspec
import pytest

from jaxmeter.harness.metrics.aa_text import describe_in_short, describe_self_test
from jaxmeter.harness.record import RecordError
from jaxmeter.harness.record.self_test import Tally, find_self_test, keep_self_test, locate_self_test
from tests import samples

HERE = "Sample Processor 1, 2 cores, 1 x cpu"


def test_what_was_kept_is_found_again_below_the_folder_of_the_runs(tmp_path):
    path = keep_self_test(tmp_path, samples.self_test())

    assert find_self_test(tmp_path, HERE) == samples.self_test()
    assert path.parent == tmp_path / ".self-tests"
    assert path.name.startswith("Sample-Processor-1-2-cores-1-x-cpu-")


def test_a_later_one_takes_the_place_of_an_earlier(tmp_path):
    keep_self_test(tmp_path, samples.self_test())

    keep_self_test(tmp_path, samples.self_test(runs=3))

    found = find_self_test(tmp_path, HERE)
    assert found is not None
    assert found.runs == 3
    assert len(list((tmp_path / ".self-tests").iterdir())) == 1


def test_of_a_machine_without_one_nothing_is_found(tmp_path):
    keep_self_test(tmp_path, samples.self_test())

    assert find_self_test(tmp_path, "another") is None
    assert find_self_test(tmp_path / "absent", HERE) is None


@pytest.mark.parametrize(
    ("written", "said"),
    [
        (b'{"machine"', "damaged"),
        (b"\xff", "damaged"),
        (msgspec.json.encode(samples.self_test(machine="another")), "of another machine, another"),
        (msgspec.json.encode(samples.self_test(runs=-1)), "counts or shares that cannot be"),
    ],
    ids=["cut", "no text", "moved", "impossible"],
)
def test_a_file_that_cannot_be_used_is_named(tmp_path, written, said):
    path = keep_self_test(tmp_path, samples.self_test())
    path.write_bytes(written)

    with pytest.raises(RecordError, match=said) as caught:
        find_self_test(tmp_path, HERE)

    assert str(locate_self_test(tmp_path, HERE)) in str(caught.value)


# Words


def test_the_first_screen_says_in_one_sentence_what_may_be_believed():
    assert describe_in_short(samples.self_test()) == (
        "On this machine (Sample Processor 1, 2 cores, 1 x cpu) the self-test of 2026-01-01 found of equal programs: "
        "0 of 48 different, 95 % intervals hold the truth in 45 of 48, a difference of 3 % is found in 95 % of cases. "
        "Between runs: 1 of 24 different, 95 % intervals hold the other time in 41 of 48, "
        "a difference of 20 % is found in 95 % of cases."
    )


def test_all_of_it_is_told_with_bounds():
    assert " ".join(describe_self_test(samples.self_test())) == (
        "Self-test of Sample Processor 1, 2 cores, 1 x cpu, 2026-01-01, by jaxmeter 0.0.0 with jax 0.10.0, jaxlib "
        "0.10.0: one program twice in each of 24 cases, 2 runs, 240 timing processes. "
        "Equal programs beside each other in a run: 0 of 48 (95 % bounds 0.0 to 7.4 %) are falsely called "
        "different, by 99 % intervals, beyond 3 %. "
        "Their 95 % intervals hold the true ratio, 1, in 45 of 48 (95 % bounds 82.8 to 98.7 %), those of 99 % in "
        "48 of 48 (95 % bounds 92.6 to 100.0 %). "
        "A difference of 3 % is found in 95 % of cases. "
        "One program's normalised time in two runs: 1 of 24 (95 % bounds 0.1 to 21.1 %) are falsely called "
        "different, by 99 % intervals, beyond 3 %. "
        "One run's 95 % intervals hold the time of the other in 41 of 48 (95 % bounds 72.2 to 93.9 %), those of "
        "99 % in 46 of 48 (95 % bounds 85.7 to 99.5 %); honest ones of 95 % do so in 83 to 91 %, since both times "
        "have an error. "
        "A difference of 20 % is found in 95 % of cases."
    )


def test_more_false_differences_than_verdicts_allow_for_are_a_warning():
    speedups = Tally(compared=48, differ=5, intervals=48, held_shown=40, held_decisive=43)

    told = describe_self_test(samples.self_test(speedups=speedups, times=None))

    assert told[2] == "That is beyond the 1 % that verdicts allow for: doubt what differs by little."
    assert told[4] == "No difference up to 50 % is found in 95 % of cases."
    assert told[5] == "Times of two runs were not compared: they have no reference speed in common."


def test_what_has_nothing_to_count_has_no_rate():
    nothing = Tally(compared=0, differ=0, intervals=0, held_shown=0, held_decisive=0)

    assert "95 % intervals hold the truth in 0 of 0" in describe_in_short(samples.self_test(speedups=nothing))
    assert "a run: 0 of 0 are falsely" in describe_self_test(samples.self_test(speedups=nothing, times=nothing))[1]


def test_without_a_self_test_the_page_says_how_to_make_one():
    assert (
        describe_in_short(None)
        == "How often the numbers of this machine err has not been measured; nox -s self-test does that."
    )
    assert describe_self_test(None) == (describe_in_short(None),)


@pytest.mark.parametrize(
    "changes",
    [
        {"confidence": 1e308},
        {"shown_confidence": 0.0},
        {"minimum_effect": -1.0},
        {"cases": 10**40},
        {"speedups": Tally(compared=1, differ=2, intervals=1, held_shown=1, held_decisive=1)},
        {"speedups": Tally(compared=1, differ=0, intervals=10**40, held_shown=1, held_decisive=1)},
        {"times": Tally(compared=1, differ=0, intervals=1, held_shown=2, held_decisive=1)},
        {"times": Tally(compared=1, differ=0, intervals=1, held_shown=1, held_decisive=1, smallest_difference=1e300)},
    ],
)
def test_of_a_record_with_impossible_numbers_only_that_is_said(changes):
    damaged = samples.self_test(**changes)

    assert describe_in_short(damaged) == "The self-test of this machine is damaged: run nox -s self-test."
    assert describe_self_test(damaged) == (describe_in_short(damaged),)
