"""Runs, cases and variants as a reader names them, with ids; the machines, and what a run keeps of a case."""

from __future__ import annotations

import hashlib
import re
import shlex
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from pathlib import Path

from jaxmeter.document import numbers
from jaxmeter.harness.metrics.reading import Case, Run, Variant, split_platforms
from jaxmeter.harness.metrics.write import describe_details
from jaxmeter.harness.plan.probes import PROBES
from jaxmeter.harness.record import Artifact, Outcome, RunFolder
from jaxmeter.harness.record.wording import counted, shorten, visible

from ..compare.conditions import name_variables
from ..load import name_runs
from ..text import hide_home, visible_record
from .page_model import DEVICE_SIGNS, Hue, KeptFile

LONGEST_NAME = 80
LONGEST_TERM = 40
"""Of a name among several in a sentence."""

LONGEST_FRAGMENT = 200
_NOT_IN_AN_ID = re.compile(r"\s")

PRECISIONS = tuple(map(len, ("2026-11-28", "2026-11-28T13:55", "2026-11-28T13:55:16")))
"""Of the start of a run."""

Key = tuple[str, str, str]
"""Suite, case and variant."""


def name_variant(variant: Variant) -> str:
    """Return a variant with its case and run."""
    case, name = shorten(variant.case.planned.name, LONGEST_NAME), shorten(variant.planned.name, LONGEST_NAME)
    return f"{case} · {name} · {variant.case.run.label}"


def name_in_sentence(variant: Variant) -> str:
    """Return a variant within a sentence about its case: `step:jit`; of Python around programs `step`."""
    return shorten(variant.planned.name.removesuffix(":mixed"), LONGEST_TERM)


def name_starts(starts: Iterable[str]) -> dict[str, str]:
    """Return how the starts of runs are written: by the day, the minute or the second, whichever distinguishes them.

    Of runs of one day the date is left out.
    """
    known = set(starts)
    lengths = (length for length in PRECISIONS if len({start[:length] for start in known}) == len(known))
    digits = next(lengths, PRECISIONS[-1])
    is_one_day = len({start[: PRECISIONS[0]] for start in known}) == 1 and digits > PRECISIONS[0]
    begin = PRECISIONS[0] + 1 if is_one_day else 0
    return {start: start[begin:digits].replace("T", " ") for start in known}


def name_rows(keys: Sequence[Key]) -> dict[Key, str]:
    """Return the name of each row: the workload, its variant of several, and the params of several cases."""
    cases: dict[str, set[str]] = {}
    variants: dict[str, set[str]] = {}
    for _, case, variant in keys:
        workload = case.partition("[")[0]
        cases.setdefault(workload, set()).add(case)
        variants.setdefault(workload, set()).add(variant)
    names = {}
    for key in keys:
        workload = key[1].partition("[")[0]
        shared = set.intersection(*map(_list_params, cases[workload]))
        own = ",".join(sorted(_list_params(key[1]) - shared))
        parts = (workload, key[2] if len(variants[workload]) > 1 else "", own)
        names[key] = shorten(" ".join(filter(None, parts)), LONGEST_NAME)
    return names


def _list_params(case: str) -> set[str]:
    """Return the params of a case by its name: `{"dtype=float32", "n=2000"}`."""
    return set(filter(None, case.partition("[")[2].removesuffix("]").split(",")))


def make_key(kind: str, *names: str) -> str:
    """Return an id for links, from what names a thing."""
    return f"{kind}-{_hash(names)}"


def key_of_case(case: Case) -> str:
    """Return the id of a case of one run, for links."""
    return make_key("c", case.run.name, case.planned.id)


def key_of_variant(variant: Variant) -> str:
    """Return the id of a variant of one run, for links."""
    return make_key("v", variant.case.run.name, variant.planned_case.id, variant.name)


def fragment_of(case: Case) -> str:
    """Return what opens the view of a case; it is the same on every machine."""
    return make_fragment("case", case.planned.suite, case.planned.name)


@lru_cache(maxsize=2**14)
def make_fragment(view: str, *names: str) -> str:
    """Return the id of a view that a reader may type: `case=matmul/matmul[n=2048]`; unlike for unlike names."""
    text = "/".join(names)
    plain = _NOT_IN_AN_ID.sub("_", text)[:LONGEST_FRAGMENT]
    # A name with a slash in it could be mistaken for two.
    is_plain = plain == text and not any("/" in name for name in names)
    return f"{view}={plain}" if is_plain else f"{view}={plain}-{_hash(names)}"


def _hash(names: tuple[str, ...]) -> str:
    return hashlib.sha256(repr(names).encode()).hexdigest()[:12]


History = Mapping[str, Sequence[Sequence[Case]]]
"""By the fragment of a case, for each machine the case in all runs that planned it, the newest first."""

