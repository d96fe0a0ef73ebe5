"""Checks the language of documentation, help texts, Python API, messages and names: `python docs/check_language.py`.

Prints FILE:LINE for every word that docs/language.toml replaces, for every sentence that is too long, and for every
variable with a name that says nothing. Exits with 1 if it finds any. With names of pages it checks these alone. `nox -s
lint` runs it.
"""

from __future__ import annotations

import ast
import inspect
import re
import sys
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html.parser import HTMLParser
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
REPORT = "examples/cpu.html"
"""The report whose texts are checked: those of all suites are in it."""

PACKED = re.compile(r'<script type="text/plain" id="(?:index|chunk-\d+)">(.*?)</script>')
TEXTS = {"p", "li", "th", "td", "h1", "h2", "h3", "summary", "caption", "small", "text", "title"}
"""Elements of a report whose text is checked."""

CELLS = {"td", "th"}
"""Those that end without an end tag: where the next begins, or their row ends."""

CODE = {"code", "pre", "style", "script"}
"""Elements of a report in which nothing is checked."""

UNCHECKED_PAGES = (
    "docs/_build/",  # the built site
    "docs/published.md",  # quotes claims of other authors
    "docs/reference/command.md",  # made from the help texts, which are checked at their source
)

PROGRAMS = ("jaxmeter",)
"""Folders of programs whose messages are checked."""

NAMED = ("jaxmeter", "docs", "benchmarks", "examples", "noxfile.py")
"""Programs whose variables are checked."""

UNCHECKED_TEXT = re.compile(r'`[^`]*`|"[^"]*"|“[^”]*”')
"""Code, and quoted output."""
SENTENCE_END = re.compile(r"(?<!\be\.g)(?<!\bi\.e)(?<!\bvs)(?<!\bal)[.!?][\"')\]]*\s+")
DOCSTRING_PART = re.compile(r"\n\s*\n|\n\s*(?=\w+:(?:\s|$))")
"""What separates the paragraphs of a docstring and its entries of arguments."""
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
    vague_names: Sequence[str] = ()


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
    return Rules(words, content["longest_sentence"], content["vague_names"])


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
        words = [word for word in re.split(r"[ \t\n]+", sentence) if re.search(r"\w|…", word)]
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


def list_docstrings() -> Iterator[tuple[str, str]]:
    """Yield the name and the docstring of everything that the package exports."""
    import jaxmeter

    for name in jaxmeter.__all__:
        item = getattr(jaxmeter, name)
        yield name, inspect.getdoc(item) or ""
        if inspect.isclass(item):
            for method, value in vars(item).items():
                if not method.startswith("_") and (callable(value) or isinstance(value, property | classmethod)):
                    yield f"{name}.{method}", inspect.getdoc(getattr(item, method)) or ""


def check_docstrings(rules: Rules) -> Iterator[str]:
    """Yield a line for each problem in the docstrings of the Python API."""
    for name, docstring in list_docstrings():
        for part in DOCSTRING_PART.split(docstring):
            for problem in check_block(Block(part, 1), rules):
                yield f"jaxmeter.{name}: {problem.text}"


