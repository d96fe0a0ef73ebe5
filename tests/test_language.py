"""The check of the documentation's language: `docs/check_language.py`."""

from __future__ import annotations

from pathlib import Path

import pytest

from jaxmeter.reporting.render.html import make_chunks, pack
from tests.scripts import import_script

CHECKOUT = Path(__file__).parents[1]
LONG = " ".join(["word"] * 31) + "."
"""A sentence that is one word too long."""


checker = import_script("check_language")
RULES = checker.read_rules()


def check(markdown: str) -> list[tuple[int, str]]:
    return [(problem.line, problem.text) for problem in checker.check_page(markdown, RULES)]


@pytest.mark.parametrize(
    "text", ["# A canary", "- A canary", "| a |\n|---|\n| a canary |", "> A canary", "A **canary**."]
)
def test_a_word_to_avoid_is_found_with_its_replacement(text):
    ((_, found),) = check(text)

    assert found == "'canary': use calibration loop"


def test_a_problem_has_the_line_of_its_page_also_of_a_phrase_across_two():
    page = "# Title\n\nA line.\nA line with a canary.\n\n| a | b |\n|---|---|\n| c | d |\n| e | a canary |\n"

    assert [line for line, _ in check(page)] == [4, 9]
    assert check("A time at reference\nspeed.") == [(1, "'reference speed': use normalised time")]


@pytest.mark.parametrize(
    "text",
    [
        *("Call `canary()` first.", "```sh\necho canary\n```", "    canary", 'It prints "canary".'),
        *("See docs/canary.md and canary.py.", "[link](canary.md)"),
        "A nightly run. A train step. A kernel launch. A parameter sweep. In place.",
    ],
)
def test_code_file_names_quotes_and_terms_of_the_field_are_allowed(text):
    assert check(text) == []


@pytest.mark.parametrize("page", [LONG, f"- {LONG}", f"| a |\n|---|\n| {LONG} |", f"Short. {LONG} Short."])
def test_a_long_sentence_is_found_in_paragraphs_items_and_cells(page):
    ((_, found),) = check(page)

    assert found == "31 words, 30 are allowed: word word word word word word …"


@pytest.mark.parametrize(
    "page",
    [
        " ".join(["word"] * 30) + ".",
        f"```\n{LONG}\n```",
        f"Call `{LONG}`.",
        f"# {LONG}",
        " ".join(["word"] * 20) + ". " + " ".join(["word"] * 20) + ".",
        f"| {' '.join(['word'] * 20)} | {' '.join(['word'] * 20)} |\n|---|---|\n",
    ],
)
def test_code_headings_and_two_sentences_are_not_one_long_sentence(page):
    assert check(page) == []


def test_every_help_text_is_checked_and_found_in_its_file(monkeypatch):
    helps = {"Print the version.", "Folder that holds the folder of each run.", "Id of a nightly run in the store."}
    path, line = checker.locate_help("Print the version.")

    assert helps <= set(checker.list_helps())
    assert 'help="Print the version."' in (CHECKOUT / path).read_text(encoding="utf8").splitlines()[line - 1]
    monkeypatch.setattr(checker, "list_helps", lambda: ["Run only these canaries."])
    ((problem),) = checker.check_helps(RULES)
    assert problem.startswith("jaxmeter/cli/")
    assert problem.endswith(": 'canaries': use calibration loop")


def test_a_problem_is_printed_and_ends_with_1_else_it_ends_with_0(tmp_path, capsys):
    bad, good = tmp_path / "bad.md", tmp_path / "good.md"
    bad.write_text("A canary.\n", encoding="utf8")
    good.write_text("A calibration loop.\n", encoding="utf8")

    assert [checker.main([str(page)]) for page in (bad, good)] == [1, 0]
    assert capsys.readouterr().out == f"{bad}:1: 'canary': use calibration loop\n"


def test_every_page_to_check_is_there():
    pages = checker.list_pages()

    assert {"README.md", "docs/method.md", "benchmarks/README.md", "docs/reference/metrics.md"} <= set(pages)
    assert not {"docs/published.md", "docs/reference/command.md"} & set(pages)
    assert [page for page in pages if not (CHECKOUT / page).is_file()] == []


def test_messages_of_a_program_are_listed_and_docstrings_are_not():
    program = '"""A canary."""\nraise ValueError(f"the canary of {name}" " is old")\nx = "a canary"\ny = "canary"\n'

    assert [(block.text, block.line) for block in checker.list_messages(program)] == [
        ("the canary of … is old", 2),
        ("a canary", 3),
    ]


def test_docstrings_of_the_api_are_listed_with_those_of_methods():
    names = {name for name, text in checker.list_docstrings() if text}

    assert {"workload", "measure", "Workload.find_published"} <= names


def test_a_report_is_checked_with_what_it_unpacks_but_for_names_of_implementations():
    index = {"columns": {"variant": {"words": ["twin:jit", "a_door:jit"], "rows": [0, 1]}}}
    (pieces,) = make_chunks({"suite=f": [("speed", "<p>a night <code>a regime</code> of twin</p>")]})
    packed = "".join(
        f'<script type="text/plain" id="{name}">{pack(data)}</script>'
        for name, data in (("index", index), ("chunk-0", pieces))
    )
    table = "<table><td>a canary <small>at rest</small></td></table>"
    page = f"<h1>A canary</h1><svg><text>a door</text></svg>{table}{packed}"

    problems = [problem.text.partition(":")[0] for problem in checker.check_report(page, RULES)]

    assert problems == ["'canary'", "'at rest'", "'canary'", "'night'"]


def test_sentences_of_a_report_have_a_longest_length_and_cells_are_checked_one_by_one():
    packed = f'<script type="text/plain" id="index">{pack({"columns": {"variant": {"words": ["f:jit"]}}})}</script>'
    cell = "word " * 16
    row = f"<table><tr><th>{cell}<td>{cell}<td>{cell}; {cell}</tr></table>"

    assert list(checker.check_report(f"{row}{packed}", RULES)) == []
    (problem,) = checker.check_report(f"<table><tr><td>{cell}{cell}<td>{cell}</tr></table>{packed}", RULES)
    assert problem.text.startswith("32 words, 30 are allowed")


def test_names_that_say_nothing_are_found_where_they_are_bound() -> None:
    program = "for one in ():\n    found = [told for told in one]\ndef f(found): return found.one\nlambda told: 1"

    vague = sorted(binding for binding in checker.list_bindings(program) if binding[1] in RULES.vague_names)

    assert vague == [(1, "one"), (2, "found"), (2, "told"), (3, "found"), (4, "told")]
