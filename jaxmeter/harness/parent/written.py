"""Warnings of JAX, XLA and Python among what measuring processes wrote to stderr. No jax."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from jaxmeter.harness.machine.environment import make_private
from jaxmeter.harness.record import ProcessWarning

MOST_KEPT = 50
LONGEST_LINE = 300
MOST_BYTES = 2**20
"""Of what one process wrote; a suite may print without end."""

_ABSL = re.compile(r"(?P<level>[WEF])\d{4} [\d:.]+ +\d+ (?P<text>\S+:\d+\] .*)")
"""`W1126 21:51:38.260352   15447 debug_options_flags.cc:1357] …`: time and thread are left out."""

_FORMS = (
    _ABSL,
    re.compile(r"\d{4}-\d\d-\d\d [\d:.]+: (?P<level>[WEF]) (?P<text>\S+:\d+\] .*)"),
    re.compile(r"(?P<level>WARNING|ERROR|CRITICAL):(?:\d{4}-\d\d-\d\d [\d:,]+:)?(?P<text>[\w.]+:\d+: .*)"),
    re.compile(r"(?P<text>[^\s:][^:]*:\d+: (?P<level>\w*Warning): .*)"),
)
"""Of absl; of XLA before it logged by absl; of JAX's logger; of Python."""

KNOWN_HARMLESS = (
    # JAX's hook before a fork. The server forks before a backend begins threads; where a suite's import has begun some,
    # the run says so itself, and every process imports the suites.
    "os.fork() was called. os.fork() is incompatible with multithreaded code",
    # Written once by absl where a library logs before it has set up logging.
    "All log messages before absl::InitializeLog() is called are written to STDERR",
)
"""Parts of lines that say nothing of what is measured, each with the reason."""


class Warnings:
    """Distinct lines that are warnings, with the number of processes that wrote each."""

    def __init__(self) -> None:
        self._processes: Counter[str] = Counter()

    def add(self, text: str) -> None:
        """Add what one process wrote."""
        self._processes.update(dict.fromkeys(find_warnings(text), 1))

    def add_file(self, path: Path) -> None:
        """Add what one process wrote into a file, if it is there."""
        try:
            with path.open("rb") as file:
                self.add(make_private(file.read(MOST_BYTES).decode("utf8", "replace")))
        except OSError:
            return

    def join(self, other: Warnings) -> None:
        """Add those of other processes."""
        self._processes.update(other._processes)

    def list_all(self) -> tuple[ProcessWarning, ...]:
        """List them, those of most processes first."""
        most = self._processes.most_common(MOST_KEPT)
        return tuple(ProcessWarning(text=text, processes=count) for text, count in most)


def find_warnings(text: str) -> Iterator[str]:
    """Find the lines that are warnings or errors of a library, without time and thread."""
    for line in text.splitlines():
        match = next(filter(None, (form.fullmatch(line.strip()) for form in _FORMS)), None)
        if match is not None and match["level"] != "F" and not any(known in line for known in KNOWN_HARMLESS):
            yield match["text"][:LONGEST_LINE]


def find_last_words(text: str) -> str | None:
    """Find the line with which a C++ library has ended its process, such as that of an unknown flag; None without."""
    matches = [match for line in text.splitlines() if (match := _ABSL.fullmatch(line.strip())) is not None]
    return next((match["text"] for match in reversed(matches) if match["level"] == "F"), None)
