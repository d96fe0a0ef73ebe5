"""The first screen: what was found, what needs attention, and what to mistrust."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from jaxmeter.harness.metrics.aa_text import describe_in_short
from jaxmeter.harness.metrics.agreement import TIMES, find_disagreement
from jaxmeter.harness.metrics.reading import Case, Run, Variant
from jaxmeter.harness.record import INCOMPLETE, Status, Trap
from jaxmeter.harness.record.differences import facts_of, find_differences
from jaxmeter.harness.record.remarks import gist_of, list_own_faults
from jaxmeter.harness.record.traps import describe_trap, find_traps

from ..text import by_numbers, counted, shorten
from .changes import describe_changes
from .comparisons import Comparisons
from .keys import key_of_case, key_of_variant
from .machines import MachineRuns
from .names import LONGEST_NAME, name_variant
from .page_model import Item
from .reasons import LONGEST_REASON, count_statuses, find_incomplete
from .runs import describe_cores, name_device
from .sections.caching import describe_caching
from .sections.compilation import describe_compilation, find_fingerprints
from .sections.problems import make_trap_id
from .sections.speed import describe_speed
from .tone import Tone
from .trust import describe_trust

NAMED_AT_MOST = 3
LONGEST_LINE = 300
LONGEST_TRUST = 600
"""Of what the self-test found, with a name of the machine that may be long."""

CONTENDED = (
    ": do not use their times, which are hollow or marked !; a speedup without ! is valid, since both of its variants "
    "met the same interference"
)


def make_finding(machines: Sequence[MachineRuns], cases: Sequence[Case], comparisons: Comparisons) -> str:
    """The page's heading: what is wrong first, then what changed, then how much was measured where.

    Args:
      cases: On each machine, each case once.
    """
    if not cases:
        return "No case was planned"
    finding = "; ".join(
        filter(None, (_troubles(cases), _describe_book(comparisons), _describe_measured(machines, cases)))
    )
    return finding[:1].upper() + finding[1:]


def _describe_measured(machines: Sequence[MachineRuns], cases: Sequence[Case]) -> str:
    """How many cases were measured where; where some lack variants, how many variants were as well."""
    complete = sum(case.is_complete and not case.is_skipped for case in cases)
    skipped = sum(case.is_skipped for case in cases)
    of, where = f"{complete} of {counted(len(cases), 'case')}", _describe_where(machines)
    variants = [variant for case in cases for variant in case.shown]
    measured = sum(variant.status is Status.OK for variant in variants)
    if complete + skipped == len(cases) or not measured:
        return f"{of} measured {where}" + (f", {skipped} skipped" if skipped else "")
    words = f"{measured} of {counted(len(variants), 'variant')} measured {where}, {of} complete"
    return words + (f", {skipped} skipped" if skipped else "")


def _describe_where(platforms: Sequence[MachineRuns]) -> str:
    """Return the one platform, or on how many machines or platforms of one machine the cases were measured."""
    if len(platforms) == 1:
        return f"on {shorten(platforms[0].name, LONGEST_NAME)}"
    machines = len({platform.newest.manifest.machine for platform in platforms})
    return f"at {machines} machines" if machines > 1 else f"on {len(platforms)} platforms of one machine"


def _describe_book(comparisons: Comparisons) -> str:
    """What changed, of all machines together; empty where nothing was compared."""
    told = []
    for machine, changes in comparisons.of_machines:
        where = f"{machine.newest.label}: " if len(comparisons.of_machines) > 1 else ""
        told.append(f"{where}{describe_changes(changes)}, since run {changes.sides[0]}")
    return shorten("; ".join(told), LONGEST_TRUST)


def make_subtitle(labelled: Sequence[Run]) -> str:
    """What ran where and when, with which versions."""
    runs = labelled
    dates = sorted({run.manifest.started[:10] for run in runs})
    span = dates[0] if len(dates) == 1 else f"{dates[0]} to {dates[-1]}"
    jax = sorted({run.environment.packages.get("jax", "unknown") for run in runs}, key=by_numbers)
    tools = sorted({run.manifest.tool_version for run in runs}, key=by_numbers)
    devices = dict.fromkeys(f"{run.where}: {name_device(run)}, {describe_cores(run)}" for run in runs)
    more = [f"{len(devices) - NAMED_AT_MOST} more"] if len(devices) > NAMED_AT_MOST else []
    where = "; ".join([*(shorten(name, LONGEST_NAME) for name in list(devices)[:NAMED_AT_MOST]), *more])
    count = len({run.name for run in runs})  # a run with several platforms is here once for each
    parts = (counted(count, "run"), where, span, f"jax {', '.join(jax)}", f"jaxmeter {', '.join(tools)}")
    return shorten(" · ".join(parts), LONGEST_LINE)


def make_summary(machines: Sequence[MachineRuns], cases: Sequence[Case], warnings: int) -> tuple[str, ...]:
    """One sentence a line: how small a difference can be told, variants by status, warnings, whom to believe.

    Args:
      cases: On each machine, each case once.
    """
    planned = counted(sum(len(case.shown) for case in cases), "variant")
    counts = count_statuses(variant for case in cases for variant in case.shown)
    words = {Status.OK: "measured", Status.TOO_LARGE: "too large"}
    listed = ", ".join(f"{counts[status]} {words.get(status, status.value)}" for status in reversed(counts))
    newest = machines[0].newest
    here_told = [case for case in cases if machines[0].has(case.run)]
    here = "" if len(machines) == 1 else f"{newest.label}: "
    return (
        f"{here}{describe_trust(here_told)}",
        f"Of {planned}: {listed or 'nothing'}.",
        f"Checks of the data: {counted(warnings, 'warning')}." if warnings else "Checks of the data: no warning.",
        shorten(describe_in_short(newest.manifest.self_test), LONGEST_TRUST),
    )


def list_facts(cases: Sequence[Case]) -> tuple[Item, ...]:
    """What all suites together tell, a sentence for each subject.

    Args:
      cases: On each machine, each case once.
    """
    facts = (
        ("Speed", describe_speed(cases)),
        ("Compilation", describe_compilation(cases)),
        ("Caching", describe_caching(cases)),
    )
    return tuple(Item(text, label) for label, text in facts)


def list_attention(cases: Sequence[Case]) -> tuple[Item, ...]:
    """What failed, is wrong or missing, worst first, then traps; variants alike in case and reason share an item."""
    alike: dict[tuple[str, str, Status, tuple[str, str]], list[Variant]] = {}
    for variant in find_incomplete(variant for case in cases if not case.is_lost for variant in case.shown):
        probe, outcome = variant.worst
        gist = gist_of(variant.planned.name, f"{outcome.status.value}: {outcome.reason}")
        alike.setdefault((key_of_case(variant.case), probe, outcome.status, gist), []).append(variant)
    lost = (_lost_item(case) for case in cases if case.is_lost)
    return (*map(_item, alike.values()), *lost, *_list_trap_items(cases))


def _list_trap_items(cases: Sequence[Case]) -> Iterator[Item]:
    """An item for each trap; traps of a kind and of the same lines of a suite share one."""
    alike: dict[tuple[object, ...], list[tuple[Trap, Variant]]] = {}
    for variant in (variant for case in cases for variant in case.shown):
        for trap in find_traps(variant.outcomes):
            machine = trap.sources or (variant.case.planned.name, trap.evidence)
            alike.setdefault((variant.case.planned.suite, trap.kind, machine), []).append((trap, variant))
    for found in alike.values():
        trap, variant = found[0]
        many = len({key_of_case(one.case) for _, one in found})
        more = f" and {counted(many - 1, 'case')} more" if many > 1 else ""
        text = f"{name_variant(variant)}{more}: {describe_trap(trap).removeprefix('trap: ')}"
        yield Item(text, "trap", make_trap_id(variant, trap), Tone.WARN)


def _item(variants: Sequence[Variant]) -> Item:
    case = variants[0].case
    probe, outcome = variants[0].worst
    names = ", ".join(shorten(variant.planned.name, LONGEST_NAME) for variant in variants[:NAMED_AT_MOST])
    more = f" and {len(variants) - NAMED_AT_MOST} more" if len(variants) > NAMED_AT_MOST else ""
    reason = shorten(outcome.reason or "no reason recorded", LONGEST_REASON)
    where = f" ({probe})" if probe else ""
    text = f"{shorten(case.planned.name, LONGEST_NAME)} · {names}{more} · {case.run.label}{where}: {reason}"
    return Item(text, outcome.status.value, f"p-{key_of_variant(variants[0])}", Tone.BAD)


def _lost_item(case: Case) -> Item:
    name = shorten(case.planned.name, LONGEST_NAME)
    return Item(f"{name} · {case.run.label}: {case.why_lost}", Status.LOST.value, f"p-{key_of_case(case)}", Tone.BAD)


def list_warnings(loaded: Iterable[str], machines: Sequence[MachineRuns], cases: Sequence[Case]) -> tuple[Item, ...]:
    """Damaged files first, then what makes the numbers less than they seem.

    Args:
      cases: On each machine, each case once.
    """
    runs = [run for machine in machines for run in machine.runs]
    variants = [variant for case in cases for variant in case.shown]
    contended = [variant for variant in variants if variant.read("execution_s").contended]
    large = [variant for variant in variants if variant.is_too_large]
    again = [variant for variant in variants if variant.read("recompiles").estimate]
    at_odds = [variant for variant in variants if any(find_disagreement(variant, metric) for metric in TIMES)]
    several = [variant for variant in variants if len(find_fingerprints(variant)) > 1]
    found = [
        *(("file", text) for text in loaded),
        *(("several runs", _describe_series(machine)) for machine in machines),
        *(("run", _list_notes(run)) for run in runs),
        *(("jaxmeter", text) for text in _list_own_faults(variants)),
        *(("data", text) for text in _missing_data(cases)),
        (Status.TOO_LARGE.value, _some(large, "too large for the device's memory, so not run")),
        ("recompiles", _some(again, "compiled again in a second, equal call")),
        ("programs", _some(several, "got different programs from the compiler in different processes")),
        ("contended", _some(contended, "had too few quiet processes", CONTENDED)),
        ("times", _some(at_odds, "have a time that is inconsistent with a speedup; rely on the speedup")),
        ("versions", _versions(runs)),
        ("git", _dirty([run for run in runs if run.environment.git_dirty])),
    ]
    return tuple(Item(text, label, tone=Tone.WARN) for label, text in found if text)


def _describe_series(machine: MachineRuns) -> str:
    """How several runs of one place are told."""
    if not machine.repeated:
        return ""
    return (
        f"{len(machine.runs)} runs of {shorten(machine.name, LONGEST_NAME)}: each case is shown from its newest "
        "run; do not compare times by eye, since the machine may have changed between runs"
    )


def _list_notes(run: Run) -> str:
    notes = "; ".join(run.manifest.settings.notes)
    return f"{run.label}: {shorten(notes, LONGEST_LINE)}" if notes else ""


def _list_own_faults(variants: Iterable[Variant]) -> Iterator[str]:
    """Yield each failure of jaxmeter's own analysis, with the affected variants."""
    affected: dict[str, list[Variant]] = {}
    for variant in variants:
        for fault in list_own_faults(variant.outcomes.values()):
            affected.setdefault(fault, []).append(variant)
    yield from (_some(alike, f"affected by {fault}") for fault, alike in affected.items())


