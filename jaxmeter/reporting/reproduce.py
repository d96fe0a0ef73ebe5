"""One variant as a zip for a bug report: its program, a script that runs it without us, what was measured of it."""

from __future__ import annotations

import io
import json
import re
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from jaxmeter.document.markdown import escape
from jaxmeter.harness.metrics.reading import Case, Run, Variant
from jaxmeter.harness.metrics.table import METRICS
from jaxmeter.harness.metrics.write import write_reading
from jaxmeter.harness.record import INCOMPLETE, NATIVE, Artifact, Param
from jaxmeter.harness.record.cases import match_cases, names_of
from jaxmeter.harness.record.files import EXPORTED, PROGRAM_TEXTS, name_file
from jaxmeter.harness.record.settings import is_plain_setting
from jaxmeter.harness.record.wording import shorten, write_options

from .compare.changes import find_changes
from .compare.programs import ArtifactError, read_file, suggest_nearest
from .compare.times import EXACT
from .compare.verdicts import TIME
from .frame import list_metrics
from .view.changes import order_changes, write_both, write_change, write_report
from .view.runs import gather_cases, label_runs, name_device

BEFORE, AFTER = "before", "after"
"""Folders of a zip about two runs."""

PROGRAM, SCRIPT, README, NUMBERS = "program.jaxexport", "reproduce.py", "README.md", "numbers.json"

FILES = {
    SCRIPT: "compiles the program, calls it on random inputs, and says what that takes",
    PROGRAM: "what JAX lowered, as `jax.export` writes it: StableHLO with the types of its arguments",
    PROGRAM_TEXTS["jaxpr"]: "what JAX traced",
    PROGRAM_TEXTS["stablehlo"]: "what JAX lowered, as text",
    PROGRAM_TEXTS["hlo"]: "what XLA compiled, as text",
    NUMBERS: "every number that was measured, of every process",
}
"""What may be in the zip, and what each is."""

INSTALLED = re.compile(r"jax|jaxlib|numpy|libtpu|jax[-_][a-z0-9_-]+")
"""Packages that a program runs on."""

VERSION = re.compile(r"[0-9][A-Za-z0-9.!+]*")
"""A version as a line of a shell can hold it. A record may come from anywhere, and somebody types that line."""

SET = re.compile(r"(JAX|XLA|LIBTPU|TPU|CUDA|NVIDIA|NCCL|OMP|MKL|OPENBLAS)_[A-Z0-9_]+")
"""Variables that decide how it is compiled and runs. A record may name any; a script sets no others."""

_SOURCE = re.compile(rb"(?<![\w.~/-])/[\w.@+-]+(?:/[\w.@+-]+)+\.py\b")
"""A file of source code by its whole path, as JAX writes it into programs."""

LEFT_OUT = "; left out"
LONGEST_REASON = 2000

UNCHANGING = (1980, 1, 1, 0, 0, 0)
"""The date of every file in a zip: equal runs give equal bytes."""


class NothingToReproduceError(Exception):
    """No program can be given; the message says why."""


@dataclass(frozen=True)
class Subject:
    """The variant that a report is about.

    Args:
      loaded: The run that measured it.
      kept: Its files, by kind.
    """

    loaded: Run
    variant: Variant
    kept: Mapping[str, Artifact]

    @property
    def name(self) -> str:
        """Of the folder in the zip, and of the zip: only characters that every file system takes."""
        return name_file(f"{self.variant.planned_case.name} {self.variant.planned.name}")


def find_subject(loaded: Run, pattern: str, name: str | None = None) -> Subject:
    """The variant of one case.

    Args:
      pattern: The case's name, or one that no other case matches.
      name: The variant's; None where the case keeps the program of one alone.
    Raises:
      NothingToReproduceError: No such case or variant, several of them, or none whose program is kept.
    """
    case = _find_case(loaded, pattern)
    where = f"{loaded.folder.path}: {case.planned.name}"
    if case.record is None:
        raise NothingToReproduceError(f"{where}: {case.why_lost}")
    kept: dict[str, dict[str, Artifact]] = {}
    for artifact in case.record.artifacts:
        kept.setdefault(artifact.variant, {})[artifact.kind] = artifact
    programs = [shown for shown in case.shown if EXPORTED in kept.get(shown.planned.name, {})]
    names = [program.planned.name for program in programs]
    if name is None:
        if len(programs) == 1:
            return Subject(loaded, programs[0], kept[names[0]])
        several = f"give --variant, one of {', '.join(names)}" if names else _explain_no_program(case.shown)
        raise NothingToReproduceError(f"{where}: {several}")
    variant = case.find(name)
    if variant is None:
        nearest = suggest_nearest(name, [shown.planned.name for shown in case.shown])
        raise NothingToReproduceError(f"{where} has no variant {name!r}{nearest}")
    if variant not in programs:
        others = f"; programs are kept of {', '.join(names)}" if names else ""
        raise NothingToReproduceError(f"{where}: {_explain_no_program([variant])}{others}")
    return Subject(loaded, variant, kept[name])


