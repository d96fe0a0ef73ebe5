"""What is wrong: what failed, traps and warnings on the first screen, how far to trust the numbers, what has none."""

from __future__ import annotations

import statistics
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence

from jaxmeter.document import numbers
from jaxmeter.document.model import Cell, Column, Group, Item, Part, Row, Section, Table, Tone
from jaxmeter.harness.metrics.plausibility import TIMES, find_disagreement
from jaxmeter.harness.metrics.precision import list_smallest
from jaxmeter.harness.metrics.reading import Case, Run, Variant
from jaxmeter.harness.record import INCOMPLETE, CompilationDetails, Outcome, Status, Trap
from jaxmeter.harness.record.differences import facts_of, find_differences
from jaxmeter.harness.record.outcomes import KINDS, describe_trap, find_traps, gist_of, list_own_faults
from jaxmeter.harness.record.self_test import SelfTest
from jaxmeter.harness.record.wording import counted, shorten

from ..text import by_numbers
from .cells import LONGEST_REASON, count_statuses, find_incomplete, find_tone, name_traps
from .comparisons import Comparisons
from .figures.points import TIME
from .page_model import Hue, Phrase, TrustFact
from .runs import (
    LONGEST_NAME,
    MachineRuns,
    find_hue,
    group_alike,
    key_of_case,
    key_of_variant,
    label_case,
    list_notes_of,
    make_key,
    name_variant,
)
from .sections.compilation import find_fingerprints

MOST_NAMED = 3
"""Variants in a sentence."""

LONGEST_LINE = 300

OF_CONTENTION = (
    ": do not use their times, which are hollow or marked !; a speedup without ! is valid, since both of its variants "
    "met the same interference"
)

QUESTION = "What has no number, and why?"
RAISES = "raises"
"""In place of a status: the error is what was to be seen, so all is well, but there is no number."""

KNOWN_BEFOREHAND = (Status.SKIPPED, Status.UNSUPPORTED, Status.TOO_LARGE)
TRAP_COLUMNS = (Column("Trap"), Column("Where"), Column("Variant"), Column("What was found"), Column("Instead"))
COLUMNS = (Column("Status"), Column("Where"), Column("Variant"), Column("Probe"), Column("Reason"))


def count_troubles(cases: Sequence[Case]) -> str:
    """Return `1 variant wrong, 2 lost`; empty where all was measured."""
    counts = count_statuses(variant for case in cases for variant in case.shown)
    bad = [(status.value, number) for status, number in counts.items() if status in INCOMPLETE]
    first = [f"{counted(number, 'variant')} {word}" for word, number in bad[:1]]
    return ", ".join([*first, *(f"{number} {word}" for word, number in bad[1:])])


def list_attention(cases: Sequence[Case]) -> tuple[Item, ...]:
    """Return what failed, is wrong or missing, worst first, then traps; alike reasons of a case share an item."""
    alike: dict[tuple[str, str, Status, tuple[str, str]], list[Variant]] = {}
    for variant in find_incomplete(variant for case in cases if not case.is_lost for variant in case.shown):
        probe, outcome = variant.worst
        gist = gist_of(variant.planned.name, f"{outcome.status.value}: {outcome.reason}")
        alike.setdefault((key_of_case(variant.case), probe, outcome.status, gist), []).append(variant)
    lost = (_make_lost_item(case) for case in cases if case.is_lost)
    return (*map(_make_item, alike.values()), *lost, *_list_trap_items(cases))


def _make_item(variants: Sequence[Variant]) -> Item:
    case = variants[0].case
    probe, outcome = variants[0].worst
    names = ", ".join(shorten(variant.planned.name, LONGEST_NAME) for variant in variants[:MOST_NAMED])
    more = f" and {len(variants) - MOST_NAMED} more" if len(variants) > MOST_NAMED else ""
    reason = shorten(outcome.reason or "no reason recorded", LONGEST_REASON)
    where = f" ({probe})" if probe else ""
    text = f"{shorten(case.planned.name, LONGEST_NAME)} · {names}{more} · {case.run.label}{where}: {reason}"
    return Item(text, outcome.status.value, f"p-{key_of_variant(variants[0])}", Tone.BAD)


def _make_lost_item(case: Case) -> Item:
    name = shorten(case.planned.name, LONGEST_NAME)
    return Item(f"{name} · {case.run.label}: {case.why_lost}", Status.LOST.value, f"p-{key_of_case(case)}", Tone.BAD)


