import re

import pytest

from jaxmeter.reporting.render import bars
from jaxmeter.reporting.view.page_model import Bar, Dumbbells, End


def drawn(*rows):
    return bars.draw(Dumbbells("title", "alt", tuple(Bar(f"bar {i}", ends) for i, ends in enumerate(rows))))


def test_bars_stand_below_each_other_with_their_names_above_them():
    drawing = drawn((End("jit", 1e-3),), (End("jit", 1e-4),))

    assert [(name.text, name.y) for name in drawing.names] == [
        ("bar 0", bars.TOP + bars.NAME),
        ("bar 1", bars.TOP + bars.STEP + bars.NAME),
    ]
    assert drawing.bottom == bars.TOP + 2 * bars.STEP
    assert drawing.height == drawing.bottom + bars.BELOW
    assert all(bars.LEFT <= tick.at <= bars.RIGHT for tick in drawing.ticks)


def test_a_bar_reaches_from_the_fastest_mode_to_the_slowest_on_a_logarithmic_axis():
    drawing = drawn((End("eager", 1e-2), End("jit", 1e-4)), (End("jit", 1e-3),))

    ticks = {tick.text.replace("\u202f", " "): tick.at for tick in drawing.ticks}
    start, end = map(float, re.match(r"M([\d.]+) [\d.]+H([\d.]+)", drawing.lines).groups())
    assert start == pytest.approx(ticks["100 µs"], abs=0.1)
    assert end == pytest.approx(ticks["10 ms"], abs=0.1)


def test_each_mode_has_its_own_marks_in_the_usual_order():
    drawing = drawn((End("native", 1e-3), End("aot", 1e-3), End("eager", 1e-2), End("jit", 1e-4)), (End("jit", 1e-3),))

    assert [(one.mode, one.shapes.count("M")) for one in drawing.marks] == [
        ("eager", 1),
        ("jit", 2),
        ("aot", 1),
        ("native", 1),
    ]
    looks = [(one.colour, one.hollow, one.sign) for one in drawing.marks]
    assert len(set(looks)) == len(looks)


def test_bounds_end_at_the_edge_however_wide_they_are():
    (marks,) = drawn((End("jit", 1e-3, (1e-9, 1e9)),)).marks

    low, high = map(float, re.match(r"M([\d.]+) [\d.]+H([\d.]+)", marks.bounds).groups())
    assert (low, high) == (bars.LEFT, bars.RIGHT)


def test_a_long_name_is_cut():
    drawing = bars.draw(Dumbbells("", "", (Bar("x" * 200, (End("jit", 1.0),)),)))

    assert len(drawing.names[0].text) == bars.LONGEST_NAME
