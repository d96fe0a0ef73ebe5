"""How a document is written as Markdown and as HTML."""

import re

import pytest

from jaxmeter.document import html, markdown
from jaxmeter.document.model import Cell, Column, Document, Item, Part, make_table, say
from jaxmeter.reporting.view.overview import summarise
from tests import samples
from tests.reporting.views import page_of

TABLE = make_table(("case", Column("change", "95 %", numeric=True)), [("a|b", Cell("+5 %", "[+3, +7]"))], "What to see")


def rendered(*runs):
    return markdown.write(summarise(page_of(*runs), in_full=True))


@pytest.mark.parametrize(
    ("text", "escaped"),
    [
        ("selu[n=10]", r"selu\[n=10\]"),
        ("a|b", "a&#124;b"),
        ("@someone", "@\u2060someone"),
        ("a@b.org", "a@\u2060b.org"),
        ("see #12, a/b#3 and GH-4", "see \\#\u206012, a/b\\#\u20603 and GH-\u20604"),
        ("high-5", "high-5"),
        ("<b>&", "&lt;b&gt;&amp;"),
        (r"a\*b", r"a\\\*b"),
        (":rocket:", "&#58;rocket:"),
        ("selu:jit", "selu:jit"),
        ("https://x", "https&#58;//x"),
        ("www.x", "www&#46;x"),
    ],
)
def test_text_is_escaped_so_that_it_reads_as_it_is(text, escaped):
    assert markdown.escape(text) == escaped


def test_every_row_of_a_table_has_the_same_number_of_cells():
    tables = [block.splitlines() for block in rendered(samples.hostile_run()).split("\n\n") if block.startswith("|")]

    assert tables
    for lines in tables:
        assert len({len(re.findall(r"(?<!\\)\|", line)) for line in lines}) == 1


def test_hostile_text_makes_no_markup_of_its_own():
    text = rendered(samples.hostile_run())

    assert not re.search(r"<(?!/?details>|/?summary>|!-- jaxmeter report -->)", text)
    assert not re.search(r"[@#](?!\u2060|\w+;|[# ])|https://|:rocket:", text)


def test_a_document_has_its_title_then_parts_with_sentences_tables_and_notes():
    parts = (
        say("A sentence."),
        Part("What changed", (TABLE,), ("a note",), (Item("by much", "slower"), Item("+ 1 more"))),
    )

    assert markdown.write(Document("Failed", parts)).split("\n\n") == [
        "<!-- jaxmeter report -->\n## Failed",
        "A sentence.",
        "**What changed**",
        "- **slower** by much\n- + 1 more",
        "What to see",
        "| case | change, 95 % |\n|---|--:|\n| a&#124;b | +5 % · \\[+3, +7\\] |",
        "a note\n",
    ]


def test_what_is_folded_unfolds_below_its_title():
    text = markdown.write(Document("Passed", (Part("Results", (TABLE,), is_folded=True),)))

    assert "<details><summary>Results</summary>\n\nWhat to see\n\n| case |" in text
    assert text.endswith("|\n\n</details>\n")


def test_tables_share_the_room_that_sentences_leave():
    long = make_table(("case",), [("x" * 100,) for _ in range(2000)])
    parts = (Part(tables=(TABLE, long)), say("A sentence. " * 100), Part(tables=(long,)))

    text = markdown.write(Document("Failed", parts))

    first, second = (int(number) for number in re.findall(r"(\d+) rows left out", text))
    assert 0.95 * markdown.MOST_CHARACTERS < len(text) <= markdown.MOST_CHARACTERS + 200
    assert abs(first - second) < 10


def test_html_has_the_same_and_nothing_in_it_is_markup():
    parts = (Part("<b>", (TABLE,), ("a & b",), (Item("by much", "slower"),)),)

    text = html.write(Document("<script>", parts))

    assert text == (
        "<p><b>&lt;script&gt;</b></p><p><b>&lt;b&gt;</b></p><table><caption>What to see</caption><thead><tr>"
        "<th>case</th><th>change</th></tr></thead><tbody><tr><th>a|b</th><td>+5 % [+3, +7]</td></tr></tbody></table>"
        "<p>slower by much<br>a &amp; b</p>"
    )
