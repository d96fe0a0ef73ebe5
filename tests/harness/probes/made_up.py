"""A compiled program that does not exist."""

from types import SimpleNamespace
from typing import Any


def plan(**sizes: Any) -> SimpleNamespace:
    """A compiled program as the compiler plans it; what is not told is 0."""
    names = ("argument", "output", "temp", "alias", "generated_code")
    rest = {f"{name}_size_in_bytes": sizes.pop(name, 0) for name in names}
    analysis = SimpleNamespace(**rest, **sizes)
    return SimpleNamespace(memory_analysis=lambda: analysis, as_text=lambda: "")
