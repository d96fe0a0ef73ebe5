"""The folder of the user's data sets, as `run --data DIR` names it to the processes that measure."""

from __future__ import annotations

import os
from pathlib import Path

DATA_VARIABLE = "JAXMETER_DATA"


def data_folder() -> Path | None:
    """The folder given with `--data`; None without one, and a suite then makes data of the same shape."""
    folder = os.environ.get(DATA_VARIABLE)
    return Path(folder).expanduser() if folder else None
