import pytest

from jaxmeter.reporting.view.growth import find_turn
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
        baseline_s, outcomes = next(iter(times.values()))[index], {}
        for name, line in times.items():
            if (seconds := line[index]) is not None:
                busy = {"contended": processes * (size in contended), "processes": processes}
                timing = samples.timing(seconds, baseline_s=baseline_s, spread=spread, **busy)
                if times_return is not None:
                    return_s = samples.wobbling(times_return[name][index], returns_early)
                    timing = samples.with_values(timing, return_s=return_s)
                outcomes[variant(name)] = timing
        pairs.append(samples.pair(outcomes, planned))
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


def page_on_compiling(totals_s, *, processes=3, measures="execution"):
    """The page of a workload of which only compiling was measured.

    Args:
      totals_s: Seconds of trace, lower and compile at each of SIZES, by implementation.
    """
    pairs = []
    for index, size in enumerate(SIZES):
        stages = {name: [seconds[index] / 4] * 4 for name, seconds in totals_s.items()}
        outcomes = {
            variant(name): {"compilation": samples.compilation(*one, processes=processes)}
            for name, one in stages.items()
        }
        pairs.append(samples.pair(outcomes, workload="grow", params={"n": size}, measures=measures))
    return page_of(samples.run(*pairs))


def notes_on_compiling(totals_s, **changes):
    (part,) = section(page_on_compiling(totals_s, **changes), "sweeps").parts
    return tuple(note.replace("\u202f", " ") for note in part.notes[1:])


def fan(count):
    """Lines that all cross near one size."""
    return {f"f{index}": tuple(1e-5 * (size / 300) ** (index / 5) for size in SIZES) for index in range(count)}


COMPILE_S = {"unrolled": (0.1, 0.2, 2.0, 20.0), "scan": (0.4, 0.4, 0.4, 0.4)}


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
        "lines that do not cross": notes({"scan": FLAT, "loop": (1e-6, 2e-6, 3e-6, 4e-6)}),
        "lines that are not told apart at an end": notes({"scan": FLAT, "loop": (1e-6, 2e-6, 4e-6, 5.05e-6)}),
        "lines that scatter": notes({"scan": FLAT, "loop": STEEP}, spread=500),
        "a contended time that is paired": notes({"scan": FLAT, "loop": STEEP}, contended=(10_000,)),
        "as many sentences as there may be": notes(fan(9)),
        "two sentences more": notes(fan(11)),
        **{f"compile times of {count}": notes_on_compiling(COMPILE_S, processes=count) for count in (3, 1)},
        "contended dispatch": notes({"tanh": DISPATCHED_S["tanh"]}, times_return=DISPATCH_S, contended=SIZES),
        "dispatch that no work outweighs": notes({"inline": FLAT}, times_return=DISPATCH_S),
        **{
            f"dispatch of {count} processes, {returns} with a time until return": notes(
                {"tanh": DISPATCHED_S["tanh"]}, times_return=DISPATCH_S, processes=count, returns_early=returns
            )
            for count, returns in ((5, 5), (5, 2), (2, 5), (2, 2))
        },
        "dispatch": notes(DISPATCHED_S, times_return=DISPATCH_S),
        "dispatch that is less than half": notes(NEARLY_ALL_S, times_return={"tanh": DISPATCH_S["tanh"]}),
    }

    check_golden_scenes("crossovers", scenes)
