"""What a compiled program is: its texts, counts of what is in it, and which program it is (a fingerprint)."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from jaxmeter.harness.programs.equations import list_jaxprs, open_jaxpr
from jaxmeter.harness.programs.modes import Stages
from jaxmeter.harness.programs.older_jax import RuntimeFailure
from jaxmeter.harness.record import Number
from jaxmeter.harness.record.wording import write_options
from jaxmeter.harness.traces import hlo


class NoTextError(Exception):
    """The backend does not tell its optimised program."""


_LEFT_OUT = re.compile(rf"\[([\d,]*)\]\S* {re.escape(hlo.ELIDED)}")
_LARGE_CONSTANT = 16
"""Elements beyond which a constant's values are left out of a text; XLA has some such number of its own."""

MOST_ELEMENTS = 4_000_000
"""Of constants that a fingerprint is made of: about a second."""


def read_texts(stages: Stages) -> dict[str, str]:
    """The program at three levels, by kind of artifact; without the last where the backend does not tell it.

    Large constants, which may be anybody's data, are left out.
    """
    stablehlo = stages.lowered.compiler_ir("stablehlo").operation
    found = {"jaxpr": str(stages.traced.jaxpr), "stablehlo": stablehlo.get_asm(large_elements_limit=_LARGE_CONSTANT)}
    with suppress(NoTextError):
        found["hlo"] = read_hlo(stages.compiled)
    return found


def read_hlo(compiled: Any) -> str:
    """The optimised program as HLO text, large constants left out.

    Raises:
      NoTextError: The backend does not tell it.
    """
    try:
        text = compiled.as_text()
    except (NotImplementedError, RuntimeFailure) as error:
        raise NoTextError(str(error)) from error
    if not text:
        raise NoTextError("the backend gives no text of it")
    return str(text)


def count_source(stages: Stages) -> dict[str, Number]:
    """What the program holds before XLA optimises it, by metric."""
    operations = _operations(stages.lowered.compiler_ir("stablehlo").operation)
    return {**count_equations(stages.traced), "stablehlo_operations": operations}


def count_equations(traced: Any) -> dict[str, Number]:
    """What a traced function holds, by metric."""
    jaxpr = traced.jaxpr.jaxpr
    return {
        "jaxpr_equations": len(jaxpr.eqns),
        "jaxpr_equations_nested": sum(1 for _ in walk_equations(jaxpr)),
    }


def count_optimised(stages: Stages) -> dict[str, Number]:
    """What the optimised program holds, by metric.

    Raises:
      NoTextError, HloError: The backend tells it not at all, or in another way.
    """
    found = hlo.count_program(hlo.parse(read_hlo(stages.compiled)))
    return {
        "hlo_instructions": found.instructions,
        "hlo_fusions": found.fusions,
        "hlo_custom_calls": found.custom_calls,
        "hlo_collectives": found.collectives,
    }


def walk_equations(jaxpr: Any) -> Iterator[Any]:
    """Equations of a jaxpr and of all that are inside them; those of a function that is called twice come twice."""
    for equation in jaxpr.eqns:
        yield equation
        for inner in list_jaxprs(equation):
            yield from walk_equations(open_jaxpr(inner))


def find_fingerprint(stages: Stages) -> str:
    """Which program this is, whatever its source lines and names; its constants and compiler options count.

    Of equal HLO other options may make other code.

    Raises:
      NoTextError, HloError: The backend tells it not at all, or in another way.
    """
    text = read_hlo(stages.compiled)
    text = _with_constants(stages.compiled, text) if hlo.ELIDED in text else text
    return hlo.find_fingerprint(text, write_options(stages.compiler_options))


def measure_executable(compiled: Any) -> dict[str, Number]:
    """Size of the serialised executable, by metric; empty where the backend cannot serialise it."""
    executable = compiled.runtime_executable()
    try:
        return {} if executable is None else {"executable_bytes": len(executable.serialize())}
    except (NotImplementedError, ValueError, RuntimeFailure):
        return {}


def _with_constants(compiled: Any, text: str) -> str:
    """The program's text with the values of large constants.

    Raises:
      NoTextError: This jaxlib does not tell them, or they are too large to be read in every process.
    """
    elements = sum(math.prod(map(int, filter(None, sides.split(",")))) for sides in _LEFT_OUT.findall(text))
    if elements > MOST_ELEMENTS:
        raise NoTextError(f"its constants have {elements} elements, too many to read in every process")
    try:
        from jaxlib import _hlo  # type: ignore[attr-defined]  # jax offers no public way to them

        options = _hlo.HloPrintOptions()
        options.print_large_constants = True
        return "\n".join(module.to_string(options) for module in compiled.runtime_executable().hlo_modules())
    except (ImportError, AttributeError) as error:
        raise NoTextError("this jaxlib does not print the values of large constants") from error


def _operations(operation: Any) -> int:
    """Operations inside an MLIR operation at all levels, without the module and functions that hold them."""
    inside = [one for region in operation.regions for block in region for one in block]
    return sum((one.operation.name not in hlo.STABLEHLO_HOLDERS) + _operations(one.operation) for one in inside)
