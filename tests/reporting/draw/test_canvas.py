"""The canvas: escapes everything, and refuses texts that overlap or leave the image."""

import pytest

from jaxmeter.reporting.draw.canvas import ELLIPSIS, Canvas, measure_text
from jaxmeter.reporting.draw.palette import COLOURS, make_style_sheet

from .geometry import list_texts, read_svg


def test_a_text_that_would_cover_another_is_not_written() -> None:
    canvas = Canvas(200, 40, "")

    assert canvas.text(0, 20, "first", "label") is not None
    assert canvas.text(10, 24, "second", "label") is None
    assert [text for text, _ in list_texts(read_svg(canvas.render()))] == ["first"]


def test_a_text_without_room_is_shortened_and_whole_in_its_tooltip() -> None:
    canvas = Canvas(60, 40, "")

    canvas.text(0, 20, "a label that is too long", "label")

    (element,) = (one for one in read_svg(canvas.render()).iter() if one.tag.endswith("text"))
    assert element[0].text == "a label that is too long"
    assert (element[0].tail or "").endswith(ELLIPSIS)


def test_a_text_anchored_in_its_middle_is_moved_into_the_image() -> None:
    canvas = Canvas(100, 40, "")

    box = canvas.text(99, 20, "at the edge", "label", anchor="middle")

    assert box is not None
    assert box.right <= canvas.width


def test_markup_in_texts_titles_and_attributes_is_escaped() -> None:
    hostile = "\"'><script>alert(1)</script>"
    canvas = Canvas(600, 40, hostile)
    with canvas.group("m", title=hostile, variant=hostile):
        canvas.text(0, 20, hostile, "label")

    root = read_svg(canvas.render())

    assert "<script" not in canvas.render()
    assert root.attrib["aria-label"] == hostile


@pytest.mark.parametrize("letter", ["\x00", "\x0b", "\u202e", "\ud800", "\ufffe", "\uffff"])
def test_letters_that_xml_forbids_leave_it_well_formed(letter: str) -> None:
    canvas = Canvas(300, 40, f"a{letter}b")
    canvas.text(0, 20, f"a{letter}b", "label")

    svg = canvas.render()

    assert letter not in svg
    assert read_svg(svg).tag.endswith("svg")


def test_coordinates_are_rounded_to_half_a_pixel_and_one_that_is_no_number_is_an_error() -> None:
    canvas = Canvas(100, 40, "")
    canvas.line(-0.01, 1.26, 10.0, 20.24)

    assert 'x1="0" y1="1.5" x2="10" y2="20"' in canvas.render()
    with pytest.raises(ValueError, match="not finite"):
        canvas.line(0, 0, float("nan"), 1)


def test_a_figure_has_classes_instead_of_colours_and_no_script() -> None:
    canvas = Canvas(100, 40, "")
    with canvas.group("m cpu"):
        canvas.add("circle", cx=1, cy=1, r=1)
        canvas.line(0, 0, 1, 1)

    assert '<g class="m cpu"><circle cx="1" cy="1" r="1"/><line x1="0" y1="0" x2="1" y2="1"/></g>' in canvas.render()
    assert not any(f' {name}="' in canvas.render() for name in ("style", "id", "onclick", "fill", "stroke", "color"))


def test_the_style_sheet_has_both_colours_of_every_class() -> None:
    sheet = make_style_sheet()

    assert all(f".{name}{{color:{colour}}}" in sheet for name, both in COLOURS.items() for colour in both)


def test_widths_are_those_of_the_widest_common_font() -> None:
    assert measure_text("10 operations, jit") == pytest.approx(96, abs=8)
    assert measure_text("e\u0301") == measure_text("é") == measure_text("e")
