import re

import pytest

from jaxmeter.reporting.render import markdown
from tests import samples
from tests.reporting.views import page_of


def rendered(*runs):
    return markdown.render(page_of(*runs))


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


def test_a_long_report_stays_below_the_limit_of_a_comment_and_says_what_it_left_out():
    planned = [samples.planned_case(params={"n": n, "why": "x" * 100}) for n in range(400)]
    text = rendered(samples.run(*((one, samples.fast_case(one)) for one in planned)))

    assert len(text) < markdown.MOST_CHARACTERS
    assert re.search(r"\n\d+ rows left out\.\n", text)


def test_hostile_text_makes_no_markup_of_its_own():
    text = rendered(samples.hostile_run())

    assert not re.search(r"<(?!/?details>|/?summary>|!-- jaxmeter report -->)", text)
    assert not re.search(r"[@#](?!\u2060|\w+;|[# ])|https://|:rocket:", text)
