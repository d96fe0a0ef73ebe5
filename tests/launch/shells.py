"""A shell of a session that runs nothing and notes what it is asked."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path


class NotedShell:
    """Each program ends with 0, or with the code of its verb."""

    def __init__(self, folder: Path, codes: Mapping[str, int] | None = None) -> None:
        self.checkout, self.environments, self.runtime = folder, folder, "auto"
        self.variables, self.codes = {"PATH": "", "JAXMETER_RUNTIME": "auto"}, codes or {}
        self.ran: list[tuple[str, ...]] = []
        self.set: dict[str, str] = {}

    def install(self, *lock_names: str) -> None:
        """Everything is there."""

    def set_variable(self, name: str, value: str) -> None:
        self.set[name] = value

    def ask(self, *command: str) -> str:
        return ""

    def run(self, *command: str) -> int:
        self.ran.append(command)
        return self.codes.get(list_words(command)[0], 0)


def list_words(command: tuple[str, ...]) -> list[str]:
    """The words after `jaxmeter`."""
    return list(command[command.index("jaxmeter") + 1 :])
