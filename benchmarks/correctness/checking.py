"""The checks of one program: correct forms, and the program with planted faults."""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import jax

from benchmarks.correctness import double, linear_algebra, loops, numerical, suite_cases, training, updates
from benchmarks.correctness.planting import TIMES, plant
from benchmarks.correctness.program import Program, in_precision
from jaxmeter.harness.declare.declaration import Declaration
from jaxmeter.harness.declare.workload import Workload
from jaxmeter.harness.machine.platforms import BACKENDS
from jaxmeter.harness.probes import Context
from jaxmeter.harness.probes.conditioning import QUICKLY, as_array, relative_error
from jaxmeter.harness.probes.evaluation import choose_coarsest, find_tolerance
from jaxmeter.harness.probes.numerics import check
from jaxmeter.harness.record import Correctness, Outcome, Status

SEED = 1
"""Of the arguments. The rule was chosen with this one; others are a test of it."""

UNCHECKED = "updates cannot be checked"
"""What a check is called that notes it."""

LEAST_EFFECT = 0.99 * TIMES
"""In tolerances: what is planted at 10 times is rounded itself."""

FAMILIES = (
    linear_algebra.PROGRAMS,
    training.PROGRAMS,
    updates.PROGRAMS,
    numerical.PROGRAMS,
    loops.PROGRAMS,
    double.PROGRAMS,
)


@dataclass(frozen=True)
class Checked:
    """One check.

    Args:
      fault: Empty of a correct program.
      effect: How many times the tolerance the fault changes the result; where rounding moves it by more than the
        tolerance, how many times that. Of a fault in an update, in updates of the reference.
      is_update: Whether it is a fault in an update, which may be smaller than the tolerance.
    """

    program: str
    fault: str
    against: str
    effect: float
    outcome: Outcome
    is_update: bool = False

    @property
    def called(self) -> str:
        """What the check says."""
        if self.outcome.status is Status.WRONG:
            verdict = getattr(self.outcome.details, "verdict", None)
            return "wrong" if verdict in (None, Correctness.WRONG) else str(verdict)
        if self.outcome.status is not Status.OK:
            return str(self.outcome.status)
        if self.is_update and any(note.startswith("updates:") for note in self.outcome.notes):
            return UNCHECKED
        return str(self.outcome.details.verdict or Correctness.RIGHT)

    @property
    def is_small(self) -> bool:
        """Whether it is a fault of 10 times the tolerance, and of less than 10 times what rounding does."""
        return bool(self.fault) and not self.is_update and self.effect < LEAST_EFFECT

    @property
    def is_missed(self) -> bool:
        """Whether it is a fault that the check calls right."""
        return bool(self.fault) and self.called in (Correctness.RIGHT, Correctness.RIGHT_WITHIN_CONDITIONING)

    @property
    def is_failed(self) -> bool:
        """Whether a correct program is called wrong, or a fault that is not small is missed."""
        if not self.fault:
            return self.called not in (
                Correctness.RIGHT,
                Correctness.RIGHT_WITHIN_CONDITIONING,
                Correctness.CANNOT_BE_CHECKED,
            )
        return self.is_missed and not self.is_small


@cache
def find_programs() -> dict[str, Program]:
    """All programs, by name."""
    return {program.name: program for family in (*FAMILIES, suite_cases.list_programs()) for program in family}


def check_program(name: str, seed: int = SEED) -> list[Checked]:
    """Everything that is checked of a program, on arguments of a seed."""
    warnings.simplefilter("ignore")  # of float64 that is not there, in programs that ask for it
    program = find_programs()[name]
    with in_precision(x64=program.x64):
        return list(_check(program, seed))


