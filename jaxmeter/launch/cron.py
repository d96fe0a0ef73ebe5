"""When a schedule starts: five fields of cron, in UTC, which most engines take; systemd has words of its own."""

from __future__ import annotations

import re
from dataclasses import dataclass

from jaxmeter.launch.options import UsageError

FIELDS = {"minute": (0, 59), "hour": (0, 23), "day of the month": (1, 31), "month": (1, 12), "day of the week": (0, 7)}
"""What each field may hold; on days of the week 0 and 7 are both Sunday."""

WEEKDAYS = ("Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat")

EXAMPLE = '"0 3 * * *" is every day at three, UTC'

_PART = re.compile(r"(?:\*|(\d{1,2})(?:-(\d{1,2}))?)(?:/(\d{1,2}))?", re.ASCII)


@dataclass(frozen=True)
class Cron:
    """Times at which something starts.

    Args:
      values: What each of FIELDS allows, in order; None where it allows all.
    """

    text: str
    values: tuple[tuple[int, ...] | None, ...]

    def to_calendar(self) -> str:
        """The same times as systemd writes them: `*-*-* 03:00:00 UTC`.

        Raises:
          UsageError: Both days are limited. To cron one of them is enough, to systemd it is not.
        """
        minutes, hours, days, months, weekdays = self.values
        if days is not None and weekdays is not None:
            raise UsageError(
                f"--at {self.text!r} names days of the month and of the week; for systemd name one of them"
            )
        week = "" if weekdays is None else ",".join(WEEKDAYS[day] for day in weekdays) + " "
        return f"{week}*-{_join(months)}-{_join(days)} {_join(hours)}:{_join(minutes)}:00 UTC"


def read_cron(text: str) -> Cron:
    """Reads five fields of numbers, `*`, ranges `1-5`, steps `*/2` and lists `1,3`.

    Raises:
      UsageError: It is something else.
    """
    words = text.split()
    if len(words) != len(FIELDS):
        raise UsageError(f"--at {text!r}: give five fields, {', '.join(FIELDS)}: {EXAMPLE}")
    values = tuple(_read_field(text, name, word) for name, word in zip(FIELDS, words, strict=True))
    return Cron(" ".join(words), values)


def _read_field(text: str, name: str, word: str) -> tuple[int, ...] | None:
    low, high = FIELDS[name]
    if word == "*":
        return None
    allowed: set[int] = set()
    for part in word.split(","):
        found = _PART.fullmatch(part)
        first, last, step = found.groups() if found else (None, None, "0")
        start = low if first is None else int(first)
        end = int(last) if last else high if first is None or step else start
        if int(step or 1) == 0 or not low <= start <= end <= high:
            raise UsageError(f"--at {text!r}: {part!r} is no {name}, which is a number from {low} to {high}: {EXAMPLE}")
        allowed.update(range(start, end + 1, int(step or 1)))
    if name == "day of the week":
        allowed = {day % len(WEEKDAYS) for day in allowed}
    return tuple(sorted(allowed))


def _join(values: tuple[int, ...] | None) -> str:
    return "*" if values is None else ",".join(f"{value:02}" for value in values)
