"""Figures: which marks are drawn for which data, and where their names stand."""

from __future__ import annotations

import re
from dataclasses import replace
from xml.etree import ElementTree

import pytest

from jaxmeter.harness.metrics.metric import Unit
from jaxmeter.reporting.draw import draw
from jaxmeter.reporting.draw.canvas import Box
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
    PointRow,
    Points,
    StackPart,
    StackRow,
    Stacks,
)

from .examples import EXAMPLES, WIDTHS, mark
from .geometry import list_clipped, list_marks_outside, list_overlaps, list_texts, read_svg

TIME = Axis("time, log", Unit.SECONDS, is_log=True)
SHARE = Axis("share", Unit.SHARE)
SIZE = Axis("n, log", Unit.COUNT, is_log=True)


def read(figure: Figure, width: int = 430) -> ElementTree.Element:
    return read_svg(draw(figure, width))


def words(root: ElementTree.Element) -> list[str]:
    return [text.replace("\u202f", " ") for text, _ in list_texts(root)]


def box(root: ElementTree.Element, wanted: str) -> Box:
    (found,) = (place for text, place in list_texts(root) if text == wanted)
    return found


def shapes(root: ElementTree.Element, *kinds: str) -> list[ElementTree.Element]:
    """Return what the groups of marks hold, of some kinds."""
    groups = (element for element in root.iter("g") if "m" in element.get("class", "").split())
    return [shape for group in groups for shape in group if shape.tag in kinds]


def row(*marks: Mark, label: str = "", note: str = "") -> PointRow:
    return PointRow(label, marks, note)


def points(*rows: PointRow, axis: Axis = TIME) -> Points:
    return Points("", axis, rows)


def curves(*shown: Curve, y: Axis = TIME, limits: tuple[Limit, ...] = ()) -> Curves:
    return Curves("", (CurvePanel(SIZE, y, shown, limits=limits),))


def curve(name: str, *values: float, in_focus: bool = True, ending: Ending | None = None) -> Curve:
    marked = tuple(CurvePoint(10.0**power, mark(value)) for power, value in enumerate(values))
    return Curve(name, marked, in_focus, ending)


def stacks(*shares: float, name: str = "", limit: Limit | None = None) -> Stacks:
    parts = tuple(StackPart(name, share, Fill.DEVICE, f"{share:g}") for share in shares)
    return Stacks("", SHARE, (StackRow("step", Hue.CPU, parts),), limit=limit)


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", EXAMPLES)
def test_no_text_of_an_example_covers_another_or_is_cut_off(name: str, width: int) -> None:
    root = read(EXAMPLES[name], width)

    assert list_overlaps(root) == list_clipped(root) == list_marks_outside(root) == []


@pytest.mark.parametrize("name", EXAMPLES)
def test_equal_figures_are_equal_bytes(name: str) -> None:
    assert draw(EXAMPLES[name], 310) == draw(replace(EXAMPLES[name]), 310)


@pytest.mark.parametrize(("hue", "kind"), [(Hue.CPU, "circle"), (Hue.GPU, "rect"), (Hue.TPU, "path")])
def test_each_kind_of_device_has_a_shape(hue: Hue, kind: str) -> None:
    assert [shape.tag for shape in shapes(read(points(row(mark(1e-3, hue)))), "circle", "rect", "path")] == [kind]


def test_with_several_devices_each_label_has_the_sign_and_the_colour_of_its_own() -> None:
    both = read(points(row(mark(1e-3)), row(mark(2e-3, Hue.GPU))))
    alone = read(points(row(mark(1e-3)), row(mark(2e-3))))

    labels = [text for text in both.iter("text") if "label" in text.get("class", "").split()]
    assert {text.text[:1] for text in labels if {"cpu", "gpu"} & set(text.get("class", "").split())} == {"●", "■"}
    assert not any("●" in text for text in words(alone))


def test_only_a_doubtful_number_is_hollow() -> None:
    root = read(points(row(mark(1e-3, is_doubtful=True)), row(mark(2e-3))))

    assert [shape.get("class", "") for shape in shapes(root, "circle")] == ["hollow", ""]


def test_a_reference_is_a_bar() -> None:
    (bar,) = shapes(read(points(row(mark(1e-3, is_reference=True)))), "line")

    assert bar.attrib["x1"] == bar.attrib["x2"]


def test_each_process_is_a_dot_below_its_estimate() -> None:
    dots, estimate = shapes(read(points(row(mark(1e-3, dots=(9e-4, 1.1e-3))))), "path", "circle")

    places = re.findall(r"M(\d+) (\d+)h0", dots.attrib["d"])
    assert [float(y) for _, y in places] == [float(estimate.attrib["cy"]) + 9] * 2
    assert float(places[0][0]) < float(estimate.attrib["cx"]) < float(places[1][0])