SPEED = "speed"
"""The section of probes without one of their own."""

TRACE = "trace"
TITLES = {"jaxpr": "jaxpr", "stablehlo": "StableHLO", "hlo": "optimised HLO"}
"""Of the kinds of program texts, from what JAX traced to what XLA compiled."""


def describe_cores(run: Run) -> str:
    """Return `2 cores`, `2 cores, each timing process on one`."""
    cores, used = counted(run.environment.allowed_cores, "core"), run.settings.process_cores
    return cores if used is None else f"{cores}, each timing process on {'one' if used == 1 else used}"


def label_runs(loaded: Sequence[Run]) -> tuple[Run, ...]:
    """Return each run once for each of its platforms, labelled, and with every text in it visible.

    A label is the platform with its sign, then the device, then the run's name, as far as needed to tell it from the
    others; with the name come the environment variables by which the runs of a platform differ.
    """
    shown = [replace(run, record=visible_record(run.record)) for run in loaded]
    runs = [
        replace(platform, name=name)
        for run, name in zip(shown, name_runs(shown), strict=True)
        for platform in split_platforms(run)
    ]
    short = [f"{DEVICE_SIGNS.get(find_hue(run), '')} {run.where}".lstrip() for run in runs]
    devices = [f"{label} · {name_device(run)}" for label, run in zip(short, runs, strict=True)]
    variables = {
        label: iter(name_variables(*(run.environment for run, of in zip(runs, short, strict=True) if of == label)))
        for label in short
    }
    labels = []
    for index, run in enumerate(runs):
        differing = next(variables[short[index]])
        if Counter(short)[short[index]] == 1:
            labels.append(short[index])
        elif Counter(devices)[devices[index]] == 1:
            labels.append(devices[index])
        else:
            labels.append(" · ".join(filter(None, (short[index], run.name, differing))))
    return tuple(_with_baselines(replace(run, label=label) for run, label in zip(runs, labels, strict=True)))


def _with_baselines(runs: Iterable[Run]) -> Iterator[Run]:
    """Yield each run with the first of its machine that has the same calibration loop, and the first with another."""
    of_machines: dict[str, Run] = {}
    first: dict[tuple[str, str], Run] = {}
    for run in runs:
        machine, reference = run.manifest.machine, run.speed.reference
        if reference is None:
            yield run
            continue
        key = (machine, reference.identity)
        of_machine, baseline = of_machines.setdefault(machine, run), first.get(key)
        # The first of its machine keeps the pool that it has gathered.
        other = None if baseline is of_machine else of_machine
        labelled = run if run is of_machine else replace(run, baseline=baseline, other_calibration=other)
        first.setdefault(key, labelled)
        yield labelled


def name_device(run: Run) -> str:
    """Return what the run was made on, with the number of devices where there are several."""
    environment = run.environment
    many = f"{environment.device_count} × " if environment.device_count != 1 else ""
    return f"{many}{environment.device_name}"


def find_hue(run: Run) -> Hue:
    """Return the colour of a run's platform."""
    platform = run.where.partition(":")[0]
    return Hue(platform) if platform in (Hue.CPU, Hue.GPU, Hue.TPU) else Hue.INK


@dataclass(frozen=True)
class MachineRuns:
    """A platform of a machine.

    Args:
      runs: Its runs, from the oldest to the newest; at least one.
    """

    runs: tuple[Run, ...]

    @property
    def newest(self) -> Run:
        """The run that leads."""
        return self.runs[-1]

    @property
    def name(self) -> str:
        """`cpu: AMD EPYC`."""
        return f"{self.newest.where}: {name_device(self.newest)}"

    @cached_property
    def repeated(self) -> int:
        """How many runs have a case that a newer run has, too."""
        seen: set[tuple[str, str]] = set()
        count = 0
        for run in reversed(self.runs):
            names = {(case.planned.suite, case.planned.name) for case in run.cases}
            count += not names.isdisjoint(seen)
            seen |= names
        return count

    def has(self, run: Run) -> bool:
        """Whether a run was made here."""
        return id(run) in self._ids

    @cached_property
    def _ids(self) -> frozenset[int]:
        return frozenset(map(id, self.runs))


def group_by_machine(runs: Sequence[Run]) -> tuple[MachineRuns, ...]:
    """Return the platforms of the machines of runs; the platform with the newest run comes first."""
    by_machine: dict[tuple[str, str], list[Run]] = {}
    for run in sorted(runs, key=lambda run: run.manifest.started):  # runs of one second stay in their order
        by_machine.setdefault((run.where, run.manifest.machine), []).append(run)
    machines = (MachineRuns(tuple(own)) for own in by_machine.values())
    return tuple(sorted(machines, key=lambda machine: machine.newest.manifest.started, reverse=True))


