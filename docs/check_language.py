"""Checks the language of the documentation and of the command line's help: `python docs/check_language.py [FILE...]`.

Prints FILE:LINE for every word that docs/language.toml replaces and for every sentence that is too long. Exits with 1
if it finds any. `nox -s lint` runs it.
"""

from __future__ import annotations

import re
import sys
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from markdown_it import MarkdownIt

CHECKOUT = Path(__file__).parents[1]
RULES = CHECKOUT / "docs" / "language.toml"
COMMANDS = "jaxmeter/cli"

SINGLE_PAGES = (
    "README.md",
    "CONTRIBUTING.md",
    "benchmarks/README.md",
    "examples/README.md",
    "jaxmeter/suites/README.md",
)
UNCHECKED_PAGES = (
    "docs/_build/",  # the built site
    "docs/published.md",  # quotes claims of other authors
    "docs/reference/command.md",  # made from the help texts, which are checked at their source
)

UNCHECKED_TEXT = re.compile(r'`[^`]*`|"[^"]*"|“[^”]*”')
"""Code, and quoted output."""
SENTENCE_END = re.compile(r"(?<!\be\.g)(?<!\bi\.e)(?<!\bvs)(?<!\bal)[.!?][\"')\]]*\s+")
WHOLE_WORDS = r"(?<![\w./-]){}(?![\w/-]|\.\w)"
"""A pattern outside of names of files and of hyphenated words."""


@dataclass(frozen=True)
class Word:
    """A word that the texts avoid."""

    find: re.Pattern[str]
    use: str
    exceptions: Sequence[re.Pattern[str]]


@dataclass(frozen=True)
class Rules:
    """The content of docs/language.toml."""

    words: Sequence[Word]
    longest_sentence: int


@dataclass(frozen=True)
class Block:
    """A paragraph, heading, list item, table cell or help text, and the line on which it begins."""

    text: str
    line: int
    is_heading: bool = False


@dataclass(frozen=True)
class Problem:
    """What is wrong on a line."""

    line: int
    text: str


def read_rules(path: Path = RULES) -> Rules:
    """Return the words to avoid and the longest sentence."""
    content = tomllib.loads(path.read_text(encoding="utf8"))
    words = [
        Word(_compile(row["find"]), row["use"], [_compile(phrase) for phrase in row.get("except", ())])
        for row in content["word"]
    ]
    return Rules(words, content["longest_sentence"])


def _compile(pattern: str) -> re.Pattern[str]:
    return re.compile(WHOLE_WORDS.format(f"(?:{pattern})").replace(" ", r"\s+"), re.IGNORECASE)


def list_blocks(markdown: str) -> Iterator[Block]:
    """Yield the prose of a page, without blocks of code and HTML."""
    line, is_heading = 0, False
    for token in MarkdownIt("commonmark").enable("table").parse(markdown):
        line = token.map[0] if token.map else line
        if token.type == "inline":
            yield Block("".join(map(_read_inline, token.children or ())), line + 1, is_heading)
        is_heading = token.type == "heading_open"


def _read_inline(token: Any) -> str:
    if token.type in ("softbreak", "hardbreak"):
        return "\n"
    if token.type == "code_inline":
        return f"`{token.content}`"
    return str(token.content) if token.type == "text" else ""


def check_block(block: Block, rules: Rules) -> Iterator[Problem]:
    """Yield the words to avoid and the long sentences of a block."""
    text = UNCHECKED_TEXT.sub(lambda match: "`…`" + "\n" * match[0].count("\n"), block.text)
    for word in rules.words:
        allowed = [match.span() for phrase in word.exceptions for match in phrase.finditer(text)]
        for match in word.find.finditer(text):
            if not any(start <= match.start() and match.end() <= end for start, end in allowed):
                line = block.line + text.count("\n", 0, match.start())
                yield Problem(line, f"'{' '.join(match[0].split())}': use {word.use}")
    for start, sentence in _split_sentences("" if block.is_heading else text):
        words = [word for word in sentence.split() if re.search(r"\w|…", word)]
        if len(words) > rules.longest_sentence:
            line = block.line + text.count("\n", 0, start)
            beginning = " ".join(words[:6])
            yield Problem(line, f"{len(words)} words, {rules.longest_sentence} are allowed: {beginning} …")


def _split_sentences(text: str) -> Iterator[tuple[int, str]]:
    start = 0
    for match in SENTENCE_END.finditer(text):
        yield start, text[start : match.end()]
        start = match.end()
    yield start, text[start:]


def check_page(markdown: str, rules: Rules) -> list[Problem]:
    """Return what is wrong in a page, from top to bottom."""
    problems = (problem for block in list_blocks(markdown) for problem in check_block(block, rules))
    return sorted(problems, key=lambda problem: problem.line)


def list_pages() -> list[str]:
    """Return the pages to check, by their names in the repository."""
    pages = sorted(page.relative_to(CHECKOUT).as_posix() for page in (CHECKOUT / "docs").rglob("*.md"))
    return [*SINGLE_PAGES, *(page for page in pages if not page.startswith(UNCHECKED_PAGES))]


def list_helps() -> Iterator[str]:
    """Yield every help text of the command line, as typer shows it."""
    from typer.main import get_command

    from jaxmeter.cli.app import EXIT_CODES, VERBS, app, load_verb

    yield EXIT_CODES
    yield from _list_helps_of(get_command(app))
    for verbs in VERBS.values():
        for verb in verbs:
            yield from _list_helps_of(load_verb(verb))


def _list_helps_of(command: Any) -> Iterator[str]:
    helps = [command.help, *(getattr(param, "help", None) for param in command.params)]
    yield from (" ".join(text.split()) for text in helps if text)
    for subcommand in getattr(command, "commands", {}).values():
        yield from _list_helps_of(subcommand)


def locate_help(text: str) -> tuple[str, int]:
    """Return the file and the line of a help text: the first line that contains its beginning."""
    for length in (30, 14):
        for path in sorted((CHECKOUT / COMMANDS).glob("*.py")):
            for number, line in enumerate(path.read_text(encoding="utf8").splitlines(), 1):
                if text[:length] in line:
                    return path.relative_to(CHECKOUT).as_posix(), number
    return f"{COMMANDS}/app.py", 1


def check_helps(rules: Rules) -> Iterator[str]:
    """Yield a line for each problem in the help texts."""
    for text in dict.fromkeys(list_helps()):
        for problem in check_block(Block(text, 1), rules):
            path, line = locate_help(text)
            yield f"{path}:{line}: {problem.text}"


def main(names: Sequence[str]) -> int:
    """Check the named pages, or all pages and help texts; return the exit code."""
    rules = read_rules()
    lines = []
    for name in names or list_pages():
        problems = check_page((CHECKOUT / name).read_text(encoding="utf8"), rules)
        lines += [f"{name}:{problem.line}: {problem.text}" for problem in problems]
    if not names:
        lines += check_helps(rules)
    for line in lines:
        print(line)
    return 1 if lines else 0


if __name__ == "__main__":
    sys.path.insert(0, str(CHECKOUT))  # jaxmeter runs from its checkout
    sys.exit(main(sys.argv[1:]))
