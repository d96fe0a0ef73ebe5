import msgspec
import pytest

from jaxmeter.reporting.view.growth import MOST_SENTENCES, find_turn
from tests import samples
from tests.golden_texts import check_golden_scenes
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


def test_lines_that_do_not_cross_or_are_not_told_apart_at_an_end_are_not_told():
    assert notes({"scan": FLAT, "loop": (1e-6, 2e-6, 3e-6, 4e-6)}) == ()
    assert notes({"scan": FLAT, "loop": (1e-6, 2e-6, 4e-6, 5.05e-6)}) == ()
    assert notes({"scan": FLAT, "loop": STEEP}, spread=500) == ()


def test_a_contended_time_decides_where_it_is_paired_and_not_against_a_peer():
    assert len(notes({"scan": FLAT, "loop": STEEP}, contended=(10_000,))) == 2
    assert len(notes({"scan": FLAT, "numpy": STEEP}, contended=())) == 1
    assert len(notes({"scan": FLAT, "numpy": STEEP}, contended=(10_000,))) == 1
    assert "contended" in notes({"scan": FLAT, "numpy": STEEP}, contended=(10_000,))[0]


def page_on_compiling(totals_s, *, processes=3, measures="execution"):
    """The page of a workload of which only compiling was measured.

    Args:
      totals_s: Seconds of trace, lower and compile at each of SIZES, by implementation.
    """
    pairs = []
    for index, size in enumerate(SIZES):
        planned = samples.planned_case(
            "grow", params={"n": size}, variants=list(map(variant, totals_s)), measures=measures
        )
        outcomes = {
            variant(name): {"compilation": samples.compilation(*[seconds[index] / 4] * 4, processes=processes)}
            for name, seconds in totals_s.items()
        }
        pairs.append((planned, samples.record(planned, outcomes)))
    return page_of(samples.run(*pairs))


def notes_on_compiling(totals_s, **changes):
    (part,) = section(page_on_compiling(totals_s, **changes), "sweeps").parts
    return part.notes


COMPILE_S = {"unrolled": (0.1, 0.2, 2.0, 20.0), "scan": (0.4, 0.4, 0.4, 0.4)}


def test_where_compile_times_cross_is_told_if_they_have_intervals():
    (told,) = (one.replace("\u202f", " ") for one in notes_on_compiling(COMPILE_S)[1:])

    assert told.startswith("Trace + lower + compile: unrolled:jit is ahead of scan:jit up to n = 100 (4.0× ")
    assert "behind from 1 000 on (50× " in told
    assert len(notes_on_compiling(COMPILE_S, processes=1)) == 1


@pytest.mark.parametrize(
    ("measures", "curves", "columns"),
    [
        ("execution", ["compile_total_s"], []),
        ("compilation", ["compile_total_s", "trace_s", "compile_s"], ["Trace", "Lower", "Compile"]),
    ],
)
def test_the_stages_of_compiling_grow_by_themselves_where_they_are_what_is_measured(measures, curves, columns):
    page = page_on_compiling(COMPILE_S, measures=measures)
    (suite,) = page.suites

    grown = [card.id.removesuffix("-grow") for card in suite.figures if card.id.endswith("-grow")]
    titles = [column.title for column in suite.parts[0].tables[0].columns]
    assert grown == curves
    assert [title for title in titles if title in ("Trace", "Lower", "Compile")] == columns


DISPATCH_S = {"tanh": (4e-6, 4e-6, 4e-6, 4e-6), "square": (5e-6, 4e-6, 4e-6, 4e-6), "inline": FLAT}
DISPATCHED_S = {"tanh": (5e-6, 6e-6, 5e-5, 5e-4), "square": (5e-6, 6e-6, 5e-5, 5e-4), "inline": FLAT}
NEARLY_ALL_S = {"tanh": (7e-6, 7e-6, 9e-6, 9e-6)}


def test_where_lines_cross_and_work_outweighs_dispatch_reads_as_its_golden_text():
    steeper, flatter = (tuple(seconds * 1.1 for seconds in line) for line in (STEEP, FLAT))
    scenes = {
        "lines that cross": notes({"scan": FLAT, "loop": STEEP}),
        "lines that are near each other cross too": notes({"scan": FLAT, "loop": (4e-6, 4e-6, 6e-6, 6e-6)}),
        "a size that one lacks is left out": notes({"scan": FLAT, "loop": (*STEEP[:3], None)}),
        "two that cross one line": notes({"scan": FLAT, "loop": STEEP, "unrolled": steeper}),
        "one that crosses two lines": notes({"scan": FLAT, "numpy": flatter, "loop": STEEP}),
        "a line that crosses a contended peer": notes({"scan": FLAT, "numpy": STEEP}, contended=(10_000,)),
        "dispatch": notes(DISPATCHED_S, times_return=DISPATCH_S),
        "dispatch that is less than half": notes(NEARLY_ALL_S, times_return={"tanh": DISPATCH_S["tanh"]}),
    }

    check_golden_scenes("crossovers", scenes)


def test_dispatch_is_told_where_the_work_comes_to_outweigh_it():
    (told,) = (note for note in notes(DISPATCHED_S, times_return=DISPATCH_S) if "until return" in note)

    assert [name for name in DISPATCH_S if name in told] == ["tanh", "square"]
    assert notes({"inline": FLAT}, times_return=DISPATCH_S) == ()
    contended = notes({"tanh": DISPATCHED_S["tanh"]}, times_return=DISPATCH_S, contended=SIZES)
    assert not any("until return" in note for note in contended)


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
