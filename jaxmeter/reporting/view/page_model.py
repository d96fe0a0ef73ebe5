"""What the page is made of beyond a document: plain data that a renderer only places. No number is left to format."""

from __future__ import annotations

from dataclasses import dataclass

from jaxmeter.document.model import Item, Part, Section, Table, Tone

from .overview_model import Card, Overview


@dataclass(frozen=True)
class AnswerLine:
    """What answers a suite's question.

    Args:
      rank: The lowest come first.
      text: A sentence with a number and its interval, or with the reason why there is none.
      of: The case that stands for the suite, and where it ran.
      target: The id of that case.
    """

    suite: str
    question: str
    text: str
    of: str
    tone: Tone = Tone.PLAIN
    target: str = ""
    rank: float = float("inf")


@dataclass(frozen=True)
class Value:
    """A number in words, and as it was read for whoever sorts or exports it; None where there is none."""

    text: str
    value: float | None = None
    low: float | None = None
    high: float | None = None
    tone: Tone = Tone.PLAIN


@dataclass(frozen=True)
class Result:
    """What a reader compares of one variant at one place: times in seconds, memory in bytes.

    `memory_of` is plan, call, or empty; `doubt` says why not to rely on the time or the speedup; `change` is what was
    found since an earlier run. Each is empty where there is nothing to say.
    """

    variant: str
    where: str
    run: str
    status: str
    tone: Tone
    time: Value
    speedup: Value
    first: Value
    memory: Value
    memory_of: str
    doubt: str = ""
    change: str = ""


@dataclass(frozen=True)
class KeptFile:
    """A file that a run keeps beside its numbers, and the shell command that opens it."""

    what: str
    command: str
    note: str = ""


@dataclass(frozen=True)
class CaseView:
    """All that is known of a case, on every machine that ran it. Its `id` is the fragment that opens it.

    Args:
      heading: Its name, with the time of the variant that leads it.
      figures: How fast, where the time goes, first call, operations, memory, as far as they are known.
      claims: How many published claims are of it.
    """

    id: str
    name: str
    heading: str
    about: str
    figures: tuple[Card, ...]
    results: tuple[Result, ...]
    sections: tuple[Section, ...]
    claims: int
    files: tuple[KeptFile, ...]


@dataclass(frozen=True)
class SuiteView:
    """A suite: its question and answer, figures, and the results of its cases.

    Args:
      id: The fragment that opens it.
      table: Results of the first cases, as many as a page holds that is read without a script.
      left_out: How many results the table lacks.
      figures: How fast, growth, first calls, memory: unpacked when the suite is opened, as are its parts.
      parts: Exponents, values and notes of what grows.
    """

    id: str
    name: str
    answer: AnswerLine
    table: Table
    left_out: int
    figures: tuple[Card, ...]
    parts: tuple[Part, ...]
    cases: tuple[CaseView, ...]


@dataclass(frozen=True)
class ReleasesView:
    """What each of a series of runs changed: a heat map, and the cases that changed most.

    Args:
      answer: How many changes are confirmed.
      how_to_read: The table.
      table: A row for each variant that changed, a column for each run.
      conditions: A row for each column of `table`, with its machine and its Python.
      cards: The time in each run of the cases that changed most.
    """

    short: str
    question: str
    answer: str
    how_to_read: str
    table: Table
    conditions: Table
    note: str
    cards: tuple[Card, ...]


@dataclass(frozen=True)
class Page:
    """The whole report."""

    title: str
    overview: Overview
    releases: ReleasesView | None
    subtitle: str
    finding: str
    summary: tuple[str, ...]
    answers: tuple[AnswerLine, ...]
    attention: tuple[Item, ...]
    warnings: tuple[Item, ...]
    matrix: Table | None
    matrix_note: str
    changed: tuple[Item, ...]
    change_points: tuple[Item, ...]
    suites: tuple[SuiteView, ...]
    export: str
    sections: tuple[Section, ...]
