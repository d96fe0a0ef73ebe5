"""Traps: reasons why a program does not do the work that its source suggests. One row a kind, with its words."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from jaxmeter.harness.record.outcomes import CompilationDetails, Outcome, Trap

PAGE = "docs/traps.md"

LEAST_DEAD = 0.1
"""Of the traced FLOPs. Differentiation leaves dead equations in every training step, but no products."""

LEAST_CAPTURED_BYTES = 1_000_000
LEAST_FROM_ONE_LINE = 1_000
"""Equations: no layer that a person writes has so many."""


@dataclass(frozen=True)
class TrapKind:
    """What is said of a kind of trap.

    Args:
      title: A noun of at most three words; the heading on the page of traps is made of it.
      sentence: What it means for the number; `{}` stands for the evidence.
      instead: What to do.
    """

    title: str
    sentence: str
    instead: str

    @property
    def address(self) -> str:
        """Where the documentation describes it."""
        return f"{PAGE}#{self.title.lower().replace(' ', '-')}"


CALLBACKS = "callbacks"
"""The kind whose time is also that of Python code."""

NO_INPUT = "no_input"
"""The kind without which a speedup means nothing: such a program may do all its work while it is compiled."""

KINDS: Mapping[str, TrapKind] = {
    "dead_work": TrapKind(
        "Dead work",
        "{} do not reach the result; XLA removes that work, and the time is without it",
        "Return what the work computes, or remove the work.",
    ),
    NO_INPUT: TrapKind(
        "Constant results",
        "{} depends on no argument, so XLA can compute it while it compiles",
        "Pass what the result depends on as an argument.",
    ),
    "constants": TrapKind(
        "Captured constants",
        "the program holds {} as constants: they take memory in it, lengthen compilation, and other values need "
        "another program",
        "Pass the arrays as arguments.",
    ),
    "donation": TrapKind(
        "Unused donation",
        "{}, so a call needs memory for them twice",
        "Return an array of the same shape and dtype for each donated one, or donate fewer arguments.",
    ),
    "truncated": TrapKind(
        "Truncated dtypes",
        "{}: JAX computes in the narrower dtype",
        "Ask for the narrower dtype, or set jax_enable_x64.",
    ),
    CALLBACKS: TrapKind(
        "Callbacks",
        "{} calls Python from the program, and the time includes Python's",
        "Measure without the callback, or declare it.",
    ),
    "unrolled": TrapKind(
        "Unrolled loops",
        "{} come from one source line, as an unrolled Python loop makes them; compile time grows with their number",
        "Use jax.lax.fori_loop or jax.lax.scan.",
    ),
}
"""By the name that records hold and suites declare."""


def describe_trap(trap: Trap) -> str:
    """Return a sentence: what was found, what it means for the number, where, and the page that describes it."""
    kind = KINDS.get(trap.kind)
    where = f" ({', '.join(trap.sources)})" if trap.sources else ""
    if kind is None:  # of a later version
        return f"trap: {trap.evidence}{where}"
    status = "declared" if trap.declared else "trap"
    return f"{status}: {kind.title.lower()}: {kind.sentence.format(trap.evidence)}{where}; {kind.address}"


def name_trap(trap: Trap) -> str:
    """Return the title of a trap's kind in lower case, as it is shown next to a number."""
    return KINDS[trap.kind].title.lower() if trap.kind in KINDS else trap.kind


def find_traps(outcomes: Mapping[str, Outcome]) -> tuple[Trap, ...]:
    """Return the traps of a variant that its suite does not declare, each kind's in the order of the table."""
    order = list(KINDS)
    undeclared = [trap for trap in list_all_traps(outcomes) if not trap.declared]
    return tuple(sorted(undeclared, key=lambda trap: order.index(trap.kind) if trap.kind in KINDS else len(order)))


def find_no_input_objection(outcomes: Mapping[str, Outcome]) -> str:
    """Return why a variant has no speedup: its whole result depends on no argument, or that is unknown; else nothing.

    A declaration does not change that: such a program computes nothing when it is called.
    """
    details = _list_details(outcomes)
    if any(trap.kind == NO_INPUT and trap.share == 1.0 for each in details for trap in each.traps):
        return "its whole result depends on no argument, so XLA can compute it while it compiles"
    if any(NO_INPUT in each.unknown_traps for each in details):
        return "it is unknown whether its result depends on an argument"
    return ""


def list_all_traps(outcomes: Mapping[str, Outcome]) -> tuple[Trap, ...]:
    """Return the traps of a variant, those that its suite declares among them."""
    return tuple(trap for each in _list_details(outcomes) for trap in each.traps)


def _list_details(outcomes: Mapping[str, Outcome]) -> list[CompilationDetails]:
    details = (outcome.details for outcome in outcomes.values())
    return [each for each in details if isinstance(each, CompilationDetails)]
