"""Stand-alone figures: what is on matplotlib's axes, and what stands in the files."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any
from xml.etree import ElementTree

import matplotlib.colors
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.patches import Rectangle

from jaxmeter.harness.metrics.metric import Unit
from jaxmeter.reporting.draw.palette import COLOURS, PANEL
from jaxmeter.reporting.render.figures import Form, draw, list_figures, make_canvas
from jaxmeter.reporting.render.plots.sheet import Theme
from jaxmeter.reporting.view.figure_model import (
    Axis,
    Curve,
    CurvePanel,
    CurvePoint,
    Curves,
    Dot,
    Ending,
    Estimate,
    Figure,
    Fill,
    Forest,
    ForestRow,
    Hue,
    Limit,
    Mark,
    Part,
    PointRow,
    Points,
    Roof,
    Roofline,
    StackRow,
    Stacks,
)

HOSTILE = "$\\frac{1}{0}$ <script>alert(1)</script> \u202e\x00\ud800\uffff" + "long " * 200

THIN = "\u202f"


def make_mark(value: float, *, hue: Hue = Hue.CPU, is_reference: bool = False, **estimate: Any) -> Mark:
    return Mark(Estimate(value, **estimate), hue, f"{value}", is_reference=is_reference)


def make_points(*rows: PointRow, is_log: bool = True, **others: Any) -> Points:
    return Points("alt", Axis("time", Unit.SECONDS, is_log), rows, **others)


def make_curve(name: str, heights: Sequence[float], **others: Any) -> Curve:
    points = (CurvePoint(10.0 ** (place + 2), make_mark(height)) for place, height in enumerate(heights))
    return Curve(name, tuple(points), **others)


def make_curves(*curves: Curve, **others: Any) -> Curves:
    return Curves("alt", (CurvePanel(Axis("n", Unit.COUNT, True), Axis("time", Unit.SECONDS, True), curves, **others),))


def make_stacks(*rows: StackRow, **others: Any) -> Stacks:
    return Stacks("alt", Axis("first call", Unit.SECONDS), rows, **others)


def make_stack(amounts: dict[str, float], **others: Any) -> StackRow:
    fills = (Fill.FIRST, Fill.SECOND, Fill.THIRD, Fill.FOURTH)
    parts = (Part(name, amount, fill, name) for (name, amount), fill in zip(amounts.items(), fills, strict=False))
    return StackRow("flax", Hue.CPU, tuple(parts), **others)


def make_forest(*ratios: tuple[float, float, float]) -> Forest:
    rows = (
        ForestRow(
            f"case {place}", make_mark(ratio, hue=Hue.SLOWER if ratio > 1 else Hue.FASTER, low=low, high=high), "note"
        )
        for place, (low, ratio, high) in enumerate(ratios)
    )
    return Forest("alt", Axis("change", Unit.RATIO, is_log=True), tuple(rows))


def make_roofline(*dots: Dot) -> Roofline:
    x, y = Axis("intensity", Unit.RATIO, is_log=True), Axis("rate", Unit.FLOP_PER_SECOND, is_log=True)
    return Roofline("alt", x, y, dots, (Roof(1e10, 1e11, "peak"),))


ONE_OF_EACH: tuple[Figure, ...] = (
    make_points(PointRow("flax", (make_mark(1e-3, low=9e-4, high=2e-3, dots=(1e-3, 2e-3)),), "1 ms")),
    make_curves(make_curve("scan", (1e-5, 1e-4))),
    make_stacks(make_stack({"trace": 0.5, "compile": 2.0}, total="2.5 s")),
    make_forest((1.1, 1.2, 1.3)),
    make_roofline(Dot(1.0, make_mark(5e9), "selu")),
)


def find_axes(figure: Figure, theme: Theme = "light") -> Axes:
    return make_canvas(figure, theme).axes[0]


def find_lines(axes: Axes, kind: str) -> list[Line2D]:
    return [line for line in axes.lines if line.get_gid() == kind]


def read_x(line: Line2D) -> list[float]:
    return [float(value) for value in np.asarray(line.get_xdata())]


def read_y(line: Line2D) -> list[float]:
    return [float(value) for value in np.asarray(line.get_ydata())]


def find_bars(axes: Axes) -> list[Rectangle]:
    return [patch for patch in axes.patches if isinstance(patch, Rectangle)]


def read_x_ticks(axes: Axes) -> list[str]:
    return [label.get_text() for label in axes.get_xticklabels()]


def read_texts(figure: Figure) -> list[str]:
    return [text.get_text() for text in make_canvas(figure).texts]


def read_svg(figure: Figure) -> str:
    return "\n".join(ElementTree.fromstring(draw(figure)).itertext())


# Files


@pytest.mark.parametrize("figure", ONE_OF_EACH, ids=lambda one: type(one).__name__)
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_each_kind_of_figure_is_written_as_svg_and_png(figure: Figure, theme: Theme) -> None:
    svg, png = draw(figure, "svg", theme), draw(figure, "png", theme)

    assert ElementTree.fromstring(svg).tag.endswith("svg")
    assert png.startswith(b"\x89PNG")


@pytest.mark.parametrize("figure", ONE_OF_EACH, ids=lambda one: type(one).__name__)
@pytest.mark.parametrize("form", ["svg", "png"])
def test_equal_figures_have_equal_bytes(figure: Figure, form: Form) -> None:
    assert draw(figure, form) == draw(figure, form)


def test_a_users_settings_of_matplotlib_change_nothing_and_stay_as_they_are() -> None:
    expected = draw(ONE_OF_EACH[0])

    with matplotlib.rc_context({"axes.facecolor": "red", "font.size": 30, "svg.fonttype": "path"}):
        assert draw(ONE_OF_EACH[0]) == expected
        assert matplotlib.rcParams["font.size"] == 30


def test_an_svg_has_no_date_and_says_what_it_shows() -> None:
    svg = draw(make_points(PointRow("flax", (make_mark(1.0),))))

    assert b"date" not in svg
    assert "alt" in read_svg(make_points()).split()


@pytest.mark.parametrize("figure", ONE_OF_EACH, ids=lambda one: type(one).__name__)
def test_themes_differ_in_their_colours_only(figure: Figure) -> None:
    light, dark = make_canvas(figure, "light"), make_canvas(figure, "dark")

    assert matplotlib.colors.to_hex(light.get_facecolor()) == PANEL[0]
    assert matplotlib.colors.to_hex(dark.get_facecolor()) == PANEL[1]
    assert [text.get_text() for text in light.texts] == [text.get_text() for text in dark.texts]


# Points


def test_a_row_of_points_has_a_label_a_mark_an_interval_and_a_note() -> None:
    figure = make_points(PointRow("flax, jit", (make_mark(1e-3, low=9e-4, high=2e-3),), "1.00 ms"))

    axes = find_axes(figure)

    assert [label.get_text() for label in axes.get_yticklabels()] == ["flax, jit"]
    assert [read_x(line) for line in find_lines(axes, "mark")] == [[1e-3]]
    assert [read_x(line) for line in find_lines(axes, "interval")] == [[9e-4, 2e-3]]
    assert find_lines(axes, "interval")[0].get_linewidth() == 2
    assert "1.00 ms" in read_texts(figure)


def test_ticks_are_written_in_units() -> None:
    figure = make_points(PointRow("a", (make_mark(2e-5),)), PointRow("b", (make_mark(5e-3),)))

    axes = find_axes(figure)

    assert read_x_ticks(axes) == [f"10{THIN}µs", f"100{THIN}µs", f"1{THIN}ms", f"10{THIN}ms"]
    assert axes.get_xscale() == "log"


def test_a_linear_axis_begins_at_0() -> None:
    axes = find_axes(make_points(PointRow("a", (make_mark(4e-3),)), is_log=False))

    assert axes.get_xlim()[0] == 0
    assert read_x_ticks(axes)[0] == "0"


def test_a_doubtful_mark_is_hollow() -> None:
    figure = make_points(PointRow("a", (make_mark(1.0), make_mark(2.0, is_doubtful=True))))

    sure, doubtful = find_lines(find_axes(figure), "mark")

    assert sure.get_markerfacecolor() == COLOURS["cpu"][0]
    assert doubtful.get_markerfacecolor() == PANEL[0]
    assert "hollow: unreliable" in read_texts(figure)


def test_a_reference_is_a_bar_with_a_name_of_its_own() -> None:
    figure = make_points(
        PointRow("a", (make_mark(1.0), make_mark(9.0, is_reference=True))), mark_names=("jit", "eager")
    )

    axes = find_axes(figure)

    assert [len(find_lines(axes, kind)) for kind in ("mark", "reference", "connection")] == [1, 1, 1]
    assert {"jit", "eager"} <= set(read_texts(figure))


def test_the_dots_of_processes_lie_below_their_mark() -> None:
    axes = find_axes(make_points(PointRow("a", (make_mark(2.0, dots=(1.0, 3.0)),))))

    (mark,), (dots,) = find_lines(axes, "mark"), find_lines(axes, "dots")

    assert read_x(dots) == [1, 3]
    assert min(read_y(dots)) > max(read_y(mark)), "the axis points down"


def test_devices_differ_in_shape_and_colour_and_the_key_names_them() -> None:
    figure = make_points(PointRow("a", tuple(make_mark(1.0, hue=hue) for hue in (Hue.CPU, Hue.GPU, Hue.TPU))))

    marks = find_lines(find_axes(figure), "mark")

    assert len({mark.get_marker() for mark in marks}) == 3
    assert len({mark.get_markerfacecolor() for mark in marks}) == 3
    assert {"CPU", "GPU", "TPU"} <= set(read_texts(figure))


def test_a_limit_is_a_dashed_line_with_a_label() -> None:
    figure = make_points(PointRow("a", (make_mark(0.1),)), limit=Limit(1.0, "full"))

    (line,) = find_lines(find_axes(figure), "limit")

    assert line.get_linestyle() == "--"
    assert "full" in read_texts(figure)


def test_a_number_that_the_axis_cannot_show_has_no_mark() -> None:
    values = (0.0, -1.0, math.nan, math.inf, 1.0)

    axes = find_axes(make_points(*(PointRow("a", (make_mark(value),)) for value in values)))

    assert [read_x(line) for line in find_lines(axes, "mark")] == [[1.0]]


# Curves


def test_a_curve_is_a_line_through_its_marks_with_its_sizes_as_ticks() -> None:
    axes = find_axes(make_curves(make_curve("scan", (1e-5, 1e-4, 1e-3))))

    (curve,) = find_lines(axes, "curve")

    assert read_x(curve) == [100, 1000, 10_000]
    assert read_y(curve) == [1e-5, 1e-4, 1e-3]
    assert len(find_lines(axes, "mark")) == 3
    assert read_x_ticks(axes) == ["100", f"1{THIN}000", f"10{THIN}000"]


def test_names_of_curves_that_end_at_one_place_do_not_cover_one_another() -> None:
    names = [f"curve {place}" for place in range(5)]

    canvas = make_canvas(make_curves(*(make_curve(name, (1e-5, 1e-4)) for name in names)))

    heights = sorted(text.get_position()[1] for text in canvas.texts if text.get_text() in names)
    assert len(heights) == 5
    assert min(high - low for low, high in itertools.pairwise(heights)) >= 13 - 1e-9


def test_a_curve_that_ends_early_says_why() -> None:
    figure = make_curves(
        make_curve("loop", (1e-5,), ending=Ending(1000, "too large")), make_curve("scan", (1e-5, 1e-4))
    )

    assert {"loop", "too large", "scan"} <= set(read_texts(figure))
    places = {text.get_text(): text.get_position()[0] for text in make_canvas(figure).texts}
    assert places["too large"] > places["loop"]


def test_a_curve_out_of_focus_is_faint() -> None:
    figure = make_curves(make_curve("a", (1e-5, 1e-4)), make_curve("b", (1e-5, 1e-4), in_focus=False))

    behind, front = find_lines(find_axes(figure), "curve")

    assert front.get_color() == COLOURS["cpu"][0]
    assert behind.get_color() != COLOURS["cpu"][0]


def test_the_size_to_look_at_is_marked() -> None:
    axes = find_axes(make_curves(make_curve("a", (1e-5, 1e-4)), here=100.0))

    assert [read_x(line) for line in find_lines(axes, "here")] == [[100, 100]]


def test_panels_stand_side_by_side() -> None:
    panel = make_curves(make_curve("a", (1e-5, 1e-4))).panels[0]

    first, second = make_canvas(Curves("alt", (panel, panel))).axes

    assert first.get_position().x1 < second.get_position().x0
    assert first.get_position().y0 == second.get_position().y0


# Stacks


def test_parts_of_a_stack_follow_one_another_from_0_on() -> None:
    axes = find_axes(make_stacks(make_stack({"trace": 0.5, "compile": 2.0, "run": 0.25})))

    bars = [patch.get_bbox() for patch in find_bars(axes)]

    assert [bar.x0 for bar in bars] == [0, 0.5, 2.5]
    assert [bar.x1 for bar in bars] == [0.5, 2.5, 2.75]
    assert axes.get_xscale() == "linear"


def test_a_part_is_named_inside_or_else_in_the_key() -> None:
    figure = make_stacks(make_stack({"trace": 0.001, "compile": 2.0}, total="2.00 s"))

    texts = make_canvas(figure).texts

    colours = {text.get_text(): text.get_color() for text in texts}
    assert colours["compile"] == COLOURS["on-second"][0]
    assert colours["trace"] == COLOURS["title"][0]
    assert "2.00 s" in colours


def test_a_legend_names_all_fills_once() -> None:
    rows = (StackRow("a", Hue.CPU, (Part("16 %", 0.16, Fill.DEVICE, ""), Part("84 %", 0.84, Fill.HOST, ""))),) * 2

    texts = read_texts(make_stacks(*rows, has_legend=True))

    assert texts.count("device") == texts.count("host") == 1
    assert "idle" not in texts


def test_a_mark_on_a_stack_is_drawn_on_its_row() -> None:
    axes = find_axes(make_stacks(make_stack({"plan": 2.0}), make_stack({"plan": 1.0}, mark=make_mark(1.5))))

    (mark,) = find_lines(axes, "mark")

    assert (read_x(mark), read_y(mark)) == ([1.5], [1])


# Forest and roofline


def test_a_forest_shows_changes_around_0_with_a_sign() -> None:
    axes = find_axes(make_forest((1.2, 1.3, 1.4), (0.8, 0.85, 0.9)))

    assert {f"−20{THIN}%", "0", f"+20{THIN}%", f"+40{THIN}%"} <= set(read_x_ticks(axes))
    assert [read_x(line) for line in find_lines(axes, "no change")] == [[1, 1]]
    assert [line.get_marker() for line in find_lines(axes, "mark")] == ["^", "v"]


def test_a_roof_rises_to_its_ridge_and_stays_at_the_peak() -> None:
    axes = find_axes(make_roofline(Dot(1.0, make_mark(5e9), "selu")))

    (roof,) = find_lines(axes, "roof")

    intensities, rates = read_x(roof), read_y(roof)
    assert rates == [intensities[0] * 1e10, 1e11, 1e11]
    assert intensities[1] == 10


def test_dots_at_one_place_share_no_text() -> None:
    dots = [Dot(1.0, make_mark(5e9), f"name {place}") for place in range(9)]

    texts = read_texts(make_roofline(*dots))

    assert "name 0" in texts
    assert "name 8" not in texts


# Names of files


def make_page(
    suites: Sequence[tuple[str, Sequence[str]]] = (), cards: Sequence[str] = (), *, has_releases: bool = False
) -> Any:
    def card(name: str) -> SimpleNamespace:
        return SimpleNamespace(id=name, figure=ONE_OF_EACH[0], others=())

    overview = SimpleNamespace(
        changed=SimpleNamespace(id="changed", figure=None, others=()),
        jit=None,
        reports=None,
        time=card("time"),
        cards=[card(name) for name in cards],
        more=[],
        rooflines=[],
    )
    views = [
        SimpleNamespace(
            name=suite,
            figures=[card("growth")],
            cases=[SimpleNamespace(name=case, figures=[card("speed")]) for case in cases],
        )
        for suite, cases in suites
    ]
    releases = SimpleNamespace(cards=[card("memory")]) if has_releases else None
    return SimpleNamespace(overview=overview, suites=views, releases=releases)


def test_a_figure_is_named_after_its_view_and_card() -> None:
    page = make_page([("matmul", ["matmul[n=2048]"])], cards=["memory"], has_releases=True)

    assert list(list_figures(page)) == [
        "overview-time",
        "overview-memory",
        "releases-memory",
        "suite-matmul-growth",
        "case-matmul-matmul_n_2048-speed",
    ]


def test_names_differ_where_a_file_system_ignores_case_or_letters_are_left_out() -> None:
    names = list(list_figures(make_page(cards=["mlp", "MLP", "mlp/", "日本", "mlp 2", "../../etc", ""])))

    assert len({name.lower() for name in names}) == 8
    assert not any(set(name) & set("/\\: ") or ".." in name for name in names)


@given(st.lists(st.text(), max_size=8))
def test_every_name_is_unique(cards: list[str]) -> None:
    names = list(list_figures(make_page(cards=cards)))

    assert len({name.lower() for name in names}) == len(cards) + 1
    assert all(name.isascii() and len(name) < 80 for name in names)


# Whatever is in a figure


@pytest.mark.parametrize(
    "figure",
    [
        make_points(PointRow(HOSTILE, (make_mark(1.0),), HOSTILE), note_title=HOSTILE, mark_names=(HOSTILE, HOSTILE)),
        make_curves(
            make_curve(HOSTILE, (1.0, 2.0), ending=Ending(1000.0, HOSTILE)),
            title=HOSTILE,
            limits=(Limit(1.0, HOSTILE),),
        ),
        make_stacks(make_stack({HOSTILE: 1.0}, total=HOSTILE), limit=Limit(1.0, HOSTILE)),
        Forest(HOSTILE, Axis(HOSTILE, Unit.RATIO, True), (ForestRow(HOSTILE, make_mark(1.1), HOSTILE),)),
        make_roofline(Dot(1.0, make_mark(1e9), HOSTILE)),
    ],
    ids=lambda one: type(one).__name__,
)
def test_hostile_names_are_shown_as_text(figure: Figure) -> None:
    svg = draw(figure)

    assert b"<script" not in svg
    assert "$\\frac{1}{0}$" in read_svg(figure)
    assert draw(figure, "png").startswith(b"\x89PNG")


def test_a_text_is_shortened_to_its_room() -> None:
    canvas = make_canvas(make_curves(make_curve(HOSTILE, (1.0, 2.0), ending=Ending(1000.0, HOSTILE)), title=HOSTILE))

    canvas.draw_without_rendering()
    for text in canvas.texts:
        box = text.get_window_extent()
        assert box.x0 >= -1
        assert box.x1 <= canvas.bbox.x1 + 1


SMALLEST = 1e-8
"""Scales round by 1e-9 of a step, and the smallest step of a count is 1."""

NUMBERS = st.one_of(
    st.floats().filter(lambda value: not 0 < abs(value) < SMALLEST),
    st.floats(SMALLEST, 1e15),
    st.sampled_from((0.0, 1.0, 1e-3, 1e300, -1.0, math.nan)),
)
TEXTS = st.one_of(st.text(max_size=30), st.sampled_from(("$x^$", "", "_", "<b>", "jit", HOSTILE)))
BOUNDS = st.one_of(st.none(), NUMBERS)
ESTIMATES = st.builds(Estimate, NUMBERS, BOUNDS, BOUNDS, st.booleans(), st.lists(NUMBERS, max_size=3).map(tuple))
MARKS = st.builds(Mark, ESTIMATES, st.sampled_from(Hue), TEXTS, TEXTS, st.booleans())
AXES = st.builds(Axis, TEXTS, st.sampled_from(Unit), st.booleans())
NAMED_AXES = st.one_of(AXES, st.builds(Axis, TEXTS, st.just(Unit.COUNT), names=st.lists(TEXTS, max_size=4).map(tuple)))
LIMITS = st.builds(Limit, NUMBERS, TEXTS)


def tuples(items: st.SearchStrategy[Any], largest: int = 3) -> st.SearchStrategy[Any]:
    return st.lists(items, max_size=largest).map(tuple)


ENDINGS = st.one_of(st.none(), st.builds(Ending, NUMBERS, TEXTS))
CURVES = st.builds(Curve, TEXTS, tuples(st.builds(CurvePoint, NUMBERS, MARKS)), st.booleans(), ENDINGS)
PANELS = st.builds(CurvePanel, NAMED_AXES, AXES, tuples(CURVES), TEXTS, tuples(LIMITS), st.one_of(st.none(), NUMBERS))
PARTS = st.builds(Part, TEXTS, NUMBERS, st.sampled_from(Fill), TEXTS)
STACK_ROWS = st.builds(StackRow, TEXTS, st.sampled_from(Hue), tuples(PARTS), TEXTS, st.one_of(st.none(), MARKS))
POINT_ROWS = st.builds(PointRow, TEXTS, tuples(MARKS), TEXTS, st.booleans())
FIGURES: st.SearchStrategy[Figure] = st.one_of(
    st.builds(
        Points, TEXTS, AXES, tuples(POINT_ROWS), TEXTS, st.tuples(TEXTS, TEXTS), st.one_of(st.none(), LIMITS)
    ),
    st.builds(Curves, TEXTS, tuples(PANELS)),
    st.builds(Stacks, TEXTS, AXES, tuples(STACK_ROWS), st.booleans(), st.one_of(st.none(), LIMITS)),
    st.builds(Forest, TEXTS, AXES, tuples(st.builds(ForestRow, TEXTS, MARKS, TEXTS))),
    st.builds(
        Roofline, TEXTS, AXES, AXES,
        tuples(st.builds(Dot, NUMBERS, MARKS, TEXTS)), tuples(st.builds(Roof, NUMBERS, NUMBERS, TEXTS)),
    ),
)  # fmt: skip


@settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(FIGURES, st.sampled_from(("svg", "png")), st.sampled_from(("light", "dark")))
def test_every_figure_can_be_drawn(figure: Figure, form: Form, theme: Theme) -> None:
    data = draw(figure, form, theme)

    if form == "svg":
        ElementTree.fromstring(data)


@settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(FIGURES)
def test_nothing_on_an_axis_is_not_a_number(figure: Figure) -> None:
    for axes in make_canvas(figure).axes:
        assert all(math.isfinite(value) for line in axes.lines for value in (*read_x(line), *read_y(line)))
        assert all(math.isfinite(value) for patch in find_bars(axes) for value in patch.get_bbox().extents)
        assert all(math.isfinite(limit) for limit in (*axes.get_xlim(), *axes.get_ylim()))
