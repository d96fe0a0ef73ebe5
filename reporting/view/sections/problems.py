"""What has no number, and why: everything that is not ok, in full, with what the process wrote to stderr."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from harness.record import DOES_NOT_FIT, INCOMPLETE, Outcome, Status

from ..text import one_of
from .measured import Case, Variant, does_not_fit
from .parts import Cell, Column, Group, Part, Row, Section, Table, Tone
from .words import tone_of

QUESTION = "What has no number, and why?"
RAISES = "raises"
"""In place of a status: the error is what was to be seen, so all is well, but there is no number."""

COLUMNS = (Column("Status"), Column("Where"), Column("Variant"), Column("Probe"), Column("Reason"))


def problems(cases: Sequence[Case]) -> Section:
    """The section: what went wrong one by one, then what was known beforehand, alike reasons together."""
    wrong = (*_outcome_rows(cases), *(_lost_row(case) for case in cases if case.is_lost))
    expected = _expected_rows(cases)
    if not wrong and not expected:
        return Section("problems", "Not measured", QUESTION, "Nothing: every planned variant has its numbers.")
    tables = [
        Table(caption, COLUMNS, (Group(rows),))
        for caption, rows in (
            ("Went wrong, worst first.", wrong),
            ("Known beforehand, alike reasons together.", expected),
        )
        if rows
    ]
    went = one_of(len(wrong), "entry", "entries") if wrong else "nothing"
    answer = f"Went wrong: {went}. Known beforehand: {one_of(len(expected), 'reason')}."
    return Section("problems", "Not measured", QUESTION, answer, (Part(tables=tuple(tables)),))


def _outcome_rows(cases: Sequence[Case]) -> tuple[Row, ...]:
    found = [
        (variant, ", ".join(probes), outcome)
        for case in cases
        if not case.is_lost
        for variant in case.variants
        for probes, outcome in variant.alike
        if outcome.status in INCOMPLETE
    ]
    order = list(Status)
    found.sort(key=lambda entry: -order.index(entry[2].status))
    seen: set[str] = set()
    return tuple(_row(*entry, seen) for entry in found)


def _row(variant: Variant, probes: str, outcome: Outcome, seen: set[str]) -> Row:
    # A link leads to the worst probe of a variant, which the order puts first; ids must not repeat.
    key = f"p-{variant.key}"
    row_id = "" if key in seen else key
    seen.add(key)
    cells = (
        Cell(outcome.status.value, tone=tone_of(outcome.status)),
        Cell(variant.case.label),
        Cell(variant.planned.name),
        Cell(probes),
        Cell(outcome.reason or "no reason recorded", fold=outcome.stderr or "", fold_title=_fold_title(outcome.stderr)),
    )
    return Row(cells, row_id)


def _lost_row(case: Case) -> Row:
    names = "\n".join(variant.planned.name for variant in case.variants)
    cells = (
        Cell(Status.LOST.value, tone=Tone.BAD),
        Cell(case.label),
        Cell(f"all {len(case.variants)}", fold=names, fold_title="names"),
        Cell("all"),
        Cell(case.why_lost),
    )
    return Row(cells, f"p-{case.key}")


def _expected_rows(cases: Sequence[Case]) -> tuple[Row, ...]:
    alike: dict[tuple[str, str, str, str, str], list[str]] = defaultdict(list)
    for case in cases:
        for variant in case.variants:
            for probes, outcome in variant.alike:
                raises = variant.planned.raises is not None and outcome.status is Status.OK
                if raises or outcome.status in (Status.SKIPPED, Status.UNSUPPORTED):
                    reason = outcome.reason or "; ".join(outcome.notes) or "no reason recorded"
                    status = RAISES if raises else outcome.status
                    key = (status, case.planned.suite, variant.planned.name, ", ".join(probes), reason)
                    alike[key].append(case.label)
    return tuple(_expected_row(*key, labels) for key, labels in alike.items())


def _expected_row(status: str, suite: str, name: str, probes: str, reason: str, labels: Sequence[str]) -> Row:
    where = Cell(labels[0])
    if len(labels) > 1:
        where = Cell(f"{suite}: {len(labels)} cases", fold="\n".join(labels), fold_title="cases")
    known = Cell(status, tone=Tone.MUTED)
    if status == Status.UNSUPPORTED and does_not_fit(Outcome(status=Status.UNSUPPORTED, reason=reason)):
        known = Cell(DOES_NOT_FIT, tone=Tone.WARN)
    return Row((known, where, Cell(name), Cell(probes or "all"), Cell(reason)))


def _fold_title(text: str | None) -> str:
    return "JAX's explanation" if text and "CACHE MISS" in text else "stderr"
