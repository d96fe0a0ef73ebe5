"""Report: Print the JSON Schema of the record."""

from __future__ import annotations

import json

from jaxmeter.harness.record import json_schema


def command() -> None:
    """The schema describes `run.json`, `manifest.json`, `case.json` and the files of processes."""
    print(json.dumps(json_schema(), indent=2))
