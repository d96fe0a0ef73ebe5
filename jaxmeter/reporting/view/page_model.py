"""What the page is made of beyond a document: plain data that a renderer only places. No number is left to format."""

from __future__ import annotations

from dataclasses import dataclass

from jaxmeter.document.model import Item, Part, Section, Table, Tone

from .figure_model import Figure, Hue


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
class VariantResult:
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
    results: tuple[VariantResult, ...]
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


@dataclass(frozen=True)
class Phrase:
    """A text about a device, or about none: then its hue is None.

    Args:
      doubt: A sentence: why not to rely on it.
    """

    text: str
    hue: Hue | None = None
    tone: Tone = Tone.PLAIN
    doubt: str = ""


@dataclass(frozen=True)
class Card:
    """A question, a figure, and a sentence for each device.

    Args:
      id: Of the suite or the subject.
      question: At most eight words.
      target: The fragment that opens what stands behind it.
      others: Figures that a reader may look at instead, each with the quantity that it shows.
      rank: Of a suite's answer; the lowest come first.
      is_asked: Whether a suite declares the question; else it is the suite's name.
    """

    id: str
    question: str
    phrases: tuple[Phrase, ...]
    figure: Figure | None = None
    target: str = ""
    others: tuple[tuple[str, Figure], ...] = ()
    rank: float = float("inf")
    is_asked: bool = True

    @property
    def is_answered(self) -> bool:
        """Whether it shows anything."""
        return self.figure is not None or any(phrase.tone is not Tone.MUTED for phrase in self.phrases)


@dataclass(frozen=True)
class DeviceLine:
    """A device of the page, as the line below the heading names it."""

    hue: Hue
    name: str
    detail: str


@dataclass(frozen=True)
class TrustFact:
    """One reason to trust the numbers, or not to: a number for each device, and what opens the rest."""

    name: str
    values: tuple[Phrase, ...]
    target: str = ""


@dataclass(frozen=True)
class Overview:
    """The first screen.

    Args:
      changed: What changed since an earlier run.
      jit: Is jit worth it? None where nothing was timed both ways.
      time: Where does the time go? None without a capture.
      cards: Answers of the first screen.
      more: The other answers.
      rooflines: How near the limit each device comes, for each that has a peak.
      reports: Whether reported slowdowns happen here; None without any report.
    """

    heading: str
    devices: tuple[DeviceLine, ...]
    note: str
    changed: Card
    trust: tuple[TrustFact, ...]
    jit: Card | None
    time: Card | None
    cards: tuple[Card, ...]
    more: tuple[Card, ...]
    rooflines: tuple[Card, ...]
    reports: Card | None = None