def _list_trap_items(cases: Sequence[Case]) -> Iterator[Item]:
    """Yield an item for each trap; traps of a kind and of the same lines of a suite share an item."""
    alike: dict[tuple[object, ...], list[tuple[Trap, Variant]]] = {}
    for variant in (variant for case in cases for variant in case.shown):
        for trap in find_traps(variant.outcomes):
            lines = trap.sources or (variant.case.planned.name, trap.evidence)
            alike.setdefault((variant.case.planned.suite, trap.kind, lines), []).append((trap, variant))
    for trapped in alike.values():
        trap, variant = trapped[0]
        many = len({key_of_case(each.case) for _, each in trapped})
        more = f" and {counted(many - 1, 'case')} more" if many > 1 else ""
        text = f"{name_variant(variant)}{more}: {describe_trap(trap).removeprefix('trap: ')}"
        yield Item(text, "trap", _make_trap_id(variant, trap), Tone.WARN)


def list_warnings(of_files: Iterable[str], machines: Sequence[MachineRuns], cases: Sequence[Case]) -> tuple[Item, ...]:
    """Return what is known of damaged files, then what makes the numbers less than they seem.

    Args:
      cases: On each machine, each case once.
    """
    runs = [run for machine in machines for run in machine.runs]
    variants = [variant for case in cases for variant in case.shown]
    contended = [variant for variant in variants if variant.read(TIME).contended]
    large = [variant for variant in variants if variant.is_too_large]
    again = [variant for variant in variants if variant.read("recompiles").estimate]
    at_odds = [variant for variant in variants if _is_inconsistent(variant)]
    several = [variant for variant in variants if len(find_fingerprints(variant)) > 1]
    texts = [
        *(("file", text) for text in of_files),
        *(("several runs", _describe_series(machine)) for machine in machines),
        *(("run", _join_notes(run)) for run in runs),
        *(("jaxmeter", text) for text in _list_own_faults(variants)),
        *(("data", text) for text in _list_missing_data(cases)),
        (Status.TOO_LARGE.value, _name_some(large, "too large for the device's memory, so not run")),
        ("recompiles", _name_some(again, "compiled again in a second, equal call")),
        ("programs", _name_some(several, "got different programs from the compiler in different processes")),
        ("contended", _name_some(contended, f"had too few quiet processes{OF_CONTENTION}")),
        ("times", _name_some(at_odds, "have a time that is inconsistent with a speedup; rely on the speedup")),
        ("versions", _describe_versions(runs)),
        ("git", _describe_dirty([run for run in runs if run.environment.git_dirty])),
    ]
    return tuple(Item(text, label, tone=Tone.WARN) for label, text in texts if text)


def _is_inconsistent(variant: Variant) -> bool:
    return any(find_disagreement(variant, metric) for metric in TIMES)


def _describe_series(machine: MachineRuns) -> str:
    if not machine.repeated:
        return ""
    return (
        f"{len(machine.runs)} runs of {shorten(machine.name, LONGEST_NAME)}: each case is shown from its newest "
        "run; do not compare times by eye, since the machine may have changed between runs"
    )


def _join_notes(run: Run) -> str:
    notes = "; ".join(run.manifest.settings.notes)
    return f"{run.label}: {shorten(notes, LONGEST_LINE)}" if notes else ""


def _list_own_faults(variants: Iterable[Variant]) -> Iterator[str]:
    """Yield each failure of jaxmeter's own analysis, with the affected variants."""
    affected: dict[str, list[Variant]] = {}
    for variant in variants:
        for fault in list_own_faults(variant.outcomes.values()):
            affected.setdefault(fault, []).append(variant)
    yield from (_name_some(alike, f"affected by {fault}") for fault, alike in affected.items())


def _list_missing_data(cases: Sequence[Case]) -> list[str]:
    """Return which data were asked for and not there, and what the inputs are instead."""
    alike = Counter((case.planned.data, case.planned.data_missing) for case in cases if case.planned.data_missing)
    return [
        shorten(f"--data has none of {missing}; the inputs of {counted(number, 'case')} are {used}", LONGEST_LINE)
        for (used, missing), number in alike.items()
    ]


def _name_some(variants: Sequence[Variant], what: str) -> str:
    if not variants:
        return ""
    cases: dict[tuple[str, str], list[str]] = {}
    for variant in variants[:MOST_NAMED]:
        case = shorten(variant.case.planned.name, LONGEST_NAME)
        cases.setdefault((case, variant.case.run.label), []).append(shorten(variant.planned.name, LONGEST_NAME))
    names = "; ".join(f"{case} · {', '.join(own)} · {label}" for (case, label), own in cases.items())
    more = f"; and {len(variants) - MOST_NAMED} more" if len(variants) > MOST_NAMED else ""
    return f"{counted(len(variants), 'variant')} {what} ({names}{more})"