def test_an_interval_without_a_bound_is_not_drawn() -> None:
    half = Mark(Estimate(1e-3, low=9e-4), Hue.CPU, "")

    assert shapes(read(points(row(half))), "line") == []


def test_an_interval_reaches_its_bounds_on_the_axis() -> None:
    circles_of_bounds = shapes(
        read(points(row(mark(1e-3, spread=0.5)), row(mark(1.5e-3)), row(mark(1e-3 / 1.5)))), "circle"
    )
    (interval,) = shapes(read(points(row(mark(1e-3, spread=0.5)), row(mark(1.5e-3)), row(mark(1e-3 / 1.5)))), "line")
    _, high, low = (float(circle.attrib["cx"]) for circle in circles_of_bounds)

    assert [float(interval.attrib[end]) for end in ("x1", "x2")] == pytest.approx([low, high], abs=0.11)


def test_a_value_without_a_place_on_a_logarithmic_axis_is_left_out() -> None:
    assert len(shapes(read(points(row(mark(0.0)), row(mark(1e-3)))), "circle")) == 1


def test_marks_that_would_cover_each_other_step_apart() -> None:
    near = shapes(read(points(row(mark(1e-3), mark(1.01e-3, Hue.TPU), mark(1.02e-3)), row(mark(1.0)))), "circle")[:2]
    far = shapes(read(points(row(mark(1e-6), mark(1.0)))), "circle")

    assert float(near[1].attrib["cy"]) - float(near[0].attrib["cy"]) == 16
    assert far[0].attrib["cy"] == far[1].attrib["cy"]


def test_a_line_leads_to_the_reference_of_one_device_only() -> None:
    jit_and_eager = read(points(row(mark(1e-3), mark(1e-1, is_reference=True))))
    two_devices = read(points(row(mark(1e-3), mark(1e-1, Hue.GPU))))

    assert len([line for line in jit_and_eager.iter("line") if "ctx" in line.get("class", "")]) == 1
    assert [line for line in two_devices.iter("line") if "ctx" in line.get("class", "")] == []


def test_names_of_two_near_marks_are_both_written() -> None:
    figure = Points("", TIME, (row(mark(1e-3), mark(1.1e-3, is_reference=True)),), mark_names=("jit", "eager"))

    assert {"jit", "eager"} <= set(words(read(figure)))


def test_a_context_row_is_faint() -> None:
    root = read(Points("", TIME, (PointRow("PyTorch", (mark(1e-3),), is_context=True),)))

    assert [group.get("class") for group in root.iter("g") if "row" in group.get("class", "")] == ["row ctx"]


def test_labels_go_above_the_marks_where_there_is_no_room() -> None:
    figure = points(row(mark(1e-3), label="CNN forward, batch 8, f32", note="5.6× [4.7, 6.7]"))
    wide, narrow = read(figure, 540), read(figure, 268)

    assert "CNN forward, batch 8, f32" in words(narrow)
    assert box(wide, "CNN forward, batch 8, f32").bottom > float(shapes(wide, "circle")[0].attrib["cy"])
    assert box(narrow, "CNN forward, batch 8, f32").bottom < float(shapes(narrow, "circle")[0].attrib["cy"])


def test_names_of_curves_are_pushed_apart() -> None:
    root = read(curves(curve("one", 1e-3, 1e-2), curve("two", 1e-3, 1.01e-2)))

    assert abs(box(root, "one").top - box(root, "two").top) >= 13


def test_curves_in_focus_keep_their_names_where_not_all_fit() -> None:
    context = [curve(f"other {number}", 1e-3, 1e-2, in_focus=False) for number in range(30)]

    shown = words(read(curves(*context, curve("scan", 1e-3, 1e-2), curve("loop", 1e-3, 1e-2)), 268))

    assert {"scan", "loop"} <= set(shown)
    assert sum(text.startswith("other") for text in shown) < 30


def test_a_curve_that_ends_early_says_why() -> None:
    root = read(curves(curve("loop", 1e-3, ending=Ending(10, "too large")), curve("scan", 1e-3, 1e-2)))

    assert {"loop", "too large"} <= set(words(root))


def test_a_curve_of_zeros_is_named_where_a_logarithmic_axis_cannot_show_it() -> None:
    assert "cuDNN: 0" in words(read(curves(curve("cuDNN", 0.0, 0.0), curve("plain", 1e-3, 1e-2))))


def test_each_size_of_a_short_sweep_is_a_tick() -> None:
    assert [
        text for text in words(read(curves(curve("scan", 0.1, 0.2, 0.3), y=SHARE))) if text.isdigit() and text != "0"
    ] == ["1", "10", "100"]


@pytest.mark.parametrize("width", WIDTHS)
def test_the_name_of_a_limit_is_inside_the_image(width: int) -> None:
    limit = Limit(1.0, "full")

    assert "full" in words(read(stacks(0.5, limit=limit), width))
    assert "full" in words(
        read(curves(curve("float32", 0.5, 0.7), y=replace(SHARE, title="share of the peak"), limits=(limit,)), width)
    )