def _check(program: Program, seed: int) -> Iterator[Checked]:
    args = jax.block_until_ready(tuple(jax.tree.map(jax.numpy.asarray, program.make(jax.random.key(seed)))))
    wide = program.find_reference(args)
    eager = jax.block_until_ready(program.function(*args))
    references = {"float64": wide, "eager": eager}
    contexts = {against: _make_context(program, args, wanted) for against, wanted in references.items()}
    prepared = contexts["eager"].prepare("right:jit")
    contexts["float64"].judge = contexts["eager"].judge  # one compilation for both
    tolerance = program.tolerance or _find_tolerance(contexts["eager"])
    jitted = prepared.call_and_wait()
    correct = {"eager": eager, "jit": jitted}
    own = [max(pair) for pair in zip(*(_find_errors(result, wide) for result in correct.values()), strict=True)]
    # Rounding alone moves an ill-conditioned problem's outputs by more than the tolerance: faults are 10 times that.
    # By a clock that stands still, no draws take too long.
    moved = contexts["eager"].judge.find_spreads(wide, lambda result, args: result, lambda: 0.0)
    scales = [max(tolerance, *pair) for pair in zip(own, moved, strict=True)]
    for result in correct.values():
        for against, context in contexts.items():
            yield _check_one(program, "", against, 0.0, result, prepared, context)
    # Of a program with faults in its updates these alone: others are planted in steps that are the same but larger.
    planted = {} if program.update_faults else plant(program.function, args, max(scales))
    for fault, function in planted.items():
        result = jax.block_until_ready(jax.jit(function, compiler_options=QUICKLY)(*args))
        changes = _find_errors(result, jitted)
        effect, in_tolerances = (
            max((change / unit for change, unit in zip(changes, units, strict=True) if unit), default=0.0)
            for units in (scales, [tolerance] * len(changes))
        )
        for against, context in contexts.items() if in_tolerances >= LEAST_EFFECT else ():
            yield _check_one(program, fault, against, effect, result, prepared, context)
    for fault, function in program.update_faults.items():
        result = jax.block_until_ready(jax.jit(function, compiler_options=QUICKLY)(*args))
        effect = _find_effect(result, jitted, args)
        for against, context in contexts.items():
            yield replace(_check_one(program, fault, against, effect, result, prepared, context), is_update=True)


def _check_one(
    program: Program, fault: str, against: str, effect: float, result: Any, prepared: Any, context: Context
) -> Checked:
    returned = replace(prepared, call=lambda *_: result)
    return Checked(program.name, fault, against, effect, check("right:jit", returned, context))


def _find_effect(result: Any, right: Any, args: tuple[Any, ...]) -> float:
    """The largest difference of an output in updates: changes of the argument of the same platform."""
    leaves = zip(*(map(as_array, jax.tree.leaves(each)) for each in (result, right, args)), strict=False)
    pairs = [(got, want, old) for got, want, old in leaves if want.shape == old.shape]
    sizes = [(relative_error(got, want, 1.0)[0], relative_error(want, old, 1.0)[0]) for got, want, old in pairs]
    return max((error / change for error, change in sizes if change), default=0.0)


def _find_errors(result: Any, other: Any) -> list[float]:
    """The error of each output, relative to the largest entry of another result."""
    pairs = zip(map(as_array, jax.tree.leaves(result)), map(as_array, jax.tree.leaves(other)), strict=True)
    return [relative_error(got, want)[0] for got, want in pairs]


def _make_context(program: Program, args: tuple[Any, ...], wanted: Any) -> Context:
    declaration = Declaration(
        inputs=lambda key: args, reference=lambda *_: wanted, modes=("jit",), tolerance=program.tolerance
    )
    workload = Workload(name="program", module="benchmark", function=program.function, declaration=declaration)
    workload.implementation(program.function, name="right")
    context = Context(workload, {}, BACKENDS["cpu"], args, time.perf_counter, folder=None)
    context.reference = wanted
    return context


def _find_tolerance(context: Context) -> float:
    """Of the coarsest format of the program's outputs."""
    format_ = choose_coarsest(context.judge.find_formats())
    return 0.0 if format_ is None else find_tolerance(format_)
