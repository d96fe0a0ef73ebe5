"""Figures and the page as plain data: a renderer places them, and no number is left to compute."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from jaxmeter.document.model import Item, Part, Section, Table, Tone
from jaxmeter.harness.metrics.metric import Unit


class Hue(StrEnum):
    """What a mark's colour means; a shape or a word says the same."""

    CPU = "cpu"
    GPU = "gpu"
    TPU = "tpu"
    INK = "ink"
    """No device."""

    SLOWER = "slower"
    FASTER = "faster"


DEVICE_SIGNS = {Hue.CPU: "●", Hue.GPU: "■", Hue.TPU: "◆"}
CHANGE_SIGNS = {Hue.SLOWER: "▲", Hue.FASTER: "▼"}
"""In texts, what the shapes of marks are in figures."""


class Fill(StrEnum):
    """What a part of a stack is."""

    DEVICE = "device"
    TRANSFER = "transfer"
    DISPATCH = "dispatch"
    HOST = "host"
    IDLE = "idle"
    FIRST = "first"
    SECOND = "second"
    THIRD = "third"
    FOURTH = "fourth"


@dataclass(frozen=True)
class Axis:
    """One axis. Its limits follow from the data.

    Args:
      title: What it shows; the unit stands at its ticks.
      unit: How ticks are written: seconds as `10 µs`, bytes as `32 MiB`, shares as `50 %`, counts as `1 000`.
      is_log: Whether it is logarithmic; else it begins at 0.
      names: Of an axis of things in an order, such as releases: what stands at the places 1, 2 and so on.
    """

    title: str
    unit: Unit
    is_log: bool = False
    names: tuple[str, ...] = ()


@dataclass(frozen=True)
class Estimate:
    """A number with its interval.

    Args:
      low, high: Its confidence interval; None where it has none.
      is_doubtful: Whether it is not to be relied on, as contended: it is drawn hollow.
      dots: The number of each process, where they are shown.
    """

    value: float
    low: float | None = None
    high: float | None = None
    is_doubtful: bool = False
    dots: tuple[float, ...] = ()


@dataclass(frozen=True)
class Mark:
    """An estimate on an axis.

    Args:
      says: What it shows in words, with number and interval: for who hovers, focuses, or reads without eyes.
      variant: What a click selects in all figures of a suite or a case; empty where that is nothing.
      case: Fragment of the case that a click on the overview opens; empty where that is nothing.
      is_reference: Whether it is what the others of its row are compared with: it is drawn as a bar.
    """

    estimate: Estimate
    hue: Hue
    says: str
    variant: str = ""
    is_reference: bool = False
    case: str = ""


@dataclass(frozen=True)
class PointRow:
    """A row of marks on one axis.

    Args:
      label: Of the row, at its left.
      note: A number in words, at its right.
      is_context: Whether it is drawn faint.
    """

    label: str
    marks: tuple[Mark, ...]
    note: str = ""
    is_context: bool = False

    @property
    def case(self) -> str:
        """Fragment of the case that all marks are of; empty where they are of several."""
        cases = {mark.case for mark in self.marks}
        return cases.pop() if len(cases) == 1 else ""


@dataclass(frozen=True)
class Limit:
    """A labelled dashed line, such as a peak or a device's memory."""

    value: float
    text: str


@dataclass(frozen=True)
class Points:
    """Few numbers side by side, a row each.

    Args:
      alt: What it shows, in words.
      note_title: What the numbers at the right are.
      mark_names: Names above the first marks, such as `jit` and `eager`, by whether they are the reference.
    """

    alt: str
    axis: Axis
    rows: tuple[PointRow, ...]
    note_title: str = ""
    mark_names: tuple[str, str] = ("", "")
    limit: Limit | None = None


@dataclass(frozen=True)
class CurvePoint:
    """A mark at a size > 0."""

    x: float
    mark: Mark


@dataclass(frozen=True)
class Ending:
    """The first size after a curve's last point, and why it has no number there, such as `too large`."""

    x: float
    text: str


