"""Colours and looks of figures, by class: the one home of both."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

Theme = Literal["light", "dark"]

PANEL = ("#ffffff", "#141a21")
"""What lies behind a figure, (light, dark)."""

_INK, _MUTED, _PAGE = ("#16191f", "#e8ebf0"), ("#58606c", "#a6b0bd"), ("#ffffff", "#0f1318")

COLOURS: dict[str, tuple[str, str]] = {
    # Fills: useful work is slate, lost time amber, parts without judgement grey.
    "device": ("#43536a", "#a3b3c8"),
    "transfer": ("#8796a8", "#7f90a6"),
    "dispatch": ("#c98700", "#e0a62a"),
    "host": ("#f2c45c", "#a3782a"),
    "idle": ("#f8e4b0", "#5c4a20"),
    "first": ("#dedede", "#4a525c"),
    "second": ("#bdbdbd", "#626a74"),
    "third": ("#757575", "#969da7"),
    "fourth": ("#4a4a4a", "#cdd2d9"),
    # Text on a fill has a contrast of at least 4.5 : 1.
    "on-device": _PAGE,
    "on-transfer": (_INK[0], _PAGE[1]),
    "on-dispatch": (_INK[0], _PAGE[1]),
    "on-host": (_INK[0], _PAGE[1]),
    "on-idle": _INK,
    "on-first": _INK,
    "on-second": _INK,
    "on-third": _PAGE,
    "on-fourth": _PAGE,
    # The frame.
    "label": _INK,
    "tick": _MUTED,
    "title": _MUTED,
    "note": _MUTED,
    "rule": _MUTED,
    "limit": _INK,
    "grid": ("#e6e9ee", "#28303a"),
    "here": ("#eef0f4", "#222a34"),
    # Hues come last: a name in the colour of its device has both classes. Devices differ under normal, protan, deutan
    # and tritan vision, and in shape.
    "cpu": ("#0b5cad", "#7fb0e6"),
    "gpu": ("#aa3377", "#ee99aa"),
    "tpu": ("#6b6f00", "#cdd05c"),
    "ink": _INK,
    "slower": ("#b8400e", "#ff9a66"),
    "faster": ("#00574f", "#4fd1c0"),
}
"""(light, dark) by class."""

LOOKS: dict[str, dict[str, str]] = {
    "b": {"font-weight": "600"},
    "ctx": {"opacity": "0.55"},
    "dot": {"opacity": "0.45", "stroke": "currentColor", "stroke-width": "4", "stroke-linecap": "round"},
    "grid": {"fill": "none", "stroke": "currentColor"},
    "at-middle": {"text-anchor": "middle"},
    "at-end": {"text-anchor": "end"},
    "limit": {"stroke-dasharray": "4 3"},
    "hollow": {"fill": PANEL[0], "stroke": "currentColor", "stroke-width": "1.5"},
    "direct": {"paint-order": "stroke", "stroke": PANEL[0], "stroke-width": "3", "stroke-linejoin": "round"},
}
"""Properties by class, apart from the colour."""


def make_style_sheet() -> str:
    """Return the CSS of all classes, dark colours included; marks are `currentColor` everywhere."""
    dark = "".join(_list_rules(1))
    return f"{make_theme_sheet('light')}@media screen and (prefers-color-scheme:dark){{{dark}}}"


def make_theme_sheet(theme: Theme) -> str:
    """Return the CSS of all classes in the colours of one theme."""
    looks = (f"svg.figure .{name}{{{_declare(look)}}}" for name, look in LOOKS.items())
    return "".join([*_list_rules(0), *looks, *(_list_rules(1) if theme == "dark" else ())])


def _list_rules(theme: int) -> Iterator[str]:
    yield f"svg.figure{{color:{_INK[theme]}}}"
    if not theme:
        yield "svg.figure *{fill:currentColor}svg.figure line,svg.figure polyline{fill:none;stroke:currentColor}"
        yield "svg.figure .m line{stroke-width:2}"
    yield from (f"svg.figure .{name}{{color:{colours[theme]}}}" for name, colours in COLOURS.items())
    if theme:
        yield f"svg.figure .hollow{{fill:{PANEL[theme]}}}svg.figure .direct{{stroke:{PANEL[theme]}}}"


def _declare(look: dict[str, str]) -> str:
    return ";".join(f"{name}:{value}" for name, value in look.items())
