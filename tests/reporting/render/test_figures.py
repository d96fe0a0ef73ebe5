"""Stand-alone figures: their files and names, and what a file has in addition to the drawing of a page."""

from collections.abc import Callable, Sequence
from functools import partial
from itertools import cycle
from types import SimpleNamespace
from typing import Any
from xml.etree import ElementTree

import pytest
import resvg_py
from hypothesis import given, settings
from hypothesis import strategies as st

from jaxmeter.reporting.draw.palette import COLOURS, PANEL, Theme
from jaxmeter.reporting.render.figures import Form, draw, list_figures
from jaxmeter.reporting.view.page_model import Figure, Hue, PointRow, Points
from tests.reporting.draw import examples
from tests.reporting.draw.test_any_figure import KINDS

ONE_OF_EACH: tuple[Callable[[], Figure], ...] = (
    examples.jit,
    examples.run_time,
    examples.ledger,
    examples.changes,
    examples.roofline,
)


def make_points(*marks: Any) -> Points:
    return Points("what it shows", examples.TIME, (PointRow("selu", marks),))


def list_texts(figure: Figure) -> list[str]:
    return [
        element.text or "" for element in ElementTree.fromstring(draw(figure)).iter() if element.tag.endswith("text")
    ]


@pytest.mark.parametrize(("make", "theme"), [*zip(ONE_OF_EACH, cycle(("light", "dark")), strict=False)])
def test_each_kind_of_figure_is_written_as_svg_and_png(make: Callable[[], Figure], theme: Theme) -> None:
    svg, png = draw(make(), "svg", theme), draw(make(), "png", theme)

    root = ElementTree.fromstring(svg)
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    assert png.startswith(b"\x89PNG")
    width, height = (int.from_bytes(png[start : start + 4], "big") for start in (16, 20))
    assert (width, height) == tuple(round(3 * float(root.attrib[name])) for name in ("width", "height"))


@pytest.mark.parametrize("form", ["svg", "png"])
def test_equal_figures_have_equal_bytes(form: Form) -> None:
    assert draw(examples.jit(), form) == draw(examples.jit(), form)


def test_a_file_says_what_it_shows_and_needs_no_style_sheet_of_a_page() -> None:
    light, dark = (draw(examples.jit(), "svg", theme).decode() for theme in ("light", "dark"))

    for place, svg in enumerate((light, dark)):
        assert f'fill="{PANEL[place]}"' in svg
        assert f"svg.figure .cpu{{color:{COLOURS['cpu'][place]}}}" in svg
    assert COLOURS["cpu"][1] not in light
    assert ElementTree.fromstring(light)[0].text == "eager and jit"


def test_the_key_explains_devices_intervals_and_hollow_marks() -> None:
    key = {"CPU", "GPU", "TPU", "confidence interval", "hollow: unreliable"}

    assert key & set(list_texts(make_points(examples.mark(1.0)))) == {"CPU"}
    every = (examples.mark(1.0, hue, spread=0.1, is_doubtful=True) for hue in (Hue.CPU, Hue.GPU, Hue.TPU))
    assert key < set(list_texts(make_points(*every)))
    assert {"slower", "faster"} <= set(list_texts(examples.changes()))
    assert "GPU" in list_texts(examples.ledger()), "a stack names the devices of its rows"
    assert not key & set(list_texts(Points("alt", examples.TIME, ())))


def test_a_machine_without_fonts_writes_texts_into_a_png(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resvg_py, "svg_to_bytes", partial(resvg_py.svg_to_bytes, skip_system_fonts=True))
    named, renamed = (Points("alt", examples.TIME, (PointRow(name, (examples.mark(1.0),)),)) for name in ("a", "b"))

    assert draw(named, "png") != draw(renamed, "png")


def make_page(
    suites: Sequence[tuple[str, Sequence[str]]] = (), cards: Sequence[str] = (), *, has_releases: bool = False
) -> Any:
    def card(name: str) -> SimpleNamespace:
        return SimpleNamespace(id=name, figure=None if name == "changed" else examples.jit(), others=())

    many = {"cards": [card(name) for name in cards], "more": [], "rooflines": []}
    overview = SimpleNamespace(changed=card("changed"), jit=None, reports=None, time=card("time"), **many)
    views = []
    for suite, names in suites:
        cases = [SimpleNamespace(name=name, figures=[card("speed")]) for name in names]
        views.append(SimpleNamespace(name=suite, figures=[card("growth")], cases=cases))
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


@settings(max_examples=settings.default.max_examples * 2 // 5, deadline=None)
@given(st.one_of(*KINDS.values()), st.sampled_from(("svg", "png")), st.sampled_from(("light", "dark")))
def test_every_figure_can_be_drawn(figure: Figure, form: Form, theme: Theme) -> None:
    data = draw(figure, form, theme)

    if form == "svg":
        assert {element.tag.partition("}")[2] for element in ElementTree.fromstring(data).iter()} <= {
            *("svg", "title", "style", "g", "text", "line", "circle", "rect", "path", "polyline")
        }
