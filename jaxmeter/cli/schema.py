"""`jaxmeter schema`: the form of the record."""

from __future__ import annotations

import json

from jaxmeter.harness.record import json_schema


def command() -> None:
    """It describes the files `run.json`, `manifest.json`, `case.json` and those of processes."""
    print(json.dumps(json_schema(), indent=2))
