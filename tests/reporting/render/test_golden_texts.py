"""What the page and its likes say of runs in which nearly everything happens that may: the golden texts hold the words.

Whether something is said is tested where it is decided; here is how it reads.
"""

import re
from dataclasses import replace
from functools import cache

import pytest

from jaxmeter.document import markdown, terminal
from jaxmeter.reporting.render import html
from jaxmeter.reporting.view.overview import summarise
from tests import samples
from tests.golden_texts import check_golden_text
from tests.odd_run import odd_run
from tests.reporting.compare.changed import BEFORE, plain, replayed
from tests.reporting.history.runs import environment_of, nights
from tests.reporting.render.test_html import told
from tests.reporting.view.page_text import write_text
from tests.reporting.views import build, loaded

CONSTANT_FOLDS = ("Metrics", "Glossary", "Everything recorded")
"""Tables that say nothing of their own."""


def slower_from_ten(number):
    return 1e-3 * (1.2 if number >= 10 else 1)


def swept_run():
    """Passes of devices and of another number, with a contended point."""
    pairs = []
    for devices in (1, 2, 4):
        timing = samples.timing(1e-3 / devices, contended=3 * (devices == 2))
        pairs.append(samples.pair({"step:jit": timing}, workload="step", params={"devices": devices}, devices=devices))
    for length in (128, 1024, 4096):
        outcomes = {"timing": samples.timing(length * 1e-6), "memory": samples.memory(0, 0, length**2)}
        case = {"workload": "attention", "params": {"causal": True, "length": length}, "items": length}
        pairs.append(samples.pair({"formula:jit": outcomes}, items_unit="tokens", **case))
    return samples.run(*pairs)


PAGES = {
    "usual": (samples.run(self_test=samples.self_test()),),
    "changed": (plain(BEFORE), replayed(1.5)),
    "nights": tuple(nights(20, slower_from_ten, environment=lambda number: environment_of(number, 10))),
    "swept": (swept_run(),),
    "odd": (odd_run(),),
}


def without_constants(section):
    """The section without tables that are the same for all runs."""
    parts = (
        replace(part, tables=tuple(table for table in part.tables if table.fold not in CONSTANT_FOLDS))
        for part in section.parts
    )
    return replace(section, parts=tuple(parts))


@cache
def page_of(name):
    page = build(loaded(*PAGES[name]))
    return replace(page, sections=tuple(map(without_constants, page.sections)))


@pytest.mark.parametrize("name", PAGES)
def test_the_view_of_runs_reads_as_its_golden_text(name):
    page = page_of(name)
    kept = [one for one in page.sections if name == "odd" or one.id not in ("environment", "method")]

    text = write_text(replace(page, sections=tuple(kept)))

    # A field more in records is no change of words.
    check_golden_text(f"view-{name}", re.sub(r"fields of \d+", "fields of all", text))


@pytest.mark.parametrize("name", ["usual", "changed", "odd"])
def test_the_summary_in_a_terminal_reads_as_its_golden_text(name):
    check_golden_text(f"terminal-{name}", terminal.write(summarise(page_of(name))))


@pytest.mark.parametrize("name", ["changed", "odd"])
def test_the_report_in_markdown_reads_as_its_golden_text(name):
    check_golden_text(f"markdown-{name}", markdown.write(summarise(page_of(name), in_full=True)))


def test_the_text_of_the_html_page_reads_as_its_golden_text():
    page = html.render(page_of("odd"))
    page = re.sub(r"<(style|script)\b(?![^>]*text/plain).*?</\1>", "", page, flags=re.DOTALL)

    # What the page unpacks, told below: gzip's first bytes in base 85.
    text = re.sub(r"^ABzY8\S+$", "", told(page), flags=re.MULTILINE)
    check_golden_text("html-odd", re.sub(r"\n\s*\n", "\n", text))
