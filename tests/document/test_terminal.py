"""How a document is placed in the columns of a terminal."""

import io

import pytest
from rich.cells import cell_len
from rich.console import Console

from jaxmeter.document import terminal
from jaxmeter.document.model import Cell, Column, Document, Group, Item, Part, Row, Table, Tone, make_table, say
from tests.golden_texts import check_golden_scenes

NUMBERS = tuple(Column(title, numeric=True) for title in ("before", "after"))
CHANGE = Column("change", "95 %", numeric=True)
TIMES = ("100\u202fµs", "150\u202fµs", Cell("+50\u202f%", "[+48, +53]"))


def placed(*parts, width=100, title=""):
    return terminal.write(Document(title, parts), width).splitlines()


def placed_table(columns, rows, width=100):
    return placed(Part(tables=(make_table(columns, rows),)), width=width)


def printed(document, encoding="utf-8", width=100, **options):
    file = io.TextIOWrapper(io.BytesIO(), encoding=encoding)
    terminal.show(document, Console(file=file, width=width, **options))
    file.seek(0)
    return file.read()


def place_documents():
    """Lines of documents, by what is shown of them."""
    name = "a_long_name[" + ",".join(f"param_{index}=1000" for index in range(5)) + "]"
    cause = "the code has changed; jaxlib 0.10.0 → 0.10.2; another program"
    metrics = [Column(f"metric_{index}", numeric=True) for index in range(12)]
    returns = [Column("time until return", numeric=True) for _ in range(6)]
    between = ("1", "2", "f" * 40 + "_12", f"{'folder/' * 9}model.py:61", "3", "4")
    rows = (Row((Cell("f:jit"), Cell("1\u202fms"))),)
    group = Table("", (Column(""), Column("time", numeric=True)), (Group(rows, "selu[n=10]", "note: x"),))
    table = Part(tables=(make_table(("",), [("row",)]),))
    parts = say("one"), say("two"), table, say("three"), say("four", title="Heading"), Part("Results", is_folded=True)
    return {
        "numbers are aligned right and texts left": placed_table(
            ("case", *NUMBERS), [("a", "1", "22"), ("bcd", "333", "4")]
        ),
        "the interval of a number is a column of its own": placed_table(
            ("case", *NUMBERS, CHANGE), [("a", *TIMES), ("b", "2\u202fs", "3\u202fs", Cell("+5.1\u202f%", "[+3, +7]"))]
        ),
        "a name that does not fit has a line of its own": placed_table(
            ("case", *NUMBERS), [(name, "1", "2"), ("b", "3", "4")]
        ),
        "a last text is below its row where it does not fit": placed_table(
            ("case", *NUMBERS, CHANGE, "cause"), [("a", *TIMES, "short"), ("b", *TIMES, cause)]
        ),
        "the detail of a text is below its row": placed_table(
            ("", ""), [(Cell("selu"), Cell("jit", "not loop: too long")), ("sum", "jit")]
        ),
        "a text between numbers is cut in the middle, and a path keeps its file": placed_table(
            (*NUMBERS, "name", "line", *NUMBERS), [between]
        ),
        "numbers that do not fit are in a second block with the names again": placed_table(
            ("case", *metrics), [("a name", *(f"{index}00\u202fµs" for index in range(12)))]
        ),
        "a heading is folded where the table is too wide": placed_table(
            ("case", *returns), [("a", *["1\u202fµs"] * 6)]
        ),
        "rows of a group are below its title": placed(Part(tables=(group,))),
        "signs that take two columns count twice": placed_table(
            ("", Column("", numeric=True)), [("数値", "1"), ("ab", "22")]
        ),
        "a label stands before its sentence, and more lines are indented": placed(
            Part(items=(Item("word " * 20, "slower"),))
        ),
        "parts with a heading or a table stand apart, and what is folded is for other formats": placed(
            *parts, title="Title"
        ),
    }


def test_documents_read_as_their_golden_text():
    scenes = place_documents()

    assert max(cell_len(line) for lines in scenes.values() for line in lines) <= 100
    check_golden_scenes("documents", scenes)


@pytest.mark.parametrize("width", [40, 80, 100])
def test_a_sentence_fills_the_width_and_breaks_no_number_and_no_interval_but_a_word_wider_than_the_line(width):
    text = "slower: time 100\u202fµs → 150\u202fµs, +50\u202f% [+48, +53]; " * 8
    lines = placed(say(text), width=width)

    assert width - 13 < max(map(cell_len, lines)) <= width
    assert [sum(line.count(word) for line in lines) for word in ("[+48, +53];", "100\u202fµs")] == [8, 8]
    assert all(line.startswith("  ") for line in lines[1:])
    assert max(map(cell_len, placed(say("x" * 250)))) <= 100


def test_a_terminal_gets_colour_and_a_file_none():
    document = Document(parts=(say("slower", tone=Tone.WORSE),))

    assert "\x1b[" in printed(document, force_terminal=True, color_system="standard", no_color=False)
    assert printed(document) == "slower\n"


def test_an_output_that_takes_ascii_only_gets_likenesses_in_aligned_columns():
    rows = [("a ± b", "1\u202fµs", "—"), ("c", "22\u202fµs", "−1")]
    text = printed(Document(parts=(Part(tables=(make_table(("", *NUMBERS), rows),)),)), encoding="ascii")

    assert text.splitlines()[1:] == ["a +- b    1 us      -", "c        22 us     -1"]


@pytest.mark.parametrize("text", ["\x1b[31mred", "a\u202eb", "[red]markup[/red]", ":rocket:", "two\nlines"])
def test_a_hostile_text_is_only_text(text):
    hostile = make_table(("",), [(text,)], caption=text)
    lines = printed(Document(text, (Part(text, (hostile,), (text,), (Item(text, text),)),))).splitlines()

    assert len([line for line in lines if line]) == 6
    assert not any("\x1b" in line or "\u202e" in line for line in lines)
    assert all(len(line.strip()) >= len(text) for line in lines if line)