class ReportReader(HTMLParser):
    """Collects the texts of a report, in `blocks`."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.blocks: list[Block] = []
        self._open: list[list[str]] = []
        self._code = 0
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: Sequence[tuple[str, str | None]]) -> None:
        """Open a text, or code in one; a cell closes the one before it, which has no end tag."""
        self._code += tag in CODE
        if tag in CELLS:
            self._close_cell()
        if tag in TEXTS:
            self._open.append([tag, ""])

    def handle_endtag(self, tag: str) -> None:
        """Keep a text that ends."""
        self._code -= tag in CODE
        if tag == "tr":
            self._close_cell()
        elif tag in TEXTS and self._open:
            self._close()

    def _close_cell(self) -> None:
        if self._open and self._open[-1][0] in CELLS:
            self._close()

    def _close(self) -> None:
        _, text = self._open.pop()
        self.blocks += [Block(part, self.getpos()[0]) for part in text.split("; ")]  # of lists in a cell

    def handle_data(self, data: str) -> None:
        """Add to the innermost text."""
        if self._open:
            self._open[-1][1] += "`…`" if self._code else data


def check_report(html: str, rules: Rules) -> Iterator[Problem]:
    """Yield the words to avoid in a report, in what it unpacks, too. Names of implementations are not checked."""
    from jaxmeter.reporting.render.html import unpack

    index, *chunks = map(unpack, PACKED.findall(html))
    names = {name.partition(":")[0] for name in index["columns"]["variant"]["words"]}
    names |= {name.replace("_", " ") for name in names}
    names_here = re.compile(WHOLE_WORDS.format("|".join(map(re.escape, sorted(names, key=len, reverse=True)))))
    pieces = (text for chunk in chunks for text in chunk.values())
    seen = set()
    for block in (block for text in (html, *pieces) for block in ReportReader(text).blocks):
        if block.text not in seen:
            seen.add(block.text)
            text = names_here.sub("`…`", block.text)
            yield from check_block(Block(text, block.line), rules)


def list_messages(program: str) -> Iterator[Block]:
    """Yield the texts of a program that are no docstrings: what it prints, raises and writes into reports."""
    tree = ast.parse(program)
    skipped = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    skipped |= {id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in node.values}
    texts = [
        node for node in ast.walk(tree) if isinstance(node, ast.JoinedStr | ast.Constant) and id(node) not in skipped
    ]
    for node in sorted(texts, key=lambda node: node.lineno):
        if isinstance(node, ast.JoinedStr):
            parts = [part.value if isinstance(part, ast.Constant) else "…" for part in node.values]
            yield Block("".join(map(str, parts)), node.lineno, is_heading=True)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and " " in node.value:
            yield Block(node.value, node.lineno, is_heading=True)


def check_messages(rules: Rules) -> Iterator[str]:
    """Yield a line for each word to avoid in the messages of the programs."""
    for folder in PROGRAMS:
        for path in sorted((CHECKOUT / folder).rglob("*.py")):
            for block in list_messages(path.read_text(encoding="utf8")):
                for problem in check_block(block, rules):
                    yield f"{path.relative_to(CHECKOUT).as_posix()}:{problem.line}: {problem.text}"


def list_bindings(program: str) -> Iterator[tuple[int, str]]:
    """Yield the line and the name of each variable, argument, function and class where a program binds it."""
    for node in ast.walk(ast.parse(program)):
        match node:
            case ast.Name(id=name, ctx=ast.Store()) | ast.arg(arg=name) | ast.MatchAs(name=str(name)):
                yield node.lineno, name
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
                yield node.lineno, name


def check_names(rules: Rules) -> Iterator[str]:
    """Yield a line for each variable with a name that does not say what it holds."""
    for root in NAMED:
        for path in sorted((CHECKOUT / root).rglob("*.py")) or [CHECKOUT / root]:
            for line, name in list_bindings(path.read_text(encoding="utf8")):
                if name in rules.vague_names:
                    yield f"{path.relative_to(CHECKOUT).as_posix()}:{line}: '{name}': use a noun for what it holds"


def main(names: Sequence[str]) -> int:
    """Check the named pages, or all pages, help texts, docstrings, messages and names; return the exit code."""
    rules = read_rules()
    lines = []
    for name in names or list_pages():
        problems = check_page((CHECKOUT / name).read_text(encoding="utf8"), rules)
        lines += [f"{name}:{problem.line}: {problem.text}" for problem in problems]
    if not names:
        lines += [*check_helps(rules), *check_docstrings(rules), *check_messages(rules), *check_names(rules)]
        report = (CHECKOUT / REPORT).read_text(encoding="utf8")
        lines += [f"{REPORT}:{problem.line}: {problem.text}" for problem in check_report(report, rules)]
    for line in lines:
        print(line)
    return 1 if lines else 0


if __name__ == "__main__":
    sys.path.insert(0, str(CHECKOUT))  # jaxmeter runs from its checkout
    sys.exit(main(sys.argv[1:]))
