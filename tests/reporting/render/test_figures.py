from xml.etree import ElementTree

import pytest

from jaxmeter.reporting.render import figures
from jaxmeter.reporting.text import visible
from jaxmeter.reporting.view.page_model import Panel, Plot, Point, Series
from tests import samples


def figure(*series, unit="s"):
    return Plot("title", "alt", (Panel("Time", "n", unit, tuple(series)),))


LINE = Series("scan", (Point(10.0, 1e-6), Point(1000.0, 1e-3)))


def test_equal_figures_give_equal_bytes():
    assert figures.draw(figure(LINE)) == figures.draw(figure(LINE))


def test_a_figure_has_no_date_and_leaves_matplotlib_s_settings_alone():
    before = dict(figures.matplotlib.rcParams)

    svg = figures.draw(figure(LINE))

    assert b"<dc:date>" not in svg
    assert dict(figures.matplotlib.rcParams) == before


def test_a_slide_gets_the_same_as_png_with_equal_bytes():
    png = figures.draw(figure(LINE), "png")

    assert png.startswith(b"\x89PNG\r\n")
    width = int.from_bytes(png[16:20], "big")
    assert width == figures.DOTS_PER_INCH * figures.PANEL_INCHES[0]
    assert png == figures.draw(figure(LINE), "png")
    assert b"Software" not in png


def test_ticks_carry_units():
    svg = figures.draw(figure(LINE)).decode()

    assert "1\u202fms" in svg
    assert "1\u202f000" in svg


def test_bytes_have_ticks_by_1024():
    svg = figures.draw(figure(Series("scan", (Point(10.0, 5e3), Point(1000.0, 9e6))), unit="B")).decode()

    assert "4\u202fKiB" in svg
    assert "16\u202fMiB" in svg


@pytest.mark.parametrize("text", samples.HOSTILE)
def test_hostile_names_are_text(text):
    svg = figures.draw(figure(Series(visible(text), LINE.points)))

    shown = "".join(ElementTree.fromstring(svg).itertext())
    assert visible(text)[:30] in shown


@pytest.mark.parametrize(
    "points", [((1.0, 1.0),), ((1.0, 5.0), (2.0, 5.0)), ((1e-300, 1e-12), (1e300, 1e9)), ((3.0, 1e18), (1e15, 2e18))]
)
def test_any_positive_points_make_a_figure(points):
    assert figures.draw(figure(Series("a", tuple(Point(*point) for point in points)), unit=""))


def drawn(*points):
    return figures.draw(figure(Series("a", points))).decode()


def test_a_doubtful_point_is_hollow():
    sound, doubtful = (drawn(Point(1.0, 1e-3), Point(10.0, 1e-2, doubtful=one)) for one in (False, True))

    hollow = f"fill: {figures.BACKGROUND}; stroke: {figures.LINES[0]}"
    assert hollow in doubtful
    assert hollow not in sound


def test_bounds_are_drawn_but_however_wide_do_not_hide_the_points():
    narrow = figures.draw(figure(Series("a", (Point(1.0, 1e-3), Point(10.0, 1e-2))))).decode()
    wide = drawn(Point(1.0, 1e-3, bounds=(1e-9, 1e3)), Point(10.0, 1e-2))

    ticks = [text for text in ElementTree.fromstring(narrow).itertext() if "s" in text]
    assert [text for text in ElementTree.fromstring(wide).itertext() if "s" in text] == ticks
    assert wide.count(f"stroke-opacity: {figures.BOUNDS_ALPHA}") == 1
    assert "stroke-opacity" not in narrow
