"""Figures as plain data: one scale and the marks on it. A renderer places them; no number is left to compute.

Five kinds of figure are enough, and a sixth, the heat map, is a table: `Points` compares few variants, `Curves` shows a
number over a size, `Stacks` what something is made of, `Forest` confirmed changes, `Roofline` rates below their limits.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

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
