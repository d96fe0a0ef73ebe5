"""The folder of the user's data sets, as `run --data DIR` names it to measuring processes; what is read of it."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, overload

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


@overload
def data_folder() -> Path | None: ...


@overload
def data_folder(*, required: Literal[True]) -> Path: ...


def data_folder(*, required: bool = False) -> Path | None:
    """The folder given with `--data`; None without one, and a suite then makes data of the same shape.

    Args:
      required: Whether the suite can make none.
    Raises:
      FileNotFoundError: There is none, and it is required.
    """
    folder = os.environ.get(DATA_VARIABLE)
    if not folder and required:
        raise FileNotFoundError("this suite needs a folder of data: give --data DIR")
    return Path(folder).expanduser() if folder else None
