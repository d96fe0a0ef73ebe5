"""What a machine is called, so that what was found out about it is found again."""

from __future__ import annotations

from jaxmeter.harness.record import Environment
from jaxmeter.harness.record.wording import counted

LONGEST_NAME = 100
"""Of one that is given: it stands in a sentence of the page."""


def name_machine(environment: Environment) -> str:
    """`Intel(R) Xeon(R) Processor, 2 cores, 1 x cpu`: what decides how times scatter; never host name or versions."""
    processor, cores = " ".join(environment.processor.split()), counted(environment.allowed_cores, "core")
    return f"{processor}, {cores}, {environment.device_count} x {environment.device_kind}"


def is_name(text: str) -> bool:
    """Whether a machine can be called so: printable, neither blank nor longer than a line."""
    return text.isprintable() and 0 < len(text.strip()) <= LONGEST_NAME
