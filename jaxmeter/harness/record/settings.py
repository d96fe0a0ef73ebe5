"""How a run measured, what of it may be set again, and what the machine's self-test found."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec

from jaxmeter.harness.record.files import SELF_TESTS, RecordError, name_file, read_json, write_json

LADDER = (0.01, 0.02, 0.03, 0.05, 0.07, 0.10, 0.15, 0.20, 0.30, 0.50)
"""Differences that are tried, as shares; finer steps than these would be noise of some ten ratios."""

FOUND = 0.95
"""Of the ratios, in which a difference has to be found: the goal that our own benchmarks have for one of 5 %."""


MOST_COUNTED = 10**9
"""A larger count is a damaged file."""


class Tally(msgspec.Struct, frozen=True, kw_only=True):
    """Ratios of equal programs, whose true value is 1: how often they were called different, which intervals held 1.

    Args:
      compared: Ratios that have an interval.
      differ: Of those, how many were called different: falsely.
      intervals: How many intervals were asked whether they hold the value that they should.
      held_shown, held_decisive: How many of those that are shown, and of those that verdicts go by, hold it.
      smallest_difference: The smallest of LADDER that is found in FOUND of the ratios; None where none is.
    """

    compared: int
    differ: int
    intervals: int
    held_shown: int
    held_decisive: int
    smallest_difference: float | None = None

    @property
    def is_sound(self) -> bool:
        """Whether these can have been counted."""
        parts = (self.differ, self.compared), (self.held_shown, self.intervals), (self.held_decisive, self.intervals)
        is_share = self.smallest_difference is None or 0 < self.smallest_difference < 1
        return is_share and all(0 <= part <= whole <= MOST_COUNTED for part, whole in parts)


class SelfTest(msgspec.Struct, frozen=True, kw_only=True):
    """One implementation twice, in every case and in several runs, on one machine.

    Args:
      at: When it ended.
      packages: Versions of jax and jaxlib, with which it was made; they are no part of the machine's name.
      runs: Repeated runs, one after the other.
      processes: Timing processes in all of them.
      shown_confidence, confidence: Of the intervals that are shown, and of those that verdicts go by.
      minimum_effect: The smallest difference worth a verdict.
      speedups: Of one program over its A/A control, interleaved in the same processes.
      times: Of one program in two runs, normalised; None where there is no such speed.
    """

    machine: str
    at: str
    tool_version: str
    packages: dict[str, str]
    runs: int
    cases: int
    processes: int
    shown_confidence: float
    confidence: float
    minimum_effect: float
    speedups: Tally
    times: Tally | None = None

    @property
    def is_sound(self) -> bool:
        """Whether all of it can have been measured; else a file is damaged."""
        counts, shares = (self.runs, self.cases, self.processes), (self.shown_confidence, self.confidence)
        tallies = [tally for tally in (self.speedups, self.times) if tally is not None]
        return (
            all(0 <= number <= MOST_COUNTED for number in counts)
            and all(0 < share < 1 for share in (*shares, self.minimum_effect))
            and all(tally.is_sound for tally in tallies)
        )


def locate_self_test(out: Path, machine: str) -> Path:
    """Where a machine's self-test lies, in the folder of its runs."""
    return out / SELF_TESTS / f"{name_file(machine)}.json"


def keep_self_test(out: Path, self_test: SelfTest) -> Path:
    """Writes it in place of an older one; returns where it lies."""
    path = locate_self_test(out, self_test.machine)
    write_json(path, self_test)
    return path


def find_self_test(out: Path, machine: str) -> SelfTest | None:
    """The machine's own, or None where there is none.

    Raises:
      RecordError: It is damaged, or another machine's.
    """
    path = locate_self_test(out, machine)
    if not path.exists():
        return None
    self_test = read_json(path, SelfTest)
    if not self_test.is_sound:
        raise RecordError(f"{path}: damaged, it contains impossible counts or shares")
    if self_test.machine != machine:
        raise RecordError(f"{path}: the self-test of another machine, {self_test.machine}")
    return self_test


