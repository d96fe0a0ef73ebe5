import msgspec
import pytest

from jaxmeter.reporting.view.sections.crossovers import MOST_SENTENCES, find_turn
from tests import samples
from tests.reporting.views import page_of, section

SIZES = (10, 100, 1_000, 10_000)


def variant(name):
    return f"{name}:{'native' if name == 'numpy' else 'jit'}"


def notes(times, *, times_return=None, spread=1, contended=(), processes=5, returns_early=5):
    """What the section Growth notes of one workload.

    Args:
      times, times_return: Seconds at each of SIZES by implementation, the baseline first; None is not timed.
      contended: Sizes at which all are.
      processes, returns_early: How many of them have a time, and a time until return; fewer than 3 give no bounds.
    """
    pairs = []
    for index, size in enumerate(SIZES):
        planned = samples.planned_case("grow", params={"n": size}, variants=list(map(variant, times)))
        outcomes = {}
        for name, seconds in times.items():
            if seconds[index] is not None:
                baseline_s = next(iter(times.values()))[index]
                timing = samples.timing(
                    seconds[index],
                    baseline_s=baseline_s,
                    spread=spread,
                    contended=processes * (size in contended),
                    processes=processes,
                )
                if times_return is not None:
                    values = {**timing.values, "return_s": samples.wobbling(times_return[name][index], returns_early)}
                    timing = msgspec.structs.replace(timing, values=values)
                outcomes[variant(name)] = {"timing": timing}
        pairs.append((planned, samples.record(planned, outcomes)))
    (part,) = section(page_of(samples.run(*pairs)), "sweeps").parts
    # The first tells exponents.
    return tuple(note.replace("\u202f", " ") for note in part.notes[1:])


def told(times):
    """The notes, which are all of execution time."""
    return tuple(note.removeprefix("Execution time: ") for note in notes(times))


FLAT, STEEP = (5e-6, 5e-6, 5e-6, 5e-6), (1e-6, 2e-6, 2e-5, 2e-4)


@pytest.mark.parametrize(
    ("sides", "expected"),
    [
        ((-1, -1, 1, 1), (100, 1_000)),
        ((-1, 0, 0, 1), (10, 10_000)),
        ((-1, 1, -1, 1), (10, 10_000)),
        ((-1, -1, -1, 0), None),
        ((0, -1, 1, 1), None),
        ((1, 1, -1, -1), None),
        ((-1, 1, 1, -1), None),
        ((), None),
    ],
)
def test_an_order_turns_between_two_measured_sizes_if_both_ends_are_sure(sides, expected):
    assert find_turn(list(zip(SIZES, sides, strict=False))) == expected


def test_lines_that_cross_are_told_in_one_sentence_with_the_measured_sizes():
    assert told({"scan": FLAT, "loop": STEEP}) == (
        (
            "loop:jit is ahead of scan:jit up to n = 100 (5.0× [4.96, 5.04] at 10), "
            "behind from 1 000 on (40× [39.7, 40.3] at 10 000)."
        ),
    )


def test_lines_that_are_near_each_other_cross_too():
    assert told({"scan": FLAT, "loop": (4e-6, 4e-6, 6e-6, 6e-6)}) == (
        (
            "loop:jit is ahead of scan:jit up to n = 100 (1.25× [1.24, 1.26] at 10), "
            "behind from 1 000 on (1.20× [1.19, 1.21] at 10 000)."
        ),
    )


def test_lines_that_do_not_cross_or_are_not_told_apart_at_an_end_are_not_told():
    assert notes({"scan": FLAT, "loop": (1e-6, 2e-6, 3e-6, 4e-6)}) == ()
    assert notes({"scan": FLAT, "loop": (1e-6, 2e-6, 4e-6, 5.05e-6)}) == ()
    assert notes({"scan": FLAT, "loop": STEEP}, spread=500) == ()


