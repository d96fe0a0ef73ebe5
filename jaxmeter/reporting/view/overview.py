"""The first screen: devices, what changed, how far to trust the numbers, what jit is worth, where the time goes."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping, Sequence

from jaxmeter.harness.metrics.agreement import TIMES, find_disagreement
from jaxmeter.harness.metrics.metric import Unit
from jaxmeter.harness.metrics.precision import list_smallest
from jaxmeter.harness.metrics.reading import Case, Run, Variant
from jaxmeter.harness.record import INCOMPLETE
from jaxmeter.harness.record.self_test import SelfTest

from .. import numbers
from ..compare.verdicts import Change, Changes, JudgedReport, Verdict
from ..text import by_numbers, counted, shorten
from .cards import make_cards, make_jit_card, make_reports_card, make_time_card, split_cards
from .cells import name_level
from .changes import describe_exact, write_effect
from .comparisons import Comparisons
from .doubts import name_traps
from .figure_model import Axis, Estimate, Forest, ForestRow, Hue, Mark, describe_rows
from .figures.marks import TIME, find_hue
from .figures.roofline import draw_roofline
from .keys import make_fragment
from .machines import MachineRuns
from .names import LONGEST_NAME, LONGEST_TERM, name_rows
from .overview_model import Card, Device, Overview, Phrase, TrustFact
from .page_model import Item
from .reasons import count_statuses
from .runs import describe_cores, name_device
from .tone import Tone

MOST_CHANGES = 6
"""Rows of the forest; all changes stand in their own list."""

MOST_DEVICES = 4

ALREADY_THERE = ("time", "memory")
"""Cards of a case that the first screen has anyway."""


def make_overview(
    machines: Sequence[MachineRuns],
    standing: Mapping[str, Case],
    told: Sequence[Case],
    comparisons: Comparisons,
    reports: Sequence[JudgedReport],
    alone: Sequence[Card],
    warnings: Sequence[Item],
) -> Overview:
    """Return the first screen of a page.

    Args:
      standing: By suite, the case that stands for it.
      told: On each machine, each case once.
      reports: Of releases, with what was measured here.
      alone: Cards of the case of a page that has no other.
      warnings: About the data.
    """
    of_reports = make_reports_card(reports)
    cards, more = split_cards(make_cards(standing, told, has_reports=of_reports is not None))
    cards = (*cards, *(one for one in alone if one.id not in ALREADY_THERE))
    return Overview(
        heading=_write_heading(machines),
        devices=tuple(_describe_device(machine, told) for machine in machines[:MOST_DEVICES]),
        note=f"[a, b]: {name_level([run for one in machines for run in one.runs], 'confidence interval')}",
        changed=_make_changed_card(comparisons),
        trust=tuple(_list_trust(machines, told, comparisons, warnings)),
        jit=make_jit_card(standing, told),
        time=make_time_card(standing, told),
        cards=cards,
        more=more,
        rooflines=tuple(_list_rooflines(machines, told)),
        reports=of_reports,
    )


def _list_rooflines(machines: Sequence[MachineRuns], told: Sequence[Case]) -> Iterable[Card]:
    for machine in machines[:MOST_DEVICES]:
        figure = draw_roofline([case for case in told if machine.has(case.run)])
        if figure is not None:
            name = _name_platform(machine.newest).removeprefix("a ")
            yield Card(f"roofline-{machine.newest.where}", f"How near the limit? {name}", (), figure)


def _write_heading(machines: Sequence[MachineRuns]) -> str:
    """Return `JAX 0.10.2 on a CPU`, `JAX on a CPU (0.10.2) and a GPU (0.11.2)`."""
    if not machines:
        return "No run"
    shown = machines[:MOST_DEVICES]
    versions = list(map(_name_versions, shown))
    devices = [_name_platform(machine.newest) for machine in shown]
    more = f" and {counted(len(machines) - len(shown), 'more device')}" if len(machines) > len(shown) else ""
    if len(set(versions)) == 1:
        return f"JAX {versions[0]} on {_join(devices)}{more}"
    named = [f"{device} ({version})" for device, version in zip(devices, versions, strict=True)]
    return f"JAX on {_join(named)}{more}"


def _name_versions(machine: MachineRuns) -> str:
    """Return `0.10.2`, or of runs of several releases `0.4.31 to 0.10.2`."""
    known = {run.environment.packages.get("jax", "of unknown version") for run in machine.runs}
    ordered = sorted(known, key=by_numbers)
    return ordered[0] if len(ordered) == 1 else f"{ordered[0]} to {ordered[-1]}"


def _name_platform(run: Run) -> str:
    where = run.where
    words = {"cpu": "a CPU", "gpu": "a GPU", "tpu": "a TPU"}
    return words.get(where, where)


def _join(names: Sequence[str]) -> str:
    unique = list(dict.fromkeys(names))
    counts = [name if names.count(name) == 1 else f"{names.count(name)} {name.removeprefix('a ')}s" for name in unique]
    return counts[0] if len(counts) == 1 else f"{', '.join(counts[:-1])} and {counts[-1]}"


def _describe_device(machine: MachineRuns, told: Sequence[Case]) -> Device:
    run = machine.newest
    own = [case for case in told if machine.has(case.run)]
    runs = f", {counted(len(machine.runs), 'run')}" if len(machine.runs) > 1 else ""
    name = f"{shorten(name_device(run), LONGEST_TERM)}, {describe_cores(run)}" if run.where == "cpu" else ""
    name = name or shorten(name_device(run), LONGEST_TERM)
    return Device(find_hue(run), name, f"{counted(len(own), 'case')}{runs}, {run.manifest.started[:10]}")


def _make_changed_card(comparisons: Comparisons) -> Card:
    question = "What changed?"
    if not comparisons.of_machines:
        text = "No earlier run."
        return Card("changed", question, (Phrase(text, tone=Tone.MUTED),))
    phrases = tuple(_describe_changes(machine, changes) for machine, changes in comparisons.of_machines)
    found = [
        (one, find_hue(machine.newest))
        for machine, changes in comparisons.of_machines
        for one in changes.having(Verdict.SLOWER, Verdict.FASTER)
        if one.metric == TIME and one.effect is not None and one.effect.estimate > 0
    ]
    found.sort(key=lambda pair: -_size(pair[0]))
    return Card("changed", question, phrases, _draw_forest([one for one, _ in found]), "changed")


def _describe_changes(machine: MachineRuns, changes: Changes) -> Phrase:
    hue = find_hue(machine.newest)
    if changes.conditions.incomparable:
        return Phrase(f"Not comparable: {changes.conditions.incomparable}.", hue, Tone.WARN)
    slower, faster = (sum(one.verdict is kind for one in changes.times) for kind in (Verdict.SLOWER, Verdict.FASTER))
    suspected = sum(one.verdict in (Verdict.SUSPECTED_SLOWER, Verdict.SUSPECTED_FASTER) for one in changes.times)
    since = _name_sides(machine, changes)
    how = next((one.condition for one in changes.times if one.condition), "")
    of = f"of {counted(len(changes.times), 'compared time')}{f', {how}' if how else ''}"
    also = f", {suspected} suspected" if suspected else ""
    exact = f" {sentence}" if (sentence := describe_exact(changes)) else ""
    if not slower and not faster:
        smallest = [one.smallest for one in changes.times if one.smallest is not None]
        least = f" Smallest detectable difference: {numbers.percent(statistics.median(smallest))}." if smallest else ""
        return Phrase(f"{since}: no confirmed change {of}{also}.{least}{exact}", hue)
    counts = ", ".join(f"{number} {word}" for number, word in ((slower, "slower"), (faster, "faster")) if number)
    return Phrase(f"{since}: {counts} {of}{also}.{exact}", hue, Tone.WORSE if slower else Tone.GOOD)


def _name_sides(machine: MachineRuns, changes: Changes) -> str:
    """Return `jax 0.4.31 → 0.10.2`, or when the earlier run was where both have one release."""
    before = next((run for run in machine.runs if run.manifest.run_id == changes.before), None)
    if before is None:
        return "Since the earlier run"
    was, now_is = (run.environment.packages.get("jax", "") for run in (before, machine.newest))
    if was != now_is:
        return f"jax {was} → {now_is}"
    then, now = before.manifest.started, machine.newest.manifest.started
    return f"Since {then[:10]}" if then[:10] != now[:10] else f"Since {then[:16].replace('T', ' ')}"


def _draw_forest(found: Sequence[Change]) -> Forest | None:
    shown = [one for one in found[:MOST_CHANGES] if one.effect is not None]
    names = name_rows([(one.suite, one.case, one.variant) for one in found])
    rows = tuple(_make_row(one, names[one.suite, one.case, one.variant]) for one in shown)
    if not rows:
        return None
    alt = "Confirmed changes of times. " + describe_rows(row.mark.says for row in rows)
    return Forest(alt, Axis("change of the time, log", Unit.RATIO, is_log=True), rows)


def _make_row(one: Change, label: str) -> ForestRow:
    effect = one.effect
    assert effect is not None
    text = " ".join(part for part in write_effect(one) if part not in ("", numbers.MISSING))
    hue = Hue.SLOWER if effect.estimate > 1 else Hue.FASTER
    name = shorten(f"{one.case} {one.variant}", LONGEST_NAME)
    says = f"{name}: {one.verdict.value}, {text}{f', {one.condition}' if one.condition else ''}"
    fragment = make_fragment("case", one.suite, one.case)
    mark = Mark(Estimate(effect.estimate, effect.low, effect.high), hue, says, one.variant, case=fragment)
    return ForestRow(label, mark, text)


def _size(one: Change) -> float:
    estimate = 1.0 if one.effect is None else one.effect.estimate
    return max(estimate, 1 / estimate)


def _list_trust(
    machines: Sequence[MachineRuns], told: Sequence[Case], comparisons: Comparisons, warnings: Sequence[Item]
) -> Iterable[TrustFact]:
    """Yield the smallest detectable change and speedup, the A/A test, doubtful times, what failed, and warnings."""
    changes = [
        Phrase(numbers.percent(statistics.median(smallest)), find_hue(machine.newest))
        for machine, found in comparisons.of_machines
        if (smallest := [one.smallest for one in found.times if one.smallest is not None])
    ]
    if changes:
        yield TrustFact("Smallest detectable difference of changes, median", tuple(changes), "method")
    own = [(machine, [case for case in told if machine.has(case.run)]) for machine in machines[:MOST_DEVICES]]
    speedups = [
        Phrase(numbers.percent(statistics.median(smallest)), find_hue(machine.newest))
        for machine, cases in own
        if (smallest := list(list_smallest(variant for case in cases for variant in case.shown)))
    ]
    if speedups:
        which = " of speedups" if changes else ""
        yield TrustFact(f"Smallest detectable difference{which}, median", tuple(speedups), "method")
    yield TrustFact(
        "A/A test",
        tuple(
            Phrase(_describe_test(machine.newest.manifest.self_test), find_hue(machine.newest)) for machine, _ in own
        ),
        "method",
    )
    yield TrustFact(
        "Contended times",
        tuple(_count_contended(cases, find_hue(machine.newest)) for machine, cases in own),
        "attention" if warnings else "",
    )
    variants = [variant for case in told for variant in case.shown]
    for label, number in _count_doubts(variants):
        yield TrustFact(label, (Phrase(str(number), tone=Tone.WARN),), "attention")
    statuses = count_statuses(variants)
    bad = {status: count for status, count in statuses.items() if status in INCOMPLETE}
    text = ", ".join(f"{count} {status.value}" for status, count in bad.items())
    yield TrustFact(
        "Wrong or failed", (Phrase(text or "0", tone=Tone.BAD if bad else Tone.PLAIN),), "attention" if bad else ""
    )
    tone = Tone.WARN if warnings else Tone.PLAIN
    yield TrustFact("Warnings", (Phrase(str(len(warnings)), tone=tone),), "attention" if warnings else "")


def _count_doubts(variants: Sequence[Variant]) -> Iterable[tuple[str, int]]:
    """Yield what else makes a mark hollow, and how many variants it concerns; nothing where there is none."""
    counts = (
        ("Inconsistent times", sum(any(find_disagreement(one, metric) for metric in TIMES) for one in variants)),
        ("Variants with a trap", sum(bool(name_traps(one)) for one in variants)),
    )
    yield from ((label, number) for label, number in counts if number)


def _describe_test(found: SelfTest | None) -> str:
    if found is None or not found.is_sound:
        return "not run"
    return f"{found.speedups.differ} of {found.speedups.compared} wrong"


def _count_contended(cases: Sequence[Case], hue: Hue) -> Phrase:
    timed = [one for case in cases for one in case.shown if one.read(TIME).interval is not None]
    contended = sum(one.read(TIME).contended for one in timed)
    return Phrase(f"{contended} of {len(timed)}", hue, Tone.WARN if contended else Tone.PLAIN)
