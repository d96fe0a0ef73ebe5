"""The first screen as plain data: what was measured, what changed, how far to trust it, and answers with figures."""

from __future__ import annotations

from dataclasses import dataclass

from jaxmeter.document.model import Tone

from .figure_model import Figure, Hue


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
class Device:
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
    devices: tuple[Device, ...]
    note: str
    changed: Card
    trust: tuple[TrustFact, ...]
    jit: Card | None
    time: Card | None
    cards: tuple[Card, ...]
    more: tuple[Card, ...]
    rooflines: tuple[Card, ...]
    reports: Card | None = None
