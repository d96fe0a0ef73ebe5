import math

import pytest

from jaxmeter.reporting.render import panels
from jaxmeter.reporting.view.page_model import Panel, Plot, Point, Series


def plot(*series, unit="s"):
    return Plot("title", "alt", (Panel("Time", "n", unit, tuple(series)),))


def drawn(*points, unit="s"):
    (drawing,) = panels.draw(plot(Series("scan", points), unit=unit))
    return drawing


def inside(x, y):
    return panels.LEFT <= x <= panels.RIGHT and panels.TOP <= y <= panels.BOTTOM


def test_points_and_ticks_share_a_logarithmic_scale():
    drawing = drawn(Point(10.0, 1e-6), Point(1000.0, 1e-3))

    first, last = drawing.lines[0].dots
    xs = {tick.text: tick.at for tick in drawing.x_ticks}
    ys = {tick.text.replace("\u202f", " "): tick.at for tick in drawing.y_ticks}
    assert (first.x, last.x) == (pytest.approx(xs["10"]), pytest.approx(xs["1\u202f000"]))
    assert (first.y, last.y) == (pytest.approx(ys["1 µs"]), pytest.approx(ys["1 ms"]))
    assert first.x < last.x
    assert first.y > last.y  # up is more


def test_bytes_have_ticks_by_1024():
    texts = [tick.text for tick in drawn(Point(10.0, 5e3), Point(1000.0, 9e6), unit="B").y_ticks]

    assert texts[0] == "4\u202fKiB"
    assert len(texts) <= panels.MOST_Y_TICKS


@pytest.mark.parametrize(
    "points", [((1.0, 1.0),), ((1.0, 5.0), (2.0, 5.0)), ((1e-300, 1e-12), (1e300, 1e9)), ((3.0, 1e18), (1e15, 2e18))]
)
def test_any_positive_points_lie_within_their_panel(points):
    drawing = drawn(*(Point(*point) for point in points), unit="")

    dots = [dot for line in drawing.lines for dot in line.dots]
    assert all(inside(dot.x, dot.y) for dot in dots)
    assert len({(dot.x, dot.y) for dot in dots}) == len(points)
    assert all(math.isfinite(tick.at) for tick in (*drawing.x_ticks, *drawing.y_ticks))


def test_bounds_end_at_the_edge_however_wide_they_are():
    narrow, wide = (drawn(Point(1.0, 1e-3, bounds=one), Point(10.0, 1e-2)) for one in ((9e-4, 2e-3), (1e-9, 1e3)))

    assert narrow.y_ticks == wide.y_ticks
    first = wide.lines[0].dots[0]
    assert (first.low, first.high) == (panels.BOTTOM, panels.TOP)
    assert wide.lines[0].dots[1].low is None


def test_a_bound_below_zero_ends_at_the_edge():
    assert drawn(Point(1.0, 1e-3, bounds=(-1e-3, 2e-3))).lines[0].dots[0].low == panels.BOTTOM


def test_a_doubtful_point_is_told():
    assert [dot.doubtful for dot in drawn(Point(1.0, 1.0), Point(2.0, 1.0, doubtful=True)).lines[0].dots] == [
        False,
        True,
    ]


def test_twelve_lines_look_different_and_each_the_same_in_every_panel():
    names = [f"line {index}" for index in range(12)]
    first = Panel("a", "n", "s", tuple(Series(name, (Point(1.0, 1.0),)) for name in names))
    second = Panel("b", "n", "s", tuple(Series(name, (Point(1.0, 1.0),)) for name in names[::-1]))

    keys = panels.list_keys(Plot("t", "a", (first, second)))
    one, other = panels.draw(Plot("t", "a", (first, second)))

    assert [key.name for key in keys] == names
    assert len({(key.colour, key.dash, key.shape) for key in keys}) == 12
    looks = [{line.name: (line.colour, line.dash) for line in drawing.lines} for drawing in (one, other)]
    assert looks[0] == looks[1] == {key.name: (key.colour, key.dash) for key in keys}


def test_a_mark_is_where_it_is_drawn_without_drawing_it():
    points = tuple(Point(float(10**power), 1e-6) for power in range(4))
    marked = Panel("Time", "n", "s", (Series("scan", points),), 100.0)
    whole = Plot("title", "alt", (marked, plot(Series("scan", points)).panels[0]))

    assert panels.place_marks(whole) == tuple(drawing.marked for drawing in panels.draw(whole))
    assert panels.place_marks(whole)[1] is None