def test_shares_that_add_up_to_a_little_more_than_1_end_at_100_percent() -> None:
    texts = words(read(stacks(0.5, 0.5000001)))

    assert "100 %" in texts
    assert not {"120 %", "125 %", "150 %"} & set(texts)


def test_a_part_is_named_inside_only_where_its_name_fits() -> None:
    assert words(read(stacks(0.9, 0.8, name="compile"))).count("compile") == 2
    # One inside, and one in the legend, which is there as the other part has no room.
    assert words(read(stacks(0.9, 0.01, name="compile"))).count("compile") == 2
    assert "compile" not in words(read(stacks(0.9, name="")))


def test_parts_lie_one_after_the_other_with_a_gap_of_a_pixel() -> None:
    first, second = shapes(read(stacks(0.25, 0.75)), "rect")

    end = float(first.attrib["x"]) + float(first.attrib["width"])
    assert float(second.attrib["x"]) - end == pytest.approx(1, abs=0.2)
    assert float(second.attrib["width"]) == pytest.approx(3 * float(first.attrib["width"]), abs=3)


@pytest.mark.parametrize("width", WIDTHS)
def test_a_legend_names_each_part_once(width: int) -> None:
    figure = Stacks("", SHARE, (stacks(0.5).rows[0], stacks(0.7).rows[0]), has_legend=True)
    texts = words(read(figure, width))

    assert [texts.count(name) for name in ("device", "transfer", "dispatch", "host", "idle")] == [1] * 5


def test_a_change_has_a_sign_and_a_word_in_addition_to_its_colour() -> None:
    rows = (ForestRow("a", mark(1.2, Hue.SLOWER), "20 % slower"), ForestRow("b", mark(0.8, Hue.FASTER), "20 % faster"))

    texts = words(read(Forest("", Axis("change", Unit.RATIO, is_log=True), rows)))

    assert {"▲ 20 % slower", "▼ 20 % faster"} <= set(texts)


@pytest.mark.parametrize("figure", [points(), curves(), Curves("", ()), Stacks("", SHARE, ()), Forest("", TIME, ())])
def test_a_figure_without_data_is_an_empty_image(figure: Figure) -> None:
    assert shapes(read(figure), "circle", "rect", "path", "polyline") == []


def test_a_roofline_names_each_workload_once_and_covers_no_dot() -> None:
    dots = tuple(
        Dot(10.0 ** (number / 4), mark(1e9), "selu" if number % 2 else f"case {number}") for number in range(9)
    )
    figure = replace(EXAMPLES["roofline"], dots=dots)
    root = read(figure, 580)

    assert words(root).count("selu") == 1
    names = [place for text, place in list_texts(root) if text == "selu" or text.startswith("case")]
    centres = [(float(one.attrib["cx"]), float(one.attrib["cy"])) for one in shapes(root, "circle")]
    assert names
    assert not [
        (x, y) for x, y in centres for name in names if name.left < x < name.right and name.top < y < name.bottom
    ]


@pytest.mark.parametrize("width", WIDTHS)
def test_why_a_curve_ends_stands_at_the_size_without_a_number(width: int) -> None:
    loop, scan = curve("loop list", 1e-3, 1e-1, ending=Ending(100, "skipped")), curve("scan", 1e-3, 1e-2, 2e-2)

    root = read(curves(loop, scan), width)

    ticks = {text: place for text, place in list_texts(root) if text in ("10", "100")}
    middle = (box(root, "skipped").left + box(root, "skipped").right) / 2
    assert abs(middle - (ticks["100"].left + ticks["100"].right) / 2) < abs(middle - ticks["10"].right)
    assert "loop list" in words(root)


def test_the_axis_reaches_to_a_size_at_which_no_curve_has_a_number() -> None:
    root = read(curves(curve("loop", 1e-3, 1e-2, ending=Ending(100, "too large"))))

    assert {"1", "10", "100", "too large"} <= set(words(root))


@pytest.mark.parametrize("width", WIDTHS)
def test_labels_that_begin_alike_differ_also_where_they_are_shortened(width: int) -> None:
    names = [f"a training step of a perceptron ahead of time, {mode}" for mode in ("jit", "aot")]
    parts = (StackPart("", 0.1, Fill.FIRST, ""),)

    for figure in (
        points(*(row(mark(1e-3), label=name, note="1.00 ms [0.90, 1.10]") for name in names)),
        Stacks("", Axis("", Unit.SECONDS), tuple(StackRow(name, Hue.CPU, parts, "316 ms") for name in names)),
    ):
        shown = [text for text in words(read(figure, width)) if text.endswith(("jit", "aot"))]
        assert len(set(shown)) == len(names)
