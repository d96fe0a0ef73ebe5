"""Figures: which marks are drawn for which data, and where their names stand."""

import re
from dataclasses import replace
from xml.etree import ElementTree

import pytest

from jaxmeter.harness.metrics.metric import Unit
from jaxmeter.reporting.draw import draw
from jaxmeter.reporting.draw.canvas import Box
from jaxmeter.reporting.view import page_model as drawn

from .examples import EXAMPLES, WIDTHS, mark
from .geometry import list_clipped, list_marks_outside, list_overlaps, list_texts, read_svg

TIME = drawn.Axis("time, log", Unit.SECONDS, is_log=True)
SHARE = drawn.Axis("share", Unit.SHARE)
SIZE = drawn.Axis("n, log", Unit.COUNT, is_log=True)


def read(figure: drawn.Figure, width: int = 430) -> ElementTree.Element:
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


def row(*marks: drawn.Mark, label: str = "", note: str = "") -> drawn.PointRow:
    return drawn.PointRow(label, marks, note)


def points(*rows: drawn.PointRow, axis: drawn.Axis = TIME) -> drawn.Points:
    return drawn.Points("", axis, rows)


def curves(*shown: drawn.Curve, y: drawn.Axis = TIME, limits: tuple[drawn.Limit, ...] = ()) -> drawn.Curves:
    return drawn.Curves("", (drawn.CurvePanel(SIZE, y, shown, limits=limits),))


def curve(name: str, *values: float, in_focus: bool = True, ending: drawn.Ending | None = None) -> drawn.Curve:
    marked = tuple(drawn.CurvePoint(10.0**power, mark(value)) for power, value in enumerate(values))
    return drawn.Curve(name, marked, in_focus, ending)


def stacks(*shares: float, name: str = "", limit: drawn.Limit | None = None) -> drawn.Stacks:
    parts = tuple(drawn.StackPart(name, share, drawn.Fill.DEVICE, f"{share:g}") for share in shares)
    return drawn.Stacks("", SHARE, (drawn.StackRow("step", drawn.Hue.CPU, parts),), limit=limit)


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", EXAMPLES)
def test_no_text_of_an_example_covers_another_or_is_cut_off(name: str, width: int) -> None:
    root = read(EXAMPLES[name], width)

    assert list_overlaps(root) == list_clipped(root) == list_marks_outside(root) == []


@pytest.mark.parametrize(("hue", "kind"), [(drawn.Hue.CPU, "circle"), (drawn.Hue.GPU, "rect"), (drawn.Hue.TPU, "path")])
def test_each_kind_of_device_has_a_shape(hue: drawn.Hue, kind: str) -> None:
    assert [shape.tag for shape in shapes(read(points(row(mark(1e-3, hue)))), "circle", "rect", "path")] == [kind]


def test_with_several_devices_each_label_has_the_sign_and_the_colour_of_its_own() -> None:
    both = read(points(row(mark(1e-3)), row(mark(2e-3, drawn.Hue.GPU))))
    alone = read(points(row(mark(1e-3)), row(mark(2e-3))))

    labels = [text for text in both.iter("text") if "label" in text.get("class", "").split()]
    assert {text.text[:1] for text in labels if {"cpu", "gpu"} & set(text.get("class", "").split())} == {"●", "■"}
    assert not any("●" in text for text in words(alone))


def test_only_a_doubtful_number_is_hollow_and_a_reference_is_a_bar_and_a_context_row_is_faint() -> None:
    root = read(points(row(mark(1e-3, is_doubtful=True)), row(mark(2e-3)), row(mark(1e-3, is_reference=True))))
    context = read(drawn.Points("", TIME, (drawn.PointRow("PyTorch", (mark(1e-3),), is_context=True),)))

    assert [shape.get("class", "") for shape in shapes(root, "circle")] == ["hollow", ""]
    (bar,) = shapes(root, "line")
    assert bar.attrib["x1"] == bar.attrib["x2"]
    assert [group.get("class") for group in context.iter("g") if "row" in group.get("class", "")] == ["row ctx"]


def test_each_process_is_a_dot_below_its_estimate() -> None:
    dots, estimate = shapes(read(points(row(mark(1e-3, dots=(9e-4, 1.1e-3))))), "path", "circle")

    places = re.findall(r"M(\d+) (\d+)h0", dots.attrib["d"])
    assert [float(y) for _, y in places] == [float(estimate.attrib["cy"]) + 9] * 2
    assert float(places[0][0]) < float(estimate.attrib["cx"]) < float(places[1][0])


def test_an_interval_without_a_bound_and_a_value_without_a_place_on_the_axis_are_not_drawn() -> None:
    half = drawn.Mark(drawn.Estimate(1e-3, low=9e-4), drawn.Hue.CPU, "")

    assert shapes(read(points(row(half))), "line") == []
    assert len(shapes(read(points(row(mark(0.0)), row(mark(1e-3)))), "circle")) == 1


def test_an_interval_reaches_its_bounds_on_the_axis() -> None:
    root = read(points(row(mark(1e-3, spread=0.5)), row(mark(1.5e-3)), row(mark(1e-3 / 1.5))))

    (interval,) = shapes(root, "line")
    _, high, low = (float(circle.attrib["cx"]) for circle in shapes(root, "circle"))
    assert [float(interval.attrib[end]) for end in ("x1", "x2")] == pytest.approx([low, high], abs=0.11)


