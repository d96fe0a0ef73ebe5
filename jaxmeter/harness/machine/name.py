"""The name of a machine, by which later runs of the same machine are found."""

from __future__ import annotations

from jaxmeter.harness.record import Environment
from jaxmeter.harness.record.wording import counted

LONGEST_NAME = 100
"""Characters of a given name, which is part of a sentence of the page."""


def name_machine(environment: Environment) -> str:
    """Return a name like `Intel(R) Xeon(R) Processor, 2 cores, 1 x cpu`, without host name and versions.

    The parts are those that determine how much times scatter.
    """
    processor, cores = " ".join(environment.processor.split()), counted(environment.allowed_cores, "core")
    return f"{processor}, {cores}, {environment.device_count} x {environment.device_kind}"


def is_name(text: str) -> bool:
    """Return whether a text can be the name of a machine: printable, not blank and not too long."""
    return text.isprintable() and 0 < len(text.strip()) <= LONGEST_NAME
