"""Geometry of a drawn figure, read back from its SVG: where its texts and marks are."""

import itertools
import math
import re
from collections.abc import Iterator
from xml.etree import ElementTree

from jaxmeter.reporting.draw.canvas import Box, measure_text

NAMESPACE = "{http://www.w3.org/2000/svg}"

ROUNDING = 0.51
"""Pixels: places of texts are rounded to whole ones."""
DIAMOND = 1.21
"""Pixels by which the diamond of a mark at the edge, without a label, leaves the image."""


def read_svg(svg: str) -> ElementTree.Element:
    """Return the root of an SVG; ParseError where it is not well-formed."""
    return ElementTree.fromstring(svg)


def list_texts(root: ElementTree.Element) -> list[tuple[str, Box]]:
    """Return each text that is seen, with the box that it takes at most."""
    return [(_read_text(one), _find_box(one)) for one in root.iter() if one.tag.endswith("text")]


def list_overlaps(root: ElementTree.Element) -> list[tuple[str, str]]:
    """Return the pairs of texts that cover each other."""
    return [
        (first, second)
        for (first, one), (second, other) in itertools.combinations(list_texts(root), 2)
        if one.covers(other, -ROUNDING)
    ]


def list_clipped(root: ElementTree.Element) -> list[str]:
    """Return the texts that leave the image."""
    width, height = (float(root.attrib[name]) for name in ("width", "height"))
    return [
        text
        for text, box in list_texts(root)
        if box.left < -ROUNDING or box.right > width + ROUNDING or box.top < 0 or box.bottom > height
    ]


def list_numbers(svg: str) -> Iterator[float]:
    """Yield every coordinate of an SVG."""
    names = "x|y|x1|y1|x2|y2|cx|cy|r|width|height|points|d"
    for value in re.findall(rf' (?:{names})="([^"]*)"', svg):
        assert "nan" not in value
        assert "inf" not in value
        yield from map(float, re.findall(r"-?\d+(?:\.\d+)?", value))


def list_marks_outside(root: ElementTree.Element) -> list[Box]:
    """Return the boxes of lines, curves, bars, circles, squares and diamonds that leave the image."""
    width, height = (float(root.attrib[name]) + DIAMOND for name in ("width", "height"))
    return [
        box
        for box in map(_find_extent, root.iter())
        if box.left < -DIAMOND or box.top < -DIAMOND or box.right > width or box.bottom > height
    ]


def _list_hairlines(element: ElementTree.Element) -> Iterator[Box]:
    """Yield the box of each line of a grid."""
    for x, y, turn, end in re.findall(r"M(-?[\d.]+) (-?[\d.]+)([VH])(-?[\d.]+)", element.attrib["d"]):
        xs, ys = (
            sorted((float(x), float(end if turn == "H" else x))),
            sorted((float(y), float(end if turn == "V" else y))),
        )
        yield Box(xs[0], ys[0], xs[1], ys[1])


def _join(boxes: list[Box]) -> Box:
    return Box(
        min(box.left for box in boxes),
        min(box.top for box in boxes),
        max(box.right for box in boxes),
        max(box.bottom for box in boxes),
    )


def _read_text(element: ElementTree.Element) -> str:
    """Return what is seen: without the tooltip, which is a child."""
    return (element.text or "") + "".join(child.tail or "" for child in element)


def _find_box(element: ElementTree.Element) -> Box:
    width = measure_text(_read_text(element), is_bold="b" in element.get("class", "").split())
    x, y = float(element.attrib["x"]), float(element.attrib["y"])
    anchors = [one.removeprefix("at-") for one in element.get("class", "").split() if one.startswith("at-")]
    return Box.around_text(x, y, width, anchors[0] if anchors else "start")


def _find_extent(element: ElementTree.Element) -> Box:
    """Return the box of a shape; an empty one of another element."""
    value = {name: float(number) for name, number in element.attrib.items() if _is_number(number)}
    places = [float(number) for number in re.findall(r"-?[\d.]+", element.get("points", element.get("d", "")))]
    match element.tag.removeprefix(NAMESPACE):
        case "line":
            xs, ys = (sorted((value[f"{axis}1"], value[f"{axis}2"])) for axis in "xy")
            return Box(xs[0], ys[0], xs[1], ys[1])
        case "circle":
            x, y, radius = value["cx"], value["cy"], value["r"]
            return Box(x - radius, y - radius, x + radius, y + radius)
        case "rect":
            return Box(value["x"], value["y"], value["x"] + value["width"], value["y"] + value["height"])
        case "polyline":
            return Box(min(places[::2]), min(places[1::2]), max(places[::2]), max(places[1::2]))
        case "path" if "grid" in element.get("class", ""):
            return _join(list(_list_hairlines(element)))
        case "path":  # a diamond: its top, and the way to its right
            x, y, half = places[:3]
            return Box(x - half, y, x + half, y + 2 * half)
        case _:
            return Box(0, 0, 0, 0)


def _is_number(value: str) -> bool:
    try:
        return math.isfinite(float(value))
    except ValueError:
        return False
