"""The folder of the user's data sets, as `run --data DIR` names it to measuring processes; what is read of it."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

DATA_VARIABLE = "JAXMETER_DATA"


@dataclass(frozen=True)
class DataSource:
    """Which data a workload's inputs are.

    Args:
      words: What they are called: `synthetic, seeded`.
      missing: Where `--data` is given and has none of the files that were looked for: those, in words.
    """

    words: str
    missing: str | None = None


def data_folder() -> Path | None:
    """The folder given with `--data`; None without one, and a suite then makes data of the same shape."""
    folder = os.environ.get(DATA_VARIABLE)
    return Path(folder).expanduser() if folder else None