def _find_case(loaded: Run, pattern: str) -> Case:
    """The one that matches; one of that very name before all. Names and ids are as readers see them."""
    cases = gather_cases(label_runs([loaded]))
    planned = [case.planned for case in cases]
    exact = [case for case in planned if case.name == pattern]
    matches = exact or match_cases(planned, pattern)
    if len(matches) == 1:
        return next(case for case in cases if case.planned is matches[0])
    if matches:
        some = ", ".join(case.name for case in matches[:3])
        raise NothingToReproduceError(
            f"{loaded.folder.path}: {len(matches)} cases match --case {pattern!r}, and a report is about one: {some}"
            + (" …" if len(matches) > 3 else "")
        )
    nearest = suggest_nearest(pattern, [name for case in planned for name in names_of(case)])
    raise NothingToReproduceError(f"{loaded.folder.path}: no case matches --case {pattern!r}{nearest}")


def _explain_no_program(variants: Sequence[Variant]) -> str:
    """Why none of these has one to run: what the run says of the first that it tried to keep, else what they are."""
    for variant in variants:
        outcome = variant.outcomes.get("export")
        if outcome is not None and outcome.reason:
            return f"{variant.planned.name}: {outcome.reason}"
    if len(variants) != 1:
        return "the run keeps no program of any variant; measure again"
    planned = variants[0].planned
    if planned.mode == NATIVE:
        return f"{planned.name} is another library's, and no program of JAX's"
    if planned.mode == "aot":
        return f"{planned.name} is the program of {planned.implementation}:jit, compiled ahead of time; give that"
    if planned.mode == "jit":
        return f"the run keeps no program of {planned.name}; measure again"
    return f"{planned.name} is not one program: only what jit compiles as a whole is"


def find_earlier(before: Run, subject: Subject) -> Subject:
    """Return the same variant of an earlier run.

    Raises:
      NothingToReproduceError: That run has no such case or variant, or keeps no program of it.
    """
    planned = subject.variant.planned_case
    for case in gather_cases(label_runs([before])):
        if (case.planned.name, case.planned.platform) == (planned.name, planned.platform):
            return find_subject(before, planned.name, subject.variant.planned.name)
    raise NothingToReproduceError(f"{before.folder.path}: it has no case {planned.name}; name a run that measured it")


def make_zip(subject: Subject, warnings: list[str], before: Subject | None = None) -> bytes:
    """Return the zip, all of it in one folder.

    Args:
      warnings: Takes a sentence for each file that is left out.
      before: The same variant of an earlier run: the zip has both, in a folder each, and what differs.
    Raises:
      NothingToReproduceError: The program's file cannot be used.
    """
    files = _collect(subject, warnings)
    if before is not None:
        sides = {BEFORE: _collect(before, warnings), AFTER: files}
        folders = {f"{side}/{name}": data for side, side_files in sides.items() for name, data in side_files.items()}
        files = {README: _write_comparison(before, subject), **folders}
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files.items():
            entry = zipfile.ZipInfo(f"{subject.name}/{name}", UNCHANGING)
            entry.external_attr = 0o644 << 16
            archive.writestr(entry, data, zipfile.ZIP_DEFLATED)
    return buffer.getvalue()


def _collect(subject: Subject, warnings: list[str]) -> dict[str, bytes]:
    """Return the files of one variant, by name.

    Raises:
      NothingToReproduceError: The program's file cannot be used.
    """
    variant = subject.variant
    texts = {kind: data for kind in PROGRAM_TEXTS if (data := _read(subject, kind, warnings)) is not None}
    program = _read(subject, EXPORTED, warnings)
    if program is None:
        raise NothingToReproduceError(warnings.pop().removesuffix(LEFT_OUT))
    unset = variant.environment.variables.keys() - _choose_variables(variant).keys()
    left_out = sorted(name for name in unset if SET.fullmatch(name))
    left_out += sorted(variant.planned.compiler_options.keys() - _choose_options(variant).keys())
    where = subject.loaded.folder.path
    warnings.extend(f"{where}: {name} may name a file{LEFT_OUT} of {SCRIPT}" for name in left_out)
    numbers = json.dumps(list(list_metrics(variant)), indent=1, ensure_ascii=False).encode("utf-8", "replace") + b"\n"
    files = {
        SCRIPT: _render(
            "reproduce.py.j2",
            variables=_choose_variables(variant),
            config=_choose_config(variant),
            options=_choose_options(variant),
            devices=variant.planned_case.devices,
        ),
        PROGRAM: program,
        **{PROGRAM_TEXTS[kind]: data for kind, data in texts.items()},
        NUMBERS: numbers,
    }
    for name, data in files.items():
        if (path := _SOURCE.search(data)) is not None:
            words = f"{name} holds paths of source files, such as {path[0].decode()}: read it before you share the zip"
            warnings.append(words)
    return {README: _write_readme(variant, tuple(files)), **files}


