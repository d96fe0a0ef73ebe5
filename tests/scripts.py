"""Scripts of the documentation, which is no package."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

DOCS = Path(__file__).parents[1] / "docs"


def import_script(name: str) -> ModuleType:
    """The script `docs/NAME.py`, as a module."""
    spec = importlib.util.spec_from_file_location(name, DOCS / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    script = importlib.util.module_from_spec(spec)
    sys.modules[name] = script  # dataclasses ask for it
    spec.loader.exec_module(script)
    return script