def test_a_contended_time_decides_where_it_is_paired_and_not_against_a_peer():
    assert len(notes({"scan": FLAT, "loop": STEEP}, contended=(10_000,))) == 2
    assert len(notes({"scan": FLAT, "numpy": STEEP}, contended=())) == 1
    assert len(notes({"scan": FLAT, "numpy": STEEP}, contended=(10_000,))) == 1
    assert "contended" in notes({"scan": FLAT, "numpy": STEEP}, contended=(10_000,))[0]


def test_a_size_that_one_lacks_is_left_out():
    assert told({"scan": FLAT, "loop": (*STEEP[:3], None)}) == (
        (
            "loop:jit is ahead of scan:jit up to n = 100 (5.0× [4.96, 5.04] at 10), "
            "behind from 1 000 on (4.0× [3.97, 4.03] at 1 000)."
        ),
    )


def test_those_that_cross_one_line_at_the_same_sizes_share_a_sentence():
    steeper = tuple(seconds * 1.1 for seconds in STEEP)
    flatter = tuple(seconds * 1.1 for seconds in FLAT)

    assert told({"scan": FLAT, "loop": STEEP, "unrolled": steeper}) == (
        (
            "loop:jit, unrolled:jit are ahead of scan:jit up to n = 100 (4.5× to 5.0× [4.5, 5.0] at 10), "
            "behind from 1 000 on (40× to 44× [40, 44] at 10 000)."
        ),
    )
    assert told({"scan": FLAT, "numpy": flatter, "loop": STEEP}) == (
        (
            "loop:jit is ahead of scan:jit, numpy:native up to n = 100 (5.0× to 5.5× [5.0, 5.5] at 10), "
            "behind from 1 000 on (36× to 40× [36, 40] at 10 000)."
        ),
    )


def test_dispatch_is_told_where_the_work_comes_to_outweigh_it():
    times_return = {"tanh": (4e-6, 4e-6, 4e-6, 4e-6), "square": (5e-6, 4e-6, 4e-6, 4e-6), "inline": FLAT}
    times = {"tanh": (5e-6, 6e-6, 5e-5, 5e-4), "square": (5e-6, 6e-6, 5e-5, 5e-4), "inline": FLAT}

    assert notes(times, times_return=times_return)[-1] == (
        "Time until return is more than half of the execution time up to n = 100, less from 1 000 on: tanh:jit, "
        "square:jit."
    )
    assert notes({"inline": FLAT}, times_return=times_return) == ()
    assert notes({"tanh": times["tanh"]}, times_return=times_return, contended=SIZES)[0].startswith(
        "Execution time: 4 of 4"
    )


def test_dispatch_is_outweighed_where_it_is_less_than_half_of_the_time():
    times_return, times = {"tanh": (4e-6,) * 4}, {"tanh": (7e-6, 7e-6, 9e-6, 9e-6)}

    assert notes(times, times_return=times_return) == (
        "Time until return is more than half of the execution time up to n = 100, less from 1 000 on: tanh:jit.",
    )


@pytest.mark.parametrize(("processes", "returns_early"), [(5, 2), (2, 5), (2, 2)])
def test_without_the_bounds_of_both_nothing_is_told_of_dispatch(processes, returns_early):
    times_return, times = {"tanh": (4e-6,) * 4}, {"tanh": (5e-6, 6e-6, 5e-5, 5e-4)}

    assert len(notes(times, times_return=times_return)) == 1
    assert notes(times, times_return=times_return, processes=processes, returns_early=returns_early) == ()


def test_as_many_sentences_as_there_may_be_are_all():
    fans = {f"f{index}": tuple(1e-5 * (size / 300) ** (index / 5) for size in SIZES) for index in range(9)}

    found = notes(fans)

    assert len(found) == MOST_SENTENCES
    assert not any(note.startswith("+") for note in found)


def test_a_pass_has_a_few_sentences_and_says_how_many_more_there_are():
    fans = {f"f{index}": tuple(1e-5 * (size / 300) ** (index / 5) for size in SIZES) for index in range(11)}

    found = notes(fans)

    assert len(found) == MOST_SENTENCES + 1
    assert found[-1] == "+ 2 more"
