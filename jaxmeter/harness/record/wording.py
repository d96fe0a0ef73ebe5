"""Words that measuring and reporting share: counts with their nouns, recorded text made safe, missing extras."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping

_UNSEEN_CATEGORIES = ("Cc", "Cf", "Cs", "Zl", "Zp")
_JOINERS = "\u200c\u200d"
"""Format characters that scripts and emoji need."""

_PRINTABLE_ASCII = re.compile(r"[ -~]*")


def counted(count: int, singular: str, plural: str | None = None) -> str:
    """`1 case`, `2 cases`, `1 588 cases`: a count with its noun."""
    number = f"{count:,}".replace(",", "\N{NARROW NO-BREAK SPACE}")
    return f"{number} {singular if count == 1 else plural or singular + 's'}"


def write_options(options: Mapping[str, object]) -> str:
    """`xla_cpu_enable_fast_math=True, xla_cpu_prefer_vector_width=512`: compiler options, in order of their names."""
    return ", ".join(f"{name}={value}" for name, value in sorted(options.items()))


def visible(text: str, *, multi_line: bool = False) -> str:
    r"""The text with control, direction and lone surrogate characters escaped: `\x00`, `\u202e`.

    Args:
      multi_line: Whether line breaks and tabs stay as they are.
    """
    if _PRINTABLE_ASCII.fullmatch(text):
        return text
    kept = "\n\t" if multi_line else ""
    return "".join(character if character in kept else _escape(character) for character in text)


def _escape(character: str) -> str:
    unseen = unicodedata.category(character) in _UNSEEN_CATEGORIES and character not in _JOINERS
    # As Python writes it: plain letters, which every font and terminal has.
    return character.encode("unicode_escape").decode() if unseen else character


def shorten(text: str, length: int) -> str:
    """At most `length` characters; an ellipsis stands for what was cut."""
    return text if len(text) <= length else text[: length - 1] + "…"


EXTRAS = {
    **dict.fromkeys(("pandas", "jinja2", "markupsafe", "fsspec", "resvg_py"), "report"),
    **dict.fromkeys(("flax", "optax"), "suites"),
    "xprof": "viewer",
    "matplotlib": "plot",
    "pyarrow": "parquet",
    "s3fs": "s3",
    "gcsfs": "gcs",
}
"""By the name that is imported."""


def describe_missing(error: BaseException | None) -> str:
    """Return what to install, if an import failed for lack of an optional package; else empty.

    Args:
      error: The error of the import, or the error that a library raised from it.
    """
    for each in (error, None if error is None else error.__cause__):
        name = (each.name or "").partition(".")[0] if isinstance(each, ModuleNotFoundError) else ""
        if name in EXTRAS:
            return f"{name} is not installed: pip install 'jaxmeter[{EXTRAS[name]}]'"
    return ""