def _read(subject: Subject, kind: str, warnings: list[str]) -> bytes | None:
    artifact = subject.kept.get(kind)
    if artifact is None:
        return None
    try:
        return read_file(subject.loaded.folder, subject.variant.planned_case.id, artifact)
    except ArtifactError as error:
        warnings.append(f"{subject.loaded.folder.path}: {kind} of {subject.name}: {error}{LEFT_OUT}")
        return None


def _choose_variables(variant: Variant) -> dict[str, str]:
    """Environment variables that were set and that decide how the program is compiled and runs; none names a file."""
    recorded = variant.environment.variables.items()
    return {name: value for name, value in recorded if SET.fullmatch(name) and is_plain_setting(name, value)}


def _choose_options(variant: Variant) -> dict[str, Param]:
    """The compiler options that it was compiled with; none names a file."""
    recorded = variant.planned.compiler_options.items()
    return {name: value for name, value in recorded if is_plain_setting(name, value)}


def _choose_config(variant: Variant) -> tuple[tuple[str, Any], ...]:
    """What was set in `jax.config`: by the case, and what it takes to have as many devices."""
    case, here = variant.planned_case, variant.environment
    config: dict[str, Any] = {"jax_enable_x64": True} if here.x64 else {}
    if here.matmul_precision is not None:
        config["jax_default_matmul_precision"] = here.matmul_precision
    if case.devices > 1 and case.platform == "cpu":
        config["jax_num_cpu_devices"] = case.devices
    config |= case.config
    return tuple((name, value) for name, value in config.items() if is_plain_setting(name, value))


def _write_readme(variant: Variant, files: Sequence[str]) -> bytes:
    here, manifest = variant.environment, variant.case.run.manifest
    facts = {
        "device": name_device(variant.case.run),
        "platform": here.platform_version,
        "driver": here.driver,
        "processor": f"{here.processor}, {here.allowed_cores} of {here.cores} cores",
        "system": f"{here.system}, {here.machine}",
        "Python": here.python,
        "packages": ", ".join(f"{name} {version}" for name, version in _choose_packages(variant).items()),
        "variables": ", ".join(f"{name}={value}" for name, value in here.variables.items()),
        "compiler options": write_options(variant.planned.compiler_options),
        "image": here.image,
        "measured": f"{manifest.started}, by jaxmeter {manifest.tool_version}, run {manifest.run_id}",
    }
    return _render(
        "reproduce.md.j2",
        variant=variant,
        installs=_write_packages(variant),
        level=f"{variant.case.run.level:.0%}",
        numbers=list(_list_numbers(variant)),
        problems=[outcome for outcome in variant.outcomes.values() if outcome.status in INCOMPLETE],
        facts={name: value for name, value in facts.items() if value},
        files={name: FILES[name] for name in files},
    )


def _choose_packages(variant: Variant) -> dict[str, str]:
    """Return the packages that a program runs on, with versions that a shell can hold."""
    recorded = sorted(variant.environment.packages.items())
    return {name: version for name, version in recorded if INSTALLED.fullmatch(name) and VERSION.fullmatch(version)}


def _write_packages(variant: Variant) -> str:
    """Return what to install: jax.export reads programs with flatbuffers, which jax does not bring."""
    return " ".join([*(f"{name}=={version}" for name, version in _choose_packages(variant).items()), "flatbuffers"])


def _write_comparison(before: Subject, after: Subject) -> bytes:
    """Return what is found of both, and how to run both."""
    changes = find_changes(before.loaded, after.loaded)
    planned = after.variant.planned_case
    key = planned.name, planned.platform, after.variant.planned.name
    own = [change for change in changes.entries if change.key == key]
    times = [change for change in own if change.metric == TIME]
    others = [change for change in own if change.metric != TIME]
    reports = (report for report in changes.reports if (report.case, report.variant) == (key[0], key[2]))
    return _render(
        "compared.md.j2",
        variant=after.variant,
        installs={side: _write_packages(subject.variant) for side, subject in ((BEFORE, before), (AFTER, after))},
        findings=[f"{change.verdict.value}: {write_change(change)}" for change in (*times, *order_changes(others))],
        reports=list(map(write_report, reports)),
        counts=[(change.title, *write_both(change)) for change in own if change.metric in EXACT],
        conditions=[*changes.conditions.steering, *changes.conditions.others],
    )


def _list_numbers(variant: Variant) -> Iterator[tuple[str, str, str, int]]:
    """(title, number, its interval, how many processes it is of) of all that it has."""
    for metric in METRICS.values():
        if metric.exponent_of is None and (reading := variant.read(metric.name)).interval is not None:
            yield metric.title, *write_reading(reading), reading.interval.count


def _render(template: str, **values: Any) -> bytes:
    # Not for a browser: Markdown is escaped by its own rule, and Python by its literals.
    environment = Environment(
        loader=PackageLoader(__package__, "templates"), undefined=StrictUndefined, keep_trailing_newline=True
    )
    environment.filters.update(escape=escape, literal=repr, shorten=lambda text: shorten(text, LONGEST_REASON))
    return environment.get_template(template).render(program=PROGRAM, **values).encode("utf-8", "replace")
