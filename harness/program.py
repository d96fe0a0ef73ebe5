"""What a compiled program is: its texts, counts of what is in it, and which program it is (a fingerprint)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import jax

from harness import hlo
from harness.modes import Stages
from harness.record import Number

TEXTS = {"jaxpr": "jaxpr.txt", "stablehlo": "stablehlo.mlir", "hlo": "hlo.txt"}
"""Kinds of artifact and their file names."""

UNREADABLE = (hlo.HloError, NotImplementedError, jax.errors.JaxRuntimeError)
"""What reading a compiled program raises where a backend tells it in another way, or not at all."""

_ELIDED = "constant({...})"
_SURROUNDINGS = ("builtin.module", "func.func")
"""What holds operations in StableHLO and is none itself."""


def folder(case_folder: Path, variant: str) -> Path:
    """Where a variant's texts are kept."""
    return case_folder / "programs" / variant.replace(":", "-")


def texts(stages: Stages) -> dict[str, str]:
    """The program at three levels, by kind of artifact; without the last where the backend does not tell it."""
    found = {"jaxpr": str(stages.traced.jaxpr), "stablehlo": stages.lowered.as_text()}
    with suppress(*UNREADABLE):
        found["hlo"] = stages.compiled.as_text()
    return found


def source_counts(stages: Stages) -> dict[str, Number]:
    """What the program holds before XLA optimises it, by metric."""
    jaxpr = stages.traced.jaxpr.jaxpr
    return {
        "jaxpr_equations": len(jaxpr.eqns),
        "jaxpr_equations_nested": sum(1 for _ in equations(jaxpr)),
        "stablehlo_operations": _operations(stages.lowered.compiler_ir("stablehlo").operation),
    }


def optimised_counts(stages: Stages) -> dict[str, Number]:
    """What the optimised program holds, by metric.

    Raises:
      UNREADABLE: The backend tells its program in another way.
    """
    found = hlo.counts(hlo.parse(stages.compiled.as_text()))
    return {
        "hlo_instructions": found.instructions,
        "hlo_fusions": found.fusions,
        "hlo_custom_calls": found.custom_calls,
        "hlo_collectives": found.collectives,
    }


def equations(jaxpr: Any) -> Iterator[Any]:
    """Equations of a jaxpr and of all that are inside them; those of a function that is called twice come twice."""
    for equation in jaxpr.eqns:
        yield equation
        for value in jax.tree.leaves(tuple(equation.params.values()), is_leaf=_is_jaxpr):
            if _is_jaxpr(value):
                yield from equations(getattr(value, "jaxpr", value))


def fingerprint(compiled: Any) -> str:
    """Which program this is, whatever its source lines and names; the values of its constants count.

    Raises:
      UNREADABLE: The backend tells its program in another way.
    """
    return hlo.fingerprint(_with_constants(compiled))


def executable_bytes(compiled: Any) -> int | None:
    """Size of the serialised executable; None where the backend cannot serialise it."""
    try:
        return len(compiled.runtime_executable().serialize())
    except (NotImplementedError, ValueError, jax.errors.JaxRuntimeError):
        return None


def _with_constants(compiled: Any) -> str:
    """The program's text with the values of large constants, which `as_text` leaves out."""
    text: str = compiled.as_text()
    if _ELIDED not in text:
        return text
    try:
        from jaxlib import _hlo  # type: ignore[attr-defined]  # jax offers no public way to them

        options = _hlo.HloPrintOptions()
        options.print_large_constants = True
        return "\n".join(module.to_string(options) for module in compiled.runtime_executable().hlo_modules())
    except (ImportError, AttributeError):  # another jaxlib: large constants count by their shapes
        return text


def _operations(operation: Any) -> int:
    """Operations inside an MLIR operation at all levels, without the module and functions that hold them."""
    inside = [one for region in operation.regions for block in region for one in block]
    return sum((one.operation.name not in _SURROUNDINGS) + _operations(one.operation) for one in inside)


def _is_jaxpr(value: Any) -> bool:
    return hasattr(value, "eqns") or hasattr(value, "jaxpr")
