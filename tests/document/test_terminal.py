"""How a document is placed in the columns of a terminal."""

import io

import pytest
from rich.cells import cell_len
from rich.console import Console

from jaxmeter.document import terminal
from jaxmeter.document.model import Cell, Column, Document, Group, Item, Part, Row, Table, Tone, make_table, say

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


def test_numbers_are_aligned_right_and_texts_left():
    assert placed_table(("case", *NUMBERS), [("a", "1", "22"), ("bcd", "333", "4")]) == [
        "case  before  after",
        "a          1     22",
        "bcd      333      4",
    ]


def test_the_interval_of_a_number_is_a_column_of_its_own():
    rows = [("a", *TIMES), ("b", "2\u202fs", "3\u202fs", Cell("+5.1\u202f%", "[+3, +7]"))]

    assert placed_table(("case", *NUMBERS, CHANGE), rows) == [
        "case  before   after  change        95 %",
        "a     100\u202fµs  150\u202fµs   +50\u202f%  [+48, +53]",
        "b        2\u202fs     3\u202fs  +5.1\u202f%    [+3, +7]",
    ]


def test_a_name_that_does_not_fit_has_a_line_of_its_own_above_its_numbers():
    name = "a_long_name[" + ",".join(f"param_{index}=1000" for index in range(5)) + "]"

    _, first, second, short = placed_table(("case", *NUMBERS), [(name, "1", "2"), ("b", "3", "4")])

    assert first == name
    assert second.split() == ["1", "2"]
    assert len(second) == len(short) <= 80


def test_a_last_text_is_below_its_row_where_it_does_not_fit():
    rows = [("a", *TIMES, "short"), ("b", *TIMES, "the code has changed; jaxlib 0.10.0 → 0.10.2; another program")]

    lines = placed_table(("case", *NUMBERS, CHANGE, "cause"), rows)

    assert lines[1].endswith("[+48, +53]  short")
    assert lines[2].endswith("[+48, +53]")
    assert lines[3] == "    the code has changed; jaxlib 0.10.0 → 0.10.2; another program"


def test_the_detail_of_a_text_is_below_its_row():
    assert placed_table(("", ""), [(Cell("selu"), Cell("jit", "not loop: too long")), ("sum", "jit")]) == [
        "selu  jit",
        "    not loop: too long",
        "sum   jit",
    ]


def test_a_text_between_numbers_is_cut_in_the_middle_and_a_path_keeps_its_file():
    columns = (*NUMBERS, "name", "line", *NUMBERS)
    rows = [("1", "2", "f" * 40 + "_12", f"{'folder/' * 9}model.py:61", "3", "4")]

    _, row = placed_table(columns, rows)

    *_, name, line, third, fourth = row.split()
    assert name.startswith("fff")
    assert name.endswith("_12")
    assert "…" in name
    assert (line, third, fourth) == ("model.py:61", "3", "4")
    assert len(row) <= 80


def test_numbers_that_do_not_fit_are_in_a_second_block_with_the_names_again():
    columns = [Column(f"metric_{index}", numeric=True) for index in range(12)]
    row = ("a name", *(f"{index}00\u202fµs" for index in range(12)))

    lines = placed_table(("case", *columns), [row])

    assert max(map(len, lines)) <= 80
    assert [line.split("  ")[0] for line in lines if line] == ["case", "a name", "case", "a name"]
    assert all(sum(f"  {text}" in line for line in lines) == 1 for text in row[1:])


def test_a_heading_is_folded_where_the_table_is_too_wide():
    columns = [Column("time until return", numeric=True) for _ in range(6)]

    heading, below, more, row = placed_table(("case", *columns), [("a", *["1\u202fµs"] * 6)])

    assert (heading.split(), below.split(), more.split()[1:]) == (["time"] * 6, ["until"] * 6, ["return"] * 6)
    assert len(row) <= 80


def test_rows_of_a_group_are_below_its_title():
    rows = (Row((Cell("f:jit"), Cell("1\u202fms"))),)
    table = Table("", (Column(""), Column("time", numeric=True)), (Group(rows, "selu[n=10]", "note: x"),))

    assert placed(Part(tables=(table,))) == ["         time", "selu[n=10] note: x", "  f:jit  1\u202fms"]


@pytest.mark.parametrize("width", [40, 80, 100])
def test_a_sentence_fills_the_width_and_breaks_no_number_and_no_interval(width):
    text = "slower: time 100\u202fµs → 150\u202fµs, +50\u202f% [+48, +53]; " * 8

    lines = placed(say(text), width=width)

    assert width - 13 < max(map(cell_len, lines)) <= width
    assert [sum(line.count(word) for line in lines) for word in ("[+48, +53];", "100\u202fµs")] == [8, 8]
    assert all(line.startswith("  ") for line in lines[1:])


def test_a_word_wider_than_the_line_is_split():
    assert max(map(cell_len, placed(say("x" * 250)))) <= 100


def test_signs_that_take_two_columns_count_twice():
    row, other = placed_table(("", Column("", numeric=True)), [("数値", "1"), ("ab", "22")])

    assert (cell_len(row), len(other)) == (8, 8)


def test_a_label_stands_before_its_sentence_and_more_lines_are_indented():
    first, second = placed(Part(items=(Item("word " * 20, "slower"),)))

    assert first.startswith("  slower  word")
    assert second.startswith("    word")


def test_parts_with_a_heading_or_a_table_stand_apart_and_sentences_do_not():
    table = Part(tables=(make_table(("",), [("row",)]),))

    lines = placed(say("one"), say("two"), table, say("three"), say("four", title="Heading"), title="Title")

    assert lines == ["Title", "one", "two", "", "row", "", "three", "", "Heading", "  four"]


def test_what_is_folded_is_for_other_formats():
    assert placed(Part("Results", is_folded=True), say("one")) == ["one"]


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
