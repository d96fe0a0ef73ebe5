"""Converts records of schema version 2 into version 3: `python scripts/convert_records.py RUN ...`. In place."""

from __future__ import annotations

import gzip
import json
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))
import rename

FIELDS = "harness/record/fields.py"
"""As whose names keys are mapped."""
OWN_KEYS = {"params", "variables", "packages", "config", "at", "new_shape", "new_static", "x64"}
"""Whose keys are a user's."""
FREE_TEXT = {"reason", "notes", "doubt"}
NAMES_IN_VALUES = {"metric", "probes", "everywhere", "regime"}
OF_CASES = {"where": "platform"}


def convert(item: Any, key: str = "") -> Any:
    if isinstance(item, dict):
        if key in OWN_KEYS:
            return item
        is_case = "workload" in item and "where" in item
        made = {}
        for name, value in item.items():
            new = OF_CASES.get(name, name) if is_case else name
            new = rename.find_name(FIELDS, new) if ":" not in new else new
            made[new] = convert(value, name)
        if "schema_version" in made:
            made["schema_version"] = 3
        return made
    if isinstance(item, list):
        return [convert(one, key) for one in item]
    if isinstance(item, str):
        if key in FREE_TEXT:
            return rename.prose(FIELDS, item)
        if key in NAMES_IN_VALUES:
            return rename.find_name(FIELDS, item)
    return item


def main() -> None:
    for run in map(Path, sys.argv[1:]):
        for path in sorted(run.rglob("*.json")):
            indent = 1 if b"\n" in path.read_bytes()[:-1] else None
            text = path.read_text(encoding="utf8")
            made = json.dumps(
                convert(json.loads(text)), ensure_ascii=False, indent=indent, separators=None if indent else (",", ":")
            )
            path.write_text(made + ("\n" if text.endswith("\n") else ""), encoding="utf8")
        for path in sorted(run.rglob("*.json.gz")):
            made = json.dumps(convert(json.loads(gzip.decompress(path.read_bytes()))), separators=(",", ":"))
            path.write_bytes(gzip.compress(made.encode(), mtime=0))
        for folder in sorted(run.rglob("launches")):
            folder.rename(folder.with_name("processes"))


if __name__ == "__main__":
    main()
