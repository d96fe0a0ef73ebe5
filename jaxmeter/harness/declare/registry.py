"""What a module has declared, whatever it is bound to: in a loop, in a list, or to nothing.

The list is a variable of the module itself, so that it lives as long as the module.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

from jaxmeter.harness.declare.fingerprint import Origin
from jaxmeter.harness.declare.levels import DeclarationError

_VARIABLE = "__jaxmeter_workloads__"


@dataclass
class _Declared:
    """Workloads by name, of one execution of a module's top."""

    code: CodeType
    workloads: dict[str, Any] = field(default_factory=dict)


def register(workload: Any, origin: Origin) -> None:
    """Add a workload to those of its module.

    A module that is loaded again begins with none.

    Raises:
      DeclarationError: The module has one of that name.
    """
    declared = origin.variables.get(_VARIABLE)
    if not isinstance(declared, _Declared) or declared.code is not origin.code:
        declared = origin.variables[_VARIABLE] = _Declared(origin.code)
    if (other := declared.workloads.get(workload.name)) is not None:
        lines = (other.origin.line, origin.line)
        where = f"in lines {lines[0]} and {lines[1]}" if lines[0] != lines[1] else f"both in line {lines[0]}"
        raise DeclarationError(
            f"two workloads are named '{workload.name}', {where} of {Path(origin.code.co_filename).name}; rename one, "
            "since a case's name must say which it is: @workload(name='…', …) gives a name"
        )
    declared.workloads[workload.name] = workload


def list_declared(module: ModuleType) -> tuple[Any, ...]:
    """List the workloads that a module has declared itself, in the order of their declarations."""
    declared = vars(module).get(_VARIABLE)
    return tuple(declared.workloads.values()) if isinstance(declared, _Declared) else ()
