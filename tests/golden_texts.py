"""Golden texts: what the product says of made-up records, in files that a change of wording rewrites.

`JAXMETER_REWRITE_GOLDEN=1 pytest ...` writes them anew; the difference is then read as a part of the change.
"""

import difflib
import os
from collections.abc import Iterable, Mapping
from pathlib import Path

import pytest

FOLDER = Path(__file__).parent / "golden" / "texts"
REWRITE = "JAXMETER_REWRITE_GOLDEN"


def check_golden_text(name: str, text: str) -> None:
    """Fail with a unified diff where the text is not that of the file `name`."""
    path = FOLDER / f"{name}.txt"
    lines = [line.rstrip(" ") for line in text.split("\n")]
    if os.environ.get(REWRITE):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("\n".join(lines).rstrip("\n") + "\n", "utf-8")
    golden = path.read_text("utf-8") if path.is_file() else ""
    expected, actual = golden.rstrip("\n").split("\n"), "\n".join(lines).rstrip("\n").split("\n")
    if expected != actual:
        difference = difflib.unified_diff(expected, actual, path.name, "now", lineterm="", n=5)
        pytest.fail(f"{REWRITE}=1 rewrites it\n" + "\n".join(difference), pytrace=False)


def check_golden_scenes(name: str, scenes: Mapping[str, str | Iterable[str]]) -> None:
    """Do the same with several texts, each below the rule that it shows."""
    texts = ((text if isinstance(text, str) else "\n".join(text)).rstrip("\n") for text in scenes.values())
    check_golden_text(name, "\n\n".join(f"## {rule}\n{text}" for rule, text in zip(scenes, texts, strict=True)))
