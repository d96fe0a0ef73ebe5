"""Texts: their widths are upper bounds, and what has no room is cut between words."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jaxmeter.reporting.draw import canvas as widths
from jaxmeter.reporting.draw.canvas import ELLIPSIS, measure_text, shorten_apart, shorten_text


@pytest.mark.parametrize(
    ("text", "room", "shown"),
    [
        ("CNN step", 100, "CNN step"),
        ("memory: planned (bars), measured (marks)", 175, "memory: planned (bars)…"),
        ("a" * 40, 60, "aaaaaaa…"),
        ("MLP step, (batch 32)", measure_text("MLP step, (b…"), "MLP step…"),
        ("compile", measure_text("c…"), ""),
    ],
)
def test_a_text_without_room_is_cut(text: str, room: float, shown: str) -> None:
    assert shorten_text(text, room) == shown


def test_bold_text_is_wider() -> None:
    assert measure_text("compile", is_bold=True) > measure_text("compile")


def test_cutting_a_text_of_a_hundred_thousand_letters_measures_each_a_few_times(monkeypatch) -> None:
    letters = []
    monkeypatch.setattr(widths, "_measure_letter", lambda letter: letters.append(letter) or 0.6)

    assert shorten_text("a" * 100_000, 100) == "aaaaaaaaaaaa…"

    assert len(letters) < 300_000  # each prefix anew would be 5 × 10^9


def test_texts_that_would_be_shortened_alike_keep_what_distinguishes_them() -> None:
    modes = ("mlp ahead of time, jit", "mlp ahead of time, aot")
    operations = ("multiply_subtract_fusion.1", "multiply_subtract_fusion.2")

    assert [shorten_apart(text, 80, modes) for text in modes] == ["mlp ahea… jit", "mlp ahe… aot"]
    assert [shorten_apart(text, 80, operations) for text in operations] == ["multiply_s…1", "multiply_s…2"]
    assert shorten_apart("mlp ahead of time, jit", 80, ["cnn ahead of time, jit"]) == "mlp ahead…"


@given(texts=st.lists(st.text(max_size=40), min_size=1, max_size=3), room=st.floats(0, 300))
def test_a_text_that_is_shortened_apart_from_others_fits(texts: list[str], room: float) -> None:
    assert measure_text(shorten_apart(texts[0], room, texts)) <= room


@given(text=st.text(max_size=40), room=st.floats(0, 300), is_bold=st.booleans())
def test_a_shortened_text_fits_and_is_a_beginning_of_the_whole(text: str, room: float, is_bold: bool) -> None:
    shown = shorten_text(text, room, is_bold=is_bold)

    assert measure_text(shown, is_bold=is_bold) <= room
    assert text.startswith(shown.removesuffix(ELLIPSIS))