def _describe_versions(runs: Sequence[Run]) -> str:
    """Return packages of which the runs had different versions; that a run lacks a package says little."""
    facts = [facts_of(run.manifest, run.where) for run in runs]
    different = []
    for name in find_differences(facts, of=("python", "packages")):
        versions = sorted({str(of_run[name]) for of_run in facts if name in of_run}, key=by_numbers)
        if len(versions) > 1:
            shown = "Python" if name == "python" else name.removeprefix("packages.")
            different.append(f"{shown} {', '.join(versions)}")
    return f"differ between the runs: {shorten('; '.join(different), LONGEST_LINE)}" if different else ""


def _describe_dirty(runs: Sequence[Run]) -> str:
    names = ", ".join(run.name for run in runs)
    return f"made from a checkout with uncommitted changes: {shorten(names, LONGEST_LINE)}" if runs else ""


def list_trust(
    machines: Sequence[MachineRuns], cases: Sequence[Case], comparisons: Comparisons, warnings: Sequence[Item]
) -> Iterator[TrustFact]:
    """Yield the smallest detectable change and speedup, the A/A test, doubtful times, what failed, and warnings.

    Args:
      machines: Those of the first screen.
      cases: On each machine, each case once.
    """
    devices = [
        (machine.newest, find_hue(machine.newest), [case for case in cases if machine.has(case.run)])
        for machine in machines
    ]
    changes = [
        Phrase(numbers.percent(statistics.median(smallest)), find_hue(machine.newest))
        for machine, changed in comparisons.of_machines
        if (smallest := [change.smallest for change in changed.times if change.smallest is not None])
    ]
    if changes:
        yield TrustFact("Smallest detectable difference of changes, median", tuple(changes), "method")
    speedups = [
        Phrase(numbers.percent(statistics.median(smallest)), hue)
        for _, hue, own in devices
        if (smallest := list(list_smallest(variant for case in own for variant in case.shown)))
    ]
    if speedups:
        which = " of speedups" if changes else ""
        yield TrustFact(f"Smallest detectable difference{which}, median", tuple(speedups), "method")
    tests = (Phrase(_describe_test(run.manifest.self_test), hue) for run, hue, _ in devices)
    yield TrustFact("A/A test", tuple(tests), "method")
    target = "attention" if warnings else ""
    yield TrustFact("Contended times", tuple(_count_contended(own, hue) for _, hue, own in devices), target)
    variants = [variant for case in cases for variant in case.shown]
    doubts = (
        ("Inconsistent times", sum(map(_is_inconsistent, variants))),
        ("Variants with a trap", sum(bool(name_traps(variant)) for variant in variants)),
    )
    for label, number in doubts:
        if number:
            yield TrustFact(label, (Phrase(str(number), tone=Tone.WARN),), "attention")
    bad = {status: count for status, count in count_statuses(variants).items() if status in INCOMPLETE}
    text = ", ".join(f"{count} {status.value}" for status, count in bad.items())
    failed = Phrase(text or "0", tone=Tone.BAD if bad else Tone.PLAIN)
    yield TrustFact("Wrong or failed", (failed,), "attention" if bad else "")
    yield TrustFact("Warnings", (Phrase(str(len(warnings)), tone=Tone.WARN if warnings else Tone.PLAIN),), target)


def _describe_test(self_test: SelfTest | None) -> str:
    if self_test is None or not self_test.is_sound:
        return "not run"
    return f"{self_test.speedups.differ} of {self_test.speedups.compared} wrong"


def _count_contended(cases: Sequence[Case], hue: Hue) -> Phrase:
    timed = [variant for case in cases for variant in case.shown if variant.read(TIME).interval is not None]
    contended = sum(variant.read(TIME).contended for variant in timed)
    return Phrase(f"{contended} of {len(timed)}", hue, Tone.WARN if contended else Tone.PLAIN)


def make_problems_section(cases: Sequence[Case]) -> Section:
    """Return the section: what went wrong one by one, then what was known beforehand, alike reasons together."""
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
    entries = [
        (variant, ", ".join(probes), outcome)
        for case in cases
        if not case.is_lost
        for variant in case.shown
        for probes, outcome in group_alike(variant)
        if outcome.status in INCOMPLETE
    ]
    order = list(Status)
    entries.sort(key=lambda entry: -order.index(entry[2].status))
    seen: set[str] = set()
    return tuple(_make_outcome_row(*entry, seen) for entry in entries)


def _make_outcome_row(variant: Variant, probes: str, outcome: Outcome, seen: set[str]) -> Row:
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


def _make_trap_id(variant: Variant, trap: Trap) -> str:
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
    return Row(cells, _make_trap_id(variants[0], trap))


def _find_more(outcome: Outcome) -> tuple[str, str]:
    """What there is to unfold, and its title."""
    details = outcome.details
    if isinstance(details, CompilationDetails) and details.explanation:
        return "JAX's explanation", details.explanation
    return "stderr", outcome.stderr or ""
