"""Gives the manifests of runs one environment a platform: `python scripts/convert_environments.py RUN ...`. In place."""

import json
import sys
from pathlib import Path


def convert(manifest):
    return {
        ("environments" if key == "environment" else key): {manifest["backend"]: value} if key == "environment" else value
        for key, value in manifest.items()
    }


for run in map(Path, sys.argv[1:]):
    for path in (run / "manifest.json", run / "run.json"):
        text = path.read_text(encoding="utf8")
        record = json.loads(text)
        if path.name == "run.json":
            record["manifest"] = convert(record["manifest"])
        else:
            record = convert(record)
        indent = 1 if "\n" in text[:-1] else None
        made = json.dumps(record, ensure_ascii=False, indent=indent, separators=None if indent else (",", ":"))
        path.write_text(made + ("\n" if text.endswith("\n") else ""), encoding="utf8")