def _missing_data(cases: Sequence[Case]) -> list[str]:
    """Which data were asked for and not there, and what is in their machine."""
    alike = Counter((case.planned.data, case.planned.data_missing) for case in cases if case.planned.data_missing)
    return [
        shorten(f"--data has none of {missing}; the inputs of {counted(number, 'case')} are {used}", LONGEST_LINE)
        for (used, missing), number in alike.items()
    ]


def _troubles(cases: Sequence[Case]) -> str:
    """`1 variant wrong, 2 lost`, or empty."""
    counts = count_statuses(variant for case in cases for variant in case.shown)
    bad = [(status.value, number) for status, number in counts.items() if status in INCOMPLETE]
    first = [f"{counted(number, 'variant')} {word}" for word, number in bad[:1]]
    return ", ".join([*first, *(f"{number} {word}" for word, number in bad[1:])])


def _some(variants: Sequence[Variant], what: str, so: str = "") -> str:
    if not variants:
        return ""
    cases: dict[tuple[str, str], list[str]] = {}
    for variant in variants[:NAMED_AT_MOST]:
        case = shorten(variant.case.planned.name, LONGEST_NAME)
        cases.setdefault((case, variant.case.run.label), []).append(shorten(variant.planned.name, LONGEST_NAME))
    names = "; ".join(f"{case} · {', '.join(own)} · {label}" for (case, label), own in cases.items())
    more = f"; and {len(variants) - NAMED_AT_MOST} more" if len(variants) > NAMED_AT_MOST else ""
    return f"{counted(len(variants), 'variant')} {what}{so} ({names}{more})"


def _versions(runs: Sequence[Run]) -> str:
    """Packages of which the runs had different versions; that a run lacks one says little."""
    facts = [facts_of(run.manifest, run.where) for run in runs]
    different = []
    for name in find_differences(facts, of=("python", "packages")):
        versions = sorted({str(one[name]) for one in facts if name in one}, key=by_numbers)
        if len(versions) > 1:
            shown = "Python" if name == "python" else name.removeprefix("packages.")
            different.append(f"{shown} {', '.join(versions)}")
    return f"differ between the runs: {shorten('; '.join(different), LONGEST_LINE)}" if different else ""


def _dirty(runs: Sequence[Run]) -> str:
    names = ", ".join(run.name for run in runs)
    return f"made from a checkout with uncommitted changes: {shorten(names, LONGEST_LINE)}" if runs else ""
