"""A value as each kind of schedule writes it, so that it is read there as the same value and as nothing else."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from jaxmeter.launch.options import UsageError


def check_printable(name: str, value: str) -> None:
    """Check that a value is one line of text, which every format can hold.

    Raises:
      UsageError: It is empty, or has line breaks or other characters that nobody sees.
    """
    if not value.strip():
        raise UsageError(f"{name} is empty")
    if not value.isprintable():
        raise UsageError(f"{name} {value!r} has characters that cannot be printed; leave them out")


def quote_yaml(value: object) -> str:
    """Return text or a mapping as YAML on one line: what is JSON is YAML too."""
    return json.dumps(value, ensure_ascii=False)


def quote_list(words: Sequence[str]) -> str:
    """Return words of a pod's command, as items of a list in YAML: there `$(NAME)` is a variable, `$$` a dollar."""
    return ", ".join(quote_yaml(word.replace("$", "$$")) for word in words)


def quote_unit(words: Sequence[str]) -> str:
    """Return a command of a systemd unit: there `%` begins a specifier, and `$` a variable except in the program."""
    program, *arguments = (word.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%") for word in words)
    return " ".join(f'"{word}"' for word in (program, *(one.replace("$", "$$") for one in arguments)))


def quote_folder(folder: Path) -> str:
    """Return the working folder of a systemd unit: `%` begins a specifier, and there are neither quotes nor escapes.

    Raises:
      UsageError: systemd would change the path.
    """
    text = str(folder)
    if text != text.strip() or text.endswith("\\"):
        raise UsageError(f"{text!r}: systemd cannot start in this folder; call the command in another one")
    return text.replace("%", "%%")