def test_marks_that_would_cover_each_other_step_apart() -> None:
    near = shapes(read(points(row(mark(1e-3), mark(1.01e-3, drawn.Hue.TPU), mark(1.02e-3)), row(mark(1.0)))), "circle")[
        :2
    ]
    far = shapes(read(points(row(mark(1e-6), mark(1.0)))), "circle")

    assert float(near[1].attrib["cy"]) - float(near[0].attrib["cy"]) == 16
    assert far[0].attrib["cy"] == far[1].attrib["cy"]


def test_a_line_leads_to_the_reference_of_one_device_only() -> None:
    others = mark(1e-1, is_reference=True), mark(1e-1, drawn.Hue.GPU)
    lines = [list(read(points(row(mark(1e-3), other))).iter("line")) for other in others]

    assert [sum("ctx" in line.get("class", "") for line in drawn) for drawn in lines] == [1, 0]


def test_names_of_two_near_marks_are_both_written() -> None:
    figure = drawn.Points("", TIME, (row(mark(1e-3), mark(1.1e-3, is_reference=True)),), mark_names=("jit", "eager"))

    assert {"jit", "eager"} <= set(words(read(figure)))


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


def test_a_curve_of_zeros_is_named_where_a_logarithmic_axis_cannot_show_it() -> None:
    assert "cuDNN: 0" in words(read(curves(curve("cuDNN", 0.0, 0.0), curve("plain", 1e-3, 1e-2))))


def test_each_size_of_a_short_sweep_is_a_tick() -> None:
    root = read(curves(curve("scan", 0.1, 0.2, 0.3), y=SHARE))

    assert [text for text in words(root) if text.isdigit() and text != "0"] == ["1", "10", "100"]


@pytest.mark.parametrize("width", WIDTHS)
def test_the_name_of_a_limit_is_inside_the_image(width: int) -> None:
    limit = drawn.Limit(1.0, "full")
    share = replace(SHARE, title="share of the peak")

    for figure in (stacks(0.5, limit=limit), curves(curve("float32", 0.5, 0.7), y=share, limits=(limit,))):
        assert "full" in words(read(figure, width))


def test_shares_that_add_up_to_a_little_more_than_1_end_at_100_percent() -> None:
    assert [text for text in words(read(stacks(0.5, 0.5000001))) if text.endswith("%")][-1] == "100 %"


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
    figure = drawn.Stacks("", SHARE, (stacks(0.5).rows[0], stacks(0.7).rows[0]), has_legend=True)
    texts = words(read(figure, width))

    assert [texts.count(name) for name in ("device", "transfer", "dispatch", "host", "idle")] == [1] * 5


def test_a_change_has_a_sign_and_a_word_in_addition_to_its_colour() -> None:
    rows = (
        drawn.ForestRow("a", mark(1.2, drawn.Hue.SLOWER), "20 % slower"),
        drawn.ForestRow("b", mark(0.8, drawn.Hue.FASTER), "20 % faster"),
    )

    texts = words(read(drawn.Forest("", drawn.Axis("change", Unit.RATIO, is_log=True), rows)))

    assert {"▲ 20 % slower", "▼ 20 % faster"} <= set(texts)


@pytest.mark.parametrize(
    "figure", [points(), curves(), drawn.Curves("", ()), drawn.Stacks("", SHARE, ()), drawn.Forest("", TIME, ())]
)
def test_a_figure_without_data_is_an_empty_image(figure: drawn.Figure) -> None:
    assert shapes(read(figure), "circle", "rect", "path", "polyline") == []


def test_a_roofline_names_each_workload_once_and_covers_no_dot() -> None:
    dots = tuple(
        drawn.Dot(10.0 ** (number / 4), mark(1e9), "selu" if number % 2 else f"case {number}") for number in range(9)
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
    loop, scan = curve("loop list", 1e-3, 1e-1, ending=drawn.Ending(100, "skipped")), curve("scan", 1e-3, 1e-2, 2e-2)

    root = read(curves(loop, scan), width)

    ticks = {text: place for text, place in list_texts(root) if text in ("10", "100")}
    middle = (box(root, "skipped").left + box(root, "skipped").right) / 2
    assert abs(middle - (ticks["100"].left + ticks["100"].right) / 2) < abs(middle - ticks["10"].right)
    assert "loop list" in words(root)


def test_a_curve_that_ends_early_says_why_at_a_size_to_which_the_axis_reaches() -> None:
    root = read(curves(curve("loop", 1e-3, 1e-2, ending=drawn.Ending(100, "too large"))))

    assert {"loop", "1", "10", "100", "too large"} <= set(words(root))


@pytest.mark.parametrize("width", WIDTHS)
def test_labels_that_begin_alike_differ_also_where_they_are_shortened(width: int) -> None:
    names = [f"a training step of a perceptron ahead of time, {mode}" for mode in ("jit", "aot")]
    parts = (drawn.StackPart("", 0.1, drawn.Fill.FIRST, ""),)

    for figure in (
        points(*(row(mark(1e-3), label=name, note="1.00 ms [0.90, 1.10]") for name in names)),
        drawn.Stacks(
            "",
            drawn.Axis("", Unit.SECONDS),
            tuple(drawn.StackRow(name, drawn.Hue.CPU, parts, "316 ms") for name in names),
        ),
    ):
        shown = [text for text in words(read(figure, width)) if text.endswith(("jit", "aot"))]
        assert len(set(shown)) == len(names)
