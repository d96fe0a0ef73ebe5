"""Finds the same compiled variants in two runs."""

from __future__ import annotations

from dataclasses import dataclass

from jaxmeter.harness.metrics.reading import Run
from jaxmeter.harness.record import PlannedCase
from jaxmeter.harness.record.patterns import match_cases, names_of

from .programs import NothingToCompareError, Program, RecordedCase, suggest_nearest


@dataclass(frozen=True)
class Pair:
    """The same variant of the same case in two runs."""

    case: str
    variant: str
    a: Program
    b: Program


@dataclass(frozen=True)
class Pairs:
    """What can be compared, and what of it could not be read: one sentence each."""

    pairs: tuple[Pair, ...]
    warnings: tuple[str, ...]


def find_pairs(a: Run, b: Run, pattern: str, variant: str | None = None) -> Pairs:
    """Pairs of programs of the cases that match, of one variant or of all that have a program in both runs.

    Args:
      pattern: A case's name, workload or suite; `*` stands for any text and `?` for one character.
    Raises:
      NothingToCompareError: No such case or variant, or no text that both runs keep.
    """
    in_a, in_b = _match(a, pattern), _match(b, pattern)
    names = [name for name in in_a if name in in_b]
    if not names:
        name = next(iter(in_a))
        raise NothingToCompareError(f"{b.folder.path}: no case {name!r}{suggest_nearest(name, _all_names(b))}")
    warnings = [f"case {name} is in {a.folder.path} only" for name in in_a if name not in in_b]
    warnings += [f"case {name} is in {b.folder.path} only" for name in in_b if name not in in_a]
    pairs: list[Pair] = []
    problems: list[str] = []
    for name in names:
        try:
            sides = RecordedCase(a, in_a[name]), RecordedCase(b, in_b[name])
            chosen = _choose_variants(*sides, variant, warnings)
            pairs += [Pair(name, one, *(side.read_program(one, warnings) for side in sides)) for one in chosen]
        except NothingToCompareError as error:
            problems.append(str(error))
    comparable = [pair for pair in pairs if pair.a.texts.keys() & pair.b.texts.keys()]
    if not comparable:
        unread = ["no text of a program can be read in both runs"] if pairs else []
        raise NothingToCompareError("\n".join([*problems, *warnings, *unread]))
    return Pairs(tuple(comparable), (*problems, *warnings))


def _choose_variants(a: RecordedCase, b: RecordedCase, wanted: str | None, warnings: list[str]) -> tuple[str, ...]:
    """Names of the variants to compare."""
    for side in (a, b):
        side.require_program(wanted)
    if wanted is not None:
        return (wanted,)
    in_a, in_b = ({one.name for one in side.planned.variants} & side.kept.keys() for side in (a, b))
    for name in sorted(in_a ^ in_b):
        only = a if name in in_a else b
        warnings.append(f"case {only.planned.name}: {name} has a program in {only.loaded.folder.path} only")
    both = tuple(one.name for one in a.planned.variants if one.name in in_a & in_b)
    if not both:
        raise NothingToCompareError(f"case {a.planned.name}: no variant has a program in both runs")
    return both


def _match(loaded: Run, pattern: str) -> dict[str, PlannedCase]:
    found = {case.name: case for case in match_cases(loaded.manifest.cases, pattern)}
    if not found:
        nearest = suggest_nearest(pattern, _all_names(loaded))
        raise NothingToCompareError(f"{loaded.folder.path}: no case matches --case {pattern!r}{nearest}")
    return found


def _all_names(loaded: Run) -> list[str]:
    return [name for case in loaded.manifest.cases for name in names_of(case)]
