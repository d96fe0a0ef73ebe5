"""What a text means, for renderers that have colour."""

from __future__ import annotations

from enum import StrEnum


class Tone(StrEnum):
    """What a text means, for renderers that have colour. Words and signs say the same."""

    PLAIN = "plain"
    MUTED = "muted"
    GOOD = "good"
    WARN = "warn"
    BAD = "bad"
