"""The folder of the user's data sets, as `run --data DIR` names it to measuring processes; what is read of it."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, overload

DATA_VARIABLE = "JAXMETER_DATA"


@dataclass(frozen=True)
class DataSource:
    """Data that a workload's inputs come from.

    Args:
      words: Name of the data: `synthetic, seeded`.
      missing: Files that were expected in the folder `--data`, in words, if none of them is there.
    """

    words: str
    missing: str | None = None


@overload
def data_folder() -> Path | None: ...


@overload
def data_folder(*, required: Literal[True]) -> Path: ...


def data_folder(*, required: bool = False) -> Path | None:
    """Return the folder given with `--data`; None without one, and the suite then generates data of the same shape.

    Args:
      required: Whether the suite cannot generate data.
    Raises:
      FileNotFoundError: There is no folder, and it is required.
    """
    folder = os.environ.get(DATA_VARIABLE)
    if not folder and required:
        raise FileNotFoundError("this suite needs a folder of data: give --data DIR")
    return Path(folder).expanduser() if folder else None
