"""What has no number, and why: everything that is not ok, in full, with what the process wrote to stderr."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from jaxmeter.harness.metrics.reading import Case, Variant
from jaxmeter.harness.record import INCOMPLETE, CompilationDetails, Outcome, Status, Trap
from jaxmeter.harness.record.traps import KINDS, describe_trap, find_traps

from ...text import counted
from ..cases import group_alike, label_case, list_notes_of
from ..cells import find_tone
from ..keys import key_of_case, key_of_variant, make_key
from ..page_model import Cell, Column, Group, Part, Row, Section, Table
from ..tone import Tone

QUESTION = "What has no number, and why?"
RAISES = "raises"
"""In place of a status: the error is what was to be seen, so all is well, but there is no number."""

KNOWN_BEFOREHAND = (Status.SKIPPED, Status.UNSUPPORTED, Status.TOO_LARGE)
TRAP_COLUMNS = (Column("Trap"), Column("Where"), Column("Variant"), Column("What was found"), Column("Instead"))
COLUMNS = (Column("Status"), Column("Where"), Column("Variant"), Column("Probe"), Column("Reason"))


def make_problems_section(cases: Sequence[Case]) -> Section:
    """The section: what went wrong one by one, then what was known beforehand, alike reasons together."""
    wrong = (*_outcome_rows(cases), *(_lost_row(case) for case in cases if case.is_lost))
    expected = _expected_rows(cases)
    traps = _trap_rows(cases)
    if not wrong and not expected and not traps:
        return Section("problems", "Not measured", QUESTION, "Nothing: every planned variant has its numbers.")
    tables = [
        Table(caption, columns, (Group(rows),))
        for caption, columns, rows in (
            ("Went wrong, worst first.", COLUMNS, wrong),
            ("Known beforehand, alike reasons together.", COLUMNS, expected),
            ("Traps: measured, but not the work that the source suggests.", TRAP_COLUMNS, traps),
        )
        if rows
    ]
    went = counted(len(wrong), "entry", "entries") if wrong else "nothing"
    answer = f"Went wrong: {went}. Known beforehand: {counted(len(expected), 'reason')}."
    answer += f" Traps: {len(traps)}." if traps else ""
    # What went wrong is there without a script, too.
    return Section("problems", "Not measured", QUESTION, answer, (Part(tables=tuple(tables)),), packed=not wrong)


def _outcome_rows(cases: Sequence[Case]) -> tuple[Row, ...]:
    found = [
        (variant, ", ".join(probes), outcome)
        for case in cases
        if not case.is_lost
        for variant in case.shown
        for probes, outcome in group_alike(variant)
        if outcome.status in INCOMPLETE
    ]
    order = list(Status)
    found.sort(key=lambda entry: -order.index(entry[2].status))
    seen: set[str] = set()
    return tuple(_row(*entry, seen) for entry in found)


def _row(variant: Variant, probes: str, outcome: Outcome, seen: set[str]) -> Row:
    # A link leads to the worst probe of a variant, which the order puts first; ids must not repeat.
    key = f"p-{key_of_variant(variant)}"
    row_id = "" if key in seen else key
    seen.add(key)
    fold_title, fold = _find_more(outcome)
    cells = (
        Cell(outcome.status.value, tone=find_tone(outcome.status)),
        Cell(label_case(variant.case)),
        Cell(variant.planned.name),
        Cell(probes),
        Cell(outcome.reason or "no reason recorded", fold=fold, fold_title=fold_title),
    )
    return Row(cells, row_id)


def _lost_row(case: Case) -> Row:
    names = "\n".join(variant.planned.name for variant in case.shown)
    cells = (
        Cell(Status.LOST.value, tone=Tone.BAD),
        Cell(label_case(case)),
        Cell(f"all {len(case.shown)}", fold=names, fold_title="names"),
        Cell("all"),
        Cell(case.why_lost),
    )
    return Row(cells, f"p-{key_of_case(case)}")


def _expected_rows(cases: Sequence[Case]) -> tuple[Row, ...]:
    alike: dict[tuple[Status | None, str, str, str, str], list[str]] = defaultdict(list)
    for case in cases:
        for variant in case.shown:
            for probes, outcome in group_alike(variant):
                raises = variant.planned.raises is not None and outcome.status is Status.OK
                if raises or outcome.status in KNOWN_BEFOREHAND:
                    notes = (note for probe in probes for note in list_notes_of(variant, probe))
                    reason = outcome.reason or "; ".join(notes) or "no reason recorded"
                    status = None if raises else outcome.status
                    key = (status, case.planned.suite, variant.planned.name, ", ".join(probes), reason)
                    alike[key].append(label_case(case))
    return tuple(_expected_row(*key, labels) for key, labels in alike.items())


def _expected_row(status: Status | None, suite: str, name: str, probes: str, reason: str, labels: Sequence[str]) -> Row:
    """A row for variants alike; without a status, the error that they raise is what was to be seen."""
    where = Cell(labels[0])
    if len(labels) > 1:
        where = Cell(f"{suite}: {len(labels)} cases", fold="\n".join(labels), fold_title="cases")
    shown = Cell(RAISES, tone=Tone.MUTED) if status is None else Cell(status.value, tone=find_tone(status))
    return Row((shown, where, Cell(name), Cell(probes or "all"), Cell(reason)))


def make_trap_id(variant: Variant, trap: Trap) -> str:
    """Return the id of the row of a trap, by the first variant that has it."""
    return make_key("t", key_of_variant(variant), repr(trap))


def _trap_rows(cases: Sequence[Case]) -> tuple[Row, ...]:
    """A row for each trap of a case, with the variants that have it."""
    alike: dict[tuple[str, Trap], list[Variant]] = defaultdict(list)
    for case in cases:
        for variant in case.shown:
            for trap in find_traps(variant.outcomes):
                alike[key_of_case(case), trap].append(variant)
    return tuple(_trap_row(trap, variants) for (_, trap), variants in alike.items())


def _trap_row(trap: Trap, variants: Sequence[Variant]) -> Row:
    kind = KINDS.get(trap.kind)
    cells = (
        Cell(trap.kind if kind is None else kind.title, tone=Tone.WARN),
        Cell(label_case(variants[0].case)),
        Cell(", ".join(variant.planned.name for variant in variants)),
        Cell(describe_trap(trap)),
        Cell("" if kind is None else kind.instead),
    )
    return Row(cells, make_trap_id(variants[0], trap))


def _find_more(outcome: Outcome) -> tuple[str, str]:
    """What there is to unfold, and its title."""
    details = outcome.details
    if isinstance(details, CompilationDetails) and details.explanation:
        return "JAX's explanation", details.explanation
    return "stderr", outcome.stderr or ""