@dataclass(frozen=True)
class Curve:
    """A line through marks, named at its last one.

    Args:
      in_focus: Whether it is drawn in full colour; of a panel two at most.
      ending: Where and why it ends before the last size; None where it does not.
    """

    name: str
    points: tuple[CurvePoint, ...]
    in_focus: bool = True
    ending: Ending | None = None

    @property
    def sizes(self) -> tuple[float, ...]:
        """What the x axis has to show."""
        return (*(point.x for point in self.points), *(() if self.ending is None else (self.ending.x,)))


@dataclass(frozen=True)
class CurvePanel:
    """Curves over one size.

    Args:
      title: What it shows; empty where the y axis' title says it.
      here: The size to look at, in a figure of one case; None elsewhere.
    """

    x: Axis
    y: Axis
    curves: tuple[Curve, ...]
    title: str = ""
    limits: tuple[Limit, ...] = ()
    here: float | None = None


@dataclass(frozen=True)
class Curves:
    """Panels side by side, or one below the other where there is no room."""

    alt: str
    panels: tuple[CurvePanel, ...]


@dataclass(frozen=True)
class StackPart:
    """A part of a stack, in the unit of its axis."""

    name: str
    amount: float
    fill: Fill
    says: str


@dataclass(frozen=True)
class StackRow:
    """Parts from 0 on.

    Args:
      total: The whole, in words.
      mark: A number to be compared with the whole, such as what was measured where the parts are a plan.
      case: Fragment of the case that a click on the overview opens.
    """

    label: str
    hue: Hue
    parts: tuple[StackPart, ...]
    total: str = ""
    mark: Mark | None = None
    case: str = ""


@dataclass(frozen=True)
class Stacks:
    """What each of some things is made of, on one linear axis.

    Args:
      has_legend: Whether parts are named once above all rows; else each is named where it has room.
    """

    alt: str
    axis: Axis
    rows: tuple[StackRow, ...]
    has_legend: bool = False
    limit: Limit | None = None


@dataclass(frozen=True)
class ForestRow:
    """A change: a ratio with its interval, above 1 is slower."""

    label: str
    mark: Mark
    note: str


@dataclass(frozen=True)
class Forest:
    """Changes, the largest first, around the line of no change.

    Args:
      axis: Of ratios, logarithmic, written as changes in per cent.
    """

    alt: str
    axis: Axis
    rows: tuple[ForestRow, ...]


@dataclass(frozen=True)
class Roof:
    """What a device can reach at most.

    Args:
      bandwidth: Of its memory, in bytes per second: below the ridge it limits.
      peak: In operations per second: above the ridge it limits.
      text: Both limits, with the format and who says so.
    """

    bandwidth: float
    peak: float
    text: str


@dataclass(frozen=True)
class Dot:
    """A mark at an operational intensity, with a name where it has room."""

    x: float
    mark: Mark
    name: str


@dataclass(frozen=True)
class Roofline:
    """Rates over operational intensity, below the roofs of one device. Names of the first dots have priority."""

    alt: str
    x: Axis
    y: Axis
    dots: tuple[Dot, ...]
    roofs: tuple[Roof, ...]


Figure = Points | Curves | Stacks | Forest | Roofline


def name_quantities(figure: Figure | None) -> tuple[str, ...]:
    """Return the titles of the axes that show the figure's numbers."""
    if figure is None:
        return ()
    if isinstance(figure, Curves):
        return tuple(panel.y.title for panel in figure.panels)
    return (figure.y.title if isinstance(figure, Roofline) else figure.axis.title,)


ROWS_DESCRIBED = 4
"""Of a figure, in the words for who cannot see it."""


def describe_rows(rows: Iterable[str]) -> str:
    """Return what a figure's first rows say, and how many more there are: the arrow keys read each mark."""
    every = list(rows)
    more = len(every) - ROWS_DESCRIBED
    return "; ".join([*every[:ROWS_DESCRIBED], *([f"{more} more"] if more > 0 else [])])


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
