"""What holds for any figure at any width."""

import math

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from jaxmeter.harness.metrics.metric import Unit
from jaxmeter.reporting.draw import draw
from jaxmeter.reporting.view import page_model as drawn

from .geometry import list_clipped, list_marks_outside, list_numbers, list_overlaps, read_svg

WIDTHS = (268, 275, 310, 334, 430, 540, 580)

ELEMENTS = {"svg", "g", "title", "text", "line", "circle", "rect", "path", "polyline"}
"""A text can add none, such as a script."""

HOSTILE = (
    "",
    "<script>alert(1)</script>",
    "]]> & \"quoted\" 'text'",
    "שלום עולם \u202e reversed",
    "NUL \x00 and \x1b[31m",
    "lone \ud800 surrogate",
    "e\u0301" * 20,
    "漢字" * 12,
    "👩‍👩‍👧 family",
    "W" * 500,
    "a word " * 80,
)

texts = st.sampled_from(HOSTILE) | st.text(max_size=30)
short_texts = st.sampled_from(("", "jit", "eager", "16\u202f%", "8.0× [6.3, 10]")) | texts
sizes = st.sampled_from((1.0, 1.0 + 1e-12, 1e-9, 1e15, 0.5, 100.0)) | st.floats(-9, 15).map(lambda power: 10**power)
amounts = st.just(0.0) | sizes
bounds = st.none() | sizes | st.sampled_from((0.0, math.inf))
units = st.sampled_from(Unit)
hues = st.sampled_from(drawn.Hue)
axes = st.builds(drawn.Axis, texts, units, st.booleans())
marks = st.builds(
    drawn.Mark,
    st.builds(drawn.Estimate, amounts, bounds, bounds, st.booleans(), st.lists(amounts, max_size=4).map(tuple)),
    hues,
    texts,
    texts,
    st.booleans(),
)
limits = st.builds(drawn.Limit, amounts, texts)


def tuples(one: st.SearchStrategy, *, most: int = 4) -> st.SearchStrategy:
    """Return a strategy of tuples, now and then of many."""
    return st.lists(one, max_size=most).map(tuple) | st.lists(one, min_size=most, max_size=4 * most).map(tuple)


points = st.builds(
    drawn.Points,
    texts,
    axes,
    tuples(st.builds(drawn.PointRow, short_texts, st.lists(marks, max_size=3).map(tuple), short_texts, st.booleans())),
    short_texts,
    st.tuples(short_texts, short_texts),
    st.none() | limits,
)

x_axes = axes | st.builds(drawn.Axis, texts, units, st.just(False), st.lists(texts, min_size=1, max_size=9).map(tuple))

curves = st.builds(
    drawn.Curves,
    texts,
    st.lists(
        st.builds(
            drawn.CurvePanel,
            x_axes,
            axes,
            tuples(
                st.builds(
                    drawn.Curve,
                    short_texts,
                    st.lists(st.builds(drawn.CurvePoint, sizes, marks), max_size=4).map(tuple),
                    st.booleans(),
                    st.none() | st.builds(drawn.Ending, sizes, short_texts),
                ),
                most=3,
            ),
            texts,
            st.lists(limits, max_size=3).map(tuple),
            st.none() | amounts,
        ),
        max_size=3,
    ).map(tuple),
)

stacks = st.builds(
    drawn.Stacks,
    texts,
    st.builds(drawn.Axis, texts, units),
    tuples(
        st.builds(
            drawn.StackRow,
            short_texts,
            hues,
            st.lists(
                st.builds(drawn.StackPart, short_texts, amounts, st.sampled_from(drawn.Fill), texts), max_size=5
            ).map(tuple),
            short_texts,
            st.none() | marks,
        )
    ),
    st.booleans(),
    st.none() | limits,
)

forests = st.builds(
    drawn.Forest,
    texts,
    st.builds(drawn.Axis, texts, st.just(Unit.RATIO), st.just(True)),
    tuples(st.builds(drawn.ForestRow, short_texts, marks, short_texts)),
)


rooflines = st.builds(
    drawn.Roofline,
    texts,
    axes,
    axes,
    tuples(st.builds(drawn.Dot, amounts, marks, short_texts)),
    st.lists(st.builds(drawn.Roof, sizes, sizes, texts), max_size=3).map(tuple),
)

KINDS: dict[type[drawn.Figure], st.SearchStrategy[drawn.Figure]] = {
    drawn.Points: points,
    drawn.Curves: curves,
    drawn.Stacks: stacks,
    drawn.Forest: forests,
    drawn.Roofline: rooflines,
}


@pytest.mark.parametrize("kind", KINDS)
@settings(
    max_examples=settings.default.max_examples * 3 // 5,
    deadline=None,
    database=None,
    derandomize=True,
    suppress_health_check=list(HealthCheck),
)
@given(data=st.data(), width=st.sampled_from(WIDTHS))
def test_any_figure_is_well_formed_and_readable_at_any_width(
    kind: type[drawn.Figure], data: st.DataObject, width: int
) -> None:
    figure = data.draw(KINDS[kind])

    svg = draw(figure, width)

    root = read_svg(svg)
    svg.encode()
    assert svg == draw(figure, width)
    assert float(root.attrib["width"]) == width
    assert {element.tag for element in root.iter()} <= ELEMENTS
    assert list_overlaps(root) == []
    assert list_clipped(root) == []
    assert list_marks_outside(root) == []
    assert all(math.isfinite(number) for number in list_numbers(svg))
