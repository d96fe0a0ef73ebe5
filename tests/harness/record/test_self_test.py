"""Where a machine's self-test is kept, what of it is believed, and in which words."""

import msgspec
import pytest

from jaxmeter.harness.metrics.aa_test import describe_in_short, describe_self_test
from jaxmeter.harness.record import RecordError
from jaxmeter.harness.record.self_test import Tally, find_self_test, keep_self_test, locate_self_test
from tests import samples
from tests.golden_texts import check_golden_scenes

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
        (msgspec.json.encode(samples.self_test(runs=-1)), "impossible counts or shares"),
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


def test_what_may_be_believed_reads_as_its_golden_text():
    often_wrong = Tally(compared=48, differ=5, intervals=48, held_shown=40, held_decisive=43)
    nothing = Tally(compared=0, differ=0, intervals=0, held_shown=0, held_decisive=0)
    found = {
        "usual": samples.self_test(),
        "more false differences than verdicts allow for": samples.self_test(speedups=often_wrong, times=None),
        "nothing to count": samples.self_test(speedups=nothing, times=nothing),
        "no self-test": None,
    }

    check_golden_scenes(
        "self-test", {rule: [describe_in_short(one), "", *describe_self_test(one)] for rule, one in found.items()}
    )


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

    assert describe_in_short(damaged) == "The self-test of this machine is damaged: run jaxmeter self-test."
    assert describe_self_test(damaged) == (describe_in_short(damaged),)