def choose_newest(machines: Sequence[MachineRuns], cases: Sequence[Case]) -> tuple[Case, ...]:
    """Return on each machine each case once: as the newest of its runs has it that planned it."""
    by_run: dict[int, list[Case]] = {}
    for case in cases:
        by_run.setdefault(id(case.run), []).append(case)
    chosen = []
    for machine in machines:
        newest: dict[str, Case] = {}
        for run in machine.runs:
            newest |= {fragment_of(case): case for case in by_run.get(id(run), ())}
        kept = set(map(id, newest.values()))
        chosen += [case for case in cases if id(case) in kept]
    return tuple(chosen)


def gather_history(machines: Sequence[MachineRuns], cases: Sequence[Case]) -> History:
    """Return by the case's fragment a list for each machine with the case in all of its runs, the newest first."""
    by_case: dict[str, dict[int, list[Case]]] = {}
    order = {id(run): (index, -age) for index, machine in enumerate(machines) for age, run in enumerate(machine.runs)}
    for case in sorted(cases, key=lambda case: order[id(case.run)]):
        by_case.setdefault(fragment_of(case), {}).setdefault(order[id(case.run)][0], []).append(case)
    return {fragment: list(by_place.values()) for fragment, by_place in by_case.items()}


def gather_cases(runs: Sequence[Run]) -> tuple[Case, ...]:
    """Return every planned case of every run, by suite and workload, then by run."""
    cases = [case for run in runs for case in run.cases]
    return tuple(sorted(cases, key=lambda case: (case.planned.suite, case.planned.workload)))


def label_case(case: Case) -> str:
    """Return the case and where it ran."""
    return f"{case.planned.name} · {case.run.label}"


def group_alike(variant: Variant) -> tuple[tuple[tuple[str, ...], Outcome], ...]:
    """Return probes that ended for the same reason, with an outcome to stand for them."""
    groups: dict[tuple[object, ...], tuple[tuple[str, ...], Outcome]] = {}
    for probe, outcome in variant.outcomes.items():
        key = (outcome.status, outcome.reason, outcome.stderr)
        probes, first = groups.get(key, ((), outcome))
        groups[key] = ((*probes, probe), first)
    return tuple(groups.values())


def list_notes(variant: Variant) -> tuple[str, ...]:
    """Return what was noted next to the time and the result, each once."""
    own = {probe.name for probe in PROBES.values() if probe.section != SPEED}
    probes = [probe for probe in variant.outcomes if probe not in own]
    return tuple(dict.fromkeys(note for probe in probes for note in list_notes_of(variant, probe)))


def list_notes_of(variant: Variant, probe: str) -> tuple[str, ...]:
    """Return what one probe noted next to its numbers, and what its details say."""
    outcome = variant.outcomes.get(probe)
    if outcome is None:
        return ()
    return (*describe_details(outcome.details, raises=variant.planned.raises), *outcome.notes)


def list_files(cases: Sequence[Case]) -> tuple[KeptFile, ...]:
    """Return of a case on each machine its traces, then the texts of its programs."""
    return tuple(file for case in cases for file in _list_of(case))


def _list_of(case: Case) -> Iterator[KeptFile]:
    if case.record is None:
        return
    folder = RunFolder(Path(describe_folder(case.run))).case(case.planned.id)
    where = case.run.label
    kept = case.record.artifacts
    traces = [file for file in kept if file.kind == TRACE]
    if traces:
        size = numbers.memory(float(sum(file.size_bytes for file in traces)))
        run = name_folder(describe_folder(case.run))
        names = dict.fromkeys(file.variant for file in traces)
        yield KeptFile(
            f"{', '.join(names)} · {where}: profiler trace",
            f"jaxmeter trace --open {run} --select {shlex.quote(case.planned.id)}",
            f"{size} in {folder.path}/trace",
        )
    by_variant: dict[str, list[Artifact]] = {}
    for file in kept:
        if file.kind in TITLES:
            by_variant.setdefault(file.variant, []).append(file)
    for variant, texts in by_variant.items():
        ordered = sorted(texts, key=lambda file: list(TITLES).index(file.kind))
        folders = dict.fromkeys(str((folder.path / file.path).parent) for file in ordered)
        files = " ".join(f"{name_folder(path)}/*" for path in folders)
        titles = ", ".join(TITLES[file.kind] for file in ordered)
        yield KeptFile(f"{variant} · {where}: {titles}", f"less {files}")


def describe_folder(run: Run) -> str:
    """Return where a run is kept, for a reader: `~` stands for the home folder."""
    return visible(hide_home(str(run.folder.path)))


def name_folder(text: str) -> str:
    """Return the path as a shell takes it; what stands for the home folder must not be quoted."""
    return f"~/{shlex.quote(text[2:])}" if text.startswith("~/") else shlex.quote(text)