class OtherEnvironment(msgspec.Struct, frozen=True, kw_only=True):
    """The environment of an earlier run, which takes turns with that of this one.

    Args:
      python: Its interpreter, as it was given.
      version: Of that run's Python.
      packages, variables: What that run recorded of it.
      checkout: Folder that that run's code was loaded from, as it was given; None if both loaded the suites of today.
    """

    python: str
    version: str
    packages: dict[str, str]
    variables: dict[str, str]
    checkout: str | None = None


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """The settings of a run; times are seconds.

    Args:
      fewest_rounds, most_rounds: Timing processes of each case.
      fewest_kept: Timing processes with which a case counts as measured; None for `fewest_rounds`.
      shown_confidence: Confidence level of the shown intervals; None if it is the level of the verdicts.
      finishes_fewest: Whether the fewest rounds are finished after the end of the budget, if that is the default one.
      processes: Number of timing processes if it was fixed by hand; then time limits do not cut it.
      data: Folder of the user's data sets, for suites that read some.
      cold_processes: Fresh processes per variant that compile, and per cache state.
      cold_processes_otherwise: The same for a case on which neither an answer nor a claim about compiling depends;
        None for the same number.
      not_used: Names of variables that were set and left out, as they would change the meaning of the numbers.
      everywhere: Probes that look at every case, and by default only at some.
      cores: Number of cores that each process ran on, different ones in each round; None for all allowed cores.
      lock_step_cores: Number of cores that each of two environments in lock-step ran on; None if it is `cores`, and in
        a run without a second environment.
      notes: What a reader must know about the measurement, such as why every process imported the suites itself.
      shows_wrong: Whether a variant with a wrong result has times, without a speedup: in a notebook.
      settle_s: Time of the untimed calls at the start of each block, unless one call is longer: in a notebook.
      lock_step: The environment that runs an earlier run's code, interleaved with today's, or None.
      confidence: Confidence level of the verdicts' intervals.
    """

    level: str
    probes: tuple[str, ...]
    fewest_rounds: int
    most_rounds: int
    finishes_fewest: bool = False
    processes: int | None = None
    budget_s: float
    stage_limit_s: float
    block_s: float
    sample_s: float
    blocks: int
    seed: int
    confidence: float
    shown_confidence: float | None = None
    target_half_width: float
    select: tuple[str, ...]
    suites: tuple[str, ...]
    data: str | None = None
    cold_processes: int = 1
    cold_processes_otherwise: int | None = None
    everywhere: tuple[str, ...] = ()
    not_used: tuple[str, ...] = ()
    cores: int | None = None
    lock_step_cores: int | None = None
    notes: tuple[str, ...] = ()
    shows_wrong: bool = False
    settle_s: float = 0.0
    lock_step: OtherEnvironment | None = None
    fewest_kept: int | None = None

    @property
    def process_cores(self) -> int | None:
        """On how many cores each timing process ran; None where on all that were allowed."""
        return self.cores if self.lock_step_cores is None else self.lock_step_cores


DUMPS = re.compile(r"--xla\w*_dump_\w+(=\S*)?\s*")
"""Flags that say what XLA writes down, and where: they steer no program."""

DUMP_VARIABLES = frozenset({"JAX_DUMP_IR_TO", "JAX_DUMP_IR_MODES"})

_FLAG = re.compile(r"--(?P<name>[A-Za-z][A-Za-z0-9_]*)(=(?P<value>.*))?")
_PLAIN = re.compile(r"(?!.*\.[A-Za-z])[A-Za-z0-9_.,:+= -]*")
"""No slash, home or variable of a shell, and no name with an ending: what is left can name no file elsewhere."""

_NAMES_A_FILE = re.compile(
    r"(^|_)(dir|directory|path|file|filename|prefix|library|lib|plugin|plugins|cache|address)(_|$)|_(to|from)$|dump",
    flags=re.IGNORECASE,
)

FLAGS = frozenset({"XLA_FLAGS", "LIBTPU_INIT_ARGS"})
"""Variables that hold flags; XLA takes any other first word of its variable for the name of a file with more."""


def is_plain_setting(name: str, value: object) -> bool:
    """Return whether a recorded variable, or an option of JAX, can be set again without following a path."""
    if name in FLAGS:
        return isinstance(value, str) and all(map(_is_plain_flag, value.split()))
    if isinstance(value, str):
        return _PLAIN.fullmatch(value) is not None and not _NAMES_A_FILE.search(name)
    return isinstance(value, bool | int | float) and not _NAMES_A_FILE.search(name)


def _is_plain_flag(word: str) -> bool:
    flag = _FLAG.fullmatch(word)
    if flag is None or _NAMES_A_FILE.search(flag["name"]):
        return False
    return _PLAIN.fullmatch(flag["value"] or "") is not None


def leave_out_dumps(name: str, value: str) -> str | None:
    """Return a variable's value without what is written down while compiling; None where that is all of it."""
    if name in DUMP_VARIABLES:
        return None
    if name not in FLAGS:
        return value
    left = DUMPS.sub("", value).strip()
    return left or (value if not value.strip() else None)
