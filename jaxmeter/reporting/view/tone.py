"""What a text means, for renderers that have colour."""

from __future__ import annotations

from enum import StrEnum


class Tone(StrEnum):
    """What a text means, for renderers that have colour. Words and signs say the same.

    WARN is a doubt about a number, WORSE a number that is sure and worse than what it is compared with, BAD a failure.
    """

    PLAIN = "plain"
    MUTED = "muted"
    GOOD = "good"
    WARN = "warn"
    WORSE = "worse"
    BAD = "bad"
